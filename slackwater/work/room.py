"""How much room a view's states may take, and take."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from slackwater.catalog.model import Segment, View
from slackwater.timing import parse_size
from slackwater.work.goals import effective_options
from slackwater.work.world import World


def budget_of(world: World, view: View) -> int | None:
    """Bytes that a view's states may take; None where nobody said how many."""
    options = effective_options(view, world.snapshot.settings)
    return parse_size(options["state_budget"]) if "state_budget" in options else None


@dataclass(frozen=True)
class Room:
    """What the states of a view take, or would take after its next refresh."""

    budget: int
    taken: int
    states: tuple[tuple[str, int], ...]
    dropped: tuple[str, ...] = ()

    def lines(self) -> list[str]:
        """For people."""
        lines = [f"Budget: {self.budget:,} bytes for states, of which {self.taken:,} are taken"]
        lines += [f"Keeps:  {name}, about {size:,} bytes" for name, size in self.states]
        return lines + [f"Drops:  {name}" for name in self.dropped]

    def to_json(self) -> dict[str, Any]:
        """For machines."""
        states = [{"name": name, "bytes": size} for name, size in self.states]
        return {"bytes": self.budget, "taken": self.taken, "states": states} | {
            "dropped": list(self.dropped)
        }


def stored_room(world: World, view: View, budget: int) -> Room:
    """Of a view that is up to date."""
    sizes = {s: bytes_of(world.segments(s.id)) for s in world.snapshot.states(view.id)}
    states = tuple((s.kind, round(size)) for s, size in sizes.items())
    return Room(budget, round(sum(sizes.values())), states)


def is_over_budget(world: World, view: View) -> bool:
    """Do a view's states take more room than it has, since it has less than before?"""
    budget = budget_of(world, view)
    return budget is not None and stored_room(world, view, budget).taken > budget


def bytes_of(segments: Collection[Segment]) -> float:
    """Of all of them."""
    return float(sum(s.bytes for s in segments))
