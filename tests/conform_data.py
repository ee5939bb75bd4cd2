"""Small tables full of what goes wrong: NULLs, duplicates, NaN, blanks, empty groups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa

from slackwater.types import Field, Schema, parse_type, schema_to_json, to_arrow_schema

NAN, INF = float("nan"), float("inf")


@dataclass(frozen=True)
class Given:
    """A table: its schema and its rows."""

    schema: Schema
    arrow: pa.Table

    @property
    def schema_json(self) -> dict[str, Any]:
        """The schema as Spark reads it."""
        return schema_to_json(self.schema)


def _table(columns: str, rows: Sequence[tuple[Any, ...]]) -> Given:
    """`columns` has a line per column: name, type, and NOT NULL where it holds."""
    fields = []
    for line in columns.strip().splitlines():
        name, kind = line.split(None, 1)
        required = kind.endswith(" NOT NULL")
        fields.append(Field(name, parse_type(kind.removesuffix(" NOT NULL")), not required))
    schema = to_arrow_schema(tuple(fields))
    arrays = [pa.array([row[i] for row in rows], field.type) for i, field in enumerate(schema)]
    return Given(tuple(fields), pa.Table.from_arrays(arrays, schema=schema))


def _at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


D = Decimal
T = _table(
    """
    id INT NOT NULL
    k INT
    g STRING
    n BIGINT
    x DOUBLE
    p DECIMAL(7,2)
    d DATE
    ts TIMESTAMP
    b BOOLEAN
    """,
    [
        (1, 1, "a", 10, 1.5, D("10.00"), date(2024, 1, 31), _at("2024-01-31 10:00:00"), True),
        (2, 1, "a", 20, -0.0, D("20.50"), date(2024, 2, 29), _at("2024-02-29 23:59:59"), False),
        (3, 2, "b", None, NAN, D("-3.25"), date(2023, 12, 31), _at("2023-12-31 00:00:00"), None),
        (4, 2, "b", 10, INF, None, None, None, True),
        (5, None, "c", 40, 2.0, D("99999.99"), date(1999, 6, 15), _at("1999-06-15 12:30:45"), None),
        (6, None, None, 40, None, D("0.01"), date(2024, 1, 31), _at("2024-01-31 10:00:00"), False),
        (7, 3, " a ", -5, 0.0, D("10.00"), date(2024, 3, 1), _at("2024-03-01 00:00:01"), True),
        (8, 3, "Zürich", None, -INF, D("0.00"), date(2024, 3, 1), None, None),
        (8, 3, "Zürich", None, -INF, D("0.00"), date(2024, 3, 1), None, None),
        (9, 7, "", 0, NAN, None, None, _at("2024-03-01 00:00:01"), False),
    ],
)
U = _table(
    """
    k INT
    id INT NOT NULL
    s STRING NOT NULL
    y DOUBLE
    w DECIMAL(5,1)
    d DATE
    """,
    [
        (1, 1, "a", 0.5, D("1.5"), date(2024, 1, 31)),
        (1, 20, "b", 1.5, D("2.5"), None),
        (2, 3, "b", NAN, None, date(2023, 12, 31)),
        (None, 4, "é", -0.0, D("10.0"), date(2024, 3, 1)),
        (None, 5, "a", None, D("-1.0"), None),
        (4, 50, "a b", 2.0, D("1.5"), date(2020, 2, 29)),
        (4, 50, "a b", 2.0, D("1.5"), date(2020, 2, 29)),
        (5, 7, "c", INF, D("0.0"), None),
    ],
)
V = _table(
    """
    k INT NOT NULL
    s STRING
    m BIGINT NOT NULL
    """,
    [(1, "a", 100), (2, None, 200), (3, "b", 300), (3, "c", 300), (9, "z", 0)],
)
E = _table("k INT\ns STRING NOT NULL\nz DECIMAL(9,3)", [])
N = _table(
    """
    id INT NOT NULL
    arr ARRAY<INT>
    st STRUCT<a: INT, b: STRING>
    m MAP<STRING, INT>
    docs ARRAY<STRUCT<a: INT, b: STRING>>
    """,
    [
        (1, [1, 2, None], {"a": 1, "b": "x"}, [("p", 1), ("q", 2)], [{"a": 1, "b": "x"}]),
        (2, [], {"a": None, "b": "y"}, [], []),
        (3, None, None, None, None),
        (4, [5, 3, 5], {"a": 7, "b": None}, [("q", None)], [{"a": 2, "b": "y"}, None]),
    ],
)

TABLES = {"t": T, "u": U, "v": V, "e": E, "nest": N}
