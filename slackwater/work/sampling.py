"""How much smaller a change becomes when it is summed up, counted on its first rows."""

from __future__ import annotations

from slackwater.algebra.expr import AggCall, Expr, columns
from slackwater.algebra.relation import Aggregate, Relation, TopK
from slackwater.engine.compile import compile_query
from slackwater.engine.sources import Files, Log, from_texts
from slackwater.errors import NeedsSpark, UserError
from slackwater.planner.placement import not_local
from slackwater.sql import build
from slackwater.tvr.preaggregate import LEAST_ROWS, is_worthwhile
from slackwater.types import BIGINT, to_arrow_schema
from slackwater.work.interval import Interval

SAMPLE_ROWS = 100_000
"""More rows can only have more of them in each group."""


class Sample:
    """The changes of one refresh; each question about them is answered once."""

    def __init__(self, interval: Interval) -> None:
        self._interval = interval
        self._house = interval.world.house
        self._known: dict[Relation, bool] = {}

    def shrinks(self, change: Relation, keys: tuple[Expr, ...]) -> bool:
        """Is a change to be summed up by some keys before it is joined?"""
        setting = self._house.settings.preaggregation
        if setting != "auto":
            return setting == "on"
        counted = group_counts(change, keys)
        if counted not in self._known:
            self._known[counted] = self._is_large(change) and self._counts(counted)
        return self._known[counted]

    def _is_large(self, change: Relation) -> bool:
        """May it have enough rows? Nobody counts those of other people's files beforehand."""
        sources = self._interval.sources([change]).values()
        logs = [s for s in sources if isinstance(s, Log)]
        rows = sum(segment.rows for log in logs for segment in log.segments)
        others = [s for s in sources if s not in logs]
        return rows >= LEAST_ROWS or (bool(others) and all(isinstance(s, Files) for s in others))

    def _counts(self, counted: Relation) -> bool:
        if not_local(counted) is not None:
            return False
        local = self._house.runner.local
        sources = self._interval.sources([counted])
        inputs = from_texts(local, counted, sources, str, {})
        sql = compile_query(counted, local.dialect, inputs)
        try:
            (batch,) = local.batches(sql, to_arrow_schema(counted.schema))
        except (NeedsSpark, UserError):
            return False  # the step itself will tell
        (found,) = batch.to_pylist()
        return is_worthwhile(found["rows"] or 0, found["groups"])


def group_counts(change: Relation, keys: tuple[Expr, ...]) -> Relation:
    """How many of the first rows there are, and in how many groups."""
    first = TopK(change, (), SAMPLE_ROWS)
    names = (*(f"k{i}" for i in range(len(keys))), "n")
    grouped = Aggregate(first, keys, (build.count_star(),), names)
    rows = AggCall(BIGINT, True, "sum", (columns(grouped.schema)[-1],))
    return Aggregate(grouped, (), (rows, build.count_star()), ("rows", "groups"))
