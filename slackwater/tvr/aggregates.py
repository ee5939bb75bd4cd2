"""Aggregates in simpler ones: each part is then maintained by the law that suits it."""

from __future__ import annotations

from dataclasses import replace

from slackwater.algebra.expr import AggCall, Column, Expr, SortKey, columns, conjunction
from slackwater.algebra.relation import Aggregate, Filter, Join, Project, Relation, TopK
from slackwater.sql import build


def simplified(node: Aggregate) -> Relation:
    """The aggregate without DISTINCT, and without extrema of a whole relation.

    Parts that need another input are computed apart and joined by the keys, which are the same
    in all of them, for all have the same groups.
    """
    apart: dict[object, list[int]] = {}
    for i, agg in enumerate(node.aggs):
        apart.setdefault(_input_of(node, agg), []).append(i)
    if list(apart) in ([], [None]):
        return node
    parts = [_part(node, kind, places) for kind, places in apart.items()]
    return _joined(node, parts, list(apart.values()))


def _input_of(node: Aggregate, agg: AggCall) -> object:
    """Which input an aggregate is computed from: None for the operator's own."""
    if agg.text:
        return None
    if agg.distinct:
        return ("distinct", agg.args, agg.where)
    if not node.keys and agg.name in ("min", "max") and len(agg.args) == 1:
        return (agg.name, agg.args, agg.where)
    return None


def _part(node: Aggregate, kind: object, places: list[int]) -> Aggregate:
    """The aggregates at some places, over the input they share."""
    aggs = tuple(node.aggs[i] for i in places)
    count = len(node.keys)
    names = (*node.names[:count], *(node.names[count + i] for i in places))
    if kind is None:
        return Aggregate(node.input, node.keys, aggs, names)
    values = _values(aggs[0])
    below = Project(
        node.input, (*node.keys, *values), tuple(f"v{i}" for i in range(count + len(values)))
    )
    row = columns(below.schema)
    keys, args = row[:count], row[count:]
    plain = tuple(replace(a, args=args, where=None, distinct=False) for a in aggs)
    if aggs[0].distinct:
        return Aggregate(Aggregate(below, row, (), below.names), keys, plain, names)
    return Aggregate(_first(below, args[0], aggs[0].name), keys, plain, names)


def _values(agg: AggCall) -> tuple[Expr, ...]:
    """An aggregate's arguments; NULL, which it ignores, where its condition does not hold."""
    if agg.where is None:
        return agg.args
    return tuple(build.case(agg.where, a, build.null(a.type)) for a in agg.args)


def _first(below: Relation, value: Column, name: str) -> Relation:
    """The row with the smallest or the largest value, if there is any."""
    some = Filter(below, build.is_not_null(value))
    return TopK(some, (SortKey(value.type, value.nullable, value, name == "min", True),), 1)


def _joined(node: Aggregate, parts: list[Aggregate], places: list[list[int]]) -> Relation:
    count = len(node.keys)
    joined: Relation = parts[0]
    at = {i: count + n for n, i in enumerate(places[0])}
    for part, own in zip(parts[1:], places[1:], strict=True):
        start = joined.width
        row = columns(joined.schema) + columns(part.schema, start)
        same = [build.null_safe_equal(row[i], row[start + i]) for i in range(count)]
        joined = Join(joined, part, "inner", conjunction(same))
        at |= {i: start + count + n for n, i in enumerate(own)}
    row = columns(joined.schema)
    exprs = (*row[:count], *(row[at[i]] for i in range(len(node.aggs))))
    return Project(joined, exprs, node.names)
