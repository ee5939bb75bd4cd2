"""CAST and TRY_CAST on the local engine, as Spark's ANSI mode has them.

DuckDB rounds where Spark cuts (1.9 to INT), and reads text more freely; so fractions are cut, and
text must look as Spark wants it. `bad` stands for what a failing cast gives: an error, or NULL.
"""

from __future__ import annotations

from slackwater.algebra.expr import Cast
from slackwater.algebra.functions.storing import OVERFLOW, overflow_message
from slackwater.engine.local_errors import fail, needs_spark
from slackwater.engine.local_numbers import DUCK_TYPES, number_type, whole_digits
from slackwater.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    INT,
    NULL,
    SMALLINT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    TINYINT,
    DataType,
    Decimal,
    is_fractional,
    is_integral,
)

_MAX: dict[DataType, int] = {TINYINT: 127, SMALLINT: 32767, INT: 2147483647, BIGINT: 2**63 - 1}
_BLANKS = "'" + "".join(map(chr, range(1, 33))) + chr(127) + "'"
_INTEGER = r"[+-]?[0-9]+"
_DECIMAL = r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)"
_DOUBLE = _DECIMAL + r"([eE][+-]?[0-9]{1,3})?"


def duck_type(t: DataType) -> str:
    """The DuckDB type that holds values of a Spark type; timestamps are UTC without a zone."""
    if isinstance(t, Decimal) or t in DUCK_TYPES:
        return number_type(t)
    return _OTHER.get(t, t.sql)


_OTHER: dict[DataType, str] = {
    BOOLEAN: "BOOLEAN",
    STRING: "VARCHAR",
    DATE: "DATE",
    TIMESTAMP: "TIMESTAMP",
    TIMESTAMP_NTZ: "TIMESTAMP",
    NULL: '"NULL"',
}


def cast_text(cast: Cast, text: str) -> str:
    """SQL of the cast of `text`, the value's."""
    source, target, safe = cast.arg.type, cast.type, cast.safe
    if source == target or {source, target} == {TIMESTAMP, TIMESTAMP_NTZ}:
        return text
    if source == NULL:
        return f"CAST(NULL AS {duck_type(target)})"
    if source == STRING:
        return _from_string(text, target, safe)
    if target == STRING:
        return _to_string(text, source)
    if target == BOOLEAN:
        return f"({text} <> 0)"
    if is_integral(target):
        return _to_integral(text, source, target, _overflow(cast, "CAST_OVERFLOW"))
    if isinstance(target, Decimal):
        bad = _overflow(cast, "NUMERIC_VALUE_OUT_OF_RANGE")
        return _to_decimal(text, source, target, safe, bad)
    return f"CAST({text} AS {duck_type(target)})"


def _bad(safe: bool, name: str, target: DataType) -> str:
    if safe:
        return "NULL"
    return fail(
        name, f"The value cannot be cast to {target.sql}. Use try_cast to get NULL instead."
    )


def _overflow(cast: Cast, name: str) -> str:
    """What a number that is too large gives; a column has an error of its own."""
    if cast.column is None:
        return _bad(cast.safe, name, cast.type)
    return fail(OVERFLOW, overflow_message(cast.arg.type, cast.type, cast.column))


def _to_string(text: str, source: DataType) -> str:
    return f"CAST({text} AS VARCHAR)"


def _to_integral(text: str, source: DataType, target: DataType, bad: str) -> str:
    """Fractions are cut toward zero; the range is checked on the whole part."""
    if source == BOOLEAN:
        return f"CAST({text} AS {duck_type(target)})"
    top = _MAX[target]
    plain = f"CAST({text} AS {duck_type(target)})"
    if is_integral(source):
        if _MAX[source] <= top:
            return plain
        # DuckDB drops a bare narrowing cast from a comparison, and its check with it.
        outside = f"{text} NOT BETWEEN {-top - 1} AND {top}"
        return f"(CASE WHEN {outside} THEN {bad} ELSE {plain} END)"
    whole = f"trunc({text})"
    if isinstance(source, Decimal):
        inside = (
            f"{whole} BETWEEN CAST({-top - 1} AS DECIMAL(38,0)) AND CAST({top} AS DECIMAL(38,0))"
        )
    else:
        inside = f"{whole} >= CAST({-top - 1} AS DOUBLE) AND {whole} < CAST({top + 1} AS DOUBLE)"
    edge = ""
    if is_fractional(source) and target == BIGINT:
        edge = f"WHEN {text} = CAST({top + 1} AS DOUBLE) THEN {top} "
    return (
        f"(CASE WHEN {text} IS NULL THEN NULL"
        f" WHEN {inside} THEN CAST({whole} AS {duck_type(target)}) {edge}ELSE {bad} END)"
    )


def _to_decimal(text: str, source: DataType, target: Decimal, safe: bool, bad: str) -> str:
    """Half away from zero in both engines; the range is checked where it can be left."""
    plain = f"CAST({text} AS {number_type(target)})"
    if source == BOOLEAN:
        plain = f"CAST(CAST({text} AS INTEGER) AS {number_type(target)})"
    tried = plain.replace("CAST", "TRY_CAST", 1)
    if safe:
        return tried
    whole = target.precision - target.scale
    if is_integral(source) and whole >= whole_digits(source):
        return plain
    if isinstance(source, Decimal) and (
        whole > whole_digits(source)
        or (target.scale >= source.scale and whole >= whole_digits(source))
    ):
        return plain
    return f"(CASE WHEN {text} IS NOT NULL AND {tried} IS NULL THEN {bad} ELSE {tried} END)"


# ---- from text ----------------------------------------------------------------------------


def _trimmed(text: str) -> str:
    """Without blanks and control characters at the ends, as Spark reads numbers."""
    return f"trim({text}, {_BLANKS})"


def _from_string(text: str, target: DataType, safe: bool) -> str:
    bad = _bad(safe, "CAST_INVALID_INPUT", target)
    if target == BOOLEAN:
        word = f"lower({_trimmed(text)})"
        return (
            f"(CASE WHEN {text} IS NULL THEN NULL"
            f" WHEN {word} IN ('t', 'true', 'y', 'yes', '1') THEN TRUE"
            f" WHEN {word} IN ('f', 'false', 'n', 'no', '0') THEN FALSE ELSE {bad} END)"
        )
    if is_integral(target):
        return _parsed(text, _INTEGER, target, bad, bad)
    if isinstance(target, Decimal):
        return _decimal_from_string(text, target, safe, bad)
    if is_fractional(target):
        return _parsed(text, _DOUBLE, target, needs_spark("text as a number"), bad)
    return _moment_from_string(text, target, bad)


def _parsed(text: str, pattern: str, target: DataType, other: str, bad: str) -> str:
    """Text of the pattern parsed (`bad` if out of range), any other text to `other`."""
    tried = f"TRY_CAST({_trimmed(text)} AS {duck_type(target)})"
    return (
        f"(CASE WHEN {text} IS NULL THEN NULL"
        f" WHEN NOT regexp_full_match({_trimmed(text)}, '{pattern}') THEN {other}"
        f" WHEN {tried} IS NULL THEN {bad} ELSE {tried} END)"
    )


def _decimal_from_string(text: str, target: Decimal, safe: bool, bad: str) -> str:
    """Plain digits here, exponents and the rest on Spark."""
    outside = _bad(safe, "NUMERIC_VALUE_OUT_OF_RANGE", target)
    return _parsed(text, _DECIMAL, target, needs_spark("text as a decimal"), outside)


_DAY = r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}"
_CLOCK = r"[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?"


def _moment_from_string(text: str, target: DataType, bad: str) -> str:
    """The usual ISO forms here, all others on Spark."""
    word = _trimmed(text)
    tried = f"TRY_CAST({word} AS {duck_type(target)})"
    pattern = _DAY if target == DATE else f"{_DAY}([ T]{_CLOCK})?"
    return (
        f"(CASE WHEN {text} IS NULL THEN NULL"
        f" WHEN NOT regexp_full_match({word}, '{pattern}') OR starts_with({word}, '0000')"
        f" THEN {needs_spark('text as a moment')}"
        f" WHEN {tried} IS NULL THEN {bad} ELSE {tried} END)"
    )
