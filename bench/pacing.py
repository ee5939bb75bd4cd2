"""Paces for queries that are due once all rows have come, by each of several approaches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import slackwater
from bench.arrivals import Arrivals
from bench.progress import Piece
from bench.warming import Learned
from slackwater.algebra.relation import Relation
from slackwater.catalog.model import Table
from slackwater.planner.pace import Found, Goal, Search
from slackwater.planner.simulation import Inflow, Setting, Simulation
from slackwater.planner.subplans import Dag, cut
from slackwater.stats.rows import Change
from slackwater.stats.values import Known
from slackwater.tvr.normal import normalize
from slackwater.tvr.references import Reference
from slackwater.work.meaning import as_written
from slackwater.work.present import engines
from slackwater.work.world import World

MOST_PATHS = 8
"""Queries with more paths have a pace per subplan, not per path."""
MARGIN = 1.02
"""What is said to be within reach is so much above the shortest that was found."""


def relations(db: slackwater.Warehouse, texts: Mapping[str, str]) -> dict[str, Relation]:
    """The queries over a warehouse's tables, in normal form."""
    found = {}
    for name, text in texts.items():
        db.sql(f"CREATE MATERIALIZED VIEW {name} AS {text}")
        world = World(db._house, db.catalog.snapshot(), defining=True)
        found[name] = normalize(as_written(world, world.view(name))[0])
        db.sql(f"DROP MATERIALIZED VIEW {name}")
    return found


def tables_of(db: slackwater.Warehouse, queries: Mapping[str, Relation]) -> tuple[str, ...]:
    """The names of the tables that queries read."""
    read = {scan.source for query in queries.values() for scan in query.scans()}
    return tuple(t.name for t in db.catalog.snapshot().tables() if t.id in read)


def setting(
    db: slackwater.Warehouse, arrivals: Arrivals, learned: Learned, known: Known | None = None
) -> Setting:
    """What comes until the due time, what work costs, and what is known of values."""
    world = World(db._house, db.catalog.snapshot(), defining=True)
    inflows = {}
    for table in world.snapshot.tables():
        rows = world.rows(table.id)
        coming = arrivals.rows(table.name) if table.name in arrivals.moving else 0
        inflows[table.id] = Inflow(rows, Change(inserts=coming))
    return Setting(
        inflows,
        learned.model,
        engines(db._house),
        known or learned.known(db),
        run=learned.run,
        references=frozenset(_references(world.snapshot.tables())),
    )


def _references(tables: tuple[Table, ...]) -> Iterator[Reference]:
    """Those that are promised: what is named comes in the same batch."""
    for table in tables:
        for r in table.references:
            yield Reference(table.id, r.columns, r.table, r.theirs, whole=True)


@dataclass
class Pacing:
    """One query, and how eagerly its pieces may be run."""

    name: str
    query: Relation
    setting: Setting
    most: int

    def __post_init__(self) -> None:
        self._dag = cut({self.name: self.query}, sharing=False)

    @property
    def dag(self) -> Dag:
        """Its subplans."""
        return self._dag

    def resolved(self, mode: str) -> str:
        """A pace per path where there are few, else per subplan."""
        many = len(self.search("paths", Goal()).paths) > MOST_PATHS
        return "subplans" if mode == "paths" and many else mode

    def search(self, mode: str, goal: Goal, worth: float | None = None) -> Search:
        """For paces by a mode."""
        simulation = Simulation(self._dag, self.setting)
        search = Search(simulation, {self.name: goal}, mode, self.most)
        if worth is not None:
            search.worth = worth
        return search

    def found(self, mode: str, goal: Goal) -> Found:
        """The cheapest paces that meet a goal: of all, where a query has one pace; else those that
        incrementability leads to."""
        search = self.search(mode, goal)
        if mode == "uniform":
            return search.exhaustive(range(1, self.most + 1))
        return search.greedy()

    def nearest(self, mode: str) -> float:
        """The shortest last run that a mode can reach, in seconds."""
        search = self.search(mode, Goal(0.0), worth=0.0)
        if mode == "uniform":
            found = search.brute_force(range(1, self.most + 1))
        else:
            found = search.greedy()
        return min(found.final[self.name], search.batch().final[self.name])

    def batch(self) -> float:
        """The seconds of one run at the due time."""
        return self.search("uniform", Goal()).batch().final[self.name]

    def piece(self, found: Found) -> Piece:
        """What is to be run."""
        return Piece(self._dag, found)
