"""Which type wins, and where Spark's ANSI analyzer inserts casts.

The laws are those of Spark's `AnsiTypeCoercion`, `Cast` and `DecimalType`, with
`spark.sql.decimalOperations.allowPrecisionLoss = true`. `tests/test_typing.py` asks the analyzer
about every pair of types.
"""

from __future__ import annotations

import datetime as dt
import decimal
from collections.abc import Sequence
from typing import Any

from slackwater.algebra.expr import Cast, Expr, Literal, SparkCall
from slackwater.errors import InternalError, SqlError
from slackwater.types import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DAY_TIME,
    DOUBLE,
    FLOAT,
    INT,
    INTEGRAL,
    NULL,
    SMALLINT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    TINYINT,
    Array,
    Atomic,
    DataType,
    Decimal,
    Field,
    Map,
    Struct,
    is_atomic,
    is_fractional,
    is_integral,
    is_numeric,
)

MAX_DIGITS = 38
MIN_ADJUSTED_SCALE = 6
SYSTEM_DECIMAL = Decimal(38, 18)
DATETIMES: tuple[DataType, ...] = (DATE, TIMESTAMP, TIMESTAMP_NTZ)
_PRECEDENCE: tuple[DataType, ...] = (*INTEGRAL, FLOAT, DOUBLE)
_INTEGRAL_DIGITS: dict[DataType, int] = {TINYINT: 3, SMALLINT: 5, INT: 10, BIGINT: 20}
_LIMITS: dict[DataType, int] = {TINYINT: 7, SMALLINT: 15, INT: 31, BIGINT: 63}


def is_interval(t: DataType) -> bool:
    """An ANSI interval, of days and seconds or of years and months."""
    return isinstance(t, Atomic) and t.name.startswith("interval")


def literal(value: Any, type: DataType | None = None) -> Literal:
    """A constant, with the type Spark's parser gives it unless told otherwise.

    >>> literal(1).type.sql, literal(3_000_000_000).type.sql
    ('INT', 'BIGINT')
    >>> literal(decimal.Decimal("0.05")).type.sql
    'DECIMAL(2,2)'
    """
    return Literal(type or _literal_type(value), value is None, value)


def _literal_type(value: Any) -> DataType:
    match value:
        case None:
            return NULL
        case bool():
            return BOOLEAN
        case int():
            return _integer_type(value)
        case float():
            return DOUBLE
        case decimal.Decimal():
            return _decimal_type(value)
        case str():
            return STRING
        case bytes():
            return BINARY
        case dt.datetime():
            return TIMESTAMP_NTZ if value.tzinfo is None else TIMESTAMP
        case dt.date():
            return DATE
        case dt.timedelta():
            return DAY_TIME
    raise InternalError(f"no SQL literal holds a {value.__class__.__name__}")


def _integer_type(value: int) -> DataType:
    for t in (INT, BIGINT):
        if -(2 ** _LIMITS[t]) <= value < 2 ** _LIMITS[t]:
            return t
    return _decimal_type(decimal.Decimal(value))


def _decimal_type(value: decimal.Decimal) -> Decimal:
    _, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int):
        raise InternalError(f"{value} is not a finite decimal")
    scale = max(-exponent, 0)
    return Decimal(max(len(digits) + max(exponent, 0), scale, 1), scale)


def adjusted(precision: int, scale: int) -> Decimal:
    """The law of precision loss: beyond 38 digits the scale shrinks, to 6 at least, so that
    the integral digits survive."""
    if precision <= MAX_DIGITS:
        return Decimal(precision, scale)
    integral = precision - scale
    return Decimal(MAX_DIGITS, max(MAX_DIGITS - integral, min(scale, MIN_ADJUSTED_SCALE)))


def bounded(precision: int, scale: int) -> Decimal:
    """A decimal cut to 38 digits without adjusting the scale."""
    return Decimal(min(precision, MAX_DIGITS), min(scale, MAX_DIGITS))


def decimal_for(expr: Expr) -> Decimal:
    """The decimal that holds an integral or decimal expression.

    An integer literal needs only its own digits, a column those of its type.
    """
    t = expr.type
    if isinstance(t, Decimal):
        return t
    if isinstance(expr, Literal) and expr.value is not None:
        return Decimal(len(str(abs(expr.value))), 0)
    return decimal_of(t)


def decimal_of(t: DataType) -> Decimal:
    """The decimal that holds every value of an exact number type."""
    return t if isinstance(t, Decimal) else Decimal(_INTEGRAL_DIGITS[t], 0)


def wider_decimal(a: Decimal, b: Decimal) -> Decimal:
    """The decimal that holds the digits of both, on either side of the point."""
    scale = max(a.scale, b.scale)
    integral = max(a.precision - a.scale, b.precision - b.scale)
    if integral + scale <= MAX_DIGITS:
        return Decimal(integral + scale, scale)
    return Decimal(MAX_DIGITS, max(0, min(scale, MAX_DIGITS - integral)))


def _covers(a: Decimal, b: DataType) -> bool:
    other = decimal_of(b)
    return a.precision - a.scale >= other.precision - other.scale and a.scale >= other.scale


def tightest(a: DataType, b: DataType) -> DataType | None:
    """The narrower of two types' common types that loses nothing and parses nothing."""
    if a == b or b == NULL:
        return a
    if a == NULL:
        return b
    if a in _PRECEDENCE and b in _PRECEDENCE:
        wide = max(a, b, key=_PRECEDENCE.index)
        return DOUBLE if wide == FLOAT else wide
    for one, other in ((a, b), (b, a)):
        if isinstance(one, Decimal) and is_integral(other) and _covers(one, other):
            return one
        if one == DATE and other in (TIMESTAMP, TIMESTAMP_NTZ):
            return other
        if one == TIMESTAMP and other == TIMESTAMP_NTZ:
            return TIMESTAMP
    return None


def _wider_number(a: DataType, b: DataType) -> DataType | None:
    if not (is_numeric(a) and is_numeric(b)):
        return None
    if is_fractional(a) or is_fractional(b):
        return DOUBLE
    return wider_decimal(decimal_of(a), decimal_of(b))


def _wider_nested(a: DataType, b: DataType, strings: bool) -> DataType | None:
    """Arrays, maps and structs of one shape widen part by part; names are those of the first."""
    if isinstance(a, Array) and isinstance(b, Array):
        element = wider(a.element, b.element, strings=strings)
        return element and Array(element, a.contains_null or b.contains_null)
    if isinstance(a, Map) and isinstance(b, Map):
        key = wider(a.key, b.key, strings=strings)
        value = wider(a.value, b.value, strings=strings)
        nulls = a.value_contains_null or b.value_contains_null
        return Map(key, value, nulls) if key and value else None
    if isinstance(a, Struct) and isinstance(b, Struct) and len(a.fields) == len(b.fields):
        fields = []
        for f, g in zip(a.fields, b.fields, strict=True):
            t = wider(f.type, g.type, strings=strings)
            if t is None or f.name.lower() != g.name.lower():
                return None
            fields.append(Field(f.name, t, f.nullable or g.nullable))
        return Struct(tuple(fields))
    return None


def with_string(other: DataType) -> DataType | None:
    """What a string becomes beside another type: numbers widen to BIGINT or DOUBLE."""
    if is_integral(other):
        return BIGINT
    if is_numeric(other):
        return DOUBLE
    return None if is_interval(other) or not is_atomic(other) else other


def wider(a: DataType, b: DataType, *, strings: bool = True) -> DataType | None:
    """The common type of two; with `strings`, text is promoted to the other's type."""
    found = tightest(a, b) or _wider_number(a, b) or _wider_nested(a, b, strings)
    if found is not None or not strings:
        return found
    if a == STRING:
        return with_string(b)
    return with_string(a) if b == STRING else None


def common_type(types: Sequence[DataType], *, strings: bool = True) -> DataType | None:
    """The type to which all can be coerced, or None."""
    result: DataType = NULL
    for t in sorted(types, key=lambda t: t != STRING):
        found = wider(result, t, strings=strings)
        if found is None:
            return None
        result = found
    return result


def cast_nullable(source: DataType, target: DataType) -> bool:
    """Does Spark's analyzer take a cast to give NULL for a value that is not NULL?

    Under ANSI such casts raise instead, but their nullability is kept.
    """
    if source in (NULL, target) or (source, target) == (STRING, BINARY):
        return False
    if source == STRING:
        return True
    if target == STRING:
        return False
    if source in (TIMESTAMP,) and target in (TINYINT, SMALLINT, INT):
        return True
    if is_fractional(source) and target == TIMESTAMP:
        return True
    if target == DATE:
        return source != TIMESTAMP
    if source == DATE:
        return target != TIMESTAMP
    if isinstance(target, Decimal):
        return not _safe_to_decimal(source, target)
    return (is_fractional(source) or isinstance(source, Decimal)) and is_integral(target)


def can_upcast(source: DataType, target: DataType) -> bool:
    """Does every value survive the cast unharmed? Then TRY_CAST adds no NULL."""
    if source in (NULL, target) or target == STRING:
        return True
    if source in DATETIMES:
        return target in (TIMESTAMP, TIMESTAMP_NTZ)
    if isinstance(target, Decimal):
        return is_numeric(source) and not is_fractional(source) and _covers(target, source)
    if isinstance(source, Decimal):
        return source.scale == 0 and source.precision < _INTEGRAL_DIGITS.get(target, 0)
    if not (source in _PRECEDENCE and target in _PRECEDENCE):
        return False
    return _PRECEDENCE.index(source) <= _PRECEDENCE.index(target)


def _safe_to_decimal(source: DataType, target: Decimal) -> bool:
    if source == BOOLEAN:
        return target.precision - target.scale >= 1
    if isinstance(source, Decimal):
        # with an integral digit to spare, rounding cannot overflow
        spare = (target.precision - target.scale) - (source.precision - source.scale)
        return spare > 0 or _covers(target, source)
    return is_integral(source) and _covers(target, source)


def can_cast(source: DataType, target: DataType) -> bool:
    """Does ANSI SQL allow the explicit cast between two atomic types?"""
    if source in (NULL, target) or STRING in (source, target):
        return True
    if is_numeric(source) and is_numeric(target):
        return True
    if BOOLEAN in (source, target):
        return is_numeric(source) or is_numeric(target)
    if source in DATETIMES and target in DATETIMES:
        return True
    if source == TIMESTAMP:
        return is_numeric(target)
    if target == TIMESTAMP:
        return is_numeric(source)
    return is_integral(source) and target == BINARY


def can_assign(source: DataType, target: DataType) -> bool:
    """Does ANSI store assignment (INSERT, and implicit casts of arguments) allow it?"""
    if source in (NULL, target) or target == STRING:
        return True
    if is_numeric(source) and is_numeric(target):
        return True
    return source in DATETIMES and target in DATETIMES


def portable_cast(source: DataType, target: DataType) -> bool:
    """Do both engines give the same value for the cast?

    Not: printing floats and binaries, floats to decimals (Java's decimal digits of a double),
    numbers to and from timestamps, binaries.
    """
    if source in (NULL, target):
        return not is_interval(target)
    if BINARY in (source, target) or is_interval(source) or is_interval(target):
        return False
    if target == STRING:
        return not is_fractional(source)
    if source == STRING:
        return True
    if source in DATETIMES or target in DATETIMES:
        return source in DATETIMES and target in DATETIMES
    return not (is_fractional(source) and isinstance(target, Decimal))


def make_cast(expr: Expr, target: DataType) -> Expr:
    """An implicit cast, none where the type is right; Spark's alone where not portable."""
    source = expr.type
    if source == target:
        return expr
    nullable = expr.nullable or cast_nullable(source, target)
    if is_atomic(source) and is_atomic(target) and portable_cast(source, target):
        return Cast(target, nullable, expr)
    return SparkCall(target, nullable, f"CAST({{0}} AS {target.sql})", (expr,))


def wrong_types(name: str, args: Sequence[Expr], takes: str) -> SqlError:
    """The refusal of a function for its arguments."""
    given = ", ".join(a.type.sql for a in args) or "no arguments"
    return SqlError(
        f"'{name}' cannot be applied to {given}.",
        code="WRONG_TYPES",
        hint=f"It takes {takes}. Cast the arguments where they differ.",
    )
