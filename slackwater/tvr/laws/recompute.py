"""Anything at all: what it is now, less what it was."""

from __future__ import annotations

from typing import TYPE_CHECKING

from slackwater.algebra.relation import Relation
from slackwater.tvr import zset

if TYPE_CHECKING:
    from slackwater.tvr.delta import Deltas


def delta_recompute(deltas: Deltas, node: Relation) -> Relation:
    """ΔQ = Q(R') − Q(R)"""
    return zset.plus([zset.with_weight(deltas.new(node)), zset.minus(deltas.old(node))])
