"""Variance and standard deviation of exact numbers, from n, Σx and Σx².

    Σ(x − x̄)² = Σx² − m·(Σx + r) − r²/n        m: the mean, rounded;  r = Σx − n·m

All but r²/n is exact in 38 digits, and r²/n is at most half of what stands before it, so that
nothing is lost where the mean is far greater than the spread. Spark adds up doubles row by row:
where the mean is more than a million times the spread, its answer depends on the order of rows
by more than the comparer allows.
"""

from __future__ import annotations

from collections.abc import Sequence

from slackwater.algebra import functions
from slackwater.algebra.coercion import decimal_of
from slackwater.algebra.expr import AggCall, Call, Cast, Expr, Literal, columns
from slackwater.algebra.relation import Relation
from slackwater.sql import build
from slackwater.tvr import zset
from slackwater.tvr.partials import EXACT_SCALE, cast
from slackwater.types import BOOLEAN, DOUBLE, Decimal, is_integral

SPREADS = frozenset({"var_pop", "var_samp", "stddev_pop", "stddev_samp"})
MOST_DIGITS = 14
"""Squares of so many digits, ten thousand million of them, add up to 38 digits."""
_COUNT = Decimal(20, 0)


def exact_argument(agg: AggCall) -> Expr | None:
    """The exact numbers that a spread is taken of; None where their squares might not fit."""
    (arg,) = agg.args
    if not isinstance(arg, Cast) or arg.safe:
        return None
    number = arg.arg
    if not (is_integral(number.type) or isinstance(number.type, Decimal)):
        return None
    t = decimal_of(number.type)
    return number if t.precision <= MOST_DIGITS and 2 * t.scale <= EXACT_SCALE else None


def squared(number: Expr) -> Expr:
    """x², in as many digits as it may have."""
    wide = cast(number, decimal_of(number.type))
    return _call("*", wide, wide)


def with_deviations(sums: Relation, places: Sequence[tuple[int, ...]]) -> Relation:
    """Sums with a column Σ(x − x̄)² behind for each Σx², Σx and n that stand at these places.

    In steps, each over the columns of the one before: as one expression, an engine would compute
    the mean many times.
    """
    if not places:
        return sums
    width, count = sums.width, len(places)
    row = columns(sums.schema)
    means = build.with_columns(sums, [_rounded_mean(row[s], row[n]) for _, s, n in places], "m")
    row = columns(means.schema)
    rests = [_rest(row[s], row[n], row[width + i]) for i, (_, s, n) in enumerate(places)]
    both = build.with_columns(means, rests, "r")
    row = columns(both.schema)
    found = [
        _deviations(row[q], row[s], row[n], row[width + i], row[width + count + i])
        for i, (q, s, n) in enumerate(places)
    ]
    all_of_it = build.with_columns(both, found, "d")
    return build.pick(all_of_it, [*range(width), *range(both.width, all_of_it.width)])


def _at_least_one(count: Expr) -> Expr:
    return _call("greatest", count, zset.ONE)


def _rounded_mean(total: Expr, count: Expr) -> Expr:
    """m, in as many digits as the numbers have; zero where there are none."""
    assert isinstance(total.type, Decimal)
    scale = total.type.scale
    few = cast(total, Decimal(MOST_DIGITS + 10, scale))
    mean = Decimal(MOST_DIGITS + 1, scale)
    return Call(mean, True, "average", (few, _at_least_one(count)))


def _rest(total: Expr, count: Expr, mean: Expr) -> Expr:
    """r."""
    return _call("-", total, _call("*", mean, cast(count, _COUNT)))


def _deviations(squares: Expr, total: Expr, count: Expr, mean: Expr, rest: Expr) -> Expr:
    """Σ(x − x̄)², as the law above has it."""
    exact = _call("-", squares, _call("*", mean, _call("+", total, rest)))
    inexact = cast(rest, DOUBLE)
    small = _call("/", _call("*", inexact, inexact), cast(_at_least_one(count), DOUBLE))
    return _call("-", cast(exact, DOUBLE), small)


def spread(agg: AggCall, deviations: Expr, count: Expr) -> Expr:
    """The aggregate from Σ(x − x̄)² and n; NULL where there are too few values."""
    least = 2 if agg.name.endswith("_samp") else 1
    enough = Call(BOOLEAN, False, ">=", (count, Literal(count.type, False, least)))
    degrees = _call("-", count, zset.ONE) if least == 2 else count
    value = _call("/", deviations, cast(degrees, DOUBLE))
    if agg.name.startswith("stddev"):
        value = _call("sqrt", value)
    return build.case(enough, value, build.null(DOUBLE))


def _call(name: str, *args: Expr) -> Expr:
    made = functions.call(name, list(args))
    assert made is not None
    return made
