"""What is known of stored relations: rows, different values, ranges; and which columns matter."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import astuple, dataclass, field
from typing import Any

from slackwater.algebra.expr import Column, Expr, columns
from slackwater.algebra.relation import Aggregate, Distinct, Filter, Join, Relation, SetOp, Window
from slackwater.stats.values import Values, origin
from slackwater.tvr.time import split

AGED = 2.0
"""A profile serves until the relation has so many times the rows that it was made of, or that
part of them."""


@dataclass(frozen=True)
class Profile:
    """A stored relation when it was last looked at."""

    rows: int
    columns: Mapping[str, Values] = field(default_factory=dict)

    def serves(self, rows: int) -> bool:
        """Does it still tell something of the relation, which has so many rows now?"""
        return self.rows / AGED <= rows <= self.rows * AGED

    def to_json(self) -> dict[str, Any]:
        """As plain data."""
        found = {name: astuple(values) for name, values in self.columns.items()}
        return {"rows": self.rows, "columns": found}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Profile:
        """From plain data."""
        return cls(data["rows"], {name: Values(*v) for name, v in data["columns"].items()})


@dataclass(frozen=True)
class Profiles:
    """The profiles of relations, by id, whatever the time at which they are scanned."""

    known: Mapping[str, Profile] = field(default_factory=dict)

    def values(self, source: str, column: str) -> Values | None:
        """Of a column; None where nothing is known."""
        id, _ = split(source)
        profile = self.known.get(id)
        return None if profile is None else profile.columns.get(column)

    def selectivity(self, node: Relation) -> float | None:
        """None: no selectivity was measured by itself."""
        return None


def deciding_columns(query: Relation) -> dict[str, set[str]]:
    """By source, the columns whose values decide how many rows a query's operators give: those
    that it joins, groups, partitions and filters by."""
    found: dict[str, set[str]] = {}
    for node in query.walk():
        for below, expr in _deciding(node):
            for part in expr.walk():
                place = origin(below, part) if isinstance(part, Column) else None
                if place is not None:
                    found.setdefault(place[0].source, set()).add(place[1])
    return found


def _deciding(node: Relation) -> Iterator[tuple[Relation, Expr]]:
    """Expressions that decide what an operator gives, with the relation whose row they read."""
    match node:
        case Join():
            both = node if node.how not in ("semi", "anti") else node.replace(how="inner")
            yield both, node.condition
        case Filter():
            yield node.input, node.predicate
        case Aggregate():
            yield from ((node.input, key) for key in node.keys)
        case Window():
            yield from ((node.input, key) for call in node.calls for key in call.partition_by)
        case Distinct() | SetOp():
            yield from ((below, c) for below in node.inputs for c in columns(below.schema))
