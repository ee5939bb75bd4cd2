"""The runs of a view: at once, if it is asked for; early, of the parts that it is made of; and at
the moment its next result is due. Of each: when, after which rows, and what is done in its steps.

A part of pace k runs early k − 1 times, each time another 1/k of the rows expected from one result
to the next has come (`planner/pace`); the k-th of its runs is at the due moment.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

import numpy as np

from slackwater.catalog.model import Table, View
from slackwater.stats.arrival import curve, predict
from slackwater.work.arrivals import history
from slackwater.work.coming import next_moment
from slackwater.work.expecting import Foreseen, left_for_the_result
from slackwater.work.forecast import Forecast, forecast
from slackwater.work.house import House
from slackwater.work.parts import PACE
from slackwater.work.refreshing import order, ways
from slackwater.work.standing import Newest, standing
from slackwater.work.telling import is_fresh
from slackwater.work.waiting import base_tables, waiting
from slackwater.work.world import World

NOW, EARLY, DUE = "now", "early", "due"
STEPS = 24
"""Until a result is due, in which rows are told to come sooner or later."""


@dataclass(frozen=True)
class ComingRun:
    """One run, or several that do the same."""

    when: str
    at: tuple[str, ...]  # about when: of early runs, each time
    rows: Mapping[str, float]  # by table, those expected to come before it, each time
    steps: tuple[Forecast, ...]

    @property
    def cpu_seconds(self) -> float:
        """Of all steps, as far as it is known; each time."""
        return sum(step.cpu_seconds or 0.0 for step in self.steps)

    @property
    def seconds(self) -> float:
        """Of all steps, one after the other."""
        return sum(step.seconds or 0.0 for step in self.steps)

    def lines(self) -> list[str]:
        """For people."""
        times = ", ".join(at[:19].replace("T", " ") for at in self.at)
        words = {
            NOW: "now, if it is asked for",
            EARLY: f"early, {len(self.at)} more, about {times}",
            DUE: f"due {times}",
        }
        coming = [f"{rows:,.0f} rows of {name}" for name, rows in self.rows.items() if rows >= 1]
        after = f", after {' and '.join(coming)}" if coming else ""
        each = " each" if len(self.at) > 1 else ""
        cost = f": about {self.cpu_seconds:.3f} CPU s, {self.seconds:.3f} s{each}"
        head = f"Run:    {words[self.when]}{after}{cost if self.steps else ': nothing to do'}"
        return [head, *(line for step in self.steps for line in step.lines())]

    def to_json(self) -> dict[str, Any]:
        """For machines."""
        return asdict(self) | {"cpu_seconds": self.cpu_seconds, "seconds": self.seconds}


def coming_runs(house: House, view: View) -> tuple[ComingRun, ...]:
    """From now to the view's next result; what a refresh would do now, where anything waits."""
    world = World(house, house.catalog.snapshot(), defining=True)
    views, now = order(world, [view.name]), house.now()
    found = [] if is_fresh(world, view) else [_at_once(house, world, views, now)]
    due = next_moment(world, view, now)
    if due is not None:
        found += _Until(house, world, view, now, due).runs(views)
    return tuple(found)


def _at_once(house: House, world: World, views: Sequence[View], now: datetime) -> ComingRun:
    stale = [view for view in views if not is_fresh(world, view)]
    coming: dict[str, float] = {}
    steps = []
    for view in stale:
        step = _step(house, view, coming)
        coming[view.id] = 0.0 if step is None else max(1.0, step.rows)
        steps.append(step)
    return ComingRun(NOW, (now.isoformat(),), {}, tuple(s for s in steps if s is not None))


def _step(house: House, view: View, more: Mapping[str, float]) -> Forecast | None:
    """What is done for one view when more rows have come; None where there is nothing to do."""
    found = ways(house, view, lambda world: Foreseen(world, view, more))
    if not found.upkeep.interval.changed and not set(found.reasons) - {"FULL_BY_OPTION"}:
        return None
    upkeep, query = found.upkeep, found.upkeep.query
    place = house.runner.place([query], upkeep.world.sources(query), load=True)
    return forecast(found, place.engine)


class _Until:
    """From now to the moment when a view's result is due."""

    def __init__(
        self, house: House, world: World, view: View, now: datetime, due: datetime
    ) -> None:
        self._house, self._world, self._view = house, world, view
        self._now, self._due = now, due
        past = {table: history(world, table) for table in base_tables(world, view)}
        said = {table: predict(own, now, due).change.rows for table, own in past.items()}
        self._more: dict[Table, float] = said
        course = sum((rows * curve(past[t], now, due, STEPS) for t, rows in said.items()), 0.0)
        self._course = np.asarray(course)

    def runs(self, views: Sequence[View]) -> Iterator[ComingRun]:
        """Early ones of parts, and the one that gives the result."""
        coming = {table.id: rows for table, rows in self._more.items()}
        steps = []
        for view in views:
            step = last = _step(self._house, view, coming)
            if view.part:
                yield from self._early(view, coming)
                left = left_for_the_result(view, [self._view.name], coming)
                last = _step(self._house, view, left)
            coming[view.id] = 0.0 if step is None else max(1.0, step.rows)
            steps.append(last)
        done = tuple(step for step in steps if step is not None)
        rows = {table.name: rows for table, rows in self._more.items()}
        yield ComingRun(DUE, (self._due.isoformat(),), rows, done)

    def _early(self, part: View, coming: Mapping[str, float]) -> Iterator[ComingRun]:
        pace = int(part.options.get(PACE, "1"))
        read = [t for t in base_tables(self._world, part) if t in self._more]
        at = tuple(self._moments(pace, read))
        step = _step(self._house, part, {id: rows / pace for id, rows in coming.items()})
        if at and step is not None:
            rows = {table.name: self._more[table] / pace for table in read}
            yield ComingRun(EARLY, at, rows, (step,))

    def _moments(self, pace: int, read: Sequence[Table]) -> Iterator[str]:
        """When what has come and what is expected make the next 1/pace, and each one after it."""
        since = standing(Newest(self._house.catalog), self._world.snapshot, self._view).marks
        here = waiting(self._world, self._view, since)
        arrived = sum(rows for id, rows in here.items() if id in {t.id for t in read})
        more = sum(self._more[table] for table in read)
        total = arrived + more
        if more <= 0 or self._course[-1] <= 0:
            return
        even = np.linspace(0.0, 1.0, STEPS + 1)
        for run in range(int(arrived * pace / total) + 1, pace):
            share = (run * total / pace - arrived) / more
            passed = float(np.interp(share, self._course / self._course[-1], even))
            yield (self._now + passed * (self._due - self._now)).isoformat()
