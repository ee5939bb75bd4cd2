"""How views have done lately: goals kept and missed, what they cost each day, when they are due.

What a run of a part takes counts for the views that it was for at that time, with equal shares: its
event names them, so that it counts after the part is gone, too.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from slackwater.catalog.ids import timestamp
from slackwater.catalog.model import View
from slackwater.catalog.sums import Goals
from slackwater.errors import SlackwaterError
from slackwater.timing import EveryRows, parse_size
from slackwater.work.goals import effective_options
from slackwater.work.house import House
from slackwater.work.standing import Newest, Standing, standing
from slackwater.work.waiting import waiting
from slackwater.work.world import World

DAYS = 7
"""So far back goals and costs are looked at."""
ByDay = dict[str, float]


@dataclass
class Accounts:
    """Of all views, by their ids and names."""

    goals: dict[str, Goals]
    cpu_seconds: dict[str, ByDay] = field(default_factory=lambda: defaultdict(ByDay))
    cost: dict[str, ByDay] = field(default_factory=lambda: defaultdict(ByDay))

    @classmethod
    def read(cls, house: House) -> Accounts:
        """What the events of the last days say."""
        since = timestamp((house.now() - timedelta(days=DAYS)).timestamp())
        found = cls({own.view: own for own in house.catalog.goals(since)})
        for spent in house.catalog.spent(since):
            for view in spent.views:  # what serves several is paid by all of them
                _add(found.cpu_seconds[view], spent.day, spent.cpu_seconds / len(spent.views))
                _add(found.cost[view], spent.day, spent.cost / len(spent.views))
        return found

    def of(self, world: World, view: View, state_bytes: int) -> dict[str, Any]:
        """Of one view, as plain data."""
        options = effective_options(view, world.snapshot.settings)
        budget = options.get("state_budget")
        goals = self.goals.get(view.id, Goals(view.id, 0, 0))
        return {
            "schedule": options.get("schedule", "manual"),
            "within": options.get("within"),
            **_due(world, view),
            "goals_kept": goals.kept,
            "goals_missed": goals.missed,
            "cpu_seconds": self.cpu_seconds[view.name],
            "cost": self.cost[view.name],
            "state_bytes": state_bytes,
            "state_budget": None if budget is None else parse_size(budget),
        }


def _add(amounts: ByDay, day: str, amount: float) -> None:
    amounts[day] = amounts.get(day, 0.0) + amount


def _due(world: World, view: View) -> dict[str, Any]:
    """When the next result is due: at a moment, or after so many more rows."""
    house = world.house
    try:
        found = standing(Newest(house.catalog), world.snapshot, view)
    except SlackwaterError:  # an option that an older version took
        return {"next_due": None, "rows_until_due": None}
    if isinstance(found.schedule, EveryRows):
        return {"next_due": None, "rows_until_due": _rows_left(world, found, found.schedule.rows)}
    due = found.due(house.now())
    return {"next_due": None if due is None else due.isoformat(), "rows_until_due": None}


def _rows_left(world: World, found: Standing, rows: int) -> int:
    return max(0, rows - sum(waiting(world, found.view, found.marks).values()))
