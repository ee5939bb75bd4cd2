"""EXPLAIN: how a view is refreshed or a query runs, and why so."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from slackwater.algebra import explain as printer
from slackwater.algebra.relation import Relation
from slackwater.catalog.model import Table, View
from slackwater.errors import UserError
from slackwater.planner.placement import Placement
from slackwater.sql import bind
from slackwater.work.house import House
from slackwater.work.refreshing import FULL_ONLY, REASONS, definition
from slackwater.work.telling import is_fresh
from slackwater.work.world import World

_QUERY_WORDS = ("select", "with", "values", "(", "from")


@dataclass(frozen=True)
class _Explained:
    """A view's query, or a query by itself, with what was decided about it."""

    world: World
    relation: Relation
    reasons: dict[str, str]
    view: View | None
    placement: Placement

    def text(self) -> str:
        """For people."""
        lines = self._view_lines(self.view) if self.view is not None else []
        for code, at in self.reasons.items():
            lines.append(f"Reason: [{code}] {REASONS.get(code, 'Spark runs it as written')}: {at}")
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
            f"Method: recompute [{FULL_ONLY}] {REASONS[FULL_ONLY]}",
        ]

    def json(self) -> dict[str, Any]:
        """For machines."""
        view, engine = self.view, self.placement.engine
        reasons = [{"code": c, "at": at} for c, at in self.reasons.items()]
        if view is not None:
            reasons.append({"code": FULL_ONLY, "at": view.name})
        return {
            "view": view.name if view else None,
            "version": view.version if view else None,
            "fresh": is_fresh(self.world, view) if view else None,
            "method": "recompute" if view else None,
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


def explain(house: House, what: str, format: str = "text") -> str:
    """How a view is refreshed, or how a query runs."""
    if format not in ("text", "json"):
        raise UserError(
            f"format = '{format}' is not known.", code="BAD_OPTION", hint="Use 'text' or 'json'."
        )
    text = what.strip().rstrip(";")
    world = World(house, house.catalog.snapshot(), defining=True)
    named = world.snapshot.find(what) or world.snapshot.find(_unquoted(text))
    if named is None and text.lower().startswith(_QUERY_WORDS):
        context = world.context()
        relation, view = bind.bind(text, context), None
        reasons = context.reasons
    else:
        view = world.view(named.name if named else _unquoted(text))
        relation, reasons = definition(world, view)
    placement = house.runner.place(relation, world.sources(relation), load=view is not None)
    explained = _Explained(world, relation, reasons, view, placement)
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
