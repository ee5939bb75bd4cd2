"""Aggregates below inner joins.

    γ[K; Σ f·g](R ⋈[a=b] S) = γ[K; Σ pf·n_S](γ[k; Σ f as pf, n](R) ⋈ γ[l; n](S))

k are the columns of R that are read later: by the condition, by K, and by what is computed of both
sides. pf is a sum of R alone; it counts once for each row of the others, of which n tells how many
there are. What is smallest or largest is so however often it is there.

Only exact sums are moved, and only values that never raise, for they are computed of rows, too,
that the join drops. Here is what may be summed up; the rules are in `methods/early_sums.py` and
`methods/early_extrema.py`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

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
from slackwater.algebra.relation import Aggregate, Join, Relation, Scan
from slackwater.tvr import zset
from slackwater.tvr.eager import is_grouped, under_columns
from slackwater.tvr.laws.joins import Inner, met
from slackwater.tvr.memo import Memo
from slackwater.tvr.methods.higher_order import components, holds, piece, spread
from slackwater.tvr.partials import Partial, share, times
from slackwater.tvr.preaggregate import changed, has_room, is_exactly_grouped, is_quiet
from slackwater.tvr.states.sums import partials_of
from slackwater.types import Schema

Ingredient = Partial | AggCall
"""What an aggregate is put together from: partial sums, or itself, if it is an extremum."""


def ingredients_of(agg: AggCall) -> Sequence[Ingredient]:
    """Those of an aggregate."""
    return [agg] if is_extremum(agg) else partials_of(agg)


def is_extremum(agg: AggCall) -> bool:
    """Is it the same however many rows there are?"""
    return agg.name in ("min", "max") and len(agg.args) == 1 and not agg.text


def _reads(part: Ingredient) -> set[int]:
    if isinstance(part, AggCall):
        return used_columns(part)
    return used_columns(*(e for e in (part.value, part.condition) if e is not None))


@dataclass(frozen=True)
class Asked:
    """An aggregate over an inner join, everything over the row of all its inputs."""

    inner: Inner
    keys: tuple[Expr, ...]
    aggs: tuple[AggCall, ...]

    def read_of(self, own: Collection[int]) -> set[int]:
        """Which columns of some inputs are read later, if all that they know by themselves is
        summed up."""
        later = [k for k in self.keys if not _is_computed(k, own)]
        later += [c for c in self.inner.conditions if not holds(c, own)]
        known = {p for agg in self.aggs if _is_known(agg, own) for p in ingredients_of(agg)}
        others = [p for agg in self.aggs for p in ingredients_of(agg) if p not in known]
        return used_columns(*later).union(*map(_reads, others)) & set(own)


def over_join(form: Aggregate) -> Asked | None:
    """An aggregate, if it is one over an inner join."""
    join, row = under_columns(form.input)
    if not isinstance(join, Join) or join.how != "inner":
        return None
    whole = spread(join)
    if any(not r.width for r in whole.inner.inputs):
        return None  # where an input stands is told by its columns
    row = tuple(remap(e, whole.places.__getitem__) for e in row)
    keys, aggs = (tuple(substitute(e, row) for e in exprs) for exprs in (form.keys, form.aggs))
    return Asked(whole.inner, keys, aggs)


# -- some inputs, grouped


@dataclass(frozen=True, eq=False)
class Groups:
    """Some inputs, joined, with the columns `own` of the row of all inputs, and by what they are
    grouped: columns, then other expressions over them. `aggs`: what is known by them alone."""

    relation: Relation
    own: dict[int, int]
    columns: tuple[int, ...]
    computed: tuple[Expr, ...]
    aggs: tuple[AggCall, ...]

    def local(self, expr: Any) -> Any:
        """An expression over their row."""
        return remap(expr, self.own.__getitem__)

    @cached_property
    def keys(self) -> tuple[Expr, ...]:
        """By what they are grouped, over their row."""
        row = columns(self.relation.schema)
        return (*(row[self.own[c]] for c in self.columns), *map(self.local, self.computed))

    def aggregate(self, aggs: Sequence[AggCall]) -> Aggregate:
        """The groups, with aggregates over their row."""
        names = (*(f"k{i}" for i in range(len(self.keys))), *(f"a{i}" for i in range(len(aggs))))
        return Aggregate(self.relation, self.keys, tuple(aggs), names)

    def side(self, node: Relation, fields: Schema, known: dict[Ingredient, int]) -> Side:
        """What is joined in their place, whose row begins with the keys."""
        places = {c: i for i, c in enumerate(self.columns)}
        computed = {e: len(places) + i for i, e in enumerate(self.computed)}
        return Side(node, fields, self.own.keys(), places, computed, known, is_grouped=True)


def _groups(memo: Memo, asked: Asked, inputs: Sequence[int]) -> Groups | None:
    """Some inputs, grouped by what is read of them later; None where that cannot be done, or
    leaves nearly as many groups as there are rows."""
    relation, own = piece(asked.inner, inputs)
    read = asked.read_of(own)
    computed = [k for k in dict.fromkeys(asked.keys) if _is_computed(k, own)]
    aggs = [a for a in asked.aggs if _is_known(a, own) and not used_columns(a) <= read]
    found = Groups(relation, own, tuple(sorted(read)), tuple(computed), tuple(aggs))
    if is_grouped(relation, set(found.keys)):
        return None
    fits = all(is_exactly_grouped(k) for k in found.keys) and memo.shrinks(relation, found.keys)
    return found if fits else None


def _is_known(agg: AggCall, own: Collection[int]) -> bool:
    """Is it computed from some columns alone, exactly and never raising?"""
    exprs = agg.args if agg.where is None else (*agg.args, agg.where)
    if not holds(agg, own) or not all(is_quiet(e) for e in exprs):
        return False
    return agg.name == "count" or is_extremum(agg) or _is_exact_sum(agg)


def _is_exact_sum(agg: AggCall) -> bool:
    return agg.name in ("sum", "avg") and has_room(agg.args[0])


def _is_computed(key: Expr, own: Collection[int]) -> bool:
    """Is it more than a column, and known from some columns alone?"""
    return not isinstance(key, Column) and holds(key, own) and is_quiet(key)


def choices(memo: Memo, asked: Asked) -> Iterator[list[Groups]]:
    """What to sum up: around each input that changes, that input and each part of the rest, or
    the inputs of such a part; all of these, and each alone."""
    inner, seen = asked.inner, set[frozenset[Relation]]()
    for i in (i for i, r in enumerate(inner.inputs) if memo.changes(r)):
        found: list[Groups] = []
        for part in ([i], *components(inner, i)):
            groups = _groups(memo, asked, part)
            if groups is None and len(part) > 1:
                found += filter(None, (_groups(memo, asked, [j]) for j in part))
            elif groups is not None:
                found.append(groups)
        for chosen in (found, *([groups] for groups in found)):
            relations = frozenset(groups.relation for groups in chosen)
            if relations and relations not in seen:
                seen.add(relations)
                yield chosen


# -- joined again


@dataclass(frozen=True, eq=False)
class Side:
    """What is joined in place of some inputs: where columns of theirs, expressions over them and
    ingredients of aggregates are in its row."""

    node: Relation
    fields: Schema
    own: Collection[int]
    places: dict[int, int]
    computed: dict[Expr, int] = field(default_factory=dict)
    known: dict[Ingredient, int] = field(default_factory=dict)
    is_grouped: bool = False


def with_others(inner: Inner, sides: Sequence[Side]) -> tuple[Side, ...]:
    """Together with the other inputs as they are, in the order of the inputs."""
    done = {c for side in sides for c in side.own}
    found = list(sides)
    for i in range(len(inner.inputs)):
        if inner.start(i) not in done:
            relation, places = piece(inner, [i])
            found.append(Side(relation, relation.schema, places.keys(), places))
    return tuple(sorted(found, key=lambda side: min(side.own)))


@dataclass(frozen=True, eq=False)
class Met:
    """Sides, joined: where the columns of each are, and for how many rows a row of it stands."""

    sides: tuple[Side, ...]
    relation: Relation
    places: tuple[tuple[Column, ...], ...]
    counts: dict[int, Expr]

    def moved(self, expr: Expr) -> Expr:
        """An expression over the row of all inputs."""
        found: Expr = transform(expr, self._place)
        return found

    def _place(self, node: Expr) -> Expr | None:
        return self._columns.get(node.index if isinstance(node, Column) else node)

    @cached_property
    def _columns(self) -> dict[int | Expr, Column]:
        found: dict[int | Expr, Column] = {}
        for side, row in zip(self.sides, self.places, strict=True):
            found |= {c: row[at] for c, at in side.places.items()}
            found |= {e: row[at] for e, at in side.computed.items()}
        return found

    def added(self, partial: Partial) -> Expr:
        """What a row adds to a sum."""
        for i, (side, row) in enumerate(zip(self.sides, self.places, strict=True)):
            if partial in side.known:
                own = row[side.known[partial]]
                others = [n for j, n in self.counts.items() if j != i]
                if partial.value is None:
                    return zset.product([own, *others])
                return times(own, zset.product(others))
        return share(changed(partial, self.moved), zset.product(list(self.counts.values())))

    def extremum(self, agg: AggCall) -> AggCall:
        """The smallest or largest of those that sides know, or of the values themselves."""
        for side, row in zip(self.sides, self.places, strict=True):
            if agg in side.known:
                return agg.replace(args=(row[side.known[agg]],), where=None)
        found: AggCall = transform(agg, self._place)
        return found


def joined(
    inner: Inner,
    sides: tuple[Side, ...],
    rows: Sequence[Relation],
    first: int,
) -> Met:
    """The rows of sides, joined outward from the first; each with its weight, or plain."""
    widths = [len(side.fields) for side in sides]
    starts = [sum(widths[:i]) for i in range(len(widths))]
    places = {c: n + p for n, s in zip(starts, sides, strict=True) for c, p in s.places.items()}
    crossing = [
        remap(c, places.__getitem__)
        for c in inner.conditions
        if not any(holds(c, side.own) for side in sides)
    ]
    stand_ins = tuple(Scan("", "", side.fields) for side in sides)
    relation, found, weights = met(Inner(stand_ins, tuple(crossing)), rows, first)
    row = columns(relation.schema)
    by_side = tuple(
        tuple(row[found[start + c]] for c in range(width))
        for start, width in zip(starts, widths, strict=True)
    )
    return Met(sides, relation, by_side, weights)
