"""Whether it pays to sum a change up before it is joined, from numbers that are at hand.

How many rows a row of a table gives when it is joined: the rows that a state has summed up, over
those of the table. It is asked for once and remembered. Most joins go to a key and give one row or
less; then nothing more is looked at. Otherwise the first rows of the change are counted, and
their groups.
"""

from __future__ import annotations

from functools import cached_property

import pyarrow.compute as pc
import pyarrow.parquet as pq

from slackwater.algebra.expr import AggCall, Expr, columns
from slackwater.algebra.relation import Aggregate, Relation, TopK
from slackwater.catalog.model import Segment
from slackwater.engine.compile import compile_query
from slackwater.engine.sources import from_texts
from slackwater.errors import NeedsSpark, UserError
from slackwater.planner.placement import not_local
from slackwater.sql import build
from slackwater.tvr.preaggregate import is_worthwhile
from slackwater.tvr.time import CHANGE, OLD, split
from slackwater.types import BIGINT, WEIGHT, to_arrow_schema
from slackwater.work.interval import Interval

FIXED_ROWS = {"local": 100_000, "spark": 1_000_000}
"""What it costs to look, and on Spark to exchange rows once more, in rows that come out of a
join."""
SAMPLE_ROWS = 100_000
"""So many rows are counted; among more, there would be more in each group."""


class Preaggregation:
    """The changes of one refresh."""

    def __init__(self, interval: Interval) -> None:
        self._interval = interval
        self._house = interval.world.house
        self._counts: dict[Relation, tuple[int, int]] = {}

    def pays(self, state: str, change: Relation, keys: tuple[Expr, ...]) -> bool:
        """Is a change to be summed up by some keys before it is joined, for a state?"""
        setting = self._house.settings.preaggregation
        if setting != "auto":
            return setting == "on"
        (scan,) = change.scans()
        table, _ = split(scan.source)
        matches = self._matches(state, table)
        rows = self._interval.rows(table, CHANGE)
        if not is_worthwhile(rows, 0, matches, self._fixed):
            return False
        rows, groups = self._counted(change, keys)
        return is_worthwhile(rows, groups, matches, self._fixed)

    @cached_property
    def _fixed(self) -> int:
        """By the engine that will do it, as far as one can tell."""
        size = sum(map(self._interval.bytes, self._interval.view.depends))
        runner = self._house.runner
        is_large = runner.placement == "auto" and size > runner.query_bytes
        return FIXED_ROWS["spark" if runner.placement == "spark" or is_large else "local"]

    def _matches(self, state: str, table: str) -> float:
        """Joined rows per row of a table, remembered until the table has doubled or halved."""
        known, rows = self._house.matches, self._interval.rows(table, OLD)
        before, matches = known.get((state, table), (0, 0.0))
        if not before / 2 < rows < before * 2:
            joined = self._joined(self._interval.segments(state, OLD))
            matches = joined / rows if rows else 0.0
            known[state, table] = rows, matches
        return matches

    def _joined(self, segments: tuple[Segment, ...]) -> float:
        """The rows that a state has summed up, from a part of the largest of its segments."""
        if not segments:
            return 0.0
        largest = max(segments, key=lambda s: s.rows)
        storage = self._house.storage
        storage.check(largest)
        with pq.ParquetFile(storage.path(largest)) as file:
            weights = file.read_row_group(0, columns=[WEIGHT]).column(WEIGHT)
        return float(pc.mean(weights).as_py()) * largest.rows

    def _counted(self, change: Relation, keys: tuple[Expr, ...]) -> tuple[int, int]:
        """How many rows the change has among the first, and in how many groups. Each is counted
        once per refresh."""
        counts = group_counts(change, keys)
        if counts not in self._counts:
            self._counts[counts] = self._evaluated(counts)
        return self._counts[counts]

    def _evaluated(self, counts: Relation) -> tuple[int, int]:
        if not_local(counts) is not None:
            return 0, 0
        local = self._house.runner.local
        inputs = from_texts(local, counts, self._interval.sources([counts]), str, {})
        sql = compile_query(counts, local.dialect, inputs)
        try:
            (batch,) = local.batches(sql, to_arrow_schema(counts.schema))
        except (NeedsSpark, UserError):
            return 0, 0  # the step itself will tell
        (found,) = batch.to_pylist()
        return found["rows"] or 0, found["groups"]


def group_counts(change: Relation, keys: tuple[Expr, ...]) -> Relation:
    """How many of the first rows there are, and in how many groups."""
    first = TopK(change, (), SAMPLE_ROWS)
    names = (*(f"k{i}" for i in range(len(keys))), "n")
    grouped = Aggregate(first, keys, (build.count_star(),), names)
    rows = AggCall(BIGINT, True, "sum", (columns(grouped.schema)[-1],))
    return Aggregate(grouped, (), (rows, build.count_star()), ("rows", "groups"))
