"""EXPLAIN ALTERNATIVES: every way to refresh a view now, with what it is expected to cost."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from slackwater.catalog.model import View
from slackwater.planner.choice import Candidate
from slackwater.work.house import House
from slackwater.work.reasons import Why
from slackwater.work.refreshing import ways
from slackwater.work.telling import is_fresh
from slackwater.work.world import World


@dataclass(frozen=True)
class Alternatives:
    """All ways, one of which would be taken: one value, for people and for machines."""

    view: View
    fresh: bool
    always_full: bool
    candidates: tuple[dict[str, Any], ...]
    chosen: Candidate
    reasons: tuple[str, ...]  # why the view must be computed anew
    why: tuple[Why, ...]  # the same, and why not in other ways

    def lines(self) -> list[str]:
        """For people: a line for each way, a star at the one that would be taken."""
        lines = [f"View {self.view.name}, version {self.view.version}: ways to refresh it now"]
        if self.fresh:
            lines.append("Nothing has changed since it was refreshed.")
        if self.always_full:
            lines.append("It is always computed in full.")
        lines.append(f"  {'method':<20} {'engine':<6} {'CPU s':>9} {'seconds':>9}")
        lines += [self._line(way) for way in self.candidates]
        return lines + [line for reason in self.why for line in reason.lines()]

    def _line(self, way: dict[str, Any]) -> str:
        costs = [way["cpu_seconds"], way["seconds"]]
        cells = ["" if cost is None else f"{cost:.3f}" for cost in costs]
        taken = (way["method"], way["engine"]) == (self.chosen.method, self.chosen.engine)
        line = f"{way['method']:<20} {way['engine']:<6} {cells[0]:>9} {cells[1]:>9}"
        return f"{'*' if taken else ' '} {line}  {', '.join(way['reasons'])}".rstrip()

    def to_json(self) -> dict[str, Any]:
        """For machines."""
        return {
            "view": self.view.name,
            "version": self.view.version,
            "fresh": self.fresh,
            "always_full": self.always_full,
            "candidates": list(self.candidates),
            "chosen": self.chosen.to_json(),
            "reasons": list(self.reasons),
            "why": [asdict(reason) for reason in self.why],
        }


def alternatives(house: House, view: View) -> Alternatives:
    """Those that there are now."""
    found = ways(house, view)
    chosen, upkeep = found.choice.chosen, found.upkeep
    if not chosen.engine:  # by the size of what is read
        sources = upkeep.world.sources(upkeep.query)
        place = house.runner.place([upkeep.query], sources, load=True)
        here = (c for c in found.choice.candidates if c.engine == place.engine)
        chosen = next((c for c in here if c.method == chosen.method), chosen)
    world = World(house, house.catalog.snapshot(), defining=True)
    return Alternatives(
        view,
        is_fresh(world, view),
        found.plan is None,
        tuple(way.to_json() for way in found.choice.candidates),
        chosen,
        tuple(found.reasons),
        tuple(found.whys_of_others),
    )
