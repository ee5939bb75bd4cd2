"""Small constructors that binding and decorrelation share."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from slackwater.algebra.expr import (
    TRUE,
    AggCall,
    Call,
    Column,
    Expr,
    Literal,
    columns,
)
from slackwater.algebra.relation import Project, Relation
from slackwater.types import BIGINT, BOOLEAN, DataType, Field


def null_safe_equal(left: Expr, right: Expr) -> Expr:
    """left <=> right."""
    return Call(BOOLEAN, False, "<=>", (left, right))


def is_null(arg: Expr) -> Expr:
    """arg IS NULL."""
    return Call(BOOLEAN, False, "is_null", (arg,))


def is_not_null(arg: Expr) -> Expr:
    """arg IS NOT NULL."""
    return Call(BOOLEAN, False, "is_not_null", (arg,))


def negation(arg: Expr) -> Expr:
    """NOT arg."""
    return Call(BOOLEAN, arg.nullable, "not", (arg,))


def disjunction(left: Expr, right: Expr) -> Expr:
    """left OR right."""
    return Call(BOOLEAN, left.nullable or right.nullable, "or", (left, right))


def case(*parts: Expr) -> Expr:
    """CASE WHEN parts[0] THEN parts[1] … ELSE parts[-1] END; the values agree in type."""
    values = (*parts[1:-1:2], parts[-1])
    return Call(values[0].type, any(v.nullable for v in values), "case", parts)


def null(type_: DataType) -> Literal:
    """NULL of a type."""
    return Literal(type_, True, None)


def count_star() -> AggCall:
    """count(*)."""
    return AggCall(BIGINT, False, "count", ())


def count_if(predicate: Expr) -> AggCall:
    """How many rows satisfy a predicate."""
    return AggCall(BIGINT, False, "count", (), where=predicate)


def greater_than_zero(count: Expr) -> Expr:
    """count > 0."""
    return Call(BOOLEAN, count.nullable, ">", (count, Literal(BIGINT, False, 0)))


def pick(relation: Relation, indexes: Sequence[int]) -> Relation:
    """The relation with only these columns, in this order."""
    if list(indexes) == list(range(relation.width)):
        return relation
    row = columns(relation.schema)
    names = tuple(relation.schema[i].name for i in indexes)
    return Project(relation, tuple(row[i] for i in indexes), names)


def first_columns(relation: Relation, count: int) -> Relation:
    """The relation without what was added behind its first columns."""
    return pick(relation, range(count))


def with_columns(relation: Relation, added: Sequence[Expr], name: str = "k") -> Relation:
    """The relation with computed columns behind its own."""
    names = tuple(f.name for f in relation.schema)
    extra = tuple(f"{name}{i}" for i in range(len(added)))
    return Project(relation, columns(relation.schema) + tuple(added), names + extra)


def row_of(fields: Iterable[Field], start: int = 0) -> tuple[Column, ...]:
    """References to the columns of a schema that begins at `start`."""
    return columns(tuple(fields), start)


def marker(relation: Relation) -> Relation:
    """The relation with a TRUE column behind, which an outer join turns to NULL."""
    return with_columns(relation, [TRUE], "marker")
