"""Anything at all: what it is now, less what it was."""

from __future__ import annotations

from typing import TYPE_CHECKING

from slackwater.algebra.relation import Aggregate, Relation, TopK
from slackwater.tvr import zset

if TYPE_CHECKING:
    from slackwater.tvr.delta import Deltas


def delta_recompute(deltas: Deltas, node: Relation) -> Relation:
    """ΔQ = Q(R') − Q(R)"""
    of_few = isinstance(node, Aggregate) and isinstance(node.input, TopK)
    deltas.note(node, "recompute_from_few_rows" if of_few else "recompute")
    return zset.plus([zset.with_weight(deltas.rows(node)), zset.minus(deltas.rows(node, old=True))])
