"""What a scheduler says of what it does, for people and for machines; and all of it in a line."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

START, STOP = "start", "stop"
CATCH_UP = "catch up"  # results that fell due while nobody was there
REFRESHED = "refreshed"
MISSED = "missed"  # a result that came too late
AT_RISK = "at risk"  # a goal that will be missed if nothing changes
EARLY = "early"  # a unit brought along before a result is due
FAILED = "failed"
HELD = "held"  # by another process: looked at again soon
LOUD = (MISSED, AT_RISK, FAILED)


@dataclass(frozen=True)
class Told:
    """One thing that was done or found."""

    kind: str
    at: datetime
    text: str
    view: str | None = None
    body: Mapping[str, Any] = field(default_factory=dict, hash=False)

    def to_json(self) -> dict[str, Any]:
        """As plain data."""
        said = {"kind": self.kind, "at": self.at.isoformat(), "view": self.view, "text": self.text}
        return said | dict(self.body)


Listener = Callable[[Told], None]


@dataclass
class Summary:
    """What a scheduler has done."""

    refreshed: int = 0
    kept: int = 0
    missed: int = 0
    at_risk: int = 0
    failed: int = 0
    early: int = 0
    cpu_seconds: float = 0.0
    cost: float = 0.0  # CPU seconds times their price

    def spend(self, cpu_seconds: float, price: float) -> None:
        """Work was done."""
        self.cpu_seconds += cpu_seconds
        self.cost += cpu_seconds * price

    def __str__(self) -> str:
        said = [_counted(self.refreshed, "refresh", "refreshes")]
        counts = (
            (self.early, "early run", "early runs"),
            (self.kept, "goal kept", "goals kept"),
            (self.missed, "goal missed", "goals missed"),
            (self.failed, "failure", "failures"),
        )
        said += [_counted(*entry) for entry in counts if entry[0]]
        return f"{', '.join(said)}; {self.cpu_seconds:.2f} CPU s"


def _counted(number: int, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}"
