"""What is known before anything is measured: prices and profiles, from runs before (000, 3.4.2).

In a warehouse of its own the queries are views, and the rows come in a few batches. What their
refreshes took gives the prices; the content gives the profiles.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import slackwater
from bench.arrivals import Arrivals, even, load
from slackwater.engine.meter import cpu_seconds
from slackwater.stats.cost import Model
from slackwater.stats.profile import Profile, Profiles
from slackwater.work.experience import Experience
from slackwater.work.meaning import as_written
from slackwater.work.reports import RefreshReport
from slackwater.work.world import World

BATCHES = 5


@dataclass(frozen=True)
class Opening:
    """How warehouses are opened."""

    engine: str
    folder: Path
    spark: Any = None
    spark_master: str = "local[*]"

    @contextmanager
    def opened(self, **more: Any) -> Iterator[slackwater.Warehouse]:
        """A new warehouse, which is gone afterwards. Nothing is done beside the work, unless it is
        said otherwise."""
        options: dict[str, Any] = {"spark": self.spark, "spark_master": self.spark_master}
        options |= {"compact": False, **more}
        self.folder.mkdir(parents=True, exist_ok=True)
        with (
            tempfile.TemporaryDirectory(dir=self.folder, prefix="bench-") as path,
            slackwater.connect(Path(path) / "w", placement=self.engine, **options) as db,
        ):
            yield db


@dataclass(frozen=True)
class Learned:
    """What warming up has told."""

    experience: Experience
    model: Model
    profiles: Mapping[str, Profile]  # by the names of tables
    run: Mapping[str, float]  # seconds of a run besides its steps

    def known(self, db: slackwater.Warehouse) -> Profiles:
        """The profiles, in another warehouse."""
        tables = db.catalog.snapshot().tables()
        return Profiles({t.id: self.profiles[t.name] for t in tables if t.name in self.profiles})

    def teach(self, db: slackwater.Warehouse) -> None:
        """Let another warehouse know it."""
        house = db._house
        house.experience = self.experience
        house.profiling.known()
        for id, profile in self.known(db).known.items():
            house.profiling._keep(id, profile)


class Timer:
    """Wall clock and CPU of this process and of Spark's."""

    def __init__(self, db: slackwater.Warehouse) -> None:
        self._spark = db._house.runner.spark
        self._begun, self._cpu = time.perf_counter(), self._cpu_now()

    def _cpu_now(self) -> float:
        return time.process_time() + cpu_seconds(self._spark.process_id)

    def read(self) -> tuple[float, float]:
        """Seconds and CPU seconds since it was made."""
        return time.perf_counter() - self._begun, self._cpu_now() - self._cpu


def warm(opening: Opening, files: dict[str, Path], texts: Mapping[str, str]) -> Learned:
    """Refresh all queries a few times, while all rows come."""
    with opening.opened() as db:
        tables = tuple(files)
        load(db, files, tables)
        for name, text in texts.items():
            db.sql(f"CREATE MATERIALIZED VIEW {name} AS {text}")
        besides = []
        for batch in Arrivals(files, tables, even(BATCHES)).batches():
            append(db, batch)
            for name in texts:
                timer = Timer(db)
                reports = db.refresh(name)
                besides.append(_besides(reports, *timer.read()))
        return _learned(db, besides)


def append(db: slackwater.Warehouse, batch: Mapping[str, Any]) -> None:
    """A batch, as one version of all its tables."""
    with db.transaction():
        for table, rows in batch.items():
            db.append(table, rows)


def _besides(reports: Sequence[RefreshReport], wall: float, cpu: float) -> tuple[float, float]:
    steps = [step for report in reports for step in report.steps]
    return wall - sum(s.seconds for s in steps), cpu - sum(s.cpu_seconds for s in steps)


def _learned(db: slackwater.Warehouse, besides: Sequence[tuple[float, float]]) -> Learned:
    house = db._house
    world = World(house, house.catalog.snapshot(), defining=True)
    for view in world.snapshot.views():
        house.profiling.look(world, as_written(world, view)[0])
    known = house.profiling.known().known
    profiles = {t.name: known[t.id] for t in world.snapshot.tables() if t.id in known}
    house.experience._fit(house.experience._measured or [])
    run = {
        "latency": max(0.0, median(wall for wall, _ in besides)),
        "cpu": max(0.0, median(cpu for _, cpu in besides)),
    }
    return Learned(house.experience, house.experience.of("").model, profiles, run)
