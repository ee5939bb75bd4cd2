"""`slackwater bench preaggregation`: what it brings to sum a change up before it is joined.

One warehouse holds TPC-H and, for each query, a view per engine and mode: never summed up first
(`off`), wherever it can be (`on`), and where the change itself says that it shrinks (`auto`). A
round applies a batch of changes and refreshes all of them, one after the other, the first of them
another one in each round. Views of one query must hold the same rows after every round, and in
the end what their query gives.
"""

from __future__ import annotations

import os
import platform
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

import slackwater
from bench import corpus
from bench.changes import WEIGHT_COLUMN, Batch, Stream, make_stream
from bench.refresh import OnStage
from slackwater.engine.compare import compare
from slackwater.engine.meter import cpu_seconds
from slackwater.engine.spark import SparkEngine
from slackwater.errors import UserError
from slackwater.tvr.preaggregate import MODES

KIND = "tpch"
ENGINES = ("local", "spark")
SIZES = (10, 100, 1_000, 10_000, 100_000)
LINES_PER_ORDER = 4
"""On average; a batch is made of whole orders."""
SUMMED_FIRST = "merge_preaggregated_sums"
SETTLE_SECONDS = 0.3

VIEWS = {
    # a supplier has many lines
    "supplier_nation": """
SELECT n_name, SUM(l_extendedprice * (1 - l_discount)) AS revenue, COUNT(*) AS line_count
FROM lineitem JOIN supplier ON s_suppkey = l_suppkey JOIN nation ON n_nationkey = s_nationkey
GROUP BY n_name""",
    # and each of them meets the 16 parts of a manufacturer that the supplier offers
    "offered_brand": """
SELECT p_brand, SUM(l_quantity) AS quantity
FROM lineitem JOIN partsupp ON ps_suppkey = l_suppkey JOIN part ON p_partkey = ps_partkey
WHERE p_mfgr = 'Manufacturer#1'
GROUP BY p_brand""",
    # an order has few lines
    "q3": """
SELECT l_orderkey, o_orderdate, o_shippriority, SUM(l_extendedprice * (1 - l_discount)) AS revenue
FROM customer JOIN orders ON c_custkey = o_custkey JOIN lineitem ON l_orderkey = o_orderkey
WHERE c_mktsegment = 'BUILDING' AND o_orderdate < DATE '1995-03-15'
  AND l_shipdate > DATE '1995-03-15'
GROUP BY l_orderkey, o_orderdate, o_shippriority""",
    "q5": """
SELECT n_name, SUM(l_extendedprice * (1 - l_discount)) AS revenue
FROM customer JOIN orders ON c_custkey = o_custkey JOIN lineitem ON l_orderkey = o_orderkey
JOIN supplier ON l_suppkey = s_suppkey AND c_nationkey = s_nationkey
JOIN nation ON s_nationkey = n_nationkey JOIN region ON n_regionkey = r_regionkey
WHERE r_name = 'ASIA' AND o_orderdate >= DATE '1994-01-01' AND o_orderdate < DATE '1995-01-01'
GROUP BY n_name""",
}


@dataclass(frozen=True)
class Settings:
    """What to measure."""

    scale: float = 1.0
    sizes: tuple[int, ...] = SIZES
    """Changed lines per batch: half of them come, half of them go."""
    engines: tuple[str, ...] = ("local",)
    views: tuple[str, ...] = tuple(VIEWS)
    repeat: int = 3
    seed: int = 7
    data: Path | None = None
    """Where generated data is kept."""
    spark_master: str = "local[*]"

    def __post_init__(self) -> None:
        _require_known("engine", self.engines, ENGINES)
        _require_known("view", self.views, tuple(VIEWS))
        if self.repeat < 1 or not self.sizes or min(self.sizes) < 1:
            raise UserError(
                "A batch has at least one line, and there is at least one round.",
                code="BAD_OPTION",
                hint="For example: --rows 10,1000 --repeat 3",
            )


def _require_known(what: str, names: tuple[str, ...], known: tuple[str, ...]) -> None:
    for name in names:
        if name not in known:
            raise UserError(
                f"There is no {what} '{name}'.",
                code="BAD_OPTION",
                hint=f"Choose from {', '.join(known)}.",
            )


@dataclass(frozen=True)
class Sample:
    """One refresh."""

    engine: str
    view: str
    size: int
    lines: int
    mode: str
    seconds: float
    cpu_seconds: float
    summed_first: bool


def run(settings: Settings, on_stage: OnStage | None = None, spark: Any = None) -> dict[str, Any]:
    """Measure; everything that was measured, as plain data."""
    with ExitStack() as opened:
        data = settings.data or corpus.data_folder()
        data.mkdir(parents=True, exist_ok=True)
        folder = opened.enter_context(tempfile.TemporaryDirectory(dir=data, prefix="bench-"))
        engine = SparkEngine(Path(folder), spark, settings.spark_master)
        opened.callback(engine.close)
        bench = _Bench(settings, Path(folder), engine, opened, on_stage or (lambda *_: None))
        bench.prepare()
        for batch, size in zip(bench.stream.batches, _sizes(settings), strict=True):
            bench.play(batch, size)
        bench.verify()
        return report(settings, bench.samples, bench.wrong)


def _sizes(settings: Settings) -> list[int]:
    """The size of each round; those of the first are not measured."""
    return [max(settings.sizes), *(s for s in settings.sizes for _ in range(settings.repeat))]


class _Bench:
    """One run."""

    def __init__(
        self,
        settings: Settings,
        folder: Path,
        engine: SparkEngine,
        opened: ExitStack,
        on_stage: OnStage,
    ) -> None:
        self.settings = settings
        self.samples: list[Sample] = []
        self.wrong: list[str] = []
        self.stream = Stream({}, ())
        self._folder = folder
        self._engine = engine
        self._opened = opened
        self._on_stage = on_stage
        self._rounds = 0
        self._stages_done = 0
        views = len(settings.views) * len(settings.engines)
        self._stages = 1 + views + len(_sizes(settings)) * (1 + views) + views
        self._houses: dict[tuple[str, str], slackwater.Warehouse] = {}

    def prepare(self) -> None:
        """The tables, and a view per query, engine and mode."""
        self._stage(f"loading TPC-H at scale factor {self.settings.scale:g}")
        files = corpus.generate(KIND, self.settings.scale, self.settings.data)
        rows = [size / LINES_PER_ORDER for size in _sizes(self.settings)]
        orders = self.settings.scale * 1_500_000
        shares = [(r / orders, True) for r in rows]
        self.stream = make_stream(files, shares, self.settings.seed)
        self._changing = self._opened.enter_context(self._connect(placement="local"))
        for table, path in self.stream.at_first(self._folder / "first").items():
            self._changing.sql(corpus.ddl(KIND)[table])
            self._changing.ingest(table, path)
        for engine in self.settings.engines:
            for mode in MODES:
                session = self._engine.session if engine == "spark" else None
                house = self._connect(placement=engine, spark=session, preaggregation=mode)
                self._houses[engine, mode] = self._opened.enter_context(house)
            for view in self.settings.views:
                self._stage(f"first computation of {view}, {engine}")
                for mode in MODES:
                    name = _name(view, engine, mode)
                    self._changing.sql(f"CREATE MATERIALIZED VIEW {name} AS {VIEWS[view]}")
                    self._houses[engine, mode].refresh(name)

    def _connect(self, **settings: Any) -> slackwater.Warehouse:
        """Nothing is merged beside the work, and all local engines together fit the machine."""
        total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        memory = f"{total // 8 // 2**20}MiB"
        return slackwater.connect(
            self._folder / "warehouse",
            compact=False,
            local_memory=memory,
            refresh="incremental",
            **settings,
        )

    def play(self, batch: Batch, size: int) -> None:
        """One round."""
        self._stage(f"round {self._rounds}: applying a change of {size:,} lines")
        change = self.stream.change(batch)
        with self._changing.transaction():
            for table, rows in change.items():
                self._changing.apply(table, rows, weight_column=WEIGHT_COLUMN)
        for engine in self.settings.engines:
            for view in self.settings.views:
                self._stage(f"round {self._rounds}: {view}, {engine}, {size:,} lines")
                found = self._measure(engine, view, size, change["lineitem"].num_rows)
                self.samples += found if self._rounds else []
        self._rounds += 1

    def _measure(self, engine: str, view: str, size: int, lines: int) -> list[Sample]:
        first = self._rounds % len(MODES)
        found = []
        for mode in (*MODES[first:], *MODES[:first]):
            name = _name(view, engine, mode)
            with _clock(self._engine.process_id if engine == "spark" else None) as cost:
                (told,) = self._houses[engine, mode].refresh(name)
            summed_first = any(o["law"] == SUMMED_FIRST for o in told.operators)
            found.append(Sample(engine, view, size, lines, mode, *cost(), summed_first))
        self._require_equal(engine, view)
        return found

    def _require_equal(self, engine: str, view: str) -> None:
        first, *others = (
            self._changing.sql(f"SELECT * FROM {_name(view, engine, mode)}").to_arrow()
            for mode in MODES
        )
        for mode, other in zip(MODES[1:], others, strict=True):
            if difference := compare(other, first):
                self.wrong.append(f"{view}, {engine}, {mode}: {difference}")

    def verify(self) -> None:
        """The views are what their queries give."""
        for engine in self.settings.engines:
            for view in self.settings.views:
                self._stage(f"comparing {view}, {engine}, with its query")
                found = self._houses[engine, MODES[0]].verify(_name(view, engine, MODES[0]))
                if not found.equal:
                    self.wrong.append(f"{view}, {engine}: {found}")

    def _stage(self, description: str) -> None:
        self._on_stage(description, self._stages_done, self._stages)
        self._stages_done += 1


def _name(view: str, engine: str, mode: str) -> str:
    return f"{view}_{engine}_{mode}"


@contextmanager
def _clock(process_id: int | None) -> Iterator[Callable[[], tuple[float, float]]]:
    """Seconds, and seconds of CPU of this process and another, once all is at rest."""
    time.sleep(SETTLE_SECONDS)
    spent: list[float] = []
    cpu, begun = time.process_time() + cpu_seconds(process_id), time.perf_counter()
    yield lambda: (spent[0], spent[1])
    spent.append(time.perf_counter() - begun)
    spent.append(time.process_time() + cpu_seconds(process_id) - cpu)


# -- figures


def report(settings: Settings, samples: list[Sample], wrong: list[str]) -> dict[str, Any]:
    """Medians per engine, view and size, and how `on` and `auto` compare with `off`."""
    lines = []
    for engine in settings.engines:
        for view in settings.views:
            for size in settings.sizes:
                own = [s for s in samples if (s.engine, s.view, s.size) == (engine, view, size)]
                lines.append({"engine": engine, "view": view, "size": size} | _line(own))
    return {
        "lines": lines,
        "exact": not wrong,
        "problems": wrong,
        "samples": [asdict(s) for s in samples],
        "settings": {
            "sf": settings.scale,
            "repeat": settings.repeat,
            "seed": settings.seed,
            "cores": os.cpu_count(),
            "machine": platform.platform(),
            "python": platform.python_version(),
        },
    }


def _line(samples: list[Sample]) -> dict[str, Any]:
    told: dict[str, Any] = {"lines": round(median(s.lines for s in samples))}
    for mode in MODES:
        own = [s for s in samples if s.mode == mode]
        told[mode] = {
            "seconds": median(s.seconds for s in own),
            "cpu_seconds": median(s.cpu_seconds for s in own),
            "summed_first": sum(s.summed_first for s in own) / len(own),
        }
    for mode in ("on", "auto"):
        told[mode] |= {
            "latency_ratio": told["off"]["seconds"] / told[mode]["seconds"],
            "cpu_ratio": told["off"]["cpu_seconds"] / told[mode]["cpu_seconds"],
        }
    return told
