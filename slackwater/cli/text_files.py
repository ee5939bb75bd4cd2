"""CSV and JSON lines as streams of Arrow batches.

With a schema, columns have its types; dates and times are read as text first and converted by
`with_times`, since Arrow's readers want them in other forms (JSON dates as a number of days,
CSV times with a zone).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv, json

from slackwater import types
from slackwater.cli.formats import Reading

BLOCK_BYTES = 4 << 20
_TIMES = (types.DATE, types.TIMESTAMP)
_CODECS = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd", ".lz4": "lz4"}
_ZONE = r"(Z|[+-]\d\d(:?\d\d)?)$"


def open_csv(
    path: Path, reading: Reading, schema: types.Schema | None = None, file: Any = None
) -> Any:
    """The file's batches; without a schema, with types as the first block suggests them."""
    names = None if schema is None else _names(path, reading, schema)
    return csv.open_csv(
        _stream(path, file),
        read_options=csv.ReadOptions(
            block_size=BLOCK_BYTES,
            column_names=names,
            skip_rows=1 if names and reading.header else 0,
            autogenerate_column_names=schema is None and not reading.header,
        ),
        parse_options=csv.ParseOptions(
            delimiter=reading.delimiter_of(path), newlines_in_values=True
        ),
        convert_options=csv.ConvertOptions(
            column_types=None if schema is None else _readable(schema),
            null_values=sorted({"", reading.null}),
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        ),
    )


def open_json(path: Path, schema: types.Schema | None = None, file: Any = None) -> Any:
    """The file's batches; a field that the schema does not have is refused."""
    return json.open_json(
        _stream(path, file),
        read_options=json.ReadOptions(block_size=BLOCK_BYTES),
        parse_options=json.ParseOptions(
            explicit_schema=None if schema is None else _readable(schema),
            newlines_in_values=False,
            unexpected_field_behavior="infer" if schema is None else "error",
        ),
    )


def with_times(batch: pa.RecordBatch, schema: types.Schema) -> pa.RecordBatch:
    """The batch with its dates and times converted; a time without a zone is UTC."""
    wanted = {f.name: f.type for f in schema if f.type in _TIMES}
    for i, name in enumerate(batch.schema.names):
        if name in wanted:
            batch = batch.set_column(i, name, _converted(batch.column(i), wanted[name]))
    return batch


def _converted(text: pa.Array, t: types.DataType) -> pa.Array:
    if t == types.TIMESTAMP:
        zoned = pc.match_substring_regex(text, _ZONE)
        dated = pc.match_substring_regex(text, r"^\d{4}-\d\d-\d\d$")
        in_utc = pc.binary_join_element_wise(text, "Z", "")
        midnight = pc.binary_join_element_wise(text, " 00:00:00Z", "")
        text = pc.if_else(dated, midnight, pc.if_else(zoned, text, in_utc))
    return text.cast(types.to_arrow(t))


def _readable(schema: types.Schema) -> pa.Schema:
    """The types that Arrow's readers are asked for."""
    return types.to_arrow_schema(
        tuple(types.Field(f.name, types.STRING if f.type in _TIMES else f.type) for f in schema)
    )


def _names(path: Path, reading: Reading, schema: types.Schema) -> list[str]:
    """The names of the file's columns, spelled as the table spells them."""
    if not reading.header:
        return [f.name for f in schema]
    spelled = {f.name.lower(): f.name for f in schema}
    found = open_csv(path, reading).schema.names
    return [spelled.get(name.strip().lower(), name) for name in found]


def _stream(path: Path, file: Any) -> Any:
    """The file's bytes, decompressed as its name says."""
    source = pa.OSFile(str(path)) if file is None else file
    codec = _CODECS.get(path.suffix.lower())
    return pa.CompressedInputStream(source, codec) if codec else source
