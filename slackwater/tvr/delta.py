"""The change of a relation between two times, from the changes of what it reads.

`Deltas` answers for each operator: its rows at the old and the new time, plain or with weights,
and its change as a Z-relation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from slackwater.algebra.relation import (
    Aggregate,
    Bag,
    Distinct,
    Join,
    Opaque,
    Relation,
    Scan,
    SetOp,
    TopK,
    Union,
    Values,
    Window,
)
from slackwater.tvr import zset
from slackwater.tvr.laws import joins, keyed, linear, partners, recompute, whole_keys
from slackwater.tvr.preaggregate import Pays, never
from slackwater.tvr.references import Reference
from slackwater.tvr.states import State
from slackwater.tvr.states.buffer import BufferState
from slackwater.tvr.states.rows import RowState
from slackwater.tvr.states.sums import SumState
from slackwater.tvr.time import CHANGE, NEW, NOW, OLD, reads, weighted_scan


@dataclass(frozen=True)
class Note:
    """By which law an operator's change was computed, and why not by a better one."""

    law: str
    reason: str = ""


@dataclass
class Deltas:
    """Changes of every operator of a query, given which sources changed.

    `weighted`: sources that are stored with weights other than one. `pays`: which changes are
    summed up before they are joined. `forms`: operators whose change is that of other operators
    that give the same rows; `laws`: those whose change is computed by laws of their own.
    `references`: those to sources of which no key both comes and goes.
    """

    changed: frozenset[str] = frozenset()
    weighted: frozenset[str] = frozenset()
    states: Mapping[Relation, State] = field(default_factory=dict)
    pays: Pays = never
    forms: Mapping[Relation, Relation] = field(default_factory=dict)
    references: frozenset[Reference] = frozenset()
    laws: Mapping[Relation, Laws] = field(default_factory=dict)
    notes: dict[Relation, Note] = field(default_factory=dict)
    _changes: dict[Relation, bool] = field(default_factory=dict)
    _deltas: dict[Relation, Relation] = field(default_factory=dict)
    _z: dict[tuple[Relation, str], Relation] = field(default_factory=dict)
    _rows: dict[tuple[Relation, str], Relation] = field(default_factory=dict)

    def note(self, node: Relation, law: str, reason: str = "") -> None:
        """Remember how an operator's change was computed."""
        self.notes[node] = Note(law, reason)

    def changes(self, relation: Relation) -> bool:
        """Does the relation read anything that changed?"""
        if relation not in self._changes:
            self._changes[relation] = reads(relation, self.changed)
        return self._changes[relation]

    def time(self, relation: Relation, old: bool = False) -> str:
        """Under which time a relation is read."""
        if not self.changes(relation):
            return NOW
        return OLD if old else NEW

    # -- content

    def z(self, node: Relation, old: bool = False) -> Relation:
        """The rows of a relation with weights; equal rows may come several times."""
        key = (node, self.time(node, old))
        if key not in self._z:
            self._z[key] = self._make_z(node, old)
        return self._z[key]

    def _make_z(self, node: Relation, old: bool) -> Relation:
        state = self.states.get(node)
        if isinstance(state, RowState):
            return state.weighted(self.time(node, old))
        if state is None and self._is_weighted(node):
            match node:
                case Scan():
                    return self._scan(node, self.time(node, old))
                case Union():
                    return linear.added(node, [self.z(p, old) for p in node.parts])
                case Join(how="inner"):
                    inner = joins.flatten(node)
                    return joins.outward(inner, [self.z(r, old) for r in inner.inputs], 0)
                case Join(how="left" | "semi" | "anti"):
                    left, right = self.z(node.left, old), self.rows(node.right, old)
                    return joins.by_left_rows(node, left, right)
                case _ if isinstance(node, linear.LINEAR):
                    return linear.over_weighted(node, self.z(node.inputs[0], old))
        return zset.with_weight(self.rows(node, old))

    def _scan(self, node: Scan, time: str) -> Relation:
        """A source's rows with weights. What is new is what was, and the change, so that a part
        read at both times is read once."""
        if time != NEW:
            return weighted_scan(node.source, node.name, node.fields, time)
        return zset.plus([self._scan(node, OLD), self._scan(node, CHANGE)])

    def rows(self, node: Relation, old: bool = False) -> Relation:
        """The rows of a relation, each as often as it counts."""
        key = (node, self.time(node, old))
        if key not in self._rows:
            self._rows[key] = self._make_rows(node, old)
        return self._rows[key]

    def _make_rows(self, node: Relation, old: bool) -> Relation:
        state = self.states.get(node)
        if isinstance(state, SumState | BufferState):
            return state.rows(self.time(node, old))
        if state is not None or (self._is_weighted(node) and _keeps_weights(node)):
            return Bag(self.z(node, old))
        if isinstance(node, Scan):
            if node.source not in self.changed:
                return node
            return zset.unweighted(self._scan(node, self.time(node, old)))
        return node.with_children(lambda child: self.rows(child, old))

    def _is_weighted(self, node: Relation) -> bool:
        """Is any of the rows that the relation is read from stored with a weight?"""
        if node in self.states:
            return isinstance(self.states[node], RowState)
        if isinstance(node, Scan):
            return node.source in self.weighted
        return any(self._is_weighted(child) for child in node.inputs)

    def is_linear(self, node: Relation) -> bool:
        """Is the relation read from stored rows by inner joins, filters, projections alone?"""
        if node in self.states:
            return isinstance(self.states[node], RowState)
        if isinstance(node, Join) and node.how != "inner":
            return False
        return _keeps_weights(node) and all(self.is_linear(child) for child in node.inputs)

    @property
    def narrows(self) -> bool:
        """Is of a join's partners only computed what may match?"""
        return True

    # -- change

    def delta(self, relation: Relation) -> Relation | None:
        """The rows with weights by which the relation changes; None if it does not."""
        return self.sure(relation) if self.changes(relation) else None

    def sure(self, relation: Relation) -> Relation:
        """The change of a relation that does change."""
        assert self.changes(relation)
        if relation not in self._deltas:
            self._deltas[relation] = self._delta(relation)
        return self._deltas[relation]

    def _delta(self, node: Relation) -> Relation:
        if node in self.states:
            return self.states[node].delta(self)
        return self.by_law(node)

    def by_law(self, node: Relation) -> Relation:
        """The change of a relation, whether anything is kept of it or not."""
        if node in self.forms:
            return self.sure(self.forms[node])
        if isinstance(node, Scan):
            return self._scan(node, CHANGE)
        if isinstance(node, Union):
            return linear.added(node, [self.sure(p) for p in node.parts if self.changes(p)])
        if isinstance(node, linear.LINEAR):
            return linear.over_weighted(node, self.sure(node.inputs[0]))
        for law in self.laws.get(node, LAWS[type(node)]):
            found = law(self, node)
            if found is not None:
                return found
        raise AssertionError(f"no law for {type(node).__name__}")


def _keeps_weights(node: Relation) -> bool:
    """Does the operator carry the weights of its input along?"""
    if isinstance(node, Join):
        return node.how != "full"
    return isinstance(node, (Scan, Union, *linear.LINEAR))


Laws = tuple[Callable[..., Relation | None], ...]

LAWS: dict[type[Relation], Laws] = {
    Join: (
        whole_keys.delta_whole_keys,
        joins.delta_inner,
        partners.delta_by_partners,
        joins.delta_left_rows,
        keyed.delta_join,
        recompute.delta_recompute,
    ),
    Aggregate: (keyed.delta_aggregate, recompute.delta_recompute),
    Distinct: (keyed.delta_distinct,),
    SetOp: (keyed.delta_set_operation,),
    Window: (keyed.delta_window, recompute.delta_recompute),
    TopK: (recompute.delta_recompute,),
    Opaque: (recompute.delta_recompute,),
    Values: (recompute.delta_recompute,),
}
"""For each operator that is not linear the laws to try, best first; a law that does not apply
gives None."""
