"""Refreshing views: a view and every view it reads, to one version, in one commit.

    bind → plan → compile → run → commit

Until the incremental engine lands, the plan of every refresh is one recompute per view.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from slackwater.algebra.relation import Relation
from slackwater.catalog.ids import timestamp
from slackwater.catalog.model import (
    Event,
    Exists,
    FinishRun,
    ReplaceSegments,
    Run,
    SetAsOf,
    Table,
    Update,
    VersionIs,
    View,
    WriteEvent,
)
from slackwater.engine.garbage import collect_garbage
from slackwater.engine.publish import publish_view
from slackwater.engine.runner import measurements
from slackwater.errors import StateError, UserError
from slackwater.planner.steps import StepReport, WriteSegments
from slackwater.sources import parquet
from slackwater.sql import bind
from slackwater.sql.tables import renamed, unordered
from slackwater.tvr import zset
from slackwater.work.house import House
from slackwater.work.world import Pending, World

FULL_ONLY = "FULL_ONLY"
REASONS = {
    FULL_ONLY: "this release refreshes in full",
    "FULL_REQUESTED": "a full refresh was asked for",
    "SOURCE_ROWS_GONE": "files of an external table vanished, and their rows with them",
    "NOT_DETERMINISTIC": "the query may give another answer for the same data",
}
"""Reason codes, stable, with what they mean."""


@dataclass
class RefreshReport:
    """What a refresh of one view did."""

    view: str
    version: int
    mode: str  # "full", or "none" where nothing had changed
    reasons: list[str]
    rows: int = 0
    seconds: float = 0.0
    steps: list[StepReport] = field(default_factory=list)

    @property
    def engine(self) -> str:
        """Where it ran; a comma where both engines took part, empty where none did."""
        return ", ".join(sorted({s.engine for s in self.steps}))

    @property
    def cpu_seconds(self) -> float:
        """CPU time over all steps."""
        return sum(s.cpu_seconds for s in self.steps)


def refresh(house: House, names: Sequence[str], full: bool) -> list[RefreshReport]:
    """Bring views, and the views they read, to the newest version of their tables."""
    wanted = _order(World(house, house.catalog.snapshot(), defining=True), names)
    if not wanted:
        return []
    with (
        house.lease(*(v.id for v in wanted)) as lease,
        house.catalog.running("refresh", lease) as run,
        house.catalog.reading() as snapshot,
    ):
        work = _Work(World(house, snapshot, Pending(), defining=True), run, full, set(names))
        with work.world.steady_files():
            for view in _order(work.world, names):
                work.refresh(view)
        house.catalog.commit([run.requirement, *lease.requirements, *work.requires], work.updates())
    publish(house, [v.id for v in wanted])
    collect_garbage(house.catalog, house.storage)
    return work.reports


def publish(house: House, ids: Sequence[str]) -> None:
    """Plain Parquet of the newest versions, for other tools."""
    with house.catalog.reading() as snapshot:
        for id in ids:
            if id in snapshot:
                view = snapshot.get(id)
                assert isinstance(view, View)
                try:
                    publish_view(house.storage, view, snapshot.segments(id), snapshot.commit)
                except StateError as error:
                    raise _not_published(view, error) from error


def _not_published(view: View, error: StateError) -> StateError:
    return StateError(
        f"View '{view.name}' is refreshed and committed, but not published: {error.message}",
        code=error.code,
        hint="SELECT sees the new version. When the cause is gone, the next opening of the "
        "warehouse publishes it.",
    )


def _order(world: World, names: Sequence[str]) -> list[View]:
    """The views and all they read, each after what it reads."""
    done: dict[str, View] = {}

    def visit(view: View) -> None:
        if view.id in done:
            return
        for id in view.depends:
            source = world.snapshot.get(id)
            if isinstance(source, View):
                visit(source)
        done[view.id] = view

    for name in names:
        visit(world.view(name))
    return list(done.values())


def definition(world: World, view: View) -> tuple[Relation, dict[str, str]]:
    """A view's relation, and the reason codes met in binding it."""
    context = world.context()
    relation = unordered(bind.bind(view.sql, context))
    if "columns" in view.options:
        relation = renamed(relation, view.options["columns"].split("\n"), view.name)
    return relation, context.reasons


class _Work:
    """One run over some views."""

    def __init__(self, world: World, run: Run, full: bool, named: set[str]) -> None:
        self.world = world
        self.run = run
        self.full = full
        self.named = {n.lower() for n in named}
        self.reports: list[RefreshReport] = []
        self.requires: list[Any] = []
        self._updates: list[Update] = []
        self._versions: dict[str, int] = {}

    def updates(self) -> list[Update]:
        """What the commit changes."""
        steps = [s for r in self.reports for s in r.steps]
        return [*self._updates, FinishRun(self.run.id, measurements(steps))]

    def _version(self, id: str) -> int:
        return self._versions.get(id, self.world.snapshot.get(id).version)

    def refresh(self, view: View) -> None:
        """One view, from sources at this run's versions."""
        started = time.perf_counter()
        relation, met = definition(self.world, view)
        seen = self.world.seen(view.depends, self._version)
        reasons = self._reasons(view, met)
        if not self._is_due(view, seen, reasons):
            report = RefreshReport(view.name, view.version, "none", [])
        else:
            _refuse_strict(view, reasons)
            report = self._recompute(view, relation, reasons)
        report.seconds = time.perf_counter() - started
        self._tell(view, report, seen)

    def _is_due(self, view: View, seen: dict[str, Any], reasons: list[str]) -> bool:
        if view.refreshed_at is None or seen != dict(view.as_of):
            return True
        return "FULL_REQUESTED" in reasons or "NOT_DETERMINISTIC" in reasons

    def _reasons(self, view: View, met: dict[str, str]) -> list[str]:
        reasons = [FULL_ONLY, *met]
        if self.full and view.name.lower() in self.named:
            return ["FULL_REQUESTED", *met]
        for id in view.depends:
            source = self.world.snapshot.get(id)
            if isinstance(source, Table) and source.source == "parquet" and id in view.as_of:
                before = view.as_of[id]
                if parquet.compare(before, self.world.files(source), source.name, view.name).gone:
                    reasons.append("SOURCE_ROWS_GONE")
        return list(dict.fromkeys(reasons))

    def _recompute(self, view: View, relation: Relation, reasons: list[str]) -> RefreshReport:
        runner = self.world.house.runner
        before = len(runner.reports)
        step = WriteSegments(f"recompute {view.name}", zset.with_weight(relation), view.id, True)
        segments = runner.run(step, self.run, self.world.sources(relation))
        steps = runner.reports[before:]
        del runner.reports[before:]
        self.world.pending.replace(view.id, segments)
        self._versions[view.id] = view.version + 1
        self._updates.append(ReplaceSegments(view.id, segments))
        rows = sum(s.rows for s in segments)
        return RefreshReport(view.name, view.version + 1, "full", reasons, rows, 0.0, steps)

    def _tell(self, view: View, report: RefreshReport, seen: dict[str, Any]) -> None:
        self.reports.append(report)
        self.requires += [VersionIs(view.id, view.version)]
        self.requires += [Exists(id) for id in view.depends]
        if report.mode != "none":
            self._updates.append(SetAsOf(view.id, seen, timestamp()))
        self._updates.append(
            WriteEvent(Event("refresh", view.id, timestamp(), self._body(view, report)))
        )

    def _body(self, view: View, report: RefreshReport) -> dict[str, Any]:
        sizes = {}
        for id in view.depends:
            source = self.world.snapshot.get(id)
            if isinstance(source, Table) and source.source == "parquet":
                sizes[source.name] = {"bytes": sum(f.bytes for f in self.world.files(source))}
            else:
                segments = self.world.segments(id)
                known = view.as_of.get(id, 0)
                sizes[source.name] = {
                    "bytes": sum(s.bytes for s in segments),
                    "rows": sum(s.rows for s in segments),
                    "changed_rows": sum(s.rows for s in segments if s.version > known),
                }
        return {
            "run": self.run.id,
            "read_commit": self.world.snapshot.commit,
            "view": view.name,
            "version": report.version,
            "mode": report.mode,
            "candidates": [{"method": "recompute", "applicable": True}],
            "chosen": "recompute" if report.mode == "full" else None,
            "reasons": report.reasons,
            "sources": sizes,
            "rows": report.rows,
            "seconds": report.seconds,
            "steps": [s.to_json() for s in report.steps],
        }


def _refuse_strict(view: View, reasons: list[str]) -> None:
    if view.options.get("refresh", "").replace(" ", "").lower() == "incrementalstrict":
        raise UserError(
            f"View '{view.name}' must be refreshed incrementally, and cannot be: "
            f"{', '.join(reasons)}.",
            code="NOT_INCREMENTAL",
            hint="Set refresh = 'auto' to allow a full refresh.",
        )
