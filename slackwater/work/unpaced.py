"""Why a view has no pace: stable codes, and words for people."""

from __future__ import annotations

from slackwater.catalog.model import Table, View
from slackwater.errors import UserError
from slackwater.sql.options import parse_refresh
from slackwater.timing import EveryRows, Manual, parse_schedule
from slackwater.work.goals import effective_options
from slackwater.work.reasons import Why, why
from slackwater.work.rhythms import as_read, rhythm
from slackwater.work.world import World

FULL = "REFRESH_FULL"
NEVER_DUE = ("NO_SCHEDULE", "NOT_UNDERSTOOD")
"""Without a moment at which a result is due, no goal is missed."""


def reason_without_pace(world: World, view: View) -> Why | None:
    """None where it has one."""
    has_rhythm = rhythm(world, view, world.house.now()) is not None
    return None if has_rhythm else unpaced(world, view)


def unpaced(world: World, view: View) -> Why:
    """The first reason that holds."""
    try:
        return _reason(world, view)
    except UserError as error:
        return why("NOT_UNDERSTOOD", error.message)


def _reason(world: World, view: View) -> Why:
    said = effective_options(view, world.snapshot.settings)
    schedule = said.get("schedule", Manual.text)
    due = parse_schedule(schedule)
    if isinstance(due, Manual):
        return why("NO_SCHEDULE", view.name)
    if parse_refresh(said.get("refresh", "auto")) == "full":
        return why(FULL, view.name)
    sources = [world.snapshot.get(id) for id in as_read(world, view)]
    if views := [f"Scan {s.name}" for s in sources if not isinstance(s, Table)]:
        return why("READS_VIEWS", ", ".join(views))
    if isinstance(due, EveryRows):
        return why("DUE_BY_ROWS", f"schedule = '{schedule}'")
    return why("NOT_PLANNED", view.name)
