"""What is remembered of the states that views keep under a budget, and who tells what comes."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from slackwater.catalog.model import View
from slackwater.stats.rows import Change
from slackwater.tvr.methods.divided import Injected

ALIKE, MOST_ALIKE = 2.0, 64.0
"""Sizes up to so many times each other lead to the same decision, at first; and at most."""


class Arrivals(Protocol):
    """Tells what comes."""

    def expected_changes(self, view: View) -> Mapping[str, Change]:
        """By source, what is expected to have changed at the next refresh of a view."""


@dataclass(frozen=True)
class Decision:
    """Which states a view keeps, by signature, and from what that was decided: what has to be
    equal, and sizes that have to be alike."""

    states: frozenset[str]
    equal: Hashable
    sizes: tuple[float, ...]
    seconds: float = 0.0  # that the next refresh is expected to take with them
    seconds_without: float = 0.0  # and with no states at all
    factor: float = ALIKE

    def holds(self, equal: Hashable, sizes: Sequence[float]) -> bool:
        """Would it be decided again in the same way, as far as one can tell at a glance?"""
        return self.equal == equal and all(
            (1 + a) / (1 + b) <= self.factor and (1 + b) / (1 + a) <= self.factor
            for a, b in zip(self.sizes, sizes, strict=True)
        )

    def after(self, before: Decision | None) -> Decision:
        """A decision that came out as the one before is not looked at again so soon."""
        same = before is not None and before.equal == self.equal and before.states == self.states
        factor = min(MOST_ALIKE, before.factor**2) if same and before else ALIKE
        return replace(self, factor=factor)


@dataclass
class Keeper:
    """Of one open warehouse."""

    arrivals: Arrivals | None = None
    """Without one, what is predicted from the past."""
    injected: Injected = Injected.ALL
    """Which parts of joins may be kept, besides what a refresh by changes keeps by itself."""
    everything: bool = False
    """Is every state kept for which there is room, whether it pays or not?"""
    decided: dict[tuple[str, bool], Decision] = field(default_factory=dict)
    """By view, the last one for a refresh by changes, and for one that computes all anew."""
