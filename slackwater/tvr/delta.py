"""The change of a relation between two times, from the changes of what it reads.

`Deltas` answers for each operator: its rows at the old and the new time, and its change as a
Z-relation; None where it does not change.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from slackwater.algebra.relation import (
    Aggregate,
    Distinct,
    Expand,
    Filter,
    Generate,
    Join,
    Opaque,
    Project,
    Relation,
    Scan,
    SetOp,
    TopK,
    Union,
    Values,
    Window,
)
from slackwater.tvr.laws import joins, keyed, linear, recompute
from slackwater.tvr.state import AggregateState
from slackwater.tvr.time import CHANGE, NEW, OLD, change_of, reads, source_at
from slackwater.types import BIGINT, WEIGHT, Field


@dataclass
class Deltas:
    """Changes of every operator of a query, given which sources changed."""

    changed: frozenset[str]
    states: Mapping[Relation, AggregateState] = field(default_factory=dict)
    used: dict[Relation, str] = field(default_factory=dict)
    _known: dict[Relation, Relation | None] = field(default_factory=dict)

    def old(self, relation: Relation) -> Relation:
        """The relation before the change."""
        return self._at(relation, OLD)

    def new(self, relation: Relation) -> Relation:
        """The relation after the change."""
        return self._at(relation, NEW)

    def _at(self, relation: Relation, time: str) -> Relation:
        """The relation at a time, read from states where there are any."""
        known: dict[Relation, Relation] = {}

        def visit(node: Relation) -> Relation:
            if node not in known:
                known[node] = self._read(node, time) or node.with_children(visit)
            return known[node]

        return visit(relation)

    def _read(self, node: Relation, time: str) -> Relation | None:
        if isinstance(node, Scan) and node.source in self.changed:
            return node.replace(source=source_at(node.source, time))
        if node in self.states:
            state = self.states[node]
            return state.output(state.scan(time if self.changes(node) else ""))
        return None

    def changes(self, relation: Relation) -> bool:
        """Does the relation read anything that changed?"""
        return reads(relation, self.changed)

    def delta(self, relation: Relation) -> Relation | None:
        """The rows with weights by which the relation changes; None if it does not."""
        if relation not in self._known:
            self._known[relation] = self._delta(relation) if self.changes(relation) else None
        return self._known[relation]

    def sure(self, relation: Relation) -> Relation:
        """The change of a relation that does change."""
        found = self.delta(relation)
        assert found is not None
        return found

    def _delta(self, relation: Relation) -> Relation:
        if isinstance(relation, Scan):
            return change_of(relation)
        if relation in self.states:
            self.used[relation] = "merge_partial_sums"
            state = self.states[relation]
            fields = (*state.schema, Field(WEIGHT, BIGINT, False))
            return state.output(Scan(state.id + CHANGE, state.id, fields))
        for law in LAWS[type(relation)]:
            found = law(self, relation)
            if found is not None:
                self.used[relation] = law.__name__
                return found
        raise AssertionError(f"no law for {type(relation).__name__}")


LAWS: dict[type[Relation], tuple[Callable[..., Relation | None], ...]] = {
    Filter: (linear.delta_filter,),
    Project: (linear.delta_project,),
    Union: (linear.delta_union,),
    Expand: (linear.delta_expand,),
    Generate: (linear.delta_generate,),
    Join: (joins.delta_inner, joins.delta_left_side, keyed.delta_join, recompute.delta_recompute),
    Aggregate: (keyed.delta_aggregate, recompute.delta_recompute),
    Distinct: (keyed.delta_distinct,),
    SetOp: (keyed.delta_set_operation,),
    Window: (keyed.delta_window, recompute.delta_recompute),
    TopK: (recompute.delta_recompute,),
    Opaque: (recompute.delta_recompute,),
    Values: (recompute.delta_recompute,),
}
"""For each operator the laws to try, best first; a law that does not apply gives None."""
