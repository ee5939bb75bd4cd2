"""Planning again between the runs of a plan, by what really came (001, 6).

The plan says what runs do if rows come as expected. Before a run, sizes up to its time point are
known, and what the runs before it have saved lies there. The rest is a problem of its own: with
those sizes, with what was saved as existing, with no work in the runs that have happened. While
sizes are about as expected there is nothing to plan.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from slackwater.errors import UserError
from slackwater.planner.existing import Existing, of_group
from slackwater.planner.plan import Plan, replan
from slackwater.planner.problem import Arrival, Problem
from slackwater.planner.runs import Saved
from slackwater.stats.rows import Change
from slackwater.types import WEIGHT

NEARLY = 1.25
"""Sizes that differ by less than by this factor are as expected."""
FEW = 1_000
"""As many rows more or less make no difference."""


@dataclass(frozen=True)
class Actual:
    """What is known before a run: `done` runs have happened.

    `changes`: by source, what has come from each point to the next, up to that of this run. `rows`:
    by source, those at the first point, where they are others than was thought. `saved`: by name,
    the rows of what runs have saved. What is not named is taken to be as expected.
    """

    done: int
    changes: Mapping[str, Sequence[Change]] = field(default_factory=dict)
    rows: Mapping[str, float] = field(default_factory=dict)
    saved: Mapping[str, float] = field(default_factory=dict)


def replanned(plan: Plan, actual: Actual) -> Plan:
    """The plan for the runs that are left; the same one while sizes are about as expected."""
    left = rest(plan, actual)
    return plan if is_as_expected(plan, left) else replan(left, plan)


def rest(plan: Plan, actual: Actual) -> Problem:
    """The problem that is left of a plan's own."""
    problem = plan.problem
    if actual.done not in problem.points:
        raise UserError(
            f"There is no run after {actual.done} runs.",
            code="BAD_PROBLEM",
            hint=f"The last run is {problem.points[-1]}.",
        )
    arrivals = {source: _come(a, source, actual) for source, a in problem.arrivals.items()}
    existing = (*_counted(problem.existing, actual), *_saved(plan, actual))
    return replace(problem, arrivals=arrivals, existing=existing, done=actual.done)


def _come(arrival: Arrival, source: str, actual: Actual) -> Arrival:
    come = tuple(actual.changes.get(source, ()))[: actual.done]
    changes = (*come, *arrival.changes[len(come) :])
    return replace(arrival, rows=actual.rows.get(source, arrival.rows), changes=changes)


def _counted(existing: Sequence[Existing], actual: Actual) -> Iterator[Existing]:
    for one in existing:
        yield replace(one, rows=actual.saved.get(one.name, one.rows))


def _saved(plan: Plan, actual: Actual) -> Iterator[Existing]:
    """What the runs of a plan that have happened saved for others."""
    graph = plan.solution.graph
    for run in plan.runs[plan.problem.done : actual.done]:
        for saved in run.saves:
            timed = graph.nodes[saved.number]
            made = of_group(saved.name, timed.ref, (timed.start, timed.end), run.point)
            rows = actual.saved.get(saved.name)
            yield replace(made, rows=rows, columns=_columns(saved, timed.ref.width))


def _columns(saved: Saved, width: int) -> tuple[str | None, ...]:
    """What was saved is without columns that no later run of its plan would have read."""
    there = {f.name for f in saved.relation.schema if f.name != WEIGHT}
    own = width if saved.plain else width - 1
    return tuple(name if (name := f"c{i}") in there else None for i in range(own))


def is_as_expected(plan: Plan, left: Problem) -> bool:
    """Are all sizes of the rest about those that a plan was made for, and does nothing change that
    it takes for unchanged?"""
    return left.changed <= plan.problem.changed and all(
        _is_near(*pair)
        for source, a in left.arrivals.items()
        for pair in _compared(plan.problem.arrivals[source], a)
    )


def _compared(expected: Arrival, found: Arrival) -> Iterator[tuple[float, float]]:
    """Rows at every point, and of every change."""
    for point, (was, now) in enumerate(zip(expected.changes, found.changes, strict=True)):
        yield was.rows, now.rows
        yield expected.at(point), found.at(point)
    yield expected.at(len(expected.changes)), found.at(len(found.changes))


def _is_near(expected: float, found: float) -> bool:
    low, high = sorted((expected, found))
    return high - low < FEW or high < low * NEARLY
