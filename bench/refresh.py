"""`slackwater bench refresh`: refreshing every TPC-H query against computing it anew.

A run loads one warehouse per placement, with all chosen queries as views. Then it plays rounds. A
round applies one batch of changes to both warehouses, writes the content after it as plain
Parquet, and measures each query four times, one after the other:

    recompute_spark   the query's text on Spark, from the plain files
    recompute_local   its compiled statement on the local engine, from the same files
    spark             db.refresh(view) with placement = 'spark'
    auto              db.refresh(view) with placement = 'auto'

The first rounds are not timed: they warm all four alike (the JVM and its compiled code, Spark's
generated code, the file cache). Every result is compared with Spark's answer by the one comparer.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

import slackwater
from bench import corpus
from bench.baselines import KIND, Baselines, Statement, rows_in
from bench.changes import WEIGHT_COLUMN, Batch, Stream, make_stream
from bench.measure import Cost, Meter
from slackwater.engine.compare import compare
from slackwater.engine.local import LocalEngine
from slackwater.engine.spark import SparkEngine
from slackwater.errors import NeedsSpark, SlackwaterError, UserError, nearest

PLACEMENTS = ("spark", "auto")
METHODS = ("recompute_spark", "recompute_local", *PLACEMENTS)
SWEEP = (0.0001, 0.001, 0.01, 0.1)
"""Change sizes of a sweep."""

REMEMBERED = {"spark.ui.retainedJobs": "100000", "spark.ui.retainedStages": "100000"}
"""Spark counts jobs and stages for us, of which it forgets all but a thousand by itself."""

OnStage = Callable[[str, int, int], None]
"""Told what begins now, how many stages are done, and how many there are."""


@dataclass(frozen=True)
class Settings:
    """What to measure."""

    scale: float = 1.0
    change: float = 0.01
    """Share of the orders that a batch touches: half of them come, half of them go."""
    queries: tuple[str, ...] = ()
    """Names of TPC-H queries; all when there are none."""
    repeat: int = 1
    """Timed rounds per change size; medians are reported."""
    warm_up: int = 1
    """Rounds before them that are not timed."""
    sweep: bool = False
    keys: bool = True
    """Are the keys and references of TPC-H declared?"""
    seed: int = 7
    data: Path | None = None
    """Where generated data is kept."""
    work: Path | None = None
    """Where the warehouses go, which then stay; otherwise they are removed at the end."""
    spark_master: str = "local[*]"

    def __post_init__(self) -> None:
        if unknown := [q for q in self.queries if q not in corpus.queries(KIND)]:
            raise UserError(
                f"Query '{unknown[0]}' is not one of TPC-H's.",
                code="UNKNOWN_QUERY",
                hint=nearest(unknown[0], corpus.queries(KIND)),
            )
        if not 0 < self.change < 1 or self.repeat < 1 or self.warm_up < 0:
            raise UserError(
                "A change is a share between 0 and 1; there is at least one timed round.",
                code="BAD_OPTION",
                hint="For example: --change 0.01 --repeat 3",
            )

    @property
    def texts(self) -> dict[str, str]:
        """The chosen queries."""
        every = corpus.queries(KIND)
        return {name: every[name] for name in every if name in (self.queries or every)}

    @property
    def shares(self) -> tuple[float, ...]:
        """The change sizes, ascending."""
        return tuple(sorted({self.change, *(SWEEP if self.sweep else ())}))

    @property
    def rounds(self) -> list[tuple[float, bool]]:
        """The change size of each round, and whether it is timed."""
        timed = [(share, True) for share in self.shares for _ in range(self.repeat)]
        return [(self.change, False)] * self.warm_up + timed


@dataclass(frozen=True)
class Sample:
    """One query, measured once in one way."""

    query: str
    method: str
    share: float
    cost: Cost | None = None
    rows: int = 0
    exact: bool | None = None
    problem: str = ""
    """Why there is no cost, or how the result differs."""
    details: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Outcome:
    """Everything that a run measured."""

    settings: Settings
    samples: tuple[Sample, ...]
    facts: dict[str, Any]


def run(settings: Settings, on_stage: OnStage | None = None, spark: Any = None) -> Outcome:
    """Measure. A Spark session that is handed in is used and left running."""
    with _folder(settings) as folder, ExitStack() as opened:
        engine = SparkEngine(folder, spark, settings.spark_master, REMEMBERED)
        opened.callback(engine.close)
        bench = _Bench(settings, folder, engine, opened, on_stage or (lambda *_: None))
        bench.prepare()
        for number, batch in enumerate(bench.stream.batches, 1):
            bench.play(number, batch)
        return Outcome(settings, tuple(bench.samples), bench.facts)


@contextmanager
def _folder(settings: Settings) -> Iterator[Path]:
    """Where the run works: beside the data, which takes as much room, or where it was told to."""
    if settings.work is not None:
        settings.work.mkdir(parents=True, exist_ok=True)
        if any(settings.work.iterdir()):
            raise UserError(
                f"Folder '{settings.work}' is not empty.",
                code="BAD_FOLDER",
                hint="Choose a new one with --work.",
            )
        yield settings.work.absolute()
        return
    data = settings.data or corpus.data_folder()
    data.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=data, prefix="bench-") as made:
        yield Path(made).absolute()


class _Bench:
    """One run: warehouses, baselines, and what they cost."""

    def __init__(
        self,
        settings: Settings,
        folder: Path,
        engine: SparkEngine,
        opened: ExitStack,
        on_stage: OnStage,
    ) -> None:
        self.settings = settings
        self.folder = folder
        self.samples: list[Sample] = []
        self.facts: dict[str, Any] = {"load_seconds": {}, "batches": []}
        self.stream = Stream({}, ())
        self._engine = engine
        self._opened = opened
        self._meter = Meter(engine)
        self._on_stage = on_stage
        self._stages_done = 0
        self._houses: dict[str, Any] = {}
        texts, rounds = len(settings.texts), len(settings.rounds)
        self._stages = 2 + len(PLACEMENTS) * (1 + texts) + rounds * (1 + texts)

    def prepare(self) -> None:
        """Data, Spark, the baselines, and a warehouse per placement with all views computed."""
        self._stage(f"TPC-H data at scale factor {self.settings.scale:g}")
        files = corpus.generate(KIND, self.settings.scale, self.settings.data)
        self.stream = make_stream(files, self.settings.rounds, self.settings.seed)
        first = self.stream.at_first(self.folder / "first")
        self._stage("starting Spark")
        self._baselines = self._make_baselines()
        for placement in PLACEMENTS:
            self._houses[placement] = self._make_house(placement, first)
        shutil.rmtree(self.folder / "first")
        self.facts |= {"versions": self._versions(), "memory_limit": _memory()}

    def _make_baselines(self) -> Baselines:
        """In a session of their own, so that the tables' names are theirs."""
        session = self._engine.session.newSession()
        local = LocalEngine(self.folder, _memory())
        self._opened.callback(local.close)
        apart = SparkEngine(self.folder, session)
        return Baselines(apart, local, self.folder / "answers")

    def _make_house(self, placement: str, files: dict[str, Path]) -> Any:
        self._stage(f"{placement}: loading")
        begun = time.perf_counter()
        db = slackwater.connect(
            self.folder / f"warehouse-{placement}",
            placement=placement,
            spark=self._engine.session,
            local_memory=_memory(),
        )
        self._opened.enter_context(db)
        for table, statement in corpus.ddl(KIND).items():
            db.sql(statement)
            db.ingest(table, files[table])
        if self.settings.keys:
            db.sql(corpus.keys(KIND))
        for name, text in self.settings.texts.items():
            self._stage(f"{placement}: first computation of {name}")
            db.sql(f"CREATE MATERIALIZED VIEW {name} AS {text}")
            db.refresh(name)
        self.facts["load_seconds"][placement] = time.perf_counter() - begun
        return db

    def play(self, number: int, batch: Batch) -> None:
        """One round: the change, then every query in every way."""
        self._stage(f"{self._round(number, batch)}: applying the change")
        self._apply(batch)
        current = self.stream.after(number, self.folder / f"current-{number}")
        self._baselines.read_from(current)
        if number > 1:
            shutil.rmtree(self.folder / f"current-{number - 1}")
        for name, text in self.settings.texts.items():
            self._stage(f"{self._round(number, batch)}: {name}")
            found = self._measure(name, text, batch.share)
            self.samples += found if batch.timed else []
            shutil.rmtree(self.folder / "answers")

    def _round(self, number: int, batch: Batch) -> str:
        kind = f"{batch.share:g} of the orders" if batch.timed else "warm-up"
        return f"round {number} of {len(self.stream.batches)} ({kind})"

    def _apply(self, batch: Batch) -> None:
        change = self.stream.change(batch)
        seconds = {}
        for placement, db in self._houses.items():
            begun = time.perf_counter()
            with db.transaction():
                for table, rows in change.items():
                    db.apply(table, rows, weight_column=WEIGHT_COLUMN)
            seconds[placement] = time.perf_counter() - begun
        self.facts["batches"].append(
            {
                "change": batch.share,
                "timed": batch.timed,
                "orders_inserted": len(batch.inserted),
                "orders_deleted": len(batch.deleted),
                "rows": {table: rows.num_rows for table, rows in change.items()},
                "apply_seconds": seconds,
            }
        )

    # -- one query

    def _measure(self, name: str, text: str, share: float) -> list[Sample]:
        answer, cost = self._meter.measure(lambda: self._baselines.on_spark(text))
        expected = self._baselines.expected(text, answer)
        anew = Sample(name, METHODS[0], share, cost, expected.num_rows, True)
        local = self._recompute_locally(name, text, share, expected)
        refreshed = [self._refresh(name, placement, share, expected) for placement in PLACEMENTS]
        return [anew, local, *refreshed]

    def _recompute_locally(self, name: str, text: str, share: float, expected: pa.Table) -> Sample:
        statement = self._baselines.statement(text)
        if not isinstance(statement, Statement):
            return Sample(name, METHODS[1], share, problem=f"runs on Spark only: {statement}")
        try:
            answer, cost = self._meter.measure(lambda: self._baselines.on_local(statement))
        except (NeedsSpark, SlackwaterError) as error:
            return Sample(name, METHODS[1], share, problem=str(error))
        details = {"prepare_seconds": statement.prepare_seconds}
        return _compared(name, METHODS[1], share, cost, rows_in(answer), expected, details)

    def _refresh(self, name: str, placement: str, share: float, expected: pa.Table) -> Sample:
        db = self._houses[placement]
        try:
            reports, cost = self._meter.measure(lambda: db.refresh(name))
            actual = db.sql(f"SELECT * FROM {name}").to_arrow()
        except SlackwaterError as error:
            return Sample(name, placement, share, exact=False, problem=str(error))
        report = reports[-1]
        details = {
            "mode": report.mode,
            "method": report.method,
            "reasons": list(report.reasons),
            "why": [why.line for why in report.whys],
            "engine": report.engine,
            "report_seconds": report.seconds,
            "planning_seconds": report.planning_seconds,
            "steps": [step.to_json() for step in report.steps],
            "state_bytes": _kept_bytes(db, name),
        }
        return _compared(name, placement, share, cost, actual, expected, details)

    def _stage(self, description: str) -> None:
        self._on_stage(description, self._stages_done, self._stages)
        self._stages_done += 1

    def _versions(self) -> dict[str, str]:
        import platform
        from importlib.metadata import version

        packages = ("slackwater", "pyspark", "duckdb", "pyarrow")
        return {"python": platform.python_version()} | {p: version(p) for p in packages}


def _kept_bytes(db: slackwater.Warehouse, name: str) -> int:
    """What the states of a view take."""
    snapshot = db.catalog.snapshot()
    view = snapshot.find(name)
    states = () if view is None else snapshot.states(view.id)
    return sum(s.bytes for state in states for s in snapshot.segments(state.id))


def _compared(
    query: str,
    method: str,
    share: float,
    cost: Cost,
    actual: pa.Table,
    expected: pa.Table,
    details: dict[str, Any],
) -> Sample:
    difference = compare(actual, expected)
    problem = "" if difference.equal else str(difference)
    rows = actual.num_rows
    return Sample(query, method, share, cost, rows, difference.equal, problem, details)


def _memory() -> str:
    """What each local engine may take: three of them and Spark fit the machine."""
    total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return f"{total // 5 // 2**20}MiB"
