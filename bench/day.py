"""`slackwater bench day`: a day of thirty views with schedules, goals and prices, on a simulated
clock whose refreshes take what they are measured to take.

Sixty percent of the orders are there; twenty come on the day before, which nobody serves and from
which is learnt what comes, and twenty on the day itself, most of them in working hours. The other
tables are complete. The scheduler runs the day in four ways, each in a warehouse of its own:

| way | what |
|---|---|
| goals | parts are run early and shared, as goals and prices call for |
| schedules | each view is refreshed when it is due, and never before |
| recompute | the same, always in full |
| shortest lag | all views are refreshed as often as the most frequent one |

Every fifth view has a `state_budget`: less room than its states would take, or as much.

With `tight`, every third view is due once a day at a time of its own, and its last run may take no
more than that share of its batch work: with a small share it has to be begun before it is due.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import cycle
from pathlib import Path
from typing import Any

import slackwater
from bench import corpus
from bench.arrivals import Arrivals
from bench.sharing_sets import TEN
from bench.warming import Opening, Timer, append
from slackwater.service.clock import SimulatedClock, utc
from slackwater.service.goals import GOAL
from slackwater.service.paced import ByGoals
from slackwater.service.told import MISSED, Told
from slackwater.service.units import AllAtOnce

BEFORE, DAY, NEXT = "2026-01-04 00:00", "2026-01-05 00:00", "2026-01-06 00:00"
PRICES = "0.25 from 22:00 to 06:00, 2 from 12:00 to 14:00"
COMING = ("orders", "lineitem")
STEP = timedelta(minutes=30)
AT_FIRST, A_DAY = 0.6, 0.2
GOALS = (
    ("every 1 hour", "10 seconds"),
    ("every 4 hours", "10 seconds"),
    ("daily 06:00", "5 seconds"),
    ("every 4 hours", "20 seconds"),
    ("daily 18:00", "3 seconds"),
)
"""Schedules and goals, given to the views in turn."""
BUDGETS = ("1 MB", "10 KB")
"""Of every fifth view, in turn."""
EVERY_FIFTH = 5
TIGHT_HOURS = range(8, 22)
EVERY_THIRD = 3
WAYS = ("goals", "schedules", "recompute", "shortest lag")
EVENTS = 100_000
OnStage = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Settings:
    """What to measure."""

    scale: float = 0.05
    views: int = 30
    ways: tuple[str, ...] = WAYS
    engine: str = "auto"
    tight: float = 0.0
    """The share of its batch work that the last run of every third view may take; 0: none."""
    data: Path | None = None
    spark_master: str = "local[*]"

    def goals(self) -> dict[str, tuple[str, str]]:
        """By view, its schedule and its goal."""
        usual, hours = cycle(GOALS), cycle(TIGHT_HOURS)
        found = {}
        for i, name in enumerate(self.texts()):
            if self.tight and i % EVERY_THIRD == 0:
                found[name] = (f"daily {next(hours):02}:10", f"{self.tight:g}x")
            else:
                found[name] = next(usual)
        return found

    def budgets(self) -> dict[str, str]:
        """By view, the room that its states may take; the others have all that they want."""
        return dict(zip(list(self.texts())[::EVERY_FIFTH], cycle(BUDGETS), strict=False))

    def tight_views(self) -> tuple[str, ...]:
        """Those that have to be begun early."""
        return tuple(list(self.texts())[::EVERY_THIRD]) if self.tight else ()

    def texts(self) -> dict[str, str]:
        """TPC-H's 22, then some of them with other values."""
        folder = corpus.QUERIES / "tpch_varied"
        varied = {f"v{name[1:]}": (folder / f"{name}.sql").read_text() for name in TEN}
        every = corpus.queries("tpch") | varied
        return dict(list(every.items())[: self.views])


def run(settings: Settings, on_stage: OnStage | None = None) -> dict[str, Any]:
    """The day in each way."""
    say = on_stage or (lambda what, done, total: None)
    files = corpus.generate("tpch", settings.scale, settings.data)
    lines = []
    for i, way in enumerate(settings.ways):
        say(way, i, len(settings.ways))
        lines.append(lived(settings, files, way))
    ours = next((line for line in lines if line["way"] == "goals"), None)
    for line in lines:
        line["ratio"] = ours["cost"] / line["cost"] if ours and line["cost"] else None
    problems = [problem for line in lines for problem in line["problems"]]
    told = {"sf": settings.scale, "views": settings.views, "prices": PRICES, "lines": lines}
    told |= {"engine": settings.engine, "tight": settings.tight}
    return told | {"exact": not problems, "problems": problems}


def lived(settings: Settings, files: dict[str, Path], way: str) -> dict[str, Any]:
    """One day in one way."""
    folder = settings.data or corpus.data_folder()
    clock = SimulatedClock(BEFORE)
    refresh = "full" if way == "recompute" else "auto"
    opening = Opening(settings.engine, folder, spark_master=settings.spark_master)
    with opening.opened(clock=clock, refresh=refresh, compact=True) as db:
        begin(db, files, settings, way, clock)
        paces = ByGoals(db._house) if way == "goals" else AllAtOnce()
        paces.units(clock.now())
        db.refresh()
        told: list[Told] = []
        timer = Timer(db)
        options: dict[str, Any] = {"poll_seconds": STEP.total_seconds(), "paces": paces}
        with db.scheduler(listener=told.append, **options) as scheduler:
            summary = scheduler.run(until=NEXT)
        seconds, cpu = timer.read()
        budgets = list(rooms(db))
        db.refresh()  # what is to be compared with is no longer kept for older results
        problems = [
            f"{way}, {view.name}: {checked.difference}"
            for view in db.catalog.snapshot().views()
            if not (checked := db.verify(view.name)).equal
        ]
        parts = len(db.catalog.snapshot().parts())
        tight = list(results(db, settings.tight_views()))
    return {
        "way": way,
        "refreshed": summary.refreshed,
        "early": summary.early,
        "parts": parts,
        "kept": summary.kept,
        "missed": summary.missed,
        "failed": summary.failed,
        "tight": tight,
        "tight_kept": sum(result["kept"] for result in tight),
        "budgets": budgets,
        "budgets_kept": sum(room["kept"] for room in budgets),
        "cpu_seconds": summary.cpu_seconds,
        "cost": summary.cost,
        "process_cpu_seconds": cpu,
        "process_seconds": seconds,
        "missed_goals": [t.text for t in told if t.kind == MISSED],
        "exact": not problems,
        "problems": problems,
    }


def results(db: slackwater.Warehouse, views: tuple[str, ...]) -> Iterator[dict[str, Any]]:
    """What came of each result of some views that was due, the first one first."""
    for event in reversed(db._house.catalog.events(kind=GOAL, limit=EVENTS)):
        if event.body["view"] in views:
            told = ("view", "due", "within_seconds", "latency_seconds", "kept")
            yield {what: event.body[what] for what in told}


def rooms(db: slackwater.Warehouse) -> Iterator[dict[str, Any]]:
    """What the states of views with a budget take, their part of shared ones, too."""
    for view in db.status()["views"]:
        budget, taken = view["state_budget"], view["state_bytes"]
        if budget is not None:
            told = {"view": view["name"], "budget_bytes": budget, "state_bytes": taken}
            yield told | {"kept": taken <= budget}


def begin(
    db: slackwater.Warehouse,
    files: dict[str, Path],
    settings: Settings,
    way: str,
    clock: SimulatedClock,
) -> None:
    """Tables, views, and the day before; the day itself is still to come."""
    for table, statement in corpus.ddl("tpch").items():
        db.sql(statement)
        if table not in COMING:
            db.ingest(table, files[table])
    for _ in db.execute_script(corpus.keys("tpch")):
        pass
    db.sql(f"ALTER WAREHOUSE SET (prices = '{PRICES}')")
    moments = list(_moments())
    stream = Arrivals(files, COMING, (AT_FIRST, *(share for _, share in moments))).batches()
    append(db, next(stream))
    goals, budgets = settings.goals(), settings.budgets()
    for name, text in settings.texts().items():
        schedule, within = goals[name]
        schedule = GOALS[0][0] if way == "shortest lag" else schedule
        said = f"schedule = '{schedule}', within = '{within}'"
        if name in budgets:
            said += f", state_budget = '{budgets[name]}'"
        db.sql(f"CREATE MATERIALIZED VIEW {name} WITH ({said}) AS {text}")
    db.refresh()
    for moment, _ in moments:
        clock.at(moment, lambda: append(db, next(stream)))
    clock.wait(utc(DAY))


def _moments() -> Iterator[tuple[datetime, float]]:
    """When orders come on two days, and the share of all that each batch has."""
    moment, found = utc(BEFORE) + STEP / 2, []
    while moment < utc(NEXT):
        found.append((moment, 4.0 if 8 <= moment.hour < 18 else 1.0))
        moment += STEP
    total = sum(weight for _, weight in found)
    yield from ((moment, 2 * A_DAY * weight / total) for moment, weight in found)
