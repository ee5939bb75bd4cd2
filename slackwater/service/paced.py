"""What is run early, by the goals of views: planned, made, and brought along.

Plans are made again when views or their options change, or when twice or half as much is expected
as before. New parts are computed at once, not when a result is due.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from datetime import datetime
from math import log2

from slackwater.catalog.model import Table, View
from slackwater.errors import SlackwaterError
from slackwater.service.units import Unit
from slackwater.work import parts
from slackwater.work.house import House
from slackwater.work.pacing import Options, planned
from slackwater.work.refreshing import advance
from slackwater.work.reports import RefreshReport
from slackwater.work.together import together
from slackwater.work.world import World

logger = logging.getLogger("slackwater.scheduler")


class ByGoals:
    """The parts that goals call for, each a unit of its own."""

    def __init__(self, house: House, options: Options | None = None) -> None:
        self._house = house
        self._options = options or Options()
        self._made: tuple[object, ...] | None = None

    def units(self, now: datetime) -> Sequence[Unit]:
        """The parts there are, after what has changed was planned again."""
        defined = self._defined()
        if self._made is None or self._made[0] != defined:
            try:
                self._plan(now)
                self._made = (defined,)
            except SlackwaterError as error:  # somebody else is at it; what there is still serves
                logger.warning("Early runs were not planned: %s", error)
        snapshot = self._house.catalog.snapshot()
        return [self._unit(part) for part in snapshot.parts()]

    def _defined(self) -> object:
        """All that a plan goes by, as far as it shows in the catalog."""
        snapshot = self._house.catalog.snapshot()
        views = [(v.id, v.sql, tuple(sorted(v.options.items()))) for v in snapshot.views()]
        sizes = [(t.id, self._magnitude(t)) for t in snapshot.tables()]
        return tuple(views), tuple(sorted(snapshot.settings.items())), tuple(sizes)

    def _magnitude(self, table: Table) -> int:
        """By how many times a table has doubled."""
        if table.source != "managed":
            return 0
        rows = sum(s.rows for s in self._house.catalog.snapshot().segments(table.id))
        return round(log2(rows + 1))

    def _plan(self, now: datetime) -> None:
        known = {part.id for part in self._house.catalog.snapshot().parts()}
        world = World(self._house, self._house.catalog.snapshot(), defining=True)
        parts.apply(self._house, together(world, planned(self._house, now, self._options, world)))
        new = [p.id for p in self._house.catalog.snapshot().parts() if p.id not in known]
        if new:
            advance(self._house, dict.fromkeys(new, ()))

    def _unit(self, part: View) -> Unit:
        views = parts.views_of(part)
        name = f"{', '.join(views)} ({part.id[:6]})"
        tables = tuple(self._tables(part))
        return Unit(part.id, name, int(part.options.get(parts.PACE, "1")), views, tables)

    def _tables(self, part: View) -> list[str]:
        """The tables that it reads, through other parts too."""
        snapshot = self._house.catalog.snapshot()
        found: dict[str, None] = {}
        queue = list(part.depends)
        while queue:
            relation = snapshot.get(queue.pop())
            if isinstance(relation, View):
                queue += relation.depends
            else:
                found[relation.id] = None
        return list(found)

    def advance(self, units: Sequence[Unit]) -> Sequence[RefreshReport]:
        """Bring parts along to what their tables hold now, those of their inputs that are due."""
        world = World(self._house, self._house.catalog.snapshot(), defining=True)
        held = {}
        for part in world.snapshot.parts():
            if part.id in {unit.id for unit in units}:
                due = parts.due_paths(world, part)
                held[part.id] = [id for id in part.depends if due and id not in due]
        return advance(self._house, held)
