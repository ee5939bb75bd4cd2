"""Bringing one view up to date within a run: by its changes, or anew."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from slackwater.algebra.explain import describe
from slackwater.algebra.expr import columns
from slackwater.algebra.relation import Project, Relation
from slackwater.catalog import model
from slackwater.catalog.ids import new_id
from slackwater.catalog.model import AddSegments, CreateState, Drop, ReplaceSegments, Run, View
from slackwater.planner.steps import StepReport, WriteSegments
from slackwater.tvr import zset
from slackwater.tvr.delta import Deltas
from slackwater.tvr.maintenance import Maintenance, maintenance
from slackwater.tvr.prune import prune
from slackwater.tvr.states import State
from slackwater.tvr.states.buffer import END, BufferState
from slackwater.tvr.time import NEW
from slackwater.types import WEIGHT, Schema
from slackwater.work.interval import Interval
from slackwater.work.world import World


@dataclass
class Upkept:
    """What was done for a view: the change of the catalog, and how it came about."""

    mode: str  # "full" or "incremental"
    reasons: list[str]
    rows: int
    updates: list[model.Update] = field(default_factory=list)
    steps: list[StepReport] = field(default_factory=list)
    operators: list[dict[str, Any]] = field(default_factory=list)


class Upkeep:
    """One view in one run."""

    def __init__(self, world: World, run: Run, view: View, query: Relation) -> None:
        self.world = world
        self.run = run
        self.view = view
        self.query = query
        self.interval = Interval(world, view)
        self.deltas = Deltas()
        """The changes of the view's operators, once they are asked for."""
        self._known = {s.signature: s for s in world.snapshot.states(view.id)}
        self._runner = world.house.runner
        self._begun = self._mark()
        self._touched: set[str] = set()

    def maintenance(self) -> Maintenance:
        """The view's normal form and states, under the ids that they are stored under."""
        fresh: dict[str, str] = {}

        def id_of(node: Relation) -> str:
            signature = node.digest()
            if signature in self._known:
                return self._known[signature].id
            return fresh.setdefault(signature, new_id("s"))

        return maintenance(self.query, self.view.id, self.view.schema, id_of)

    def missing(self, plan: Maintenance) -> bool:
        """Is a state not there that an incremental refresh needs?"""
        stored = {s.id for s in self._known.values()}
        return any(s.id not in stored for s in plan.kept)

    # -- anew

    def plain(self, reasons: list[str]) -> Upkept:
        """Compute the view's rows alone: a query that is always computed in full."""
        before = self._mark()
        relation = zset.with_weight(self.query)
        self._write(f"recompute {self.view.name}", relation, self.view, replaces=True)
        drops: list[model.Update] = [Drop(s.id) for s in self._known.values()]
        return self._full(before, reasons, drops)

    def recompute(self, plan: Maintenance, reasons: list[str]) -> Upkept:
        """Compute the view's states and rows from its sources."""
        before = self._mark()
        full = Deltas(states=plan.states)
        updates: list[model.Update] = []
        for state in plan.kept:
            self._write(f"build {state.name}", state.initial(full), state, replaces=True)
            updates += self._keep(state)
        kept = {s.id for s in plan.kept}
        updates += [Drop(s.id) for s in self._known.values() if s.id not in kept]
        name = f"recompute {self.view.name}"
        if plan.root_is_kept:
            rows = plan.states[plan.root].initial(full)
        else:
            rows = zset.with_weight(full.rows(plan.root))
        self._write(name, rows, self.view, replaces=True)
        return self._full(before, reasons, updates)

    def _keep(self, state: State) -> list[model.Update]:
        """The catalog's entry of a state built anew."""
        signature = state.node.digest()
        written = ReplaceSegments(state.id, self._written(state.id))
        if signature in self._known:
            return [written]
        made = model.State(state.id, state.id, state.schema, 0, self.view.id, state.kind, signature)
        return [CreateState(made), written]

    def _full(self, before: int, reasons: list[str], updates: list[model.Update]) -> Upkept:
        segments = self._written(self.view.id)
        updates.append(ReplaceSegments(self.view.id, segments))
        return Upkept("full", reasons, sum(s.rows for s in segments), updates, self._since(before))

    # -- by changes

    def incremental(self, plan: Maintenance) -> Upkept:
        """Add to states and rows what the changes of the sources make of them."""
        before = self._mark()
        deltas = Deltas(self.interval.changed, self.interval.weighted, plan.states)
        self.deltas = deltas
        for state in plan.kept:
            if deltas.changes(state.node):
                self._change(state, deltas)
        if deltas.changes(plan.root):
            kept = plan.root_is_kept
            root = plan.states[plan.root].change(deltas) if kept else deltas.sure(plan.root)
            change = root if kept else zset.consolidate(root)
            self._write(f"refresh {self.view.name}", change, self.view)
        ids = [s.id for s in plan.kept] + [self.view.id]
        updates: list[model.Update] = [
            AddSegments(id, self._written(id)) for id in ids if self._written(id)
        ]
        rows = sum(s.rows for s in self._written(self.view.id))
        notes = deltas.notes.items()
        reasons = list(dict.fromkeys(note.reason for _, note in notes if note.reason))
        operators = [
            {"operator": describe(node), "law": note.law, "reason": note.reason or None}
            for node, note in notes
        ]
        return Upkept("incremental", reasons, rows, updates, self._since(before), operators)

    def _change(self, state: State, deltas: Deltas) -> None:
        self._write(f"change {state.name}", state.change(deltas), state)
        if isinstance(state, BufferState) and not self._is_enough(state):
            self.world.pending.forget(state.id)
            deltas.note(state.node, "bounded_buffer", "BUFFER_REFILLED")
            self._write(f"refill {state.name}", state.refill(deltas), state)

    def _is_enough(self, state: BufferState) -> bool:
        ends: list[int] = []
        weights: list[int] = []
        for segment in self.interval.segments(state.id, NEW):
            columns = self.world.house.storage.columns(segment, (END, WEIGHT))
            ends += columns.column(END).to_pylist()
            weights += columns.column(WEIGHT).to_pylist()
        return state.is_enough(ends, weights)

    def forget(self) -> None:
        """As if nothing had been done for the view."""
        self._since(self._begun)
        for id in self._touched:
            self.world.pending.forget(id)

    # -- steps

    def _write(
        self, name: str, relation: Relation, target: State | View, replaces: bool = False
    ) -> None:
        id = target.id
        self._touched.add(id)
        relation = prune(_under_names(relation, target.schema))
        step = WriteSegments(name, relation, id, replaces, load=replaces)
        segments = self._runner.run(step, self.run, self.interval.sources(relation))
        if replaces:
            self.world.pending.replace(id, segments)
        else:
            self.world.pending.add(id, segments)

    def _written(self, id: str) -> tuple[model.Segment, ...]:
        return tuple(self.world.pending.added.get(id, ()))

    def _mark(self) -> int:
        return len(self._runner.reports)

    def _since(self, mark: int) -> list[StepReport]:
        steps = self._runner.reports[mark:]
        del self._runner.reports[mark:]
        return steps


def _under_names(relation: Relation, schema: Schema) -> Relation:
    """Rows with weights under the column names of what they are written to."""
    names = (*(f.name for f in schema), WEIGHT)
    if names == zset.names(relation):
        return relation
    return Project(relation, columns(relation.schema), names)
