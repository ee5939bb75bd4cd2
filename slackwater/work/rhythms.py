"""When the results of views are due, as far as it is known before."""

from __future__ import annotations

from datetime import datetime

from slackwater.catalog.model import Table, View
from slackwater.errors import UserError
from slackwater.sql.options import parse_refresh
from slackwater.stats.outlook import seconds_until
from slackwater.timing import EveryRows, Rhythm, parse_schedule, rhythm_of
from slackwater.work.arrivals import history
from slackwater.work.expanded import can_expand
from slackwater.work.goals import effective_options
from slackwater.work.meaning import as_written
from slackwater.work.world import World


def rhythm(world: World, view: View, now: datetime) -> Rhythm | None:
    """When the results of a view are due; None where it is not planned for: nobody can tell when,
    it is always computed anew, or it reads views of which that holds, or that are due at other
    moments. What cannot be understood is told where the view is refreshed."""
    said = effective_options(view, world.snapshot.settings)
    try:
        if "schedule" not in said or parse_refresh(said.get("refresh", "auto")) == "full":
            return None
        schedule = parse_schedule(said["schedule"])
        sources = [world.snapshot.get(id) for id in as_read(world, view)]
        tables = [source for source in sources if isinstance(source, Table)]
        views = [source for source in sources if isinstance(source, View)]
        if isinstance(schedule, EveryRows):
            return None if views else _by_rows(world, tables, schedule.rows, now)
        own = rhythm_of(schedule, now)
        together = all(can_expand(world, v) and rhythm(world, v, now) == own for v in views)
        return own if together else None
    except UserError:
        return None


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
