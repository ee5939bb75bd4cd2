"""TPC-H as it arrives: tables begin empty, and all rows come evenly until the result is due.

Rows come in the order of their keys; lineitems with their orders and offers with their parts, in
the same batch. Regions and nations are there from the start. Of TPC-H's references only those are
promised that hold after every batch: an order may come before its customer.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import slackwater
from bench import corpus

THERE = ("region", "nation")
"""Tables that do not change."""
WITH = {"lineitem": ("orders", "l_orderkey", "o_orderkey")}
WITH |= {"partsupp": ("part", "ps_partkey", "p_partkey")}
"""Tables whose rows come with those of another, by key."""
HOLDING = ("region", "nation", "part", "orders")
"""Tables whose keys are there before, or come with, what names them."""


def even(batches: int) -> tuple[float, ...]:
    """The same share of the rows in each batch."""
    return (1 / batches,) * batches


def burst(batches: int, times: float, at_end: bool) -> tuple[float, ...]:
    """One tenth of the time brings so many times as many rows as the rest, in the middle or at
    the end.

    >>> [round(share, 3) for share in burst(10, 3, at_end=True)][-2:]
    [0.083, 0.25]
    """
    width = max(1, batches // 10)
    start = batches - width if at_end else (batches - width) // 2
    rates = [times if start <= i < start + width else 1.0 for i in range(batches)]
    return tuple(rate / sum(rates) for rate in rates)


@dataclass(frozen=True)
class Arrivals:
    """The rows of some tables in batches, by the share of all rows in each."""

    files: dict[str, Path]
    tables: tuple[str, ...]
    shares: tuple[float, ...]

    @property
    def moving(self) -> tuple[str, ...]:
        """The tables that receive rows."""
        return tuple(t for t in self.tables if t not in THERE)

    def rows(self, table: str) -> int:
        """All rows of a table."""
        return int(pq.read_metadata(self.files[table]).num_rows)

    def batches(self) -> Iterator[dict[str, pa.Table]]:
        """What comes, one batch after the other."""
        content = {table: pq.read_table(self.files[table]) for table in self.moving}
        for i in range(len(self.shares)):
            found = {}
            for table, rows in content.items():
                start, end = self._bounds[table][i], self._bounds[table][i + 1]
                found[table] = rows.slice(start, end - start)
            yield {table: rows for table, rows in found.items() if rows.num_rows}

    @cached_property
    def _bounds(self) -> dict[str, list[int]]:
        """By table, where batches begin and end."""
        found: dict[str, list[int]] = {}
        for table in self.moving:
            leader, own, theirs = WITH.get(table, (table, "", ""))
            bounds = self._even(leader)
            if leader != table:
                keys = self._keys(leader, theirs)
                firsts = [keys[b] for b in bounds[1:-1]]
                inner = np.searchsorted(self._keys(table, own), firsts)
                bounds = [0, *map(int, inner), self.rows(table)]
            found[table] = bounds
        return found

    def _even(self, table: str) -> list[int]:
        places = np.cumsum((0.0, *self.shares)) * self.rows(table)
        return [round(place) for place in places[:-1]] + [self.rows(table)]

    def _keys(self, table: str, column: str) -> np.ndarray:
        return np.asarray(pq.read_table(self.files[table], columns=[column])[column].to_numpy())


def load(db: slackwater.Warehouse, files: dict[str, Path], tables: Collection[str]) -> None:
    """Tables as they are at the start, their keys, and the references that hold all the time."""
    for table, statement in corpus.ddl("tpch").items():
        if table in tables:
            db.sql(statement)
            if table in THERE:
                db.ingest(table, files[table])
    for statement in _promises():
        words = statement.split()
        table = words[2]
        named = words[words.index("REFERENCES") + 1] if "REFERENCES" in words else None
        is_there = named is None or (named in HOLDING and named in tables)
        if table in tables and is_there and (table, named) != ("orders", "customer"):
            db.sql(statement)


def _promises() -> Sequence[str]:
    lines = [line for line in corpus.keys("tpch").splitlines() if not line.startswith("--")]
    return [s.strip() for s in "\n".join(lines).split(";") if s.strip()]
