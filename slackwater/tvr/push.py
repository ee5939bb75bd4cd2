"""Conditions go down to the joins that they speak of.

    σ[p ∧ q ∧ r](R ⋈[c] S) = σ[p](R) ⋈[c ∧ r] σ[q](S)      p over R, q over S, r over both

`FROM r, s WHERE r.a = s.a` is bound as a filter above a join of all with all. Laws look for the
equalities in the join itself. Conditions that may raise stay where they were written; constants are
computed before that, so that `d < DATE '1995-09-01' + INTERVAL 1 MONTH` is none of them. Inputs are
joined in an order in which each shares a condition with those before it, where there is one.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from slackwater.algebra.coercion import cast_nullable
from slackwater.algebra.expr import (
    Call,
    Cast,
    Column,
    Expr,
    Literal,
    conjunction,
    conjuncts,
    shift,
    used_columns,
)
from slackwater.algebra.fold import folded
from slackwater.algebra.relation import Filter, Join, Relation
from slackwater.sql import build
from slackwater.tvr import zset
from slackwater.tvr.laws.joins import flatten, outward
from slackwater.types import Decimal, is_integral

_QUIET = frozenset("= != < <= > >= <=> and or not in is_null is_not_null is_true".split())
_BY_LEFT_ROW = ("left", "semi", "anti")
_INTEGERS = ("byte", "short", "integer", "long")


def push(relation: Relation) -> Relation:
    """The same multiset, with conditions as deep down in joins as they can be."""
    pushed: Relation = relation.rewrite(_pushed)
    return pushed


def _pushed(node: Relation) -> Relation:
    if not (isinstance(node, Filter) and isinstance(node.input, Join)):
        return node
    parts = [folded(c) for part in conjuncts(node.predicate) for c in _factored(part)]
    quiet = [p for p in parts if _is_quiet(p)]
    joined = _over(node.input, quiet)
    if isinstance(joined, Join) and joined.how == "inner":
        joined = _in_order(joined)
    return _filtered(joined, [p for p in parts if p not in quiet])


def _factored(condition: Expr) -> list[Expr]:
    """(a ∧ b) ∨ (a ∧ c) = a ∧ (b ∨ c), for NULLs too"""
    branches = [conjuncts(branch) for branch in _disjuncts(condition)]
    common = [c for c in branches[0] if all(c in other for other in branches[1:])]
    rest = [[c for c in branch if c not in common] for branch in branches]
    if not common or len(branches) == 1:
        return [condition]
    if not all(rest):
        return common
    return [*common, reduce(build.disjunction, map(conjunction, rest))]


def _disjuncts(condition: Expr) -> list[Expr]:
    if isinstance(condition, Call) and condition.name == "or":
        return [d for arg in condition.args for d in _disjuncts(arg)]
    return [condition]


def _in_order(join: Join) -> Relation:
    """Inner joins as one chain, from the first input outward."""
    inner = flatten(join)
    return zset.unweighted(outward(inner, [zset.with_weight(r) for r in inner.inputs], 0))


def _over(node: Relation, conditions: Sequence[Expr]) -> Relation:
    """A relation under conditions that never raise."""
    if not conditions:
        return node
    if isinstance(node, Filter):
        return _filtered(_over(node.input, conditions), conjuncts(node.predicate))
    if not isinstance(node, Join) or node.how not in ("inner", *_BY_LEFT_ROW):
        return _filtered(node, conditions)
    width = node.left.width
    left = [c for c in conditions if _last(c) < width]
    right = [c for c in conditions if c not in left and _first(c) >= width]
    both = [c for c in conditions if c not in left and c not in right]
    narrowed = node.replace(left=_over(node.left, left))
    if node.how in _BY_LEFT_ROW:
        return _filtered(narrowed, right + both)
    return narrowed.replace(
        right=_over(node.right, [shift(c, -width) for c in right]),
        condition=conjunction([*conjuncts(node.condition), *both]),
    )


def _filtered(node: Relation, conditions: Sequence[Expr]) -> Relation:
    return Filter(node, conjunction(list(conditions))) if conditions else node


def _first(condition: Expr) -> int:
    return min(used_columns(condition), default=0)


def _last(condition: Expr) -> int:
    return max(used_columns(condition), default=0)


def _is_quiet(condition: Expr) -> bool:
    """Can it be evaluated for any row at all, whatever other conditions say?"""
    return all(never_raises(node) for node in condition.walk())


def never_raises(node: Expr) -> bool:
    """Gives the operation itself, whatever its arguments are, always a value?"""
    match node:
        case Column() | Literal():
            return True
        case Call():
            has_pattern = node.name == "like" and isinstance(node.args[1], Literal)
            return node.name in _QUIET or has_pattern
        case Cast():
            return node.arg.type == node.type or _widens(node)
    return False


def _widens(node: Cast) -> bool:
    source, target = node.arg.type, node.type
    if source.json in _INTEGERS and target.json in _INTEGERS:
        return _INTEGERS.index(str(source.json)) <= _INTEGERS.index(str(target.json))
    exact = is_integral(source) or isinstance(source, Decimal)
    return exact and isinstance(target, Decimal) and not cast_nullable(source, target)
