"""Date and time functions on the local engine; timestamps are UTC without a zone there."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable

from slackwater.algebra.expr import Call, Literal
from slackwater.engine.local_errors import fail, needs_spark
from slackwater.errors import InternalError

Emulation = Callable[[Call, list[str]], str]

_OVERFLOW = fail("DATETIME_OVERFLOW", "The moment is out of range.")
_DAYS = ("mo", "tu", "we", "th", "fr", "sa", "su")


def _part(sql: str) -> Emulation:
    return lambda expr, args: f"CAST({sql.format(*args)} AS INTEGER)"


def _move(sign: str) -> Emulation:
    """Days overflow in Spark beyond its own range only; both leave the years 1 to 9999."""

    def move(expr: Call, args: list[str]) -> str:
        return f"({args[0]} {sign} CAST({args[1]} AS INTEGER))"

    return move


def _add_months(expr: Call, args: list[str]) -> str:
    return f"CAST({args[0]} + to_months(CAST({args[1]} AS INTEGER)) AS DATE)"


def _datediff(expr: Call, args: list[str]) -> str:
    return f"CAST({args[0]} - {args[1]} AS INTEGER)"


def _next_day(expr: Call, args: list[str]) -> str:
    """The first such weekday after the date."""
    target = _DAYS.index(_constant(expr, 1)[:2]) + 1
    date = args[0]
    later = f"CASE WHEN isodow({date}) < {target} THEN {target} ELSE {target + 7} END"
    return f"({date} + CAST(({later}) - isodow({date}) AS INTEGER))"


def _constant(expr: Call, position: int) -> str:
    arg = expr.args[position]
    if not isinstance(arg, Literal) or not isinstance(arg.value, str):
        raise InternalError(f"{expr.name} without a constant unit is not portable")
    return arg.value.lower()


_UNITS = {"yyyy": "year", "yy": "year", "mon": "month", "mm": "month", "dd": "day"}


def _trunc(expr: Call, args: list[str]) -> str:
    unit = _constant(expr, 1)
    return f"CAST(date_trunc('{_UNITS.get(unit, unit)}', {args[0]}) AS DATE)"


def _date_trunc(expr: Call, args: list[str]) -> str:
    unit = _constant(expr, 0)
    name = _UNITS.get(unit, unit) + ("s" if unit in ("millisecond", "microsecond") else "")
    return f"date_trunc('{name}', {args[1]})"


def _make_date(expr: Call, args: list[str]) -> str:
    year, month, day = args
    bad = fail("DATETIME_FIELD_OUT_OF_BOUNDS", "Invalid year, month or day.")
    far = needs_spark("a year outside 1 to 9999")
    missing = " OR ".join(f"{a} IS NULL" for a in args)
    return (
        f"(CASE WHEN {missing} THEN NULL WHEN {year} NOT BETWEEN 1 AND 9999 THEN {far}"
        f" WHEN {month} NOT BETWEEN 1 AND 12 OR {day} NOT BETWEEN 1 AND 31 THEN {bad}"
        f" WHEN {day} > day(last_day(make_date({year}, {month}, 1))) THEN {bad}"
        f" ELSE make_date({year}, {month}, {day}) END)"
    )


def _micros(per: int) -> Emulation:
    """Moments that many microseconds times a number after 1970."""
    limit = (2**63 - 1) // per

    def micros(expr: Call, args: list[str]) -> str:
        n = args[0]
        made = f"make_timestamp(CAST({n} AS BIGINT) * {per})"
        if per == 1:
            return made
        inside = f"{n} IS NULL OR {n} BETWEEN {-limit} AND {limit}"
        return f"(CASE WHEN {inside} THEN {made} ELSE {_OVERFLOW} END)"

    return micros


def _unix(per: int) -> Emulation:
    """Whole units since 1970, rounded down."""

    def unix(expr: Call, args: list[str]) -> str:
        micros = f"epoch_us({args[0]})"
        if per == 1:
            return micros
        return f"(({micros} - ((({micros} % {per}) + {per}) % {per})) // {per})"

    return unix


def interval(literal: Literal) -> str:
    """An interval literal."""
    if isinstance(literal.value, int):
        return f"to_months({literal.value})"
    span: dt.timedelta = literal.value
    micros = (span - dt.timedelta(days=span.days)) // dt.timedelta(microseconds=1)
    return f"(to_days({span.days}) + to_microseconds({micros}))"


DATES: dict[str, Emulation] = {
    "year": _part("year({0})"),
    "month": _part("month({0})"),
    "day": _part("day({0})"),
    "quarter": _part("quarter({0})"),
    "dayofweek": _part("dayofweek({0}) + 1"),
    "dayofyear": _part("dayofyear({0})"),
    "weekofyear": _part("weekofyear({0})"),
    "weekday": _part("isodow({0}) - 1"),
    "hour": _part("hour({0})"),
    "minute": _part("minute({0})"),
    "second": _part("second({0})"),
    "unix_date": _part("{0} - DATE '1970-01-01'"),
    "unix_seconds": _unix(1_000_000),
    "unix_millis": _unix(1_000),
    "unix_micros": _unix(1),
    "timestamp_seconds": _micros(1_000_000),
    "timestamp_millis": _micros(1_000),
    "timestamp_micros": _micros(1),
    "date_add": _move("+"),
    "date_sub": _move("-"),
    "add_months": _add_months,
    "datediff": _datediff,
    "last_day": lambda expr, args: f"last_day({args[0]})",
    "next_day": _next_day,
    "trunc": _trunc,
    "date_trunc": _date_trunc,
    "make_date": _make_date,
    "date_from_unix_date": lambda expr, args: f"(DATE '1970-01-01' + CAST({args[0]} AS INTEGER))",
}
