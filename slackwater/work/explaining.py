"""EXPLAIN: how a view is refreshed or a query runs, and why so."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any

from slackwater.algebra import explain as printer
from slackwater.algebra.relation import Relation
from slackwater.catalog.model import Table, View
from slackwater.errors import UserError
from slackwater.planner.placement import Placement
from slackwater.sql import bind
from slackwater.work.alternatives import alternatives
from slackwater.work.forecast import Forecast, forecast
from slackwater.work.house import House
from slackwater.work.meaning import definition
from slackwater.work.obstacles import Laws, is_always_full, laws
from slackwater.work.reasons import Why, why, whys
from slackwater.work.refreshing import ways
from slackwater.work.room import Room, budget_of, stored_room
from slackwater.work.telling import is_fresh
from slackwater.work.world import World

_QUERY_WORDS = ("select", "with", "values", "(", "from")


@dataclass(frozen=True)
class _Explained:
    """A view's query, or a query by itself, with what was decided about it."""

    world: World
    relation: Relation
    reasons: list[Why]
    view: View | None
    placement: Placement
    upkeep: Laws | None = None
    next: Forecast | None = None
    kept: Room | None = None  # where the view has a budget

    def text(self) -> str:
        """For people."""
        lines = self._view_lines(self.view) if self.view is not None else []
        lines += [line for reason in self.reasons for line in reason.lines()]
        lines.append(f"Engine: {self.placement.engine} ({self.placement.reason})")
        for name, rows, size in _sizes(self.world, self.relation):
            lines.append(f"Input:  {name}: {rows} rows, {size:,} bytes")
        lines.append("Plan:")
        lines += ["  " + line for line in printer.explain(self.relation).splitlines()]
        return "\n".join(lines)

    def _view_lines(self, view: View) -> list[str]:
        options = {k: v for k, v in view.options.items() if k != "columns"}
        shown = ", ".join(f"{k} = '{v}'" for k, v in options.items())
        return [
            f"View {view.name}, version {view.version}" + (f" ({shown})" if shown else ""),
            f"Fresh: {'yes' if is_fresh(self.world, view) else 'no'}",
            *self._method_lines(),
        ]

    def _method_lines(self) -> list[str]:
        if self.upkeep is None:
            return ["Method: recompute"]
        lines = ["Method: incremental", *(self.next.lines() if self.next else ())]
        if self.kept is not None:
            lines += self.kept.lines()
        else:
            lines += [f"Keeps:  {s.name}" for s in self.upkeep.plan.kept]
        for node, note in self.upkeep.notes.items():
            lines.append(f"Law:    {note.law}: {printer.describe(node)}")
            if note.reason:
                lines += why(note.reason, printer.describe(node)).lines()
        return lines

    def json(self) -> dict[str, Any]:
        """For machines."""
        view, engine = self.view, self.placement.engine
        laws = self.upkeep.reasons if self.upkeep else []
        reasons = [asdict(reason) for reason in [*self.reasons, *laws]]
        operators = [
            {"operator": printer.describe(n), "law": note.law, "reason": note.reason or None}
            for n, note in (self.upkeep.notes.items() if self.upkeep else ())
        ]
        return {
            "view": view.name if view else None,
            "version": view.version if view else None,
            "fresh": is_fresh(self.world, view) if view else None,
            "method": ("incremental" if self.upkeep else "recompute") if view else None,
            "operators": operators,
            "states": [s.name for s in self.upkeep.plan.kept] if self.upkeep else [],
            "budget": self.kept.to_json() if self.kept else None,
            "next": self.next.to_json() if self.next else None,
            "reasons": reasons,
            "engine": engine,
            "engine_reason": self.placement.reason,
            "inputs": [
                {"name": name, "rows": rows, "bytes": size}
                for name, rows, size in _sizes(self.world, self.relation)
            ],
            "plan": printer.to_json(self.relation),
            "sql": self.world.house.runner.statement(self.relation, {}, engine),
        }


def explain(house: House, what: str, format: str = "text", others: bool = False) -> str:
    """How a view is refreshed, or how a query runs; with `others`, every way to refresh a view."""
    if format not in ("text", "json"):
        raise UserError(
            f"format = '{format}' is not known.", code="BAD_OPTION", hint="Use 'text' or 'json'."
        )
    text = what.strip().rstrip(";")
    world = World(house, house.catalog.snapshot(), defining=True)
    named = world.snapshot.find(what) or world.snapshot.find(_unquoted(text))
    if named is None and text.lower().startswith(_QUERY_WORDS):
        if others:
            raise UserError(
                "A query has no alternatives: it runs where its size says.",
                code="NOT_A_VIEW",
                hint="Name a view: EXPLAIN ALTERNATIVES v.",
            )
        context = world.context()
        relation, view = bind.bind(text, context), None
        reasons = context.reasons
    else:
        view = world.view(named.name if named else _unquoted(text))
        if others:
            return alternatives(house, view, format)
        relation, reasons = definition(world, view)
    placement = house.runner.place([relation], world.sources(relation), load=view is not None)
    upkeep = expected = kept = None
    told = whys(reasons, reasons)
    if view is not None and not is_always_full(world, view, reasons):
        upkeep = laws(relation, view)
        kept, budget = None, budget_of(world, view)
        if not is_fresh(world, view):
            found = ways(house, view)
            told += [w for w in found.whys if w.code not in reasons]
            expected = forecast(found, placement.engine)
            if found.upkeep.keeping is not None:
                kept = found.upkeep.keeping.room(found.choice.chosen.method)
        elif budget is not None:
            kept = stored_room(world, view, budget)
    elif view is not None and "NOT_DETERMINISTIC" not in reasons:
        told.append(why("FULL_BY_OPTION", printer.gist(relation)))
    explained = _Explained(world, relation, told, view, placement, upkeep, expected, kept)
    return json.dumps(explained.json(), indent=2) if format == "json" else explained.text()


def _unquoted(text: str) -> str:
    """A name as it is, of one that may stand in backticks."""
    if len(text) > 1 and text[0] == text[-1] == "`":
        return text[1:-1].replace("``", "`")
    return text


def _sizes(world: World, relation: Relation) -> list[tuple[str, str, int]]:
    found = []
    for scan in dict.fromkeys(relation.scans()):
        source = world.snapshot.get(scan.source)
        if isinstance(source, Table) and source.source == "parquet":
            files = world.files(source)
            found.append((scan.name, "?", sum(f.bytes for f in files)))
        else:
            segments = world.segments(scan.source)
            rows = sum(s.rows for s in segments)
            found.append((scan.name, f"{rows:,}", sum(s.bytes for s in segments)))
    return found
