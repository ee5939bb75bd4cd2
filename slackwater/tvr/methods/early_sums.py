"""Partial sums below inner joins.

    γ[K; Σ f] (R ⋈ S) = γ[K; Σ pf·n] (γ[k; Σ f as pf] (R) ⋈ γ[l; n] (S))

All of this is linear in what is summed up, so it holds for partial sums at a time and for their
changes: a group of R is joined once, not each of its rows, and what was summed up can be kept,
whatever it is joined with later.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from slackwater.algebra.relation import Aggregate, Project, Relation
from slackwater.tvr import zset
from slackwater.tvr.below_joins import (
    Asked,
    Groups,
    Ingredient,
    Side,
    choices,
    joined,
    over_join,
    with_others,
)
from slackwater.tvr.memo import CHANGED, SUMS, SUMS_CHANGED, WEIGHTED, Memo, Ref, Rule
from slackwater.tvr.partials import ROWS, Partial
from slackwater.tvr.rules import Operators
from slackwater.tvr.states.sums import SumState, is_invertible, partials_of


def sums_below_joins(memo: Memo, ref: Ref, form: Relation) -> Iterator[Relation]:
    """γ(R ⋈ S) = γ'(γ(R) ⋈ γ(S)), of one side or several; Δγ(R ⋈ S) = γ'(Δγ(R) ⋈ γ(S)) +
    γ'(γ(R)' ⋈ Δγ(S))"""
    assert isinstance(form, Aggregate)
    asked = over_join(form) if is_invertible(form) else None
    if asked is None:
        return
    state = SumState(form, "#")
    for chosen in choices(memo, asked):
        sides = with_others(asked.inner, [_summed(groups) for groups in chosen])
        made = _Sums(asked, state, sides)
        if ref.trait.kind == SUMS:
            terms = [made.at(memo, ref.trait.old)]
        else:
            terms = list(made.changes(memo))
        yield state.of_shares(zset.plus(terms))


def _summed(groups: Groups) -> Side:
    """The partial sums of groups."""
    aggs = [groups.local(agg) for agg in groups.aggs]
    state = SumState(groups.aggregate(aggs), "#")
    known: dict[Ingredient, int] = {
        over: state.count + state.sums.index(here)
        for agg, local in zip(groups.aggs, aggs, strict=True)
        for over, here in zip(partials_of(agg), partials_of(local), strict=True)
        if over != ROWS
    }
    return groups.side(state.node, state.schema, known)


@dataclass(frozen=True)
class _Sums:
    """What each row of the sides, joined, adds to each sum."""

    asked: Asked
    state: SumState
    sides: tuple[Side, ...]

    def at(self, memo: Memo, old: bool) -> Relation:
        """At a time."""
        return self._shares([_at(memo, side, old) for side in self.sides], 0)

    def changes(self, memo: Memo) -> Iterator[Relation]:
        """One term for each side that changes: new to its left, old to its right."""
        for i, first in enumerate(self.sides):
            if memo.changes(first.node):
                rows = [_at(memo, side, old=j > i) for j, side in enumerate(self.sides)]
                rows[i] = _change(memo, first)
                yield self._shares(rows, i)

    def _shares(self, rows: Sequence[Ref], first: int) -> Relation:
        """Keys, and what to add to each sum."""
        met = joined(self.asked.inner, self.sides, rows, first)
        exprs = (*map(met.moved, self.asked.keys), *map(met.added, self._partials()))
        return Project(met.relation, exprs, self.state.names)

    def _partials(self) -> Iterator[Partial]:
        """The sums of the state, over the row of all inputs."""
        over = {
            own: other
            for agg, moved in zip(self.state.node.aggs, self.asked.aggs, strict=True)
            for own, other in zip(partials_of(agg), partials_of(moved), strict=True)
        }
        return (over.get(partial, partial) for partial in self.state.sums)


def _at(memo: Memo, side: Side, old: bool) -> Ref:
    return memo.ref(side.node, SUMS if side.is_grouped else WEIGHTED, old, side.fields)


def _change(memo: Memo, side: Side) -> Ref:
    return memo.ref(side.node, SUMS_CHANGED if side.is_grouped else CHANGED, schema=side.fields)


RULES = (
    Rule(
        "sums_below_joins",
        "",
        (SUMS, SUMS_CHANGED),
        sums_below_joins,
        Operators((Aggregate,)),
        restricted=False,
    ),
)
