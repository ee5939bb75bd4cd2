"""Goals that will be missed, said before they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from slackwater.catalog.ids import timestamp
from slackwater.catalog.model import Event
from slackwater.service.arriving import Arriving
from slackwater.service.desk import Desk
from slackwater.service.goals import within_seconds
from slackwater.service.told import AT_RISK
from slackwater.service.words import seconds
from slackwater.timing import EveryRows
from slackwater.work.expecting import expected
from slackwater.work.standing import Standing
from slackwater.work.waiting import base_tables, waiting
from slackwater.work.world import World

EVENT = "goal_at_risk"
LOOKS = 4
"""So often between two results it is looked at what the next will take."""


class Risks:
    """What one scheduler fears."""

    def __init__(self, desk: Desk, arriving: Arriving) -> None:
        self._desk = desk
        self._arriving = arriving
        self._looked: dict[str, tuple[datetime, int]] = {}  # by view: the interval, the look

    def look(self, standings: Sequence[Standing], now: datetime) -> None:
        """Warn of goals that will be missed, once for each result."""
        served = [s for s in standings if s.since is not None and s.view.refreshed_at]
        for found in served:
            if "within" in found.options and self._is_time(found, now):
                self._check(found, _together(found, served, now), now)

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
        world = World(self._desk.house, self._desk.house.catalog.snapshot(), defining=True)
        return waiting(world, found.view, found.marks)

    def _check(self, found: Standing, names: Sequence[str], now: datetime) -> None:
        due = found.schedule.next_due(now)
        if due is None and not isinstance(found.schedule, EveryRows):
            return
        within = within_seconds(self._desk.house, found)
        takes = expected(self._desk.house, names, self._coming(found, names, now, due)).seconds
        if within is not None and takes > within and not self._was_said(found, due):
            self._warn(found, due, within, takes)

    def _coming(
        self, found: Standing, names: Sequence[str], now: datetime, due: datetime | None
    ) -> dict[str, float]:
        """Rows that are still to come to the tables until the result is due."""
        if due is None:
            here = self._waiting(found)
            left = max(0, getattr(found.schedule, "rows", 0) - sum(here.values()))
            whole = sum(here.values()) or len(here)
            return {id: left * (rows or 1) / whole for id, rows in here.items()}
        snapshot = self._desk.house.catalog.snapshot()
        world = World(self._desk.house, snapshot, defining=True)
        views = [world.view(name) for name in names]
        return {t.id: self._arriving.rows(t, now, due) for t in base_tables(world, *views)}

    def _was_said(self, found: Standing, due: datetime | None) -> bool:
        events = self._desk.house.catalog.events(relation=found.view.id, kind=EVENT, limit=1)
        return any(event.body["of"] == _name(found, due) for event in events)

    def _warn(self, found: Standing, due: datetime | None, within: float, takes: float) -> None:
        desk = self._desk
        body = {
            "view": found.view.name,
            "of": _name(found, due),
            "due": None if due is None else timestamp(due.timestamp()),
            "within_seconds": within,
            "expected_seconds": takes,
        }
        desk.write(Event(EVENT, found.view.id, desk.house.timestamp(), body))
        desk.summary.at_risk += 1
        when = f"at {due:%Y-%m-%d %H:%M:%S}" if due else "when its rows are there"
        text = (
            f"{found.view.name}: due {when}, expected to take {seconds(takes)}, "
            f"{seconds(within)} are allowed"
        )
        desk.say(AT_RISK, text, found.view.name, body)


def _together(found: Standing, others: Sequence[Standing], now: datetime) -> list[str]:
    """The views that are refreshed in the same call."""
    due = found.schedule.next_due(now)
    if due is None:
        return [found.view.name]
    return [s.view.name for s in others if s.schedule.next_due(now) == due]


def _name(found: Standing, due: datetime | None) -> str:
    """What tells one result of a view from the others."""
    moment = due or found.since
    assert moment is not None
    return timestamp(moment.timestamp())
