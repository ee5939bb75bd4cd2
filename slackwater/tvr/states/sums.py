"""What is kept of an aggregate between runs: per group its row count and partial sums.

    γ(R + ΔR) = γ(R) ⊕ γ(ΔR)

⊕ adds the partial sums of equal keys. A group without rows is gone; a sum without non-NULL
values is NULL again, which a count per argument tells. Sums are kept in 38 digits and brought to
their type at the end, where an overflow shows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING

from slackwater.algebra import functions
from slackwater.algebra.expr import (
    FALSE,
    TRUE,
    AggCall,
    Call,
    Expr,
    Literal,
    columns,
    conjunction,
)
from slackwater.algebra.relation import (
    Aggregate,
    Distinct,
    Expand,
    Filter,
    Project,
    Relation,
    Union,
)
from slackwater.sql import build
from slackwater.tvr import zset
from slackwater.tvr.partials import (
    ROWS,
    Partial,
    above_zero,
    added_up,
    cast,
    summed,
    total,
    without_nulls,
)
from slackwater.tvr.preaggregate import preaggregated
from slackwater.tvr.restrict import restrict
from slackwater.tvr.states.spread import SPREADS, exact_argument, spread, squared, with_deviations
from slackwater.tvr.time import CHANGE, OLD, weighted_scan
from slackwater.types import (
    BOOLEAN,
    DOUBLE,
    WEIGHT,
    Decimal,
    Field,
    Schema,
    is_integral,
)

if TYPE_CHECKING:
    from slackwater.tvr.delta import Deltas


@dataclass(frozen=True)
class SumState:
    """The partial sums of one aggregate, stored under `id`.

    A stored row is a value delta: what some rows add to a group. The row count is its weight.
    """

    node: Aggregate
    id: str
    kind = "sums"

    @cached_property
    def partials(self) -> tuple[Partial, ...]:
        """The sums that are kept besides the row count."""
        wanted = [p for agg in self.node.aggs for p in partials_of(agg) if p != ROWS]
        return tuple(dict.fromkeys(wanted))

    @property
    def schema(self) -> Schema:
        """Keys, then partial sums."""
        keys = [Field(f"k{i}", k.type, k.nullable) for i, k in enumerate(self.node.keys)]
        sums = [Field(f"s{i}", p.type, False) for i, p in enumerate(self.partials)]
        return (*keys, *sums)

    @property
    def places(self) -> Mapping[str, int]:
        """Where its columns are among those of the aggregate: the keys."""
        return {f"k{i}": i for i in range(self.count)}

    @property
    def name(self) -> str:
        """What people call it."""
        return f"sums by {len(self.node.keys)} keys" if self.node.keys else "sums"

    @property
    def names(self) -> tuple[str, ...]:
        """Of the columns of a stored row."""
        return (*(f.name for f in self.schema), WEIGHT)

    @property
    def sums(self) -> tuple[Partial, ...]:
        """The partial sums, and last the row count."""
        return (*self.partials, ROWS)

    @property
    def count(self) -> int:
        """The number of keys."""
        return len(self.node.keys)

    # -- computing it

    def initial(self, deltas: Deltas) -> Relation:
        """γ(R), as partial sums."""
        return summed(deltas.z(self.node.input), self.node.keys, self.sums, self.names)

    def change(self, deltas: Deltas) -> Relation:
        """γ(ΔR), as partial sums: what the change adds to each group"""
        change, keys = deltas.sure(self.node.input), self.node.keys
        pays = partial(deltas.pays, self.id)
        rows = preaggregated(change, keys, self.sums, self.names, pays)
        if rows is None:
            deltas.note(self.node, "merge_partial_sums")
            return summed(change, keys, self.sums, self.names)
        deltas.note(self.node, "merge_preaggregated_sums")
        return self.of_shares(rows)

    def of_shares(self, rows: Relation) -> Relation:
        """The partial sums of rows that hold keys and what they add to each sum."""
        return added_up(rows, self.count, self.sums)

    # -- reading it

    def stored(self, time: str) -> Relation:
        """The stored rows at a time."""
        return weighted_scan(self.id, self.id, self.schema, time)

    def rows(self, time: str) -> Relation:
        """The aggregate's own rows at a time."""
        stored = self.stored(time)
        row = columns(stored.schema)
        sums = tuple(total(c) for c in row[self.count :])
        merged = Aggregate(stored, row[: self.count], sums, self.names)
        return self._finished(self._present(without_nulls(merged, self.count, self.sums)))

    def _present(self, merged: Relation) -> Relation:
        """Groups with rows; the only group there is without keys, always."""
        if not self.count:
            return merged
        return Filter(merged, above_zero(columns(merged.schema)[len(self.names) - 1]))

    def _finished(self, merged: Relation) -> Relation:
        """Keys and aggregates from keys and sums; a weight behind them stays there."""
        needed = [self._places(agg) for agg in self.node.aggs]
        spreads = [p for agg, p in zip(self.node.aggs, needed, strict=True) if agg.name in SPREADS]
        filled = with_deviations(merged, list(dict.fromkeys(spreads)))
        row = columns(filled.schema)
        deviations = dict(zip(dict.fromkeys(spreads), row[merged.width :], strict=True))
        values = [
            spread(agg, deviations[places], row[places[-1]])
            if agg.name in SPREADS
            else finish(agg, [row[i] for i in places])
            for agg, places in zip(self.node.aggs, needed, strict=True)
        ]
        behind = row[len(self.names) : merged.width]
        names = (*self.node.names, *(WEIGHT for _ in behind))
        return Project(filled, (*row[: self.count], *values, *behind), names)

    def _places(self, agg: AggCall) -> tuple[int, ...]:
        """Where the sums that an aggregate needs stand."""
        return tuple(self.count + self.sums.index(p) for p in partials_of(agg))

    def delta(self, deltas: Deltas) -> Relation:
        """Of each group that ΔS names: −1 as it was, +1 as it is, in one pass over both"""
        both = self._before_and_after()
        count, kept = self.count, len(self.sums)
        row = columns(both.schema)
        keys, old, new = row[:count], row[count : count + kept], row[count + kept :]
        sides = ((*keys, *old, zset.MINUS_ONE), (*keys, *new, zset.ONE))
        made = Expand(both, sides, (*self.names[:-1], "rows", WEIGHT))
        return self._finished(self._present(made))

    def _before_and_after(self) -> Relation:
        """Keys, old sums, new sums of every group that changes."""
        change, count = self.stored(CHANGE), self.count
        before = self.stored(OLD)
        if count:
            keys = columns(change.schema)[:count]
            wanted = Distinct(Project(change, keys, self.names[:count]))
            before = restrict(before, keys, wanted)
        flagged = Union((build.with_columns(before, [TRUE]), build.with_columns(change, [FALSE])))
        row = columns(flagged.schema)
        old = tuple(total(c, row[-1]) for c in row[count:-1])
        new = tuple(total(c) for c in row[count:-1])
        names = (*self.names[:count], *(f"o{i}" for i in range(len(old))), *self.names[count:])
        both = Aggregate(flagged, row[:count], (*old, *new), names)
        return without_nulls(both, count, self.sums * 2)


# -- which aggregates follow from which sums


def is_invertible(node: Aggregate) -> bool:
    """Can every aggregate of the operator be kept as partial sums?"""
    return all(is_kept_as_sums(agg) for agg in node.aggs)


def is_kept_as_sums(agg: AggCall) -> bool:
    """Can it be kept as partial sums?"""
    if agg.text or agg.distinct:
        return False
    if agg.name in SPREADS:
        return exact_argument(agg) is not None
    if agg.name not in ("sum", "avg"):
        return agg.name == "count"
    source = agg.args[0].type
    if is_integral(source):
        return True
    return isinstance(source, Decimal) and (source.scale <= 6 or source.precision <= 29)


def partials_of(agg: AggCall) -> list[Partial]:
    """The partial sums an aggregate needs, in the order `finish` reads them."""
    number = exact_argument(agg) if agg.name in SPREADS else None
    args = agg.args if number is None else (number,)
    present: list[Expr] = [] if agg.where is None else [_surely(agg.where)]
    present += [Call(BOOLEAN, False, "is_not_null", (a,)) for a in args if a.nullable]
    count = Partial(None, conjunction(present) if present else None)
    if agg.name == "count":
        return [count]
    sums = [Partial(args[0], count.condition), count]
    return sums if number is None else [Partial(squared(number), count.condition), *sums]


def _surely(predicate: Expr) -> Expr:
    if not predicate.nullable:
        return predicate
    return Call(BOOLEAN, False, "is_true", (predicate,))


def finish(agg: AggCall, sums: Sequence[Expr]) -> Expr:
    """The aggregate from the partial sums it needs."""
    if agg.name == "count":
        return sums[0]
    whole, present = sums
    value = _average(agg, whole, present) if agg.name == "avg" else cast(whole, agg.type)
    empty = Call(BOOLEAN, False, "=", (present, zset.ZERO))
    return Call(agg.type, True, "case", (empty, Literal(agg.type, True, None), value))


def _average(agg: AggCall, whole: Expr, present: Expr) -> Expr:
    """Spark's AVG: a quotient of doubles, or of decimals brought to the result's scale."""
    source = agg.args[0].type
    if isinstance(source, Decimal):
        few = cast(whole, Decimal(min(38, source.precision + 10), source.scale))
        return Call(agg.type, True, "average", (few, present))
    quotient = functions.call("/", [cast(whole, DOUBLE), cast(present, DOUBLE)])
    assert quotient is not None
    return cast(quotient, agg.type)
