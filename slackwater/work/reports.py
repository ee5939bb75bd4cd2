"""What a refresh did, and what it could do: values that others read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from slackwater.catalog.model import Event
from slackwater.planner.choice import BY_CHANGES, FULL, HIGHER_ORDER, PLAIN
from slackwater.planner.steps import StepReport
from slackwater.tvr.maintenance import Maintenance
from slackwater.work.choosing import Choice
from slackwater.work.reasons import Why, whys
from slackwater.work.upkeep import Upkeep


@dataclass
class RefreshReport:
    """What a refresh of one view did."""

    view: str
    version: int
    mode: str  # "full", "incremental", or "none" where nothing had changed
    reasons: list[str]
    rows: int = 0
    seconds: float = 0.0
    planning_seconds: float = 0.0  # of them, up to the choice of a way
    steps: list[StepReport] = field(default_factory=list)
    operators: list[dict[str, Any]] = field(default_factory=list)  # what was done where, and why
    choice: Choice | None = None  # the ways there were, and what they were expected to cost
    states: dict[str, Any] | None = None  # what is kept of the view, where it has a budget
    turnover: dict[str, Any] | None = None  # what came, and how many rows changed by that
    places: dict[str, str] = field(default_factory=dict)  # of reasons, in the plan

    @property
    def whys(self) -> list[Why]:
        """The reasons with what they mean, where they hold, and what to do instead."""
        return whys(self.reasons, self.places)

    @property
    def engine(self) -> str:
        """Where it ran; a comma where both engines took part, empty where none did."""
        return ", ".join(sorted({s.engine for s in self.steps}))

    @property
    def method(self) -> str:
        """By which method, where the one that was chosen was gone to its end; else what it did."""
        chosen = "" if self.choice is None else self.choice.chosen.method
        followed = self.mode == "incremental" and chosen in (*BY_CHANGES, HIGHER_ORDER)
        anew = self.mode == "full" and chosen in (FULL, PLAIN)
        return chosen if followed or anew else self.mode

    @property
    def cpu_seconds(self) -> float:
        """CPU time over all steps."""
        return sum(s.cpu_seconds for s in self.steps)


Telling = Callable[[Sequence[RefreshReport]], Iterable[Event]]
"""What else is to be written down of a refresh, in its commit."""


@dataclass(frozen=True)
class Ways:
    """How a view would be refreshed now, and how else; why it must be computed anew. Without a
    plan, it always is."""

    upkeep: Upkeep
    plan: Maintenance | None
    choice: Choice
    reasons: list[str]

    @property
    def whys(self) -> list[Why]:
        """Why it must be computed anew."""
        return self._whys(self.reasons)

    @property
    def whys_of_others(self) -> list[Why]:
        """The same, and why not in other ways."""
        others = [code for way in self.choice.candidates for code in way.reasons]
        return self._whys([*self.reasons, *others])

    def _whys(self, codes: Sequence[str]) -> list[Why]:
        return whys(codes, {code: self.upkeep.place(code) for code in codes})
