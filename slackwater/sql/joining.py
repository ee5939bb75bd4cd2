"""Pieces that the two kinds of subqueries share: the domain, and conditions over joined rows."""

from __future__ import annotations

from slackwater.algebra.expr import (
    Call,
    Cast,
    Column,
    Expr,
    Literal,
    columns,
    conjunction,
    shift,
    transform,
)
from slackwater.algebra.relation import (
    Aggregate,
    Distinct,
    Project,
    Relation,
    Sort,
    Values,
)
from slackwater.sql import build
from slackwater.sql.subquery import (
    Inner,
    Param,
)

_STRICT = frozenset({"+", "-", "*", "/", "%", "neg", "div", "abs", "round"})


def domain_of(relation: Relation, outer: tuple[Expr, ...]) -> Relation:
    """D: the distinct values of what the subquery reads."""
    return Distinct(Project(relation, outer, tuple(f"d{i}" for i in range(len(outer)))))


def same_domain(outer: tuple[Expr, ...], right: Relation, at: int, first: int) -> Expr:
    """The enclosing row's values equal those that a dependent query carries along."""
    keys = columns(right.schema, at)[first:]
    pairs = zip(outer, keys, strict=False)
    return conjunction([build.null_safe_equal(o, k) for o, k in pairs])


def joined_condition(conditions: list[Expr], outer: tuple[Expr, ...], at: int) -> Expr:
    """All of `joined_conditions` at once."""
    return conjunction(joined_conditions(conditions, outer, at))


def joined_conditions(conditions: list[Expr], outer: tuple[Expr, ...], at: int) -> list[Expr]:
    """Conditions over the subquery's row and `Param`s, made conditions over the joined row."""
    return [outer_values(shift(c, at), outer) for c in conditions]


def outer_values(expr: Expr, outer: tuple[Expr, ...]) -> Expr:
    """`Param`s replaced by the enclosing row's values."""
    result: Expr = transform(expr, lambda e: outer[e.index] if isinstance(e, Param) else None)
    return result


def inner_columns(match: Expr, at: int) -> Expr:
    """Columns of the subquery as columns of the joined row."""
    result: Expr = transform(
        match,
        lambda e: Column(e.type, e.nullable, at + e.index) if isinstance(e, Inner) else None,
    )
    return result


def inner_only(expr: Expr) -> Expr | None:
    """The expression over the subquery's row, if it reads nothing else."""
    if any(isinstance(n, Column) for n in expr.walk()) or not reads_inner(expr):
        return None
    return inner_columns(expr, 0)


def reads_inner(expr: Expr) -> bool:
    return any(isinstance(n, Inner) for n in expr.walk())


def unsorted(query: Relation) -> Relation:
    return query.input if isinstance(query, Sort) else query


def has_one_row(query: Relation) -> bool:
    """Is there exactly one row, whatever the data?"""
    if isinstance(query, Project):
        return has_one_row(query.input)
    if isinstance(query, Values):
        return len(query.rows) == 1
    return isinstance(query, Aggregate) and not query.keys


def is_null(expr: Expr) -> bool:
    """Is a constant expression surely NULL?"""
    if isinstance(expr, Literal):
        return expr.value is None
    if isinstance(expr, Cast):
        return is_null(expr.arg)
    return isinstance(expr, Call) and expr.name in _STRICT and any(map(is_null, expr.args))
