"""Constants, with the types Spark gives them."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal as Dec

from sqlglot import exp

from slackwater.algebra.expr import Literal
from slackwater.errors import SqlError
from slackwater.types import (
    BIGINT,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    SMALLINT,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    TINYINT,
    Atomic,
    DataType,
    Decimal,
)

_LIMITS = {TINYINT: 2**7, SMALLINT: 2**15, INT: 2**31, BIGINT: 2**63}
_SECONDS = {"day": 86400, "hour": 3600, "minute": 60, "second": 1, "week": 7 * 86400}
_SMALL = {"millisecond": 1000, "microsecond": 1}
_MONTHS = {"year": 12, "month": 1, "quarter": 3}


def number(text: str) -> Literal:
    """A numeric constant: INT, BIGINT or DECIMAL; DOUBLE with an exponent.

    >>> number("1.50").type.sql, number("3000000000").type.sql
    ('DECIMAL(3,2)', 'BIGINT')
    """
    if re.fullmatch(r"-?\d+", text):
        value = int(text)
        for type_ in (INT, BIGINT):
            if -_LIMITS[type_] <= value < _LIMITS[type_]:
                return Literal(type_, False, value)
        return _decimal(text)
    if re.fullmatch(r"-?(\d+\.?\d*|\.\d+)", text):
        return _decimal(text)
    return Literal(DOUBLE, False, float(text))


def _decimal(text: str) -> Literal:
    value = Dec(text)
    _, digits, exponent = value.as_tuple()
    scale = max(0, -int(exponent))
    precision = max(len(digits), scale)
    if precision > 38:
        raise SqlError(
            f"Number {text} has more than 38 digits.",
            code="NUMBER_OUT_OF_RANGE",
            hint="Write it with an exponent (1e40) to make it a DOUBLE.",
        )
    return Literal(Decimal(precision, scale), False, value)


def typed(node: exp.Expr, to: DataType) -> Literal | None:
    """A constant with its type written on it: 3L, 1.5BD, DATE '2020-01-01'."""
    text = node.this
    if not node.is_string and to in _LIMITS and re.fullmatch(r"\d+", text):
        return Literal(to, False, int(text)) if int(text) < _LIMITS[to] else None
    if not node.is_string and to in (DOUBLE, FLOAT) and re.fullmatch(r"[\d.]+", text):
        return Literal(to, False, float(text)) if to == DOUBLE else None
    if node.is_string and isinstance(to, Decimal) and re.fullmatch(r"\d+\.?\d*|\.\d+", text):
        made = _decimal(text)
        return made if made.type == to else None
    if node.is_string and to == DATE and re.fullmatch(r"\d{4}-\d{2}-\d{2}", text):
        return Literal(DATE, False, _date(text))
    if node.is_string and to in (TIMESTAMP, TIMESTAMP_NTZ):
        return _timestamp(text, to)
    return None


def _date(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError as error:
        raise SqlError(
            f"'{text}' is not a date.", code="BAD_LITERAL", hint="Write DATE 'YYYY-MM-DD'."
        ) from error


def _timestamp(text: str, to: DataType) -> Literal | None:
    if not re.fullmatch(r"\d{4}-\d{2}-\d{2}([ T]\d{2}:\d{2}:\d{2}(\.\d{1,6})?)?", text):
        return None
    try:
        value = datetime.fromisoformat(text)
    except ValueError as error:
        raise SqlError(
            f"'{text}' is not a timestamp.",
            code="BAD_LITERAL",
            hint="Write TIMESTAMP 'YYYY-MM-DD HH:MM:SS'.",
        ) from error
    return Literal(to, False, value.replace(tzinfo=UTC) if to == TIMESTAMP else value)


def interval(node: exp.Expr, sign: int = 1) -> Literal | None:
    """INTERVAL 3 DAYS and the like: a day-time value, or months; None for other forms."""
    unit, value = node.args.get("unit"), node.this
    if unit is None or not isinstance(value, exp.Literal):
        return None
    name = unit.name.lower().removesuffix("s")
    if not re.fullmatch(r"[+-]?\d+", value.this.strip()):
        return None
    count = sign * int(value.this)
    if name in _MONTHS:
        kind = "year" if name == "year" else "month"
        return Literal(Atomic(f"interval {kind}"), False, count * _MONTHS[name])
    if name in _SECONDS:
        kind = "day" if name == "week" else name
        length = timedelta(seconds=count * _SECONDS[name])
        return Literal(Atomic(f"interval {kind}"), False, length)
    if name in _SMALL:
        length = timedelta(microseconds=count * _SMALL[name])
        return Literal(Atomic("interval second"), False, length)
    return None
