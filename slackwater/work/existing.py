"""What a view keeps between its refreshes, as what exists when a plan is made for it.

The states of its operators and its own rows lie there as of the versions that it was last refreshed
from. A plan can read them if these are the tables' versions at the first point of its timeline. A
buffer of the first rows in order holds no relation of the query, and is none of them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import replace

from slackwater.algebra.relation import Join, Relation
from slackwater.catalog.model import State as Stored
from slackwater.catalog.model import View
from slackwater.planner.existing import Existing
from slackwater.tvr.maintenance import Maintenance, every_part, maintenance
from slackwater.tvr.memo import SUMS, WEIGHTED
from slackwater.tvr.methods.counted import counted
from slackwater.tvr.methods.higher_order import spread, whole_joins
from slackwater.tvr.states import State
from slackwater.tvr.states.rows import RowState
from slackwater.tvr.states.sums import SumState
from slackwater.work.world import World


def kept_by(
    world: World, view: View, query: Relation, moved: Collection[str]
) -> Iterator[Existing]:
    """What a view keeps of its query; as of the first point unless it is behind its sources, or
    these are `moved`: said to have other rows at that point than they have."""
    if view.refreshed_at is None:
        return
    is_fresh = world.seen(view.depends, lambda id: world.snapshot.get(id).version) == view.as_of
    stored = {state.signature: state for state in world.snapshot.states(view.id)}
    plan = maintenance(query, view.id, view.schema, lambda node: node.digest())
    rows = RowState(plan.root, view.id, tuple(f.name for f in view.schema))
    for state in (rows, *_states(plan, stored)):
        found = _existing(world, state)
        read = {scan.source for scan in state.node.scans()}
        yield found if is_fresh and read.isdisjoint(moved) else replace(found, at=None)


def _states(plan: Maintenance, stored: dict[str, Stored]) -> Iterator[RowState | SumState]:
    """Those that are stored, under the ids that they have."""
    found: set[str] = set()
    for state in _possible(plan):
        signature = state.node.digest()
        if (
            signature in stored
            and signature not in found
            and isinstance(state, RowState | SumState)
        ):
            found.add(signature)
            yield replace(state, id=stored[signature].id)


def _possible(plan: Maintenance) -> Iterator[State]:
    """All that may be kept: of operators, of what a join is put together from around one of its
    inputs, and of the keys of semi joins."""
    yield from plan.kept
    most = max((len(spread(join).inner.inputs) for join in whole_joins(plan.root)), default=0)
    for place in range(most):
        for part in every_part(plan.root, _around(place)):
            yield RowState(part, part.digest())
    for node in plan.root.walk():
        keys = counted(node) if isinstance(node, Join) else None
        if keys is not None:
            yield SumState(keys[1], keys[1].digest())


def _around(place: int) -> Callable[[Join], int | None]:
    return lambda join: place if place < len(spread(join).inner.inputs) else None


def _existing(world: World, state: RowState | SumState) -> Existing:
    kind = SUMS if isinstance(state, SumState) else WEIGHTED
    rows = float(sum(segment.rows for segment in world.segments(state.id)))
    columns = tuple(f.name for f in state.schema)
    return Existing(state.id, state.node, 0, rows=rows, kind=kind, columns=columns)
