"""What is kept of an aggregate between runs: per group its row count and partial sums.

    γ(R + ΔR) = γ(R) ⊕ γ(ΔR)

⊕ adds the partial sums of equal keys. A group without rows is gone; a sum without non-NULL
values is NULL again, which a count per argument tells. Sums are kept in 38 digits and brought to
their type at the end, where an overflow shows.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from slackwater.algebra import functions
from slackwater.algebra.expr import (
    AggCall,
    Call,
    Column,
    Expr,
    Literal,
    columns,
    conjunction,
)
from slackwater.algebra.relation import Aggregate, Distinct, Filter, Project, Relation, Scan, Union
from slackwater.tvr import zset
from slackwater.tvr.restrict import restrict
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


@dataclass(frozen=True)
class AggregateState:
    """The state of one aggregate, stored under `id`."""

    node: Aggregate
    id: str

    @cached_property
    def partials(self) -> tuple[Partial, ...]:
        """The sums that are kept, the row count first."""
        wanted = [Partial(None, None)]
        for agg in self.node.aggs:
            wanted += _partials(agg)
        return tuple(dict.fromkeys(wanted))

    @property
    def schema(self) -> Schema:
        """Keys, then partial sums."""
        keys = [Field(f"k{i}", k.type, True) for i, k in enumerate(self.node.keys)]
        sums = [Field(f"s{i}", p.type, False) for i, p in enumerate(self.partials)]
        return (*keys, *sums)

    def scan(self, time: str = "") -> Scan:
        """The state as an input."""
        return Scan(self.id + time, self.id, self.schema)

    @property
    def _names(self) -> tuple[str, ...]:
        return tuple(f.name for f in self.schema)

    # -- computing it

    def initial(self, rows: Relation) -> Relation:
        """The state of plain rows."""
        return self._summed(zset.with_weight(rows))

    def _summed(self, z: Relation) -> Relation:
        """γ of a Z-relation: every partial sum weighted."""
        weight = zset.weight(z)
        sums = tuple(_weighted(p, weight) for p in self.partials)
        grouped = Aggregate(z, self.node.keys, sums, self._names)
        return self._without_nulls(grouped)

    def _without_nulls(self, grouped: Relation) -> Relation:
        row = columns(grouped.schema)
        count = len(self.node.keys)
        exprs: list[Expr] = list(row[:count])
        for column, partial in zip(row[count:], self.partials, strict=True):
            exprs.append(_or_zero(column, partial.type))
        return Project(grouped, tuple(exprs), self._names)

    def change(self, delta: Relation) -> Relation:
        """ΔS: affected groups as they were with weight −1, as they become with weight +1."""
        added = self._summed(delta)
        keys = columns(added.schema)[: len(self.node.keys)]
        before: Relation = self.scan("@old")
        if keys:
            wanted = Distinct(Project(added, keys, self._names[: len(keys)]))
            before = restrict(before, keys, wanted)
        after = self._merged(Union((before, added)))
        return zset.consolidate(zset.plus([zset.with_weight(after), zset.minus(before)]))

    def _merged(self, both: Relation) -> Relation:
        row = columns(both.schema)
        count = len(self.node.keys)
        sums = tuple(AggCall(_total_type(c.type), True, "sum", (c,)) for c in row[count:])
        merged = self._without_nulls(Aggregate(both, row[:count], sums, self._names))
        if not count:
            return merged
        rows = columns(merged.schema)[count]
        return Filter(merged, Call(BOOLEAN, False, ">", (rows, zset.ZERO)))

    # -- reading it

    def output(self, rows: Relation) -> Relation:
        """The aggregate's own rows, from rows of the state; a weight behind them is kept."""
        row = columns(rows.schema)
        count = len(self.node.keys)
        exprs: list[Expr] = list(row[:count])
        exprs += [self._finished(agg, row) for agg in self.node.aggs]
        names = self.node.names
        if rows.width > len(self.schema):
            return Project(rows, (*exprs, row[-1]), (*names, WEIGHT))
        return Project(rows, tuple(exprs), names)

    def _finished(self, agg: AggCall, row: tuple[Column, ...]) -> Expr:
        parts = [row[len(self.node.keys) + self.partials.index(p)] for p in _partials(agg)]
        if agg.name == "count":
            return parts[0]
        total, present = parts
        value = _average(agg, total, present) if agg.name == "avg" else _cast(total, agg.type)
        empty = Call(BOOLEAN, False, "=", (present, zset.ZERO))
        return Call(agg.type, True, "case", (empty, Literal(agg.type, True, None), value))


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
        quotient = functions.call("/", [summed, _cast(present, Decimal(20, 0))])
    else:
        quotient = functions.call("/", [_cast(total, DOUBLE), _cast(present, DOUBLE)])
    assert quotient is not None
    return _cast(quotient, agg.type)
