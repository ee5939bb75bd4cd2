"""Views on views, for plans: as they are over tables alone, where all of them are due together.

What a view reads is put in as it is computed for itself, so that the two share it. Early runs of
the one may then go through to the other, before any result of either is due.
"""

from __future__ import annotations

from collections.abc import Mapping

from slackwater.algebra.relation import Relation, Scan, under_names
from slackwater.catalog.model import View
from slackwater.tvr.normal import normalize
from slackwater.work.meaning import as_written
from slackwater.work.world import World


def read_views(world: World, view: View) -> Mapping[str, View]:
    """The views that a view's SQL reads, themselves or through others, by their ids."""
    found: dict[str, View] = {}
    queue = [view]
    while queue:
        relation, _ = as_written(world, queue.pop())
        for id in dict.fromkeys(scan.source for scan in relation.scans()):
            source = world.snapshot.get(id)
            if isinstance(source, View) and id not in found:
                found[id] = source
                queue.append(source)
    return found


def can_expand(world: World, view: View) -> bool:
    """Does a view give the same rows wherever it is computed, of the types that it is read by?"""
    relation, reasons = as_written(world, view)
    return not reasons and [f.type for f in relation.schema] == [f.type for f in view.schema]


def expanded(world: World, view: View) -> Relation:
    """The normal form of a view's query over tables."""
    relation = normalize(as_written(world, view)[0])

    def below(node: Relation) -> Relation:
        source = world.snapshot.get(node.source) if isinstance(node, Scan) else None
        if not isinstance(source, View):
            return node
        return under_names(expanded(world, source), tuple(f.name for f in node.schema))

    found: Relation = relation.rewrite(below)
    return found
