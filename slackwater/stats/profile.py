"""What is known of stored relations: rows, different values, ranges, how many rows filters keep;
and which columns and filters matter."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import astuple, dataclass, field, fields
from typing import Any

from slackwater.algebra.explain import text
from slackwater.algebra.expr import Column, Expr, columns, conjuncts, used_columns
from slackwater.algebra.relation import (
    Aggregate,
    Bag,
    Distinct,
    Filter,
    Join,
    Project,
    Relation,
    Scan,
    SetOp,
    Window,
)
from slackwater.stats.sound import sound
from slackwater.stats.values import Values, aggregated, origin, uncast
from slackwater.tvr.time import split
from slackwater.types import WEIGHT

AGED = 2.0
"""A profile serves until the relation has so many times the rows that it was made of, or that
part of them."""


@dataclass(frozen=True)
class Profile:
    """A stored relation when it was last looked at."""

    rows: int
    columns: Mapping[str, Values] = field(default_factory=dict)
    shares: Mapping[str, float] = field(default_factory=dict)
    """Of the rows, what filters keep, by what they ask."""

    def serves(self, rows: int) -> bool:
        """Does it still tell something of the relation, which has so many rows now?"""
        return self.rows / AGED <= rows <= self.rows * AGED

    def to_json(self) -> dict[str, Any]:
        """As plain data."""
        found = {name: astuple(values) for name, values in self.columns.items()}
        return {"rows": self.rows, "columns": found, "shares": dict(self.shares)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Profile:
        """From plain data."""
        columns = data.get("columns") or {}
        values = {n: Values(*v) for n, v in columns.items() if v and len(v) <= len(fields(Values))}
        return cls(int(sound(data.get("rows"), 0.0)), values, data.get("shares") or {})


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
        """Of a filter over a relation's rows; None where it was not measured."""
        found = asked(node)
        profile = None if found is None else self.known.get(split(found.source)[0])
        if found is None or profile is None or not profile.shares:
            return None
        return profile.shares.get(found.text)


@dataclass(frozen=True, slots=True)
class Asked:
    """What a filter asks of the rows of one stored relation."""

    source: str
    predicate: Expr
    names: tuple[str, ...]
    """Of the stored columns that the predicate's columns are; none for those it does not read."""

    @property
    def text(self) -> str:
        """The same for filters that ask the same."""
        return " and ".join(sorted(text(p, list(self.names)) for p in conjuncts(self.predicate)))


def asked(node: Relation) -> Asked | None:
    """What a filter asks; None where its input is not simply a stored relation's rows."""
    if not isinstance(node, Filter):
        return None
    scan = node.input
    while isinstance(scan, Project | Bag):
        scan = scan.input
    if not isinstance(scan, Scan):
        return None
    names = [""] * node.input.width
    for i in used_columns(node.predicate):
        stored = node.input.schema[i]
        place = origin(node.input, Column(stored.type, stored.nullable, i))
        if place is None or place[1] == WEIGHT:
            return None
        names[i] = place[1]
    return Asked(scan.source, node.predicate, tuple(names))


def asked_of(query: Relation) -> dict[str, dict[str, Asked]]:
    """By source, what a query's filters ask of its rows."""
    found: dict[str, dict[str, Asked]] = {}
    for node in query.walk():
        if (own := asked(node)) is not None:
            found.setdefault(own.source, {})[own.text] = own
    return found


def deciding_columns(query: Relation) -> dict[str, set[str]]:
    """By source, the columns whose values decide how many rows a query's operators give: those
    that it joins, groups, partitions and filters by."""
    found: dict[str, set[str]] = {}
    for node in query.walk():
        for below, expr in _deciding(node):
            for part in expr.walk():
                place = _decided_by(below, part) if isinstance(part, Column) else None
                if place is not None:
                    found.setdefault(place[0].source, set()).add(place[1])
    return found


def _decided_by(below: Relation, column: Column) -> tuple[Scan, str] | None:
    """The stored column that a column is, or of whose values it is a sum or the like."""
    groups = aggregated(below, column)
    if groups is None or not groups[1].args:
        return origin(below, column)
    return origin(groups[0].input, uncast(groups[1].args[0]))


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
