"""Which results are due together: those that are due at the same moments, however that is said."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise

from slackwater.timing.schedules import Schedule, period_seconds

DUES = 8
"""So many due moments are looked at: the days of a week, and one more."""


@dataclass(frozen=True, order=True)
class Rhythm:
    """Seconds from one result to the next, and the moments at which the next ones are due; or,
    where the clock does not say, after how many rows from which tables, by their ids."""

    period_seconds: float
    dues: tuple[datetime, ...] = ()
    rows: int = 0
    tables: tuple[str, ...] = ()

    @property
    def next_due(self) -> datetime | None:
        """The first of the moments."""
        return self.dues[0] if self.dues else None

    @property
    def next_text(self) -> str:
        """When the next results are due, in words."""
        if self.next_due is None:
            return f"after {self.rows:,} rows"
        return f"{self.next_due:%Y-%m-%d %H:%M:%S}"


def rhythm_of(schedule: Schedule, now: datetime) -> Rhythm | None:
    """None where the clock does not say.

    >>> from slackwater.timing.schedules import parse_schedule
    >>> from slackwater.timing.texts import EPOCH
    >>> said = ("daily 06:00", "0 6 * * *", "daily 18:00")
    >>> six, cron, evening = (rhythm_of(parse_schedule(text), EPOCH) for text in said)
    >>> six == cron, six == evening
    (True, False)
    """
    period = period_seconds(schedule, now)
    if period is None:
        return None
    dues: list[datetime] = []
    moment: datetime | None = now
    while len(dues) < DUES and moment is not None:
        moment = schedule.next_due(moment)
        dues += [] if moment is None else [moment]
    return Rhythm(period, tuple(dues))


def longest_gap(rhythms: Sequence[Rhythm]) -> float:
    """Of all moments at which any is due, the most seconds from one to the next, or fewer.

    >>> from slackwater.timing.schedules import parse_schedule
    >>> from slackwater.timing.texts import EPOCH
    >>> def gap(*texts):
    ...     return longest_gap([rhythm_of(parse_schedule(text), EPOCH) for text in texts]) / 3600
    >>> gap("daily 06:00"), gap("daily 06:00", "daily 18:00"), gap("daily 06:30", "every 1 hour")
    (24.0, 12.0, 1.0)
    """
    gaps = [rhythm.period_seconds for rhythm in rhythms if not rhythm.dues]
    told = [rhythm.dues for rhythm in rhythms if rhythm.dues]
    end = min((dues[-1] for dues in told), default=None)
    moments = sorted({due for dues in told for due in dues if end is not None and due <= end})
    if moments:
        gaps.append(max((b - a).total_seconds() for a, b in pairwise(moments)))
    return min(gaps)
