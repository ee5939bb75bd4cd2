"""The one comparer: are two relations equal as multisets, and if not, where?

Exact columns are compared exactly (NULL equals NULL), FLOAT and DOUBLE at relative 1e-9, rows
paired on their exact columns. NaN equals NaN, infinities equal themselves, and 0.0 equals -0.0.
Floats inside arrays, maps and structs are compared in the same way, and the order of a map's
entries means nothing. Names and types of the columns must agree; nullability need not.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from slackwater.engine.pairing import Floats, Ints, Side, unpaired
from slackwater.errors import UserError
from slackwater.types import from_arrow

_WIDTH = 32


@dataclass(frozen=True)
class Difference:
    """What compare found. `missing` and `unexpected` hold the first of the differing rows."""

    equal: bool
    rows_actual: int
    rows_expected: int
    columns: tuple[str, ...] = ()
    schema: tuple[str, ...] = ()
    """How the columns themselves differ; rows are compared only when they do not."""
    missing: tuple[tuple[Any, ...], ...] = ()
    """Rows that are expected and not there."""
    unexpected: tuple[tuple[Any, ...], ...] = ()
    """Rows that are there and not expected."""
    rows_missing: int = 0
    rows_unexpected: int = 0

    def __bool__(self) -> bool:
        """True if there is a difference."""
        return not self.equal

    def __str__(self) -> str:
        rows = f"{self.rows_actual:,} rows, {self.rows_expected:,} expected"
        if self.equal:
            return f"equal ({self.rows_actual:,} rows)"
        if self.schema:
            return "\n".join([f"different columns ({rows})", *(f"  {s}" for s in self.schema)])
        head = f"different: {rows}; {self.rows_missing:,} missing (-)"
        return "\n".join([f"{head}, {self.rows_unexpected:,} unexpected (+)", *self._lines()])

    def _lines(self) -> Iterator[str]:
        body = [("-", *map(_shown, row)) for row in self.missing]
        body += [("+", *map(_shown, row)) for row in self.unexpected]
        table = [("", *map(_shown, self.columns)), *body]
        widths = [max(len(row[i]) for row in table) for i in range(len(table[0]))]
        for row in table:
            cells = (c.ljust(w) for c, w in zip(row, widths, strict=True))
            yield ("  " + "  ".join(cells)).rstrip()
        hidden = self.rows_missing + self.rows_unexpected - len(body)
        if hidden:
            yield f"  … and {hidden:,} more"


def compare(actual: pa.Table, expected: pa.Table, most: int = 20) -> Difference:
    """How `actual` differs from `expected`; at most `most` rows of each kind are kept."""
    names = tuple(expected.column_names)
    counts = (actual.num_rows, expected.num_rows)
    if schema := tuple(_schema_differences(actual.schema, expected.schema)):
        return Difference(False, *counts, names, schema)
    unexpected, missing = unpaired(*_sides(actual, expected))
    return Difference(
        equal=not len(missing) and not len(unexpected),
        rows_actual=counts[0],
        rows_expected=counts[1],
        columns=names,
        missing=_rows(expected, missing[:most]),
        unexpected=_rows(actual, unexpected[:most]),
        rows_missing=len(missing),
        rows_unexpected=len(unexpected),
    )


def _schema_differences(actual: pa.Schema, expected: pa.Schema) -> Iterator[str]:
    if actual.names != expected.names:
        yield f"columns are ({', '.join(actual.names)}), expected ({', '.join(expected.names)})"
        return
    for a, e in zip(actual, expected, strict=True):
        found, wanted = _type_name(a.type), _type_name(e.type)
        if found != wanted:
            yield f"column '{a.name}' is {found}, expected {wanted}"


def _type_name(t: pa.DataType) -> str:
    """The Spark type, without nullability; Arrow's own name where Spark has none."""
    try:
        return from_arrow(t).sql.replace(" NOT NULL", "")
    except UserError:
        return str(t)


def _rows(table: pa.Table, indexes: Ints) -> tuple[tuple[Any, ...], ...]:
    taken = [column.take(pa.array(indexes)).to_pylist() for column in table.columns]
    return tuple(zip(*taken, strict=True))


def _shown(value: Any) -> str:
    text = "NULL" if value is None else str(value).replace("\n", "\\n")
    return text if len(text) <= _WIDTH else text[: _WIDTH - 1] + "…"


def _sides(actual: pa.Table, expected: pa.Table) -> tuple[Side, Side]:
    """Both tables as exact codes and finite floats, coded together so that codes agree."""
    cut, total = actual.num_rows, actual.num_rows + expected.num_rows
    keys = np.zeros(total, np.int64)
    floats: list[Floats] = []
    for a, e in zip(actual.columns, expected.columns, strict=True):
        codes, found = _coded(_joined(a, e))
        keys = _combined(keys, codes)
        floats += found
    matrix = np.column_stack(floats) if floats else np.empty((total, 0))
    return Side(keys[:cut], matrix[:cut]), Side(keys[cut:], matrix[cut:])


def _joined(a: pa.ChunkedArray, b: pa.ChunkedArray) -> pa.Array:
    """Both columns one after the other, in one array of one type."""
    common = _wide(b.type)
    chunks = [chunk.cast(common) for column in (a, b) for chunk in column.chunks]
    return pa.concat_arrays(chunks) if chunks else pa.array([], common)


def _wide(t: pa.DataType) -> pa.DataType:
    """A type with 64-bit offsets and no dictionary, so that one array holds any column."""
    if pa.types.is_dictionary(t):
        return _wide(t.value_type)
    if pa.types.is_string(t) or pa.types.is_string_view(t):
        return pa.large_string()
    if pa.types.is_binary(t) or pa.types.is_binary_view(t):
        return pa.large_binary()
    return t


def _coded(column: pa.Array) -> tuple[Ints, list[Floats]]:
    """A code per row for what must agree exactly, and the float columns beside it."""
    if pa.types.is_floating(column.type):
        return _coded_floats(column)
    if pa.types.is_nested(column.type):
        return _coded_nested(column)
    if pa.types.is_null(column.type):
        return np.zeros(len(column), np.int64), []
    indices = pc.fill_null(column.dictionary_encode().indices, -1)
    return indices.to_numpy(zero_copy_only=False).astype(np.int64), []


def _coded_floats(column: pa.Array) -> tuple[Ints, list[Floats]]:
    """NULL, NaN and the infinities are exact; they leave a zero among the finite values."""
    values = column.cast(pa.float64()).to_numpy(zero_copy_only=False)
    kinds = np.select(
        [column.is_null().to_numpy(zero_copy_only=False), np.isnan(values), np.isinf(values)],
        [1, 2, np.where(values > 0, 3, 4)],
        0,
    )
    return kinds.astype(np.int64), [np.where(kinds == 0, values, 0.0)]


def _coded_nested(column: pa.Array) -> tuple[Ints, list[Floats]]:
    """A value's shape without its finite floats is exact; rows of one shape hold the same
    number of them, so they become float columns, padded with zeros."""
    found: list[list[float]] = []
    codes: dict[Any, int] = {}
    keys = np.empty(len(column), np.int64)
    for i, value in enumerate(column.to_pylist()):
        floats: list[float] = []
        keys[i] = codes.setdefault(_shape(value, column.type, floats), len(codes))
        found.append(floats)
    matrix = np.zeros((len(column), max(map(len, found), default=0)))
    for i, floats in enumerate(found):
        matrix[i, : len(floats)] = floats
    return keys, list(matrix.T)


def _shape(value: Any, t: pa.DataType, floats: list[float]) -> Any:
    """The value as nested tuples; finite floats move to `floats` and leave a mark."""
    if value is None:
        return None
    if pa.types.is_floating(t):
        if not np.isfinite(value):
            return str(value)
        floats.append(value)
        return float
    if pa.types.is_map(t):
        pairs = sorted(value, key=_map_key)
        kinds = (t.key_type, t.item_type)
        return tuple(tuple(map(_shape, pair, kinds, (floats, floats))) for pair in pairs)
    if pa.types.is_struct(t):
        return tuple(_shape(value[f.name], f.type, floats) for f in t)
    if pa.types.is_nested(t):
        return tuple(_shape(item, t.value_type, floats) for item in value)
    return value


def _map_key(pair: tuple[Any, Any]) -> Any:
    """Numbers in their own order, so that nearly equal keys stay in place; others by text."""
    return pair[0] if isinstance(pair[0], int | float) else repr(pair[0])


def _combined(keys: Ints, codes: Ints) -> Ints:
    """One dense code for a pair of codes; never more codes than rows, so no overflow."""
    codes = codes - codes.min(initial=0)
    width = int(codes.max(initial=0)) + 1
    if width == 1:
        return keys
    _, dense = np.unique(keys * width + codes, return_inverse=True)
    return np.asarray(dense, np.int64)
