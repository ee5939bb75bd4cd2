"""From the paces of one rhythm to figures: of its tables, its views, its pieces."""

from __future__ import annotations

from collections.abc import Iterator
from math import inf

from slackwater.algebra.explain import gist
from slackwater.planner.subplans import Subplan, is_subplan
from slackwater.work.goals import effective_options
from slackwater.work.in_turn import turns
from slackwater.work.obstacles import obstacles
from slackwater.work.pacing import Expectation, Paced
from slackwater.work.plan_report import Coming, Piece, PlannedView, Rhythm
from slackwater.work.reachable import out_of_reach
from slackwater.work.tradeoff import cpu_by_view
from slackwater.work.world import World


def rhythm(world: World, paced: Paced) -> Rhythm:
    """What is planned for the views of one rhythm."""
    return Rhythm(
        paced.period_seconds,
        paced.rhythm.next_text,
        paced.found.total,
        paced.batch.total,
        paced.assumed,
        tuple(_coming(world, paced)),
        tuple(_views(world, paced)),
        tuple(_piece(world, paced, subplan) for subplan in paced.dag.subplans),
        paced.found.tried,
    )


def _coming(world: World, paced: Paced) -> Iterator[Coming]:
    for id, inflow in paced.search.simulation.setting.inflows.items():
        yield Coming(world.snapshot.get(id).name, inflow.rows, inflow.change.rows)


def _views(world: World, paced: Paced) -> Iterator[PlannedView]:
    cpu = cpu_by_view(paced.search, paced.found.paces)
    batch = cpu_by_view(paced.search, paced.batch.paces)
    goals, turn = {e.view: e for e in paced.expectations()}, turns(paced)
    for name in sorted(paced.dag.roots):
        said = effective_options(world.view(name), world.snapshot.settings)
        wanted, is_met, nearest = _goal(goals.get(name))
        final, batch_final = paced.found.final[name], paced.batch.final[name]
        note = ""
        if nearest is not None and wanted is not None:
            note = out_of_reach(said["within"], wanted, final, nearest)
        elif wanted is not None and name in turn:
            note = turn[name].note(said["within"], wanted)
        yield PlannedView(
            name,
            said["schedule"],
            said.get("within"),
            wanted,
            final,
            cpu[name],
            batch_final,
            batch[name],
            is_met,
            nearest,
            note,
            reasons=tuple(obstacles(world, world.view(name))),
        )


def _goal(goal: Expectation | None) -> tuple[float | None, bool, float | None]:
    """What is wanted, whether it can be had, and what can be had if not."""
    if goal is None or goal.wanted == inf:
        return None, True, None
    return goal.wanted, goal.is_met, None if goal.is_met else goal.nearest


def _piece(world: World, paced: Paced, subplan: Subplan) -> Piece:
    found = paced.found
    cost = paced.search.cost(subplan.number, found.paces)
    run_with = paced.search.run_with(subplan.number, found.paces)
    inputs = {
        name if is_subplan(name) else world.snapshot.get(name).name: found.paces.get(
            (subplan.number, name), 1
        )
        for name in subplan.inputs
    }
    return Piece(
        f"#{subplan.number}",
        gist(subplan.relation),
        inputs,
        found.pace_of(subplan.number),
        tuple(sorted(subplan.queries)),
        paced.search.cost(run_with, found.paces).method,
        subplan.number in paced.forms.places,
        cost.final,
        cost.total,
        None if run_with == subplan.number else f"#{run_with}",
    )
