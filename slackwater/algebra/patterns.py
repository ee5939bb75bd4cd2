"""Shapes of operators that more than one layer looks for."""

from __future__ import annotations

from slackwater.algebra.expr import Call, Column, Expr, conjuncts
from slackwater.algebra.relation import Join


def null_aware_key(node: Join) -> tuple[Expr, Expr] | None:
    """The two sides of `x NOT IN (query)`: an anti join on x = y OR (x = y) IS NULL, alone."""
    parts = conjuncts(node.condition)
    if len(parts) != 1 or not (isinstance(parts[0], Call) and parts[0].name == "or"):
        return None
    equal, unknown = parts[0].args
    if not (isinstance(equal, Call) and equal.name == "="):
        return None
    if not (isinstance(unknown, Call) and unknown.name == "is_null" and unknown.args[0] is equal):
        return None
    return _sides(equal, node)


def membership_key(node: Join) -> tuple[Expr, Expr] | None:
    """The two sides of `x IN (query)`: a semi join on x = y, alone."""
    parts = conjuncts(node.condition)
    if node.how != "semi" or len(parts) != 1:
        return None
    equal = parts[0]
    return _sides(equal, node) if isinstance(equal, Call) and equal.name == "=" else None


def _sides(equal: Call, node: Join) -> tuple[Expr, Expr] | None:
    """The side of an equality that reads the left input, and the one that reads the right."""
    for outer, inner in (equal.args, equal.args[::-1]):
        if _reads(outer, 0, node.left.width) and _reads(inner, node.left.width, None):
            return outer, inner
    return None


def _reads(expr: Expr, start: int, end: int | None) -> bool:
    """Does the expression read columns, and only those from `start` to `end`?"""
    found = [n.index for n in expr.walk() if isinstance(n, Column)]
    return bool(found) and all(start <= i and (end is None or i < end) for i in found)
