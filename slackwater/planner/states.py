"""What is computed once and used again (001, 6.3): greedy, one relation after the other.

A relation that a plan uses in several places, in one run or in several, is computed for each of
them unless it is kept. Keeping one changes what is best for all others. So the relation whose
keeping saves most is kept, then the next, as long as that saves anything.

What is kept is computed in an order, runs first and then from the sources up, each from those
before it: else two relations could be taken from each other, and from nothing.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from slackwater.planner.temporal import (
    Assignment,
    Costs,
    Graph,
    Key,
    Step,
    Timed,
    Timeline,
    Value,
    in_turn,
    less,
    plus,
)

Gain = tuple[float, int, Key]


@dataclass(frozen=True)
class Solution:
    """The cheapest plan with some relations kept, in order; for each of them, and last for what
    is wanted, the assignment with those before it kept."""

    graph: Graph
    wanted: tuple[Key, ...]
    kept: tuple[Key, ...]
    assignments: tuple[Assignment, ...]
    cost: Value

    def uses(self) -> Counter[Key]:
        """How often the plan asks for each relation in each run."""
        return Counter(below for _, _, asked in self._opened() for below in asked)

    def steps(self) -> dict[Key, Step]:
        """How each relation that the plan asks for comes to be there in a run."""
        return {key: step for key, step, _ in self._opened()}

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
    graph = Graph(timeline, costs, [*wanted.values(), *(timed for timed, _ in always)])
    keys = tuple((graph.numbers[timed], run) for run, timed in wanted.items())
    solver = _Solver(graph, keys)
    best = solver.solved(tuple((graph.numbers[timed], run) for timed, run in always))
    gains: list[Gain] = []
    offered = set(best.kept)
    while True:
        for key in _used_again(graph, best):
            if key not in offered:
                heapq.heappush(gains, (float("-inf"), len(offered), key))
                offered.add(key)
        found = _next(solver, best, gains)
        if found is None:
            return best
        best = found


def _used_again(graph: Graph, best: Solution) -> Iterator[Key]:
    """Relations whose rows a plan uses in several places of a run, with weights or without: where
    one of these is kept, the other is soon made of it."""
    uses = best.uses()
    together: Counter[tuple[int, int]] = Counter()
    for (i, run), count in uses.items():
        together[graph.contents[i], run] += count
    return (key for key in uses if together[graph.contents[key[0]], key[1]] > 1)


def _next(solver: _Solver, best: Solution, gains: list[Gain]) -> Solution | None:
    """With the relation that saves most kept, too; None where none saves anything.

    What a relation saves is computed again only when it comes first: others that were kept since
    seldom make it more.
    """
    fresh: set[Key] = set()
    left: list[Gain] = []
    found = None
    while gains:
        _, number, key = heapq.heappop(gains)
        tried = solver.solved((*best.kept, key))
        if not less(tried.cost, best.cost):
            left.append((0.0, number, key))  # it may save something when others are kept
            continue
        gain = _first_difference(tried.cost, best.cost)
        if key in fresh or not gains or gain <= gains[0][0]:
            found = tried
            break
        fresh.add(key)
        heapq.heappush(gains, (gain, number, key))
    for item in left:
        heapq.heappush(gains, item)
    return found


def _first_difference(a: Value, b: Value) -> float:
    pairs = zip(in_turn(a), in_turn(b), strict=True)
    return next((x - y for x, y in pairs if x != y), 0.0)


class _Solver:
    """Plans with some relations kept; assignments are remembered by what is kept in them."""

    def __init__(self, graph: Graph, wanted: tuple[Key, ...]) -> None:
        self._graph = graph
        self._wanted = wanted
        self._known: dict[tuple[Key, ...], Assignment] = {}

    def solved(self, kept: tuple[Key, ...]) -> Solution:
        """The cheapest plan with these kept."""
        order = tuple(sorted(kept, key=lambda k: (k[1], self._graph.depth(k[0]), k[0])))
        assignments = tuple(self._assignment(order[:n]) for n in range(len(order) + 1))
        total = self._graph.priced(0, 0.0)
        for key, assignment in zip(order, assignments, strict=False):
            total = plus(total, assignment.cost(key))
        for key in self._wanted:
            total = plus(total, assignments[-1].cost(key))
        return Solution(self._graph, self._wanted, order, assignments, total)

    def _assignment(self, kept: tuple[Key, ...]) -> Assignment:
        if kept not in self._known:
            made = Assignment(self._graph) if not kept else self._keeping(kept)
            self._known[kept] = made
        return self._known[kept]

    def _keeping(self, kept: tuple[Key, ...]) -> Assignment:
        return self._assignment(kept[:-1]).keeping(kept[-1])
