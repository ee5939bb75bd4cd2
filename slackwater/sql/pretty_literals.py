"""Constants in column names, as Spark prints them."""

from __future__ import annotations

import re
from decimal import Decimal

from sqlglot import exp

from slackwater.sql import literals
from slackwater.types import DATE, DOUBLE, FLOAT, TIMESTAMP, TIMESTAMP_NTZ, parse_type

_WORDS = {DATE: "DATE", TIMESTAMP: "TIMESTAMP", TIMESTAMP_NTZ: "TIMESTAMP_NTZ"}
_WEEK = 7


def number(text: str) -> str:
    """A number as Java prints it.

    >>> number("1e3"), number("1.50"), number(".5"), number("1e-7")
    ('1000.0', '1.50', '0.5', '1.0E-7')
    """
    if re.fullmatch(r"[\d.]+", text):
        return f"0{text}" if text.startswith(".") else text
    return double(float(text))


def double(value: float) -> str:
    """A double as Java prints it: with an exponent below 1e-3 and from 1e7.

    >>> double(12345678.9), double(-1e10), double(1.5)
    ('1.23456789E7', '-1.0E10', '1.5')
    """
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(value)
    _, digits, _ = Decimal(repr(value)).as_tuple()
    shown = "".join(map(str, digits)).rstrip("0")
    sign = "-" if value < 0 else ""
    return f"{sign}{shown[0]}.{shown[1:] or '0'}E{Decimal(repr(value)).adjusted()}"


def typed(node: exp.Expr) -> str:
    """A constant with its type written on it: 3L, 1.5D, DATE '2020-01-01'."""
    to = parse_type(node.args["to"].sql(dialect="spark"))
    if to in _WORDS and node.this.is_string:
        made = literals.typed(node.this, to)
        shown = str(node.this.this) if made is None else _moment(made.value)
        return f"{_WORDS[to]} '{shown}'"
    if to in (DOUBLE, FLOAT) and not node.this.is_string:
        return double(float(node.this.this))
    return str(node.this.this)


def _moment(value: object) -> str:
    text = str(value).removesuffix("+00:00")
    return text.rstrip("0") if "." in text else text


def interval(node: exp.Expr) -> str:
    """INTERVAL '2' MONTH, INTERVAL '01' HOUR."""
    unit, value = node.args.get("unit"), node.this
    if not isinstance(unit, exp.Var) or not isinstance(value, exp.Literal):
        return str(node.sql(dialect="spark"))
    name, count = unit.name.upper().removesuffix("S"), value.this
    if name == "WEEK":
        name, count = "DAY", str(int(count) * _WEEK)
    if name in ("HOUR", "MINUTE", "SECOND"):
        count = count.rjust(2, "0")
    return f"INTERVAL '{count}' {name}"
