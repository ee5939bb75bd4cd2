"""EXPLAIN ALTERNATIVES: every way to refresh a view now, with what it is expected to cost."""

from __future__ import annotations

import json
from dataclasses import asdict

from slackwater.catalog.model import View
from slackwater.work.choosing import Choice
from slackwater.work.house import House
from slackwater.work.refreshing import ways
from slackwater.work.telling import is_fresh
from slackwater.work.world import World


def alternatives(house: House, view: View, format: str) -> str:
    """As text for people, or as JSON."""
    found = ways(house, view)
    choice, reasons = found.choice, found.reasons
    fresh = is_fresh(World(house, house.catalog.snapshot(), defining=True), view)
    if format == "json":
        candidates = [c.to_json() for c in choice.candidates]
        chosen = choice.chosen.to_json()
        told = {"view": view.name, "fresh": fresh, "candidates": candidates, "chosen": chosen}
        told |= {"reasons": reasons, "why": [asdict(w) for w in found.whys_of_others]}
        return json.dumps(told, indent=2)
    lines = [f"View {view.name}, version {view.version}: ways to refresh it now"]
    if fresh:
        lines.append("Nothing has changed since it was refreshed.")
    if found.plan is None:
        lines.append("It is always computed in full.")
    lines += _table(choice)
    return "\n".join([*lines, *(line for w in found.whys_of_others for line in w.lines())])


def _table(choice: Choice) -> list[str]:
    """One line for each way; a star at the one that would be taken."""
    lines = [f"  {'method':<20} {'engine':<6} {'CPU s':>9} {'seconds':>9}"]
    taken = (choice.chosen.method, choice.chosen.engine)
    for way in choice.candidates:
        told = way.to_json()
        costs = [told["cpu_seconds"], told["seconds"]]
        cells = ["" if cost is None else f"{cost:.3f}" for cost in costs]
        star = "*" if (way.method, way.engine) == taken else " "
        line = f"{star} {way.method:<20} {way.engine:<6} {cells[0]:>9} {cells[1]:>9}"
        lines.append(f"{line}  {', '.join(way.reasons)}".rstrip())
    return lines
