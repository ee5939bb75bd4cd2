"""What came to a view's sources at its last refreshes, which is expected again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from slackwater.catalog.model import View
from slackwater.stats.rows import Change
from slackwater.tvr.time import CHANGE, NEW
from slackwater.work.interval import Interval

GUESSED = 0.01
"""The share of each source that is expected to come where nothing has been seen yet."""
FADING = 0.5
"""What a refresh counts for after one more."""
MOST = 4
"""So many refreshes count."""


@dataclass(frozen=True)
class LastArrivals:
    """The change that waits now, and those of the refreshes before it, which count for less."""

    interval: Interval

    def expected_changes(self, view: View) -> Mapping[str, Change]:
        """By source; each refresh counts half as much as the one after it."""
        if not self._counts:
            return {id: Change(inserts=GUESSED * self.rows(id)) for id in view.depends}
        return {id: self._kinds(id, self._mean(id)) for id in view.depends}

    def share(self, id: str) -> float | None:
        """Of the last refreshes, those at which a source had changed; None where there are none."""
        return self._mean(id, often=True) if self._counts else None

    def rows(self, id: str) -> float:
        """Of a source, now."""
        return float(self.interval.rows(id, NEW))

    def _mean(self, id: str, often: bool = False) -> float:
        """Rows by refresh, or how often there were any."""
        weights = [FADING**i for i in range(len(self._counts))]
        rows = [counts.get(id, 0.0) for counts in self._counts]
        amounts = [float(n > 0) for n in rows] if often else rows
        return sum(w * n for w, n in zip(weights, amounts, strict=True)) / sum(weights)

    @cached_property
    def _counts(self) -> list[dict[str, float]]:
        """Changed rows by source, of the newest refresh first."""
        view = self.interval.view
        return [self._waiting(view), *self._before(view)] if view.refreshed_at else []

    def _waiting(self, view: View) -> dict[str, float]:
        ids = [id for id in view.depends if id in view.as_of]
        return {id: float(self.interval.rows(id, CHANGE)) for id in ids}

    def _before(self, view: View) -> Iterator[dict[str, float]]:
        """Of earlier refreshes, the newest first; what was there at first did not come."""
        world = self.interval.world
        names = {world.snapshot.get(id).name: id for id in view.depends}
        events = world.house.catalog.events(relation=view.id, kind="refresh", limit=MOST - 1)
        for event in events:
            sources = event.body.get("sources") or {}
            if event.body.get("mode") == "none" or "FIRST_REFRESH" in event.body["reasons"]:
                continue
            yield {
                id: float(sources.get(name, {}).get("changed_rows", 0))
                for name, id in names.items()
            }

    def _kinds(self, id: str, rows: float) -> Change:
        """Where rows went lately, half of what comes are expected to go."""
        if self.interval.external(id) is not None:
            return Change(inserts=rows)
        waiting = self.interval.segments(id, CHANGE) if id in self.interval.view.as_of else ()
        if any(s.min_weight < 0 for s in waiting):
            return Change(inserts=rows / 2, deletes=rows / 2)
        return Change(inserts=rows)
