"""Groups of an outer join's right side, before it is joined.

    γ[K; f(S)](R ⟕[a=b ∧ p] S) = γ[K; n](R) ⟕[a=b] γ[b; f](σ[p](S))      a ⊆ K ⊆ R, p over S

What f gives for a group of S counts once for each of the n rows of R that have its key. A change
of S then meets the sums of its keys, and neither the rows of S with the same key nor, to learn
who has lost his last partner, those of before.
"""

from __future__ import annotations

from collections.abc import Sequence

from slackwater.algebra import functions
from slackwater.algebra.expr import (
    AggCall,
    Call,
    Expr,
    columns,
    conjunction,
    conjuncts,
    shift,
    substitute,
    used_columns,
)
from slackwater.algebra.relation import Aggregate, Distinct, Filter, Join, Project, Relation
from slackwater.sql import build
from slackwater.tvr import zset
from slackwater.tvr.nulls import where_known, where_true
from slackwater.tvr.partials import cast, times
from slackwater.tvr.restrict import equal_sides
from slackwater.types import BIGINT, BOOLEAN, DOUBLE, FLOAT

_PER_ROW = frozenset({"count", "sum"})
_ONCE = frozenset({"min", "max", "avg"})
"""Aggregates that each left row counts for, and those that are the same however many there are."""


def group_first(relation: Relation) -> Relation:
    """The same multiset, with the right sides of outer joins grouped before they are joined."""
    found: Relation = relation.rewrite(_grouped_first)
    return found


def _grouped_first(node: Relation) -> Relation:
    if not isinstance(node, Aggregate):
        return node
    join, row = under_columns(node.input)
    if not isinstance(join, Join) or join.how != "left":
        return node
    keys = tuple(substitute(k, row) for k in node.keys)
    aggs = tuple(substitute(a, row) for a in node.aggs)
    pairs, own = equalities(join)
    if pairs is None or not _fits(join, keys, aggs, pairs):
        return node
    return _joined(node, join, keys, aggs, pairs, own)


def under_columns(node: Relation) -> tuple[Relation, tuple[Expr, ...]]:
    """What is below projections, and their columns over it."""
    if not isinstance(node, Project):
        return node, columns(node.schema)
    below, row = under_columns(node.input)
    return below, tuple(substitute(e, row) for e in node.exprs)


Pairs = list[tuple[Expr, Expr]]


def equalities(join: Join) -> tuple[Pairs | None, list[Expr]]:
    """A join's equalities, each side over its own row, and its conditions on the right side
    alone; None where there are others, or no equality."""
    width = join.left.width
    pairs, own = [], []
    for part in conjuncts(join.condition):
        used = used_columns(part)
        if used and min(used) >= width:
            own.append(shift(part, -width))
            continue
        sides = equal_sides(part, width)
        if sides is None or not (isinstance(part, Call) and part.name == "="):
            return None, []
        pairs.append(sides)
    return pairs or None, own


def _fits(join: Join, keys: Sequence[Expr], aggs: Sequence[AggCall], pairs: Pairs) -> bool:
    """Is each group some left rows with the same partners, and what is computed of it a matter of
    these partners alone?"""
    width = join.left.width
    if any(i >= width for i in used_columns(*keys)) or not {a for a, _ in pairs} <= set(keys):
        return False
    if not all(_is_of_partners(agg, width) for agg in aggs):
        return False
    return not is_grouped(join.right, {b for _, b in pairs})


def _is_of_partners(agg: AggCall, width: int) -> bool:
    """Is it known from the right rows, and nothing where there are none?"""
    if agg.text or agg.distinct or agg.name not in _PER_ROW | _ONCE:
        return False
    if agg.name == "sum" and agg.type in (FLOAT, DOUBLE):
        return False  # a product of a sum is not, to the last bit, the sum of as many rows
    if not agg.args and agg.where is None:
        return True  # count(*)
    if any(i < width for i in used_columns(agg)):
        return False
    if agg.where is not None and where_true(agg.where):
        return True
    return any(where_known(arg) for arg in agg.args)


def is_grouped(node: Relation, keys: set[Expr]) -> bool:
    """Has the relation one row for each value of some of its columns already?"""
    match node:
        case Filter():
            return is_grouped(node.input, keys)
        case Project():
            return is_grouped(node.input, {substitute(k, node.exprs) for k in keys})
        case Aggregate():
            return set(columns(node.schema)[: len(node.keys)]) <= keys
        case Distinct():
            return set(columns(node.schema)) <= keys
    return False


def _joined(
    node: Aggregate,
    join: Join,
    keys: tuple[Expr, ...],
    aggs: tuple[AggCall, ...],
    pairs: Pairs,
    own: list[Expr],
) -> Relation:
    count, width = len(keys), join.left.width
    counts = (build.count_star(),) if any(agg.name in _PER_ROW for agg in aggs) else ()
    left = Aggregate(join.left, keys, counts, (*node.names[:count], "n")[: count + len(counts)])
    rows = Filter(join.right, conjunction(own)) if own else join.right
    right = Aggregate(
        rows,
        tuple(b for _, b in pairs),
        tuple(shift(agg, -width) for agg in aggs),
        (*(f"k{i}" for i in range(len(pairs))), *node.names[count:]),
    )
    ours, theirs = columns(left.schema), columns(right.schema, left.width)
    same = [equal(ours[keys.index(a)], b) for (a, _), b in zip(pairs, theirs, strict=False)]
    joined = Join(left, right, "left", conjunction(same))
    row = columns(joined.schema)
    values = [
        _finished(agg, row[left.width + len(pairs) + i], row[count]) for i, agg in enumerate(aggs)
    ]
    return Project(joined, (*row[:count], *values), node.names)


def equal(a: Expr, b: Expr) -> Expr:
    return Call(BOOLEAN, a.nullable or b.nullable, "=", (a, b))


def _finished(agg: AggCall, value: Expr, n: Expr) -> Expr:
    """An aggregate of all rows from that of its partners; without partners there is one row, in
    which they are NULL."""
    if agg.name in _ONCE:
        return value
    if agg.name == "count":
        is_star = not agg.args and agg.where is None
        value = Call(BIGINT, False, "coalesce", (value, zset.ONE if is_star else zset.ZERO))
    if agg.type == BIGINT:
        many = functions.call("*", [value, n])
        assert many is not None
        return many
    return cast(times(value, n), agg.type)
