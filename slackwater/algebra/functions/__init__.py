"""Portable functions: typed and coerced as Spark's ANSI analyzer does it.

`call`, `cast`, `aggregate` and `window` give None for what only Spark computes; the binder then
asks Spark's analyzer for the type.
"""

from __future__ import annotations

from collections.abc import Sequence

from slackwater.algebra.coercion import (
    can_cast,
    can_upcast,
    cast_nullable,
    common_type,
    is_interval,
    literal,
    make_cast,
    portable_cast,
)
from slackwater.algebra.expr import Cast, Expr, Literal
from slackwater.algebra.functions.aggregates import AGGREGATES, WINDOWS, aggregate, window
from slackwater.algebra.functions.operators import OPERATORS
from slackwater.algebra.functions.scalars import ALIASES, SIGNATURES, SPECIAL, scalar
from slackwater.algebra.functions.storing import store_assign
from slackwater.errors import SqlError
from slackwater.types import BINARY, DataType, is_atomic

__all__ = [
    "PORTABLE",
    "SCALAR_NAMES",
    "aggregate",
    "call",
    "cast",
    "coerce",
    "common_type",
    "literal",
    "store_assign",
    "window",
]

PORTABLE = frozenset({*OPERATORS, *SPECIAL, *SIGNATURES, *AGGREGATES, *WINDOWS, "cast", "try_cast"})
"""Names (without aliases) of what runs on both engines."""

SCALAR_NAMES = frozenset(n for n in (*SIGNATURES, *SPECIAL, *ALIASES) if n.isidentifier())
"""What a user may call a portable function by."""

_COMPARES_BINARY = frozenset({"=", "!=", "<", "<=", ">", ">=", "<=>", "is_null", "is_not_null"})


def call(name: str, args: Sequence[Expr]) -> Expr | None:
    """The typed call with Spark's implicit casts; None where only Spark computes it.

    Raises `SqlError` (WRONG_TYPES) for arguments that Spark refuses, too.
    """
    name = ALIASES.get(name, name)
    if not _computable(name, args):
        return None
    if name in SIGNATURES:
        return scalar(name, args)
    rules = OPERATORS.get(name) or SPECIAL.get(name)
    if rules is None:
        return None
    least, most, rule = rules
    if len(args) < least or (most is not None and len(args) > most):
        return None
    return rule(name, args)


def _computable(name: str, args: Sequence[Expr]) -> bool:
    """Nested types, binaries (but for comparison) and interval columns are Spark's alone."""
    for arg in args:
        if not is_atomic(arg.type) or (arg.type == BINARY and name not in _COMPARES_BINARY):
            return False
        if is_interval(arg.type) and not isinstance(arg, Literal):
            return False
    return True


def cast(expr: Expr, type: DataType, safe: bool = False) -> Expr | None:
    """CAST, or TRY_CAST (`safe`); None where only Spark computes it."""
    if not (is_atomic(expr.type) and is_atomic(type)):
        return None
    if not can_cast(expr.type, type):
        raise SqlError(
            f"{expr.type.sql} cannot be cast to {type.sql}.",
            code="WRONG_TYPES",
            hint="ANSI SQL has no such cast; go over STRING or a function that says what is meant.",
        )
    if expr.type == type:
        return expr
    if not portable_cast(expr.type, type):
        return None
    fails = not can_upcast(expr.type, type) if safe else cast_nullable(expr.type, type)
    return Cast(type, expr.nullable or fails, expr, safe)


def coerce(expr: Expr, type: DataType) -> Expr:
    """The implicit cast, as in set operations; Spark's alone where it is not portable."""
    return make_cast(expr, type)
