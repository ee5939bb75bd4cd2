"""One warehouse under a stream of changes, its views refreshed in several ways beside each other.

Each way has its own connection to the warehouse and its own view of each query. After every batch
all of them are refreshed, one after the other, the first of them another one each time, and hold
the same rows as the one that is computed anew.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import slackwater
from bench import corpus
from bench.row_changes import RowBatch, RowStream, make_row_stream
from bench.streams import apply, load
from bench.warming import Timer
from slackwater.catalog.model import View
from slackwater.engine.compare import compare
from slackwater.stats.rows import Change
from slackwater.tvr.methods.divided import Injected

KIND = "tpch"
CHANGING = ("supplier", "customer", "part", "partsupp", "orders", "lineitem")
"""All but region and nation."""
ANEW = "recompute"
Stage = Callable[[str], None]
Sizes = Mapping[str, Change]
"""By table, the rows that come and go."""


@dataclass(frozen=True)
class Way:
    """How the views of a trial are kept: with a budget, or computed anew without one."""

    name: str
    budget: str = ""
    everything: bool = False
    """Is every state kept that there is, whether it pays or not?"""
    injected: Injected = Injected.ALL
    """Which parts of joins may be kept."""
    predicts: Callable[[Sizes], Sizes] = field(default=dict, compare=False)
    """What is expected where so much will come."""

    @property
    def options(self) -> str:
        """Of its views."""
        if not self.budget:
            return "refresh = 'full'"
        mode = "incremental" if self.everything else "auto"
        return f"refresh = '{mode}', state_budget = '{self.budget}'"


@dataclass(frozen=True)
class Sample:
    """One refresh."""

    query: str
    way: str
    batch: int  # 0: the first computation
    seconds: float
    cpu_seconds: float
    state_bytes: int
    mode: str
    kept: tuple[str, ...]
    exact: bool
    label: str = ""

    def to_json(self) -> dict[str, Any]:
        """As plain data."""
        return asdict(self)


@dataclass
class Told:
    """Expects what it was told."""

    db: slackwater.Warehouse
    sizes: Sizes = field(default_factory=dict)

    def expected_changes(self, view: View) -> Mapping[str, Change]:
        """By source."""
        snapshot = self.db._house.catalog.snapshot()
        names = {id: snapshot.get(id).name for id in view.depends}
        return {id: self.sizes.get(name, Change()) for id, name in names.items()}


@dataclass
class Trial:
    """Queries in several ways under a stream."""

    folder: Path
    stream: RowStream
    queries: Sequence[str]
    ways: Sequence[Way]
    stage: Stage
    label: str = ""
    engine: str = "local"
    spark_master: str = "local[*]"
    samples: list[Sample] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    _houses: dict[str, tuple[slackwater.Warehouse, Told]] = field(default_factory=dict)

    def run(self) -> Trial:
        """Load, compute the views, play the batches."""
        with ExitStack() as opened:
            self._open(opened)
            for number in range(len(self.stream.batches) + 1):
                if number:
                    apply(self._changing, self._changes(number))
                coming = self._sizes(min(number + 1, len(self.stream.batches)))
                for query in self.queries:
                    self.stage(f"{self.label} {query}, batch {number}")
                    self._refresh(query, number, coming)
        return self

    def _open(self, opened: ExitStack) -> None:
        texts = corpus.queries(KIND)
        self._changing = opened.enter_context(self._connect())
        load(self._changing, KIND, self.stream.at_first(self.folder / "first"))
        for way in self.ways:
            db = opened.enter_context(self._connect())
            told = Told(db)
            keeper = db._house.keeper
            keeper.arrivals = told
            keeper.everything, keeper.injected = way.everything, way.injected
            self._houses[way.name] = (db, told)
            for query in self.queries:
                name = _name(query, way)
                db.sql(f"CREATE MATERIALIZED VIEW {name} WITH ({way.options}) AS {texts[query]}")

    def _connect(self) -> slackwater.Warehouse:
        return slackwater.connect(
            self.folder / "warehouse",
            placement=self.engine,
            spark_master=self.spark_master,
            compact=False,
        )

    def _changes(self, number: int) -> dict[str, Any]:
        found = self.stream.change(self.stream.batches[number - 1])
        return {table: rows for table, rows in found.items() if rows.num_rows}

    def _sizes(self, number: int) -> Sizes:
        batch = self.stream.batches[number - 1]
        return {
            table: Change(inserts=len(batch.inserted[table]), deletes=len(batch.deleted[table]))
            for table in batch.inserted
        }

    def _refresh(self, query: str, number: int, coming: Sizes) -> None:
        first = number % len(self.ways)
        measured = [
            self._measured(query, way, number, coming)
            for way in (*self.ways[first:], *self.ways[:first])
        ]
        expected = self._rows(query, next(w for w in self.ways if not w.budget))
        for way, sample in measured:
            difference = compare(self._rows(query, way), expected)
            self.samples.append(Sample(**(sample | {"exact": difference.equal})))
            if not difference.equal:
                self.problems.append(f"{query}, {way.name}, batch {number}: {difference}")

    def _measured(
        self, query: str, way: Way, number: int, coming: Sizes
    ) -> tuple[Way, dict[str, Any]]:
        db, told = self._houses[way.name]
        told.sizes = way.predicts(coming)
        timer = Timer(db)
        (report,) = db.refresh(_name(query, way))
        seconds, cpu = timer.read()
        states = report.states or {}
        return way, {
            "query": query,
            "way": way.name,
            "batch": number,
            "seconds": seconds,
            "cpu_seconds": cpu,
            "state_bytes": states.get("bytes", 0),
            "mode": report.mode,
            "kept": tuple(states.get("kept", ())),
            "label": self.label,
        }

    def _rows(self, query: str, way: Way) -> Any:
        return self._changing.sql(f"SELECT * FROM {_name(query, way)}").to_arrow()


def _name(query: str, way: Way) -> str:
    return f"{query}_{re.sub('[^a-z0-9]', '_', way.name)}"


# -- streams


def arriving(
    scale: float, shares: Sequence[float], seed: int, data: Path | None, going: float = 0.0
) -> RowStream:
    """Shares of the rows of all tables that change, one batch after the other."""
    files = corpus.generate(KIND, scale, data)
    return make_row_stream(files, CHANGING, shares, seed, going)


def only(stream: RowStream, tables: Sequence[str]) -> RowStream:
    """The same where some tables alone change; all rows of the others are there at first."""
    none = np.empty(0, np.int64)

    def kept(rows: Mapping[str, Any]) -> dict[str, Any]:
        return {t: ids if t in tables else none for t, ids in rows.items()}

    batches = (RowBatch(b.share, kept(b.inserted), kept(b.deleted)) for b in stream.batches)
    return RowStream(stream.files, tuple(batches))


def cleaned(
    scale: float, share: float, tables: Sequence[str], batches: int, seed: int, data: Path | None
) -> Iterator[tuple[str, RowBatch]]:
    """A share of the rows of some tables, one table after the other, in so many batches each."""
    files = corpus.generate(KIND, scale, data)
    (whole,) = make_row_stream(files, tables, (share,), seed, 0.0).batches
    none = dict.fromkeys(CHANGING, np.empty(0, np.int64))
    for table in tables:
        for rows in np.array_split(whole.inserted[table], batches):
            yield table, RowBatch(share / batches, none | {table: rows}, none)
