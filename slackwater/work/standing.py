"""Where a view stands in its schedule: up to when it has been served, and when it is due next.

Nothing is kept for this but what happened, so whoever looks, after whatever crash, sees the same:

| event of the view | what it settles |
|---|---|
| `refresh` | every due moment up to `read_at`, and the rows that its tables had then |
| `goal` with an error | that due moment: the next attempt is at the next one |
| `alter` | every due moment before it, which were those of another schedule |
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from slackwater.catalog.model import Event, View
from slackwater.catalog.snapshot import Snapshot
from slackwater.catalog.store import Catalog
from slackwater.timing import Manual, Schedule, parse_schedule
from slackwater.work.goals import effective_options
from slackwater.work.waiting import Marks

MANUAL = "manual"
KINDS = ("refresh", "goal", "alter")
RECENT = 10
"""So many events of a kind are looked at for the one that settles most."""


@dataclass(frozen=True)
class Standing:
    """One view at one moment."""

    view: View
    options: Mapping[str, str]
    schedule: Schedule
    since: datetime | None  # due moments up to here are settled
    marks: Marks  # rows of its tables up to here are, too
    failed: bool = False  # the last attempt

    @property
    def is_empty(self) -> bool:
        """Has it never been refreshed, and nobody failed to?"""
        return self.view.refreshed_at is None and not self.failed

    def due(self, now: datetime) -> datetime | None:
        """When the next result is or was due; None where rows or people say. A view without
        content is due at once, whatever its schedule counts."""
        if self.is_empty and not isinstance(self.schedule, Manual):
            return now
        return self.schedule.next_due(self.since or now)


class Newest:
    """The event of each kind that settles most, by view: asked for once, and then
    brought along by what has happened since."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._found: dict[tuple[str, str], Event | None] = {}
        self._last, _ = catalog.news(None, KINDS)

    def catch_up(self) -> None:
        """Know what has happened meanwhile."""
        self._last, events = self._catalog.news(self._last, KINDS)
        for event in events:
            if event.relation is not None:
                known = self._known(event.relation, event.kind)
                if known is None or _settles(event) >= _settles(known):
                    self._found[event.relation, event.kind] = event

    def of(self, view: View, kind: str) -> Event | None:
        """The event of a kind that settles most; None where there is none. That need not be the
        newest: who wrote that may go by a clock that is behind."""
        return self._known(view.id, kind)

    def _known(self, view: str, kind: str) -> Event | None:
        key = (view, kind)
        if key not in self._found:
            events = self._catalog.events(relation=view, kind=kind, limit=RECENT)
            self._found[key] = max(reversed(events), key=_settles, default=None)
        return self._found[key]


def _settles(event: Event) -> datetime:
    """Up to when an event settles what was due."""
    names = {"refresh": "read_at", "goal": "due"}
    return moment(event.body.get(names.get(event.kind, ""), event.at))


def standing(newest: Newest, snapshot: Snapshot, view: View) -> Standing:
    """Of a view, as the newest events tell."""
    options = effective_options(view, snapshot.settings)
    schedule = parse_schedule(options.get("schedule", MANUAL))
    refreshed, goal, altered = (newest.of(view, kind) for kind in KINDS)
    settled = [moment(altered.at)] if altered else []
    marks: Mapping[str, Any] = {}
    if refreshed is not None:
        settled.append(moment(refreshed.body.get("read_at", refreshed.at)))
        marks = refreshed.body.get("arrived_rows", {})
    failed = goal is not None and "error" in goal.body and _is_later(goal, refreshed)
    if goal is not None and failed:
        settled.append(moment(goal.body["due"]))
        marks = goal.body.get("arrived_rows", {})
    return Standing(view, options, schedule, max(settled, default=None), marks, failed)


def _is_later(event: Event, other: Event | None) -> bool:
    return other is None or moment(event.at) >= moment(other.at)


def moment(text: str) -> datetime:
    """A moment as the catalog wrote it."""
    return datetime.fromisoformat(text)
