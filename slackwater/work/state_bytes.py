"""How much room a state takes: as stored, as last measured, or as others like it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

from slackwater.catalog.model import Event, Segment
from slackwater.planner.outline import Candidate
from slackwater.tvr.time import NEW
from slackwater.work.room import bytes_of
from slackwater.work.upkeep import Upkeep
from slackwater.work.world import World

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
        return _per_value(states, sources, lambda id: interval.segments(id, NEW))


def bytes_of_states(world: World) -> Callable[[float, int], float]:
    """What a state of so many rows and columns would take, as others take that are stored."""
    snapshot = world.snapshot
    views = (*snapshot.views(), *snapshot.parts())
    states = [(s.id, len(s.schema)) for view in views for s in snapshot.states(view.id)]
    tables = [(t.id, len(t.schema)) for t in snapshot.tables() if t.source == "managed"]
    per_value = _per_value(states, tables, snapshot.segments)
    return lambda rows, columns: FILE_BYTES + rows * (columns + 1) * per_value


def _per_value(
    states: Sequence[tuple[str, int]],
    sources: Sequence[tuple[str, int]],
    segments: Callable[[str], Sequence[Segment]],
) -> float:
    """Bytes of a value of what is stored, by id and columns: of states, or else of sources."""
    for stored in (states, sources):
        found = [(segments(id), columns + 1) for id, columns in stored]
        rows = sum(s.rows for own, _ in found for s in own)
        if rows >= ENOUGH_ROWS:
            size = sum(s.bytes for own, _ in found for s in own)
            return size / sum(s.rows * width for own, width in found for s in own)
    return BYTES_PER_VALUE
