"""Ingesting files: small ones in process, large ones by Spark."""

from __future__ import annotations

import glob
from collections.abc import Iterable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.json as pajson
import pyarrow.parquet as pq

from slackwater.errors import UserError
from slackwater.types import Schema, to_arrow
from slackwater.work.changes import Transaction

FORMATS = ("csv", "json", "parquet")
CHUNK_ROWS = 500_000


def ingest(
    transaction: Transaction,
    name: str,
    source: str | Path | Iterable[pa.RecordBatch],
    format: str = "parquet",
) -> int:
    """Rows of files or batches into a table, all in one version."""
    if not isinstance(source, str | Path):
        return sum(transaction.append(name, chunk) for chunk in _chunks(source))
    if format.lower() not in FORMATS:
        raise UserError(
            f"Format '{format}' is not known.",
            code="BAD_OPTION",
            hint=f"Choose one of {', '.join(FORMATS)}.",
        )
    paths = _paths(str(source), format.lower())
    house = transaction.house
    size = sum(p.stat().st_size for p in paths)
    schema = transaction.world().table(name).schema
    runner = house.runner
    too_large = runner.placement == "auto" and size > runner.load_bytes
    if runner.placement == "spark" or (too_large and runner.spark.is_available):
        return transaction.append(name, house.runner.spark.files(paths, format.lower(), schema))
    return sum(transaction.append(name, _read(path, format.lower(), schema)) for path in paths)


def _paths(pattern: str, format: str) -> list[Path]:
    root = Path(pattern)
    if root.is_dir():
        found = sorted(p for p in root.rglob(f"*.{format}*") if p.is_file())
    else:
        found = [Path(p) for p in sorted(glob.glob(pattern, recursive=True))]
    if not found:
        raise UserError(
            f"No {format} files at '{pattern}'.",
            code="SOURCE_MISSING",
            hint="Check the path; patterns such as data/*.csv are allowed.",
        )
    return found


def _chunks(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Batches gathered into pieces worth a segment."""
    waiting: list[pa.RecordBatch] = []
    for batch in batches:
        waiting.append(batch)
        if sum(b.num_rows for b in waiting) >= CHUNK_ROWS:
            yield pa.Table.from_batches(waiting)
            waiting = []
    if waiting:
        yield pa.Table.from_batches(waiting)


def _read(path: Path, format: str, schema: Schema) -> pa.Table:
    types = {f.name: to_arrow(f.type) for f in schema}
    try:
        if format == "parquet":
            return pq.read_table(path)
        if format == "json":
            explicit = pa.schema(list(types.items()))
            options = pajson.ParseOptions(
                explicit_schema=explicit, unexpected_field_behavior="error"
            )
            return pajson.read_json(path, parse_options=options)
        convert = pacsv.ConvertOptions(
            column_types=types, strings_can_be_null=True, quoted_strings_can_be_null=False
        )
        return pacsv.read_csv(path, convert_options=convert)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise UserError(
            f"File '{path}' cannot be read as {format}: {error}",
            code="BAD_DATA",
            hint="Check the file against the table's columns (DESCRIBE table).",
        ) from error
