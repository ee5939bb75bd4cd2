"""Files of rows, read as Arrow batches with the columns and types of a table."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa

from slackwater import types
from slackwater.cli import text_files
from slackwater.cli.formats import FileFormat, Reading
from slackwater.errors import UserError

BATCH_ROWS = 64 * 1024

Advance = Callable[[int], None]
"""Told how many more bytes of the files have been read."""


def infer(path: Path, reading: Reading) -> types.Schema:
    """Names and types that the beginning of a file suggests; every column may be NULL."""
    with _problems(path):
        match reading.format_of(path):
            case FileFormat.parquet:
                from pyarrow import parquet

                schema = parquet.read_schema(path)
            case FileFormat.json:
                schema = text_files.open_json(path).schema
            case FileFormat.csv:
                schema = text_files.open_csv(path, reading).schema
    return tuple(types.Field(f.name, _inferred(f.type)) for f in schema)


def read(
    path: Path, reading: Reading, schema: types.Schema, advance: Advance
) -> Iterator[pa.RecordBatch]:
    """The rows of a file in batches. Text files are read with the types of `schema`."""
    with _problems(path):
        if reading.format_of(path) is FileFormat.parquet:
            yield from _read_parquet(path, advance)
        else:
            yield from _read_text(path, reading, schema, advance)


def _read_parquet(path: Path, advance: Advance) -> Iterator[pa.RecordBatch]:
    from pyarrow import parquet

    with parquet.ParquetFile(path) as file:
        share = path.stat().st_size / max(1, file.metadata.num_rows)
        for batch in file.iter_batches(BATCH_ROWS):
            yield batch
            advance(int(batch.num_rows * share))


def _read_text(
    path: Path, reading: Reading, schema: types.Schema, advance: Advance
) -> Iterator[pa.RecordBatch]:
    with pa.OSFile(str(path)) as file:
        if reading.format_of(path) is FileFormat.json:
            batches = text_files.open_json(path, schema, file)
        else:
            batches = text_files.open_csv(path, reading, schema, file)
        seen = 0
        for batch in batches:
            yield text_files.with_times(batch, schema)
            advance(file.tell() - seen)
            seen = file.tell()
        advance(path.stat().st_size - seen)


def _inferred(t: pa.DataType) -> types.DataType:
    """Columns without any value are taken as text; wall-clock times as TIMESTAMP."""
    found = types.from_arrow(t)
    if found == types.NULL:
        return types.STRING
    return types.TIMESTAMP if found == types.TIMESTAMP_NTZ else found


@contextmanager
def _problems(path: Path) -> Iterator[None]:
    """Turn what the readers raise into an error that names the file."""
    try:
        yield
    except (pa.ArrowInvalid, pa.ArrowKeyError, OSError) as error:
        raise UserError(
            f"File '{path}' cannot be read: {error}",
            code="BAD_FILE",
            hint="Nothing was added. Check the format, the delimiter, and the table's types.",
        ) from error
