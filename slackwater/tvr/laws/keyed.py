"""Operators that are local to a key: only rows whose key occurs in the change matter.

    ΔQ = Q(R'|K) − Q(R|K)        K: the keys in ΔR

(002, 3.4.2: domain extraction.)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from slackwater.algebra.expr import Expr, columns
from slackwater.algebra.relation import Aggregate, Distinct, Join, Relation, SetOp, Window
from slackwater.tvr import zset
from slackwater.tvr.restrict import Keys, distinct_keys, equi_keys, restrict

if TYPE_CHECKING:
    from slackwater.tvr.delta import Deltas


def local_to_keys(deltas: Deltas, node: Relation, keys: Sequence[Keys]) -> Relation:
    """The law above, for an operator whose inputs have these keys."""
    deltas.note(node, "recompute_affected_keys")
    wanted = affected(deltas, node.inputs, keys)
    parts = []
    for old, weigh in ((False, zset.with_weight), (True, zset.minus)):
        inputs = [
            restrict(deltas.rows(i, old), k, wanted) for i, k in zip(node.inputs, keys, strict=True)
        ]
        parts.append(weigh(over(node, inputs)))
    return zset.plus(parts)


def over(node: Relation, inputs: Sequence[Relation]) -> Relation:
    """The operator over other inputs."""
    following = iter(inputs)
    return node.with_children(lambda _: next(following))


def affected(deltas: Deltas, inputs: Sequence[Relation], keys: Sequence[Keys]) -> Relation:
    """K: the distinct keys of all changed rows."""
    changed = [(i, k) for i, k in zip(inputs, keys, strict=True) if deltas.changes(i)]
    return distinct_keys([deltas.sure(i) for i, _ in changed], [k for _, k in changed])


def delta_aggregate(deltas: Deltas, node: Aggregate) -> Relation | None:
    """Δγ(R) = γ(R'|K) − γ(R|K): groups are independent of each other"""
    return local_to_keys(deltas, node, [node.keys]) if node.keys else None


def delta_distinct(deltas: Deltas, node: Distinct) -> Relation:
    """Δδ(R) = δ(R'|K) − δ(R|K), K the changed rows"""
    return local_to_keys(deltas, node, [columns(node.input.schema)])


def delta_set_operation(deltas: Deltas, node: SetOp) -> Relation:
    """Δ(R ∘ S) = (R'|K ∘ S'|K) − (R|K ∘ S|K) for ∩ and −, K the rows changed on either side"""
    return local_to_keys(deltas, node, [columns(node.left.schema), columns(node.right.schema)])


def shared_partition(node: Window) -> Keys:
    """The expressions by which every window of the operator is partitioned."""
    shared = list(node.calls[0].partition_by)
    for call in node.calls[1:]:
        shared = [e for e in shared if e in call.partition_by]
    return tuple(shared)


def delta_window(deltas: Deltas, node: Window) -> Relation | None:
    """Δω(R) = ω(R'|K) − ω(R|K), K the partitions that every window of the operator shares"""
    shared = shared_partition(node)
    return local_to_keys(deltas, node, [shared]) if shared else None


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
