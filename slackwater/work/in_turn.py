"""Views that are due at one moment are served one after the other: when each is there then.

Those that share a piece, or read each other, are refreshed in one call, the others in calls of
their own, that one first which is allowed least (`service/turns.py`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import inf

from slackwater.timing.texts import in_units, rounded_up
from slackwater.work.pacing import Paced


@dataclass(frozen=True)
class Turn:
    """When a view's result is there, and which views are served before it."""

    seconds: float
    after: tuple[str, ...]

    def note(self, within: str, wanted: float) -> str:
        """Of a goal that would be met if nobody else was due."""
        if not self.after or self.seconds <= wanted:
            return ""
        return (
            f"within = '{within}' cannot be met after {', '.join(self.after)}: due at the same "
            f"moment and served before it, about {in_units(rounded_up(self.seconds))} in all."
        )


def turns(paced: Paced) -> dict[str, Turn]:
    """By view, if a clock says when they are due."""
    if paced.rhythm.rows:
        return {}
    found: dict[str, Turn] = {}
    seconds, before = 0.0, list[str]()
    for family in sorted(_families(paced), key=lambda own: (_least(paced, own), sorted(own))):
        seconds += _seconds(paced, family)
        found |= dict.fromkeys(family, Turn(seconds, tuple(before)))
        before += sorted(family)
    return found


def _families(paced: Paced) -> Iterator[set[str]]:
    left = [set(subplan.queries) for subplan in paced.dag.subplans]
    while left:
        own = left.pop()
        while touching := [other for other in left if other & own]:
            left = [other for other in left if not other & own]
            own.update(*touching)
        yield own


def _least(paced: Paced, family: set[str]) -> float:
    return min(paced.found.wanted.get(name, inf) for name in family)


def _seconds(paced: Paced, family: set[str]) -> float:
    """Of the last runs of all that it needs."""
    own = (s.number for s in paced.dag.subplans if s.queries & family)
    return sum(paced.search.cost(number, paced.found.paces).final for number in own)
