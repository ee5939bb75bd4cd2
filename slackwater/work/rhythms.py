"""When the results of views are due, as far as it is known before."""

from __future__ import annotations

from datetime import datetime

from slackwater.catalog.model import Table, View
from slackwater.errors import UserError
from slackwater.sql.options import parse_refresh
from slackwater.stats.outlook import seconds_until
from slackwater.timing import EveryRows, Rhythm, parse_schedule, rhythm_of
from slackwater.work.arrivals import history
from slackwater.work.goals import effective_options
from slackwater.work.meaning import as_written
from slackwater.work.world import World


def rhythm(world: World, view: View, now: datetime) -> Rhythm | None:
    """When the results of a view are due; None where it is not planned for: nobody can tell when,
    it reads other views, or is always computed anew. What cannot be understood is told where the
    view is refreshed."""
    said = effective_options(view, world.snapshot.settings)
    try:
        if "schedule" not in said or parse_refresh(said.get("refresh", "auto")) == "full":
            return None
        schedule = parse_schedule(said["schedule"])
        sources = [world.snapshot.get(id) for id in as_read(world, view)]
    except UserError:
        return None
    tables = [source for source in sources if isinstance(source, Table)]
    if len(tables) < len(sources):
        return None
    if isinstance(schedule, EveryRows):
        return _by_rows(world, tables, schedule.rows, now)
    return rhythm_of(schedule, now)


def _by_rows(world: World, tables: list[Table], rows: int, now: datetime) -> Rhythm | None:
    """That of results that are due when so many rows have come, as fast as is expected."""
    seconds = seconds_until([history(world, table) for table in tables], now, rows)
    if seconds is None:
        return None
    return Rhythm(seconds, rows=rows, tables=tuple(sorted(table.id for table in tables)))


def as_read(world: World, view: View) -> tuple[str, ...]:
    """The ids of what a view's SQL reads."""
    relation, _ = as_written(world, view)
    return tuple(dict.fromkeys(scan.source for scan in relation.scans()))
