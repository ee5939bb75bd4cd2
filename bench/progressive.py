"""`slackwater bench progressive`: early runs at a lower price against one run at the due time.

The progressive warehouse of 001, 8: most of the data is there when the first run is possible, the
rest arrives up to the second and to the due time, and one result is wanted then. Each query is
planned over three runs, the early ones at a lower price; the plan is run over the versions of the
tables as they came about, and the query is computed in one go at the due time, on the same engine
(of two, on the one that is expected to take less) from tables that hold their content plainly. What
counts is the CPU weighted by price, and the CPU at the due time. Both results must be the same.
On Spark the same plan may be run beside it without a word on how rows meet and are spread.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any

import slackwater
from bench import corpus
from bench.changes import WEIGHT_COLUMN
from bench.streams import apply, load, stream_of, texts
from slackwater.engine.compare import compare
from slackwater.errors import SlackwaterError
from slackwater.planner.choice import ENGINES
from slackwater.planner.plan import plan
from slackwater.planner.problem import Arrival, Problem
from slackwater.stats.rows import Change
from slackwater.work.playing import Played, Versions, play, recompute, versions
from slackwater.work.world import World

PRICES = (0.25, 0.3, 1.0)
ARRIVALS = (0.2, 0.2)
"""The share of all rows that arrives up to the second run, and up to the due time."""
OnStage = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Settings:
    """What to measure."""

    scale: float = 0.1
    kinds: tuple[str, ...] = corpus.KINDS
    queries: tuple[str, ...] = ()
    """Names of queries of both corpora; TPC-H's 22 and some of TPC-DS's when there are none."""
    prices: tuple[float, ...] = PRICES
    arrivals: tuple[float, ...] = ARRIVALS
    going: float = 0.0
    """Of what arrives, so much takes an earlier row away."""
    engine: str = "local"
    """Where runs go; 'auto': each where that makes the whole cheapest."""
    repeat: int = 3
    untold: bool = False
    """Run each plan also with all physical choices left to Spark."""
    seed: int = 7
    data: Path | None = None
    spark_master: str = "local[*]"

    def texts(self, kind: str) -> dict[str, str]:
        """The chosen queries of a corpus."""
        return texts(kind, self.queries)

    @property
    def engines(self) -> tuple[str, ...]:
        """Among which there is a choice."""
        return ENGINES if self.engine == "auto" else (self.engine,)


def run(settings: Settings, on_stage: OnStage | None = None, spark: Any = None) -> dict[str, Any]:
    """Plan, run and compare."""
    lines: list[dict[str, Any]] = []
    count = sum(len(settings.texts(kind)) for kind in settings.kinds)
    for kind in settings.kinds:
        with _history(kind, settings, spark) as history:
            for name, text in settings.texts(kind).items():
                if on_stage is not None:
                    on_stage(f"{kind} {name}", len(lines), count)
                lines.append(_line(history, kind, name, text, settings))
    return report(lines)


@dataclass(frozen=True)
class History:
    """A warehouse at the due time, the versions of its tables at each run, and what arrived up to
    it; and one with the same content as if it had always been there."""

    db: slackwater.Warehouse
    plain: slackwater.Warehouse
    points: Sequence[Versions]
    changes: Mapping[str, list[Change]]


@contextmanager
def _history(kind: str, settings: Settings, spark: Any) -> Iterator[History]:
    data = settings.data or corpus.data_folder()
    data.mkdir(parents=True, exist_ok=True)
    files = corpus.generate(kind, settings.scale, settings.data)
    arrivals = settings.arrivals
    stream: Any = stream_of(kind, files, arrivals, settings.seed, settings.going)
    options = {"spark": spark, "spark_master": settings.spark_master}
    with (
        tempfile.TemporaryDirectory(dir=data, prefix="bench-") as folder,
        slackwater.connect(Path(folder) / "w", placement=settings.engine, **options) as db,
        slackwater.connect(Path(folder) / "p", placement=settings.engine, **options) as plain,
    ):
        load(db, kind, stream.at_first(Path(folder) / "first"))
        points, changes = [versions(db._house)], dict[str, list[Change]]()
        for batch in stream.batches:
            arrived = stream.change(batch)
            apply(db, arrived)
            for table, rows in arrived.items():
                going = sum(w < 0 for w in rows[WEIGHT_COLUMN].to_pylist())
                change = Change(inserts=rows.num_rows - going, deletes=going)
                changes.setdefault(table, []).append(change)
            points.append(versions(db._house))
        for table, statement in corpus.ddl(kind).items():
            plain.sql(statement)
            plain.append(table, db.sql(f"SELECT * FROM {table}").to_arrow())
        yield History(db, plain, points, changes)


def _line(history: History, kind: str, name: str, text: str, settings: Settings) -> dict[str, Any]:
    line: dict[str, Any] = {"corpus": kind, "query": name}
    try:
        made = plan(_stated(history, text, settings.prices), engines=settings.engines)
        at_once = plan(history.plain.problem(text, {}, (1.0,)), engines=settings.engines)
        plans = [made, replace(made, layout=False)] if settings.untold else [made]
        played: list[list[Played]] = [[] for _ in plans]
        late = []
        for turn in range(settings.repeat):
            for n in range(len(plans))[:: -1 if turn % 2 else 1]:  # code is warmer for the second
                played[n].append(play(history.db._house, plans[n], history.points))
            late.append(recompute(history.plain._house, at_once.problem.query, *at_once.engines))
        early, untold = played[0], played[1:]
    except SlackwaterError as error:
        return line | {"problem": str(error)}
    due = len(settings.prices) - 1
    difference = compare(early[-1].results[due], late[-1].results[0])
    cpu = [_median(early, point) for point in range(due + 1)]
    once = _median(late, 0)
    weighted = _weighted(settings, cpu)
    if untold:
        line["untold"] = _weighted(settings, [_median(untold[0], p) for p in range(due + 1)])
        line["spread"] = sum(bool(saved.by) for run in made.runs for saved in run.saves)
    return line | {
        "cpu_seconds": cpu,
        "weighted": weighted,
        "due": cpu[due],
        "at_once": once,
        "cost_ratio": weighted / (settings.prices[due] * once),
        "due_ratio": cpu[due] / once,
        "expected": made.cost,
        "engines": list(made.engines),
        "methods": sorted(made.methods()),
        "planning_seconds": made.explored_seconds + made.assigned_seconds,
        "exact": difference.equal,
        "problem": "" if difference.equal else str(difference),
    }


def _weighted(settings: Settings, cpu: Sequence[float]) -> float:
    return sum(price * seconds for price, seconds in zip(settings.prices, cpu, strict=True))


def _stated(history: History, text: str, prices: Sequence[float]) -> Problem:
    """The query over the timeline, as it came about."""
    db, changes, house = history.db, history.changes, history.db._house
    now = db.problem(text, {}, prices)
    house.profiling.look(World(house, house.catalog.snapshot(), defining=True), now.query)
    arrivals = {}
    for scan in now.query.scans():
        if scan.name in changes:
            own = tuple(changes[scan.name])
            stored = now.arrivals[scan.source].rows  # those that take others away count, too
            arrivals[scan.name] = Arrival(stored - sum(c.rows for c in own), own)
    return db.problem(text, arrivals, prices)


def _median(played: Sequence[Played], point: int) -> float:
    """CPU seconds of a run."""
    return median(p.runs[point].cpu_seconds if point in p.runs else 0.0 for p in played)


def report(lines: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Every line, and what early runs save over all."""
    done = [line for line in lines if "cost_ratio" in line]
    if not done:
        return {"queries": list(lines)}
    early, at_once = (sum(line[key] for line in done) for key in ("weighted", "at_once"))
    told = [line for line in done if "untold" in line]
    beside = (
        sum(line["weighted"] for line in told) / sum(line["untold"] for line in told)
        if told
        else None
    )
    return {
        "queries": list(lines),
        "layout_ratio": beside,
        "exact": all(line["exact"] for line in done),
        "median_cost_ratio": median(line["cost_ratio"] for line in done),
        "median_due_ratio": median(line["due_ratio"] for line in done),
        "total_cost_ratio": early / at_once,
        "lower_at_due": sum(line["due_ratio"] < 1 for line in done) / len(done),
    }
