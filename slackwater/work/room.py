"""How much room a view's states may take, and take.

A part is kept for the views that it is for, so that its states count for them, each with an equal
share. A view and its parts have the view's budget together:

    Σ states(view) + Σ over its parts: states(part) / views(part) ≤ budget(view)

Who is refreshed decides by what the others leave it. Several that are refreshed side by side
settle one after the other (`World.kept`), so that the sum holds whoever comes first.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from slackwater.catalog.model import Segment, View
from slackwater.timing import parse_size
from slackwater.work.goals import effective_options
from slackwater.work.parts import views_of
from slackwater.work.world import World


def budget_of(world: World, view: View) -> int | None:
    """Bytes that the states of a view and of its parts may take; None where nobody said how
    many."""
    options = effective_options(view, world.snapshot.settings)
    return parse_size(options["state_budget"]) if "state_budget" in options else None


def left_for(world: World, view: View) -> int | None:
    """Bytes that the states of a view, or of a part, may take beside those of others that count
    for the same views; None where no budget says how many."""
    if not view.part:
        budget = budget_of(world, view)
        return None if budget is None else max(0, int(budget - shared_bytes(world, view)))
    readers, left = readers_of(world, view), []
    for reader in readers:
        budget = budget_of(world, reader)
        if budget is not None:
            others = taken_by(world, reader) + shared_bytes(world, reader, but=view)
            left.append((budget - others) * len(readers))
    return max(0, int(min(left))) if left else None


def readers_of(world: World, part: View) -> list[View]:
    """The views that a part is for."""
    found = (world.snapshot.find(name) for name in views_of(part))
    return [view for view in found if isinstance(view, View)]


def parts_of(world: World, view: View) -> list[View]:
    """The parts that are for a view, maybe for others, too."""
    return [part for part in world.snapshot.parts() if view.name in views_of(part)]


def shared_bytes(world: World, view: View, but: View | None = None) -> float:
    """What the states of a view's parts take, as far as that counts for it."""
    own = (part for part in parts_of(world, view) if but is None or part.id != but.id)
    return sum(taken_by(world, part) / len(readers_of(world, part)) for part in own)


def taken_by(world: World, view: View) -> float:
    """What the states of a view, or of a part, take: after this run, where that is settled."""
    if view.id in world.kept:
        return world.kept[view.id]
    return sum(bytes_of(world.snapshot.segments(s.id)) for s in world.snapshot.states(view.id))


@dataclass(frozen=True)
class Room:
    """What the states of a view take, or would take after its next refresh."""

    budget: int
    taken: int
    states: tuple[tuple[str, int], ...]
    dropped: tuple[str, ...] = ()
    shared: int = 0  # of what is taken, by the states of parts

    def lines(self) -> list[str]:
        """For people."""
        lines = [f"Budget: {self.budget:,} bytes for states, of which {self.taken:,} are taken"]
        lines += [f"Keeps:  {name}, about {size:,} bytes" for name, size in self.states]
        lines += [f"Parts:  {self.shared:,} bytes of states"] if self.shared else []
        return lines + [f"Drops:  {name}" for name in self.dropped]

    def to_json(self) -> dict[str, Any]:
        """For machines."""
        states = [{"name": name, "bytes": size} for name, size in self.states]
        return {"bytes": self.budget, "taken": self.taken, "states": states} | {
            "dropped": list(self.dropped),
            "parts": self.shared,
        }


def stored_room(world: World, view: View, budget: int) -> Room:
    """Of a view that is up to date."""
    sizes = {s: bytes_of(world.segments(s.id)) for s in world.snapshot.states(view.id)}
    states = tuple((s.kind, round(size)) for s, size in sizes.items())
    shared = round(shared_bytes(world, view))
    return Room(budget, round(sum(sizes.values())) + shared, states, shared=shared)


def is_over_budget(world: World, view: View) -> bool:
    """Do the states of a view or part take more room than there is, since there is less than
    before?"""
    left = left_for(world, view)
    return left is not None and taken_by(world, view) > left


def bytes_of(segments: Collection[Segment]) -> float:
    """Of all of them."""
    return float(sum(s.bytes for s in segments))
