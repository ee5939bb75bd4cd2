"""ALTER … SET and RESET of views and of the warehouse, and SHOW SETTINGS."""

from __future__ import annotations

from collections.abc import Mapping

from slackwater.catalog.model import ChangeOptions, Event, SetSettings, WriteEvent
from slackwater.result import Result
from slackwater.sql import statements
from slackwater.sql.options import WAREHOUSE_SETTINGS, view_changes, warehouse_changes
from slackwater.work.house import House
from slackwater.work.reachable import notice
from slackwater.work.telling import from_rows
from slackwater.work.world import World

UNSAID = {"prices": "1", "schedule": "manual", "refresh": "auto"}
"""What holds where nothing is set; there is no goal and no budget then."""
GOAL = {"schedule", "within", "refresh"}
"""Options that decide whether a goal can be met."""


def alter_view(house: House, statement: statements.AlterView) -> str:
    """ALTER MATERIALIZED VIEW … SET (…) or RESET (…)."""
    view = World(house, house.catalog.snapshot()).view(statement.name)
    changes = view_changes(statement.options, statement.taken_back, view.name)
    event = Event("alter", view.id, house.timestamp(), {"options": changes})
    house.catalog.commit([], [ChangeOptions(view.id, changes), WriteEvent(event)])
    told = notice(house, view.name) if GOAL & changes.keys() else ""
    return f"view '{view.name}' altered{_told(changes)}{told}"


def alter_warehouse(house: House, statement: statements.AlterWarehouse) -> str:
    """ALTER WAREHOUSE SET (…) or RESET (…)."""
    changes = warehouse_changes(statement.settings, statement.taken_back)
    event = Event("alter", None, house.timestamp(), {"settings": changes})
    house.catalog.commit([], [SetSettings(changes), WriteEvent(event)])
    return f"warehouse altered{_told(changes)}"


def _told(changes: Mapping[str, str | None]) -> str:
    said = [f"{name} = '{value}'" for name, value in changes.items() if value is not None]
    unsaid = [f"{name} taken back" for name, value in changes.items() if value is None]
    return f": {', '.join(said + unsaid)}" if changes else ": nothing"


def show_settings(house: House) -> Result:
    """SHOW SETTINGS: what is set for the warehouse, and what holds where nothing is."""
    found = house.catalog.snapshot().settings
    rows = [
        {"name": name, "value": found.get(name), "unset": UNSAID.get(name)}
        for name in WAREHOUSE_SETTINGS
    ]
    return from_rows(rows, ["name", "value", "unset"])
