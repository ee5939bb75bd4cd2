"""Which columns cannot be NULL where an expression has a value, or where a condition holds."""

from __future__ import annotations

from functools import lru_cache

from slackwater.algebra.expr import Call, Cast, Column, Expr, Literal

Places = frozenset[int]
NONE: Places = frozenset()

_STRICT = frozenset("+ - * / % = != < <= > >= not neg abs positive like upper lower".split())
"""Operations that give NULL as soon as one argument is NULL."""


@lru_cache(maxsize=2**14)
def where_known(expr: Expr) -> Places:
    """The columns that are not NULL wherever the expression is not."""
    match expr:
        case Column():
            return frozenset({expr.index})
        case Call(name="in"):
            return where_known(expr.args[0])
        case Call() if expr.name in _STRICT:
            return NONE.union(*map(where_known, expr.args))
        case Cast():
            return where_known(expr.arg)
    return NONE


@lru_cache(maxsize=2**14)
def where_true(condition: Expr) -> Places:
    """The columns that are not NULL wherever the condition is true."""
    match condition:
        case Call(name="and"):
            return NONE.union(*map(where_true, condition.args))
        case Call(name="or"):
            first, *others = map(where_true, condition.args)
            return first.intersection(*others)
        case Call(name="is_not_null"):
            return where_known(condition.args[0])
        case Call(name="<=>"):
            known = [not a.nullable and isinstance(a, Literal) for a in condition.args]
            return NONE.union(*map(where_known, condition.args)) if any(known) else NONE
    return where_known(condition)
