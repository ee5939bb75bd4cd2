"""What is run early: units of views, each at a pace of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from slackwater.catalog.model import View
from slackwater.errors import InternalError
from slackwater.work.reports import RefreshReport


@dataclass(frozen=True)
class Unit:
    """A part of one view or several that is brought along before a result is due.

    At pace k it is run k times per shortest due interval of its views, whenever another 1/k of the
    rows expected in it has come; the last of these runs is the refresh at the due moment itself.
    """

    id: str
    name: str
    pace: int
    views: tuple[str, ...]  # names
    tables: tuple[str, ...] = ()  # ids of those whose rows count; none: all that its views read
    seconds: float = 0.0  # that a run is expected to take, before any was measured

    def __post_init__(self) -> None:
        if self.pace < 1 or not self.views:
            raise InternalError(f"unit {self.name} has pace {self.pace} and views {self.views}")


class Paces(Protocol):
    """Who knows what is worth running early."""

    def units(self, now: datetime) -> Sequence[Unit]:
        """What there is, planned anew when views or what is expected to come have changed."""

    def advance(self, units: Sequence[Unit]) -> Sequence[RefreshReport]:
        """Bring some along to what their tables hold now. No result is published by it."""


class AllAtOnce:
    """Every view is one unit that is run when its result is due, and never before."""

    def __init__(self, views: Callable[[], Sequence[View]] = tuple) -> None:
        self._views = views

    def units(self, now: datetime) -> Sequence[Unit]:
        """One for each view."""
        return [Unit(view.id, view.name, 1, (view.name,)) for view in self._views()]

    def advance(self, units: Sequence[Unit]) -> Sequence[RefreshReport]:
        """There is nothing to bring along."""
        return []
