"""Constants, computed once: DuckDB prunes files and rows by plain constants only, and what is
constant cannot raise in the middle of a query."""

from __future__ import annotations

import calendar
import datetime as dt
import decimal
import re

from slackwater.algebra.coercion import literal
from slackwater.algebra.expr import Call, Cast, Expr, Literal
from slackwater.types import BOOLEAN, DATE, DOUBLE, STRING, DataType, Decimal, is_integral

_DAY = re.compile(r"(\d{4})-(\d{1,2})-(\d{1,2})")
_NULL_TESTS = {"is_null": False, "is_not_null": True}
"""With the answer for what is never NULL."""
_LIMITS = {"byte": 7, "short": 15, "integer": 31, "long": 63}


def folded(expr: Expr) -> Expr:
    """The expression with casts and sums of constants computed, where the outcome is plain."""
    result: Expr = expr.rewrite(_fold)
    return result


def _fold(node: Expr) -> Expr:
    if isinstance(node, Cast) and isinstance(node.arg, Literal) and node.arg.value is not None:
        return _literal(_cast(node.arg, node.type), node)
    if isinstance(node, Call) and node.name in ("+", "-", "*") and len(node.args) == 2:
        left, right = node.args
        if isinstance(left, Literal) and isinstance(right, Literal):
            return _literal(_computed(node.name, left, right, node.type), node)
    return known(node)


def known(node: Expr) -> Expr:
    """Of what is never NULL the answer is known, as Spark says it, whatever would raise."""
    if isinstance(node, Call) and node.name in _NULL_TESTS and not node.args[0].nullable:
        return Literal(BOOLEAN, False, _NULL_TESTS[node.name])
    return node


def _literal(value: object, node: Expr) -> Expr:
    return node if value is None else literal(value, node.type)


def _cast(arg: Literal, target: DataType) -> object:
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
    return value if _is_whole(value, target) else None


def _is_whole(value: int, target: DataType) -> bool:
    if not is_integral(target):
        return False
    limit: int = 2 ** _LIMITS[target.json]
    return -limit <= value < limit


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


def _computed(name: str, left: Literal, right: Literal, target: DataType) -> object:
    """left + right and the like; None where it is not a number or date, or does not fit."""
    if left.value is None or right.value is None:
        return None
    if left.type == DATE and target == DATE and name in "+-":
        return _moved(left.value, right.value, 1 if name == "+" else -1)
    exact = all(is_integral(t) or isinstance(t, Decimal) for t in (left.type, right.type))
    if not exact:
        return None
    with decimal.localcontext(prec=80):
        a, b = decimal.Decimal(left.value), decimal.Decimal(right.value)
        value = {"+": a + b, "-": a - b, "*": a * b}[name]
    if isinstance(target, Decimal):
        return value if _fits(value, target) else None
    return int(value) if _is_whole(int(value), target) else None


def _moved(day: dt.date, step: object, sign: int) -> dt.date | None:
    """A date and an interval of days, or of months; a day that a month lacks is its last."""
    try:
        if isinstance(step, dt.timedelta):
            return day + sign * step if step == dt.timedelta(days=step.days) else None
        if not isinstance(step, int):
            return None
        months = day.year * 12 + day.month - 1 + sign * step
        year, month = divmod(months, 12)
        last = calendar.monthrange(year, month + 1)[1]
        return dt.date(year, month + 1, min(day.day, last))
    except (ValueError, OverflowError, IndexError):
        return None
