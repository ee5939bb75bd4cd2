"""Pull correlated filters to the top of a subquery, where they become a join condition."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from slackwater.algebra.expr import (
    AggCall,
    Call,
    Column,
    Expr,
    Literal,
    columns,
    conjunction,
    conjuncts,
    remap,
    shift,
    substitute,
    used_columns,
)
from slackwater.algebra.relation import (
    Aggregate,
    Distinct,
    Filter,
    Join,
    Project,
    Relation,
    Sort,
    Union,
)
from slackwater.sql.subquery import has_param, is_correlated
from slackwater.types import BIGINT

ZERO_WHEN_EMPTY = frozenset(
    {"count", "count_if", "regr_count", "approx_count_distinct"},
)
"""Aggregates that give 0, not NULL, for an empty input."""


@dataclass(frozen=True)
class Pulled:
    """A subquery without correlation: its own columns first, then what the conditions need.

    `single`: the conditions hold for at most one row per enclosing row. `default`: the first
    column's value where no row matches, if that is a row nevertheless (the count bug).
    """

    relation: Relation
    conditions: list[Expr]
    single: bool
    default: Expr | None


def equality(condition: Expr) -> tuple[Expr, Expr, str] | None:
    """(enclosing side, inner side, operator) of an equality between the two rows."""
    if not (isinstance(condition, Call) and condition.name in ("=", "<=>")):
        return None
    left, right = condition.args
    for outer, inner in ((left, right), (right, left)):
        if has_param(outer) and not used_columns(outer) and not has_param(inner):
            return outer, inner, condition.name
    return None


def pull_up(relation: Relation) -> Pulled | None:
    """The subquery with its correlated filters on top, or None where that is not possible."""
    if not is_correlated(relation):
        return Pulled(relation, [], False, None)
    match relation:
        case Filter():
            return _filter(relation)
        case Project():
            return _project(relation)
        case Join():
            return _join(relation)
        case Aggregate():
            return _aggregate(relation)
        case Sort():
            return pull_up(relation.input)
        case Distinct():
            return _distinct(relation)
        case Union():
            return None
    return None


def _filter(node: Filter) -> Pulled | None:
    below = pull_up(node.input)
    if below is None or below.default is not None:
        return None
    parts = conjuncts(node.predicate)
    kept = [p for p in parts if not has_param(p)]
    pulled = [p for p in parts if has_param(p)]
    inner = Filter(below.relation, conjunction(kept)) if kept else below.relation
    return replace(below, relation=inner, conditions=below.conditions + pulled)


def _project(node: Project) -> Pulled | None:
    below = pull_up(node.input)
    if below is None or has_param(*node.exprs):
        return None
    needed = sorted(used_columns(*below.conditions))
    row = columns(below.relation.schema)
    relation = Project(
        below.relation,
        node.exprs + tuple(row[i] for i in needed),
        node.names + tuple(f"k{i}" for i in range(len(needed))),
    )
    conditions = _moved(below.conditions, needed, len(node.exprs))
    default = None
    if below.default is not None:
        default = _over_empty(node.exprs[0], node.input)
    return Pulled(relation, conditions, below.single, default)


def _moved(conditions: Sequence[Expr], needed: list[int], start: int) -> list[Expr]:
    places = {old: start + new for new, old in enumerate(needed)}
    return [remap(c, places.__getitem__) for c in conditions]


def _join(node: Join) -> Pulled | None:
    """Inner joins give up filters of both sides, others those of the side they preserve."""
    if node.how == "inner":
        return _inner_join(node)
    if node.how not in ("left", "semi", "anti"):
        return None
    left = pull_up(node.left)
    if left is None or left.default is not None or has_param(node.condition):
        return None
    if is_correlated(node.right):
        return None
    extra = left.relation.width - node.left.width
    condition = _with_gap(node.condition, node.left.width, extra)
    joined: Relation = Join(left.relation, node.right, node.how, condition)
    if node.how != "left" or extra == 0:
        return Pulled(joined, left.conditions, left.single and node.how != "left", None)
    return _gap_last(joined, left.conditions, node.left.width, extra)


def _inner_join(node: Join) -> Pulled | None:
    left, right = pull_up(node.left), pull_up(node.right)
    if left is None or right is None or left.default is not None or right.default is not None:
        return None
    a, b = node.left.width, node.right.width
    extra = left.relation.width - a
    parts = conjuncts(_with_gap(node.condition, a, extra))
    kept = conjunction([p for p in parts if not has_param(p)])
    joined = Join(left.relation, right.relation, "inner", kept)
    conditions = [
        *left.conditions,
        *(shift(c, left.relation.width) for c in right.conditions),
        *(p for p in parts if has_param(p)),
    ]
    order = [*range(a), *range(a + extra, a + extra + b), *range(a, a + extra)]
    order += range(a + extra + b, joined.width)
    return _reordered(joined, conditions, order)


def _with_gap(expr: Expr, start: int, gap: int) -> Expr:
    result: Expr = remap(expr, lambda i: i if i < start else i + gap)
    return result


def _gap_last(joined: Relation, conditions: list[Expr], start: int, gap: int) -> Pulled:
    order = [*range(start), *range(start + gap, joined.width), *range(start, start + gap)]
    return _reordered(joined, conditions, order)


def _reordered(joined: Relation, conditions: Sequence[Expr], order: list[int]) -> Pulled:
    if order == list(range(joined.width)):
        return Pulled(joined, list(conditions), False, None)
    row = columns(joined.schema)
    names = tuple(joined.schema[i].name for i in order)
    places = {old: new for new, old in enumerate(order)}
    relation = Project(joined, tuple(row[i] for i in order), names)
    return Pulled(relation, [remap(c, places.__getitem__) for c in conditions], False, None)


def _distinct(node: Distinct) -> Pulled | None:
    below = pull_up(node.input)
    if below is None or below.default is not None:
        return None
    return replace(below, relation=Distinct(below.relation))


def _aggregate(node: Aggregate) -> Pulled | None:
    """Equalities pass an aggregate: its groups are split by the inner side of each."""
    below = pull_up(node.input)
    if below is None or below.default is not None or has_param(*node.keys, *node.aggs):
        return None
    pairs = [equality(c) for c in below.conditions]
    if any(p is None or p[2] != "=" for p in pairs):
        return None
    added = tuple(p[1] for p in pairs if p)
    names = node.names
    relation = Aggregate(
        below.relation,
        node.keys + added,
        node.aggs,
        names[: len(node.keys)]
        + tuple(f"k{i}" for i in range(len(added)))
        + names[len(node.keys) :],
    )
    k, n = len(node.keys), len(node.aggs)
    order = [*range(k), *range(k + len(added), k + len(added) + n), *range(k, k + len(added))]
    conditions = []
    for i, pair in enumerate(p for p in pairs if p):
        key = Column(pair[1].type, pair[1].nullable, k + i)
        conditions.append(
            Call(below.conditions[i].type, below.conditions[i].nullable, "=", (pair[0], key))
        )
    pulled = _reordered(relation, conditions, order)
    default = None if node.keys else _empty_value(node.aggs[0]) if node.aggs else None
    return replace(pulled, single=not node.keys, default=default)


def _empty_value(agg: AggCall) -> Expr:
    """What an aggregate gives for no rows."""
    if agg.name in ZERO_WHEN_EMPTY:
        return Literal(BIGINT, False, 0)
    return Literal(agg.type, True, None)


def _over_empty(expr: Expr, below: Relation) -> Expr:
    """A select-list expression over the one row of an aggregate of nothing."""
    while isinstance(below, Project):
        expr = substitute(expr, below.exprs)
        below = below.input
    assert isinstance(below, Aggregate)
    result: Expr = substitute(expr, tuple(_empty_value(a) for a in below.aggs))
    return result
