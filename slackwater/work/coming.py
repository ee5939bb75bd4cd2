"""What a view's next refresh will find: which sources will have changed, and by how much.

Where the clock says when that refresh is, it is predicted from when rows came (`stats/arrival`).
How far such predictions were off says how much of them is believed, and how much of what came at
the last refreshes:

    chance = (predicted + error · share of the last refreshes) / (1 + error)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from math import inf

from slackwater.catalog.model import Table, View
from slackwater.stats.arrival import Expected, batches, predict
from slackwater.stats.rows import Change
from slackwater.timing import parse_schedule
from slackwater.work.arrivals import history
from slackwater.work.arriving import LastArrivals
from slackwater.work.goals import effective_options
from slackwater.work.interval import Interval
from slackwater.work.parts import every_of
from slackwater.work.world import World

LIKELY = 0.5
"""A source is expected to change that is so many times as likely to as the likeliest, or more:
every one that is expected to takes away from what states can save."""

NEWEST = 200
"""So many batches of a table are looked at: reading more takes as long as a small refresh, and what
comes more often than they tell has changed at any refresh."""


@dataclass(frozen=True)
class Said:
    """Of a table until the next refresh: the batches that come, and their rows."""

    batches: Expected
    rows: Expected


@dataclass(frozen=True)
class Coming:
    """Of one view, after this refresh."""

    interval: Interval

    def expected_changes(self, view: View) -> Mapping[str, Change]:
        """By source: as predicted, and more by the error of that; as at the last refreshes, where
        nobody can tell when the next one is."""
        last, said = LastArrivals(self.interval), dict(self._said(view))
        usual = last.expected_changes(view)
        if view.part:
            every = every_of(view)
            usual = {id: self._of_a_run(id, c, every.get(id, 0.0)) for id, c in usual.items()}
        chances = {id: _chance(said.get(id), last.share(id)) for id in view.depends}
        most = max(chances.values(), default=0.0)
        if not most:
            return usual
        return {
            id: _change(said.get(id), usual[id]) if chance >= LIKELY * most else Change()
            for id, chance in chances.items()
        }

    def _of_a_run(self, id: str, usual: Change, rows: float) -> Change:
        """Of a part, which is run whenever so many rows of a table have come: not all that comes
        until a result is due."""
        if rows < 1 or isinstance(self.interval.world.snapshot.get(id), View):
            return usual  # of a part that is read, versions are counted
        return usual.times(rows / usual.rows) if usual.rows else Change(inserts=rows)

    def _said(self, view: View) -> Iterator[tuple[str, Said]]:
        """By table; when views change is not written down."""
        world = self.interval.world
        now = world.house.now()
        due = next_moment(world, view, now)
        for id in view.depends if due is not None else ():
            source = world.snapshot.get(id)
            if isinstance(source, Table) and due is not None:
                past = history(world, source, NEWEST)
                yield id, Said(batches(past, now, due), predict(past, now, due))


def _chance(said: Said | None, share: float | None) -> float:
    """That a source changes: by the batches that are predicted, and by the last refreshes."""
    if said is None or said.batches.error == inf:
        return share or 0.0
    predicted, error = min(1.0, said.batches.change.rows), said.batches.error
    lately = predicted if share is None else share
    return (predicted + error * lately) / (1 + error)


def _change(said: Said | None, usual: Change) -> Change:
    """Of a source that is expected to change."""
    most = Change() if said is None else said.rows.at_most()
    return most if most.rows >= 1 else usual


def next_moment(world: World, view: View, now: datetime) -> datetime | None:
    """When a view is refreshed next: when it is due, or a view that reads it; None where the clock
    does not say. A part runs as rows come."""
    if view.part:
        return None
    readers = {view.id: view}
    queue = [view]
    while queue:
        found = world.snapshot.dependents(queue.pop().id)
        queue += [v for v in found if v.id not in readers]
        readers |= {v.id: v for v in found}
    dues = (_due(world, reader, now) for reader in readers.values() if not reader.part)
    return min((due for due in dues if due is not None), default=None)


def _due(world: World, view: View, now: datetime) -> datetime | None:
    said = effective_options(view, world.snapshot.settings).get("schedule", "manual")
    return parse_schedule(said).next_due(now)
