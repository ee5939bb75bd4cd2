"""Bringing one view up to date within a run: by its changes, or anew."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from slackwater.algebra.explain import describe
from slackwater.algebra.expr import columns
from slackwater.algebra.relation import Project, Relation
from slackwater.catalog import model
from slackwater.catalog.ids import new_id
from slackwater.catalog.model import AddSegments, CreateState, Drop, ReplaceSegments, Run, View
from slackwater.planner.steps import Output, StepReport, WriteSegments
from slackwater.tvr import zset
from slackwater.tvr.delta import Deltas
from slackwater.tvr.maintenance import Maintenance, maintenance
from slackwater.tvr.merging import clustered
from slackwater.tvr.prune import prune
from slackwater.tvr.states import State
from slackwater.tvr.states.buffer import END, BufferState
from slackwater.tvr.time import NEW
from slackwater.types import WEIGHT, Schema
from slackwater.work.interval import Interval
from slackwater.work.preaggregation import Preaggregation
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
        self._steps: list[StepReport] = []
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
        self._anew("recompute", self.view, zset.with_weight(self.query))
        drops: list[model.Update] = [Drop(s.id) for s in self._known.values()]
        return self._full(reasons, drops)

    def recompute(self, plan: Maintenance, reasons: list[str]) -> Upkept:
        """Compute the view's states and rows from its sources."""
        full = Deltas(states=plan.states)
        updates: list[model.Update] = []
        for state in plan.kept:
            self._anew(f"build {state.name} of", state, state.initial(full))
            updates += self._keep(state)
        kept = {s.id for s in plan.kept}
        updates += [Drop(s.id) for s in self._known.values() if s.id not in kept]
        if plan.root_is_kept:
            rows = plan.states[plan.root].initial(full)
        else:
            rows = zset.with_weight(full.rows(plan.root))
        self._anew("recompute", self.view, rows)
        return self._full(reasons, updates)

    def _anew(self, what: str, target: State | View, relation: Relation) -> None:
        rows = _for(target, relation)
        if not isinstance(target, View):
            rows = clustered(rows, target.kind)
        written = self._write(what, {target.id: rows}, load=True)
        self.world.pending.replace(target.id, written[target.id])

    def _keep(self, state: State) -> list[model.Update]:
        """The catalog's entry of a state built anew."""
        signature = state.node.digest()
        written = ReplaceSegments(state.id, self._written(state.id))
        if signature in self._known:
            return [written]
        made = model.State(state.id, state.id, state.schema, 0, self.view.id, state.kind, signature)
        return [CreateState(made), written]

    def _full(self, reasons: list[str], updates: list[model.Update]) -> Upkept:
        segments = self._written(self.view.id)
        updates.append(ReplaceSegments(self.view.id, segments))
        return Upkept("full", reasons, sum(s.rows for s in segments), updates, self._steps)

    # -- by changes

    def incremental(self, plan: Maintenance) -> Upkept:
        """Add to states and rows what the changes of the sources make of them."""
        pays = Preaggregation(self.interval).pays
        deltas = Deltas(self.interval.changed, self.interval.weighted, plan.states, pays)
        self.deltas = deltas
        changes = {s.id: _for(s, s.change(deltas)) for s in plan.kept if deltas.changes(s.node)}
        if deltas.changes(plan.root):
            kept = plan.root_is_kept
            root = plan.states[plan.root].change(deltas) if kept else deltas.sure(plan.root)
            change = root if kept else zset.consolidate(root)
            changes[self.view.id] = _for(self.view, change)
        self._change("refresh", changes)
        buffers = [s for s in plan.kept if isinstance(s, BufferState) and s.id in changes]
        for buffer in buffers:
            if not self._is_enough(buffer):
                self._refill(buffer, deltas, changes)
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
        return Upkept("incremental", reasons, rows, updates, self._steps, operators)

    def _change(self, what: str, changes: Mapping[str, Relation]) -> None:
        """Write changes, in one step: later ones may read earlier ones."""
        if changes:
            for id, segments in self._write(what, changes, load=False).items():
                self.world.pending.add(id, segments)

    def _refill(self, buffer: BufferState, deltas: Deltas, changes: Mapping[str, Relation]) -> None:
        """Fill a buffer again that has become too short, and change again what follows it."""
        deltas.note(buffer.node, "bounded_buffer", "BUFFER_REFILLED")
        order = list(changes)
        later = order[order.index(buffer.id) + 1 :]
        for id in (buffer.id, *later):
            self.world.pending.forget(id)
        again = {buffer.id: _for(buffer, buffer.refill(deltas))}
        self._change("refill", again | {id: changes[id] for id in later})

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
        self._steps = []
        for id in self._touched:
            self.world.pending.forget(id)

    # -- steps

    def _write(
        self, what: str, rows: Mapping[str, Relation], load: bool
    ) -> dict[str, tuple[model.Segment, ...]]:
        self._touched |= set(rows)
        outputs = tuple(Output(id, relation) for id, relation in rows.items())
        step = WriteSegments(f"{what} {self.view.name}", outputs, load)
        making = () if load else rows
        sources = self.interval.sources(rows.values(), making)
        written = self.world.house.runner.run(step, self.run, sources)
        self._steps.append(written.report)
        return written.segments

    def _written(self, id: str) -> tuple[model.Segment, ...]:
        return tuple(self.world.pending.added.get(id, ()))


def _for(target: State | View, relation: Relation) -> Relation:
    """Rows with weights under the column names of what they are written to, without columns that
    nobody reads."""
    return prune(_under_names(relation, target.schema))


def _under_names(relation: Relation, schema: Schema) -> Relation:
    """Rows with weights under the column names of what they are written to."""
    names = (*(f.name for f in schema), WEIGHT)
    if names == zset.names(relation):
        return relation
    return Project(relation, columns(relation.schema), names)
