"""A stream of changes on every table of a corpus: rows come, change and go.

Rows that come were held back from the first load, or are rows that had gone. A row that changes
takes the values of some columns from another row of its table, so that keys keep finding partners
and groups keep growing and shrinking.
"""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bench import corpus
from slackwater.types import to_arrow_schema

WEIGHT_COLUMN = "weight"
HELD_BACK = 0.02
"""The share of a table's rows that is not there at first."""
COLUMNS_CHANGED = 3
STEADY = {
    "date_dim": {"d_date", "d_week_seq", "d_month_seq", "d_year", "d_moy", "d_dom"},
}
"""Columns that no update touches: subqueries ask for the one week or month of a day."""


class ChangingTable:
    """One table's rows as they are now, and those that may come."""

    def __init__(self, name: str, rows: pa.Table, rng: random.Random) -> None:
        self.name = name
        self._rng = np.random.default_rng(rng.getrandbits(64))
        order = self._rng.permutation(rows.num_rows)
        held = int(rows.num_rows * HELD_BACK)
        self.rows = rows.take(np.sort(order[held:]))
        self._waiting = rows.take(order[:held])

    def change(self, share: float, least: int) -> pa.Table | None:
        """Rows with weights: in equal parts rows that change, that come, and that go."""
        here = self.rows.num_rows
        count = max(round(share * here), min(least, here))
        if not count:
            return None
        picked = self._rng.choice(here, count, replace=False)
        changed, gone, come = picked[0::3], picked[2::3], len(picked[1::3])
        left = np.concatenate([changed, gone])
        before = self.rows.take(left)
        new = pa.concat_tables([self._updated(self.rows.take(changed)), self._arrived(come)])
        self._waiting = pa.concat_tables([self._waiting, self.rows.take(gone)])
        stays = self.rows.take(np.delete(np.arange(here), left))
        self.rows = pa.concat_tables([stays, new]).combine_chunks()
        return pa.concat_tables([_weighted(before, -1), _weighted(new, 1)])

    def _arrived(self, count: int) -> pa.Table:
        come, self._waiting = self._waiting.slice(0, count), self._waiting.slice(count)
        return come

    def _updated(self, rows: pa.Table) -> pa.Table:
        steady = STEADY.get(self.name, set())
        free = [i for i, name in enumerate(rows.column_names) if name not in steady]
        for i in self._rng.choice(free, min(COLUMNS_CHANGED, len(free)), replace=False):
            donors = self._rng.integers(0, self.rows.num_rows, rows.num_rows)
            rows = rows.set_column(
                int(i), rows.field(int(i)), self.rows.column(int(i)).take(donors)
            )
        return rows


class Stream:
    """The tables of a corpus under changes; the same for the same seed."""

    def __init__(self, kind: str, scale: float, seed: str) -> None:
        rng = random.Random(seed)
        files = corpus.generate(kind, scale)
        schemas = {t: to_arrow_schema(s) for t, s in corpus.schemas(kind).items()}
        self.tables = {
            t: ChangingTable(t, pq.read_table(files[t]).cast(s), rng) for t, s in schemas.items()
        }

    def batch(self, share: float, least: int = 0) -> dict[str, pa.Table]:
        """A change of so large a share of every table, and of at least so many of its rows."""
        found = {name: table.change(share, least) for name, table in self.tables.items()}
        return {name: change for name, change in found.items() if change is not None}

    def write(self, folder: Path) -> dict[str, Path]:
        """The content as it is now, one plain file per table."""
        folder.mkdir(parents=True)
        for name, table in self.tables.items():
            pq.write_table(table.rows, folder / f"{name}.parquet")
        return {name: folder / f"{name}.parquet" for name in self.tables}


def _weighted(rows: pa.Table, weight: int) -> pa.Table:
    return rows.append_column(WEIGHT_COLUMN, pa.array([weight] * rows.num_rows, pa.int64()))
