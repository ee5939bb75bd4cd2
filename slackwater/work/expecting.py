"""What a refresh will take when more rows have come: by the cost model, before it is due."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf

from slackwater.catalog.model import Segment, Table, View
from slackwater.planner.choice import ENGINES, Candidate, remembered_as
from slackwater.sources import parquet
from slackwater.sources.parquet import File
from slackwater.stats.recall import Expected
from slackwater.tvr import zset
from slackwater.tvr.time import OLD
from slackwater.work.costing import costing
from slackwater.work.forecast import forecast
from slackwater.work.house import House
from slackwater.work.interval import Interval
from slackwater.work.parts import PACE, every_of, views_of
from slackwater.work.refreshing import order, ways
from slackwater.work.upkeep import Upkeep
from slackwater.work.world import World

BYTES_PER_ROW = 40
"""Of rows to come: they are not written yet."""


@dataclass(frozen=True)
class Expectation:
    """Of a refresh. It may take longer by `error_seconds`, as refreshes by the same way did."""

    seconds: float
    cpu_seconds: float
    error_seconds: float = 0.0

    @property
    def at_most_seconds(self) -> float:
        """What to be ready for."""
        return self.seconds + self.error_seconds

    def __add__(self, other: Expectation) -> Expectation:
        return Expectation(
            self.seconds + other.seconds,
            self.cpu_seconds + other.cpu_seconds,
            self.error_seconds + other.error_seconds,
        )


NOTHING = Expectation(0.0, 0.0)


class Foreseen(Interval):
    """From a view's last refresh to a time when more rows have come, by their source."""

    def __init__(self, world: World, view: View, more: Mapping[str, float]) -> None:
        super().__init__(world, view)
        self._more = {id: round(rows) for id, rows in more.items()}

    def segments(self, id: str, time: str) -> tuple[Segment, ...]:
        """Those there are, and one of the rows to come."""
        rows = self._more.get(id, 0)
        found = super().segments(id, time)
        if time == OLD or rows < 1:
            return found
        return (*found, Segment("", rows, rows * BYTES_PER_ROW, 1, 1))

    def files(self, table: Table, time: str) -> tuple[File, ...]:
        """Those there are, and one of the rows to come."""
        rows = self._more.get(table.id, 0)
        found = super().files(table, time)
        return found if time == OLD or rows < 1 else (*found, File("", rows * BYTES_PER_ROW, 0, ""))

    def rows(self, id: str, time: str) -> int:
        """Those there are, and those to come: they have no footer."""
        table = self.external(id)
        if table is None:
            return super().rows(id, time)
        there = parquet.rows_of(super().files(table, time))
        return there if time == OLD else there + self._more.get(id, 0)

    def _has_changed(self, id: str) -> bool:
        return self._more.get(id, 0) > 0 or super()._has_changed(id)


def expected(house: House, names: Sequence[str], more: Mapping[str, float]) -> Expectation:
    """Of a refresh of views, and of those they read, when `more` rows have come to tables (by
    their ids). What one view changes is what the next one reads."""
    coming = dict(more)
    total = NOTHING
    for view in order(World(house, house.catalog.snapshot(), defining=True), names):
        told, coming[view.id] = _of_view(house, view, coming)
        if view.part:  # run early: of the rows to come, the last run's share waits for the result
            told, _ = _of_view(house, view, left_for_the_result(view, names, coming))
        total += told
    return total


def left_for_the_result(
    part: View, names: Sequence[str], more: Mapping[str, float]
) -> Mapping[str, float]:
    """Of rows to come, those that a part has not read when results of some views are due: the last
    of its runs. One that runs for other results, too, never leaves more than what it is run for."""
    pace, every = int(part.options[PACE]), every_of(part)
    left = {id: rows / pace for id, rows in more.items()}
    if set(views_of(part)) <= set(names):
        return left
    return {id: min(rows, every.get(id) or rows) for id, rows in left.items()}


def _of_view(house: House, view: View, more: Mapping[str, float]) -> tuple[Expectation, float]:
    """What it takes, and how many rows of the view change."""
    found = ways(house, view, lambda world: Foreseen(world, view, more))
    if found.plan is None:
        return _cheapest(_plain(found.upkeep), house.experience.of(view.name)), 0.0
    if not found.upkeep.interval.changed and not found.reasons:
        return NOTHING, 0.0
    told = forecast(found, "local" if house.settings.placement != "spark" else "spark")
    if told.seconds is None or told.cpu_seconds is None:
        return NOTHING, 0.0
    off = house.experience.of(view.name).error(remembered_as(told.method), told.engine)
    taking = Expectation(float(told.seconds), float(told.cpu_seconds), float(told.seconds) * off)
    return taking, told.rows


def _plain(upkeep: Upkeep) -> list[Candidate]:
    costs = costing(upkeep)
    return costs.candidates(costs.without_states(zset.with_weight(upkeep.query)))


def _cheapest(candidates: Sequence[Candidate], past: Expected) -> Expectation:
    """On the engine that would be taken; on any, where none is said to be possible."""
    possible = [c for c in candidates if not c.reasons] or list(candidates)
    best = min(possible, key=lambda c: (c.cpu, ENGINES.index(c.engine)), default=None)
    if best is None or best.cpu == inf:
        return NOTHING
    off = past.error(remembered_as(best.method), best.engine)
    return Expectation(float(best.latency), float(best.cpu), float(best.latency) * off)
