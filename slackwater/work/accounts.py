"""How views have done lately: goals kept and missed, what they cost each day, when they are due."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from slackwater.catalog.ids import timestamp
from slackwater.catalog.model import Event, View
from slackwater.errors import SlackwaterError
from slackwater.timing import EveryRows, parse_size
from slackwater.work.goals import effective_options
from slackwater.work.house import House
from slackwater.work.parts import VIEWS
from slackwater.work.standing import Newest, Standing, standing
from slackwater.work.waiting import waiting
from slackwater.work.world import World

DAYS = 7
"""So far back goals and costs are looked at."""
MOST = 10_000
"""So many events of a kind at most."""


@dataclass
class Accounts:
    """Of all views, by their ids and names."""

    kept: Counter[str] = field(default_factory=Counter)
    missed: Counter[str] = field(default_factory=Counter)
    cpu_seconds: dict[str, dict[str, float]] = field(
        default_factory=lambda: defaultdict(lambda: defaultdict(float))
    )

    @classmethod
    def read(cls, house: House) -> Accounts:
        """What the events of the last days say."""
        since = timestamp((house.now() - timedelta(days=DAYS)).timestamp())
        found = cls()
        for event in house.catalog.events(kind="goal", limit=MOST, since=since):
            if event.relation is not None:
                found._judge(event.relation, event)
        shared = {
            part.id: part.options[VIEWS].split("\n") for part in house.catalog.snapshot().parts()
        }
        for event in house.catalog.events(kind="refresh", limit=MOST, since=since):
            cpu = sum(step["cpu_seconds"] for step in event.body["steps"])
            views = shared.get(event.relation or "", [event.body["view"]])
            for view in views:  # what serves several is paid by all of them
                found.cpu_seconds[view][event.at[:10]] += cpu / len(views)
        return found

    def _judge(self, id: str, event: Event) -> None:
        if not event.body["kept"]:
            self.missed[id] += 1
        elif event.body["within_seconds"] is not None:
            self.kept[id] += 1

    def of(self, world: World, view: View, state_bytes: int) -> dict[str, Any]:
        """Of one view, as plain data."""
        options = effective_options(view, world.snapshot.settings)
        budget = options.get("state_budget")
        return {
            "schedule": options.get("schedule", "manual"),
            "within": options.get("within"),
            **_due(world, view),
            "goals_kept": self.kept[view.id],
            "goals_missed": self.missed[view.id],
            "cpu_seconds": dict(self.cpu_seconds[view.name]),
            "state_bytes": state_bytes,
            "state_budget": None if budget is None else parse_size(budget),
        }


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
