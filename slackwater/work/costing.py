"""What each way to refresh a view would cost, from the sizes of what it reads now."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from slackwater.algebra.relation import Relation, Scan
from slackwater.catalog.model import Table
from slackwater.engine.telling import MOST
from slackwater.planner.choice import ENGINES, FULL, PLAIN, Candidate, remembered_as
from slackwater.planner.placement import not_local
from slackwater.stats.cost import MEASURES, Work, step_work
from slackwater.stats.derived import Computed, Derived
from slackwater.stats.reading import columns_read
from slackwater.stats.recall import Expected
from slackwater.stats.rows import Estimates, Rows
from slackwater.stats.turnover import Turnover, result
from slackwater.stats.values import Known
from slackwater.tvr.delta import Deltas
from slackwater.tvr.maintenance import Maintenance
from slackwater.tvr.states import State
from slackwater.tvr.time import CHANGE, NEW, OLD, split
from slackwater.work.interval import Interval
from slackwater.work.turnover import came
from slackwater.work.upkeep import Following, Upkeep

BY_KEY = 0.7
"""A row that is looked up by its key, among the few that went, takes so much of what it takes to be
hashed, or to be compared with them and added up."""
START = {"cpu": 12.0, "latency": 8.0}
"""Seconds that Spark takes to start."""


@dataclass(frozen=True, slots=True)
class Effort:
    """What one way to refresh a view takes, wherever it is gone."""

    method: str
    work: Work | None = None  # None: nobody knows
    reasons: tuple[str, ...] = ()  # why it is not possible now
    is_portable: bool = True


def costing(upkeep: Upkeep) -> Costing:
    """What the ways to refresh a view cost, by what the warehouse has learned."""
    house = upkeep.world.house
    expected = house.experience.of(upkeep.view.name)
    known, turnover = house.profiling.known(), house.experience.turnover()
    return Costing(upkeep.interval, expected, known, turnover)


class Costing:
    """One view between its last refresh and now."""

    def __init__(
        self, interval: Interval, expected: Expected, known: Known, turnover: Turnover
    ) -> None:
        self._interval = interval
        self._runner = interval.world.house.runner
        self._expected = expected
        self._states: dict[str, State] = {}
        self._rows: dict[str, Rows] = {}
        self._known = known
        self._turnover = turnover
        self._estimates = Estimates(self._rows, Derived(known, self._computed))

    def by_changes(self, method: str, way: Following, impossible: Sequence[str] = ()) -> Effort:
        """Following changes."""
        self._know(way.plan)
        for id, relation in way.changes.items():  # later ones read what earlier ones make
            self._measure(relation)
            made = self._changed(id, way.plan) or self._estimates.of(relation)
            self._estimates.tell(relation, made)
            self._rows.setdefault(id + CHANGE, made)
            self._rows.setdefault(id + NEW, Rows(self._stored(id, OLD) + made.before))
        relations = list(way.changes.values())
        return _effort(method, relations, self._work(relations), impossible)

    def in_full(self, plan: Maintenance, anew: Mapping[str, Relation]) -> Effort:
        """Computing everything anew, with the states of a plan."""
        self._know(plan)
        steps = sum((self._work([relation]) for relation in anew.values()), Work())
        return _effort(FULL, list(anew.values()), steps)

    def without_states(self, rows: Relation) -> Effort:
        """Computing nothing but a view's rows."""
        return _effort(PLAIN, [rows], self._work([rows]))

    def of_building(self, states: Iterable[State], plan: Maintenance) -> Work:
        """Building some states."""
        self._know(plan)
        full = Deltas(states=plan.states)
        return sum((self._work([state.initial(full)]) for state in states), Work())

    def seconds_to_build(self, work: Work, engine: str) -> float:
        """CPU seconds of building states."""
        return self._expected.model.seconds(work, engine or "local")

    def seconds_of(self, relation: Relation, engine: str) -> float:
        """CPU seconds of computing one relation by itself."""
        return self._expected.model.seconds(self._work([relation]), engine)

    def made(self, outputs: Mapping[str, Relation]) -> dict[str, float]:
        """The rows that outputs are expected to have, whose costs were asked for."""
        return {id: self._estimates.of(relation).before for id, relation in outputs.items()}

    def _know(self, plan: Maintenance) -> None:
        self._states |= {s.id: s for s in plan.states.values()}

    def _changed(self, id: str, plan: Maintenance) -> Rows | None:
        """The changed rows of a state or of the view, as refreshes before have shown."""
        is_view = id == self._interval.view.id
        node = plan.root if is_view else self._states[id].node
        key = result(node) if is_view else node.digest()
        if key not in self._turnover.seen:
            return None
        rows = self._turnover.expected(key, node, self._came, self._known)
        return None if rows is None else Rows(rows)

    @cached_property
    def _came(self) -> Mapping[str, Rows]:
        return came(self._interval)

    # -- engines

    def candidates(self, effort: Effort) -> list[Candidate]:
        """One way, on each engine."""
        method, work = effort.method, effort.work
        if work is None:
            return [Candidate(method, engine, reasons=effort.reasons) for engine in ENGINES]
        found = []
        for engine in ENGINES:
            why = (*effort.reasons, *self._barred(engine, effort.is_portable))
            cpu, latency = (self._seconds(work, method, engine, m) for m in MEASURES)
            found.append(Candidate(method, engine, cpu, latency, work, why))
        return found

    def _seconds(self, work: Work, method: str, engine: str, measure: str) -> float:
        starting = engine == "spark" and not self._runner.spark.is_running
        start = START[measure] if starting else 0.0
        return start + self._expected.seconds(work, remembered_as(method), engine, measure)

    def _barred(self, engine: str, is_portable: bool) -> Iterable[str]:
        """Why an engine is out of the question."""
        if self._runner.placement not in ("auto", engine):
            yield "NOT_PLACED_THERE"
        elif engine == "spark" and not self._runner.spark.is_available:
            yield "NO_JAVA"
        elif (engine, self._runner.placement) == ("local", "auto") and not is_portable:
            yield "NOT_PORTABLE"

    # -- rows

    def _computed(self, id: str) -> Computed | None:
        """What a state is computed as."""
        state = self._states.get(id)
        if state is None:
            return None
        self._measure(state.node)
        return Computed(state.node, state.places, self._estimates.domain)

    def _work(self, outputs: Sequence[Relation]) -> Work:
        """Of one step."""
        for relation in outputs:
            self._measure(relation)
        read = columns_read(outputs)
        return step_work(
            outputs,
            lambda node: self._estimates.of(node).before,
            lambda scan: self.merged(scan, read.get(scan.source)),
        )

    def merged(self, scan: Scan, read: int | None = None) -> float:
        """What is hashed to read some columns, or all, of a table or view whose segments take rows
        away again: each stored row is looked up, by its key if it has one, and rows of segments
        with weights are added up by the columns that are read and those that they are looked up
        by."""
        id, time = split(scan.source)
        if time or self._interval.external(id) is not None:
            return 0.0
        segments = self._interval.segments(id, NEW)
        weighted = sum(s.rows for s in segments if s.min_weight < 0)
        if not weighted:
            return 0.0
        stored = self._interval.world.snapshot.get(id)
        looked_up = BY_KEY if isinstance(stored, Table) and stored.key else 1.0
        width = scan.width if read is None else min(scan.width, read + MOST)
        return looked_up * sum(s.rows for s in segments) + weighted * width

    def _measure(self, relation: Relation) -> None:
        """Know the rows of what a relation scans."""
        for scan in relation.scans():
            if scan.source not in self._rows:
                self._rows[scan.source] = Rows(self._stored(*split(scan.source)))

    def _stored(self, id: str, time: str) -> float:
        """The rows of a stored relation at a time, or what a state that is not there would have."""
        if id in self._states and id not in self._interval.world.snapshot:
            node = self._states[id].node
            self._measure(node)
            return self._estimates.of(node).before
        return float(self._interval.rows(id, time))


def _effort(
    method: str, relations: Sequence[Relation], work: Work, reasons: Sequence[str] = ()
) -> Effort:
    return Effort(method, work, tuple(reasons), not any(map(not_local, relations)))
