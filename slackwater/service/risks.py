"""Goals that will be missed, said before they are.

More rows may come than are predicted, and take longer than is expected: by as much as predictions
and expectations were off before, a warning comes sooner. What is due just before, or at the same
moment and with less time left, is served first, and counts.

To work out what a refresh will take costs as much as to plan it. Where the last answer was far from
what is allowed, and nothing has grown since, it is not worked out again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from math import inf

from slackwater.catalog.ids import timestamp
from slackwater.catalog.model import Event
from slackwater.service.arriving import Arriving
from slackwater.service.desk import Desk
from slackwater.service.goals import GOAL, within_seconds
from slackwater.service.reckoning import Reckoning
from slackwater.service.told import AT_RISK
from slackwater.service.turns import Turns, families
from slackwater.service.words import seconds
from slackwater.timing import EveryRows
from slackwater.work.expecting import Expectation, expected
from slackwater.work.standing import Standing
from slackwater.work.waiting import base_tables, waiting
from slackwater.work.world import World

EVENT = "goal_at_risk"
LOOKS = 4
"""So often between two results it is looked at what the next will take."""
MARGIN = 1.0
"""So many times the error of predictions is added to the rows to come."""


class Risks:
    """What one scheduler fears."""

    def __init__(self, desk: Desk, arriving: Arriving, turns: Turns) -> None:
        self._desk = desk
        self._turns = turns
        self._arriving = arriving
        self._looked: dict[str, tuple[datetime, int]] = {}  # by view: the interval, the look
        self._reckoning = Reckoning(desk.house)
        self._commit = -1

    def look(self, standings: Sequence[Standing], now: datetime) -> None:
        """Warn of goals that will be missed, once for each result."""
        served = [s for s in standings if s.since is not None and s.view.refreshed_at]
        commit = self._desk.house.catalog.snapshot().commit
        has_news, self._commit = commit != self._commit, commit
        for due, group in _together(served, now):
            asking = [s for s in group if "within" in s.options]
            times = [self._is_time(found, now) for found in asking]
            if any(times) or (has_news and asking and self._reckoning.is_outgrown(group)):
                self._check(group, asking, due, now, served)

    def _is_time(self, found: Standing, now: datetime) -> bool:
        """Is this another of the looks between two results?"""
        assert found.since is not None
        key = (found.since, min(LOOKS - 1, int(LOOKS * self._passed(found, now))))
        if self._looked.get(found.view.id) == key:
            return False
        self._looked[found.view.id] = key
        return True

    def _passed(self, found: Standing, now: datetime) -> float:
        """How much of the way from the last result to the next is behind."""
        assert found.since is not None
        if isinstance(found.schedule, EveryRows):
            return sum(self._waiting(found).values()) / found.schedule.rows
        due = found.schedule.next_due(found.since)
        return (now - found.since) / (due - found.since) if due is not None else 0.0

    def _waiting(self, found: Standing) -> Mapping[str, int]:
        return waiting(self._world(), found.view, found.marks)

    def _world(self) -> World:
        return World(self._desk.house, self._desk.house.catalog.snapshot(), defining=True)

    def _coming(
        self, group: Sequence[Standing], due: datetime | None, now: datetime, margin: float
    ) -> dict[str, float]:
        """The rows to come to tables by the due time, with a margin."""
        if due is None:
            return self._missing(group[0])
        tables = base_tables(self._world(), *(found.view for found in group))
        return {table.id: self._arriving.rows(table, now, due, margin) for table in tables}

    def _missing(self, found: Standing) -> dict[str, float]:
        """Rows that its tables still lack, each as many as its share of what has come."""
        assert isinstance(found.schedule, EveryRows)
        here = self._waiting(found)
        left = max(0, found.schedule.rows - sum(here.values()))
        whole = sum(here.values()) or len(here)
        return {id: left * (rows or 1) / whole for id, rows in here.items()}

    def _check(
        self,
        group: Sequence[Standing],
        asking: Sequence[Standing],
        due: datetime | None,
        now: datetime,
        standings: Sequence[Standing],
    ) -> None:
        coming = self._coming(group, due, now, MARGIN)
        allowed = self._allowed(asking, coming)
        least = min(allowed.values(), default=inf)
        if least == inf:  # somebody has dropped it meanwhile
            return
        self._reckoning.look(group, coming)
        delay = 0.0 if due is None else self._turns.delay(standings, now, due)
        latency = max(map(self._latency, group))
        if self._reckoning.is_far(group, latency, least - delay):
            return
        turns = self._in_turn(group, allowed)
        there = self._there(turns, coming, delay)
        most = max(told.at_most_seconds for told in there.values()) - delay
        self._reckoning.answer(group, most)
        late = [s for s in asking if there[s.view.id].at_most_seconds > allowed[s.view.id]]
        new = [found for found in late if not self._was_said(found, due)]
        usual = self._there(turns, self._coming(group, due, now, 0.0), delay) if new else {}
        for found in new:
            id = found.view.id
            most = there[id].at_most_seconds
            self._warn(found, due, allowed[id], min(most, usual[id].seconds), most)

    def _in_turn(
        self, group: Sequence[Standing], allowed: Mapping[str, float]
    ) -> list[list[Standing]]:
        """Families in the order in which they are served."""
        found = families(self._world().snapshot, group)
        return sorted(found, key=lambda own: min(allowed.get(s.view.id, inf) for s in own))

    def _there(
        self, turns: Sequence[Sequence[Standing]], coming: Mapping[str, float], delay: float
    ) -> dict[str, Expectation]:
        """By view, what it takes until its result is there: what is served first counts, too."""
        found: dict[str, Expectation] = {}
        ahead = Expectation(delay, 0.0)
        for family in turns:
            ahead += self._takes(family, coming)
            found |= {own.view.id: ahead for own in family}
        return found

    def _allowed(self, asking: Sequence[Standing], coming: Mapping[str, float]) -> dict[str, float]:
        """Seconds by view, when the rows to come are there."""
        rows = {id: self._world().rows(id) + more for id, more in coming.items()}
        told = {s.view.id: within_seconds(self._desk.house, s, rows) for s in asking}
        return {id: inf if seconds is None else seconds for id, seconds in told.items()}

    def _takes(self, group: Sequence[Standing], coming: Mapping[str, float]) -> Expectation:
        """What the refresh of views in one call is expected to take."""
        return expected(self._desk.house, [found.view.name for found in group], coming)

    def _latency(self, found: Standing) -> float:
        """Seconds from when a view's last result was due until it was there."""
        events = self._desk.house.catalog.events(relation=found.view.id, kind=GOAL, limit=1)
        return max((float(e.body.get("latency_seconds") or 0.0) for e in events), default=0.0)

    def _was_said(self, found: Standing, due: datetime | None) -> bool:
        events = self._desk.house.catalog.events(relation=found.view.id, kind=EVENT, limit=1)
        return any(event.body["of"] == _name(found, due) for event in events)

    def _warn(
        self, found: Standing, due: datetime | None, within: float, takes: float, most: float
    ) -> None:
        desk = self._desk
        body = {
            "view": found.view.name,
            "of": _name(found, due),
            "due": None if due is None else timestamp(due.timestamp()),
            "within_seconds": within,
            "expected_seconds": takes,
            "at_most_seconds": most,
        }
        desk.write(Event(EVENT, found.view.id, desk.house.timestamp(), body))
        desk.summary.at_risk += 1
        when = f"at {due:%Y-%m-%d %H:%M:%S}" if due else "when its rows are there"
        text = (
            f"{found.view.name}: due {when}, expected to take {seconds(takes)}, "
            f"up to {seconds(most)}, {seconds(within)} are allowed"
        )
        desk.say(AT_RISK, text, found.view.name, body)


def _together(
    served: Sequence[Standing], now: datetime
) -> Iterator[tuple[datetime | None, list[Standing]]]:
    """The views that are due together, by when that is; one by one, where rows say it."""
    groups: dict[datetime, list[Standing]] = {}
    for found in served:
        due = found.schedule.next_due(now)
        if due is not None:
            groups.setdefault(due, []).append(found)
        elif isinstance(found.schedule, EveryRows):
            yield None, [found]
    yield from groups.items()


def _name(found: Standing, due: datetime | None) -> str:
    """What tells one result of a view from the others."""
    moment = due or found.since
    assert moment is not None
    return timestamp(moment.timestamp())
