"""How long a result may take after it is due: what `within` comes to, in seconds.

A share such as '0.1x' is one of the view's *batch work*: the seconds of one run that computes the
view from all rows that are there when its result is due, with nothing kept from before. That is
known before anything is planned. It is the same whatever parts and states there are, whoever shares
in them, and however little has come since the last result.
"""

from __future__ import annotations

from collections.abc import Mapping

from slackwater.algebra.relation import Relation
from slackwater.catalog.model import View
from slackwater.planner.pace import Search
from slackwater.planner.simulation import Inflow, Setting, Simulation
from slackwater.planner.subplans import cut
from slackwater.stats.rows import Change
from slackwater.timing import parse_within
from slackwater.tvr.normal import normalize
from slackwater.work.expanded import can_expand, expanded, read_views
from slackwater.work.goals import effective_options
from slackwater.work.meaning import as_written
from slackwater.work.present import engines
from slackwater.work.world import World

Rows = Mapping[str, float]
"""Of tables, by their ids, when a result is due; of others, as many as there are now."""


def when_due(inflows: Mapping[str, Inflow]) -> Rows:
    """The rows that are there when what is expected has come."""
    return {id: inflow.rows + inflow.change.net for id, inflow in inflows.items()}


def allowed_seconds(world: World, view: View, rows: Rows | None = None) -> float | None:
    """Seconds that a result of a view may take; None without a goal."""
    said = effective_options(view, world.snapshot.settings).get("within")
    if said is None:
        return None
    within = parse_within(said)
    return within.seconds if within.share is None else within.share * batch(world, view, rows)


def batch(world: World, view: View, rows: Rows | None = None) -> float:
    """Seconds of a view's batch work: what a plan with everything at pace one comes to, if nothing
    was there before and nobody shares."""
    query = _over_tables(world, view)
    there = {scan.source: _rows(world, scan.source, rows or {}) for scan in query.scans()}
    arriving = {source: Inflow(0.0, Change(inserts=max(1.0, n))) for source, n in there.items()}
    return one_run(world, query, arriving)


def one_run(world: World, query: Relation, inflows: Mapping[str, Inflow]) -> float:
    """Seconds until a result that waited for all that came."""
    house = world.house
    model, known = house.experience.of("").model, house.profiling.known()
    simulation = Simulation(cut({"": query}), Setting(inflows, model, engines(house), known))
    return Search(simulation, {}, most=1).batch().final[""]


def _over_tables(world: World, view: View) -> Relation:
    """What a view means; the views that it reads count, unless they differ each time."""
    if all(can_expand(world, read) for read in read_views(world, view).values()):
        return expanded(world, view)
    return normalize(as_written(world, view)[0])


def _rows(world: World, id: str, rows: Rows) -> float:
    return rows[id] if id in rows else float(world.rows(id))
