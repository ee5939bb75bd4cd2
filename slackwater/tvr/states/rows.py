"""The output of an operator, kept: what it gave is read, never computed again.

Needed where a recomputed row may differ from the one given before (sums of doubles), and cheaper
where computing the old rows again costs as much as computing the new ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from slackwater.algebra.expr import columns
from slackwater.algebra.relation import Aggregate, Join, Opaque, Relation, TopK, Window
from slackwater.tvr import zset
from slackwater.tvr.laws.keyed import affected, over, shared_partition
from slackwater.tvr.laws.linear import LINEAR
from slackwater.tvr.restrict import Keys, restrict
from slackwater.tvr.states.sums import is_invertible
from slackwater.tvr.time import CHANGE, weighted_scan
from slackwater.types import Field, Schema

if TYPE_CHECKING:
    from slackwater.tvr.delta import Deltas


@dataclass(frozen=True)
class RowState:
    """The rows of one operator, stored under `id`."""

    node: Relation
    id: str
    names: tuple[str, ...] = ()
    kind = "rows"

    @property
    def schema(self) -> Schema:
        """The operator's columns, under names that are all different."""
        fields = self.node.schema
        names = self.names or tuple(f"c{i}" for i in range(len(fields)))
        return tuple(Field(n, f.type, f.nullable) for n, f in zip(names, fields, strict=True))

    @property
    def places(self) -> Mapping[str, int]:
        """Where its columns are among those of the operator."""
        return {f.name: i for i, f in enumerate(self.schema[: self.node.width])}

    @property
    def name(self) -> str:
        """What people call it."""
        return f"rows of {type(self.node).__name__}"

    def initial(self, deltas: Deltas) -> Relation:
        """All rows."""
        rows = zset.with_weight(over(self.node, [deltas.rows(i) for i in self.node.inputs]))
        return zset.consolidate(rows) if self._follows else rows

    @property
    def _follows(self) -> bool:
        """Does its change follow from its inputs' changes, by a law that reads no output?"""
        return isinstance(self.node, (Join, *LINEAR))

    def change(self, deltas: Deltas) -> Relation:
        """ΔQ = Q(R'|K) − stored Q(R)|K, K the keys in ΔR; without keys, of everything"""
        if self._follows:
            return zset.consolidate(deltas.by_law(self.node))
        before = self.weighted(deltas.time(self.node, old=True))
        keys = local_keys(self.node)
        inputs = [deltas.rows(i) for i in self.node.inputs]
        if keys is None:
            deltas.note(self.node, "recompute", reason(self.node))
        else:
            deltas.note(self.node, "recompute_affected_keys")
            below, own = keys
            wanted = affected(deltas, self.node.inputs, [below])
            inputs = [restrict(inputs[0], below, wanted)]
            before = restrict(before, own, wanted)
        after = zset.with_weight(over(self.node, inputs))
        return zset.consolidate(zset.plus([after, zset.negate(before)]))

    def weighted(self, time: str) -> Relation:
        """The rows at a time, with weights."""
        return weighted_scan(self.id, self.id, self.schema, time)

    def delta(self, deltas: Deltas) -> Relation:
        """The change that was written."""
        return self.weighted(CHANGE)


def local_keys(node: Relation) -> tuple[Keys, Keys] | None:
    """The keys to which an operator of one input is local: over its input, over its output."""
    if isinstance(node, Aggregate) and node.keys:
        return node.keys, columns(node.schema)[: len(node.keys)]
    if isinstance(node, Window) and (shared := shared_partition(node)):
        return shared, shared
    return None


def reason(node: Relation) -> str:
    """Why an operator is not local to any key."""
    match node:
        case Window():
            return "NO_PARTITION_BY"
        case Aggregate():
            return "STATE_NOT_KEPT" if is_invertible(node) else "NO_GROUP_BY"
        case TopK(limit=int()):
            return "STATE_NOT_KEPT"
        case Opaque():
            return node.reason
    return "OFFSET_WITHOUT_LIMIT"
