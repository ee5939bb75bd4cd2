"""Ways to go on from what has arrived: each tells, from what was known at some moments, how many
rows come within so many seconds after each of them.

Moments are seconds since the first arrival. That one is where counting begins: what was loaded
then says nothing about how fast rows come. NaN: the model has nothing to say.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Model = Callable[["Past", Floats, Floats], Floats]
HOUR, DAY = 3600.0, 86_400.0
RECENT_TIMES, RECENT_ARRIVALS = 20.0, 30
"""A rate is that of so many times the seconds ahead, or so many arrivals, whichever is longer."""
DAYS = 7
BINS = 12


@dataclass(frozen=True)
class Past:
    """Arrivals in their order: when, and how many rows were inserted, updated and deleted."""

    times: Floats
    kinds: Floats  # arrival, kind

    @cached_property
    def rows(self) -> Floats:
        """Of all kinds."""
        found: Floats = self.kinds.sum(axis=1)
        return found

    @cached_property
    def total(self) -> Floats:
        """The rows of the first n arrivals, from n = 0 on."""
        return np.concatenate(([0.0], np.cumsum(self.rows)))

    def count(self, moments: Floats) -> npt.NDArray[np.intp]:
        """Arrivals up to some moments."""
        return np.searchsorted(self.times, moments, side="right")

    def until(self, moments: Floats) -> Floats:
        """Rows up to some moments."""
        found: Floats = self.total[self.count(moments)]
        return found


def steady(past: Past, known: Floats, ahead: Floats) -> Floats:
    """As fast as lately: E = rows / seconds · ahead, over the recent past."""
    count = past.count(known)
    since = np.minimum(count - RECENT_ARRIVALS, past.count(known - RECENT_TIMES * ahead))
    return _rate(past, known, count, np.maximum(since, 0)) * ahead


def overall(past: Past, known: Floats, ahead: Floats) -> Floats:
    """As fast as ever since the first arrival: what comes rarely is seen in the long run only."""
    count = past.count(known)
    return _rate(past, known, count, np.zeros_like(count)) * ahead


def _rate(
    past: Past, known: Floats, count: npt.NDArray[np.intp], since: npt.NDArray[np.intp]
) -> Floats:
    """Rows per second after the arrival number `since`, until that moment."""
    seconds = known - past.times[np.minimum(since, len(past.times) - 1)]
    rows = past.total[count] - past.total[np.minimum(since + 1, count)]
    told = (count - since >= 2) & (seconds > 0)
    rate: Floats = np.divide(rows, seconds, out=np.full(len(known), np.nan), where=told)
    return rate


def daily(past: Past, known: Floats, ahead: Floats) -> Floats:
    """As on the days before, hour by hour: with D(h) the mean of what came in the first h hours
    after that time of day, E = days · D(24) + D(hours), linear within an hour."""
    days = np.arange(1, DAYS + 1) * DAY
    begins = known[:, None] - days  # moment, day
    whole = begins >= 0
    grid = begins[:, :, None] + np.arange(25) * HOUR
    came = past.until(grid) - past.until(begins)[:, :, None]
    seen = whole.sum(axis=1)
    profile = (came * whole[:, :, None]).sum(axis=1) / np.maximum(seen, 1)[:, None]
    passed, rest = np.divmod(ahead, DAY)
    hour = np.minimum((rest // HOUR).astype(np.intp), 23)
    row = np.arange(len(known))
    low, high = profile[row, hour], profile[row, hour + 1]
    expected = passed * profile[:, 24] + low + (high - low) * (rest / HOUR - hour)
    return np.where(seen > 0, expected, np.nan)


def tail(past: Past, known: Floats, ahead: Floats) -> Floats:
    """Late data: each interval of b seconds brings the share p = 1 − exp(−λb) of what is still to
    come (000, 5.4.3), so that intervals that end at t have rows s(t) = exp(a − λt), and
    s(t) / (exp(λb) − 1) are left after t.

    log s is fitted to a line, each interval counting by its rows. What has come since the last
    arrival is not there yet, so the count goes on from that arrival.
    """
    a, decay, width, last = _decay(past, known)
    begin = np.where(known - last <= width, last, known)
    with np.errstate(all="ignore"):
        left = np.exp(a - decay * begin) / np.expm1(decay * width)
        expected = left * -np.expm1(-decay * (known + ahead - begin))
    return np.where((decay > 0) & np.isfinite(expected), expected, np.nan)


def _decay(past: Past, known: Floats) -> tuple[Floats, Floats, Floats, Floats]:
    """a, λ, the width of an interval and the last arrival. There are as many intervals as
    arrivals, the first of them ending at 0; or, of more arrivals, `BINS` after the first."""
    count = past.count(known)
    last = past.times[np.maximum(count - 1, 0)]
    bins = np.clip(count - 1, 1, BINS)
    width = last / bins
    ends = np.minimum(np.arange(BINS + 1), bins[:, None]) * width[:, None] * (1 + 1e-9)
    rows = np.diff(past.until(ends), axis=1, prepend=0.0)
    rows[:, 0] *= count - 1 <= BINS
    with np.errstate(all="ignore"):
        logs = np.where(rows > 0, np.log(rows), 0.0)
        total = rows.sum(axis=1)
        x, y = ((rows * v).sum(axis=1) / total for v in (ends, logs))
        apart = ends - x[:, None]
        slope = (rows * apart * logs).sum(axis=1) / (rows * apart**2).sum(axis=1)
    return y - slope * x, -slope, width, last
