"""Joins that are linear in what changes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from slackwater.algebra.expr import (
    Expr,
    conjunction,
    conjuncts,
    remap,
    used_columns,
)
from slackwater.algebra.relation import Join, Relation
from slackwater.sql import build
from slackwater.tvr import zset

if TYPE_CHECKING:
    from slackwater.tvr.delta import Deltas


@dataclass(frozen=True)
class Inner:
    """An inner join of any number of inputs, its conditions over all their columns in a row."""

    inputs: tuple[Relation, ...]
    conditions: tuple[Expr, ...]

    def start(self, i: int) -> int:
        """Where the columns of input i begin."""
        return sum(r.width for r in self.inputs[:i])


def flatten(join: Join) -> Inner:
    """Nested inner joins as one."""
    inputs: list[Relation] = []
    conditions: list[Expr] = []

    def visit(node: Relation) -> None:
        if isinstance(node, Join) and node.how == "inner":
            start = sum(r.width for r in inputs)
            visit(node.left)
            visit(node.right)
            conditions.extend(remap(c, lambda i: i + start) for c in conjuncts(node.condition))
        else:
            inputs.append(node)

    visit(join)
    return Inner(tuple(inputs), tuple(conditions))


def delta_inner(deltas: Deltas, node: Join) -> Relation | None:
    """Δ(R₁ ⋈ … ⋈ Rₙ) = Σᵢ R₁' ⋈ … ⋈ ΔRᵢ ⋈ … ⋈ Rₙ: one term per changed input, new to its left,
    old to its right, each term joined outward from its change"""
    if node.how != "inner":
        return None
    inner = flatten(node)
    terms = []
    for i, changed in enumerate(inner.inputs):
        if deltas.changes(changed):
            sides = [
                deltas.sure(r) if j == i else deltas.new(r) if j < i else deltas.old(r)
                for j, r in enumerate(inner.inputs)
            ]
            terms.append(outward(inner, sides, i))
    return zset.plus(terms)


def outward(inner: Inner, sides: list[Relation], first: int) -> Relation:
    """Join the sides, beginning at one; what shares a condition with those joined comes next.

    The first side has a weight behind its columns; it ends up behind all.
    """
    joined = sides[first]
    weight_at = joined.width - 1
    places = {inner.start(first) + c: c for c in range(inner.inputs[first].width)}
    left = [i for i in range(len(sides)) if i != first]
    waiting = list(inner.conditions)
    while left:
        following = next((i for i in left if _connected(inner, i, places, waiting)), left[0])
        left.remove(following)
        start, at = inner.start(following), joined.width
        places |= {start + c: at + c for c in range(inner.inputs[following].width)}
        ready = [c for c in waiting if used_columns(c) <= places.keys()]
        waiting = [c for c in waiting if c not in ready]
        condition = conjunction([remap(c, places.__getitem__) for c in ready])
        joined = Join(joined, sides[following], "inner", condition)
    order = [places[i] for i in range(len(places))]
    return build.pick(joined, [*order, weight_at])


def _connected(inner: Inner, i: int, places: dict[int, int], waiting: list[Expr]) -> bool:
    start = inner.start(i)
    own = set(range(start, start + inner.inputs[i].width))
    for condition in waiting:
        used = used_columns(condition)
        if used & own and used & places.keys() and used <= own | places.keys():
            return True
    return False


def delta_left_side(deltas: Deltas, node: Join) -> Relation | None:
    """Δ(R ⟕ S) = ΔR ⟕ S, and so for ⋉ and ▷, where only R changes: each row of R by itself"""
    if node.how not in ("left", "semi", "anti") or deltas.changes(node.right):
        return None
    change = deltas.sure(node.left)
    width = node.left.width
    condition = remap(node.condition, lambda i: i if i < width else i + 1)
    joined = Join(change, node.right, node.how, condition)
    if node.how != "left":
        return joined
    order = [*range(width), *range(width + 1, joined.width), width]
    return build.pick(joined, order)
