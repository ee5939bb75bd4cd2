"""Scalar functions by signature: what each argument must be, what comes out, when it is NULL."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from slackwater.algebra.coercion import DATETIMES, can_assign, literal, make_cast, wrong_types
from slackwater.algebra.expr import Call, Expr, Literal
from slackwater.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    INTEGRAL,
    NULL,
    SMALLINT,
    STRING,
    TIMESTAMP,
    TINYINT,
    DataType,
    Decimal,
    is_integral,
    is_numeric,
)


@dataclass(frozen=True, slots=True)
class Signature:
    """Argument types in order, the last `optional` ones with defaults.

    `nullable`: None as the arguments are, else a constant. `literals`: positions that must be
    constants for the function to be portable, with the values that are (any, if empty).
    """

    args: tuple[DataType, ...]
    result: DataType
    nullable: bool | None = None
    defaults: tuple[Literal, ...] = ()
    repeated: bool = False
    constant: int | None = None
    values: tuple[str, ...] = ()


_S, _D, _I = STRING, DATE, INT
_UNITS = ("year", "yyyy", "yy", "quarter", "month", "mon", "mm", "week")
_TIME_UNITS = (*_UNITS, "day", "dd", "hour", "minute", "second", "millisecond", "microsecond")
_WEEKDAYS = tuple(
    name
    for day in ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
    for name in (day[:2], day[:3], day)
)

TEXT: dict[str, Signature] = {
    **{n: Signature((_S,), _S) for n in ("upper", "lower", "trim", "ltrim", "rtrim", "reverse")},
    **{n: Signature((_S,), _I) for n in ("length", "bit_length", "octet_length", "ascii")},
    "chr": Signature((BIGINT,), _S),
    "concat": Signature((_S,), _S, repeated=True),
    "replace": Signature((_S, _S, _S), _S, defaults=(literal(""),)),
    "translate": Signature((_S, _S, _S), _S, constant=1),
    "substring": Signature((_S, _I, _I), _S, defaults=(literal(2147483647),)),
    "left": Signature((_S, _I), _S),
    "right": Signature((_S, _I), _S, nullable=True),
    "repeat": Signature((_S, _I), _S),
    "lpad": Signature((_S, _I, _S), _S, defaults=(literal(" "),)),
    "rpad": Signature((_S, _I, _S), _S, defaults=(literal(" "),)),
    "instr": Signature((_S, _S), _I),
    "locate": Signature((_S, _S, _I), _I, defaults=(literal(1),)),
    "split_part": Signature((_S, _S, _I), _S, nullable=True),
    **{n: Signature((_S, _S), BOOLEAN) for n in ("startswith", "endswith", "contains")},
    **{n: Signature((_S, _S), BOOLEAN) for n in ("like", "ilike")},
}

DATES: dict[str, Signature] = {
    **{
        n: Signature((_D,), _I)
        for n in (
            "year",
            "month",
            "day",
            "quarter",
            "dayofweek",
            "dayofyear",
            "weekofyear",
            "weekday",
            "unix_date",
        )
    },
    **{n: Signature((TIMESTAMP,), _I) for n in ("hour", "minute", "second")},
    **{n: Signature((TIMESTAMP,), BIGINT) for n in ("unix_seconds", "unix_millis", "unix_micros")},
    **{n: Signature((BIGINT,), TIMESTAMP) for n in ("timestamp_millis", "timestamp_micros")},
    "timestamp_seconds": Signature((BIGINT,), TIMESTAMP),
    **{n: Signature((_D, _I), _D) for n in ("date_add", "date_sub", "add_months")},
    "datediff": Signature((_D, _D), _I),
    "last_day": Signature((_D,), _D),
    "next_day": Signature((_D, _S), _D, nullable=True, constant=1, values=_WEEKDAYS),
    "trunc": Signature((_D, _S), _D, nullable=True, constant=1, values=_UNITS),
    "date_trunc": Signature(
        (_S, TIMESTAMP), TIMESTAMP, nullable=True, constant=0, values=_TIME_UNITS
    ),
    "make_date": Signature((_I, _I, _I), _D),
    "date_from_unix_date": Signature((_I,), _D),
}

NUMBERS: dict[str, Signature] = {
    **{
        n: Signature((DOUBLE,), DOUBLE, nullable=True)
        for n in (
            "sqrt",
            "exp",
            "sin",
            "cos",
            "tan",
            "asin",
            "acos",
            "atan",
            "sinh",
            "cosh",
            "tanh",
            "cot",
            "cbrt",
            "degrees",
            "radians",
            "sign",
            "rint",
            "expm1",
        )
    },
    **{n: Signature((DOUBLE,), DOUBLE, nullable=True) for n in ("ln", "log10", "log2", "log1p")},
    **{n: Signature((DOUBLE, DOUBLE), DOUBLE) for n in ("power", "atan2")},
}

SIGNATURES: dict[str, Signature] = {**TEXT, **DATES, **NUMBERS}


_SMALL_NUMBERS = (TINYINT, SMALLINT, INT, STRING, NULL)
_EXACT_TYPES: dict[str, tuple[DataType, ...]] = {
    "date_add": _SMALL_NUMBERS,
    "date_sub": _SMALL_NUMBERS,
    "split_part": _SMALL_NUMBERS,
    "unix_date": (DATE, NULL),
    **dict.fromkeys(("unix_seconds", "unix_millis", "unix_micros"), (TIMESTAMP, NULL)),
    **dict.fromkeys(("timestamp_seconds", "timestamp_millis", "timestamp_micros"), INTEGRAL),
}
"""Functions that coerce less than others: the types that may stand in the last place."""


def scalar(name: str, args: Sequence[Expr]) -> Expr | None:
    """A call by its signature."""
    signature = SIGNATURES[name]
    filled = _filled(name, signature, args)
    if filled is None or not _constant(signature, filled):
        return None
    if name in _EXACT_TYPES and filled[-1].type not in _EXACT_TYPES[name]:
        return None  # Spark refuses, or computes on another type
    coerced = [
        accept(name, a, t, args) for a, t in zip(filled, _types(signature, filled), strict=True)
    ]
    return Call(signature.result, _nullable(name, signature, coerced), name, tuple(coerced))


def _nullable(name: str, signature: Signature, args: Sequence[Expr]) -> bool:
    """`locate` starts at nothing for a NULL start, and finds nothing."""
    if signature.nullable is not None:
        return signature.nullable
    return any(a.nullable for a in (args[:2] if name == "locate" else args))


def _filled(name: str, signature: Signature, args: Sequence[Expr]) -> list[Expr] | None:
    """Arguments with defaults for those left out; None for forms that are Spark's alone."""
    if signature.repeated:
        return list(args) if args else None
    missing = len(signature.args) - len(args)
    if missing < 0 or missing > len(signature.defaults):
        return None
    return [*args, *signature.defaults[len(signature.defaults) - missing :]]


def _types(signature: Signature, args: Sequence[Expr]) -> Sequence[DataType]:
    return signature.args * len(args) if signature.repeated else signature.args


def _constant(signature: Signature, args: Sequence[Expr]) -> bool:
    if signature.constant is None:
        return True
    arg = args[signature.constant]
    if not isinstance(arg, Literal) or not isinstance(arg.value, str):
        return False
    return not signature.values or arg.value.lower() in signature.values


def accept(name: str, arg: Expr, wanted: DataType, all_args: Sequence[Expr]) -> Expr:
    """The argument as the wanted type: text is parsed, the rest follows store assignment."""
    if arg.type == STRING or can_assign(arg.type, wanted):
        return make_cast(arg, wanted)
    raise wrong_types(name, all_args, f"{wanted.sql} where {arg.type.sql} is given")


# ---- functions whose result type depends on the argument ----------------------------------


def rounding(name: str, args: Sequence[Expr]) -> Expr | None:
    """round and bround of exact numbers to a constant number of digits."""
    value = args[0]
    digits = args[1] if len(args) > 1 else literal(0)
    if not isinstance(digits, Literal) or digits.type != INT or digits.value is None:
        return None
    if isinstance(value.type, Decimal):
        result: DataType = _rounded(value.type, digits.value)
    elif is_integral(value.type):
        result = value.type
    else:
        return None
    return Call(result, True, name, (value, digits))


def _rounded(t: Decimal, digits: int) -> Decimal:
    integral = t.precision - t.scale + 1
    if digits < 0:
        return Decimal(min(max(integral, -digits + 1), 38), 0)
    scale = min(t.scale, digits)
    return Decimal(min(integral + scale, 38), scale)


def whole(name: str, args: Sequence[Expr]) -> Expr | None:
    """ceil and floor: BIGINT, or a decimal without scale."""
    (value,) = args
    if isinstance(value.type, Decimal):
        p, s = value.type.precision, value.type.scale
        return Call(Decimal(min(p - s + (s > 0), 38), 0), True, name, (value,))
    if is_numeric(value.type) or value.type in (STRING, NULL):
        return Call(BIGINT, True, name, (make_cast(value, DOUBLE),))
    raise wrong_types(name, args, "a number")


def not_a_number(name: str, args: Sequence[Expr]) -> Expr | None:
    """isnan never gives NULL."""
    (value,) = args
    if value.type not in (FLOAT, DOUBLE):
        return None
    return Call(BOOLEAN, False, name, (value,))


def concat_ws(name: str, args: Sequence[Expr]) -> Expr | None:
    """Joins what is not NULL; NULL only for a NULL separator."""
    coerced = [accept(name, a, STRING, args) for a in args]
    return Call(STRING, coerced[0].nullable, name, tuple(coerced))


def to_date(name: str, args: Sequence[Expr]) -> Expr | None:
    """to_date(x) is CAST(x AS DATE)."""
    (value,) = args
    if value.type not in (STRING, NULL, *DATETIMES):
        return None  # printed, then read: Spark's alone
    return make_cast(value, DATE)


Special = Callable[[str, Sequence[Expr]], Expr | None]
SPECIAL: dict[str, tuple[int, int | None, Special]] = {
    "round": (1, 2, rounding),
    "bround": (1, 2, rounding),
    "ceil": (1, 1, whole),
    "floor": (1, 1, whole),
    "isnan": (1, 1, not_a_number),
    "concat_ws": (1, None, concat_ws),
    "to_date": (1, 1, to_date),
}

ALIASES: dict[str, str] = {
    "||": "concat",
    "<>": "!=",
    "==": "=",
    "add": "+",
    "mod": "%",
    "negative": "neg",
    "pow": "power",
    "signum": "sign",
    "ceiling": "ceil",
    "char": "chr",
    "char_length": "length",
    "character_length": "length",
    "len": "length",
    "substr": "substring",
    "ucase": "upper",
    "lcase": "lower",
    "position": "locate",
    "dayofmonth": "day",
    "date_diff": "datediff",
    "dateadd": "date_add",
    "isnull": "is_null",
    "isnotnull": "is_not_null",
    "shiftleft": "<<",
    "shiftright": ">>",
}
