"""What a subplan costs at a pace: its runs until a result is due, simulated (000, 3.2.2).

Until the due point every source receives rows. A path of pace k is flushed whenever another k-th
of them has arrived, so a subplan runs at the times of all its paths together, and each run sees
some inputs move on and the others as it last read them. The runs that move the same inputs differ
in sizes only: their statement is written once, by the same laws that a refresh takes, and costed
for all of them in one pass over arrays.

How many rows a subplan gives between two times depends on those times alone. So what a subplan
costs depends on the paces of its own paths and on nothing else, which makes the search over paces
a search over independent terms; but for one thing. Who reads a subplan less often than it runs
finds a row in its log as often as it has changed since the log was merged last, and not once
(`Simulation.backlog`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, field, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from slackwater.algebra.relation import Relation, Scan
from slackwater.planner.compaction import FANOUT
from slackwater.planner.course import Course
from slackwater.planner.subplans import Dag, Subplan, is_subplan, name_of, number_of
from slackwater.stats.amounts import least
from slackwater.stats.cost import Model, Work, step_work
from slackwater.stats.rows import Change, Estimates, Rows
from slackwater.stats.values import Ignorance, Known, Values
from slackwater.tvr import zset
from slackwater.tvr.delta import Deltas
from slackwater.tvr.maintenance import Maintenance, maintenance
from slackwater.tvr.prune import prune
from slackwater.tvr.references import Reference
from slackwater.tvr.time import CHANGE, NEW, OLD, split

Times = NDArray[np.float64]
"""Shares of what arrives until the due point."""
RUN = {"cpu": 0.025, "latency": 0.03}
"""Seconds that a run takes besides its steps: to bind and plan, and to commit."""
RESULT = "="
"""What the rows of a subplan are called while it is costed."""


@dataclass(frozen=True)
class Inflow:
    """A source until the due point: its rows at the start, and what arrives."""

    rows: float
    change: Change

    def __post_init__(self) -> None:
        rows = Rows(self.rows, self.change).sound
        object.__setattr__(self, "rows", rows.before)
        object.__setattr__(self, "change", rows.change)

    def between(self, start: Times, end: Times) -> Rows:
        """From some times to others."""
        before = np.maximum(0.0, self.rows + start * self.change.net)
        return Rows(before, self.change.times(end - start))  # type: ignore[arg-type]


@dataclass(frozen=True)
class Cost:
    """What a subplan takes until a result is due, and in its last run."""

    total: float  # CPU seconds of all runs, weighted by their prices
    final: float  # seconds of the last run
    runs: int
    final_cpu: float = 0.0
    run_total: float = 0.0  # of these, what runs take besides their steps
    run_final: float = 0.0

    @property
    def steps_alone(self) -> Cost:
        """Without what runs take besides their steps: for one that is run as a part of another."""
        return replace(self, total=self.total - self.run_total, final=self.final - self.run_final)

    def __add__(self, other: Cost) -> Cost:
        return Cost(*(a + b for a, b in zip(astuple(self), astuple(other), strict=True)))


NOTHING = Cost(0.0, 0.0, 0)


@dataclass
class Setting:
    """What subplans run in: what arrives, what work costs where, and what is known of values."""

    inflows: Mapping[str, Inflow]
    model: Model = field(default_factory=Model)
    engines: Sequence[str] = ("local",)
    known: Known = field(default_factory=Ignorance)
    course: Course | None = None  # of prices; all work costs one, if None
    run: Mapping[str, float] = field(default_factory=lambda: RUN)
    references: frozenset[Reference] = frozenset()  # that hold wherever all inputs move together
    remembers: bool = True  # what was computed; if not, all of it is computed whenever asked for

    _costs: dict[object, dict[tuple[int, ...], Cost]] = field(default_factory=dict, repr=False)

    def costs_of(self, dag: Dag, subplan: Subplan) -> dict[tuple[int, ...], Cost]:
        """What is known of a subplan's costs, whatever dag it is met in, by paces."""
        below = tuple(dag.expanded(child) for child in subplan.children)
        return self._costs.setdefault((dag.expanded(subplan.number), below), {})

    def paid(self, sources: Collection[str], ends: Times) -> Times:
        """The price of CPU time of runs for some shares of the rows of sources."""
        return np.ones_like(ends) if self.course is None else self.course.paid(sources, ends)


class _Log:
    """The log of a subplan of so many runs, until its reader of a lower pace comes by: what many
    runs wrote is merged meanwhile, and the last ones are left."""

    def __init__(self, runs: int, pace: int) -> None:
        self.ends = np.arange(1, runs + 1) / runs
        self.readings = np.arange(1, pace + 1) / pace
        self.begins = self.readings - 1 / pace
        self._reading = np.minimum(np.searchsorted(self.readings, self.ends - 1e-9), pace - 1)
        waiting = np.bincount(self._reading, minlength=pace)
        merged = waiting // FANOUT * FANOUT
        before = np.concatenate([[0], waiting.cumsum()[:-1]])
        self.is_left = np.arange(runs) - before[self._reading] >= merged[self._reading]
        self.merged_to = self.begins + merged / runs

    def by_reading(self, rows: Times) -> Times:
        """The rows that each reading finds, of those that each run wrote."""
        found = np.bincount(self._reading, weights=rows, minlength=len(self.readings))
        return found.astype(np.float64)


class Simulation:
    """The subplans of a dag in a setting. Every answer is remembered, unless that is not wanted."""

    def __init__(self, dag: Dag, setting: Setting, rungs: Sequence[int] = ()) -> None:
        self.dag = dag
        self.setting = setting
        self.rungs = rungs  # paces that are likely to be asked for
        self._moving: list[tuple[str, ...]] = []
        for subplan in dag.subplans:
            self._moving.append(tuple(name for name in subplan.inputs if self._moves(name)))
        self._costs = [setting.costs_of(dag, subplan) for subplan in dag.subplans]
        self._flows: dict[tuple[int, bytes, bytes], Estimates] = {}
        self._backlogs: dict[tuple[int, int, int], Cost] = {}
        self._plans: dict[int, Maintenance] = {}
        self._statements: dict[tuple[int, frozenset[str], bool], tuple[Relation, ...]] = {}
        self._reads: dict[int, frozenset[str]] = {}
        self.evaluations = 0

    def moving(self, subplan: Subplan) -> tuple[str, ...]:
        """The inputs that change at all."""
        return self._moving[subplan.number]

    def _moves(self, name: str) -> bool:
        if is_subplan(name):
            return bool(self._moving[number_of(name)])
        return self.setting.inflows[name].change.rows > 0

    def cost(self, number: int, paces: Sequence[int]) -> Cost:
        """Of a subplan whose moving inputs are flushed at some paces, in their order."""
        costs, key = self._costs[number], tuple(paces)
        if not self.setting.remembers:
            self._flows.clear()
            return self._simulated(self.dag.subplans[number], [key])[0]
        if key not in costs:
            asked = [key]
            if len(set(paces)) == 1:  # one pace for all: then others like it will be asked for
                asked += [(k,) * len(paces) for k in self.rungs if k != paces[0]]
            found = self._simulated(self.dag.subplans[number], asked)
            for own, cost in zip(asked, found, strict=True):
                costs.setdefault(own, cost)
        return costs[key]

    def _simulated(self, subplan: Subplan, asked: Sequence[tuple[int, ...]]) -> list[Cost]:
        """What a subplan costs at each of some paces, all of them in one pass."""
        self.evaluations += 1
        names = self.moving(subplan)
        if not names:
            return [Cost(0.0, 0.0, 0) for _ in asked]
        schedules = [schedule(paces) for paces in asked]
        ends = np.concatenate([ends for ends, _ in schedules])
        flushed = np.concatenate([flushed for _, flushed in schedules])
        starts = np.concatenate([_last_flushes(*own) for own in schedules])
        only = np.concatenate([np.full(len(ends), len(ends) == 1) for ends, _ in schedules])
        even = len(set(asked[0])) == 1
        cpu, latency = np.zeros(len(ends)), np.zeros(len(ends))
        for mask in np.unique(flushed, axis=0):
            runs = (flushed == mask).all(axis=1)
            moved = frozenset(n for n, is_in in zip(names, mask, strict=True) if is_in)
            between = {
                name: (starts[runs, i], _end(ends[runs], starts[runs, i], mask[i]))
                for i, name in enumerate(names)
            }
            flows = {name: self._flow(name, *times) for name, times in between.items()}
            known = self._known(between)
            seconds = self._seconds(subplan, moved, flows, known, even, only[runs])
            cpu[runs], latency[runs] = (np.broadcast_to(s, runs.sum()) for s in seconds)
        return list(self._summed(subplan, schedules, cpu, latency))

    def _summed(
        self,
        subplan: Subplan,
        schedules: Sequence[tuple[Times, object]],
        cpu: Times,
        latency: Times,
    ) -> Iterator[Cost]:
        """By schedule, what its runs take together."""
        sources, place = self._sources(subplan.number), 0
        for own, _ in schedules:
            last = place + len(own)
            paid = self.setting.paid(sources, own)
            total = float((cpu[place:last] * paid).sum())
            besides = self.setting.run["cpu"] * float(paid.sum())
            final = float(latency[last - 1])
            yield Cost(
                total, final, len(own), float(cpu[last - 1]), besides, self.setting.run["latency"]
            )
            place = last

    def _sources(self, number: int) -> frozenset[str]:
        """All that a subplan reads, through other subplans too, where prices depend on it."""
        if self.setting.course is None:
            return frozenset()
        if number not in self._reads:
            scans = self.dag.expanded(number).scans()
            self._reads[number] = frozenset(scan.source for scan in scans)
        return self._reads[number]

    def backlog(self, child: int, runs: int, pace: int) -> Cost:
        """What it takes to read a subplan of so many runs at a lower pace, besides what is new in
        it: rows that changed more than once between two readings."""
        key = (child, runs, pace)
        if key not in self._backlogs:
            self._backlogs[key] = self._backlog(*key) if pace < runs else NOTHING
        return self._backlogs[key]

    def _backlog(self, child: int, runs: int, pace: int) -> Cost:
        log = _Log(runs, pace)
        written = self._changed(child, log.ends - 1 / runs, log.ends)
        once = self._changed(child, log.begins, log.readings)
        merged = self._changed(child, log.begins, log.merged_to)
        rows = np.maximum(0.0, log.by_reading(written * log.is_left) + merged - once)
        cpu, latency = (rows * self._a_row(child, m) for m in RUN)
        again = np.maximum(0.0, log.by_reading(written * ~log.is_left) - merged)
        merging = again * self._a_row(child, "cpu")
        paid = self.setting.paid(self._sources(child), log.readings)
        return Cost(float(((cpu + merging) * paid).sum()), float(latency[-1]), 0, float(cpu[-1]))

    def _a_row(self, child: int, measure: str) -> float:
        """Seconds to read a row of a subplan's log and to add it to others like it."""
        width = self.dag.subplans[child].relation.width + 1
        work = Work(scanned=1.0 * width, hashed=1.0)
        return min(self.setting.model.seconds(work, e, measure) for e in self.setting.engines)

    def _changed(self, number: int, start: Times, end: Times) -> Times:
        """Rows of a subplan's log, from some times to others."""
        rows = self._flow(name_of(number), start, end).change.rows
        return np.broadcast_to(np.asarray(rows, dtype=np.float64), end.shape)

    # -- rows

    def _flow(self, name: str, start: Times, end: Times) -> Rows:
        """The rows of an input from some times to others."""
        if not is_subplan(name):
            return self.setting.inflows[name].between(start, end)
        return self._estimates(number_of(name), start, end).of(self._relation(name))

    def _estimates(self, number: int, start: Times, end: Times) -> Estimates:
        """The rows of all operators of a subplan from some times to others."""
        key = (number, start.tobytes(), end.tobytes())
        if key not in self._flows:
            inputs = self.dag.subplans[number].inputs
            flows = {n: self._flow(n, start, end) for n in inputs}
            self._flows[key] = Estimates(flows, self._known(dict.fromkeys(inputs, (start, end))))
        return self._flows[key]

    def _relation(self, name: str) -> Relation:
        return self.dag.subplans[number_of(name)].relation

    def _known(self, between: Mapping[str, tuple[Times, Times]]) -> Known:
        """What is known of values, also in the columns of subplans that are read."""
        below = {
            name: (self._estimates(number_of(name), *times), self._relation(name))
            for name, times in between.items()
            if is_subplan(name)
        }
        return _OfSubplans(self.setting.known, below) if below else self.setting.known

    # -- seconds

    def _seconds(
        self,
        subplan: Subplan,
        moved: frozenset[str],
        flows: Mapping[str, Rows],
        known: Known,
        even: bool,
        only: NDArray[np.bool_],
    ) -> tuple[Times, Times]:
        """CPU and latency of runs that move some inputs: by changes or anew, where it is cheaper,
        on the engine that takes least. The only run of a single query's subplan may also do
        without states."""
        still = {n: self._still(n) for n in subplan.inputs if n not in flows}
        sizes = _Sizes(self._plan(subplan), {**flows, **still}, known)
        ways: list[tuple[Work, float | Times]] = [
            (sizes.work(self._following(subplan, moved, even)), 0.0),
            (sizes.work(self._anew(subplan)), 0.0),
        ]
        if only.any() and len(subplan.queries) == 1:
            ways.append((sizes.work(self._plain(subplan)), np.where(only, 0.0, np.inf)))
        model, found = self.setting.model, []
        for work, barred in ways:
            for engine in self.setting.engines:
                seconds = (
                    model.seconds(work, engine, m) + self.setting.run[m] + barred for m in RUN
                )
                found.append(tuple(seconds))
        cpu, latency = (np.stack(np.broadcast_arrays(*s)) for s in zip(*found, strict=True))
        best = cpu.argmin(axis=0)[None, ...]
        return np.take_along_axis(cpu, best, 0)[0], np.take_along_axis(latency, best, 0)[0]

    def _still(self, name: str) -> Rows:
        if is_subplan(name):
            nothing = np.zeros(1)
            rows = self._flow(name, nothing, nothing)
            return Rows(float(np.ravel(rows.before)[0]))
        return Rows(self.setting.inflows[name].rows)

    def _plan(self, subplan: Subplan) -> Maintenance:
        if subplan.number not in self._plans:
            relation = subplan.relation
            ids: dict[Relation, str] = {}
            plan = maintenance(
                relation, RESULT, relation.schema, lambda n: ids.setdefault(n, f"s{len(ids)}")
            )
            self._plans[subplan.number] = plan
        return self._plans[subplan.number]

    def _following(
        self, subplan: Subplan, moved: frozenset[str], even: bool
    ) -> tuple[Relation, ...]:
        """What a run by changes computes: the change of each state, and of the rows. References
        between sources hold in what a subplan has read if it reads all of them at once."""
        key = (subplan.number, moved, even)
        if key not in self._statements:
            plan = self._plan(subplan)
            relied_on = self.setting.references if even else frozenset()
            deltas = Deltas(moved, frozenset(subplan.inputs), plan.states, references=relied_on)
            outputs = [s.change(deltas) for s in plan.kept if deltas.changes(s.node)]
            if plan.root_is_kept:
                outputs.append(plan.states[plan.root].change(deltas))
            else:
                outputs.append(zset.consolidate(deltas.sure(plan.root)))
            self._statements[key] = tuple(map(prune, outputs))
        return self._statements[key]

    def _plain(self, subplan: Subplan) -> tuple[Relation, ...]:
        """What computes the rows anew, and keeps nothing."""
        key = (subplan.number, frozenset({RESULT}), False)
        if key not in self._statements:
            self._statements[key] = (prune(zset.with_weight(subplan.relation)),)
        return self._statements[key]

    def _anew(self, subplan: Subplan) -> tuple[Relation, ...]:
        """What a run that computes everything anew computes."""
        key = (subplan.number, frozenset({RESULT}), True)
        if key not in self._statements:
            plan = self._plan(subplan)
            full = Deltas(states=plan.states)
            outputs = [s.initial(full) for s in plan.kept]
            if plan.root_is_kept:
                outputs.append(plan.states[plan.root].initial(full))
            else:
                outputs.append(zset.with_weight(full.rows(plan.root)))
            self._statements[key] = tuple(map(prune, outputs))
        return self._statements[key]


def schedule(paces: Sequence[int]) -> tuple[Times, NDArray[np.bool_]]:
    """When a subplan runs, and which of its paths each run flushes.

    >>> ends, flushed = schedule((2, 3))
    >>> ends.round(2).tolist(), flushed.astype(int).tolist()
    ([0.33, 0.5, 0.67, 1.0], [[0, 1], [1, 0], [0, 1], [1, 1]])
    """
    most = np.lcm.reduce(np.array(paces, dtype=np.int64))
    ticks = np.unique(np.concatenate([np.arange(1, k + 1) * (most // k) for k in paces]))
    flushed = np.stack([ticks % (most // k) == 0 for k in paces], axis=1)
    return ticks / most, flushed


@lru_cache(maxsize=2**14)
def runs_at(paces: tuple[int, ...]) -> int:
    """How often a subplan runs.

    >>> runs_at((2, 3)), runs_at((4, 4)), runs_at(())
    (4, 4, 1)
    """
    if len(set(paces)) < 2:
        return max(paces, default=1)
    return len(schedule(paces)[0])


def _last_flushes(ends: Times, flushed: NDArray[np.bool_]) -> NDArray[np.float64]:
    """By run and path, up to when its rows had been read before."""
    read = np.where(flushed, ends[:, None], 0.0)
    return np.vstack([np.zeros(read.shape[1]), np.maximum.accumulate(read, axis=0)[:-1]])


def _end(ends: Times, starts: Times, is_flushed: bool) -> Times:
    return ends if is_flushed else starts


@dataclass(frozen=True)
class _OfSubplans:
    """What is known of sources, and how many values the columns of subplans take."""

    known: Known
    below: Mapping[str, tuple[Estimates, Relation]]

    def values(self, source: str, column: str) -> Values | None:
        name, _ = split(source)
        if name not in self.below:
            return self.known.values(source, column)
        estimates, relation = self.below[name]
        place = next((i for i, f in enumerate(relation.schema) if f.name == column), None)
        return None if place is None else Values(estimates.domain.column(relation, place))

    def selectivity(self, node: Relation) -> float | None:
        return self.known.selectivity(node)


class _Sizes:
    """The rows of what statements of a subplan scan, for some runs."""

    def __init__(self, plan: Maintenance, flows: Mapping[str, Rows], known: Known) -> None:
        self._query = Estimates(flows, known)
        self._states = {state.id: state.node for state in plan.states.values()}
        self._flows = flows
        self._rows: dict[str, Rows] = {}
        self._estimates = Estimates(self._rows, known)

    def work(self, outputs: Sequence[Relation]) -> Work:
        """What some statements take, in one step."""
        for output in outputs:
            for scan in output.scans():
                self._rows.setdefault(scan.source, self._of(scan))
        return step_work(outputs, lambda node: self._estimates.of(node).before)

    def _of(self, scan: Scan) -> Rows:
        id, time = split(scan.source)
        rows = self._flows[id] if id in self._flows else self._query.of(self._states[id])
        if time == CHANGE:
            changed = rows.change.rows
            return Rows(least(changed, rows.before + rows.after) if id in self._states else changed)
        return Rows({OLD: rows.before, NEW: rows.after}.get(time, rows.after))
