"""What a refresh by changes shows of how many rows change, in its event: what came to each source,
and how many rows of each state and of the view that changed.

What a part of a view shows holds for every plan in which it is cut out again, whatever it is called
then: so it is also kept under what it is over tables alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from slackwater.algebra.codec import from_text
from slackwater.algebra.relation import Relation, Scan
from slackwater.catalog.model import View
from slackwater.stats.rows import Change, Rows
from slackwater.stats.turnover import result
from slackwater.tvr.maintenance import Maintenance
from slackwater.tvr.time import CHANGE, OLD
from slackwater.work.arrivals import tally
from slackwater.work.interval import Interval
from slackwater.work.world import World


def came(interval: Interval) -> dict[str, Rows]:
    """By source: its rows at the last refresh, and what came since."""
    return {id: _came(interval, id) for id in interval.view.depends}


def _came(interval: Interval, id: str) -> Rows:
    old = float(interval.rows(id, OLD))
    if interval.external(id) is not None:  # of which rows only come
        return Rows(old, Change(float(interval.rows(id, CHANGE))))
    return Rows(old, tally("", interval.segments(id, CHANGE)))


def told(
    interval: Interval, query: Relation, plan: Maintenance, written: Mapping[str, int]
) -> dict[str, Any]:
    """As plain data; `written` are the changed rows of states and of the view, by their ids."""
    world, view = interval.world, interval.view
    rows = {s.node.digest(): written[s.id] for s in plan.kept if s.id in written}
    if view.id in written:
        rows[result(plan.root)] = written[view.id]
        if view.form and not isinstance(query, Scan):  # a piece of what is normal already
            rows[result(over_tables(world, query))] = written[view.id]
    sources = {}
    for id, found in came(interval).items():
        change = found.change
        numbers = [found.before, change.inserts, change.updates, change.deletes]
        sources[id] = numbers
        if _is_part(world, id):
            part = world.snapshot.get(id)
            assert isinstance(part, View)
            sources[result(over_tables(world, from_text(part.form)))] = numbers
    return {"sources": sources, "rows": rows}


def over_tables(world: World, relation: Relation) -> Relation:
    """A relation over parts, as it is over what these are computed from."""

    def below(node: Relation) -> Relation:
        if isinstance(node, Scan) and _is_part(world, node.source):
            part = world.snapshot.get(node.source)
            assert isinstance(part, View)
            return over_tables(world, from_text(part.form))
        return node

    found: Relation = relation.rewrite(below)
    return found


def _is_part(world: World, id: str) -> bool:
    found = world.snapshot.get(id)
    return isinstance(found, View) and bool(found.part)
