"""Changes of any tables, row by row: rows that were held back come, and others go.

For corpora whose tables have no common key by which rows come and go together, as TPC-H's do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

from bench.changes import WEIGHT_COLUMN

Ids = np.ndarray[Any, np.dtype[np.int64]]


@dataclass(frozen=True)
class RowBatch:
    """By table, the rows that come and those that go, by their place in the file."""

    share: float
    inserted: Mapping[str, Ids]
    deleted: Mapping[str, Ids]


@dataclass(frozen=True)
class RowStream:
    """Generated files and batches of changes of some of the tables."""

    files: dict[str, Path]
    batches: tuple[RowBatch, ...]

    def at_first(self, folder: Path) -> dict[str, Path]:
        """The files to load: without the rows that are held back."""
        folder.mkdir(parents=True)
        found = dict(self.files)
        for table in self.batches[0].inserted:
            held = np.concatenate([batch.inserted[table] for batch in self.batches])
            found[table] = folder / f"{table}.parquet"
            with duckdb.connect() as con:
                con.register("held", pa.table({"id": held}))
                con.execute(
                    f"COPY (SELECT * EXCLUDE (file_row_number) FROM {self._rows(table)}"
                    f" WHERE file_row_number NOT IN (SELECT id FROM held)) TO '{found[table]}'"
                )
        return found

    def change(self, batch: RowBatch) -> dict[str, pa.Table]:
        """The rows of a batch with their weights, per table."""
        return {table: self._change(table, batch) for table in batch.inserted}

    def _change(self, table: str, batch: RowBatch) -> pa.Table:
        parts = [
            f"SELECT * EXCLUDE (file_row_number), {weight}::BIGINT AS {WEIGHT_COLUMN}"
            f" FROM {self._rows(table)} WHERE file_row_number IN (SELECT id FROM {rows})"
            for rows, weight in (("deleted", -1), ("inserted", 1))
        ]
        with duckdb.connect() as con:
            con.register("inserted", pa.table({"id": batch.inserted[table]}))
            con.register("deleted", pa.table({"id": batch.deleted[table]}))
            return con.execute(" UNION ALL ".join(parts)).to_arrow_table()

    def _rows(self, table: str) -> str:
        return f"read_parquet('{self.files[table]}', file_row_number = true)"


def make_row_stream(
    files: dict[str, Path],
    tables: Sequence[str],
    shares: Sequence[float],
    seed: int,
    going: float = 0.5,
) -> RowStream:
    """A batch per share of the rows of some tables, of which a part goes and the rest comes; the
    same for the same seed."""
    random = np.random.default_rng(seed)
    drawn = {}
    for table in tables:
        with duckdb.connect() as con:
            found = con.execute(f"SELECT count(*) FROM '{files[table]}'").fetchone()
        drawn[table] = random.permutation(found[0] if found else 0)
    taken = dict.fromkeys(tables, 0)

    def take(table: str, share: float) -> Ids:
        count = max(1, round(share * len(drawn[table]))) if share else 0
        taken[table] += count
        return np.asarray(drawn[table][taken[table] - count : taken[table]], np.int64)

    batches = [
        RowBatch(
            share,
            {t: take(t, share * (1 - going)) for t in tables},
            {t: take(t, share * going) for t in tables},
        )
        for share in shares
    ]
    return RowStream(files, tuple(batches))
