"""Operators that are local to a key: only rows whose key occurs in the change matter.

    ΔQ = Q(R'|K) − Q(R|K)        K: the keys in ΔR

(002, 3.4.2: domain extraction.)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from slackwater.algebra.expr import Expr, columns
from slackwater.algebra.relation import (
    Aggregate,
    Distinct,
    Join,
    Project,
    Relation,
    SetOp,
    Window,
)
from slackwater.tvr import zset
from slackwater.tvr.restrict import Keys, equi_keys, restrict

if TYPE_CHECKING:
    from slackwater.tvr.delta import Deltas


def local_to_keys(deltas: Deltas, node: Relation, keys: Sequence[Keys]) -> Relation:
    """The law above, for an operator whose inputs have these keys."""
    wanted = affected(deltas, node.inputs, keys)
    parts = []
    for rows, weigh in ((deltas.new, zset.with_weight), (deltas.old, zset.minus)):
        inputs = [restrict(rows(i), k, wanted) for i, k in zip(node.inputs, keys, strict=True)]
        parts.append(weigh(_over(node, inputs)))
    return zset.plus(parts)


def _over(node: Relation, inputs: Sequence[Relation]) -> Relation:
    """The operator over other inputs."""
    following = iter(inputs)
    return node.with_children(lambda _: next(following))


def affected(deltas: Deltas, inputs: Sequence[Relation], keys: Sequence[Keys]) -> Relation:
    """K: the distinct keys of all changed rows."""
    names = tuple(f"k{i}" for i in range(len(keys[0])))
    found = [
        Project(deltas.sure(child), tuple(own), names)
        for child, own in zip(inputs, keys, strict=True)
        if deltas.changes(child)
    ]
    return Distinct(zset.plus(found))


def delta_aggregate(deltas: Deltas, node: Aggregate) -> Relation | None:
    """Δγ(R) = γ(R'|K) − γ(R|K): groups are independent of each other"""
    return local_to_keys(deltas, node, [node.keys]) if node.keys else None


def delta_distinct(deltas: Deltas, node: Distinct) -> Relation:
    """Δδ(R) = δ(R'|K) − δ(R|K), K the changed rows"""
    return local_to_keys(deltas, node, [columns(node.input.schema)])


def delta_set_operation(deltas: Deltas, node: SetOp) -> Relation:
    """Δ(R ∘ S) = (R'|K ∘ S'|K) − (R|K ∘ S|K) for ∩ and −, K the rows changed on either side"""
    return local_to_keys(deltas, node, [columns(node.left.schema), columns(node.right.schema)])


def delta_window(deltas: Deltas, node: Window) -> Relation | None:
    """Δω(R) = ω(R'|K) − ω(R|K), K the partitions that every window of the operator shares"""
    shared = list(node.calls[0].partition_by)
    for call in node.calls[1:]:
        shared = [e for e in shared if e in call.partition_by]
    return local_to_keys(deltas, node, [tuple(shared)]) if shared else None


def delta_join(deltas: Deltas, node: Join) -> Relation | None:
    """Δ(R ⟗ S) = (R'|K ⟗ S'|K) − (R|K ⟗ S|K), K the equality keys changed on either side

    A row's partners have its key, so what becomes of it is decided among rows with that key.
    """
    pairs = equi_keys(node)
    if not pairs:
        return None
    left: tuple[Expr, ...] = tuple(a for a, _ in pairs)
    right: tuple[Expr, ...] = tuple(b for _, b in pairs)
    return local_to_keys(deltas, node, [left, right])
