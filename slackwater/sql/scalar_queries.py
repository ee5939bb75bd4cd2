"""Subqueries used as values become columns of a join."""

from __future__ import annotations

from slackwater.algebra.expr import (
    TRUE,
    AggCall,
    Call,
    Column,
    Expr,
    columns,
    conjunction,
)
from slackwater.algebra.relation import (
    Aggregate,
    Join,
    Relation,
)
from slackwater.sql import build
from slackwater.sql.depend import depend
from slackwater.sql.joining import (
    domain_of,
    has_one_row,
    is_null,
    joined_condition,
    outer_values,
    same_domain,
    unsorted,
)
from slackwater.sql.pullup import Pulled, equality, pull_up
from slackwater.sql.subquery import (
    ScalarQuery,
    is_correlated,
)
from slackwater.types import BIGINT, BOOLEAN


def scalar_value(relation: Relation, node: ScalarQuery) -> tuple[Relation, Expr]:
    query = build.first_columns(unsorted(node.query), 1)
    if not is_correlated(query):
        return _uncorrelated_scalar(relation, node, query)
    pulled = pull_up(query)
    if pulled is None:
        return _dependent_scalar(relation, node, query)
    if pulled.single:
        return _joined_scalar(relation, node, pulled)
    if all(equality(c) for c in pulled.conditions):
        return _grouped_scalar(relation, node, pulled)
    return _dependent_scalar(relation, node, query)


def _uncorrelated_scalar(
    relation: Relation, node: ScalarQuery, query: Relation
) -> tuple[Relation, Expr]:
    if has_one_row(query):
        joined = Join(relation, query, "inner", TRUE)
        return joined, Column(node.type, True, relation.width)
    joined = Join(relation, _counted(query, ()), "inner", TRUE)
    return joined, _single(node, relation.width)


def _joined_scalar(relation: Relation, node: ScalarQuery, pulled: Pulled) -> tuple[Relation, Expr]:
    right, at = pulled.relation, relation.width
    value: Expr = Column(node.type, True, at)
    if pulled.default is not None and not is_null(pulled.default):
        present = Column(BOOLEAN, True, at + right.width)
        right = build.marker(right)
        value = build.case(build.is_null(present), pulled.default, value)
    condition = joined_condition(pulled.conditions, node.outer, at)
    return Join(relation, right, "left", condition), value


def _grouped_scalar(relation: Relation, node: ScalarQuery, pulled: Pulled) -> tuple[Relation, Expr]:
    """At most one row may match: count per key, and raise only where an outer row meets two."""
    pairs = [equality(c) for c in pulled.conditions]
    keys = tuple(inner for pair in pairs if pair for inner in [pair[1]])
    right = _counted(pulled.relation, keys)
    at = relation.width
    parts = []
    for i, pair in enumerate(p for p in pairs if p):
        outer = outer_values(pair[0], node.outer)
        key = Column(pair[1].type, pair[1].nullable, at + 2 + i)
        parts.append(Call(BOOLEAN, outer.nullable or key.nullable, pair[2], (outer, key)))
    return Join(relation, right, "left", conjunction(parts)), _single(node, at)


def _counted(query: Relation, keys: tuple[Expr, ...]) -> Relation:
    """(rows, greatest value) of the first column, then the keys, per key."""
    first = columns(query.schema)[0]
    greatest = AggCall(first.type, True, "max", (first,))
    names = (*(f"k{i}" for i in range(len(keys))), "rows", "value")
    counted = Aggregate(query, keys, (build.count_star(), greatest), names)
    return build.pick(counted, [len(keys), len(keys) + 1, *range(len(keys))])


def _single(node: ScalarQuery, at: int) -> Expr:
    """The value of a `_counted` relation at `at`, raising where there is more than one row."""
    args = (Column(BIGINT, True, at), Column(node.type, True, at + 1))
    return Call(node.type, True, "single_value", args)


def _dependent_scalar(
    relation: Relation, node: ScalarQuery, query: Relation
) -> tuple[Relation, Expr]:
    values = depend(query, domain_of(relation, node.outer))
    at, count = relation.width, len(node.outer)
    if has_one_row(query):
        right = values
        value: Expr = Column(node.type, True, at)
        first = 1
    else:
        right = _counted(values, columns(values.schema)[1:])
        value, first = _single(node, at), 2
    condition = same_domain(node.outer, right, at, first)
    assert right.width == first + count
    return Join(relation, right, "left", condition), value
