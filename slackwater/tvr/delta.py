"""The change of a relation between two times, from the changes of what it reads.

`Deltas` answers for each operator: its rows at the old and the new time, and its change as a
Z-relation; None where it does not change.
"""

from __future__ import annotations

from collections.abc import Callable
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
from slackwater.tvr.time import NEW, OLD, change_of, reads, snapshot

Law = Callable[["Deltas", Relation], Relation]


@dataclass
class Deltas:
    """Changes of every operator of a query, given which sources changed."""

    changed: frozenset[str]
    used: dict[Relation, str] = field(default_factory=dict)
    _known: dict[Relation, Relation | None] = field(default_factory=dict)

    def old(self, relation: Relation) -> Relation:
        """The relation before the change."""
        return snapshot(relation, self.changed, OLD)

    def new(self, relation: Relation) -> Relation:
        """The relation after the change."""
        return snapshot(relation, self.changed, NEW)

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
