"""Days of a scheduler: random views with random goals, budgets and prices, on a simulated clock.

A day is played by the scheduler itself, while random batches come to the tables. Which parts are
run early, and at which paces, is told by the goals, or by chance. Whenever results are published,
each of them equals its query over the tables as they are at that moment; whenever something is run
early, nobody sees any of it; and the states of a view never take more room than its budget.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import slackwater
from slackwater import UserError, Warehouse
from slackwater.algebra.relation import Relation
from slackwater.catalog.model import Table as StoredTable
from slackwater.engine.compare import compare
from slackwater.errors import SlackwaterError
from slackwater.planner.alike import Group, Member, in_one_order, shared
from slackwater.planner.pace import MODES, Found
from slackwater.planner.subplans import Dag, cut, is_subplan, number_of
from slackwater.service.clock import SimulatedClock
from slackwater.service.paced import ByGoals
from slackwater.service.scheduler import Scheduler
from slackwater.service.told import FAILED, Told
from slackwater.service.units import Unit
from slackwater.timing import parse_size
from slackwater.tvr.normal import normalize
from slackwater.work import parts
from slackwater.work.meaning import as_written
from slackwater.work.pacing import Options
from slackwater.work.refreshing import advance
from slackwater.work.reports import RefreshReport
from slackwater.work.rhythms import as_read
from slackwater.work.world import World
from tests.change_maker import Batch, ChangeMaker, Table
from tests.streams import NO_ANSWER, NoSpark, View, apply_batch, expanded, reads, scratch
from tests.view_maker import ViewMaker

START = datetime(2026, 1, 5, tzinfo=UTC)
HOURS = 8
SCHEDULES = ("every 1 hours", "every 2 hours", "every 3 hours", "daily 05:00", "every 8 rows")
GOALS = (None, None, "1x", "0.5x", "0.1x", "0.01x", "0.05 seconds", "30 seconds")
BUDGETS = (None, None, "0 MB", "2 KB", "4 KB", "8 KB", "16 KB", "1 GB")
PRICES = ("1", "0.25 from 02:00 to 05:00", "2, 0.5 from 06:00 to 07:00")
REFRESHES = ("auto", "auto", "incremental", "full")


@dataclass(frozen=True)
class Day:
    """What happens on a day: tables, views with their options, and batches at their moments."""

    tables: tuple[Table, ...]
    views: tuple[View, ...]
    load: Batch
    batches: tuple[tuple[datetime, Batch], ...]


@dataclass
class Outcome:
    """What came of some days."""

    views: int = 0
    compared: int = 0
    early: int = 0
    kinds: Counter[str] = field(default_factory=Counter)

    def add(self, other: Outcome) -> None:
        """Sum both up here."""
        self.views += other.views
        self.compared += other.compared
        self.early += other.early
        self.kinds.update(other.kinds)


def make_day(rng: random.Random, views: int = 3, batches: int = 9) -> Day:
    """Random views, each with one that has much in common with it, or even the same text."""
    changes = ChangeMaker(rng, wild=False)
    load = changes.load()
    moments = sorted(
        START + timedelta(minutes=15 * rng.randint(0, 4 * HOURS)) for _ in [0] * batches
    )
    made = tuple((moment, changes.batch()) for moment in moments)
    relations = {t.name: tuple((c.name, c.kind) for c in t.columns) for t in changes.tables}
    maker = ViewMaker(rng, relations, portable=True)
    return Day(changes.tables, tuple(_views(maker, views)), load, made)


def _views(maker: ViewMaker, count: int) -> Iterator[View]:
    rng, tables = maker.rng, dict(maker.relations)
    readable = dict(tables)
    for i in range(count):
        maker.relations = readable if rng.random() < 0.25 else tables
        sql, columns = maker.query(rough=False)
        readable[f"v{i}"] = columns
        yield View(f"v{i}", sql)
        name, _ = rng.choice(columns)
        alike = (
            sql,
            f"SELECT * FROM ({sql}) z WHERE z.{name} IS NOT NULL",
            f"SELECT z.{name}, COUNT(*) AS n FROM ({sql}) z GROUP BY z.{name}",
        )
        if rng.random() < 0.7:
            yield View(f"w{i}", rng.choice(alike))


def options(rng: random.Random) -> dict[str, str]:
    """Of a view; what is not said is left out."""
    said = {
        "schedule": rng.choice(SCHEDULES),
        "within": rng.choice(GOALS),
        "state_budget": rng.choice(BUDGETS),
        "refresh": rng.choice(REFRESHES),
    }
    return {name: value for name, value in said.items() if value is not None}


def _listed(said: dict[str, str]) -> str:
    return ", ".join(f"{name} = '{value}'" for name, value in said.items())


# -- paces by chance


def random_forms(db: Warehouse, rng: random.Random) -> parts.Forms:
    """Who shares what, and at which pace each piece runs. Like plans, for views over tables."""
    world = World(db._house, db.catalog.snapshot(), defining=True)
    own = {
        v.name: normalize(as_written(world, v)[0])
        for v in world.snapshot.views()
        if all(isinstance(world.snapshot.get(id), StoredTable) for id in as_read(world, v))
    }
    at = frozenset[Relation]()
    sharing = rng.random() < 0.7
    if sharing and rng.random() < 0.7:
        found = shared(in_one_order(own), lambda group: _split(group, rng))
        own, at = dict(found.queries), found.pieces
    dag = cut(own, blocking=rng.random() < 0.8, sharing=sharing, at=at)
    zero = dict.fromkeys(dag.roots, 0.0)
    expected = {table.id: float(rng.randint(0, 8)) for table in world.snapshot.tables()}
    found_paces = Found(_paces(dag, rng), 0.0, zero, zero)
    return parts.forms(dag, found_paces, expected, parts.Ids(world.snapshot))


def _split(group: Group, rng: random.Random) -> list[list[Member]]:
    sides: tuple[list[Member], list[Member]] = ([], [])
    for member in group.members:
        sides[rng.random() < 0.3].append(member)
    return [side for side in sides if side]


def _paces(dag: Dag, rng: random.Random) -> dict[tuple[int, str], int]:
    """Nobody reads more often than is written."""
    paces: dict[tuple[int, str], int] = {}
    made: dict[int, int] = {}
    for subplan in dag.subplans:
        one = rng.choice((None, None, 1, 2, 4))
        for name in subplan.inputs:
            most = made[number_of(name)] if is_subplan(name) else 4
            pace = rng.choice((1, 2, 4)) if one is None else one
            paces[subplan.number, name] = min(pace, most)
        made[subplan.number] = max((paces[p] for p in subplan.paths), default=1)
    return paces


class Watched(ByGoals):
    """Paces by the goals, or `forced` by chance; what is run early is not seen."""

    def __init__(self, db: Warehouse, rng: random.Random, forced: bool) -> None:
        mode, most = rng.choice(MODES), rng.choice((2, 4, 12))
        how = Options(mode, sharing=rng.random() < 0.7, most=most, assuming=rng.random() < 0.5)
        super().__init__(db._house, how)
        self._db = db
        self._rng = rng
        self._forced = forced
        self._is_formed = False
        self.wrong: list[str] = []

    def units(self, now: datetime) -> Sequence[Unit]:
        if not self._forced:
            return super().units(now)
        if not self._is_formed or self._rng.random() < 0.1:
            self._is_formed = True
            parts.apply(self._house, random_forms(self._db, self._rng))
        return [self._unit(part) for part in self._house.catalog.snapshot().parts()]

    def advance(self, units: Sequence[Unit]) -> Sequence[RefreshReport]:
        before = _versions(self._db)
        if self._forced and self._rng.random() < 0.5:  # whatever has come
            own = self._house.catalog.snapshot().parts()
            held = {p.id: [id for id in p.depends if self._rng.random() < 0.4] for p in own}
            done: Sequence[RefreshReport] = advance(self._house, held)
        else:
            done = super().advance(units)
        if _versions(self._db) != before:
            self.wrong.append("an early run is seen in a result")
        return done


def _versions(db: Warehouse) -> dict[str, int]:
    return {view.name: view.version for view in db.catalog.snapshot().views()}


# -- playing


class Checked:
    """A warehouse whose results are compared as soon as they are published."""

    def __init__(self, db: Warehouse, day: Day) -> None:
        self._db = db
        self._day = day
        self.queries: dict[str, str] = {}
        self.compared = 0
        self.wrong: list[str] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._db, name)

    def create(self, view: View, said: dict[str, str]) -> None:
        """A view, where the local engine can answer it."""
        if reads(view.sql) & {v.name for v in self._day.views} - set(self.queries):
            return
        try:
            self._db.sql(
                f"CREATE MATERIALIZED VIEW {view.name} WITH ({_listed(said)}) AS {view.sql}"
            )
        except UserError:
            return
        self.queries[view.name] = expanded(view, self._day.views)
        if isinstance(self._answer(view.name), UserError):
            self._db.sql(f"DROP VIEW {view.name}")
            del self.queries[view.name]

    def refresh(self, *names: str, **how: Any) -> list[RefreshReport]:
        """What is published equals what its query gives now; a refresh fails only if a query does,
        or if a state needs Spark."""
        try:
            reports = self._db.refresh(*names, **how)
        except SlackwaterError as error:
            failing = any(isinstance(self._answer(name), UserError) for name in self.queries)
            if not failing and error.code not in NO_ANSWER:
                self.wrong.append(f"{', '.join(names)}: {error}")
            raise
        for report in reports:
            if report.view in self.queries:
                self._compare(report.view)
        self._measure([report.view for report in reports])
        return reports

    def _compare(self, name: str) -> None:
        expected = self._answer(name)
        if isinstance(expected, UserError):
            return
        difference = compare(self._db.sql(f"SELECT * FROM {name}").to_arrow(), expected)
        self.compared += 1
        if not difference.equal:
            self.wrong.append(f"{name} at {self._db._house.now():%H:%M}: {difference}")

    def _answer(self, name: str) -> Any:
        try:
            return self._db.sql(self.queries[name]).to_arrow()
        except UserError as error:
            return error

    def _measure(self, names: Sequence[str]) -> None:
        """A view that was refreshed keeps no more than it may, with its share of its parts."""
        snapshot = self._db.catalog.snapshot()
        kept = {
            id: sum(s.bytes for state in snapshot.states(id) for s in snapshot.segments(state.id))
            for id in (v.id for v in (*snapshot.views(), *snapshot.parts()))
        }
        for view in (v for v in snapshot.views() if v.name in names):
            own = [(p.id, parts.views_of(p)) for p in snapshot.parts()]
            shares = (kept[id] / len(views) for id, views in own if view.name in views)
            size = kept[view.id] + sum(shares)
            if size > parse_size(view.options.get("state_budget", "1 GB")) + 1:
                self.wrong.append(f"{view.name} keeps {size} bytes")


def play(day: Day, rng: random.Random) -> tuple[Outcome, list[str]]:
    """What came of a day, and what went wrong."""
    clock = SimulatedClock(START, taking=lambda reports, measured: rng.choice((0.0, 1.0, 400.0)))
    settings: dict[str, Any] = {"placement": "local", "spark": NoSpark(), "clock": clock}
    outcome, forced = Outcome(), rng.random() < 0.7
    with scratch() as folder, slackwater.connect(folder, **settings) as db:
        checked = Checked(db, day)
        _begin(db, checked, day, rng)
        _expect(db, checked, clock, day, rng)
        said: list[Told] = []
        wrong: list[str] = []
        for hours in (HOURS // 2, HOURS):  # a second scheduler goes on
            paces = Watched(db, rng, forced)
            scheduler = Scheduler(
                checked,  # type: ignore[arg-type]
                db._house,
                clock,
                poll_seconds=1800,
                paces=paces,
                listener=said.append,
            )
            scheduler.run(until=START + timedelta(hours=hours))
            wrong += paces.wrong
            outcome.early += scheduler.summary.early
        wrong += checked.wrong + list(_failures(said))
    outcome.views, outcome.compared = len(checked.queries), checked.compared
    outcome.kinds.update(told.kind for told in said)
    return outcome, wrong


def _failures(said: Sequence[Told]) -> Iterator[str]:
    """What went wrong beside refreshes, whose failures are told already; early runs may need
    Spark."""
    for told in said:
        if told.kind == FAILED and told.view is None and not any(c in told.text for c in NO_ANSWER):
            yield told.text


def _begin(db: Warehouse, checked: Checked, day: Day, rng: random.Random) -> None:
    for table in day.tables:
        db.sql(table.ddl)
    apply_batch(db, day.tables, day.load)
    db.sql(f"ALTER WAREHOUSE SET (prices = '{rng.choice(PRICES)}')")
    for view in day.views:
        checked.create(view, options(rng))


def _expect(
    db: Warehouse, checked: Checked, clock: SimulatedClock, day: Day, rng: random.Random
) -> None:
    """Batches, changed minds, and somebody who looks in between."""
    for moment, batch in day.batches:
        clock.at(moment, _doing(lambda b=batch: apply_batch(db, day.tables, b)))
    names = sorted(checked.queries)
    for _ in range(4 if names else 0):
        name, moment = rng.choice(names), START + timedelta(minutes=rng.randint(0, 60 * HOURS))
        if rng.random() < 0.3:
            clock.at(moment, _doing(lambda n=name: checked.refresh(n)))
        else:
            text = f"ALTER MATERIALIZED VIEW {name} SET ({_listed(options(rng))})"
            clock.at(moment, _doing(lambda t=text: db.sql(t)))


def _doing(action: Callable[[], object]) -> Callable[[], None]:
    """An action that may be refused: what is wrong with a refresh is noted by whoever checks."""

    def done() -> None:
        try:
            action()
        except UserError:
            return

    return done
