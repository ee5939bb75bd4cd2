"""Data that users hand in: Arrow, pandas, Spark DataFrames, Python rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from slackwater.engine.sources import Given
from slackwater.errors import UserError
from slackwater.types import Field, Schema, from_arrow, schema_from_json, to_arrow

OPERATIONS = {
    "i": 1,
    "insert": 1,
    "+": 1,
    "+i": 1,
    "update_postimage": 1,
    "+u": 1,
    "d": -1,
    "delete": -1,
    "-": -1,
    "-d": -1,
    "update_preimage": -1,
    "-u": -1,
}
"""What an operation column may say, in any case; an update is its old row and its new row."""


def incoming(data: Any) -> Given:
    """The data as an input of a run."""
    if _is_spark(data):
        schema = schema_from_json(data.schema.jsonValue())
        return Given(data, schema, 0)
    try:
        table = _known_types(_arrow(data))
    except (pa.ArrowException, ValueError, TypeError, OverflowError) as error:
        raise UserError(
            f"The data cannot be taken as it is: {error}",
            code="BAD_DATA",
            hint="Give each column a name of its own and values of one type that SQL has.",
        ) from error
    return Given(table, _schema(table), table.nbytes)


def _is_spark(data: Any) -> bool:
    return type(data).__module__.startswith("pyspark.") and hasattr(data, "schema")


def _arrow(data: Any) -> pa.Table:
    if isinstance(data, pa.Table):
        return data
    if isinstance(data, pa.RecordBatch):
        return pa.Table.from_batches([data])
    if isinstance(data, pa.RecordBatchReader):
        return data.read_all()
    if type(data).__module__.startswith("pandas."):
        return pa.Table.from_pandas(data, preserve_index=False)
    if hasattr(data, "__arrow_c_stream__"):
        return pa.table(data)
    if isinstance(data, list) and all(isinstance(r, Mapping) for r in data):
        return _from_rows(data)
    if isinstance(data, list) and all(isinstance(r, pa.RecordBatch) for r in data):
        return pa.Table.from_batches(data)
    raise UserError(
        f"Rows of type {type(data).__name__} are not understood.",
        code="BAD_DATA",
        hint="Give an Arrow table, a pandas or Spark DataFrame, or a list of dictionaries.",
    )


def _from_rows(rows: list[Any]) -> pa.Table:
    names = list(dict.fromkeys(k for r in rows for k in r))
    return pa.table({n: [r.get(n) for r in rows] for n in names})


def _known_types(table: pa.Table) -> pa.Table:
    """The table in types that both engines know (no dictionaries, unsigned or large types)."""
    fields = []
    for field in table.schema:
        wanted = to_arrow(from_arrow(field.type))
        fields.append(pa.field(field.name, wanted, True))
    return table.cast(pa.schema(fields))


def _schema(table: pa.Table) -> Schema:
    return tuple(
        Field(f.name, from_arrow(f.type), bool(table.column(i).null_count))
        for i, f in enumerate(table.schema)
    )


def weighted(given: Given, op_column: str | None, weight_column: str | None) -> Given:
    """The data with its operations or weights as a BIGINT column, which comes last."""
    if (op_column is None) == (weight_column is None):
        raise UserError(
            "apply() needs either an op_column or a weight_column.",
            code="BAD_OPTION",
            hint="An op column says insert or delete; a weight column gives +n or -n.",
        )
    name = op_column or weight_column or ""
    real = next((f.name for f in given.schema if f.name.lower() == name.lower()), None)
    if real is None:
        raise UserError(
            f"The batch has no column '{name}'.",
            code="UNKNOWN_COLUMN",
            hint=f"Existing: {', '.join(f.name for f in given.schema)}.",
        )
    if not isinstance(given.data, pa.Table):
        raise UserError(
            "apply() takes data that is on the driver.",
            code="BAD_DATA",
            hint="Collect the change batch with .toArrow(), or use MERGE.",
        )
    column = given.data.column(real)
    weights = _from_operations(column) if op_column else _from_weights(column, name)
    rows = given.data.drop_columns([real])
    table = rows.append_column(pa.field(real, pa.int64()), weights)
    return replace(given, data=table, schema=_schema(table))


def _from_operations(column: pa.ChunkedArray) -> pa.Array:
    found = []
    for value in column.to_pylist():
        weight = OPERATIONS.get(str(value).strip().lower())
        if weight is None:
            raise UserError(
                f"Operation {value!r} is not known.",
                code="BAD_DATA",
                hint="Use insert, delete, update_preimage or update_postimage.",
            )
        found.append(weight)
    return pa.array(found, pa.int64())


def _from_weights(column: pa.ChunkedArray, name: str) -> pa.ChunkedArray:
    if not pa.types.is_integer(column.type) or column.null_count:
        raise UserError(
            f"Weight column '{name}' must hold whole numbers, none of them NULL.",
            code="BAD_DATA",
        )
    return pc.cast(column, pa.int64())
