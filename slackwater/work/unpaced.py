"""Why a view has no pace: stable codes, and words for people."""

from __future__ import annotations

from slackwater.catalog.model import Table, View
from slackwater.errors import UserError
from slackwater.sql.options import parse_refresh
from slackwater.timing import EveryRows, Manual, parse_schedule
from slackwater.work.goals import effective_options
from slackwater.work.pacing import as_read
from slackwater.work.world import World

FULL = "REFRESH_FULL"
WHY = {
    "NO_SCHEDULE": "it has no schedule: its results are due when somebody asks",
    "DUE_BY_ROWS": "rows, not the clock, say when it is due",
    FULL: "refresh = 'full': it is computed anew each time",
    "READS_VIEWS": "it reads other views",
    "NOT_UNDERSTOOD": "its options or its SQL cannot be understood",
    "NOT_PLANNED": "it is not planned for",
}


def unpaced(world: World, view: View) -> tuple[str, str]:
    """The first reason that holds, and what it says."""
    try:
        reason = _reason(world, view)
    except UserError:
        reason = "NOT_UNDERSTOOD"
    return reason, WHY[reason]


def _reason(world: World, view: View) -> str:
    said = effective_options(view, world.snapshot.settings)
    match parse_schedule(said.get("schedule", Manual.text)):
        case Manual():
            return "NO_SCHEDULE"
        case EveryRows():
            return "DUE_BY_ROWS"
    if parse_refresh(said.get("refresh", "auto")) == "full":
        return FULL
    sources = [world.snapshot.get(id) for id in as_read(world, view)]
    return "NOT_PLANNED" if all(isinstance(s, Table) for s in sources) else "READS_VIEWS"
