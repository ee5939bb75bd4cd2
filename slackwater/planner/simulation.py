"""What a subplan costs at a pace: its runs until a result is due, simulated (000, 3.2.2).

Until the due point every source receives rows. A path of pace k is flushed whenever another k-th
of them has arrived, so a subplan runs at the times of all its paths together, and each run sees
some inputs move on and the others as it last read them. The runs that move the same inputs differ
in sizes only: their statement is written once, by the same laws that a refresh takes, and costed
for all of them in one pass over arrays.

How many rows a subplan gives between two times depends on those times alone. So what a subplan
costs depends on the paces of its own paths and on nothing else, which makes the search over paces
a search over independent terms; but for two things. Who reads a subplan less often than it runs
finds a row in its log as often as it has changed since the log was merged last, and not once
(`Simulation.backlog`). And those that always run with the only one that reads them are inside of
it: one statement, for which nothing in between is written.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from slackwater.algebra.relation import Relation
from slackwater.planner.choice import FULL, FUTURE, HIGHER_ORDER, OPTIONAL, PLAIN, once_built
from slackwater.planner.course import Course
from slackwater.planner.flushes import Flushes, Moving, Runs, Times
from slackwater.planner.logs import waiting
from slackwater.planner.shown import Shown
from slackwater.planner.subplans import Dag, Subplan, is_subplan, name_of, number_of
from slackwater.planner.ways import METHODS, Sizes, Ways
from slackwater.stats.cost import Model, Work
from slackwater.stats.derived import Computed, Derived
from slackwater.stats.rows import Change, Estimates, Rows
from slackwater.stats.turnover import Turnover
from slackwater.stats.values import Ignorance, Known
from slackwater.tvr.references import Reference

RUN = {"cpu": 0.025, "latency": 0.03}
"""Seconds that a run takes besides its steps: to bind and plan, and to commit."""


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
    method: str = ""  # by which most of the runs go about it

    def __add__(self, other: Cost) -> Cost:
        return Cost(
            self.total + other.total,
            self.final + other.final,
            self.runs + other.runs,
            self.final_cpu + other.final_cpu,
            self.method,
        )


NOTHING = Cost(0.0, 0.0, 0)


@dataclass(frozen=True)
class Remembered:
    """What a subplan costs: by paces; and what reading it costs, by its runs and a lower pace."""

    costs: dict[tuple[int, ...], Cost] = field(default_factory=dict)
    backlogs: dict[tuple[int, int], Cost] = field(default_factory=dict)


@dataclass(frozen=True)
class Asked:
    """A subplan, with others inside of it, of which the cost was asked."""

    subplan: Subplan
    remembered: Remembered


Unit = tuple[int, frozenset[int]]
"""A subplan by its number, and those inside of it."""


def signature(dag: Dag, subplan: Subplan) -> object:
    """The same for subplans that cost the same: what it gives, of what, and whether it is of one
    query, which may do without states."""
    below = tuple(dag.expanded(child) for child in subplan.children)
    return dag.expanded(subplan.number), below, len(subplan.queries) == 1


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
    turnover: Turnover = field(default_factory=Turnover)  # of views and parts, as was seen
    methods: Collection[str] = OPTIONAL  # beside following each change and computing anew
    dropped: frozenset[str] = frozenset()
    """States for which there is no room, by signature over the sources."""
    remembers: bool = True  # what was computed; if not, all of it is computed whenever asked for

    _costs: dict[object, Remembered] = field(default_factory=dict, repr=False)

    def remembered(self, dag: Dag, subplan: Subplan) -> Remembered:
        """What is known of a subplan, whatever dag it is met in."""
        return self._costs.setdefault(signature(dag, subplan), Remembered())

    def paid(self, sources: Collection[str], ends: Times) -> Times:
        """The price of CPU time of runs for some shares of the rows of sources."""
        return np.ones_like(ends) if self.course is None else self.course.paid(sources, ends)


class Simulation:
    """The subplans of a dag in a setting. Every answer is remembered, unless that is not wanted."""

    def __init__(self, dag: Dag, setting: Setting, rungs: Sequence[int] = ()) -> None:
        self.dag = dag
        self.setting = setting
        self.rungs = rungs  # paces that are likely to be asked for
        self.asked: dict[Unit, Asked] = {}
        self._inside: dict[Subplan, frozenset[int]] = {}
        self._moving: list[tuple[str, ...]] = []
        for subplan in dag.subplans:
            self._moving.append(tuple(name for name in subplan.inputs if self._moves(name)))
        self._flows: dict[tuple[int, bytes, bytes], Estimates] = {}
        self._every_way: dict[Subplan, Ways] = {}
        self._built: dict[Subplan, float] = {}
        self._shown = Shown(dag, setting.turnover, setting.known, self._flow, self._known)
        self._reads: dict[int, frozenset[str]] = {}
        self.evaluations = 0

    def moving(self, subplan: Subplan) -> tuple[str, ...]:
        """The inputs that change at all."""
        if subplan is self.dag.subplans[subplan.number]:
            return self._moving[subplan.number]
        return tuple(name for name in subplan.inputs if self._moves(name))

    def _moves(self, name: str) -> bool:
        if is_subplan(name):
            return bool(self._moving[number_of(name)])
        return self.setting.inflows[name].change.rows > 0

    def cost(self, number: int, paces: Sequence[int], inside: frozenset[int] = frozenset()) -> Cost:
        """Of a subplan whose moving inputs are flushed at some paces, in their order; with others
        inside of it, the inputs of all of them at one pace."""
        asked = self._asked(number, inside)
        costs, subplan = asked.remembered.costs, asked.subplan
        key = (paces[0],) * len(self.moving(subplan)) if inside and paces else tuple(paces)
        if not self.setting.remembers:
            self._flows.clear()
            return self._simulated(subplan, [key])[0]
        if key not in costs:
            others = [key]
            if len(set(key)) == 1:  # one pace for all: then others like it will be asked for
                likely = ((k,) * len(key) for k in self.rungs if k != key[0])
                others += [own for own in likely if own not in costs]
            found = self._simulated(subplan, others)
            for own, cost in zip(others, found, strict=True):
                costs.setdefault(own, cost)
        return costs[key]

    def _asked(self, number: int, inside: frozenset[int]) -> Asked:
        if (number, inside) not in self.asked:
            subplan = self.dag.with_inside(number, inside)
            remembered = self.setting.remembered(self.dag, subplan)
            self.asked[number, inside] = Asked(subplan, remembered)
            self._inside[subplan] = inside
        return self.asked[number, inside]

    def _simulated(self, subplan: Subplan, asked: Sequence[tuple[int, ...]]) -> list[Cost]:
        """What a subplan costs at each of some paces, all of them in one pass."""
        self.evaluations += 1
        names = self.moving(subplan)
        if not names:
            return [NOTHING for _ in asked]
        flushes = Flushes(names, asked)
        groups = list(flushes.together())
        sizes = [self._sizes(subplan, group.between) for group in groups]
        usual = Runs.of(len(flushes.ends))
        for group, own in zip(groups, sizes, strict=True):
            works = self._usual(subplan, own, group, flushes.is_even)
            usual.settle(group.places, *self._cheapest(works))
        chosen = [usual.some(here) for here in flushes.slices]
        if any(self._saved(runs) > 0 for runs in chosen) and self._ways(subplan).joined:
            joined = Runs.of(len(flushes.ends))
            for group, own in zip(groups, sizes, strict=True):
                work = self._joined(subplan, own, group, flushes.is_even)
                joined.settle(group.places, *self._cheapest([work]))
            others = (joined.some(here) for here in flushes.slices)
            chosen = [self._better(subplan, *own) for own in zip(chosen, others, strict=True)]
        sources, ends = self._sources(subplan.number), flushes.ends
        paid = (self.setting.paid(sources, ends[here]) for here in flushes.slices)
        return [self._summed(*own) for own in zip(chosen, paid, strict=True)]

    def _summed(self, runs: Runs, paid: Times) -> Cost:
        """What some runs take together, at their prices."""
        return Cost(
            float((runs.cpu * paid).sum()),
            float(runs.latency[-1]),
            len(runs.cpu),
            float(runs.cpu[-1]),
            runs.usual,
        )

    def _better(self, subplan: Subplan, usual: Runs, joined: Runs) -> Runs:
        """With parts of joins kept, if that is worth it: as a refresh decides it, by what they are
        expected to save, and what it takes to build them."""
        saved = self._saved(usual, joined)
        return joined if saved > 0 and saved > self._building(subplan) else usual

    def _saved(self, usual: Runs, joined: Runs | None = None) -> float:
        """CPU seconds that runs with parts kept save, for so many as one looks ahead; at most, if
        nothing is known of them."""
        besides = self.setting.run["cpu"]
        own = float(usual.cpu.mean()) - besides
        return FUTURE * (own - once_built(0.0 if joined is None else joined.cpu.mean() - besides))

    def _building(self, subplan: Subplan) -> float:
        """Seconds to build the parts of joins over all that will have come."""
        if subplan not in self._built:
            whole = np.zeros(1), np.ones(1)
            sizes = self._sizes(subplan, dict.fromkeys(self.moving(subplan), whole))
            ways = self._ways(subplan)
            cpu, _, _ = self._cheapest([(HIGHER_ORDER, sizes.work(ways.building()), 0.0)])
            self._built[subplan] = float(np.ravel(cpu)[0]) - self.setting.run["cpu"]
        return self._built[subplan]

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
        if pace >= runs:
            return NOTHING
        if not self.setting.remembers:
            return self._backlog(child, runs, pace)
        known = self._asked(child, frozenset()).remembered.backlogs
        if (runs, pace) not in known:
            known[runs, pace] = self._backlog(child, runs, pace)
        return known[runs, pace]

    def _backlog(self, child: int, runs: int, pace: int) -> Cost:
        log = waiting(runs, pace)
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
            found = Estimates(flows, self._known(dict.fromkeys(inputs, (start, end))))
            self._flows[key] = found
            self._shown.correct(number, found, start, end)
        return self._flows[key]

    def _relation(self, name: str) -> Relation:
        return self.dag.subplans[number_of(name)].relation

    def _known(self, between: Mapping[str, tuple[Times, Times]]) -> Known:
        """What is known of values, also in the columns of subplans that are read."""
        names = frozenset(filter(is_subplan, between))

        def find(name: str) -> Computed | None:
            if name not in names:
                return None
            estimates = self._estimates(number_of(name), *between[name])
            relation = self._relation(name)
            places = {field.name: place for place, field in enumerate(relation.schema)}
            return Computed(relation, places, estimates.domain, is_state=False)

        return Derived(self.setting.known, find) if names else self.setting.known

    # -- seconds

    def _ways(self, subplan: Subplan) -> Ways:
        if subplan not in self._every_way:
            references = self.setting.references
            allowed = self.setting.methods
            ways = Ways(subplan, self._changing, references, self._may_keep, allowed)
            self._every_way[subplan] = ways
        return self._every_way[subplan]

    def _may_keep(self, node: Relation) -> bool:
        """Is there room for a state?"""
        dropped = self.setting.dropped
        return not dropped or self.dag.over_sources(node).digest() not in dropped

    def states(
        self, number: int, inside: frozenset[int] = frozenset()
    ) -> dict[str, tuple[float, int]]:
        """What a subplan may keep, with others inside of it, by signature over the sources: rows
        and columns."""
        subplan = self._asked(number, inside).subplan
        ways, whole = self._ways(subplan), (np.zeros(1), np.ones(1))
        sizes = self._sizes(subplan, dict.fromkeys(self.moving(subplan), whole))
        return {
            self.dag.over_sources(state.node).digest(): (
                float(np.ravel(sizes.kept(state.node).after)[0]),
                len(state.schema),
            )
            for state in (*ways.plan.kept, *(ways.joined.kept if ways.joined else ()))
        }

    def usual_states(self, number: int, inside: frozenset[int] = frozenset()) -> frozenset[str]:
        """Of these, those that a subplan keeps without parts of joins."""
        kept = self._ways(self._asked(number, inside).subplan).plan.kept
        return frozenset(self.dag.over_sources(state.node).digest() for state in kept)

    def _changing(self, name: str) -> float:
        """The rows of an input's change until the result is due."""
        change = self._flow(name, np.zeros(1), np.ones(1)).change.rows
        return float(np.ravel(change)[0])

    def _sizes(self, subplan: Subplan, between: Mapping[str, tuple[Times, Times]]) -> Sizes:
        """Of what a subplan reads and keeps, in runs between some times."""
        flows = {name: self._flow(name, *times) for name, times in between.items()}
        still = {n: self._still(n) for n in subplan.inputs if n not in flows}
        sizes = Sizes(self._ways(subplan), {**flows, **still}, self._known(between))
        if self.setting.turnover.seen:
            inside = self._inside.get(subplan, frozenset())
            for child in (c for c in inside if self._moving[c]):
                own = self.dag.with_inside(child, inside).relation
                sizes.tell(own, self._flow(name_of(child), *next(iter(between.values()))))
        return sizes

    def _usual(
        self, subplan: Subplan, sizes: Sizes, group: Moving, even: bool
    ) -> Iterator[tuple[str, Work, float | Times]]:
        """The ways to do runs that keep the usual states, and seconds that keep some runs from it:
        by changes or anew; the only run of a single query's subplan may also do without states."""
        ways = self._ways(subplan)
        if ways.is_possible:
            for method, plan in ways.followed(group.moved).items():
                outputs = ways.following(method, plan, group.moved, even)
                yield method, sizes.work(outputs), 0.0
        yield FULL, sizes.work(ways.anew()), 0.0
        if group.only.any() and len(subplan.queries) == 1:
            yield PLAIN, sizes.work(ways.plain()), np.where(group.only, 0.0, np.inf)

    def _joined(
        self, subplan: Subplan, sizes: Sizes, group: Moving, even: bool
    ) -> tuple[str, Work, float | Times]:
        """By changes, with what these are joined with kept."""
        ways = self._ways(subplan)
        assert ways.joined is not None
        outputs = ways.following(HIGHER_ORDER, ways.joined, group.moved, even)
        return HIGHER_ORDER, sizes.work(outputs), 0.0

    def _cheapest(
        self, ways: Iterable[tuple[str, Work, float | Times]]
    ) -> tuple[Times, Times, NDArray[np.int_]]:
        """CPU, latency and method of some runs, each by the cheapest way on the cheapest engine."""
        model, found, methods = self.setting.model, [], []
        for method, work, barred in ways:
            for engine in self.setting.engines:
                seconds = (
                    model.seconds(work, engine, m) + self.setting.run[m] + barred for m in RUN
                )
                found.append(tuple(seconds))
                methods.append(METHODS.index(method))
        cpu, latency = (np.stack(np.broadcast_arrays(*s)) for s in zip(*found, strict=True))
        best = cpu.argmin(axis=0)[None, ...]
        taken = np.array(methods)[best[0]]
        return np.take_along_axis(cpu, best, 0)[0], np.take_along_axis(latency, best, 0)[0], taken

    def _still(self, name: str) -> Rows:
        if is_subplan(name):
            nothing = np.zeros(1)
            rows = self._flow(name, nothing, nothing)
            return Rows(float(np.ravel(rows.before)[0]))
        return Rows(self.setting.inflows[name].rows)
