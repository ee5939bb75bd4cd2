"""What comes from one result to the next, as plans go by it, and whether that is another now.

A plan holds for more than one result. So of results that are due several times a day, where the
hours of a day differ, it is made for the busiest time between two of them: what it expects is then
the same whenever it is made.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from math import inf

import numpy as np

from slackwater.stats.arrival import Arrived, Expected, curve, predict

A_DAY = timedelta(days=1)
MOST_PARTS = 96
"""A day is looked at in so many parts at most."""
APPROACHES = 6
"""So often it is asked how much comes until a moment, to find the moment."""
SHORTEST, LONGEST = 1.0, 3660 * 86_400.0
NOISE, TWICE = 0.25, 1.0
"""A prediction is another one if it differs by more than such predictions were off, but not for
less than the one part of it, and always if it is twice as much, or half."""


def outlook(history: Sequence[Arrived], now: datetime, period: timedelta) -> Expected:
    """What is expected from one result to the next, in the busiest part of the day."""
    expected = predict(history, now, now + period)
    if period >= A_DAY:
        return expected
    day = predict(history, now, now + A_DAY)
    if day.model != "daily":
        return expected
    parts = min(MOST_PARTS, round(A_DAY / period))
    busiest = float(np.diff(curve(history, now, now + A_DAY, parts)).max())
    error = max(day.error, expected.error if expected.model == "daily" else 0.0)
    return replace(day, change=day.change.times(busiest * parts * (period / A_DAY)), error=error)


def seconds_until(
    histories: Sequence[Sequence[Arrived]], now: datetime, rows: float
) -> float | None:
    """Until so many rows are expected to have come, of several sources together; None where nobody
    knows, or they may never come."""
    ahead = A_DAY.total_seconds()
    for _ in range(APPROACHES):
        end = now + timedelta(seconds=ahead)
        coming = sum(predict(history, now, end).change.rows for history in histories)
        ahead = min(ahead * rows / coming, LONGEST) if coming > 0 else inf
        if ahead >= LONGEST:
            return None
    return max(ahead, SHORTEST)


def has_changed(before: Expected, now: Expected) -> bool:
    """Is a plan that went by the one to be made again?

    >>> from slackwater.stats.rows import Change
    >>> told = [Expected(Change(n), error, "steady") for n, error in ((100, 0.5), (140, 0.5))]
    >>> has_changed(*told), has_changed(told[0], replace(told[1], error=0.3))
    (False, True)
    """
    least, most = sorted((before.change.rows, now.change.rows))
    off = min(max(NOISE, now.error), TWICE)
    return most >= 1 and most > least * (1 + off)
