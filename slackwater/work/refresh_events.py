"""The event of a refresh: which ways there were and what they were expected to cost, which was
taken, what it took, and why."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from slackwater.catalog.model import Run, View
from slackwater.planner.steps import StepReport
from slackwater.sources import parquet
from slackwater.timing import parse_prices
from slackwater.work.parts import views_of
from slackwater.work.reports import RefreshReport
from slackwater.work.waiting import marks
from slackwater.work.world import World


def body(world: World, run: Run, read_at: str, view: View, report: RefreshReport) -> dict[str, Any]:
    """What is written down of one view; of a part, also which views it was for."""
    choice = report.choice
    return {
        **({"views": list(views_of(view))} if view.part else {}),
        "price": _price(world, read_at),
        "run": run.id,
        "read_commit": world.snapshot.commit,
        "read_at": read_at,
        "arrived_rows": marks(world, view),
        "view": view.name,
        "version": report.version,
        "mode": report.mode,
        "method": report.method,
        "candidates": [] if choice is None else [c.to_json() for c in choice.candidates],
        "chosen": _chosen(world, report),
        "measured": _measured(report),
        "reasons": report.reasons,
        "places": report.places,
        "operators": report.operators,
        "states": report.states,
        "turnover": report.turnover,
        "sources": _sizes(world, view),
        "rows": report.rows,
        "seconds": report.seconds,
        "planning_seconds": report.planning_seconds,
        "steps": [s.to_json() for s in report.steps],
    }


def _price(world: World, at: str) -> float:
    """Of a second of work that begins at a moment."""
    prices = parse_prices(world.snapshot.settings.get("prices", "1"))
    return prices.at(datetime.fromisoformat(at))


def _chosen(world: World, report: RefreshReport) -> dict[str, Any] | None:
    choice, engine = report.choice, report.engine
    if choice is None:
        return None
    way = report.view, choice.chosen.method, engine
    return choice.to_json(engine, world.house.experience.is_warm(*way))


def _measured(report: RefreshReport) -> dict[str, Any]:
    """What all steps took together, to stand beside what was expected."""

    def total(amounts: Iterable[float]) -> float:
        return round(sum(amounts), 6)

    steps: list[StepReport] = report.steps
    return {
        "engine": report.engine,
        "cpu_seconds": total(s.cpu_seconds for s in steps),
        "seconds": total(s.seconds for s in steps),
        "rows": sum(s.rows for s in steps),
        "bytes": sum(s.bytes for s in steps),
    }


def _sizes(world: World, view: View) -> dict[str, Any]:
    """What each source holds, and how much of it is new."""
    return {world.snapshot.get(id).name: _size(world, view, id) for id in view.depends}


def _size(world: World, view: View, id: str) -> dict[str, int]:
    table = world.external(id)
    if table is not None:
        files = world.files(table)
        seen = {tuple(file) for file in view.as_of.get(id, ())}
        new = [f for f in files if tuple(f.to_json()) not in seen]
        return {
            "bytes": sum(f.bytes for f in files),
            "rows": parquet.rows_of(files),
            "changed_rows": parquet.rows_of(new),
        }
    segments = world.segments(id)
    known = view.as_of.get(id, 0)
    return {
        "bytes": sum(s.bytes for s in segments),
        "rows": sum(s.rows for s in segments),
        "changed_rows": sum(s.rows for s in segments if s.version > known),
    }
