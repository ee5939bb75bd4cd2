"""What of a view cannot follow changes, by its text and the laws of its operators."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from slackwater.algebra.explain import describe, gist
from slackwater.algebra.relation import Relation
from slackwater.catalog.model import View
from slackwater.tvr.delta import Deltas, Note
from slackwater.tvr.maintenance import Maintenance, maintenance
from slackwater.types import Schema
from slackwater.work.goals import refresh_mode
from slackwater.work.meaning import definition
from slackwater.work.reasons import Why, why, whys
from slackwater.work.world import World


@dataclass(frozen=True)
class Laws:
    """What is kept of a view, and by which laws its operators change, whatever it reads does."""

    plan: Maintenance
    notes: Mapping[Relation, Note]

    @property
    def reasons(self) -> list[Why]:
        """Why some operators have no better law."""
        return [why(n.reason, describe(node)) for node, n in self.notes.items() if n.reason]


def laws(relation: Relation, view: View) -> Laws:
    """Those of a view's query."""
    return _laws(relation, view.id, view.schema, frozenset(view.depends))


@lru_cache(maxsize=250)
def _laws(relation: Relation, id: str, schema: Schema, everything: frozenset[str]) -> Laws:
    plan = maintenance(relation, id, schema, lambda node: node.digest())
    deltas = Deltas(everything, everything, plan.states)
    for state in plan.states.values():
        if deltas.changes(state.node):
            state.change(deltas)
    deltas.delta(plan.root)
    return Laws(plan, deltas.notes)


def is_always_full(world: World, view: View, reasons: Mapping[str, str]) -> bool:
    """Is the view computed anew at each refresh? `reasons` were met in binding it."""
    opened = world.house.settings.refresh
    is_full = refresh_mode(view, world.snapshot.settings, opened) == "full"
    return is_full or "NOT_DETERMINISTIC" in reasons


def obstacles(world: World, view: View) -> list[Why]:
    """All that keeps a view, or a part of it, from following changes; nothing, of most."""
    relation, met = definition(world, view)
    found = whys(met, met)
    if not is_always_full(world, view, met):
        return found + [w for w in laws(relation, view).reasons if w.code not in met]
    return found if "NOT_DETERMINISTIC" in met else [*found, why("FULL_BY_OPTION", gist(relation))]
