"""Prices by time of day, and when rows are expected: what a run between two results costs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta

import numpy as np

from slackwater.planner.course import Course, Floats, Interval
from slackwater.stats.arrival import Arrived, curve, predict
from slackwater.timing import Prices
from slackwater.timing.texts import EPOCH

A_DAY = timedelta(days=1)
MOMENTS = 96
"""At which an interval is looked at, or a day if that is longer."""
INTERVALS = 24
"""So many intervals of a day are looked at."""
PARTS = 192
"""In so many it is told when rows come, from now to the end of all that is looked at."""

Histories = Mapping[str, Sequence[Arrived]]


def course(
    prices: Prices, now: datetime, due: datetime, period: timedelta, histories: Histories
) -> Course | None:
    """From the result that is `due` next to the one after it or, if results are due several times a
    day, over the day that follows. None where all work costs one."""
    if not prices.tariffs:
        return None if prices.otherwise == 1.0 else Course([Interval(_at(prices, [due, due]))])
    found = list(_intervals(due, period))
    coming = {id: _Coming(past, now, found[-1][-1], period) for id, past in histories.items()}
    return Course([_interval(prices, moments, coming) for moments in found])


def at_any_time(prices: Prices) -> Course | None:
    """Of results that are due when so many rows are there, at whatever hour that is."""
    if not prices.tariffs:
        return None if prices.otherwise == 1.0 else Course([Interval(np.full(2, prices.otherwise))])
    day = _at(prices, [EPOCH + i * A_DAY / MOMENTS for i in range(MOMENTS)])
    return Course([Interval(np.full(2, day.mean()))])


def _intervals(due: datetime, period: timedelta) -> Iterator[list[datetime]]:
    """The moments of each."""
    in_a_day = max(1, round(A_DAY / period))
    looked_at = min(in_a_day, INTERVALS)
    steps = MOMENTS // min(4, looked_at)
    for i in range(looked_at):
        start = due + i * in_a_day // looked_at * period
        yield [start + j * period / steps for j in range(steps + 1)]


def _interval(
    prices: Prices, moments: Sequence[datetime], coming: Mapping[str, _Coming]
) -> Interval:
    told = {id: own.until(moments) for id, own in coming.items()}
    rows = {id: float(there[-1] - there[0]) for id, there in told.items()}
    there = {id: (told[id] - told[id][0]) / rows[id] for id in told if rows[id] > 0}
    return Interval(_at(prices, moments), there, rows)


def _at(prices: Prices, moments: Sequence[datetime]) -> Floats:
    return np.array([prices.at(moment) for moment in moments])


class _Coming:
    """What comes to one source from now on."""

    def __init__(
        self, history: Sequence[Arrived], now: datetime, end: datetime, period: timedelta
    ) -> None:
        self._now = now
        self._period = period
        expected = predict(history, now, end)
        self._rows = expected.change.rows
        self._is_tail = expected.model == "tail"
        self._end = now + period if self._is_tail else end
        self._curve = curve(history, now, self._end, PARTS)

    def until(self, moments: Sequence[datetime]) -> Floats:
        """The rows that are there at some moments. Late data that peters out now does so after any
        result."""
        since = moments[0] if self._is_tail else self._now
        whole = self._end - self._now
        at = [(moment - since) / whole for moment in moments]
        shares = np.interp(at, np.linspace(0.0, 1.0, len(self._curve)), self._curve)
        found: Floats = self._rows * shares
        return found
