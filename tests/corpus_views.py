"""The queries of a corpus as maintained views, one warehouse per placement, under one stream.

After every batch each view is compared with Spark's own answer to the query's text over the
tables' content, which is asked for once and serves every placement.
"""

from __future__ import annotations

import shutil
import tomllib
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

import slackwater
from bench import corpus
from slackwater import Warehouse
from slackwater.engine.compare import compare
from slackwater.work import one_run
from slackwater.work.reports import RefreshReport
from tests.corpus import SCALE, new_session, reference
from tests.corpus_stream import WEIGHT_COLUMN, Stream
from tests.incremental import MeasuredUpkeep, Reading
from tests.streams import reads

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MODES = Path(__file__).with_name("maintenance_modes.toml")
INCREMENTAL = "incremental"
SHARE = 0.01
LEAST_ROWS = (3, 0, 3)
"""The least rows of a table that change in each batch: 3 reach the tables of a few rows, too;
without a least, every table changes by its share alone, which the modes are measured at."""
MEASURED = 1
MEMORY = "2GiB"


@dataclass
class Outcome:
    """What a stream showed of each view."""

    problems: dict[tuple[str, str], list[str]] = field(default_factory=dict)
    """By placement and query: how it differed, and after which batch."""
    modes: dict[str, str] = field(default_factory=dict)
    """By query: incremental, or full and why."""
    readings: dict[str, list[Reading]] = field(default_factory=dict)


@cache
def expected_modes(kind: str) -> dict[str, str]:
    """The mode of each query as it is written down."""
    found = tomllib.loads(MODES.read_text())[kind]
    return {name: str(mode) for name, mode in found.items()}


def play(
    kind: str, names: Mapping[str, Sequence[str]], batches: int, spark: SparkSession, folder: Path
) -> Outcome:
    """Play a stream on the queries named for each placement."""
    stream = Stream(kind, SCALE, kind)
    outcome = Outcome()
    asked = sorted({n for own in names.values() for n in own})
    with ExitStack() as opened, ThreadPoolExecutor() as pool:  # Spark and the driver side by side
        houses = {
            placement: _House(kind, placement, own, spark, folder, opened)
            for placement, own in names.items()
            if own
        }
        list(pool.map(lambda house: house.fill(stream), houses.values()))
        for number, least in enumerate(LEAST_ROWS[:batches]):
            change = stream.batch(SHARE, least)
            content = folder / f"content-{number}"
            answers = pool.submit(_answers, kind, asked, stream, spark, content)
            found = _followed(houses, change, number == MEASURED, outcome, pool)
            for (placement, name), rows in found.items():
                difference = compare(rows, answers.result()[name])
                if not difference.equal:
                    problem = f"after batch {number + 1}: {difference}"
                    outcome.problems.setdefault((placement, name), []).append(problem)
    return outcome


def _followed(
    houses: Mapping[str, _House],
    change: Mapping[str, pa.Table],
    measured: bool,
    outcome: Outcome,
    pool: ThreadPoolExecutor,
) -> dict[tuple[str, str], pa.Table]:
    """The views of all placements after a batch. Where reading is measured, the local ones come
    first, alone."""
    if measured and "local" in houses:
        houses["local"].apply(change)
        reports = _measured(houses["local"].refresher)
        outcome.readings = dict(MeasuredUpkeep.readings)
        outcome.modes = {r.view: mode_of(r) for r in reports}
    rest = [h for placement, h in houses.items() if not (measured and placement == "local")]
    list(pool.map(lambda house: house.follow(change), rest))
    return {
        (placement, name): house.refresher.sql(f"SELECT * FROM {name}").to_arrow()
        for placement, house in houses.items()
        for name in house.queries
    }


def mode_of(report: RefreshReport) -> str:
    """Incremental by the definition, or full with the reasons of all that is beyond it."""
    if report.mode == "full":
        return f"full: {', '.join(report.reasons)}"
    beyond = [r for r in MeasuredUpkeep.readings.get(report.view, []) if not r.is_incremental]
    reasons = sorted({r.reason for r in beyond})
    return f"full: {', '.join(reasons)}" if reasons else INCREMENTAL


class _House:
    """A warehouse with the tables that its views read. What changes tables runs on the driver:
    it is the refreshes that are looked at."""

    def __init__(
        self,
        kind: str,
        placement: str,
        names: Sequence[str],
        spark: SparkSession,
        folder: Path,
        opened: ExitStack,
    ) -> None:
        path = folder / f"warehouse-{placement}"
        settings = {"spark": spark, "local_memory": MEMORY, "refresh": "incremental"}
        self.changer = opened.enter_context(slackwater.connect(path, placement="local", **settings))
        self.refresher = opened.enter_context(
            slackwater.connect(path, placement=placement, **settings)
        )
        self.queries = {name: corpus.queries(kind)[name] for name in names}
        self.ddl = corpus.ddl(kind)
        self.tables = set(self.ddl) & set().union(*(reads(q) for q in self.queries.values()))

    def fill(self, stream: Stream) -> None:
        """The tables as they are at first, and the views computed."""
        for table in self.tables:
            self.changer.sql(self.ddl[table])
            self.changer.append(table, stream.tables[table].rows)
        for name, query in self.queries.items():
            self.refresher.sql(f"CREATE MATERIALIZED VIEW {name} AS {query}")
        self.refresher.refresh()

    def apply(self, change: Mapping[str, pa.Table]) -> None:
        """A batch, in one version."""
        with self.changer.transaction():
            for table in self.tables & set(change):
                self.changer.apply(table, change[table], weight_column=WEIGHT_COLUMN)

    def follow(self, change: Mapping[str, pa.Table]) -> None:
        """A batch, and all views after it."""
        self.apply(change)
        self.refresher.refresh()


def _measured(db: Warehouse) -> list[RefreshReport]:
    """A refresh that tells what it reads."""
    MeasuredUpkeep.readings.clear()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(one_run, "Upkeep", MeasuredUpkeep)
        return db.refresh()


def _answers(
    kind: str, names: Sequence[str], stream: Stream, spark: SparkSession, folder: Path
) -> dict[str, pa.Table]:
    """Spark's own answers over the content as it is now."""
    session = new_session(spark)
    for table, path in stream.write(folder).items():
        session.read.parquet(str(path)).createOrReplaceTempView(table)
    texts = corpus.queries(kind)
    answers = {name: reference(session, texts[name]) for name in names}
    for table in stream.tables:
        session.catalog.dropTempView(table)
    shutil.rmtree(folder)
    return answers
