"""`slackwater bench progressive`: early runs at a lower price against one run at the due time.

The progressive warehouse of 001, 8: most of the data is there when the first run is possible, the
rest arrives up to the second and to the due time, and one result is wanted then. Each query is
planned over three runs, the early ones at a lower price; the plan is run, and the query is
computed in one go at the due time, on the same engine from the same files. What counts is the CPU
weighted by price, and the CPU at the due time. Both results must be the same.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import slackwater
from bench import corpus
from bench.changes import WEIGHT_COLUMN, make_stream
from bench.choice import FACTS, TPCDS
from bench.row_changes import make_row_stream
from slackwater.engine.compare import compare
from slackwater.errors import SlackwaterError
from slackwater.planner.plan import plan
from slackwater.planner.problem import Arrival, Problem
from slackwater.stats.rows import Change
from slackwater.work.playing import Played, Versions, play, recompute, versions
from slackwater.work.world import World

PRICES = (0.25, 0.3, 1.0)
ARRIVALS = (0.2, 0.2)
"""The share of all rows that arrives up to the second run, and up to the due time."""
GOING = 0.05
"""Of what arrives, so much takes an earlier row away."""
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
    engine: str = "local"
    repeat: int = 3
    seed: int = 7
    data: Path | None = None
    spark_master: str = "local[*]"

    def texts(self, kind: str) -> dict[str, str]:
        """The chosen queries of a corpus."""
        every = corpus.queries(kind)
        named = self.queries or (tuple(TPCDS) if kind == "tpcds" else tuple(every))
        return {name: text for name, text in every.items() if name in named}


def run(settings: Settings, on_stage: OnStage | None = None, spark: Any = None) -> dict[str, Any]:
    """Plan, run and compare."""
    lines: list[dict[str, Any]] = []
    count = sum(len(settings.texts(kind)) for kind in settings.kinds)
    for kind in settings.kinds:
        with _house(kind, settings, spark) as (db, points, changes):
            for name, text in settings.texts(kind).items():
                if on_stage is not None:
                    on_stage(f"{kind} {name}", len(lines), count)
                lines.append(_line(db, kind, name, text, settings, points, changes))
    return report(lines)


Changes = Mapping[str, list[Change]]


@contextmanager
def _house(
    kind: str, settings: Settings, spark: Any
) -> Iterator[tuple[slackwater.Warehouse, list[Versions], Changes]]:
    """A warehouse at the due time, the versions of its tables at each run, and what arrived."""
    data = settings.data or corpus.data_folder()
    data.mkdir(parents=True, exist_ok=True)
    files = corpus.generate(kind, settings.scale, settings.data)
    stream: Any
    if kind == "tpch":
        timed = [(share, True) for share in settings.arrivals]
        stream = make_stream(files, timed, settings.seed, GOING)
    else:
        stream = make_row_stream(files, FACTS, settings.arrivals, settings.seed, GOING)
    options = {"spark": spark, "spark_master": settings.spark_master}
    with (
        tempfile.TemporaryDirectory(dir=data, prefix="bench-") as folder,
        slackwater.connect(Path(folder) / "w", placement=settings.engine, **options) as db,
    ):
        first = stream.at_first(Path(folder) / "first")
        for table, statement in corpus.ddl(kind).items():
            db.sql(statement)
            db.ingest(table, first[table])
        points, changes = [versions(db._house)], dict[str, list[Change]]()
        for batch in stream.batches:
            with db.transaction():
                for table, rows in stream.change(batch).items():
                    db.apply(table, rows, weight_column=WEIGHT_COLUMN)
                    going = sum(w < 0 for w in rows[WEIGHT_COLUMN].to_pylist())
                    change = Change(inserts=rows.num_rows - going, deletes=going)
                    changes.setdefault(table, []).append(change)
            points.append(versions(db._house))
        yield db, points, changes


def _line(
    db: slackwater.Warehouse,
    kind: str,
    name: str,
    text: str,
    settings: Settings,
    points: list[Versions],
    changes: Changes,
) -> dict[str, Any]:
    line: dict[str, Any] = {"corpus": kind, "query": name}
    try:
        made = plan(_stated(db, text, settings.prices, changes))
        early = [play(db._house, made, points, settings.engine) for _ in range(settings.repeat)]
        late = [recompute(db._house, made, points, settings.engine) for _ in range(settings.repeat)]
    except SlackwaterError as error:
        return line | {"problem": str(error)}
    due = len(settings.prices) - 1
    difference = compare(early[-1].results[due], late[-1].results[due])
    cpu = [_median(early, point) for point in range(due + 1)]
    at_once = _median(late, due)
    weighted = sum(price * seconds for price, seconds in zip(settings.prices, cpu, strict=True))
    return line | {
        "cpu_seconds": cpu,
        "weighted": weighted,
        "due": cpu[due],
        "at_once": at_once,
        "cost_ratio": weighted / (settings.prices[due] * at_once),
        "due_ratio": cpu[due] / at_once,
        "expected": made.cost,
        "methods": sorted(made.methods()),
        "planning_seconds": made.explored_seconds + made.assigned_seconds,
        "exact": difference.equal,
        "problem": "" if difference.equal else str(difference),
    }


def _stated(
    db: slackwater.Warehouse, text: str, prices: Sequence[float], changes: Changes
) -> Problem:
    """The query over the timeline, as it came about."""
    house = db._house
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
    return {
        "queries": list(lines),
        "exact": all(line["exact"] for line in done),
        "median_cost_ratio": median(line["cost_ratio"] for line in done),
        "median_due_ratio": median(line["due_ratio"] for line in done),
        "total_cost_ratio": early / at_once,
        "lower_at_due": sum(line["due_ratio"] < 1 for line in done) / len(done),
    }
