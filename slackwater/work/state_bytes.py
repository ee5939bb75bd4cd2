"""How much room a state takes: as stored, as last measured, or as others like it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from slackwater.catalog.model import Event
from slackwater.planner.outline import Candidate
from slackwater.tvr.time import NEW
from slackwater.work.room import bytes_of
from slackwater.work.upkeep import Upkeep

FILE_BYTES = 1_500
"""Of a file without rows."""
BYTES_PER_VALUE = 6.0
"""Where nothing is stored yet from which it could be told."""
ENOUGH_ROWS = 1_000
"""Of so many stored rows, their size tells that of others."""


@dataclass(frozen=True)
class StateBytes:
    """Of the states of one view, there or not, by signature; `events` are its last refreshes."""

    upkeep: Upkeep
    events: Sequence[Event]

    def stored(self, signature: str) -> float:
        """Of a state that is there, else 0."""
        known = self.upkeep.known.get(signature)
        return 0.0 if known is None else bytes_of(self.upkeep.interval.segments(known.id, NEW))

    def of(self, signature: str, candidate: Candidate) -> float:
        """What it takes, or would take."""
        known = self.stored(signature) or self._remembered.get(signature)
        values = candidate.rows * (len(candidate.state.schema) + 1)
        return known or FILE_BYTES + values * self._per_value

    @cached_property
    def _remembered(self) -> dict[str, float]:
        """By signature, what states took when they were last written."""
        found: dict[str, float] = {}
        for event in self.events:
            for state in (event.body.get("states") or {}).get("measured", ()):
                found.setdefault(state["signature"], state["bytes"])
        return found

    @cached_property
    def _per_value(self) -> float:
        """As of the states that are stored, or else of the sources."""
        interval = self.upkeep.interval
        states = [(s.id, len(s.schema)) for s in self.upkeep.known.values()]
        sources = [
            (id, len(interval.world.snapshot.get(id).schema))
            for id in self.upkeep.view.depends
            if interval.external(id) is None
        ]
        for stored in (states, sources):
            found = [(interval.segments(id, NEW), width + 1) for id, width in stored]
            rows = sum(s.rows for segments, _ in found for s in segments)
            if rows >= ENOUGH_ROWS:
                size = sum(s.bytes for segments, _ in found for s in segments)
                return size / sum(s.rows * width for segments, width in found for s in segments)
        return BYTES_PER_VALUE
