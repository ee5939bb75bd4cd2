"""Results that are due: how long each may take, and whether it came in time."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from math import inf
from typing import Any

from slackwater.catalog.ids import timestamp
from slackwater.catalog.model import Event, View
from slackwater.work.allowed import Rows, allowed_seconds
from slackwater.work.house import House
from slackwater.work.reports import RefreshReport
from slackwater.work.standing import Standing
from slackwater.work.waiting import present
from slackwater.work.world import World

GOAL = "goal"


@dataclass(frozen=True)
class Due:
    """A result that is due: of a view, since a moment, with some seconds to take.

    A view without content is loaded at once; nobody was promised that, so it has no goal.
    """

    standing: Standing
    moment: datetime
    within_seconds: float | None
    is_load: bool

    @property
    def view(self) -> View:
        """Whose."""
        return self.standing.view

    @property
    def deadline(self) -> float:
        """As a number to sort by; without a goal, after all that have one."""
        return inf if self.within_seconds is None else self.moment.timestamp() + self.within_seconds


def within_seconds(house: House, standing: Standing, rows: Rows | None = None) -> float | None:
    """Seconds that a result may take, when so many rows are there, or as many as now."""
    snapshot = house.catalog.snapshot()
    if standing.view.id not in snapshot:  # somebody has dropped it meanwhile
        return None
    return allowed_seconds(World(house, snapshot, defining=True), standing.view, rows)


def kept_or_missed(
    due: Due, report: RefreshReport, finished: datetime, seconds: float, price: float
) -> Event:
    """What is written down of a result that was due: did it come in time, and at what cost? It
    took some seconds of those of its call."""
    latency = max(0.0, (finished - due.moment).total_seconds())
    within = due.within_seconds
    at = timestamp(finished.timestamp())
    found = {
        "finished": at,
        "latency_seconds": latency,
        "kept": within is None or latency <= within,
        "seconds": seconds,
        "cpu_seconds": report.cpu_seconds,
    }
    return Event(GOAL, due.view.id, at, _body(due, price) | found)


def failed(house: House, due: Due, error: Exception, at: datetime, price: float) -> Event:
    """What is written down of a result that could not be computed: it is tried again when it is
    due again, and rows that have come by now do not count for that."""
    world = World(house, house.catalog.snapshot(), defining=True)
    found = {
        "finished": None,
        "latency_seconds": None,
        "kept": False,
        "cpu_seconds": 0.0,
        "error": str(error) or type(error).__name__,
        "arrived_rows": present(world, due.view),
    }
    return Event(GOAL, due.view.id, timestamp(at.timestamp()), _body(due, price) | found)


def _body(due: Due, price: float) -> dict[str, Any]:
    return {
        "view": due.view.name,
        "due": timestamp(due.moment.timestamp()),
        "within_seconds": due.within_seconds,
        "price": price,
    }
