"""The ways to run a subplan, and what each computes: by changes, by changes with what these are
joined with kept (higher-order), anew with states, anew without.

A run by changes needs states, which every run brings along, whether by changes or anew. So what is
kept is chosen for all runs of a pace together; how each of them goes about it, run by run.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from slackwater.algebra.relation import Join, Relation
from slackwater.planner.choice import FULL, HIGHER_ORDER, IM2, INCREMENTAL, OJV, OPTIONAL, PLAIN
from slackwater.planner.subplans import Subplan
from slackwater.stats.amounts import least
from slackwater.stats.cost import Work, step_work
from slackwater.stats.derived import Computed, Derived
from slackwater.stats.rows import Estimates, Rows
from slackwater.stats.values import Known
from slackwater.tvr import zset
from slackwater.tvr.delta import Deltas
from slackwater.tvr.maintenance import (
    Maintenance,
    by_direct_and_indirect,
    by_parts,
    is_repeatable,
    keeping,
    maintenance,
    with_parts_kept,
)
from slackwater.tvr.methods.higher_order import around, spread
from slackwater.tvr.prune import prune
from slackwater.tvr.references import Reference
from slackwater.tvr.states import State
from slackwater.tvr.time import CHANGE, NEW, OLD, reads, split

METHODS = (INCREMENTAL, OJV, IM2, FULL, PLAIN, HIGHER_ORDER)
RESULT = "="
"""What the rows of a subplan are called while it is costed."""

Outputs = tuple[Relation, ...]


@dataclass
class Ways:
    """Of one subplan. `changing`: by input, the rows of its change until the result is due."""

    subplan: Subplan
    changing: Callable[[str], float]
    references: frozenset[Reference] = frozenset()
    may_keep: Callable[[Relation], bool] = lambda node: True
    allowed: Collection[str] = OPTIONAL
    _found: dict[object, Outputs] = field(default_factory=dict)
    _followed: dict[frozenset[str], Mapping[str, Maintenance]] = field(default_factory=dict)

    @cached_property
    def whole(self) -> Maintenance:
        """With all usual states kept."""
        relation = self.subplan.relation
        return maintenance(relation, RESULT, relation.schema, self._id)

    @cached_property
    def plan(self) -> Maintenance:
        """With the usual states kept, as far as they may be."""
        wanted = [node.digest() for node in self.whole.states if self.may_keep(node)]
        if len(wanted) == len(self.whole.states):
            return self.whole
        return keeping(self.whole, wanted, self._id)

    @property
    def is_possible(self) -> bool:
        """Can changes be followed with what may be kept?"""
        return all(node in self.plan.states or is_repeatable(node) for node in self.whole.states)

    @cached_property
    def joined(self) -> Maintenance | None:
        """With what the largest change is joined with kept, too, where there is such a thing, and
        it may be."""
        if HIGHER_ORDER not in self.allowed:
            return None
        found = with_parts_kept(self.whole, self._pivot, self._id)
        if found is None or not all(self.may_keep(state.node) for state in found.kept):
            return None
        return found

    def followed(self, moved: frozenset[str]) -> Mapping[str, Maintenance]:
        """How changes of some inputs are followed with the usual states, by method."""
        if moved not in self._followed:
            self._followed[moved] = dict(self._follow(moved))
        return self._followed[moved]

    def _follow(self, moved: frozenset[str]) -> Iterator[tuple[str, Maintenance]]:
        yield INCREMENTAL, self.plan
        for method, follow in ((OJV, by_direct_and_indirect), (IM2, by_parts)):
            if method in self.allowed:
                other = follow(self.plan, lambda relation: reads(relation, moved))
                if other is not None:
                    yield method, other

    @cached_property
    def _ids(self) -> dict[Relation, str]:
        return {}

    def _id(self, node: Relation) -> str:
        return self._ids.setdefault(node, f"s{len(self._ids)}")

    def _pivot(self, join: Join) -> int | None:
        """The input of a join that changes most, of those around which something can be kept."""
        changes = [self._changes(part) for part in spread(join).inner.inputs]
        order = sorted((i for i, rows in enumerate(changes) if rows), key=lambda i: -changes[i])
        return next((i for i in order if around(join, i) is not None), None)

    def _changes(self, relation: Relation) -> float:
        return sum(self.changing(name) for name in {scan.source for scan in relation.scans()})

    def following(
        self, method: str, plan: Maintenance, moved: frozenset[str], even: bool
    ) -> Outputs:
        """What a run by changes computes: the change of each state, and of the rows. References
        between sources hold in what a subplan has read if it reads all of them at once."""
        return self._once((method, moved, even), lambda: self._following(plan, moved, even))

    def _following(self, plan: Maintenance, moved: frozenset[str], even: bool) -> list[Relation]:
        relied_on = self.references if even else frozenset()
        own = frozenset(self.subplan.inputs)
        deltas = Deltas(
            moved, own, plan.states, forms=plan.forms, references=relied_on, laws=plan.laws
        )
        outputs = [s.change(deltas) for s in plan.kept if deltas.changes(s.node)]
        if plan.root_is_kept:
            return [*outputs, plan.states[plan.root].change(deltas)]
        return [*outputs, zset.consolidate(deltas.sure(plan.root))]

    def anew(self) -> Outputs:
        """What a run that computes everything anew computes."""
        return self._once(FULL, self._anew)

    def _anew(self) -> list[Relation]:
        plan = self.plan
        full = Deltas(states=plan.states)
        outputs = [s.initial(full) for s in plan.kept]
        if plan.root_is_kept:
            return [*outputs, plan.states[plan.root].initial(full)]
        return [*outputs, zset.with_weight(full.rows(plan.root))]

    def plain(self) -> Outputs:
        """What computes the rows anew, and keeps nothing."""
        return self._once(PLAIN, lambda: [zset.with_weight(self.subplan.relation)])

    def building(self) -> Outputs:
        """What builds the parts of joins that nothing else keeps."""
        return self._once(HIGHER_ORDER, self._building)

    def _building(self) -> list[Relation]:
        assert self.joined is not None
        there = {state.id for state in self.plan.kept}
        full = Deltas(states=self.joined.states)
        return [state.initial(full) for state in self.joined.kept if state.id not in there]

    @cached_property
    def states(self) -> Mapping[str, State]:
        """What is kept, by id."""
        plans = (self.plan, self.joined or self.plan)
        return {state.id: state for plan in plans for state in plan.states.values()}

    def _once(self, key: object, make: Callable[[], list[Relation]]) -> Outputs:
        if key not in self._found:
            self._found[key] = tuple(map(prune, make()))
        return self._found[key]


class Sizes:
    """The rows of what statements of a subplan scan, for some runs."""

    def __init__(self, ways: Ways, flows: Mapping[str, Rows], known: Known) -> None:
        self._query = Estimates(flows, known)
        self._ways = ways
        self._flows = flows
        self._rows: dict[str, Rows] = {}
        self._estimates = Estimates(self._rows, Derived(known, self._computed))

    def _computed(self, id: str) -> Computed | None:
        state = self._ways.states.get(id)
        return None if state is None else Computed(state.node, state.places, self._query.domain)

    def tell(self, node: Relation, rows: Rows) -> None:
        """Know the rows of an operator, whatever is estimated of them."""
        self._query.tell(node, rows)

    def kept(self, node: Relation) -> Rows:
        """The rows of an operator that may be kept."""
        return self._query.of(node)

    def work(self, outputs: Sequence[Relation]) -> Work:
        """What some statements take, in one step."""
        for output in outputs:
            for scan in output.scans():
                self._rows.setdefault(scan.source, self._of(scan.source))
        return step_work(outputs, lambda node: self._estimates.of(node).before)

    def _of(self, source: str) -> Rows:
        id, time = split(source)
        is_state = id not in self._flows
        rows = self.kept(self._ways.states[id].node) if is_state else self._flows[id]
        if time == CHANGE:
            changed = rows.change.rows
            return Rows(least(changed, rows.before + rows.after) if is_state else changed)
        return Rows({OLD: rows.before, NEW: rows.after}.get(time, rows.after))
