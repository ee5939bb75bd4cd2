"""What EXPLAIN tells: one value, for people as lines and for machines as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from slackwater.algebra import explain as printer
from slackwater.algebra.relation import Relation
from slackwater.planner.placement import Placement
from slackwater.work.coming_runs import NOW, ComingRun
from slackwater.work.reasons import Why
from slackwater.work.room import Room


@dataclass(frozen=True)
class Input:
    """A table, view or part that is read."""

    name: str
    rows: int
    bytes: int

    def line(self) -> str:
        """For people."""
        return f"Input:  {self.name}: {self.rows:,} rows, {self.bytes:,} bytes"


@dataclass(frozen=True)
class Law:
    """By which law an operator's change is computed, and why not by a better one."""

    operator: str
    law: str
    reason: str | None

    def line(self) -> str:
        """For people."""
        return f"Law:    {self.law}: {self.operator}"


@dataclass(frozen=True)
class LastRefresh:
    """The newest refresh that did anything: what it was expected to take beside what it took."""

    at: str
    version: int
    method: str
    engine: str
    cpu_seconds: float
    seconds: float
    expected_cpu_seconds: float | None
    expected_seconds: float | None
    reasons: tuple[str, ...]

    def line(self) -> str:
        """For people."""
        took = f"{self.cpu_seconds:.3f} CPU s, {self.seconds:.3f} s"
        if self.expected_cpu_seconds is not None and self.expected_seconds is not None:
            cpu, seconds = self.expected_cpu_seconds, self.expected_seconds
            took += f"; expected {cpu:.3f} CPU s, {seconds:.3f} s"
        at = self.at[:19].replace("T", " ")
        where = f" on {self.engine}" if self.engine else ""
        why = f" [{', '.join(self.reasons)}]" if self.reasons else ""
        return f"Last:   {self.method}{where} at {at}, version {self.version}: {took}{why}"


@dataclass(frozen=True)
class ExplainedView:
    """How one view is kept fresh."""

    name: str
    version: int
    options: Mapping[str, str]
    fresh: bool
    method: str  # expected of the next refresh
    last: LastRefresh | None
    runs: tuple[ComingRun, ...]
    states: tuple[str, ...]
    kept: Room | None  # where the view has a budget
    laws: tuple[Law, ...]

    @property
    def next(self) -> Any:
        """The view's own step, were it refreshed now; None where nothing waits."""
        now = [run.steps for run in self.runs if run.when == NOW]
        own = [step for steps in now for step in steps if step.of == self.name]
        return asdict(own[0]) if own else None

    def lines(self) -> list[str]:
        """For people."""
        shown = ", ".join(f"{k} = '{v}'" for k, v in self.options.items())
        kept = [f"Keeps:  {state}" for state in self.states]
        return [
            f"View {self.name}, version {self.version}" + (f" ({shown})" if shown else ""),
            f"Fresh: {'yes' if self.fresh else 'no'}",
            f"Method: {self.method} (expected of the next refresh)",
            *([self.last.line()] if self.last is not None else []),
            *(line for run in self.runs for line in run.lines()),
            *(kept if self.kept is None else self.kept.lines()),
            *(law.line() for law in self.laws),
        ]


@dataclass(frozen=True)
class Explained:
    """A view's query, or a query by itself, with what was decided about it."""

    relation: Relation
    reasons: tuple[Why, ...]
    placement: Placement
    inputs: tuple[Input, ...]
    sql: str
    view: ExplainedView | None = None

    def lines(self) -> list[str]:
        """For people."""
        return [
            *(self.view.lines() if self.view is not None else []),
            *(line for reason in self.reasons for line in reason.lines()),
            f"Engine: {self.placement.engine} ({self.placement.reason})",
            *(source.line() for source in self.inputs),
            "Plan:",
            *("  " + line for line in printer.explain(self.relation).splitlines()),
        ]

    def to_json(self) -> dict[str, Any]:
        """For machines."""
        view = self.view
        return {
            "view": view and view.name,
            "version": view and view.version,
            "options": view and dict(view.options),
            "fresh": view and view.fresh,
            "method": view and view.method,
            "last": view and view.last and asdict(view.last),
            "runs": [run.to_json() for run in view.runs] if view else [],
            "next": view and view.next,
            "states": list(view.states) if view else [],
            "budget": view and view.kept and view.kept.to_json(),
            "operators": [asdict(law) for law in view.laws] if view else [],
            "reasons": [asdict(reason) for reason in self.reasons],
            "engine": self.placement.engine,
            "engine_reason": self.placement.reason,
            "inputs": [asdict(source) for source in self.inputs],
            "plan": printer.to_json(self.relation),
            "sql": self.sql,
        }
