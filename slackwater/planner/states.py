"""What is computed once and used again (001, 6.3): greedy, one relation after the other.

A relation that a plan uses in several places, in one run or in several, is computed for each of
them unless it is kept. Keeping one changes what is best for all others. So the relation whose
keeping saves most is kept, then the next, as long as that saves anything.

What is kept is computed in an order, runs first and then from the sources up, each from those
before it: else two relations could be taken from each other, and from nothing.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from slackwater.planner.temporal import CLEARLY, Assignment, Graph, Key, Step
from slackwater.planner.timeline import Costs, Timed, Timeline

Gain = tuple[float, int, Key]


WORTHWHILE = 0.01
"""What costs less than this part of a plan is not tried, unless the plan uses it again."""


@dataclass(frozen=True)
class Solution:
    """The cheapest plan with some relations kept, in order; for each of them, and last for what
    is wanted, the assignment with those before it kept."""

    graph: Graph
    wanted: tuple[Key, ...]
    kept: tuple[Key, ...]
    assignments: tuple[Assignment, ...]
    cost: float
    """What counts: that of all runs, weighted."""

    def by_run(self) -> list[float]:
        """What each run costs."""
        targets = [*((key,) for key in self.kept), self.wanted]
        found = [0.0] * len(self.graph.weights)
        for assignment, keys in zip(self.assignments, targets, strict=True):
            known: dict[Key, list[float]] = {}
            for key in keys:
                own = assignment.by_run(key, known)
                found = [a + b for a, b in zip(found, own, strict=True)]
        return found

    def uses(self) -> Counter[Key]:
        """How often the plan asks for each relation in each run."""
        return Counter(below for _, _, asked in self._opened() for below in asked)

    def steps(self) -> dict[Key, Step]:
        """How each relation that the plan asks for comes to be there in a run."""
        return {key: step for key, step, _ in self._opened()}

    def methods(self) -> frozenset[str]:
        """The methods that the plan takes from."""
        taken = (step.way.member.method for step in self.steps().values() if step.way)
        return frozenset(method for method in taken if method)

    def _opened(self) -> Iterator[tuple[Key, Step, list[Key]]]:
        """Each relation in a run, with its step and what that takes; what is kept, once."""
        for assignment, targets in zip(
            self.assignments, [*((k,) for k in self.kept), self.wanted], strict=True
        ):
            waiting, opened = list(targets), {*targets, *assignment.kept}
            while waiting:
                key = waiting.pop()
                asked = _below(assignment, *key)
                yield key, assignment.step(key), asked
                for below in asked:
                    if below not in opened:
                        opened.add(below)
                        waiting.append(below)


def _below(assignment: Assignment, i: int, run: int) -> list[Key]:
    """What a step takes."""
    step = assignment.step((i, run))
    if step.saved_at is not None:
        return [(i, step.saved_at)]
    return [] if step.way is None else [(below, run) for below in step.way.inputs]


def solve(
    timeline: Timeline,
    costs: Costs,
    wanted: Mapping[int, Timed],
    always: Sequence[tuple[Timed, int]] = (),
) -> Solution:
    """The cheapest plan for some relations, each wanted in a run, and what it keeps: some always,
    such as what arrives, others where that saves something."""
    asked = {*wanted, *(run for _, run in always)}
    graph = Graph(timeline, [costs], [*wanted.values(), *(timed for timed, _ in always)], asked)
    keys = tuple((graph.numbers[timed], run) for run, timed in wanted.items())
    return solved(graph, keys, tuple((graph.numbers[timed], run) for timed, run in always))


def solved(graph: Graph, wanted: tuple[Key, ...], always: tuple[Key, ...] = ()) -> Solution:
    """The same for relations of a graph, with the engines that its runs have."""
    solver = _Solver(graph, wanted)
    best = solver.solved(always)
    gains: list[Gain] = []
    failed: list[Gain] = []  # they may save something when others are kept
    offered = set(best.kept)
    while True:
        for key, most in _used_again(graph, best):
            if key not in offered:
                heapq.heappush(gains, (-most, len(offered), key))
                offered.add(key)
        found = _next(solver, best, gains, failed)
        if found is None:
            gains, failed = sorted(failed), []
            found = _next(solver, best, gains, failed) or _for_more_runs(solver, graph, best)
        if found is None:
            return best
        best = found


def _used_again(graph: Graph, best: Solution) -> Iterator[tuple[Key, float]]:
    """Relations whose rows a plan uses in several places of a run, with weights or without: where
    one of these is kept, the other is soon made of it. With what that may save: all its cost but
    once."""
    uses, last = best.uses(), best.assignments[-1]
    together: Counter[tuple[int, int]] = Counter()
    for (i, run), count in uses.items():
        together[graph.contents[i], run] += count
    for key in uses:
        count = together[graph.contents[key[0]], key[1]]
        if count > 1:
            yield key, (count - 1) * last.cost(key)


def _for_more_runs(solver: _Solver, graph: Graph, best: Solution) -> Solution | None:
    """With something kept that a plan saves for one later run, or computes there again: once it is
    kept, more runs may load it. None where that saves nothing; the dearest is tried first."""
    last = best.assignments[-1]
    costs = {key: last.cost(key) for key in _in_other_runs(graph, best)}
    for i, run in sorted(costs, key=lambda key: (-costs[key], key)):
        if costs[i, run] > WORTHWHILE * best.cost:
            tried = [(other, run) for other in graph.alike(i) if (other, run) not in best.kept]
            found = [(solver.cost_with(best, key), key) for key in tried]
            if found and min(found)[0] < best.cost * CLEARLY:
                return solver.solved_with(best, min(found)[1])
    return None


def _in_other_runs(graph: Graph, best: Solution) -> set[Key]:
    """What is saved for a later run, or computed there again."""
    saved, last_made = set(), dict[int, int]()
    for (i, run), step in best.steps().items():
        if step.saved_at is not None:
            saved.add((i, step.saved_at))
        elif step.way is not None:
            content = graph.contents[i]
            last_made[content] = max(run, last_made.get(content, run))
    again = {(i, run) for i, run in best.uses() if last_made.get(graph.contents[i], run) > run}
    return saved | again


def _next(
    solver: _Solver, best: Solution, gains: list[Gain], failed: list[Gain]
) -> Solution | None:
    """With the relation that saves most kept, too; None where none saves anything.

    What a relation saves is computed again only when it comes first: others that were kept since
    seldom make it more.
    """
    fresh: set[Key] = set()
    while gains:
        gain, number, key = heapq.heappop(gains)
        if key not in fresh:
            cost = solver.cost_with(best, key)
            gain = min(0.0, cost - best.cost)
            fresh.add(key)
            if cost >= best.cost * CLEARLY:
                failed.append((gain, number, key))
                continue
        if not gains or gain <= gains[0][0]:
            return solver.solved_with(best, key)
        heapq.heappush(gains, (gain, number, key))
    return None


class _Solver:
    """Plans with some relations kept."""

    def __init__(self, graph: Graph, wanted: tuple[Key, ...]) -> None:
        self._graph = graph
        self._wanted = wanted

    def solved(self, kept: tuple[Key, ...]) -> Solution:
        """The cheapest plan with these kept."""
        order = tuple(sorted(kept, key=self._place))
        assignments = [Assignment(self._graph)]
        for key in order:
            assignments.append(assignments[-1].keeping(key))
        return self._solution(order, assignments)

    def solved_with(self, best: Solution, key: Key) -> Solution:
        """The same plan with one more relation kept. What is kept before it stays as it is; of the
        rest, what may be computed from it changes."""
        at = self._at(best, key)
        later = [assignment.keeping(key) for assignment in best.assignments[at:]]
        order = (*best.kept[:at], key, *best.kept[at:])
        return self._solution(order, [*best.assignments[: at + 1], *later])

    def cost_with(self, best: Solution, key: Key) -> float:
        """What that plan costs."""
        at = self._at(best, key)
        pairs = list(zip(best.assignments, [*((k,) for k in best.kept), best.wanted], strict=True))
        before = [assignment.cost(k) for assignment, (k, *_) in pairs[:at]]
        later = [assignment.cost_keeping(key, asked) for assignment, asked in pairs[at:]]
        return sum([*before, best.assignments[at].cost(key), *later])

    def _at(self, best: Solution, key: Key) -> int:
        """Where a relation belongs among those that are kept."""
        return bisect_left(best.kept, self._place(key), key=self._place)

    def _place(self, key: Key) -> tuple[int, int, int, int]:
        """Runs first, then from the sources up, then short intervals before long ones."""
        timed = self._graph.nodes[key[0]]
        return key[1], self._graph.depth(key[0]), timed.end - timed.start, key[0]

    def _solution(self, order: tuple[Key, ...], assignments: Sequence[Assignment]) -> Solution:
        kept = [a.cost(key) for key, a in zip(order, assignments, strict=False)]
        wanted = [assignments[-1].cost(key) for key in self._wanted]
        cost = sum([*kept, *wanted])
        return Solution(self._graph, self._wanted, order, tuple(assignments), cost)
