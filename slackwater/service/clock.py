"""Clocks for the scheduler: the machine's, and a simulated one whose day takes seconds."""

from __future__ import annotations

import heapq
import threading
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Protocol

from slackwater.errors import UserError
from slackwater.work.reports import RefreshReport

LONGEST_WAIT_SECONDS = 3600.0
"""The machine's time may be set while somebody waits for a moment, so waits are not long."""

Taking = Callable[[Sequence[RefreshReport], float], float]
"""Seconds that a refresh takes, from what it did and the seconds that were measured."""


class Clock(Protocol):
    """What time it is, and how one waits."""

    def now(self) -> datetime:
        """This moment, in UTC."""

    def wait(self, until: datetime) -> None:
        """Until that moment, or until woken."""

    def wake(self) -> None:
        """Whoever waits, or waits next, goes on at once. Safe in a signal handler."""

    def takes(self, reports: Sequence[RefreshReport], seconds: float) -> float:
        """Seconds that work which was just done still has to take on this clock."""

    def skip(self, seconds: float) -> None:
        """Let time pass that nobody waits for."""


class MachineClock:
    """The machine's."""

    def __init__(self) -> None:
        self._woken = threading.Event()

    def now(self) -> datetime:
        """This moment, in UTC."""
        return datetime.now(UTC)

    def wait(self, until: datetime) -> None:
        """Until that moment, or until woken."""
        seconds = (until - self.now()).total_seconds()
        if seconds > 0:
            self._woken.wait(min(seconds, LONGEST_WAIT_SECONDS))
        self._woken.clear()

    def wake(self) -> None:
        """Whoever waits, or waits next, goes on at once."""
        self._woken.set()

    def takes(self, reports: Sequence[RefreshReport], seconds: float) -> float:
        """None: its time has passed."""
        return 0.0

    def skip(self, seconds: float) -> None:
        """Time passes by itself."""


class SimulatedClock:
    """A clock that moves when somebody waits, and by what work takes.

    What is to happen in the simulated world is said beforehand, by `at` and `every`; it happens
    when its moment is passed, in that order. `taking` says how long a refresh takes; without it,
    that is measured.

    >>> clock = SimulatedClock("2026-01-05 05:59")
    >>> clock.at("2026-01-05 06:00", lambda: print("a delivery at", clock.now().time()))
    >>> clock.wait(datetime(2026, 1, 5, 7, tzinfo=UTC))
    a delivery at 06:00:00
    >>> clock.now().time().isoformat()
    '07:00:00'
    """

    def __init__(self, start: datetime | str, taking: Taking | None = None) -> None:
        self._now = utc(start)
        self._taking = taking
        self._plans: list[tuple[datetime, int, Callable[[], object]]] = []
        self._numbers = count()
        self._woken = False

    def now(self) -> datetime:
        """The simulated moment."""
        return self._now

    def at(self, moment: datetime | str, action: Callable[[], object]) -> None:
        """Something that happens once."""
        heapq.heappush(self._plans, (utc(moment), next(self._numbers), action))

    def every(self, seconds: float, action: Callable[[], object], *, until: datetime | str) -> None:
        """Something that happens again and again, first after so many seconds from now."""
        step, moment, end = timedelta(seconds=seconds), self._now, utc(until)
        while (moment := moment + step) <= end:
            self.at(moment, action)

    def wait(self, until: datetime) -> None:
        """Move there, past all that happens on the way; not farther than to where it is woken."""
        while not self._woken and self._plans and self._plans[0][0] <= until:
            moment, _, action = heapq.heappop(self._plans)
            self._now = max(self._now, moment)
            action()
        if not self._woken:
            self._now = max(self._now, until)
        self._woken = False

    def wake(self) -> None:
        """The wait under way, or the next, ends where it is."""
        self._woken = True

    def takes(self, reports: Sequence[RefreshReport], seconds: float) -> float:
        """All that the work takes: this clock stood still."""
        return seconds if self._taking is None else self._taking(reports, seconds)

    def skip(self, seconds: float) -> None:
        """Move on, past all that happens meanwhile."""
        woken, self._woken = self._woken, False
        self.wait(self._now + timedelta(seconds=seconds))
        self._woken |= woken


def utc(moment: datetime | str) -> datetime:
    """A moment in UTC; one without a time zone is in UTC.

    >>> utc("2026-01-05 06:00").isoformat()
    '2026-01-05T06:00:00+00:00'
    """
    try:
        found = datetime.fromisoformat(moment) if isinstance(moment, str) else moment
    except ValueError:
        raise UserError(
            f"'{moment}' is not a moment.", code="BAD_TIME", hint="Write '2026-01-05 06:00'."
        ) from None
    return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)
