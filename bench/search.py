"""`slackwater bench search`: how long it takes to find paces and who shares (003, 5.5; 000, 4.4.5).

TPC-H's 22 queries over tables that are only said to have so many rows; nothing is run. All rows
come until all results are due, and goals are so short that paces rise as far as they may.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import slackwater
from bench import corpus
from bench.arrivals import HOLDING, THERE
from bench.pacing import relations
from bench.sharing_sets import TEN
from slackwater.algebra.relation import Relation
from slackwater.planner.decomposition import Decomposition, Shared
from slackwater.planner.flushes import Times
from slackwater.planner.pace import Goal
from slackwater.planner.simulation import Inflow, Setting
from slackwater.stats.rows import Change
from slackwater.stats.values import Ignorance, Values
from slackwater.tvr.references import Reference

ROWS = {
    "region": 5,
    "nation": 25,
    "supplier": 10_000,
    "customer": 150_000,
    "part": 200_000,
    "partsupp": 800_000,
    "orders": 1_500_000,
    "lineitem": 6_001_215,
}
"""Rows of TPC-H's tables at scale factor 1."""
KEYS = {
    "regionkey": "region",
    "nationkey": "nation",
    "suppkey": "supplier",
    "custkey": "customer",
    "partkey": "part",
    "orderkey": "orders",
}
"""What a key ends in, and the table that it is a key of."""
WANTED_SECONDS, PAPER_SECONDS = 3.0, 25.6
"""For 22 queries at maximum pace 100: what is wanted, and what iShare takes."""
REMEMBERED, FORGOTTEN = "remembered", "computed again"
CLUSTERS, EVERY_SPLIT = "clusters", "every split"

OnStage = Callable[[str, int, int], None]


class OutOfTimeError(Exception):
    """A search that takes longer than it may."""


@dataclass(frozen=True)
class Settings:
    """What to measure."""

    scale: float = 1.0
    paces: tuple[int, ...] = (1, 10, 50, 100)
    counts: tuple[int, ...] = (2, 4, 6, 8, 10)  # of the queries that overlap most
    share: float = 0.01
    limit: float = 60.0  # CPU seconds that a search may take
    queries: tuple[str, ...] = ()  # for the searches by maximum pace; all, if empty


@dataclass
class Limited(Setting):
    """A setting in which a search ends when its time is up."""

    deadline: float = 0.0

    def paid(self, sources: Collection[str], ends: Times) -> Times:
        if time.process_time() > self.deadline:
            raise OutOfTimeError
        return super().paid(sources, ends)


@dataclass(frozen=True)
class Keys(Ignorance):
    """Of every key, as many different values as its table has rows."""

    scale: float

    def values(self, source: str, column: str) -> Values | None:
        table = next((t for end, t in KEYS.items() if column.endswith(end)), None)
        return None if table is None else Values(_rows(table, self.scale))


def _rows(table: str, scale: float) -> float:
    return ROWS[table] * (1.0 if table in THERE else scale)


@dataclass(frozen=True)
class Catalogue:
    """Queries over tables without rows, and what they are planned in."""

    queries: Mapping[str, Relation]
    setting: Setting


def catalogue(scale: float) -> Catalogue:
    """TPC-H's."""
    with (
        TemporaryDirectory() as folder,
        slackwater.connect(Path(folder) / "w", placement="local") as db,
    ):
        for statement in corpus.ddl("tpch").values():
            db.sql(statement)
        db.sql(corpus.keys("tpch"))
        queries = relations(db, corpus.queries("tpch"))
        tables = {table.id: table for table in db.catalog.snapshot().tables()}
    names = {id: table.name for id, table in tables.items()}
    references = (
        Reference(id, r.columns, r.table, r.theirs, whole=True)
        for id, table in tables.items()
        for r in table.references
        if names[r.table] in HOLDING
    )
    inflows = {id: _inflow(name, scale) for id, name in names.items()}
    setting = Setting(inflows, known=Keys(scale), references=frozenset(references))
    return Catalogue(queries, setting)


def _inflow(table: str, scale: float) -> Inflow:
    rows = _rows(table, scale)
    return Inflow(rows, Change()) if table in THERE else Inflow(0.0, Change(inserts=rows))


def run(settings: Settings, on_stage: OnStage | None = None) -> dict[str, Any]:
    """All searches."""
    say = on_stage or (lambda what, done, total: None)
    own = catalogue(settings.scale)
    tasks = list(_tasks(settings, own))
    lines = []
    for i, (line, find) in enumerate(tasks):
        say(f"{line['queries']} queries, pace {line['most']}, {line['costs']}", i, len(tasks))
        lines.append(line | _timed(find))
    told = {"sf": settings.scale, "share": settings.share, "limit": settings.limit, "lines": lines}
    return told | {"wanted": WANTED_SECONDS, "paper": PAPER_SECONDS}


Find = Callable[[], Shared]
Task = tuple[dict[str, Any], Find]


def _tasks(settings: Settings, own: Catalogue) -> Iterator[Task]:
    every = settings.queries or tuple(own.queries)
    for most in settings.paces:
        for costs in (REMEMBERED, FORGOTTEN):
            yield _task(settings, own, every, most, costs, CLUSTERS)
    for count in settings.counts:
        for splits in (CLUSTERS, EVERY_SPLIT):
            yield _task(settings, own, TEN[:count], max(settings.paces), REMEMBERED, splits)


def _task(
    settings: Settings,
    own: Catalogue,
    names: tuple[str, ...],
    most: int,
    costs: str,
    splits: str,
) -> Task:
    line = {"queries": len(names), "most": most, "costs": costs, "splits": splits}

    def find() -> Shared:
        base = own.setting
        setting = Limited(
            base.inflows,
            known=base.known,
            references=base.references,
            remembers=costs == REMEMBERED,
            deadline=time.process_time() + settings.limit,
        )
        queries = {name: own.queries[name] for name in names}
        goals = {name: Goal(share=settings.share) for name in names}
        every = splits == EVERY_SPLIT
        return Decomposition(queries, setting, goals, most=most, every_split=every).best()

    return line, find


def _timed(find: Find) -> dict[str, Any]:
    """Seconds, and what was found; none, where time was up."""
    begun, cpu = time.perf_counter(), time.process_time()
    try:
        found = find()
    except OutOfTimeError:
        return {
            "seconds": None,
            "cpu_seconds": None,
            "subplans": None,
            "total": None,
            "tried": None,
        }
    return {
        "seconds": time.perf_counter() - begun,
        "cpu_seconds": time.process_time() - cpu,
        "subplans": len(found.dag.subplans),
        "total": found.found.total,
        "tried": found.tried,
    }
