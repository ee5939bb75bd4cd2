"""What is remembered of the states that views keep under a budget, and who tells what comes."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from slackwater.catalog.model import View
from slackwater.stats.rows import Change


class Arrivals(Protocol):
    """Tells what comes."""

    def expected_changes(self, view: View) -> Mapping[str, Change]:
        """By source, what is expected to have changed at the next refresh of a view."""


@dataclass
class Keeper:
    """Of one open warehouse."""

    arrivals: Arrivals | None = None
    """Without one, what came at the last refreshes is expected again."""
    joined_parts: bool = True
    """May parts of joins be kept, or only what a refresh by changes keeps by itself?"""
    everything: bool = False
    """Is every state kept for which there is room, whether it pays or not?"""
    decided: dict[str, tuple[Hashable, frozenset[str]]] = field(default_factory=dict)
    """By view, from what it was decided last, and the signatures of the states to keep."""
