"""What is kept of an aggregate between runs: per group its row count and partial sums.

    γ(R + ΔR) = γ(R) ⊕ γ(ΔR)

⊕ adds the partial sums of equal keys. A group without rows is gone; a sum without non-NULL
values is NULL again, which a count per argument tells. Sums are kept in 38 digits and brought to
their type at the end, where an overflow shows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from slackwater.algebra import functions
from slackwater.algebra.expr import (
    FALSE,
    TRUE,
    AggCall,
    Call,
    Column,
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
from slackwater.tvr.restrict import restrict
from slackwater.tvr.time import CHANGE, OLD, weighted_scan
from slackwater.types import (
    BIGINT,
    BOOLEAN,
    DOUBLE,
    WEIGHT,
    DataType,
    Decimal,
    Field,
    Schema,
    is_integral,
)

if TYPE_CHECKING:
    from slackwater.tvr.delta import Deltas

LARGEST_WEIGHT = Decimal(7, 0)
"""Weights beyond this are not multiplied in one step; the run falls back to recompute."""


@dataclass(frozen=True)
class Partial:
    """A sum over a group's rows: of `value`, or of ones, where `condition` holds."""

    value: Expr | None
    condition: Expr | None

    @property
    def type(self) -> DataType:
        """BIGINT for counts, 38 digits for sums."""
        return BIGINT if self.value is None else _sum_type(self.value.type)


ROWS = Partial(None, None)
"""The row count of a group."""


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
        wanted = [p for agg in self.node.aggs for p in _partials(agg) if p != ROWS]
        return tuple(dict.fromkeys(wanted))

    @property
    def schema(self) -> Schema:
        """Keys, then partial sums."""
        keys = [Field(f"k{i}", k.type, True) for i, k in enumerate(self.node.keys)]
        sums = [Field(f"s{i}", p.type, False) for i, p in enumerate(self.partials)]
        return (*keys, *sums)

    @property
    def name(self) -> str:
        """What people call it."""
        return f"sums by {len(self.node.keys)} keys" if self.node.keys else "sums"

    @property
    def _names(self) -> tuple[str, ...]:
        return (*(f.name for f in self.schema), WEIGHT)

    @property
    def _count(self) -> int:
        return len(self.node.keys)

    # -- computing it

    def initial(self, deltas: Deltas) -> Relation:
        """γ(R), as partial sums."""
        return self._summed(deltas.z(self.node.input))

    def change(self, deltas: Deltas) -> Relation:
        """γ(ΔR), as partial sums: what the change adds to each group"""
        deltas.note(self.node, "merge_partial_sums")
        return self._summed(deltas.sure(self.node.input))

    def _summed(self, z: Relation) -> Relation:
        weight = zset.weight(z)
        sums = tuple(_weighted(p, weight) for p in (*self.partials, ROWS))
        grouped = self._without_nulls(Aggregate(z, self.node.keys, sums, self._names))
        return Filter(grouped, _any_not_zero(columns(grouped.schema)[self._count :]))

    def _without_nulls(self, grouped: Relation) -> Relation:
        row = columns(grouped.schema)
        exprs: list[Expr] = list(row[: self._count])
        for column, partial in zip(row[self._count :], (*self.partials, ROWS), strict=True):
            exprs.append(_or_zero(column, partial.type))
        return Project(grouped, tuple(exprs), self._names)

    # -- reading it

    def stored(self, time: str) -> Relation:
        """The stored rows at a time."""
        return weighted_scan(self.id, self.id, self.schema, time)

    def rows(self, time: str) -> Relation:
        """The aggregate's own rows at a time."""
        stored = self.stored(time)
        row = columns(stored.schema)
        sums = tuple(_total(c) for c in row[self._count :])
        merged = self._without_nulls(Aggregate(stored, row[: self._count], sums, self._names))
        return self._finished(self._present(merged, self._count + len(self.partials)))

    def _present(self, merged: Relation, at: int) -> Relation:
        """Groups with rows; the only group there is without keys, always."""
        if not self._count:
            return merged
        return Filter(merged, _above_zero(columns(merged.schema)[at]))

    def _finished(self, merged: Relation) -> Relation:
        row = columns(merged.schema)
        keys, sums = row[: self._count], row[self._count :]
        exprs = (*keys, *(self._value(agg, sums) for agg in self.node.aggs))
        return Project(merged, exprs, self.node.names)

    def delta(self, deltas: Deltas) -> Relation:
        """Of each group that ΔS names: −1 as it was, +1 as it is, in one pass over both"""
        both = self._before_and_after()
        count, kept = self._count, len(self.partials) + 1
        row = columns(both.schema)
        keys, old, new = row[:count], row[count : count + kept], row[count + kept :]
        sides = []
        for sums, weight in ((old, zset.MINUS_ONE), (new, zset.ONE)):
            there: Expr = _above_zero(sums[-1]) if count else TRUE
            values = [self._value(agg, sums) for agg in self.node.aggs]
            sides.append((*keys, *values, weight, there))
        made = Expand(both, tuple(sides), (*self.node.names, WEIGHT, "there"))
        shown = columns(made.schema)
        return build.first_columns(Filter(made, shown[-1]), made.width - 1)

    def _before_and_after(self) -> Relation:
        """Keys, old sums, new sums of every group that changes."""
        change, count = self.stored(CHANGE), self._count
        before = self.stored(OLD)
        if count:
            keys = columns(change.schema)[:count]
            wanted = Distinct(Project(change, keys, self._names[:count]))
            before = restrict(before, keys, wanted)
        flagged = Union((build.with_columns(before, [TRUE]), build.with_columns(change, [FALSE])))
        row = columns(flagged.schema)
        old = tuple(_total(c, row[-1]) for c in row[count:-1])
        new = tuple(_total(c) for c in row[count:-1])
        names = (*self._names[:count], *(f"o{i}" for i in range(len(old))), *self._names[count:])
        summed = Aggregate(flagged, row[:count], (*old, *new), names)
        cells = columns(summed.schema)
        types = [*(p.type for p in self.partials), BIGINT] * 2
        values = [_or_zero(c, t) for c, t in zip(cells[count:], types, strict=True)]
        return Project(summed, (*cells[:count], *values), names)

    def _value(self, agg: AggCall, sums: Sequence[Expr]) -> Expr:
        """The aggregate from a group's sums."""
        parts = [sums[-1] if p == ROWS else sums[self.partials.index(p)] for p in _partials(agg)]
        if agg.name == "count":
            return parts[0]
        total, present = parts
        value = _average(agg, total, present) if agg.name == "avg" else _cast(total, agg.type)
        empty = Call(BOOLEAN, False, "=", (present, zset.ZERO))
        return Call(agg.type, True, "case", (empty, Literal(agg.type, True, None), value))


def _above_zero(count: Expr) -> Expr:
    return Call(BOOLEAN, False, ">", (count, zset.ZERO))


def _any_not_zero(sums: Sequence[Expr]) -> Expr:
    result: Expr = FALSE
    for one in sums:
        differs = Call(BOOLEAN, False, "!=", (one, _cast(zset.ZERO, one.type)))
        result = differs if result is FALSE else build.disjunction(result, differs)
    return result


def _total(column: Column, where: Expr | None = None) -> AggCall:
    return AggCall(_total_type(column.type), True, "sum", (column,), where=where)


def is_invertible(node: Aggregate) -> bool:
    """Can every aggregate of the operator be kept as partial sums?"""
    return all(_is_invertible(agg) for agg in node.aggs)


def _is_invertible(agg: AggCall) -> bool:
    if agg.text or agg.distinct or agg.name not in ("count", "sum", "avg"):
        return False
    if agg.name == "count":
        return True
    source = agg.args[0].type
    if is_integral(source):
        return True
    return isinstance(source, Decimal) and (source.scale <= 6 or source.precision <= 29)


def _partials(agg: AggCall) -> list[Partial]:
    """The partial sums an aggregate needs, in the order `_finished` reads them."""
    present: list[Expr] = [] if agg.where is None else [_surely(agg.where)]
    present += [Call(BOOLEAN, False, "is_not_null", (a,)) for a in agg.args if a.nullable]
    count = Partial(None, conjunction(present) if present else None)
    return [count] if agg.name == "count" else [Partial(agg.args[0], count.condition), count]


def _surely(predicate: Expr) -> Expr:
    if not predicate.nullable:
        return predicate
    return Call(BOOLEAN, False, "is_true", (predicate,))


def _sum_type(t: DataType) -> Decimal:
    return Decimal(38, t.scale if isinstance(t, Decimal) else 0)


def _total_type(t: DataType) -> DataType:
    return BIGINT if t == BIGINT else _sum_type(t)


def _weighted(partial: Partial, weight: Expr) -> AggCall:
    """sum(value · weight) over the rows where the condition holds."""
    value = weight if partial.value is None else _times(partial.value, weight, partial.type)
    return AggCall(_total_type(value.type), True, "sum", (value,), where=partial.condition)


def _times(value: Expr, weight: Expr, t: DataType) -> Expr:
    """value · weight; weights are nearly always 1 or −1."""
    wide = _cast(value, t)
    negated = Call(t, True, "neg", (wide,))
    many = functions.call("*", [wide, _cast(weight, LARGEST_WEIGHT)])
    assert many is not None
    is_one = Call(BOOLEAN, weight.nullable, "=", (weight, zset.ONE))
    is_minus_one = Call(BOOLEAN, weight.nullable, "=", (weight, zset.MINUS_ONE))
    return Call(t, True, "case", (is_one, wide, is_minus_one, negated, _cast(many, t)))


def _cast(expr: Expr, t: DataType) -> Expr:
    made = functions.cast(expr, t)
    assert made is not None
    return made


def _or_zero(column: Column, t: DataType) -> Expr:
    zero = _cast(Literal(BIGINT, False, 0), t)
    return Call(t, False, "coalesce", (_cast(column, t), zero))


def _average(agg: AggCall, total: Expr, present: Expr) -> Expr:
    """Spark's AVG: a quotient of doubles, or of decimals brought to the result's scale."""
    source = agg.args[0].type
    if isinstance(source, Decimal):
        summed = _cast(total, Decimal(min(38, source.precision + 10), source.scale))
        return Call(agg.type, True, "average", (summed, present))
    quotient = functions.call("/", [_cast(total, DOUBLE), _cast(present, DOUBLE)])
    assert quotient is not None
    return _cast(quotient, agg.type)
