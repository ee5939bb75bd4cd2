"""What a view means: its query as its SQL says it, and as it is computed."""

from __future__ import annotations

from slackwater.algebra.codec import from_text
from slackwater.algebra.relation import Relation
from slackwater.catalog.model import View
from slackwater.sql.tables import renamed, unordered
from slackwater.work.world import World


def definition(world: World, view: View) -> tuple[Relation, dict[str, str]]:
    """A view's relation as it is computed, over parts if it has some, and the reason codes met in
    binding it."""
    if view.part:
        return from_text(view.form), {}
    relation, reasons = as_written(world, view)
    return (from_text(view.form), reasons) if view.form else (relation, reasons)


def as_written(world: World, view: View) -> tuple[Relation, dict[str, str]]:
    """A view's relation as its SQL says, and the reason codes met in binding it."""
    context = world.context(view=view)
    relation = unordered(world.house.bound.bind(view.sql, context))
    if "columns" in view.options:
        relation = renamed(relation, view.options["columns"].split("\n"), view.name)
    return relation, context.reasons
