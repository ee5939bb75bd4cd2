"""Relations: what is asked, as frozen nodes with a schema each.

Every relation is a multiset of rows. Columns are addressed by position; names are kept for
people and for the final result.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from slackwater.algebra.expr import (
    AggCall,
    Expr,
    SortKey,
    WindowCall,
    columns,
    require_boolean,
)
from slackwater.errors import InternalError
from slackwater.tree import Family, Node, walk_values
from slackwater.types import Field, Schema

JOIN_KINDS = ("inner", "left", "right", "full", "semi", "anti")


@dataclass(frozen=True, eq=False)
class Relation(Node):
    """A multiset of rows of one schema."""

    @classmethod
    def kind(cls) -> Family:
        return Relation

    @cached_property
    def schema(self) -> Schema:
        raise InternalError(f"{type(self).__name__} has no schema")

    @property
    def inputs(self) -> tuple[Relation, ...]:
        """The relations directly below."""
        return self.children  # type: ignore[return-value]

    @cached_property
    def expressions(self) -> tuple[Expr, ...]:
        """The expressions this operator evaluates."""
        return tuple(walk_values(self.values(), Expr))  # type: ignore[arg-type]

    def with_expressions(self, change: Callable[[Any], Any]) -> Any:
        """This operator with `change` applied to each of its expressions."""
        return self.rebuilt(Expr, change) if self.expressions else self

    @property
    def width(self) -> int:
        """How many columns a row has."""
        return len(self.schema)

    def scans(self) -> tuple[Scan, ...]:
        """The distinct scans below."""
        return self._scans

    @cached_property
    def _scans(self) -> tuple[Scan, ...]:
        return tuple(node for node in self.walk() if isinstance(node, Scan))


@dataclass(frozen=True, eq=False)
class Scan(Relation):
    """The content of a table or view of the catalog, or of a named input of a run."""

    source: str  # catalog id of the relation, or the name of an input
    name: str  # what people call it
    fields: Schema

    @cached_property
    def schema(self) -> Schema:
        return self.fields


@dataclass(frozen=True, eq=False)
class Values(Relation):
    """Rows of constant expressions."""

    rows: tuple[tuple[Expr, ...], ...]
    fields: Schema

    @cached_property
    def schema(self) -> Schema:
        return self.fields


@dataclass(frozen=True, eq=False)
class Filter(Relation):
    """The rows for which the predicate is true."""

    input: Relation
    predicate: Expr

    def __post_init__(self) -> None:
        require_boolean(self.predicate, "a filter's predicate")

    @cached_property
    def schema(self) -> Schema:
        return self.input.schema


@dataclass(frozen=True, eq=False)
class Project(Relation):
    """One computed row per input row."""

    input: Relation
    exprs: tuple[Expr, ...]
    names: tuple[str, ...]

    def __post_init__(self) -> None:
        _same_length("Project", self.exprs, self.names)

    @cached_property
    def schema(self) -> Schema:
        return _named(self.exprs, self.names)


@dataclass(frozen=True, eq=False)
class Join(Relation):
    """Pairs of rows that satisfy the condition; see `JOIN_KINDS`.

    The condition reads left columns, then right columns. Semi and anti joins give left columns
    only; anti keeps the left rows for which no right row makes the condition true.
    """

    left: Relation
    right: Relation
    how: str
    condition: Expr

    def __post_init__(self) -> None:
        require_boolean(self.condition, "a join condition")
        if self.how not in JOIN_KINDS:
            raise InternalError(f"join kind {self.how!r} is not known")

    @cached_property
    def schema(self) -> Schema:
        left, right = self.left.schema, self.right.schema
        if self.how in ("semi", "anti"):
            return left
        if self.how in ("right", "full"):
            left = _nullable(left)
        if self.how in ("left", "full"):
            right = _nullable(right)
        return left + right


@dataclass(frozen=True, eq=False)
class Aggregate(Relation):
    """One row per distinct value of the keys (NULLs equal): keys, then aggregates.

    Without keys there is exactly one row, even for an empty input.
    """

    input: Relation
    keys: tuple[Expr, ...]
    aggs: tuple[AggCall, ...]
    names: tuple[str, ...]

    def __post_init__(self) -> None:
        _same_length("Aggregate", self.keys + self.aggs, self.names)

    @cached_property
    def schema(self) -> Schema:
        return _named(self.keys + self.aggs, self.names)


@dataclass(frozen=True, eq=False)
class Union(Relation):
    """UNION ALL: the sum of the inputs, which agree in types."""

    parts: tuple[Relation, ...]

    def __post_init__(self) -> None:
        first = [f.type for f in self.parts[0].schema]
        if any([f.type for f in p.schema] != first for p in self.parts):
            raise InternalError("inputs of a Union differ in types")

    @cached_property
    def schema(self) -> Schema:
        return tuple(
            Field(f[0].name, f[0].type, any(x.nullable for x in f))
            for f in zip(*(p.schema for p in self.parts), strict=True)
        )


@dataclass(frozen=True, eq=False)
class SetOp(Relation):
    """INTERSECT or EXCEPT, of sets or (`all`) of multisets; NULLs are equal."""

    left: Relation
    right: Relation
    how: str  # "intersect" or "except"
    all: bool

    @cached_property
    def schema(self) -> Schema:
        if self.how == "except":
            return self.left.schema
        pairs = zip(self.left.schema, self.right.schema, strict=True)
        return tuple(Field(a.name, a.type, a.nullable and b.nullable) for a, b in pairs)


@dataclass(frozen=True, eq=False)
class Distinct(Relation):
    """Each different row once; NULLs are equal."""

    input: Relation

    @cached_property
    def schema(self) -> Schema:
        return self.input.schema


@dataclass(frozen=True, eq=False)
class Window(Relation):
    """Input rows, each with the values of window functions added."""

    input: Relation
    calls: tuple[WindowCall, ...]
    names: tuple[str, ...]

    def __post_init__(self) -> None:
        _same_length("Window", self.calls, self.names)

    @cached_property
    def schema(self) -> Schema:
        return self.input.schema + _named(self.calls, self.names)


@dataclass(frozen=True, eq=False)
class Sort(Relation):
    """The same multiset, to be delivered in an order; only at the top of a query."""

    input: Relation
    keys: tuple[SortKey, ...]

    @cached_property
    def schema(self) -> Schema:
        return self.input.schema


@dataclass(frozen=True, eq=False)
class TopK(Relation):
    """Rows `offset` to `offset + limit` in the order of the keys (all that follow, if None).

    The keys cover every column, so that the result does not depend on chance.
    """

    input: Relation
    keys: tuple[SortKey, ...]
    limit: int | None
    offset: int = 0

    @cached_property
    def schema(self) -> Schema:
        return self.input.schema


@dataclass(frozen=True, eq=False)
class Expand(Relation):
    """For each input row one row per projection: the heart of GROUPING SETS."""

    input: Relation
    projections: tuple[tuple[Expr, ...], ...]
    names: tuple[str, ...]

    @cached_property
    def schema(self) -> Schema:
        return tuple(
            Field(name, alternatives[0].type, any(e.nullable for e in alternatives))
            for name, alternatives in zip(
                self.names, zip(*self.projections, strict=True), strict=True
            )
        )


@dataclass(frozen=True, eq=False)
class Bag(Relation):
    """What rows with weights (the last column) stand for: each row as often as its weights add
    up to, and not at all where that is not above zero."""

    input: Relation

    @cached_property
    def schema(self) -> Schema:
        return self.input.schema[:-1]


@dataclass(frozen=True, eq=False)
class Generate(Relation):
    """Input rows joined with what a generator (explode, …) makes of each; Spark runs it."""

    input: Relation
    generator: Expr
    outer: bool
    added: Schema

    @cached_property
    def schema(self) -> Schema:
        return self.input.schema + self.added


@dataclass(frozen=True, eq=False)
class Opaque(Relation):
    """What the algebra cannot express: Spark runs `text`, in which `{0}` stands for input 0."""

    text: str
    parts: tuple[Relation, ...]
    fields: Schema
    reason: str

    @cached_property
    def schema(self) -> Schema:
        return self.fields


def under_names(relation: Relation, names: tuple[str, ...]) -> Relation:
    """The same rows under other column names."""
    if names == tuple(f.name for f in relation.schema):
        return relation
    return Project(relation, columns(relation.schema), names)


def _named(exprs: tuple[Expr, ...], names: tuple[str, ...]) -> Schema:
    return tuple(Field(n, e.type, e.nullable) for e, n in zip(exprs, names, strict=True))


def _nullable(schema: Schema) -> Schema:
    return tuple(Field(f.name, f.type, True) for f in schema)


def _same_length(what: str, exprs: tuple[Expr, ...], names: tuple[str, ...]) -> None:
    if len(exprs) != len(names):
        raise InternalError(f"{what} has {len(exprs)} expressions and {len(names)} names")
