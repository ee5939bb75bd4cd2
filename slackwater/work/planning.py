"""A query over a warehouse's tables as a planning problem, for plans that nobody runs."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from slackwater.algebra.relation import Relation
from slackwater.catalog.model import View
from slackwater.errors import UserError, nearest
from slackwater.planner.existing import Existing
from slackwater.planner.problem import Arrival, Problem
from slackwater.sql.tables import unordered
from slackwater.stats.rows import Change
from slackwater.tvr.normal import normalize
from slackwater.work.existing import kept_by
from slackwater.work.house import House
from slackwater.work.meaning import definition
from slackwater.work.promises import promised
from slackwater.work.world import World

Expected = Sequence[Change] | Arrival
"""What is said of a table: its changes from each point to the next, perhaps with other rows at
the first than there are now."""


def problem(
    house: House,
    query: str,
    changes: Mapping[str, Expected],
    prices: Sequence[float],
    due: Collection[int] = (),
    last_first: bool = False,
) -> Problem:
    """What a view, or a query's text, reads: as many rows as there are now at the first point,
    unless others are named, then the changes. What is not named stays as it is. What a view keeps
    exists. Work takes, and rows change, as refreshes of this warehouse have shown."""
    world = World(house, house.catalog.snapshot(), defining=True)
    view = world.view(query) if world.snapshot.find(query) is not None else None
    written = _written(world, query, view)
    relation = normalize(written)
    read = {scan.source: scan.name for scan in relation.scans()}
    still = (Change(),) * (len(prices) - 1)
    arrivals = {id: Arrival(world.rows(id), still) for id in read}
    for name, expected in changes.items():
        id = world.relation(name).id
        if id not in arrivals:
            raise UserError(
                f"The query does not read '{name}'.",
                code="BAD_PROBLEM",
                hint=f"It reads: {', '.join(sorted(set(read.values())))}.",
            )
        if not isinstance(expected, Arrival):
            expected = Arrival(arrivals[id].rows, tuple(expected))
        known_names = {f.name for f in world.relation(name).schema}
        if unknown := sorted((expected.updated or frozenset()) - known_names):
            raise UserError(
                f"'{name}' has no column '{unknown[0]}' to update.",
                code="UNKNOWN_COLUMN",
                hint=nearest(unknown[0], known_names),
            )
        arrivals[id] = expected
    known, told = house.profiling.known(), promised(world, read)
    existing: tuple[Existing, ...] = ()
    if view is not None:
        moved = {id for id, arrival in arrivals.items() if arrival.rows != world.rows(id)}
        existing = tuple(kept_by(world, view, written, moved))
    return Problem(
        relation,
        arrivals,
        tuple(prices),
        frozenset(due),
        last_first,
        known,
        told,
        existing,
        model=house.experience.of("").model,
        turnover=house.experience.turnover(),
    )


def _written(world: World, query: str, view: View | None) -> Relation:
    if view is not None:
        return definition(world, view)[0]
    return unordered(world.house.bound.bind(query, world.context()))
