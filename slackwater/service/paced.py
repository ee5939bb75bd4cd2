"""What is run early, by the goals of views: planned, made, and brought along.

Plans are made again when views or their options change, when a view that was defined anew has taken
parts away, when a table has doubled, or when other is expected to come than was planned for
(`stats/outlook`). New parts are computed at once, not when a result is due.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from math import log2

from slackwater.catalog.model import Table, View
from slackwater.errors import SlackwaterError
from slackwater.service.units import Unit
from slackwater.stats.arrival import Expected
from slackwater.stats.outlook import has_changed, outlook
from slackwater.work import parts
from slackwater.work.arrivals import history
from slackwater.work.house import House
from slackwater.work.pacing import Options, Paced, planned
from slackwater.work.refreshing import advance
from slackwater.work.reports import RefreshReport
from slackwater.work.together import together
from slackwater.work.world import World

LOOKS = 4
"""So often from one result to the next it is asked what is expected to come."""
SELDOM = timedelta(minutes=1)
"""But not again before so much time has passed: to ask takes as long as a small refresh."""

logger = logging.getLogger("slackwater.scheduler")


_Asked = tuple[timedelta, str]
"""What is expected of a table from one result to the next."""


@dataclass(frozen=True)
class _Made:
    """A plan that was made, and what it went by."""

    defined: object
    looked_at: datetime
    expected: Mapping[_Asked, Expected]
    formed: frozenset[str]  # the names of views that were to be computed over parts

    @property
    def tables(self) -> set[str]:
        """Those of which anything is expected."""
        return {id for _, id in self.expected}

    def is_to_be_looked_at(self, now: datetime) -> bool:
        """Has so much time passed that other may be expected than was?"""
        shortest = min((period for period, _ in self.expected), default=None)
        return shortest is not None and now - self.looked_at >= max(shortest / LOOKS, SELDOM)


class ByGoals:
    """The parts that goals call for, each a unit of its own."""

    def __init__(self, house: House, options: Options | None = None) -> None:
        self._house = house
        self._options = options or Options()
        self._made: _Made | None = None
        self._seconds: dict[str, float] = {}  # of a run, by part

    def units(self, now: datetime) -> Sequence[Unit]:
        """The parts there are, after what has changed was planned again."""
        if self._made is None or self._is_outdated(self._made, now):
            try:
                self._made = self._plan(now)
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

    def _is_outdated(self, made: _Made, now: datetime) -> bool:
        """Is what a plan goes by another, is a form gone that was made, or is other than what was
        planned for expected to come? The last is not asked at each look."""
        if made.defined != self._defined():
            return True
        if made.formed - {v.name for v in self._house.catalog.snapshot().views() if v.form}:
            return True
        if not made.is_to_be_looked_at(now):
            return False
        world = World(self._house, self._house.catalog.snapshot(), defining=True)
        past = {t.id: history(world, t) for t in world.snapshot.tables() if t.id in made.tables}
        if any(has_changed(e, outlook(past[id], now, p)) for (p, id), e in made.expected.items()):
            return True
        self._made = replace(made, looked_at=now)
        return False

    def _plan(self, now: datetime) -> _Made:
        """Make it so; what it went by."""
        defined = self._defined()
        known = {part.id for part in self._house.catalog.snapshot().parts()}
        world = World(self._house, self._house.catalog.snapshot(), defining=True)
        found = planned(self._house, now, self._options, world)
        wanted = together(world, found)
        parts.apply(self._house, wanted)
        self._seconds = _seconds(found)
        new = [p.id for p in self._house.catalog.snapshot().parts() if p.id not in known]
        if new:
            advance(self._house, dict.fromkeys(new, ()))
        formed = frozenset(name for name, form in wanted.views.items() if form is not None)
        return _Made(defined, now, _expected(found), formed)

    def _unit(self, part: View) -> Unit:
        views = parts.views_of(part)
        name = f"{', '.join(views)} ({part.id[:6]})"
        tables = tuple(self._tables(part))
        pace, seconds = int(part.options.get(parts.PACE, "1")), self._seconds.get(part.id, 0.0)
        return Unit(part.id, name, pace, views, tables, seconds)

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


def _expected(found: Sequence[Paced]) -> dict[_Asked, Expected]:
    """What is expected to come in the periods of plans."""
    expected = ((timedelta(seconds=p.period_seconds), p.expected) for p in found)
    return {(period, id): own for period, by_table in expected for id, own in by_table.items()}


def _seconds(found: Sequence[Paced]) -> dict[str, float]:
    """What a run of each part is expected to take, in the plan that has it take longest."""
    longest: dict[str, float] = {}
    for paced in found:
        for number, id in paced.forms.places.items():
            seconds = paced.search.cost(number, paced.found.paces).final
            longest[id] = max(seconds, longest.get(id, 0.0))
    return longest
