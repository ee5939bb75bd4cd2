"""Partial sums over rows with weights: Σ value · weight where a condition holds.

Sums are kept in 38 digits. Counts are sums of the weights themselves.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from slackwater.algebra import functions
from slackwater.algebra.expr import FALSE, AggCall, Call, Column, Expr, Literal, columns
from slackwater.algebra.relation import Aggregate, Filter, Project, Relation
from slackwater.sql import build
from slackwater.tvr import zset
from slackwater.types import BIGINT, BOOLEAN, DataType, Decimal

EXACT_SCALE = 6
"""Products of decimals beyond 38 digits keep this scale; with more, they would be rounded."""
LARGEST_WEIGHT = Decimal(20, 0)
"""Holds every BIGINT, so that the cast needs no check."""
SMALLEST_WEIGHT = Decimal(7, 0)
"""What is multiplied at least; beyond it the run falls back to recompute."""


@dataclass(frozen=True)
class Partial:
    """A sum over a group's rows: of `value`, or of ones, where `condition` holds."""

    value: Expr | None
    condition: Expr | None

    @property
    def type(self) -> DataType:
        """BIGINT for counts, 38 digits for sums."""
        return BIGINT if self.value is None else sum_type(self.value.type)


ROWS = Partial(None, None)
"""The row count of a group."""


def summed(
    z: Relation, keys: Sequence[Expr], partials: Sequence[Partial], names: Sequence[str]
) -> Relation:
    """γ(z): the partial sums of each group of rows with weights, but of those that all are zero.

    The last partial is the row count, which becomes the weight.
    """
    weight = zset.weight(z)
    sums = tuple(_weighted(p, weight) for p in partials)
    return _but_zeros(Aggregate(z, tuple(keys), sums, tuple(names)), len(keys), partials)


def added_up(rows: Relation, count: int, partials: Sequence[Partial]) -> Relation:
    """The same, of rows that hold `count` keys and what they add to each sum."""
    row = columns(rows.schema)
    sums = tuple(total(c) for c in row[count:])
    return _but_zeros(Aggregate(rows, row[:count], sums, zset.names(rows)), count, partials)


def _but_zeros(grouped: Relation, count: int, partials: Sequence[Partial]) -> Relation:
    filled = without_nulls(grouped, count, partials)
    return Filter(filled, _any_not_zero(columns(filled.schema)[count:]))


def without_nulls(grouped: Relation, count: int, partials: Sequence[Partial]) -> Relation:
    """Sums of no rows as zero."""
    row = columns(grouped.schema)
    values = [or_zero(c, p.type) for c, p in zip(row[count:], partials, strict=True)]
    return Project(grouped, (*row[:count], *values), zset.names(grouped))


def total(column: Column, where: Expr | None = None) -> AggCall:
    """The sum of partial sums."""
    t = BIGINT if column.type == BIGINT else sum_type(column.type)
    return AggCall(t, True, "sum", (column,), where=where)


def share(partial: Partial, weight: Expr) -> Expr:
    """What one row adds to a sum; NULL where the condition does not hold."""
    value = weight if partial.value is None else times(partial.value, weight)
    if partial.condition is None:
        return value
    return build.case(partial.condition, value, build.null(value.type))


def _weighted(partial: Partial, weight: Expr) -> AggCall:
    value = weight if partial.value is None else times(partial.value, weight)
    t = BIGINT if partial.value is None else value.type
    return AggCall(t, True, "sum", (value,), where=partial.condition)


def times(value: Expr, weight: Expr) -> Expr:
    """value · weight, in 38 digits; weights are nearly always 1 or −1."""
    t = sum_type(value.type)
    wide = cast(value, t)
    if weight is zset.ONE:
        return wide
    negated = Call(t, True, "neg", (wide,))
    many = functions.call("*", [*_factors(value, weight, wide)])
    assert many is not None
    is_one = Call(BOOLEAN, weight.nullable, "=", (weight, zset.ONE))
    is_minus_one = Call(BOOLEAN, weight.nullable, "=", (weight, zset.MINUS_ONE))
    return Call(t, True, "case", (is_one, wide, is_minus_one, negated, cast(many, t)))


def _factors(value: Expr, weight: Expr, wide: Expr) -> tuple[Expr, Expr]:
    """Both as decimals whose product is exact: no digit is cut off, too many raise."""
    if isinstance(value.type, Decimal) and value.type.scale > EXACT_SCALE:
        digits = min(LARGEST_WEIGHT.precision, 37 - value.type.precision)
        return value, cast(weight, Decimal(max(SMALLEST_WEIGHT.precision, digits), 0))
    return wide, cast(weight, LARGEST_WEIGHT)


def sum_type(t: DataType) -> Decimal:
    """The type of a sum of exact values."""
    return Decimal(38, t.scale if isinstance(t, Decimal) else 0)


def cast(expr: Expr, t: DataType) -> Expr:
    """A cast between exact types, or to DOUBLE."""
    made = functions.cast(expr, t)
    assert made is not None
    return made


def or_zero(expr: Expr, t: DataType) -> Expr:
    """The value in a type; zero for NULL."""
    zero = cast(Literal(BIGINT, False, 0), t)
    return Call(t, False, "coalesce", (cast(expr, t), zero))


def above_zero(count: Expr) -> Expr:
    """count > 0, of a count that is not NULL."""
    return Call(BOOLEAN, False, ">", (count, zset.ZERO))


def _any_not_zero(sums: Sequence[Expr]) -> Expr:
    result: Expr = FALSE
    for one in sums:
        differs = Call(BOOLEAN, False, "!=", (one, cast(zset.ZERO, one.type)))
        result = differs if result is FALSE else build.disjunction(result, differs)
    return result
