"""Blocks: what SQL says in one SELECT … FROM a, b, c WHERE ….

Inner joins, filters and picked columns are gathered from the tree, so that the engine sees all
inputs and conditions side by side and finds its own join order.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from slackwater.algebra.expr import (
    Column,
    Expr,
    columns,
    conjuncts,
    shift,
    substitute,
    used_columns,
)
from slackwater.algebra.relation import Aggregate, Filter, Join, Project, Relation
from slackwater.planner.places import COPY_LEFT, HASH_LEFT, Meeting


@dataclass(frozen=True)
class Block:
    """Inputs side by side, the conditions on their joined row, and a row computed from it."""

    leaves: tuple[Relation, ...]
    row: tuple[Expr, ...]
    conditions: tuple[Expr, ...] = ()
    told: tuple[tuple[int, str], ...] = ()
    """Of inputs, how they meet those before them, where that was decided (`places.Meeting`)."""

    @property
    def width(self) -> int:
        """How many columns the inputs have together."""
        return sum(leaf.width for leaf in self.leaves)

    def values(self) -> tuple[int, ...]:
        """Inputs that are one value each, which one condition reads, besides at least one other
        input. A value can stand in its condition as a subquery."""
        found = tuple(i for i in range(len(self.leaves)) if self._is_value(i))
        return found[len(found) == len(self.leaves) :]

    def _is_value(self, leaf: int) -> bool:
        value = self.leaves[leaf]
        place = sum(other.width for other in self.leaves[:leaf])
        readers = [c for c in self.conditions if place in used_columns(c)]
        read = place in used_columns(*self.row)
        return value.width == 1 and is_one_row(value) and len(readers) == 1 and not read


def is_one_row(relation: Relation) -> bool:
    """Does it have exactly one row, whatever it reads?"""
    while isinstance(relation, Project):
        relation = relation.input
    return isinstance(relation, Aggregate) and not relation.keys


def block_of(node: Relation, apart: Callable[[Relation], bool]) -> Block | None:
    """The block that an operator with all it can absorb makes; None if it is no such operator.

    `apart` tells which operators below must stay by themselves.
    """
    match node:
        case Project():
            below = _gather(node.input, apart)
            row = tuple(substitute(e, below.row) for e in node.exprs)
            return replace(below, row=row)
        case Aggregate():
            below = _gather(node.input, apart)
            row = tuple(substitute(e, below.row) for e in node.keys + node.aggs)
            return replace(below, row=row)
        case Filter():
            return _filtered(node, apart)
        case Join() if node.how == "inner":
            return _joined(node, apart)
    return None


def _gather(node: Relation, apart: Callable[[Relation], bool]) -> Block:
    if not apart(node):
        if isinstance(node, Filter):
            return _filtered(node, apart)
        if isinstance(node, Join) and node.how == "inner":
            return _joined(node, apart)
        if isinstance(node, Project) and all(isinstance(e, Column) for e in node.exprs):
            below = _gather(node.input, apart)
            return replace(below, row=tuple(substitute(e, below.row) for e in node.exprs))
    return _alone(node)


def _alone(node: Relation) -> Block:
    return Block((node,), columns(node.schema))


def _filtered(node: Filter, apart: Callable[[Relation], bool]) -> Block:
    below = _gather(node.input, apart)
    added = tuple(substitute(c, below.row) for c in conjuncts(node.predicate))
    return replace(below, conditions=below.conditions + added)


def _joined(node: Join, apart: Callable[[Relation], bool]) -> Block:
    left, right = _gather(node.left, apart), _gather(node.right, apart)
    told: tuple[tuple[int, str], ...] = ()
    if isinstance(node, Meeting):
        left, right, told = _met(node, left, right)
    by = left.width
    row = left.row + tuple(shift(e, by) for e in right.row)
    moved = tuple(shift(c, by) for c in right.conditions)
    added = tuple(substitute(c, row) for c in conjuncts(node.condition))
    return Block(left.leaves + right.leaves, row, left.conditions + moved + added, told)


def _met(
    node: Meeting, left: Block, right: Block
) -> tuple[Block, Block, tuple[tuple[int, str], ...]]:
    """The sides of a join that says how they meet. Joins with such a word are done in the order in
    which they are written, each with one input more; and what is said of a side is said of one
    input."""
    of_left = node.meets in (COPY_LEFT, HASH_LEFT)
    if of_left and len(left.leaves) > 1:
        left = _alone(node.left)
    if len(right.leaves) > 1:
        right = _alone(node.right)
    place = 0 if of_left else len(left.leaves)
    return left, right, (*left.told, (place, node.meets))
