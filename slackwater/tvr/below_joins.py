"""Sums below inner joins.

    γ[K; Σ f·g](R ⋈[a=b] S) = γ[K; Σ pf·n_S](γ[k; Σ f as pf, n](R) ⋈ γ[l; n](S))

k are the columns of R that are read later: by the condition, by K, and by sums that read S, too.
pf is a sum of R alone; it counts once for each row of the others, of which n tells how many there
are. All of this is linear in what is summed up, so it holds for partial sums at a time and for
their changes: each group of R is joined once, not each of its rows, and what was summed up can be
kept, whatever it is joined with later.

Only exact sums are moved, and only values that never raise, for they are computed of rows, too,
that the join drops.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from slackwater.algebra.expr import (
    AggCall,
    Column,
    Expr,
    columns,
    remap,
    substitute,
    transform,
    used_columns,
)
from slackwater.algebra.relation import Aggregate, Join, Project, Relation, Scan
from slackwater.tvr import zset
from slackwater.tvr.eager import under_columns
from slackwater.tvr.laws.joins import Inner, met
from slackwater.tvr.memo import CHANGED, SUMS, SUMS_CHANGED, WEIGHTED, Memo, Ref, Rule
from slackwater.tvr.methods.higher_order import components, holds, piece, spread
from slackwater.tvr.partials import ROWS, Partial, share, times
from slackwater.tvr.preaggregate import changed, has_room, is_exactly_grouped, is_quiet
from slackwater.tvr.rules import Operators
from slackwater.tvr.states.sums import SumState, is_invertible, partials_of
from slackwater.types import Schema


@dataclass(frozen=True)
class _Sums:
    """Partial sums over an inner join, everything over the row of all its inputs."""

    state: SumState
    inner: Inner
    keys: tuple[Expr, ...]
    aggs: tuple[AggCall, ...]

    @cached_property
    def partials(self) -> tuple[Partial, ...]:
        """The sums, and last the row count."""
        by_place = dict(zip(self.state.node.aggs, self.aggs, strict=True))
        moved = {
            own: other
            for agg, over in by_place.items()
            for own, other in zip(partials_of(agg), partials_of(over), strict=True)
        }
        return tuple(moved.get(p, p) for p in self.state.sums)

    def read_of(self, own: Collection[int]) -> set[int]:
        """Which columns of some inputs are read later, if all that they know by themselves is
        summed up."""
        later = [k for k in self.keys if not _is_computed(k, own)]
        later += [c for c in self.inner.conditions if not holds(c, own)]
        known = {p for agg in self.aggs if _is_known(agg, own) for p in partials_of(agg)}
        for partial in self.partials:
            if partial not in known:
                later += [e for e in (partial.value, partial.condition) if e is not None]
        return used_columns(*later) & set(own)


def _over_join(form: Aggregate) -> _Sums | None:
    """The partial sums of an aggregate that has some, over an inner join."""
    if not is_invertible(form):
        return None
    join, row = under_columns(form.input)
    if not isinstance(join, Join) or join.how != "inner":
        return None
    whole = spread(join)
    if any(not r.width for r in whole.inner.inputs):
        return None  # where an input stands is told by its columns
    row = tuple(remap(e, whole.places.__getitem__) for e in row)
    keys = tuple(substitute(k, row) for k in form.keys)
    return _Sums(
        SumState(form, "#"), whole.inner, keys, tuple(substitute(a, row) for a in form.aggs)
    )


# -- sides of the join: an input as it is, or some inputs summed up


@dataclass(frozen=True, eq=False)
class _Side:
    """What is joined, in place of some inputs, whose columns are `own`. Where columns of theirs,
    expressions over them and sums of them are in its row."""

    node: Relation
    fields: Schema
    own: Collection[int]
    places: dict[int, int]
    computed: dict[Expr, int] = field(default_factory=dict)
    sums: dict[Partial, int] = field(default_factory=dict)
    is_summed: bool = False

    def at(self, memo: Memo, old: bool) -> Ref:
        """Its rows, or partial sums, at a time."""
        kind = SUMS if self.is_summed else WEIGHTED
        return memo.ref(self.node, kind, old, self.fields)

    def change(self, memo: Memo) -> Ref:
        """The change of its rows, or of its partial sums."""
        kind = SUMS_CHANGED if self.is_summed else CHANGED
        return memo.ref(self.node, kind, schema=self.fields)


def _plain(inner: Inner, i: int) -> _Side:
    """An input as it is."""
    relation, places = piece(inner, [i])
    return _Side(relation, relation.schema, places.keys(), places)


def _summed(memo: Memo, asked: _Sums, inputs: Sequence[int]) -> _Side | None:
    """Some inputs, joined and summed up by what is read of them later; None where that cannot be
    done, or leaves nearly as many groups as there are rows."""
    relation, places = piece(asked.inner, inputs)
    read = asked.read_of(places)
    aggs = [a for a in asked.aggs if _is_known(a, places) and not used_columns(a) <= read]
    computed = [k for k in dict.fromkeys(asked.keys) if _is_computed(k, places)]
    row, kept = columns(relation.schema), sorted(read)
    own = [remap(a, places.__getitem__) for a in aggs]
    keys = (*(row[places[c]] for c in kept), *(remap(k, places.__getitem__) for k in computed))
    if not all(is_exactly_grouped(k) for k in keys) or not memo.shrinks(relation, keys):
        return None
    names = (*(f"k{i}" for i in range(len(keys))), *(f"a{i}" for i in range(len(own))))
    state = SumState(Aggregate(relation, keys, tuple(own), names), "#")
    sums = {
        over: len(keys) + state.sums.index(here)
        for agg, local in zip(aggs, own, strict=True)
        for over, here in zip(partials_of(agg), partials_of(local), strict=True)
        if over != ROWS
    }
    return _Side(
        state.node,
        state.schema,
        places.keys(),
        {c: i for i, c in enumerate(kept)},
        {k: len(kept) + i for i, k in enumerate(computed)},
        sums,
        is_summed=True,
    )


def _is_known(agg: AggCall, own: Collection[int]) -> bool:
    """Is it a sum over some columns alone, exact and never raising?"""
    exprs = agg.args if agg.where is None else (*agg.args, agg.where)
    if agg.name not in ("sum", "avg", "count") or not holds(agg, own):
        return False
    return all(is_quiet(e) for e in exprs) and (agg.name == "count" or has_room(agg.args[0]))


def _is_computed(key: Expr, own: Collection[int]) -> bool:
    """Is it more than a column, and known from some columns alone?"""
    return not isinstance(key, Column) and holds(key, own) and is_quiet(key)


# -- the rule


def sums_below_joins(memo: Memo, ref: Ref, form: Relation) -> Iterator[Relation]:
    """γ(R ⋈ S) = γ'(γ(R) ⋈ γ(S)), of one side or several; Δγ(R ⋈ S) = γ'(Δγ(R) ⋈ γ(S)) +
    γ'(γ(R)' ⋈ Δγ(S))"""
    assert isinstance(form, Aggregate)
    asked = _over_join(form)
    if asked is None:
        return
    for summed in _choices(memo, asked):
        joined = _Joined(asked, _sides(asked.inner, summed))
        if ref.trait.kind == SUMS:
            terms = [joined.at(memo, ref.trait.old)]
        else:
            terms = list(joined.changes(memo))
        yield asked.state.of_shares(zset.plus(terms))


def _choices(memo: Memo, asked: _Sums) -> Iterator[list[_Side]]:
    """What to sum up: around each input that changes, that input and each part of the rest, or
    the inputs of such a part; all of these, and each alone."""
    inner, seen = asked.inner, set[frozenset[Relation]]()
    for i in (i for i, r in enumerate(inner.inputs) if memo.changes(r)):
        found: list[_Side] = []
        for part in ([i], *components(inner, i)):
            side = _summed(memo, asked, part)
            if side is None and len(part) > 1:
                found += filter(None, (_summed(memo, asked, [j]) for j in part))
            elif side is not None:
                found.append(side)
        for chosen in (found, *([side] for side in found)):
            nodes = frozenset(side.node for side in chosen)
            if nodes and nodes not in seen:
                seen.add(nodes)
                yield chosen


def _sides(inner: Inner, summed: Sequence[_Side]) -> tuple[_Side, ...]:
    """With the other inputs as they are, in the order of the inputs."""
    done = {c for side in summed for c in side.own}
    others = [_plain(inner, i) for i, r in enumerate(inner.inputs) if inner.start(i) not in done]
    return tuple(sorted([*summed, *others], key=lambda side: min(side.own)))


@dataclass(frozen=True)
class _Joined:
    """The sides, joined: what each row of that adds to each sum."""

    asked: _Sums
    sides: tuple[_Side, ...]

    def at(self, memo: Memo, old: bool) -> Relation:
        """At a time."""
        return self._shares([side.at(memo, old) for side in self.sides], 0)

    def changes(self, memo: Memo) -> Iterator[Relation]:
        """One term for each side that changes: new to its left, old to its right."""
        for i, first in enumerate(self.sides):
            if memo.changes(first.node):
                refs = [side.at(memo, old=j > i) for j, side in enumerate(self.sides)]
                refs[i] = first.change(memo)
                yield self._shares(refs, i)

    @cached_property
    def _starts(self) -> list[int]:
        widths = [len(side.fields) for side in self.sides]
        return [sum(widths[:i]) for i in range(len(widths))]

    @cached_property
    def _inner(self) -> Inner:
        """The join of the sides' rows."""
        places = {c: n + p for n, s in self._each() for c, p in s.places.items()}
        crossing = [
            remap(c, places.__getitem__)
            for c in self.asked.inner.conditions
            if not any(holds(c, side.own) for side in self.sides)
        ]
        return Inner(tuple(Scan("", "", s.fields) for s in self.sides), tuple(crossing))

    def _each(self) -> Iterator[tuple[int, _Side]]:
        return zip(self._starts, self.sides, strict=True)

    def _shares(self, refs: Sequence[Ref], first: int) -> Relation:
        """Keys, and what to add to each sum, from the sides' rows with weights."""
        joined, found, weights = met(self._inner, refs, first)
        row = columns(joined.schema)
        places: dict[int | Expr, Column] = {}
        for start, side in self._each():
            places |= {c: row[found[start + at]] for c, at in side.places.items()}
            places |= {e: row[found[start + at]] for e, at in side.computed.items()}

        def moved(expr: Expr) -> Expr:
            made: Expr = transform(
                expr, lambda e: places.get(e.index if isinstance(e, Column) else e)
            )
            return made

        def added(partial: Partial) -> Expr:
            for i, (start, side) in enumerate(self._each()):
                if partial in side.sums:
                    own = row[found[start + side.sums[partial]]]
                    others = [w for j, w in weights.items() if j != i]
                    if partial.value is None:
                        return zset.product([own, *others])
                    return times(own, zset.product(others))
            return share(changed(partial, moved), zset.product(list(weights.values())))

        exprs = (*map(moved, self.asked.keys), *map(added, self.asked.partials))
        return Project(joined, exprs, self.asked.state.names)


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
