"""The change mix on TPC-H: new orders with their lines, and existing orders that go with theirs.

It follows TPC-H's refresh functions RF1 and RF2. Of the orders that a batch touches half are new
and half go, unless it is said otherwise. New orders are generated ones that were held back from
the first load. Keys are drawn at random over the whole table, not as one range, so that a change
touches every part of it. An order that came with a batch is not deleted by a later one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from slackwater.errors import UserError

KEYS = {"orders": "o_orderkey", "lineitem": "l_orderkey"}
"""The tables that change, and the column that names the order."""
WEIGHT_COLUMN = "weight"
MOST = 0.9
"""The share of all orders that the batches of a run may touch together."""

Ids = np.ndarray[Any, np.dtype[np.int64]]


@dataclass(frozen=True)
class Batch:
    """The orders that come and those that go."""

    share: float
    timed: bool
    inserted: Ids
    deleted: Ids


@dataclass(frozen=True)
class Stream:
    """Generated files and the batches of changes that are played on them."""

    files: dict[str, Path]
    batches: tuple[Batch, ...]

    def at_first(self, folder: Path) -> dict[str, Path]:
        """The files to load: without the orders that are held back."""
        return self._without(self._held(0), folder)

    def after(self, number: int, folder: Path) -> dict[str, Path]:
        """Plain files, one per table, of the content after so many batches."""
        gone = [batch.deleted for batch in self.batches[:number]]
        return self._without(np.concatenate([self._held(number), *gone]), folder)

    def change(self, batch: Batch) -> dict[str, pa.Table]:
        """The rows of a batch with their weights, per table."""
        return {table: self._change(table, batch) for table in KEYS}

    def _held(self, number: int) -> Ids:
        """Orders that so many batches have not brought yet."""
        return _joined([batch.inserted for batch in self.batches[number:]])

    def _without(self, orders: Ids, folder: Path) -> dict[str, Path]:
        folder.mkdir(parents=True)
        changed = {table: folder / f"{table}.parquet" for table in KEYS}
        for table, path in changed.items():
            with _connected(left_out=orders) as con:
                con.execute(
                    f"COPY (SELECT t.* FROM '{self.files[table]}' AS t ANTI JOIN left_out AS o"
                    f" ON t.{KEYS[table]} = o.id) TO '{path}' (FORMAT parquet, COMPRESSION snappy)"
                )
        return self.files | changed

    def _change(self, table: str, batch: Batch) -> pa.Table:
        parts = [
            f"SELECT t.*, {weight}::BIGINT AS {WEIGHT_COLUMN} FROM '{self.files[table]}' AS t"
            f" SEMI JOIN {orders} AS o ON t.{KEYS[table]} = o.id"
            for orders, weight in (("deleted", -1), ("inserted", 1))
        ]
        with _connected(inserted=batch.inserted, deleted=batch.deleted) as con:
            return con.execute(" UNION ALL ".join(parts)).to_arrow_table()


def make_stream(
    files: dict[str, Path], shares: Sequence[tuple[float, bool]], seed: int, going: float = 0.5
) -> Stream:
    """A batch per share of the orders, timed or not, of which a part goes and the rest comes; the
    same for the same seed."""
    keys = pq.read_table(files["orders"], columns=["o_orderkey"])["o_orderkey"].to_numpy()
    sizes = [_sizes(share, len(keys), going) for share, _ in shares]
    if sum(map(sum, sizes)) > MOST * len(keys):
        raise UserError(
            f"The batches would touch more than {MOST:.0%} of the {len(keys):,} orders.",
            code="BAD_CHANGE",
            hint="Give a smaller --change, or fewer rounds with --repeat and --warm-up.",
        )
    drawn = iter(np.random.default_rng(seed).permutation(keys))
    batches = [
        Batch(share, timed, _take(drawn, new), _take(drawn, gone))
        for (share, timed), (new, gone) in zip(shares, sizes, strict=True)
    ]
    return Stream(files, tuple(batches))


def _sizes(share: float, orders: int, going: float) -> tuple[int, int]:
    """How many orders come, and how many go: at least one each, unless none goes."""
    touched = max(2, round(share * orders))
    if not going:
        return touched, 0
    coming = min(touched - 1, max(1, int(touched * (1 - going))))
    return coming, touched - coming


def _take(drawn: Any, count: int) -> Ids:
    return np.fromiter(drawn, np.int64, count)


def _joined(parts: Sequence[Ids]) -> Ids:
    return np.concatenate(parts) if parts else np.empty(0, np.int64)


def _connected(**keys: Ids) -> duckdb.DuckDBPyConnection:
    """A database that knows some lists of orders."""
    con = duckdb.connect()
    for name, ids in keys.items():
        con.register(name, pa.table({"id": ids}))
    return con
