"""Casts of constants, done once: DuckDB prunes files and rows by plain constants only."""

from __future__ import annotations

import datetime as dt
import decimal
import re

from slackwater.algebra.coercion import literal
from slackwater.algebra.expr import Cast, Expr, Literal
from slackwater.types import DATE, DOUBLE, STRING, DataType, Decimal, is_integral

_DAY = re.compile(r"(\d{4})-(\d{1,2})-(\d{1,2})")


def folded(expr: Expr) -> Expr:
    """The constant that a cast of a constant gives, where that is plain; else the expression."""
    if not isinstance(expr, Cast):
        return expr
    arg = folded(expr.arg)
    if not isinstance(arg, Literal) or arg.value is None:
        return expr
    value = _value(arg, expr.type)
    return expr if value is None else literal(value, expr.type)


def _value(arg: Literal, target: DataType) -> object:
    if is_integral(arg.type):
        return _from_integer(arg.value, target)
    if isinstance(arg.type, Decimal) and isinstance(target, Decimal):
        return arg.value if _fits(decimal.Decimal(arg.value), target) else None
    if arg.type == STRING and target == DATE:
        return _date(arg.value)
    return None


def _from_integer(value: int, target: DataType) -> object:
    if target == DOUBLE and abs(value) < 2**53:
        return float(value)
    if isinstance(target, Decimal) and _fits(decimal.Decimal(value), target):
        return decimal.Decimal(value)
    limits = {"byte": 7, "short": 15, "integer": 31, "long": 63}
    if is_integral(target) and -(2 ** limits[target.json]) <= value < 2 ** limits[target.json]:
        return value
    return None


def _fits(value: decimal.Decimal, target: Decimal) -> bool:
    exponent = value.as_tuple().exponent
    assert isinstance(exponent, int)
    return -exponent <= target.scale and abs(value) < decimal.Decimal(10) ** (
        target.precision - target.scale
    )


def _date(text: str) -> dt.date | None:
    if (found := _DAY.fullmatch(text.strip(" "))) is None:
        return None
    try:
        return dt.date(*map(int, found.groups()))
    except ValueError:
        return None  # not a day: the cast raises when it runs
