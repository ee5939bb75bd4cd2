"""The scheduler: every due result at its time, units at their pace, one thing after another.

What it knows is in the catalog: it can be killed at any moment and started again, and a second one
beside it finds done what the first has done.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from types import TracebackType
from typing import Self, cast

from slackwater.errors import StateError, UserError
from slackwater.service.arriving import Arriving
from slackwater.service.clock import Clock, MachineClock, utc
from slackwater.service.desk import Desk
from slackwater.service.goals import Due
from slackwater.service.paced import ByGoals
from slackwater.service.pacing import Pacing
from slackwater.service.risks import Risks
from slackwater.service.serving import Serving
from slackwater.service.told import CATCH_UP, FAILED, START, STOP, Listener, Summary
from slackwater.service.turns import Turns
from slackwater.service.units import Paces
from slackwater.service.watching import Watching
from slackwater.service.words import seconds
from slackwater.timing import Every
from slackwater.warehouse import Warehouse
from slackwater.work.house import Clock as AnyClock
from slackwater.work.house import House
from slackwater.work.standing import Standing

POLL_SECONDS = 5.0


class Scheduler:
    """Of one open warehouse, until it is stopped.

    `poll_seconds`: from one look at the sources to the next. `paces`: what is run early. `listener`
    is told everything that is done.
    """

    def __init__(
        self,
        db: Warehouse,
        house: House,
        clock: AnyClock | None = None,
        *,
        poll_seconds: float = POLL_SECONDS,
        paces: Paces | None = None,
        listener: Listener | None = None,
    ) -> None:
        if poll_seconds <= 0:
            raise UserError(
                f"poll_seconds = {poll_seconds:g} leaves no time between two looks.",
                code="BAD_OPTION",
                hint="Use a number above zero.",
            )
        self.clock = cast(Clock, clock or house.clock or MachineClock())
        self._house = house
        self._poll = Every(poll_seconds)  # on the hour, say, whenever it was started
        self._desk = Desk(db, house, self.clock, listener)
        self._watching = Watching(self._desk)
        self._serving = Serving(self._desk)
        self._turns = Turns(self._desk)
        arriving = Arriving(house)
        self._risks = Risks(self._desk, arriving, self._turns)
        self._pacing = Pacing(self._desk, paces or ByGoals(house), arriving)
        self._stopping = False
        self._before: list[AnyClock | None] = []

    @property
    def summary(self) -> Summary:
        """What has been done so far."""
        return self._desk.summary

    def stop(self) -> None:
        """After what is under way, no more. Safe in a signal handler and in other threads."""
        self._stopping = True
        self.clock.wake()

    def run(self, until: datetime | str | None = None) -> Summary:
        """Do what is due, when it is due, until a moment (that one included) or until stopped."""
        end = None if until is None else utc(until)
        with self:
            self._start()
            while not self._stopping:
                now = self.clock.now()
                by = now if end is None else min(now, end)
                wake = self._look(by)
                if end is not None and now >= end:
                    break
                self.clock.wait(wake if end is None else min(wake, end))
            self._desk.say(STOP, str(self.summary))
        return self.summary

    def once(self) -> Summary:
        """Do what is due now, and no more."""
        return self.run(until=self.clock.now())

    def _start(self) -> None:
        standings = [s for s in self._watching.standings() if s.schedule.text != "manual"]
        self._desk.say(START, _scheduled(len(standings)), body={"views": len(standings)})
        now = self.clock.now()
        overdue = [due for due in self._due(standings, now) if due.moment < now]
        if overdue:
            first = min(due.moment for due in overdue)
            names = ", ".join(due.view.name for due in overdue)
            late = seconds((now - first).total_seconds())
            self._desk.say(CATCH_UP, f"{names}: due for up to {late}, refreshed once each")

    def _look(self, by: datetime) -> datetime:
        """Do all there is to do by a moment; when to look again at the latest."""
        try:
            return self._work(by)
        except StateError as error:
            if error.code != "CATALOG_UNAVAILABLE":
                raise
            self._desk.say(FAILED, str(error))
            return self._next_poll(self.clock.now())

    def _work(self, by: datetime) -> datetime:
        self._watching.look_outside()
        for group in self._turns.calls(self._due(self._watching.standings(), by)):
            if self._stopping:
                break
            self._serving.serve(group, by)
        standings = self._watching.standings()
        now = self.clock.now()
        again = None
        if not self._stopping and not _fell_due(standings, by, now):
            again = self._pacing.run(standings, now)
        if not self._stopping:
            self._risks.look(standings, now)
        now = self.clock.now()
        return now if _fell_due(standings, by, now) else self._next(standings, now, again)

    def _due(self, standings: Sequence[Standing], by: datetime) -> list[Due]:
        found = (self._serving.due(standing, by) for standing in standings)
        return [due for due in found if due is not None]

    def _next(
        self, standings: Sequence[Standing], now: datetime, again: datetime | None
    ) -> datetime:
        """The next moment at which something is due or may have come."""
        moments = [self._next_poll(now), *([again] if again is not None else [])]
        dues = (standing.schedule.next_due(standing.since or now) for standing in standings)
        return min([*moments, *(due for due in dues if due is not None and due > now)])

    def _next_poll(self, now: datetime) -> datetime:
        return self._poll.next_due(now) or now

    def __enter__(self) -> Self:
        self._before.append(self._house.clock)
        self._house.clock = self.clock
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._house.clock = self._before.pop()


def _fell_due(standings: Sequence[Standing], by: datetime, now: datetime) -> bool:
    """Is any result due since the last look? It goes before what can wait."""
    dues = (s.schedule.next_due(max(by, s.since or by)) for s in standings)
    return any(due is not None and due <= now for due in dues)


def _scheduled(views: int) -> str:
    if not views:
        return (
            "no view has a schedule yet: "
            "ALTER MATERIALIZED VIEW … SET (schedule = 'every 10 minutes')"
        )
    return f"{views} {'view has' if views == 1 else 'views have'} a schedule"
