"""From the schedules and goals of views to paces: what is expected, what is wanted, what is found.

    views, goals, arrivals → subplans → paces → parts

Views whose results are due at the same rhythm are planned together, and may share parts.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cached_property

from slackwater.algebra.relation import Relation
from slackwater.catalog.model import Table, View
from slackwater.planner.course import Course
from slackwater.planner.decomposition import Decomposition
from slackwater.planner.pace import LADDER, Found, Goal, Search
from slackwater.planner.reach import nearest_goal
from slackwater.planner.rounds import Budgets, Sought, States, within_budgets
from slackwater.planner.simulation import Inflow, Setting, Simulation
from slackwater.planner.subplans import Dag, cut
from slackwater.stats.arrival import Arrived, Expected
from slackwater.stats.outlook import outlook
from slackwater.stats.rows import Change
from slackwater.timing import Rhythm, parse_prices
from slackwater.tvr.references import Reference
from slackwater.work.allowed import Rows, allowed_seconds, batch, when_due
from slackwater.work.arrivals import history
from slackwater.work.course import at_any_time, course
from slackwater.work.expanded import expanded, read_views
from slackwater.work.house import House
from slackwater.work.parts import Forms, Ids, Written, forms
from slackwater.work.present import engines
from slackwater.work.rhythms import rhythm
from slackwater.work.room import budget_of
from slackwater.work.state_bytes import bytes_of_states
from slackwater.work.world import World


@dataclass(frozen=True)
class Expectation:
    """What a goal asks for and what can be had, in seconds."""

    view: str
    wanted: float
    final: float
    nearest: float

    @property
    def is_met(self) -> bool:
        """Is the goal within reach of the paces that were found?"""
        return self.final <= self.wanted * 1.001


@dataclass(frozen=True)
class Paced:
    """The plan of views that are due at one rhythm."""

    rhythm: Rhythm
    search: Search
    found: Found
    batch: Found
    forms: Forms
    expected: Mapping[str, Expected]  # of a period, by table
    assumed: bool  # nothing is known of what comes
    at_share: Callable[[float], Sought] = field(repr=False)
    """What is found if each view may take a share of its own batch, and nothing else is another."""

    @property
    def period_seconds(self) -> float:
        """From one result to the next."""
        return self.rhythm.period_seconds

    @property
    def dag(self) -> Dag:
        """Its subplans."""
        return self.search.dag

    def expectations(self) -> list[Expectation]:
        """Of every view with a goal."""
        return [
            Expectation(name, self.found.wanted[name], self.found.final[name], self._nearest(name))
            for name in self.dag.roots
            if name in self.search.goals
        ]

    def _nearest(self, name: str) -> float:
        final = self.found.final[name]
        is_missed = name in self.found.missed
        return min(final, nearest_goal(self.search, name)) if is_missed else final


@dataclass(frozen=True)
class Options:
    """How paces are looked for: public, so that each can be compared with the others."""

    paces: str = "subplans"
    sharing: bool = True
    most: int = LADDER[-1]
    assuming: bool = False
    """Where nothing is known of what comes to any table: may it be all that is there?"""


def planned(
    house: House,
    now: datetime,
    options: Options | None = None,
    world: World | None = None,
    only: Collection[str] | None = None,
) -> list[Paced]:
    """The paces of all views that have a rhythm (or `only` of some, by name), those together that
    are due together; in the `world` as it is, or as it might be."""
    options = options or Options()
    world = world or World(house, house.catalog.snapshot(), defining=True)
    by_rhythm: dict[Rhythm, list[View]] = {}
    for view in world.snapshot.views():
        if only is not None and view.name not in only:
            continue
        own = rhythm(world, view, now)
        if own is not None:
            by_rhythm.setdefault(own, []).append(view)
    ids = Ids(world.snapshot)
    return [
        _Planning(world, now, own, by_rhythm[own], options).paced(ids) for own in sorted(by_rhythm)
    ]


class _Planning:
    """Views of one rhythm."""

    def __init__(
        self, world: World, now: datetime, rhythm: Rhythm, views: Sequence[View], options: Options
    ) -> None:
        self._world = world
        self._now = now
        self._rhythm = rhythm
        self._period = timedelta(seconds=rhythm.period_seconds)
        self._views = views
        self._options = options
        self._histories: dict[str, list[Arrived]] = {}
        self._assumed = False
        self._expected: dict[str, Expected] = {}  # of a period, by table
        self._usual: dict[str, float] = {}  # its rows
        self._settings: dict[States, Setting] = {}  # by what is dropped

    def paced(self, ids: Ids) -> Paced:
        """Cut, simulate, search."""
        search, found = self._sought(dict(self._goals(when_due(self._setting.inflows))))
        written = dict(self._written())
        made = forms(search.dag, found, self._usual, ids, written)
        told = self._expected, self._assumed
        return Paced(self._rhythm, search, found, search.batch(), made, *told, self._at_share)

    def _at_share(self, share: float) -> Sought:
        """What is found if each view may take a share of its own batch."""
        return self._sought({name: Goal(share * took) for name, took in self._batches.items()})

    @cached_property
    def _batches(self) -> Mapping[str, float]:
        rows = when_due(self._setting.inflows)
        return {view.name: batch(self._world, view, rows) for view in self._views}

    def _sought(self, goals: Mapping[str, Goal]) -> Sought:
        """Who shares what, and the paces, with the states that there is room for. What was costed
        for some goals is not costed again for others."""

        def seek(setting: Setting) -> Sought:
            return self._searched(self._settings.setdefault(setting.dropped, setting), goals)

        return within_budgets(seek, self._setting, self._budgets)

    def _searched(self, setting: Setting, goals: Mapping[str, Goal]) -> Sought:
        queries, options = self._queries, self._options
        if options.sharing and len(queries) > 1:
            best = Decomposition(queries, setting, goals, options.paces, options.most).best()
            return best.search, best.found
        simulation = Simulation(cut(queries, sharing=options.sharing), setting)
        search = Search(simulation, goals, options.paces, options.most)
        return search, search.greedy()

    @cached_property
    def _queries(self) -> Mapping[str, Relation]:
        return {view.name: self._query(view) for view in self._views}

    def _query(self, view: View) -> Relation:
        return expanded(self._world, view)

    def _written(self) -> Iterator[tuple[str, Written]]:
        """Views that others of them are written on."""
        reads = {view.name: read_views(self._world, view) for view in self._views}
        for view in self._views:
            readers = frozenset(name for name, read in reads.items() if view.id in read)
            if readers:
                yield view.name, Written(view, readers)

    def _goals(self, rows: Rows) -> Iterator[tuple[str, Goal]]:
        """In seconds, when so many rows are there as are expected."""
        for view in self._views:
            seconds = allowed_seconds(self._world, view, rows)
            if seconds is not None:
                yield view.name, Goal(seconds)

    @cached_property
    def _budgets(self) -> Budgets:
        said = {view.name: budget_of(self._world, view) for view in self._views}
        own = {name: float(budget) for name, budget in said.items() if budget is not None}
        return Budgets(own, bytes_of_states(self._world))

    @cached_property
    def _setting(self) -> Setting:
        house = self._world.house
        ids = dict.fromkeys(s.source for q in self._queries.values() for s in q.scans())
        return Setting(
            self._inflows(ids),
            house.experience.of("").model,
            engines(house),
            house.profiling.known(),
            self._course(ids),
            references=frozenset(self._references(ids)),
            turnover=house.experience.turnover(),
            methods=house.settings.methods,
        )

    def _course(self, ids: Mapping[str, None]) -> Course | None:
        prices = parse_prices(self._world.snapshot.settings.get("prices", "1"))
        due = self._rhythm.next_due
        if due is None:
            return at_any_time(prices)
        histories = {id: self._history(id) for id in ids}
        return course(prices, self._now, due, self._period, histories)

    def _history(self, id: str) -> list[Arrived]:
        if id not in self._histories:
            table = self._world.snapshot.get(id)
            assert isinstance(table, Table)
            self._histories[id] = history(self._world, table)
        return self._histories[id]

    def _inflows(self, ids: Mapping[str, None]) -> dict[str, Inflow]:
        """Of all tables. Where nothing is known yet, all that is there may be what comes."""
        found = {id: self._inflow(id) for id in ids}
        known = any(inflow.change.rows for inflow in found.values())
        if known or not self._options.assuming:
            return found
        self._assumed = True
        return {id: Inflow(0.0, Change(inserts=inflow.rows)) for id, inflow in found.items()}

    def _inflow(self, id: str) -> Inflow:
        """A table now, and what it may receive in a period: goals are to be kept also when more
        comes than usual, by as much as predictions were off before. Where rows say when results are
        due, no more comes than these."""
        rows = float(self._world.rows(id))
        expected = outlook(self._history(id), self._now, self._period)
        self._expected[id] = expected
        change = expected.change.times(self._part_of_rows) if self._rhythm.rows else expected.change
        self._usual[id] = change.rows
        return Inflow(rows, change if self._rhythm.rows else expected.at_most())

    @cached_property
    def _part_of_rows(self) -> float:
        """The rows after which a result is due, over those that are expected from what it reads."""
        expected = (
            outlook(self._history(id), self._now, self._period) for id in self._rhythm.tables
        )
        total = sum(e.change.rows for e in expected)
        return self._rhythm.rows / total if total else 0.0

    def _references(self, ids: Mapping[str, None]) -> Iterator[Reference]:
        """Promised references between what is read, to tables whose keys only come."""
        for id in ids:
            table = self._world.snapshot.get(id)
            for r in table.references if isinstance(table, Table) else ():
                if r.table in ids and not self._changes_keys(r.table):
                    whole = self._come_together(id, r.table)
                    yield Reference(id, r.columns, r.table, r.theirs, whole)

    def _changes_keys(self, id: str) -> bool:
        total = sum((a.rows for a in self._history(id)), Change())
        return total.updates > 0

    def _come_together(self, id: str, other: str) -> bool:
        """Have rows of one table come only together with those of another?"""
        own, theirs = ({a.at for a in self._history(i)} for i in (id, other))
        return bool(own) and own <= theirs
