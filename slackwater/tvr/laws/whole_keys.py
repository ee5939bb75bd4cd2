"""Joins of relations of which whole keys change (`tvr/references.py`)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from slackwater.algebra.expr import Call, Column, columns
from slackwater.algebra.relation import Bag, Join, Relation, Values
from slackwater.tvr import zset
from slackwater.tvr.laws.joins import Inner, by_left_rows, flatten, outward
from slackwater.tvr.references import Whole, kinds
from slackwater.tvr.restrict import equi_keys

if TYPE_CHECKING:
    from slackwater.tvr.delta import Deltas


def delta_whole_keys(deltas: Deltas, node: Join) -> Relation | None:
    """Δ(R ∘ S) = ΔR ∘ |ΔS| for ⋈, ⟕, ⋉ and ▷ by a key, where whole keys change"""
    for keys in kinds(deltas.references):
        whole = Whole(keys, deltas.changes)
        found = _inner(deltas, node, whole) if node.how == "inner" else None
        if node.how in ("left", "semi", "anti") and _is_by_key(node, whole):
            found = _by_left_rows(deltas, node)
        if found is not None:
            deltas.note(node, "whole_keys")
            return found
    return None


def _inner(deltas: Deltas, node: Join, whole: Whole) -> Relation | None:
    """The change of the first input that changes, joined with what else does and does not."""
    inner = flatten(node)
    changed = [i for i, r in enumerate(inner.inputs) if deltas.changes(r)]
    for group in _equal(inner):
        keyed = [i for i in range(len(inner.inputs)) if _has(inner, whole, i, group)]
        if set(changed) <= set(keyed):
            if len(keyed) > len(changed):
                return zset.nothing(node)  # what has keys and does not change has none of these
            sides = [
                deltas.z(r) if i not in changed else _either(deltas, r)
                for i, r in enumerate(inner.inputs)
            ]
            sides[changed[0]] = deltas.sure(inner.inputs[changed[0]])
            return outward(inner, sides, changed[0])
    return None


def _is_by_key(node: Join, whole: Whole) -> bool:
    return any(whole.of(node.left, a) and whole.of(node.right, b) for a, b in equi_keys(node))


def _by_left_rows(deltas: Deltas, node: Join) -> Relation:
    if not deltas.changes(node.left):
        return zset.nothing(node)
    partners: Relation = Values((), node.right.schema)
    if deltas.changes(node.right):
        partners = Bag(_either(deltas, node.right))
    return by_left_rows(node, deltas.sure(node.left), partners)


def _either(deltas: Deltas, relation: Relation) -> Relation:
    """The rows that come or go; of a key, either all come or all go."""
    return zset.absolute(zset.consolidate(deltas.sure(relation)))


def _has(inner: Inner, whole: Whole, i: int, group: set[int]) -> bool:
    """Is one of some columns, which are equal, a key of an input?"""
    row = columns(inner.inputs[i].schema)
    own = (c - inner.start(i) for c in group)
    return any(whole.of(inner.inputs[i], row[c]) for c in own if 0 <= c < len(row))


def _equal(inner: Inner) -> Iterator[set[int]]:
    """Columns of the whole row that are equal in every joined row."""
    groups: list[set[int]] = []
    for condition in inner.conditions:
        if isinstance(condition, Call) and condition.name == "=":
            pair = {a.index for a in condition.args if isinstance(a, Column)}
            if len(pair) == 2:
                met = [g for g in groups if g & pair]
                groups = [g for g in groups if not g & pair] + [pair.union(*met)]
    yield from groups
