"""Operators and conditionals: how Spark types and coerces them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from slackwater.algebra.coercion import (
    DATETIMES,
    adjusted,
    common_type,
    decimal_for,
    is_interval,
    literal,
    make_cast,
    tightest,
    wider,
    wider_decimal,
    wrong_types,
)
from slackwater.algebra.expr import Call, Expr, Literal
from slackwater.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INT,
    NULL,
    STRING,
    TIMESTAMP,
    DataType,
    Decimal,
    is_integral,
    is_numeric,
)

Rule = Callable[[str, Sequence[Expr]], Expr | None]


def any_nullable(args: Sequence[Expr]) -> bool:
    """The usual law: NULL in, NULL out."""
    return any(a.nullable for a in args)


def make(name: str, args: Sequence[Expr], type: DataType, nullable: bool | None = None) -> Call:
    """A call; nullable as its arguments are unless told otherwise."""
    return Call(type, any_nullable(args) if nullable is None else nullable, name, tuple(args))


# ---- arithmetic ---------------------------------------------------------------------------


def arithmetic(name: str, args: Sequence[Expr]) -> Expr | None:
    """+ - * / % div and their try_ forms, over numbers, strings that hold them, and dates."""
    left, right = args
    if {left.type, right.type} & {*DATETIMES} or is_interval(left.type) or is_interval(right.type):
        return _datetime(name, left, right)
    left, right = _numbers(name, left, right)
    if isinstance(left.type, Decimal):
        return _decimal_arithmetic(name, left, right)
    return _plain_arithmetic(name, left, right)


def _numbers(name: str, left: Expr, right: Expr) -> tuple[Expr, Expr]:
    """Both operands as numbers of one kind: two decimals, or one same other type."""
    types = (left.type, right.type)
    if any(t not in (STRING, NULL) and not is_numeric(t) for t in types):
        raise wrong_types(name, (left, right), "two numbers")
    if any(isinstance(t, Decimal) for t in types) and all(_exact(t) for t in types):
        return make_cast(left, decimal_for(left)), make_cast(right, decimal_for(right))
    common = _number_type(name, left, right)
    return make_cast(left, common), make_cast(right, common)


def _number_type(name: str, left: Expr, right: Expr) -> DataType:
    """The one type of both operands; text alone is no number, NULL over a decimal is DOUBLE."""
    types = (left.type, right.type)
    if not any(is_numeric(t) for t in types):
        if STRING in types:
            raise wrong_types(name, (left, right), "two numbers")
        return BIGINT if name == "div" else DOUBLE
    if left.type == NULL and isinstance(right.type, Decimal) and _plain_name(name) == "/":
        return DOUBLE
    return wider(*types) or DOUBLE


def _exact(t: DataType) -> bool:
    return is_integral(t) or isinstance(t, Decimal)


def _decimal_arithmetic(name: str, left: Expr, right: Expr) -> Expr | None:
    op = _plain_name(name)
    a, b = left.type, right.type
    assert isinstance(a, Decimal)
    assert isinstance(b, Decimal)
    if op == "div":
        return make(name, (left, right), BIGINT, True)
    result = DECIMAL_RESULT[op](a.precision, a.scale, b.precision, b.scale)
    if op == "*" and a.scale + b.scale > 38:
        return None  # the exact product has no room on the local engine
    if name in ("try_add", "try_subtract", "try_multiply"):
        return None  # overflow cannot be told from an intermediate without room
    return make(name, (left, right), result, _arithmetic_nullable(name, left, right))


def _plain_name(name: str) -> str:
    return _TRY.get(name, name)


_TRY = {
    "try_add": "+",
    "try_subtract": "-",
    "try_multiply": "*",
    "try_divide": "/",
    "try_mod": "%",
    "pmod": "%",
}


def _add_type(p1: int, s1: int, p2: int, s2: int) -> Decimal:
    scale = max(s1, s2)
    return adjusted(max(p1 - s1, p2 - s2) + scale + 1, scale)


def _multiply_type(p1: int, s1: int, p2: int, s2: int) -> Decimal:
    return adjusted(p1 + p2 + 1, s1 + s2)


def _divide_type(p1: int, s1: int, p2: int, s2: int) -> Decimal:
    scale = max(6, s1 + p2 + 1)
    return adjusted(p1 - s1 + s2 + scale, scale)


def _remainder_type(p1: int, s1: int, p2: int, s2: int) -> Decimal:
    scale = max(s1, s2)
    return adjusted(min(p1 - s1, p2 - s2) + scale, scale)


DECIMAL_RESULT: dict[str, Callable[[int, int, int, int], Decimal]] = {
    "+": _add_type,
    "-": _add_type,
    "*": _multiply_type,
    "/": _divide_type,
    "%": _remainder_type,
}
"""(p1, s1), (p2, s2) → the decimal type of the result."""


def _arithmetic_nullable(name: str, left: Expr, right: Expr) -> bool:
    """Division and remainder count as nullable always; the try_ forms too."""
    always = name in _TRY or name in ("/", "%", "div")
    return always or any_nullable((left, right))


def _plain_arithmetic(name: str, left: Expr, right: Expr) -> Expr | None:
    op = _plain_name(name)
    result = left.type
    if op == "/" and result != DOUBLE:
        left, right, result = make_cast(left, DOUBLE), make_cast(right, DOUBLE), DOUBLE
    if op == "div":
        if not is_integral(result):
            raise wrong_types(name, (left, right), "integral numbers or decimals")
        left, right, result = make_cast(left, BIGINT), make_cast(right, BIGINT), BIGINT
    return make(name, (left, right), result, _arithmetic_nullable(name, left, right))


def _datetime(name: str, left: Expr, right: Expr) -> Expr | None:
    """Dates and timestamps plus or minus days or interval literals.

    The difference of two moments is an interval, which is Spark's alone.
    """
    if name == "+" and (left.type not in DATETIMES):
        left, right = right, left
    if name not in ("+", "-") or left.type not in DATETIMES:
        return None
    if isinstance(right, Literal) and is_interval(right.type) and right.value is not None:
        return _plus_interval(name, left, right)
    if left.type == DATE and is_integral(right.type):
        if right.type == BIGINT:
            raise wrong_types(name, (left, right), "a number of days that is an INT at most")
        return make("date_add" if name == "+" else "date_sub", (left, right), DATE)
    return None


_CALENDAR_INTERVALS = ("interval day", "interval month", "interval year", "interval year to month")


def _plus_interval(name: str, left: Expr, right: Literal) -> Expr:
    if left.type == DATE and right.type.json not in _CALENDAR_INTERVALS:
        left = make_cast(left, TIMESTAMP)
    return make(name, (left, right), left.type)


def negate(name: str, args: Sequence[Expr]) -> Expr | None:
    """Unary minus and abs: strings become DOUBLE."""
    (arg,) = args
    if arg.type in (STRING, NULL):
        arg = make_cast(arg, DOUBLE)
    if is_interval(arg.type):
        return None
    if not is_numeric(arg.type):
        raise wrong_types(name, args, "a number")
    return make(name, (arg,), arg.type)


def positive(name: str, args: Sequence[Expr]) -> Expr | None:
    """Unary plus is its argument."""
    typed = negate(name, args)
    return typed.args[0] if isinstance(typed, Call) else None


def bitwise(name: str, args: Sequence[Expr]) -> Expr | None:
    """& | ^ over integral numbers of one type."""
    left, right = args
    common = tightest(left.type, right.type)
    if STRING in (left.type, right.type):
        return None
    if common is None or not (is_integral(common) or common == NULL):
        raise wrong_types(name, args, "two integral numbers")
    return None if common == NULL else _both(name, args, common)


def _both(name: str, args: Sequence[Expr], common: DataType) -> Expr:
    return make(name, [make_cast(a, common) for a in args], common)


def bit_not(name: str, args: Sequence[Expr]) -> Expr | None:
    """~ of an integral number."""
    if not is_integral(args[0].type):
        return None
    return make(name, args, args[0].type)


def bit_shift(name: str, args: Sequence[Expr]) -> Expr | None:
    """<< >> of INT or BIGINT by a number of bits."""
    value, bits = args
    if not (is_integral(value.type) and is_integral(bits.type)):
        return None
    value = value if value.type == BIGINT else make_cast(value, INT)
    return make(name, (value, make_cast(bits, INT)), value.type)


# ---- comparison and logic -----------------------------------------------------------------


def comparison(name: str, args: Sequence[Expr]) -> Expr | None:
    """= != < <= > >= and the null-safe <=>."""
    left, right = args
    nullable = False if name == "<=>" else None
    types = (left.type, right.type)
    if any(isinstance(t, Decimal) for t in types) and all(_exact(t) for t in types):
        common: DataType | None = wider_decimal(decimal_for(left), decimal_for(right))
        left, right = (make_cast(a, decimal_for(a)) for a in (left, right))
    else:
        common = wider(*types)
    if common is None:
        raise wrong_types(name, args, "two values of comparable types")
    return make(name, (make_cast(left, common), make_cast(right, common)), BOOLEAN, nullable)


def logic(name: str, args: Sequence[Expr]) -> Expr | None:
    """AND, OR, NOT; text is read as a boolean."""
    types = {a.type for a in args}
    text_alone = len(args) == 2 and STRING in types and BOOLEAN not in types
    if text_alone or types - {BOOLEAN, STRING, NULL}:
        raise wrong_types(name, args, "booleans")
    return make(name, [make_cast(a, BOOLEAN) for a in args], BOOLEAN)


def null_test(name: str, args: Sequence[Expr]) -> Expr | None:
    """IS NULL and IS NOT NULL never give NULL."""
    return make(name, args, BOOLEAN, False)


def truth_test(name: str, args: Sequence[Expr]) -> Expr | None:
    """IS [NOT] TRUE and IS [NOT] FALSE never give NULL."""
    if args[0].type not in (BOOLEAN, STRING, NULL):
        raise wrong_types(name, args, "a boolean")
    return make(name, [make_cast(args[0], BOOLEAN)], BOOLEAN, False)


def membership(name: str, args: Sequence[Expr]) -> Expr | None:
    """IN: the first argument among the rest, all of one type."""
    return _one_type(name, args, lambda found: make(name, found, BOOLEAN))


def _one_type(
    name: str, args: Sequence[Expr], then: Callable[[list[Expr]], Expr], *, strings: bool = True
) -> Expr:
    common = common_type([a.type for a in args], strings=strings)
    if common is None:
        raise wrong_types(name, args, "values of one type")
    return then([make_cast(a, common) for a in args])


# ---- conditionals -------------------------------------------------------------------------


def case(name: str, args: Sequence[Expr]) -> Expr | None:
    """CASE: condition, value, …, else."""
    conditions = [_condition(name, c) for c in args[:-1:2]]
    values = [*args[1::2], args[-1]]
    return _one_type(name, values, lambda found: _case(conditions, found))


def _condition(name: str, arg: Expr) -> Expr:
    if arg.type not in (BOOLEAN, STRING, NULL):
        raise wrong_types(name, (arg,), "boolean conditions")
    return make_cast(arg, BOOLEAN)


def _case(conditions: Sequence[Expr], values: Sequence[Expr]) -> Expr:
    pairs = [e for pair in zip(conditions, values, strict=False) for e in pair]
    return make("case", [*pairs, values[-1]], values[0].type, any_nullable(values))


def if_(name: str, args: Sequence[Expr]) -> Expr | None:
    """IF is a CASE with one condition."""
    return case(name, args)


def coalesce(name: str, args: Sequence[Expr]) -> Expr | None:
    """The first value that is not NULL."""
    return _one_type(
        name,
        args,
        lambda found: make("coalesce", found, found[0].type, all(a.nullable for a in found)),
    )


def extreme(name: str, args: Sequence[Expr]) -> Expr | None:
    """greatest and least skip NULLs and do not read text as numbers."""
    if len(args) < 2:
        return None
    return _one_type(
        name,
        args,
        lambda found: make(name, found, found[0].type, all(a.nullable for a in found)),
        strings=False,
    )


def nullif(name: str, args: Sequence[Expr]) -> Expr | None:
    """NULL where both are equal, else the first."""
    first, second = args
    equal = comparison("=", (first, second))
    assert equal is not None
    return _case([equal], [literal(None, first.type), first])


def nvl2(name: str, args: Sequence[Expr]) -> Expr | None:
    """The second where the first is not NULL, else the third."""
    test = make("is_not_null", args[:1], BOOLEAN, False)
    return case(name, (test, *args[1:]))


def zeroifnull(name: str, args: Sequence[Expr]) -> Expr | None:
    """0 in place of NULL."""
    return coalesce(name, (args[0], literal(0)))


def nullifzero(name: str, args: Sequence[Expr]) -> Expr | None:
    """NULL in place of 0."""
    return nullif(name, (args[0], literal(0)))


OPERATORS: dict[str, tuple[int, int | None, Rule]] = {
    **dict.fromkeys(("+", "-", "*", "/", "%", "div", "pmod"), (2, 2, arithmetic)),
    **dict.fromkeys(("try_add", "try_subtract", "try_multiply"), (2, 2, arithmetic)),
    **dict.fromkeys(("try_divide", "try_mod"), (2, 2, arithmetic)),
    "neg": (1, 1, negate),
    "abs": (1, 1, negate),
    "positive": (1, 1, positive),
    **dict.fromkeys(("&", "|", "^"), (2, 2, bitwise)),
    "~": (1, 1, bit_not),
    **dict.fromkeys(("<<", ">>"), (2, 2, bit_shift)),
    **dict.fromkeys(("=", "!=", "<", "<=", ">", ">=", "<=>"), (2, 2, comparison)),
    **dict.fromkeys(("and", "or"), (2, 2, logic)),
    "not": (1, 1, logic),
    **dict.fromkeys(("is_null", "is_not_null"), (1, 1, null_test)),
    **dict.fromkeys(("is_true", "is_false", "is_not_true", "is_not_false"), (1, 1, truth_test)),
    "in": (2, None, membership),
    "case": (3, None, case),
    "if": (3, 3, if_),
    "coalesce": (1, None, coalesce),
    **dict.fromkeys(("nvl", "ifnull"), (2, 2, coalesce)),
    **dict.fromkeys(("greatest", "least"), (2, None, extreme)),
    "nullif": (2, 2, nullif),
    "nvl2": (3, 3, nvl2),
    "zeroifnull": (1, 1, zeroifnull),
    "nullifzero": (1, 1, nullifzero),
}
"""name → least and most arguments, typing rule."""

__all__ = ["OPERATORS", "Rule", "any_nullable", "make"]
