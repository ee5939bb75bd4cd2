"""The search for a plan: explore the memo, assign times, choose what to keep (001)."""

from __future__ import annotations

import gc
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial

from slackwater.collecting import held_off
from slackwater.errors import UserError
from slackwater.planner.costs import Seconds
from slackwater.planner.engines import Placed, Start, placed, possible, unplaced
from slackwater.planner.existing import Index
from slackwater.planner.layout import spared
from slackwater.planner.problem import Problem
from slackwater.planner.runs import lacking, unfold
from slackwater.planner.states import Solution, solve
from slackwater.planner.timeline import Costs, Timed, Timeline
from slackwater.stats.cost import Model
from slackwater.tvr import explore
from slackwater.tvr.memo import ROWS, Memo, Rewrite, Rule
from slackwater.tvr.methods import (
    early_extrema,
    early_sums,
    higher_order,
    im2,
    ojv,
    promised,
    spine,
)

METHODS = ("im1", "im2", "ojv", "higher_order")
"""Methods that can be left out; recomputing cannot."""
_RULES = (*explore.RULES, *early_sums.RULES, *promised.RULES, *im2.RULES, *ojv.RULES)
_REWRITES = (*early_extrema.REWRITES, *im2.REWRITES, *higher_order.REWRITES, *spine.REWRITES)


def rules_of(
    methods: Collection[str], without: Collection[str] = ()
) -> tuple[list[Rule], list[Rewrite]]:
    """The rules of some methods, and those that belong to none, but for some by their names. With
    no method at all, changes are not followed, and everything is computed in full."""
    if unknown := set(methods) - set(METHODS):
        raise UserError(
            f"Method '{min(unknown)}' is not known.",
            code="BAD_METHOD",
            hint=f"Existing: {', '.join(METHODS)}.",
        )
    if unknown := set(without) - {*(r.name for r in _RULES), *(r.name for r in _REWRITES)}:
        raise UserError(
            f"Rule '{min(unknown)}' is not known.",
            code="BAD_RULE",
            hint="Rules are counted by name in the memo of a plan: plan(problem).memo.fired.",
        )
    allowed = {"", "recompute", *methods, *((explore.FOLLOWING,) if methods else ())}

    def asked(one: Rule | Rewrite) -> bool:
        return one.method in allowed and one.name not in without

    return [*filter(asked, _RULES)], [*filter(asked, _REWRITES)]


@dataclass(frozen=True)
class Speedups:
    """What makes exploration faster (001, 5.3)."""

    pruned: bool = True  # without ways that seldom pay
    symmetric: bool = True  # what holds between two points holds between all
    left_deep: bool = True  # changes are merged one after the other
    prompt: bool = True  # work waits only for a result, or for a run where it costs less


FAST = Speedups()


@dataclass(frozen=True)
class Means:
    """What a plan is looked for with."""

    model: Model | None = None  # that of the problem
    rules: Sequence[Rule] = _RULES
    rewrites: Sequence[Rewrite] = _REWRITES
    costs: Costs | None = None
    speedups: Speedups = FAST
    engines: Collection[str] = ()
    layout: bool = True


@dataclass(frozen=True)
class Found:
    """What was explored and found, and how long that took."""

    memos: tuple[Memo, ...]
    placed: Placed
    explored_seconds: float
    assigned_seconds: float
    lacking: frozenset[str]


@dataclass(frozen=True)
class Before:
    """A plan that was found before, for the same query."""

    memos: tuple[Memo, ...]
    solution: Solution
    engines: tuple[str, ...]

    def serves(self, problem: Problem) -> bool:
        """Does its memo hold for another problem? It does for any sizes, though other aggregates
        may promise something below joins than did then."""
        memo, relied_on = self.memos[0], problem.relied_on
        kept = memo.promises.references <= relied_on.references
        return problem.changed <= memo.changed and memo.promises.keys == relied_on.keys and kept

    def start(self, timeline: Timeline) -> Start:
        """What it keeps in the runs that are left."""
        graph, index, kept = self.solution.graph, Index(timeline.memo), []
        for i, run in self.solution.kept:
            timed = graph.nodes[i]
            ref = index.same(timed.ref)
            if run >= timeline.problem.done and ref is not None:
                kept.append((timeline.timed(ref, timed.start, timed.end), run))
        return Start(self.engines, tuple(kept))


def search(problem: Problem, means: Means, before: Before | None = None) -> Found:
    """The cheapest plan that is found. With one from before, its memo is taken again, if it serves,
    and the rest of it is the least that is found."""
    with _no_garbage():
        begun = time.perf_counter()
        if before is not None and before.serves(problem) and means.speedups.symmetric:
            memos: Mapping[tuple[int, int], Memo] = {}
            first = before.memos[0]
        else:
            first, memos = explored(problem, means.rules, means.rewrites, means.speedups)
        done = time.perf_counter()
        found, ignored = _assigned(problem, means, first, memos, before)
        ended = time.perf_counter()
        every = tuple(memos.values()) or (first,)
        return Found(every, found, done - begun, ended - done, ignored)


def explored(
    problem: Problem,
    rules: Collection[Rule],
    rewrites: Collection[Rewrite],
    speedups: Speedups = FAST,
) -> tuple[Memo, dict[tuple[int, int], Memo]]:
    """Everything that some rules give for a problem; without symmetry, for each interval by
    itself."""

    def memo() -> Memo:
        promises, shrinks = problem.relied_on, problem.shrinks
        made = Memo(problem.changed, rules, rewrites, speedups.pruned, promises, shrinks)
        made.explore([made.ref(problem.query, ROWS), made.ref(problem.query, ROWS, old=True)])
        return made

    first = memo()
    if speedups.symmetric:
        return first, {}
    intervals = _intervals(problem, speedups)
    return first, {interval: memo() if n else first for n, interval in enumerate(intervals)}


def _assigned(
    problem: Problem,
    means: Means,
    memo: Memo,
    memos: Mapping[tuple[int, int], Memo],
    before: Before | None,
) -> tuple[Placed, frozenset[str]]:
    """The cheapest plan from what was explored; again without what exists and lacks columns that
    it reads."""
    speedups = means.speedups
    ignored: frozenset[str] = frozenset()
    while True:
        timeline = Timeline(
            memo, problem, speedups.left_deep, speedups.prompt, memos, ignored=ignored
        )
        found = _placed(timeline, means, before)
        without = _lacking(found.solution)
        if not without:
            return found, ignored
        ignored |= without


def _placed(timeline: Timeline, means: Means, before: Before | None) -> Placed:
    problem, wanted = timeline.problem, _wanted(timeline)
    model = means.model or problem.model
    start = None if before is None else before.start(timeline)
    if means.engines:
        able = possible(means.engines, model, problem.query)
        relief = partial(_spared, problem) if means.layout else None
        return placed(timeline, able, wanted, relief, start)
    costs = means.costs or Seconds(model)
    found = solve(timeline, costs, wanted)
    if start is not None:
        again = solve(timeline, costs, wanted, start.kept)
        found = again if again.cost < found.cost else found
    return unplaced(found)


@contextmanager
def _no_garbage() -> Iterator[None]:
    """What planning makes is in use until it is done. To look through all of it for garbage, again
    and again, would take a third of its time, and once a tenth: afterwards it counts as old."""
    with held_off():
        try:
            yield
        finally:
            if not gc.get_freeze_count():  # what others set aside stays there
                gc.freeze()
                gc.unfreeze()


def _spared(problem: Problem, solution: Solution, engines: tuple[str, ...]) -> list[float]:
    """What a layout of a plan's runs spares in each of them."""
    if engines.count("spark") < 2:  # nobody to spread rows for
        return [0.0] * len(engines)
    return spared(unfold(solution), sized(problem, solution), engines)


def sized(problem: Problem, solution: Solution) -> Problem:
    """The same, with the rows of what exists as they are expected where nobody counted."""
    return replace(problem, existing=tuple(solution.graph.existing.values()))


def _lacking(solution: Solution) -> frozenset[str]:
    """What a plan loads without columns that it reads."""
    if all(one.is_whole for one in solution.graph.existing.values()):
        return frozenset()
    return lacking(unfold(solution))


def assign(timeline: Timeline, costs: Costs) -> Solution:
    """The cheapest way to the results of a problem, from what was explored."""
    return solve(timeline, costs, _wanted(timeline))


def _wanted(timeline: Timeline) -> dict[int, Timed]:
    """The results of a problem, by the runs in which they are due."""
    problem = timeline.problem
    result = timeline.memo.ref(problem.query, ROWS)
    return {p: timeline.timed(result, max(0, p - 1), p) for p in problem.results}


def _intervals(problem: Problem, speedups: Speedups) -> list[tuple[int, int]]:
    """From each point to the next, or to all later ones."""
    return [
        (start, end)
        for start in problem.points
        for end in problem.points[start + 1 :]
        if end == start + 1 or not speedups.left_deep
    ]
