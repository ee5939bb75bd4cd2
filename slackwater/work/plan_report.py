"""What is planned, as data: for people to print, for machines to read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from slackwater.work.reasons import Why
from slackwater.work.tradeoff import Tradeoff


@dataclass(frozen=True)
class Coming:
    """A table, and what is expected to come to it in a period."""

    table: str
    rows: float
    expected_rows: float


@dataclass(frozen=True)
class Figures:
    """Of one view in one period: the run at the due moment, and all runs. CPU seconds are weighted
    by their prices; those of what views share are divided evenly among them."""

    final_seconds: float
    cpu_seconds: float


@dataclass(frozen=True)
class PlannedView:
    """How one view is maintained."""

    view: str
    schedule: str
    within: str | None
    wanted_seconds: float | None  # what the goal comes to
    final_seconds: float
    cpu_seconds: float
    batch_seconds: float  # if everything waits for the due moment
    batch_cpu_seconds: float
    is_met: bool
    nearest_seconds: float | None = None  # that can be met, where the goal cannot
    note: str = ""  # the same in words
    now: Figures | None = None  # as it is planned without what is supposed
    reasons: tuple[Why, ...] = ()  # why some of its operators have no better law


@dataclass(frozen=True)
class Piece:
    """A piece of one view or several that has a pace of its own."""

    piece: str
    what: str
    inputs: Mapping[str, int]  # tables and other pieces, each with how often it is read
    pace: int
    views: tuple[str, ...]
    method: str  # by which most of its runs are expected to go; empty, where nothing comes
    is_part: bool  # kept by itself; others are computed with the view
    final_seconds: float
    cpu_seconds: float
    run_with: str | None = None  # the piece that it is computed with, whose figures count for both


@dataclass(frozen=True)
class Rhythm:
    """Views whose results are due at the same moments."""

    period_seconds: float
    next_due: str
    cpu_seconds: float
    batch_cpu_seconds: float
    assumed: bool  # nothing is known of what comes: all that is there is taken for it
    tables: tuple[Coming, ...]
    views: tuple[PlannedView, ...]
    pieces: tuple[Piece, ...]
    compared: int = 1  # ways for the views to share, of which this is the best


@dataclass(frozen=True)
class Unpaced:
    """A view that is computed when it is due, and never before."""

    view: str
    schedule: str | None
    within: str | None
    reason: str
    why: str
    note: str = ""  # of a goal that cannot be met
    at: str = ""  # where the reason holds
    rewrite: str = ""  # what to do instead


@dataclass(frozen=True)
class Made:
    """A part or view that is computed anew: its rows, and what that is expected to take."""

    name: str
    what: str
    views: tuple[str, ...]
    rows: float
    cpu_seconds: float


@dataclass(frozen=True)
class StateMade:
    """A state of a view, or of a part, and the bytes that it takes, or is expected to take."""

    view: str
    state: str
    bytes: int


@dataclass(frozen=True)
class Rebuild:
    """What the catalog has to learn for a plan, and what is computed for it."""

    new_parts: tuple[Made, ...] = ()
    changed_parts: tuple[Made, ...] = ()  # at another pace, or for other views; they stay
    dropped_parts: tuple[Made, ...] = ()
    views: tuple[Made, ...] = ()  # computed anew by their next refresh
    first: tuple[Made, ...] = ()  # views without content, computed then in any case
    dropped_states: tuple[StateMade, ...] = ()  # of views that stay as they are, by their options
    built_states: tuple[StateMade, ...] = ()

    @property
    def is_nothing(self) -> bool:
        """Is everything as it is planned?"""
        parts = self.new_parts or self.changed_parts or self.dropped_parts
        return not (parts or self.views or self.dropped_states or self.built_states)


@dataclass(frozen=True)
class PlanReport:
    """What is maintained how, shared with whom, at which pace, and what that takes."""

    at: str
    options: Mapping[str, Any]
    supposing: tuple[str, ...]
    rhythms: tuple[Rhythm, ...]
    unpaced: tuple[Unpaced, ...]
    rebuild: Rebuild
    applied: bool = False
    simulation: tuple[Tradeoff, ...] | None = None

    @property
    def views(self) -> dict[str, PlannedView]:
        """Those that have paces, by name."""
        return {view.view: view for rhythm in self.rhythms for view in rhythm.views}

    def to_json(self) -> dict[str, Any]:
        """For machines."""
        return asdict(self)
