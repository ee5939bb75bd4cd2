"""Set a demo warehouse up and play a stream of changes on it, refreshing after each."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from slackwater.demo.data import TABLES
from slackwater.demo.stream import WEIGHT_COLUMN, Batch, Stream
from slackwater.demo.views import VIEWS

if TYPE_CHECKING:
    from slackwater import Warehouse


@dataclass(frozen=True)
class Refreshed:
    """What one batch did: how long it took to come in, and the refresh of every view."""

    batch: Batch
    apply_seconds: float
    reports: tuple[Any, ...]  # one `RefreshReport` per view


@dataclass
class Tally:
    """What a pass has measured so far, per view."""

    refreshes: dict[str, list[Any]] = field(default_factory=lambda: {v: [] for v in VIEWS})
    recompute_seconds: dict[str, float] = field(default_factory=dict)

    def add(self, reports: tuple[Any, ...], initial: bool = False) -> None:
        """Count refreshes. One in full is a measured recompute; so is the first of all."""
        for report in reports:
            if report.view not in self.refreshes:
                continue
            if not initial:
                self.refreshes[report.view].append(report)
            if report.mode == "full":
                self.recompute_seconds[report.view] = report.seconds

    def mean_seconds(self, view: str) -> float:
        """The mean time of a refresh after a batch."""
        reports = self.refreshes[view]
        return sum(r.seconds for r in reports) / len(reports) if reports else 0.0

    def modes(self, view: str) -> list[str]:
        """The ways in which the view was refreshed, each once."""
        return list(dict.fromkeys(str(r.mode) for r in self.refreshes[view]))

    def engines(self, view: str) -> list[str]:
        """The engines that refreshed the view, each once."""
        return list(dict.fromkeys(str(r.engine) for r in self.refreshes[view]))


def create_tables(db: Warehouse) -> None:
    """The TPC-H tables that the views read, empty."""
    for name, columns in TABLES.items():
        db.sql(f"CREATE TABLE {name} ({columns})")


def load_tables(db: Warehouse, folder: Path, stream: Stream) -> Iterator[tuple[str, int, float]]:
    """Fill the tables one by one; name, rows and seconds of each."""
    for name in TABLES:
        begun = time.perf_counter()
        rows = _load_table(db, name, folder, stream)
        yield name, rows, time.perf_counter() - begun


def _load_table(db: Warehouse, name: str, folder: Path, stream: Stream) -> int:
    """Tables that change lack the rows held back; the others are taken from their file."""
    if name in ("orders", "lineitem"):
        rows = getattr(stream, name)
        db.append(name, rows)
        return int(rows.num_rows)
    db.ingest(name, folder / f"{name}.parquet", format="parquet")
    return int(db.sql(f"SELECT COUNT(*) FROM {name}").fetchall()[0][0])


def create_views(db: Warehouse) -> None:
    """The six views, not yet computed."""
    for name, query in VIEWS.items():
        db.sql(f"CREATE MATERIALIZED VIEW {name} AS {query}")


def play(db: Warehouse, batches: tuple[Batch, ...]) -> Iterator[Refreshed]:
    """Apply each batch in one version, and refresh every view after it."""
    for batch in batches:
        begun = time.perf_counter()
        apply(db, batch)
        applied = time.perf_counter() - begun
        yield Refreshed(batch, applied, tuple(db.refresh(*VIEWS)))


def apply(db: Warehouse, batch: Batch) -> None:
    """Both tables change together, or neither does."""
    with db.transaction():
        for table, change in batch.changes.items():
            db.apply(table, change, weight_column=WEIGHT_COLUMN)
