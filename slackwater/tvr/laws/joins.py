"""Joins that are linear in what changes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from slackwater.algebra.expr import (
    Call,
    Expr,
    columns,
    conjunction,
    conjuncts,
    remap,
    shift,
    used_columns,
)
from slackwater.algebra.relation import Join, Project, Relation
from slackwater.sql import build
from slackwater.tvr import references, zset
from slackwater.tvr.references import Order
from slackwater.tvr.restrict import distinct_keys, equi_keys, restrict
from slackwater.types import WEIGHT

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

    def equalities(self, i: int, j: int) -> list[tuple[Expr, Expr]]:
        """The equalities between two inputs, each side over its own row."""
        pairs = []
        for condition in self.conditions:
            if isinstance(condition, Call) and condition.name in ("=", "<=>"):
                for a, b in (condition.args, condition.args[::-1]):
                    if self._reads_only(a, i) and self._reads_only(b, j):
                        pairs.append((shift(a, -self.start(i)), shift(b, -self.start(j))))
                        break
        return pairs

    def _reads_only(self, expr: Expr, i: int) -> bool:
        start, used = self.start(i), used_columns(expr)
        return bool(used) and all(start <= c < start + self.inputs[i].width for c in used)


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
    old to its right, each term joined outward from its change; fewer by references"""
    if node.how != "inner":
        return None
    inner = flatten(node)
    known = [r for r in deltas.references if r.target in deltas.changed]
    order = references.order(inner.inputs, inner.equalities, known)
    deltas.note(node, "delta_join_by_reference" if order.spared else "delta_join")
    terms = []
    for i, changed in enumerate(inner.inputs):
        if deltas.changes(changed) and i not in order.spared:
            sides = [
                deltas.sure(r) if j == i else _other_side(deltas, inner, i, j, order)
                for j, r in enumerate(inner.inputs)
            ]
            terms.append(outward(inner, sides, i))
    return zset.plus(terms) if terms else zset.nothing(node)


def _other_side(deltas: Deltas, inner: Inner, i: int, j: int, order: Order) -> Relation:
    """What the change of input i is joined with: input j as it is now, or was. Where j is more
    than stored rows, only what may match is computed of it."""
    changed = order.is_before(j, i)
    if changed and j in order.spared:
        was, change = deltas.z(inner.inputs[j], old=True), deltas.sure(inner.inputs[j])
        return zset.plus([was, zset.coming(change)])
    side = deltas.z(inner.inputs[j], old=not changed)
    if deltas.is_linear(inner.inputs[j]):
        return side
    pairs = inner.equalities(i, j)
    if not pairs:
        return side
    wanted = distinct_keys([deltas.sure(inner.inputs[i])], [tuple(a for a, _ in pairs)])
    return restrict(side, tuple(b for _, b in pairs), wanted)


def outward(inner: Inner, sides: Sequence[Relation], first: int) -> Relation:
    """Join rows with weights, beginning at one side; what shares a condition with those joined
    comes next. The weight of a joined row is the product of its rows' weights."""
    joined, places, weights = met(inner, sides, first)
    row = columns(joined.schema)
    order = [row[places[i]] for i in range(len(places))]
    names = tuple(f.name for r in inner.inputs for f in r.schema)
    return Project(joined, (*order, zset.product(list(weights.values()))), (*names, WEIGHT))


def met(
    inner: Inner, sides: Sequence[Relation], first: int
) -> tuple[Relation, dict[int, int], dict[int, Expr]]:
    """The same as joins alone, where the columns of the row of all inputs are in what they give,
    and the weight of each side, of those that have one."""
    joined, weight = _side(sides[first], 0)
    weights = {first: weight}
    places = {inner.start(first) + c: c for c in range(inner.inputs[first].width)}
    left = [i for i in range(len(sides)) if i != first]
    waiting = list(inner.conditions)
    while left:
        following = next((i for i in left if _connected(inner, i, places, waiting)), left[0])
        left.remove(following)
        start, at = inner.start(following), joined.width
        side, weights[following] = _side(sides[following], at)
        places |= {start + c: at + c for c in range(inner.inputs[following].width)}
        ready = [c for c in waiting if used_columns(c) <= places.keys()]
        waiting = [c for c in waiting if c not in ready]
        condition = conjunction([remap(c, places.__getitem__) for c in ready])
        joined = Join(joined, side, "inner", condition)
    return joined, places, {i: w for i, w in weights.items() if w is not zset.ONE}


def _side(z: Relation, at: int) -> tuple[Relation, Expr]:
    """A side to join whose row begins at `at`, and its weight, which may be one for all."""
    if zset.is_plain(z):
        return zset.unweighted(z), zset.ONE
    return z, shift(zset.weight(z), at)


def _connected(inner: Inner, i: int, places: dict[int, int], waiting: list[Expr]) -> bool:
    start = inner.start(i)
    own = set(range(start, start + inner.inputs[i].width))
    for condition in waiting:
        used = used_columns(condition)
        if used & own and used & places.keys() and used <= own | places.keys():
            return True
    return False


def by_left_rows(node: Join, left: Relation, right: Relation) -> Relation:
    """A left, semi or anti join of weighted left rows with plain right rows: what becomes of a
    left row does not depend on other left rows, and its weight stays."""
    width = node.left.width
    condition = remap(node.condition, lambda i: i if i < width else i + 1)
    joined = Join(left, right, node.how, condition)
    if node.how != "left":
        return joined
    return build.pick(joined, [*range(width), *range(width + 1, joined.width), width])


def delta_left_rows(deltas: Deltas, node: Join) -> Relation | None:
    """Δ(R ∘ S) = ΔR ∘ S' + (R|K ∘ S' − R|K ∘ S) for ⟕, ⋉ and ▷, K the keys in ΔS

    Only rows of R whose key is in ΔS can find other partners than before. Without an equality
    between both sides K is everything. Of S, only rows with keys in ΔR or ΔS are read.
    """
    if node.how not in ("left", "semi", "anti"):
        return None
    pairs = equi_keys(node)
    after, terms = _Partners(deltas, node, pairs), []
    if deltas.changes(node.left):
        deltas.note(node, "delta_of_left_rows")
        terms.append(by_left_rows(node, deltas.sure(node.left), after.rows()))
    if deltas.changes(node.right):
        before = deltas.z(node.left, old=True)
        if pairs:
            deltas.note(node, "partners_of_changed_keys")
            wanted = distinct_keys([deltas.sure(node.right)], [tuple(b for _, b in pairs)])
            before = restrict(before, tuple(a for a, _ in pairs), wanted)
        else:
            deltas.note(node, "recompute", "NO_EQUALITY_IN_JOIN")
        terms.append(by_left_rows(node, before, after.rows()))
        terms.append(zset.negate(by_left_rows(node, before, after.rows(old=True))))
    return zset.plus(terms)


@dataclass
class _Partners:
    """The rows of a join's right side that any changed row, of either side, may match."""

    deltas: Deltas
    node: Join
    pairs: list[tuple[Expr, Expr]]

    def rows(self, old: bool = False) -> Relation:
        """At a time."""
        found = self.deltas.rows(self.node.right, old)
        if not self.pairs or not self.deltas.narrows:
            return found
        sides = ((self.node.left, 0), (self.node.right, 1))
        changed = [(side, i) for side, i in sides if self.deltas.changes(side)]
        keys = [tuple(pair[i] for pair in self.pairs) for _, i in changed]
        wanted = distinct_keys([self.deltas.sure(side) for side, _ in changed], keys)
        return restrict(found, tuple(b for _, b in self.pairs), wanted)
