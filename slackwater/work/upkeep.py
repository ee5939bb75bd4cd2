"""Bringing one view up to date within a run: by its changes, or anew."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from slackwater.algebra.explain import describe, gist
from slackwater.algebra.relation import Join, Project, Relation, under_names
from slackwater.catalog import model
from slackwater.catalog.ids import new_id
from slackwater.catalog.model import AddSegments, CreateState, Drop, ReplaceSegments, Run, View
from slackwater.planner.choice import OJV
from slackwater.planner.placement import not_local
from slackwater.planner.steps import Output, StepReport, WriteSegments
from slackwater.tvr import zset
from slackwater.tvr.delta import Deltas
from slackwater.tvr.maintenance import (
    Maintenance,
    by_direct_and_indirect,
    by_parts,
    maintenance,
    with_parts_kept,
)
from slackwater.tvr.merging import clustered
from slackwater.tvr.methods.higher_order import around, parts, spread
from slackwater.tvr.methods.spine import Spine, with_one_last
from slackwater.tvr.preaggregate import Pays, never
from slackwater.tvr.prune import prune
from slackwater.tvr.references import Reference
from slackwater.tvr.states import State
from slackwater.tvr.states.buffer import END, BufferState
from slackwater.tvr.time import CHANGE, NEW, reads
from slackwater.types import WEIGHT
from slackwater.work.interval import Interval
from slackwater.work.preaggregation import Preaggregation
from slackwater.work.promises import relied_on
from slackwater.work.turnover import told
from slackwater.work.world import World

if TYPE_CHECKING:
    from slackwater.work.keeping import Keeping


@dataclass
class Upkept:
    """What was done for a view: the change of the catalog, and how it came about."""

    mode: str  # "full" or "incremental"
    reasons: list[str]
    rows: int
    updates: list[model.Update] = field(default_factory=list)
    steps: list[StepReport] = field(default_factory=list)
    operators: list[dict[str, Any]] = field(default_factory=list)
    states: dict[str, Any] | None = None  # what became of them, where there is a budget
    turnover: dict[str, Any] | None = None  # what came, and how many rows changed by that


@dataclass(frozen=True)
class Following:
    """How a view follows its sources: what is kept, what changes, and by which laws. It may be
    followed again at another refresh, and knows of none."""

    plan: Maintenance
    changes: Mapping[str, Relation]
    deltas: Deltas


@dataclass(frozen=True)
class Parts:
    """Which parts of joins a higher-order refresh keeps: around which of the inputs that changed;
    or what right sides are joined with, these last; and how outer joins are followed."""

    rank: int = 0
    last: bool = False
    outer: str = ""


FIRST = Parts()


class Upkeep:
    """One view in one run."""

    def __init__(self, world: World, run: Run, view: View, query: Relation) -> None:
        self.world = world
        self.run = run
        self.view = view
        self.query = query
        self.interval = Interval(world, view)
        self.known = {s.signature: s for s in world.snapshot.states(view.id)}
        """The states that are stored, by signature."""
        self._fresh: dict[str, str] = {}  # ids of states that are not stored yet
        self._steps: list[StepReport] = []
        self._touched: set[str] = set()
        self.engine = ""
        """Where steps run; empty: by the size of what they read."""
        self.keeping: Keeping | None = None
        """Which states are kept after this, where the view has a budget for them."""
        self.places: dict[str, str] = {}
        """Where in the plan reasons hold, by their codes, where that is not the whole view."""

    def place(self, code: str) -> str:
        """Where in the plan a reason holds."""
        if code in self.places:
            return self.places[code]
        if code == "CHANGE_TOO_LARGE":
            return self.interval.scans(sorted(self.interval.changed))
        blocker = not_local(self.query) if code == "NOT_PORTABLE" else None
        return blocker or gist(self.query)

    def maintenance(self) -> Maintenance:
        """The view's normal form and states, under the ids that they are stored under."""
        return maintenance(self.query, self.view.id, self.view.schema, self.id_of)

    def higher_order(self, plan: Maintenance, parts: Parts = FIRST) -> Maintenance | None:
        """The same with what the largest change is joined with kept, or the second largest, …; None
        where that is nothing but stored relations."""
        last = [self._last] if parts.last else []
        kept = with_parts_kept(plan, lambda j: self._pivot(j, parts.rank), self.id_of, *last)
        if kept is None or not parts.outer:
            return kept
        return self.by_outer_joins(kept, parts.outer)

    def _last(self, join: Join, spine: Spine) -> Project | None:
        """The form of a spine in which the right side that changed most is joined last."""
        found = [(self._changed_rows(right), form) for right, form in with_one_last(join, spine)]
        rows, form = max(found, key=lambda one: one[0], default=(0, None))
        return form if rows else None

    def by_outer_joins(self, plan: Maintenance, method: str) -> Maintenance | None:
        """The same with outer joins maintained by a method of theirs; None where it is for none."""
        follow = by_direct_and_indirect if method == OJV else by_parts
        return follow(plan, self.changes)

    def changes(self, relation: Relation) -> bool:
        """Does it read anything that changed?"""
        return reads(relation, self.interval.changed)

    def id_of(self, node: Relation) -> str:
        """What a state of an operator is stored under."""
        signature = node.digest()
        if signature in self.known:
            return self.known[signature].id
        return self._fresh.setdefault(signature, new_id("s"))

    def _pivot(self, join: Join, rank: int) -> int | None:
        """The input of a join whose parts are kept already; else, of those that change, the one
        whose sources changed most, or the next."""
        changes = [self._changed_rows(part) for part in spread(join).inner.inputs]
        order = sorted((i for i, rows in enumerate(changes) if rows), key=lambda i: -changes[i])
        order = [i for i in order if around(join, i) is not None]
        kept = next((i for i in order if self._has_parts(join, i)), None)
        return kept if kept is not None or not order else order[min(rank, len(order) - 1)]

    def _changed_rows(self, relation: Relation) -> int:
        sources = {scan.source for scan in relation.scans()}
        return sum(self.interval.rows(id, CHANGE) for id in sources)

    def _has_parts(self, join: Join, pivot: int) -> bool:
        form = around(join, pivot)
        return form is not None and all(p.digest() in self.known for p in parts(form))

    def missing(self, plan: Maintenance) -> list[State]:
        """The states that a refresh by changes needs and that are not there."""
        stored = {s.id for s in self.known.values()}
        return [s for s in plan.kept if s.id not in stored]

    # -- anew

    def plain(self, reasons: list[str], rows: Relation | None = None) -> Upkept:
        """Compute the view's rows alone, from its query as written unless told how else."""
        self._replace("recompute", self.view, zset.with_weight(rows or self.query))
        drops: list[model.Update] = [Drop(s.id) for s in self.known.values()]
        return self._full(reasons, drops)

    def anew(self, plan: Maintenance) -> dict[str, Relation]:
        """The view's states and, last, its rows from its sources, by what they are stored in."""
        full = Deltas(states=plan.states)
        found = {state.id: state.initial(full) for state in plan.kept}
        if plan.root_is_kept:
            found[self.view.id] = plan.states[plan.root].initial(full)
        else:
            found[self.view.id] = zset.with_weight(full.rows(plan.root))
        return found

    def recompute(self, plan: Maintenance, reasons: list[str]) -> Upkept:
        """Compute the view's states and rows from its sources."""
        relations = self.anew(plan)
        updates: list[model.Update] = []
        for state in plan.kept:
            self._replace(f"build {state.name} of", state, relations[state.id])
            updates += self._keep(state)
        updates += self._all_but(plan.kept)
        self._replace("recompute", self.view, relations[self.view.id])
        return self._full(reasons, updates)

    def build(self, plan: Maintenance, current: Maintenance, done: Upkept) -> Upkept:
        """After a refresh by the current plan: what another plan needs besides, for the next."""
        full = Deltas(states=plan.states)
        needed = {s.id for s in plan.kept}
        updates: list[model.Update] = [
            u for u in done.updates if not (isinstance(u, Drop) and u.id in needed)
        ]
        brought_along = {s.id for s in current.kept}
        for state in (s for s in plan.kept if s.id not in brought_along):
            self._replace(f"build {state.name} of", state, state.initial(full))
            updates += self._keep(state)
        return replace(done, updates=updates)

    def _all_but(self, states: Collection[State]) -> list[model.Update]:
        """Lets all states go that are stored, but for these."""
        kept = {s.id for s in states}
        return [Drop(s.id) for s in self.known.values() if s.id not in kept]

    def _staying(self, plan: Maintenance) -> list[State]:
        """Of the states that a plan brings along, those that are kept after that."""
        if self.keeping is None:
            return list(plan.kept)
        kept = {s.id for s in self.keeping.next.kept}
        return [s for s in plan.kept if s.id in kept]

    def _replace(self, what: str, target: State | View, relation: Relation) -> None:
        rows = _for(target, relation)
        if not isinstance(target, View):
            rows = clustered(rows, target.kind)
        written = self._write(what, {target.id: rows}, load=True)
        self.world.pending.replace(target.id, written[target.id])

    def _keep(self, state: State) -> list[model.Update]:
        """The catalog's entry of a state built anew."""
        signature = state.node.digest()
        written = ReplaceSegments(state.id, self._written(state.id))
        if signature in self.known:
            return [written]
        made = model.State(state.id, state.id, state.schema, 0, self.view.id, state.kind, signature)
        return [CreateState(made), written]

    def _full(self, reasons: list[str], updates: list[model.Update]) -> Upkept:
        segments = self._written(self.view.id)
        updates.append(ReplaceSegments(self.view.id, segments))
        return Upkept("full", reasons, sum(s.rows for s in segments), updates, self._steps)

    # -- by changes

    def following(self, plan: Maintenance) -> Following:
        """What the changes of the sources make of states and, last, of the view's rows."""
        deltas = Deltas(
            self.interval.changed,
            self.interval.weighted,
            plan.states,
            self._pays,
            plan.forms,
            self.relied_on,
            plan.laws,
        )
        changes = {s.id: _for(s, s.change(deltas)) for s in plan.kept if deltas.changes(s.node)}
        if deltas.changes(plan.root):
            kept = plan.root_is_kept
            root = plan.states[plan.root].change(deltas) if kept else deltas.sure(plan.root)
            change = root if kept else zset.consolidate(root)
            changes[self.view.id] = _for(self.view, change)
        return Following(plan, changes, replace(deltas, pays=never))

    @cached_property
    def _pays(self) -> Pays:
        return Preaggregation(self.interval).pays

    @cached_property
    def relied_on(self) -> frozenset[Reference]:
        """The promised references that hold for what changed."""
        return relied_on(self.interval)

    def incremental(self, following: Following) -> Upkept:
        """Add to states and rows what changes."""
        plan, changes = following.plan, following.changes
        notes = dict(following.deltas.notes)
        deltas = replace(following.deltas, notes=notes, pays=self._pays)
        self._change("refresh", changes)
        buffers = [s for s in plan.kept if isinstance(s, BufferState) and s.id in changes]
        for buffer in buffers:
            if not self._is_enough(buffer):
                self._refill(buffer, deltas, changes)
        staying = self._staying(plan)
        ids = [*(s.id for s in staying), self.view.id]
        updates: list[model.Update] = [
            AddSegments(id, self._written(id)) for id in ids if self._written(id)
        ]
        updates += self._all_but(staying)
        rows = sum(s.rows for s in self._written(self.view.id))
        for node, note in notes.items():
            if note.reason:
                self.places.setdefault(note.reason, describe(node))
        reasons = list(dict.fromkeys(note.reason for note in notes.values() if note.reason))
        operators = [
            {"operator": describe(node), "law": note.law, "reason": note.reason or None}
            for node, note in notes.items()
        ]
        done = Upkept("incremental", reasons, rows, updates, self._steps, operators)
        made = {id: sum(s.rows for s in self._written(id)) for id in changes}
        return replace(done, turnover=told(self.interval, self.query, plan, made))

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
            columns = self.world.house.columns(segment, (END, WEIGHT))
            ends += columns.column(END).to_pylist()
            weights += columns.column(WEIGHT).to_pylist()
        return state.is_enough(ends, weights)

    # -- within a budget

    def settled(self, done: Upkept) -> Upkept:
        """The same with no more bytes kept than the view's budget allows: what turns out to take
        more room than expected is let go in the same commit."""
        if self.keeping is None:
            return done
        ids = self._left(done.updates)
        measured = {s: sum(x.bytes for x in self.interval.segments(i, NEW)) for s, i in ids.items()}
        kept = self.keeping.settle(measured)
        gone = {ids[s] for s in ids if s not in kept}
        updates = [u for u in done.updates if _id(u) not in gone]
        updates += [Drop(s.id) for s in self.known.values() if s.id in gone]
        return replace(done, updates=updates, states=self.keeping.told(measured, kept, done.mode))

    def _left(self, updates: list[model.Update]) -> dict[str, str]:
        """The states that there are after some updates, by signature."""
        dropped = {u.id for u in updates if isinstance(u, Drop)}
        found = {s.signature: s.id for s in self.known.values() if s.id not in dropped}
        made = [u.state for u in updates if isinstance(u, CreateState)]
        return found | {s.signature: s.id for s in made}

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
        step = WriteSegments(f"{what} {self.view.name}", outputs, load, self.engine)
        making = () if load else rows
        sources = self.interval.sources(rows.values(), making)
        written = self.world.house.runner.run(step, self.run, sources)
        self._steps.append(written.report)
        return written.segments

    def _written(self, id: str) -> tuple[model.Segment, ...]:
        return tuple(self.world.pending.added.get(id, ()))


def _id(update: model.Update) -> str | None:
    """Of the relation that an update of segments or states is about."""
    if isinstance(update, CreateState):
        return update.state.id
    return update.id if isinstance(update, AddSegments | ReplaceSegments) else None


def _for(target: State | View, relation: Relation) -> Relation:
    """Rows with weights under the column names of what they are written to, without columns that
    nobody reads."""
    return prune(under_names(relation, (*(f.name for f in target.schema), WEIGHT)))
