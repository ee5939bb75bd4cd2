"""Random tables and random batches of changes, from a seed.

Domains are small so that joins hit, groups collide and rows repeat. Doubles are dyadic, so that
sums are exact in any order and may be grouped and compared. A *wild* maker adds the limits of
each type, where expressions overflow.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa

from slackwater.types import Field, parse_type, quote_text, to_arrow_schema

Row = tuple[Any, ...]
Content = dict[str, Counter[Row]]
"""What the tables hold: each row with how often it is there."""

NAN = float("nan")  # one object, so that it equals itself as a key
INF = float("inf")
_DOUBLES = {"nan": "sqrt(-1D)", "inf": "1e308D * 10", "-inf": "-1e308D * 10"}
"""Values without a literal, as both engines compute them."""
_DAYS = [date(2024, 1, 31), date(2024, 2, 29), date(2024, 3, 1), date(1969, 12, 31)]
_TIMES = [datetime(2024, 2, 29, h, m, 7, tzinfo=UTC) for h, m in ((0, 0), (9, 30), (23, 59))]
_NAMES = ["a", "b", "B", "ab", "a ", "", "ä", "ß日"]
_PRICES = [Decimal(p) for p in ("0.00", "1.50", "-1.50", "2.25", "3.00")]

DOMAINS: dict[str, list[Any]] = {
    "INT": [-1, 0, 1, 2, 3, 4],
    "BIGINT": [0, 1, 2, 3, 5],
    "DECIMAL(6,2)": _PRICES,
    "DECIMAL(38,2)": _PRICES,
    "STRING": _NAMES,
    "DATE": _DAYS,
    "TIMESTAMP": [*_TIMES, datetime(1970, 1, 1, tzinfo=UTC)],
    "DOUBLE": [0.0, 0.5, -1.25, 2.0, 3.0, 0.5, 2.0],
    "BOOLEAN": [True, False],
}
WILD: dict[str, list[Any]] = {
    "INT": [2**31 - 1, -(2**31)],
    "BIGINT": [2**63 - 1, -(2**63)],
    "DECIMAL(6,2)": [Decimal("9999.99"), Decimal("-9999.99")],
    "DECIMAL(38,2)": [Decimal("9" * 36 + ".99"), Decimal("-" + "9" * 36 + ".99")],
    "STRING": ["\U0001f600", "x" * 60],
    "DATE": [date(1, 1, 1), date(9998, 12, 31)],
    "TIMESTAMP": [datetime(1, 1, 1, tzinfo=UTC), datetime(9998, 12, 31, 23, 59, tzinfo=UTC)],
    "DOUBLE": [NAN, NAN, INF, -INF, -0.0],
    "BOOLEAN": [],
}
KINDS = {
    "INT": "number",
    "BIGINT": "number",
    "DECIMAL(6,2)": "price",
    "DECIMAL(38,2)": "price",
    "STRING": "text",
    "DATE": "day",
    "TIMESTAMP": "time",
    "DOUBLE": "real",
    "BOOLEAN": "flag",
}
"""What a column of a type can be used for."""


@dataclass(frozen=True)
class Column:
    """A column of a table."""

    name: str
    type: str
    nullable: bool

    @property
    def kind(self) -> str:
        """What it can be used for."""
        return KINDS[self.type]


@dataclass(frozen=True)
class Table:
    """A table of a stream."""

    name: str
    columns: tuple[Column, ...]

    @property
    def ddl(self) -> str:
        """The statement that creates it."""
        parts = [f"{c.name} {c.type}{'' if c.nullable else ' NOT NULL'}" for c in self.columns]
        return f"CREATE TABLE {self.name} ({', '.join(parts)})"

    def arrow(self, rows: tuple[Row, ...], weights: tuple[int, ...] | None = None) -> pa.Table:
        """Rows as Arrow, with their weights in a last column `w` if given."""
        schema = to_arrow_schema(tuple(Field(c.name, parse_type(c.type)) for c in self.columns))
        columns = [pa.array([row[i] for row in rows], field.type) for i, field in enumerate(schema)]
        made = pa.Table.from_arrays(columns, schema=schema)
        return made if weights is None else made.append_column("w", pa.array(weights, pa.int64()))


@dataclass(frozen=True)
class Change:
    """One change of one table: rows handed in (with weights or without), or a statement."""

    table: str
    rows: tuple[Row, ...] = ()
    weights: tuple[int, ...] | None = None
    sql: str = ""


Batch = tuple[Change, ...]


def literal(value: Any, type: str) -> str:
    """A value in SQL."""
    if value is None:
        return "NULL"
    match KINDS[type]:
        case "text":
            return quote_text(value)
        case "day":
            return f"DATE'{value.isoformat()}'"
        case "time":
            return f"TIMESTAMP'{value.strftime('%Y').zfill(4)}{value.strftime('-%m-%d %H:%M:%S')}'"
        case "flag":
            return str(value).upper()
        case "real":
            return _DOUBLES.get(str(value), f"{value}D")
    return f"CAST('{value}' AS {type})"


class ChangeMaker:
    """Makes tables and batches, and knows what the tables hold after each."""

    def __init__(self, rng: random.Random, wild: bool) -> None:
        self.rng = rng
        self.wild = wild
        self.tables = tuple(self._table(f"t{i}") for i in range(rng.randint(2, 5)))
        self.content: Content = {t.name: Counter() for t in self.tables}

    def _table(self, name: str) -> Table:
        """At least one number, so that every table can be joined with every other."""
        types = ["INT", *self.rng.choices(list(DOMAINS), k=self.rng.randint(1, 4))]
        return Table(
            name,
            tuple(
                Column(f"{KINDS[t]}_{i}", t, self.rng.random() < 0.75) for i, t in enumerate(types)
            ),
        )

    def load(self) -> Batch:
        """The first rows; some tables stay empty."""
        made = (self._append(t, self.rng.choice([0, 3, 6, 9, 12])) for t in self.tables)
        return tuple(change for change in made if change.rows)

    def batch(self) -> Batch:
        """Changes of some tables; none at all now and then."""
        count = self.rng.choice([0, 1, 2, 2, 3, 3])
        return tuple(c for _ in range(count) for c in self._change(self.rng.choice(self.tables)))

    def _change(self, table: Table) -> Iterator[Change]:
        kinds = ["append", "insert", "apply", "apply", "apply", "delete", "update", "update"]
        if self.rng.random() < 0.06:
            kinds = ["truncate", "flood"]
        match self.rng.choice(kinds):
            case "append":
                yield self._append(table, self.rng.randint(1, 4))
            case "insert":
                yield self._insert(table)
            case "apply":
                yield self._apply(table)
            case "delete":
                yield self._delete(table)
            case "update":
                yield self._update(table)
            case "truncate":
                self.content[table.name].clear()
                yield Change(table.name, sql=f"TRUNCATE TABLE {table.name}")
            case "flood":  # more rows than the table has
                yield self._append(table, self.content[table.name].total() + 3)

    def _value(self, column: Column) -> Any:
        if column.nullable and self.rng.random() < 0.15:
            return None
        if self.wild and WILD[column.type] and self.rng.random() < 0.08:
            return self.rng.choice(WILD[column.type])
        return self.rng.choice(DOMAINS[column.type])

    def _row(self, table: Table) -> Row:
        """A new row, or one that is there already."""
        there = self.content[table.name]
        if there and self.rng.random() < 0.2:
            return self.rng.choice(list(there))
        return tuple(self._value(c) for c in table.columns)

    def _append(self, table: Table, count: int) -> Change:
        rows = tuple(self._row(table) for _ in range(count))
        self.content[table.name].update(rows)
        return Change(table.name, rows)

    def _insert(self, table: Table) -> Change:
        rows = [self._row(table) for _ in range(self.rng.randint(1, 3))]
        self.content[table.name].update(rows)
        told = (
            ", ".join(literal(v, c.type) for v, c in zip(row, table.columns, strict=True))
            for row in rows
        )
        values = ", ".join(f"({row})" for row in told)
        return Change(table.name, sql=f"INSERT INTO {table.name} VALUES {values}")

    def _apply(self, table: Table) -> Change:
        """Rows with weights: deletions of what is there, insertions, and pairs that cancel."""
        there = self.content[table.name]
        parts: list[tuple[Row, int]] = []
        for row in self.rng.sample(list(there), min(len(there), self.rng.randint(0, 3))):
            parts.append((row, -self.rng.randint(1, there[row])))
            if self.rng.random() < 0.3:  # deleted and inserted again
                parts.append((row, self.rng.randint(1, 2)))
        for _ in range(self.rng.randint(0, 3)):
            parts.append((self._row(table), self.rng.choice([1, 1, 2, 3])))
        if self.rng.random() < 0.2:
            row = self._row(table)
            parts += [(row, 1), (row, -1)]
        self.rng.shuffle(parts)
        for row, weight in parts:
            there[row] += weight
        self.content[table.name] = +there
        return Change(table.name, tuple(r for r, _ in parts), tuple(w for _, w in parts))

    def _delete(self, table: Table) -> Change:
        place, chosen, where = self._choice(table)
        there = self.content[table.name]
        for row in list(there):
            if _same(row[place], chosen):
                del there[row]
        return Change(table.name, sql=f"DELETE FROM {table.name} WHERE {where}")

    def _update(self, table: Table) -> Change:
        """One column of some rows gets a value; now and then the one it has."""
        place, chosen, where = self._choice(table)
        target = self.rng.randrange(len(table.columns))
        column = table.columns[target]
        told = f"UPDATE {table.name} SET {column.name} = "
        if self.rng.random() < 0.15:
            return Change(table.name, sql=f"{told}{column.name} WHERE {where}")
        value = self._value(column)
        changed: Counter[Row] = Counter()
        for row, count in self.content[table.name].items():
            new = (*row[:target], value, *row[target + 1 :]) if _same(row[place], chosen) else row
            changed[new] += count
        self.content[table.name] = changed
        return Change(table.name, sql=f"{told}{literal(value, column.type)} WHERE {where}")

    def _choice(self, table: Table) -> tuple[int, Any, str]:
        """A column, a value to look for in it, and the condition."""
        place = self.rng.randrange(len(table.columns))
        column = table.columns[place]
        found = list(self.content[table.name])
        value = self.rng.choice(found)[place] if found else self._value(column)
        if value is None:
            return place, None, f"{column.name} IS NULL"
        return place, value, f"{column.name} <=> {literal(value, column.type)}"


def _same(a: Any, b: Any) -> bool:
    return a is b or bool(a == b)
