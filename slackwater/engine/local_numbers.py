"""Numbers on the local engine: Spark's division, remainder, rounding and decimal results.

DuckDB checks the overflow of + - * on integers as Spark does. Its decimals hold 38 digits as
Spark's do, and round half away from zero when the scale shrinks, but it divides them as doubles,
and keeps results of small operands to 18 digits: quotients are computed here on unscaled
HUGEINTs, and operands widened first. An intermediate of more than 38 digits raises,
and the step runs on Spark.
"""

from __future__ import annotations

from collections.abc import Callable

from slackwater.algebra.expr import Call, Cast, Expr, Literal
from slackwater.engine.local_errors import fail, needs_spark
from slackwater.types import BIGINT, DOUBLE, FLOAT, INT, SMALLINT, TINYINT, DataType, Decimal

Emulation = Callable[[Call, list[str]], str]

DUCK_TYPES: dict[DataType, str] = {
    TINYINT: "TINYINT",
    SMALLINT: "SMALLINT",
    INT: "INTEGER",
    BIGINT: "BIGINT",
    FLOAT: "FLOAT",
    DOUBLE: "DOUBLE",
}
BITS: dict[DataType, int] = {TINYINT: 8, SMALLINT: 16, INT: 32, BIGINT: 64}
_BY_ZERO = fail("DIVIDE_BY_ZERO", "Division by zero. Use try_divide to get NULL instead.")
_OVERFLOW = fail("ARITHMETIC_OVERFLOW", "The result is out of range.")
_REMAINDER_BY_ZERO = fail(
    "REMAINDER_BY_ZERO", "Remainder by zero. Use try_mod to get NULL instead."
)


def number_type(t: DataType) -> str:
    """The DuckDB name of a number type."""
    return f"DECIMAL({t.precision},{t.scale})" if isinstance(t, Decimal) else DUCK_TYPES[t]


def unscaled(text: str, t: Decimal, scale: int) -> str:
    """The decimal as a HUGEINT count of 10^-scale, `scale` not below its own."""
    if scale == 0:
        return f"CAST({text} AS HUGEINT)"
    return f"CAST({text} * CAST('1{'0' * scale}' AS DECIMAL(38,0)) AS HUGEINT)"


def scaled(count: str, t: Decimal) -> str:
    """The decimal of type `t` from a HUGEINT count of 10^-scale."""
    whole = f"CAST({count} AS DECIMAL(38,0))"
    if t.scale:
        whole = f"{whole} * CAST('0.{'0' * (t.scale - 1)}1' AS DECIMAL({t.scale},{t.scale}))"
    return f"CAST({whole} AS {number_type(t)})"


def divided(numerator: str, divisor: str) -> str:
    """HUGEINT quotient, rounded half away from zero; the divisor is not zero."""
    doubled = f"2 * {numerator} + sign({numerator}) * abs({divisor})"
    return f"(({doubled}) // (2 * {divisor}))"


def is_nonzero(expr: Expr) -> bool:
    """A constant that is not zero: no check is needed."""
    return isinstance(expr, Literal) and expr.value is not None and expr.value != 0


def _checked(expr: Call, args: list[str], result: str, zero: str) -> str:
    """`result`, or `zero` where the divisor is zero; NULL divided by zero is NULL."""
    left, right = args
    if is_nonzero(expr.args[1]):
        return result
    raised = f"CASE WHEN {left} IS NULL THEN NULL ELSE {zero} END" if zero != "NULL" else zero
    return f"(CASE WHEN {right} = 0 THEN {raised} ELSE {result} END)"


def _add(operator: str) -> Emulation:
    def add(expr: Call, args: list[str]) -> str:
        text = f"({args[0]} {operator} {args[1]})"
        if not isinstance(expr.type, Decimal):
            return text
        scale = max(a.type.scale for a in expr.args if isinstance(a.type, Decimal))
        if expr.type.scale < scale or expr.type.precision > 18:
            left, right = (f"CAST({a} AS DECIMAL(38,{scale}))" for a in args)
            text = f"({left} {operator} {right})"
        return f"CAST({text} AS {number_type(expr.type)})"

    return add


def _multiply(expr: Call, args: list[str]) -> str:
    if not isinstance(expr.type, Decimal):
        return f"({args[0]} * {args[1]})"
    left = args[0]
    if expr.type.precision > 18 and isinstance(expr.args[0].type, Decimal):
        left = f"CAST({left} AS DECIMAL(38,{expr.args[0].type.scale}))"
    return f"CAST({left} * {args[1]} AS {number_type(expr.type)})"


def _divide(expr: Call, args: list[str]) -> str:
    return _checked(expr, args, _quotient(expr, args), _BY_ZERO)


def _quotient(expr: Call, args: list[str]) -> str:
    if not isinstance(expr.type, Decimal):
        return f"({args[0]} / {args[1]})"
    return decimal_quotient(args, [a.type for a in expr.args], expr.type)


def decimal_quotient(args: list[str], types: list[DataType], result: Decimal) -> str:
    """a/b at the result's scale: a·10^(s-s1+s2) over b, in counts of their own scales."""
    a, b = types
    assert isinstance(a, Decimal)
    assert isinstance(b, Decimal)
    shift = result.scale - a.scale + b.scale
    numerator = unscaled(args[0], a, a.scale + max(shift, 0))
    divisor = unscaled(args[1], b, b.scale + max(-shift, 0))
    return scaled(divided(numerator, divisor), result)


def _average(expr: Call, args: list[str]) -> str:
    """A sum over a count above zero, at the scale of an average of decimals."""
    assert isinstance(expr.type, Decimal)
    counted = f"CAST({args[1]} AS DECIMAL(20,0))"
    return decimal_quotient([args[0], counted], [expr.args[0].type, Decimal(20, 0)], expr.type)


def _remainder(expr: Call, args: list[str]) -> str:
    return _checked(expr, args, _modulo(expr, args), _REMAINDER_BY_ZERO)


def _modulo(expr: Call, args: list[str]) -> str:
    """The sign is the dividend's, in Java and in DuckDB."""
    if not isinstance(expr.type, Decimal):
        return f"({args[0]} % {args[1]})"
    types = [a.type for a in expr.args if isinstance(a.type, Decimal)]
    scale = max(t.scale for t in types)
    left, right = (unscaled(x, t, scale) for x, t in zip(args, types, strict=True))
    exact = scaled(f"({left} % {right})", Decimal(38, scale))
    return f"CAST({exact} AS {number_type(expr.type)})"


def _pmod(expr: Call, args: list[str]) -> str:
    """a % n, plus n where that is negative and n is not.

    For a negative n Java adds n as well and takes the remainder again, which changes nothing
    unless the sum wraps around.
    """
    r, n = _modulo(expr, args), args[1]
    if isinstance(expr.type, Decimal):
        result = f"(CASE WHEN {r} < 0 AND {n} > 0 THEN {r} + {n} ELSE {r} END)"
        result = f"CAST({result} AS {number_type(expr.type)})"
    elif expr.type in BITS:
        far = f"{r} < 0 AND {n} < {-(2 ** (BITS[expr.type] - 2))}"
        result = (
            f"(CASE WHEN {far} THEN {needs_spark('a remainder that wraps around')}"
            f" WHEN {r} < 0 AND {n} > 0 THEN {r} + {n} ELSE {r} END)"
        )
    else:
        result = f"(CASE WHEN {r} < 0 THEN ({r} + {n}) % {n} ELSE {r} END)"
    return _checked(expr, args, result, _REMAINDER_BY_ZERO)


def _div(expr: Call, args: list[str]) -> str:
    """Whole quotient, cut toward zero. Spark wraps a decimal's quotient around at BIGINT."""
    types = [a.type for a in expr.args if isinstance(a.type, Decimal)]
    if not types:
        return _checked(expr, args, f"({args[0]} // {args[1]})", _BY_ZERO)
    scale = max(t.scale for t in types)
    left, right = (unscaled(x, t, scale) for x, t in zip(args, types, strict=True))
    quotient = f"({left} // {right})"
    inside = f"{quotient} IS NULL OR {quotient} BETWEEN {-(2**63)} AND {2**63 - 1}"
    far = needs_spark("a quotient beyond BIGINT")
    result = f"(CASE WHEN {inside} THEN CAST({quotient} AS BIGINT) ELSE {far} END)"
    return _checked(expr, args, result, _BY_ZERO)


def _trying(operator: str) -> Emulation:
    """NULL where the result leaves the type; HUGEINT holds every intermediate of BIGINTs."""

    def trying(expr: Call, args: list[str]) -> str:
        if expr.type not in BITS:
            return f"({args[0]} {operator} {args[1]})"
        limit = 2 ** (BITS[expr.type] - 1)
        wide = f"(CAST({args[0]} AS HUGEINT) {operator} CAST({args[1]} AS HUGEINT))"
        inside = f"{wide} BETWEEN {-limit} AND {limit - 1}"
        return f"(CASE WHEN {inside} THEN CAST({wide} AS {number_type(expr.type)}) END)"

    return trying


def _try_divide(expr: Call, args: list[str]) -> str:
    return _checked(expr, args, _quotient(expr, args), "NULL")


def _try_mod(expr: Call, args: list[str]) -> str:
    return _checked(expr, args, _modulo(expr, args), "NULL")


def whole_digits(t: DataType) -> int:
    """How many digits before the point a whole or decimal number may have.

    >>> whole_digits(BIGINT), whole_digits(Decimal(15, 2))
    (19, 13)
    """
    return t.precision - t.scale if isinstance(t, Decimal) else len(str(2 ** (BITS[t] - 1)))


def _negate(expr: Call, args: list[str]) -> str:
    return _within_34_digits(expr, args[0], f"(- {args[0]})")


def _abs(expr: Call, args: list[str]) -> str:
    return _within_34_digits(expr, args[0], f"abs({args[0]})")


def _within_34_digits(expr: Call, text: str, result: str) -> str:
    """Spark rounds the sign change of a decimal to 34 digits."""
    t, value = expr.type, expr.args[0]
    source = value.arg.type if isinstance(value, Cast) else t
    if not isinstance(t, Decimal) or t.precision <= 34:
        return result
    if (isinstance(source, Decimal) or source in BITS) and whole_digits(source) + t.scale < 34:
        return result  # a number that was widened has no more digits, or one by being rounded
    digits = "9" * 34
    most = f"{digits[: 34 - t.scale] or '0'}.{digits[: min(t.scale, 34)].rjust(t.scale, '0')}0"
    limit = f"CAST('{most[:-1].rstrip('.')}' AS {number_type(t)})"
    inside = f"{text} IS NULL OR {text} BETWEEN - {limit} AND {limit}"
    return f"(CASE WHEN {inside} THEN {result} ELSE {needs_spark('more than 34 digits')} END)"


def _bits(operator: str) -> Emulation:
    if operator == "^":
        return lambda expr, args: f"xor({args[0]}, {args[1]})"
    return lambda expr, args: f"({args[0]} {operator} {args[1]})"


def _bit_not(expr: Call, args: list[str]) -> str:
    return f"(~ {args[0]})"


def _shift(expr: Call, args: list[str]) -> str:
    """Java shifts by the low 5 (INT) or 6 (BIGINT) bits, and drops what leaves on the left."""
    width = 64 if expr.type == BIGINT else 32
    value, bits = args[0], f"({args[1]} & {width - 1})"
    if expr.name == ">>":
        return f"({value} >> {bits})"
    # Kept bits times a power of two as HUGEINT, then the sign bit put back.
    kept = f"(CAST({value} AS HUGEINT) & ((CAST(1 AS HUGEINT) << ({width} - {bits})) - 1))"
    moved = f"({kept} * CAST(pow(2, {bits}) AS HUGEINT))"
    limit = 2 ** (width - 1)
    signed = f"CASE WHEN {moved} >= {limit} THEN {moved} - {2 * limit} ELSE {moved} END"
    return f"CAST({signed} AS {number_type(expr.type)})"


def _round(expr: Call, args: list[str]) -> str:
    value, digits = expr.args
    assert isinstance(digits, Literal)
    even = expr.name == "bround"
    if isinstance(value.type, Decimal) and isinstance(expr.type, Decimal):
        return _round_decimal(args[0], value.type, expr.type, digits.value, even)
    if digits.value >= 0:
        return args[0]
    count = _rounded_count(f"CAST({args[0]} AS HUGEINT)", -digits.value, even)
    return f"CAST({count} * CAST('1{'0' * -digits.value}' AS HUGEINT) AS {number_type(expr.type)})"


def _round_decimal(text: str, source: Decimal, result: Decimal, digits: int, even: bool) -> str:
    if digits >= source.scale:
        return f"CAST({text} AS {number_type(result)})"
    if digits >= 0 and not even:
        return f"CAST({text} AS {number_type(result)})"
    count = _rounded_count(unscaled(text, source, source.scale), source.scale - digits, even)
    if digits < 0:
        count = f"({count} * CAST('1{'0' * -digits}' AS HUGEINT))"
    return scaled(count, result)


def _rounded_count(count: str, dropped: int, even: bool) -> str:
    """A HUGEINT without its last digits, rounded half away from zero or half to even."""
    if dropped > 38:
        return "CAST(0 AS HUGEINT)"
    unit = f"CAST('1{'0' * dropped}' AS HUGEINT)"
    if not even:
        return divided(count, unit)
    cut, rest = f"({count} // {unit})", f"abs({count} % {unit})"
    up = f"{rest} > {unit} - {rest} OR ({rest} = {unit} - {rest} AND {cut} % 2 <> 0)"
    return f"({cut} + CASE WHEN {up} THEN CASE WHEN {count} < 0 THEN -1 ELSE 1 END ELSE 0 END)"


def _whole(expr: Call, args: list[str]) -> str:
    """ceil and floor; what BIGINT cannot hold, NaN included, raises."""
    text = f"{expr.name}({args[0]})"
    if isinstance(expr.type, Decimal):
        return f"CAST({text} AS {number_type(expr.type)})"
    inside = f"{text} >= CAST({-(2**63)} AS DOUBLE) AND {text} < CAST({2**63} AS DOUBLE)"
    return (
        f"(CASE WHEN {args[0]} IS NULL THEN NULL WHEN {inside} THEN CAST({text} AS BIGINT)"
        f" ELSE {_OVERFLOW} END)"
    )


NUMBERS: dict[str, Emulation] = {
    "average": _average,
    "+": _add("+"),
    "-": _add("-"),
    "*": _multiply,
    "/": _divide,
    "%": _remainder,
    "pmod": _pmod,
    "div": _div,
    "try_add": _trying("+"),
    "try_subtract": _trying("-"),
    "try_multiply": _trying("*"),
    "try_divide": _try_divide,
    "try_mod": _try_mod,
    "neg": _negate,
    "abs": _abs,
    "&": _bits("&"),
    "|": _bits("|"),
    "^": _bits("^"),
    "~": _bit_not,
    "<<": _shift,
    ">>": _shift,
    "round": _round,
    "bround": _round,
    "ceil": _whole,
    "floor": _whole,
}
