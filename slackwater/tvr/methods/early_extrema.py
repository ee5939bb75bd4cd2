"""Aggregates with extrema below inner joins.

    γ[K; max f, Σ g] (R ⋈ S) = γ[K; max mf, Σ g·n] (γ[k; max f as mf, n] (R) ⋈ S)

No change of an extremum follows from a sum, so these are other forms of the expression: its rows,
from groups of groups.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from slackwater.algebra.expr import AggCall, columns
from slackwater.algebra.relation import Aggregate, Project, Relation
from slackwater.sql import build
from slackwater.tvr import zset
from slackwater.tvr.below_joins import (
    Asked,
    Groups,
    Ingredient,
    Met,
    Side,
    choices,
    ingredients_of,
    is_extremum,
    joined,
    over_join,
    with_others,
)
from slackwater.tvr.memo import Memo, Rewrite
from slackwater.tvr.methods.higher_order import Part
from slackwater.tvr.partials import ROWS, cast, or_zero
from slackwater.tvr.rules import Operators
from slackwater.tvr.states.spread import SPREADS
from slackwater.tvr.states.sums import finish, is_kept_as_sums
from slackwater.types import BIGINT


def extrema_below_joins(memo: Memo, form: Relation) -> Iterator[Relation]:
    """γ(R ⋈ S) = γ'(γ(R) ⋈ γ(S)), of one side or several, where there are extrema"""
    assert isinstance(form, Aggregate)
    if not any(map(is_extremum, form.aggs)) or not all(map(_is_put_together, form.aggs)):
        return
    asked = over_join(form)
    if asked is None or any(isinstance(r, Part) for r in asked.inner.inputs):
        return  # it has been put together from groups already
    for chosen in choices(memo, asked):
        if all(groups.keys for groups in chosen):  # without keys there is a group of no rows, too
            yield _from_groups(form, asked, chosen)


def _is_put_together(agg: AggCall) -> bool:
    return is_extremum(agg) or (agg.name not in SPREADS and is_kept_as_sums(agg))


def _from_groups(form: Aggregate, asked: Asked, chosen: Sequence[Groups]) -> Relation:
    counted = not all(map(is_extremum, form.aggs))
    sides = with_others(asked.inner, [_grouped(groups, counted) for groups in chosen])
    met = joined(asked.inner, sides, [zset.with_weight(side.node) for side in sides], 0)
    if counted:
        rows = [(i, met.places[i][-1]) for i, side in enumerate(sides) if side.is_grouped]
        met = replace(met, counts=dict(rows))
    return _put_together(form, asked, met)


def _grouped(groups: Groups, counted: bool) -> Side:
    """Groups with what is known of them, and last how many rows they have."""
    known = dict.fromkeys(p for agg in groups.aggs for p in ingredients_of(agg) if p != ROWS)
    calls = [groups.local(_call(p)) for p in known]
    if counted:
        calls.append(build.count_star())
    node = groups.aggregate(calls)
    places: dict[Ingredient, int] = {p: len(groups.keys) + i for i, p in enumerate(known)}
    part = Part(node, columns(node.schema), zset.names(node))
    return groups.side(part, node.schema, places)


def _call(known: Ingredient) -> AggCall:
    """What gives an ingredient, of some rows."""
    if isinstance(known, AggCall):
        return known
    if known.value is None:
        return AggCall(BIGINT, False, "count", (), where=known.condition)
    value = cast(known.value, known.type)
    return AggCall(known.type, True, "sum", (value,), where=known.condition)


def _put_together(form: Aggregate, asked: Asked, met: Met) -> Relation:
    """The aggregates from their ingredients in joined groups."""
    count, needed = len(asked.keys), [ingredients_of(agg) for agg in asked.aggs]
    found = list(dict.fromkeys(p for own in needed for p in own))
    calls = [
        met.extremum(p) if isinstance(p, AggCall) else AggCall(p.type, True, "sum", (met.added(p),))
        for p in found
    ]
    names = (*(f"k{i}" for i in range(count)), *(f"a{i}" for i in range(len(found))))
    groups = Aggregate(met.relation, tuple(map(met.moved, asked.keys)), tuple(calls), names)
    row = columns(groups.schema)
    values = {
        p: value if isinstance(p, AggCall) else or_zero(value, p.type)
        for p, value in zip(found, row[count:], strict=True)
    }
    exprs = [
        values[own[0]] if is_extremum(agg) else finish(agg, [values[p] for p in own])
        for agg, own in zip(form.aggs, needed, strict=True)
    ]
    return Project(groups, (*row[:count], *exprs), form.names)


REWRITES = (Rewrite("extrema_below_joins", "", extrema_below_joins, Operators((Aggregate,))),)
