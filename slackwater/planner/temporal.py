"""When everything is computed (001, 6): dynamic programming over relations and run points.

A relation at a time is available from then on. To have it in some run, either one of its members
is computed in that run, all inputs being there, or it was computed in an earlier run and saved:

    best[g, τ] = min over members m ( price(τ) · cost(m) + Σ there[c, τ] over inputs c of m )
    there[g, τ] = min ( best[g, τ],  min over τ' < τ ( best[g, τ'] + save(g)@τ' + load(g)@τ ),
                        load(g)@τ  if it exists since τ or before )

Relations depend on each other in circles (R' = R + ΔR, ΔR = R' − R). No cost is below that of any
input, so they are settled from the cheapest up, as by Dijkstra (Knuth 1977): each once.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterable, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf

from slackwater.planner.existing import Existing
from slackwater.planner.problem import Problem
from slackwater.planner.timeline import Costs, Timed, Timeline
from slackwater.tvr.memo import (
    ROWS,
    WEIGHTED,
    Member,
    Trait,
    Tvr,
)

EARLIER = 1e-4
"""Where the last run is compared first: what a second counts for in the run before it. Before that
one, all count the same."""
ByEngine = tuple[float, ...]
"""A cost on each engine and, last, in a run that does nothing: there is no way to do it there."""
IDLE = -1
"""The engine of a run that does nothing."""
WAITS = 2
"""Work on what changes is done in so many of the runs that cost the same, from the first on that it
is possible in. It may wait for the next, to share with it what both read; for one after that it
was not seen to pay."""
CLEARLY = 1 - 1e-12
"""Sums of the same costs in another order differ by less than by this factor."""


@dataclass(frozen=True, slots=True)
class Way:
    """One way to compute a relation: from which others, by number, and for how much."""

    member: Member
    inputs: tuple[int, ...]
    costs: ByEngine


Use = tuple[int, tuple[float, ...], tuple[int, ...], Way]
"""A way as it is looked at from its inputs: where in the list of costs is what it computes, what it
costs itself in each run, where its inputs are."""


class Graph:
    """All relations that a plan for some of them may need, by number, and what they cost: on each
    engine, of which each run has one."""

    def __init__(
        self,
        timeline: Timeline,
        engines: Sequence[Costs],
        wanted: Iterable[Timed],
        asked: Collection[int],
    ) -> None:
        self.problem = timeline.problem
        self._asked = frozenset(asked)  # the runs in which any of them is wanted
        self.where: tuple[int, ...] = (0,) * len(self.problem.prices)
        """The engine of each run, by number, or `IDLE`."""
        self.weights = weights(self.problem)
        """What a second of each run counts for."""
        self.nodes: list[Timed] = []
        self.numbers: dict[Timed, int] = {}
        self.ways: list[list[Way]] = []
        for timed in wanted:
            self._number(timed)
        done = 0
        while done < len(self.nodes):
            timed = self.nodes[done]
            ways = []
            for member, at, inputs in timeline.members(timed):
                cost = _by_engine([costs.member(at, member, timeline) for costs in engines])
                if min(cost) < inf:
                    ways.append(Way(member, tuple(map(self._number, inputs)), cost))
            self.ways.append(ways)
            done += 1
        self.reads = {
            i: _by_engine(costs.read(t, timeline) for costs in engines)
            for i, t in enumerate(self.nodes)
            if timeline.is_source(t)
        }
        self.saves = [_by_engine(costs.save(t, timeline) for costs in engines) for t in self.nodes]
        self.loads = [_by_engine(costs.load(t, timeline) for costs in engines) for t in self.nodes]
        self.existing = {
            self.numbers[timed]: replace(one, rows=timeline.rows(timed))
            for timed, one in timeline.existing.items()
            if timed in self.numbers
        }
        self.ranks = timeline.memo.ranks()
        self.groups = [timeline.memo.group(t.ref).id for t in self.nodes]
        self.contents = self._contents()
        self._prompt = timeline.prompt
        self._look_from_inputs()

    def on(self, where: Sequence[int]) -> Graph:
        """The same with other engines for the runs."""
        other = copy(self)
        other.where = tuple(where)
        other._look_from_inputs()
        return other

    def _look_from_inputs(self) -> None:
        """The ways that take a relation, and the runs in which they may: both by its number."""
        runs = len(self.weights)
        waits = WAITS if self._prompt else runs
        open_from = [self._open(point, waits) for point in self.problem.points]
        always = self._open(0, runs)
        self.users: list[list[Use]] = [[] for _ in self.nodes]
        takers: list[set[frozenset[int]]] = [set() for _ in self.nodes]
        for i, ways in enumerate(self.ways):
            node = self.nodes[i]
            own = open_from[node.point] if node.end else always
            for way in ways:
                inputs = tuple([below * runs for below in way.inputs])
                use = (i * runs, self._spent(way.costs, own), inputs, way)
                for below in dict.fromkeys(way.inputs):
                    self.users[below].append(use)
                    takers[below].add(own)
        self.used = [sorted(self._asked.union(*own)) for own in takers]

    def _open(self, point: int, most: int) -> frozenset[int]:
        """The runs in which what is there from a point on may be computed: those in which something
        is wanted, and others unless so many before them are on the same engine and cost no more."""
        found: list[int] = []
        for run in self.problem.points[max(point, self.problem.done) :]:
            weight, engine = self.weights[run], self.where[run]
            alike = [r for r in found if self.where[r] == engine and self.weights[r] <= weight]
            if engine != IDLE and (run in self._asked or len(alike) < most):
                found.append(run)
        return frozenset(found)

    def _contents(self) -> list[int]:
        """By number, the first of the relations that have the same rows, with weights or not."""
        first: dict[tuple[Tvr, Trait, int, int], int] = {}
        found = []
        for i, timed in enumerate(self.nodes):
            trait = timed.ref.trait
            if trait.kind == ROWS:
                trait = Trait(WEIGHTED, trait.old, trait.keys, trait.wanted)
            found.append(first.setdefault((timed.ref.tvr, trait, timed.start, timed.end), i))
        return found

    @cached_property
    def _alike(self) -> dict[int, list[int]]:
        found: dict[int, list[int]] = {}
        for i, content in enumerate(self.contents):
            found.setdefault(content, []).append(i)
        return found

    def alike(self, i: int) -> list[int]:
        """The relations that have the same rows as one, with weights or without."""
        return self._alike[self.contents[i]]

    def depth(self, i: int) -> int:
        """How many members deep a relation is computed from sources, at least."""
        return self.ranks[self.groups[i]]

    def _number(self, timed: Timed) -> int:
        if timed not in self.numbers:
            self.numbers[timed] = len(self.nodes)
            self.nodes.append(timed)
        return self.numbers[timed]

    def _spent(self, costs: ByEngine, runs: Collection[int]) -> tuple[float, ...]:
        """What counts of a cost in each of some runs, on its engine; elsewhere it is ruled out."""
        every = enumerate(zip(self.weights, self.where, strict=True))
        return tuple([w * costs[e] if run in runs else inf for run, (w, e) in every])


def weights(problem: Problem) -> tuple[float, ...]:
    """What a second of each run counts for: its price or, where the last run is compared first, so
    little that it decides only between plans whose later runs cost the same."""
    if not problem.last_first:
        return problem.prices
    return tuple(EARLIER ** min(2, back) for back in reversed(problem.points))


@dataclass(frozen=True, slots=True)
class Step:
    """How a relation comes to be there in a run: by a way, from an earlier run of the plan, because
    it exists anyway, or as a source."""

    way: Way | None = None
    saved_at: int | None = None
    existing: Existing | None = None


Key = tuple[int, int]
"""A relation, by number, in a run."""


class Assignment:
    """The cheapest way to every relation in every run. `kept` are relations with the run in which
    they are computed anyway, so that having them there costs nothing more.

    What relations cost is one list, by relation and run, since many assignments are made that
    differ little; and how they come about, another: a way, or the run that has saved them, or what
    exists.
    """

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._runs = len(graph.weights)
        self.kept: frozenset[Key] = frozenset()
        self._costs = [inf] * (len(graph.nodes) * self._runs)
        self._steps: list[Way | int | Existing | None] = [None] * len(self._costs)
        known: list[int] = []
        for i in range(len(graph.nodes)):
            cost, alone = graph.reads.get(i), [way for way in graph.ways[i] if not way.inputs]
            existing = graph.existing.get(i)
            for run in graph.used[i]:
                if run < graph.nodes[i].point:
                    continue
                at, weight, engine = i * self._runs + run, graph.weights[run], graph.where[run]
                if cost is not None:
                    self._take(at, weight * cost[engine], None, known)
                if existing is not None and run >= existing.since:
                    self._take(at, weight * graph.loads[i][engine], existing, known)
                for way in alone:
                    self._take(at, weight * way.costs[engine], way, known)
        self._settle(known, inf)

    def keeping(self, key: Key) -> Assignment:
        """The same with one more relation kept: only what may be computed from it changes."""
        return self._keeping(key, inf)

    def cost_keeping(self, key: Key, wanted: Sequence[Key]) -> float:
        """What some relations would cost if one more were kept. Nothing that costs as much as the
        dearest of them can make any of them cheaper."""
        made = self._keeping(key, max(map(self.cost, wanted)))
        return sum(map(made.cost, wanted))

    def _keeping(self, key: Key, most: float) -> Assignment:
        made = object.__new__(Assignment)
        made._graph, made._runs = self._graph, self._runs
        made.kept = self.kept | {key}
        made._costs, made._steps = self._costs.copy(), self._steps.copy()
        at = key[0] * self._runs + key[1]
        made._costs[at] = 0.0
        made._settle([at], most)
        return made

    def cost(self, key: Key) -> float:
        """What it costs to have a relation in a run, all runs up to it weighted."""
        return self._costs[key[0] * self._runs + key[1]]

    def by_run(self, key: Key, known: dict[Key, list[float]]) -> list[float]:
        """The same, by run and not weighted."""
        if key not in known:
            known[key] = self._by_run(key, known)
        return known[key]

    def _by_run(self, key: Key, known: dict[Key, list[float]]) -> list[float]:
        (i, run), graph = key, self._graph
        found = [0.0] * self._runs
        if key in self.kept:
            return found
        step = self.step(key)
        below: list[Key] = []
        if step.saved_at is not None:
            below = [(i, step.saved_at)]
            found[step.saved_at] += graph.saves[i][graph.where[step.saved_at]]
            found[run] += graph.loads[i][graph.where[run]]
        elif step.way is not None:
            below = [(b, run) for b in step.way.inputs]
            found[run] += step.way.costs[graph.where[run]]
        elif step.existing is not None:
            found[run] += graph.loads[i][graph.where[run]]
        else:
            found[run] += graph.reads[i][graph.where[run]]
        lower = [self.by_run(b, known) for b in below]
        return [sum(each) for each in zip(found, *lower, strict=True)]

    def step(self, key: Key) -> Step:
        """How it comes to be there."""
        found = self._steps[key[0] * self._runs + key[1]]
        if isinstance(found, Existing):
            return Step(existing=found)
        return Step(saved_at=found) if isinstance(found, int) else Step(found)

    def _settle(self, known: list[int], most: float) -> None:
        """From relations that have become cheaper, the cheapest first, to all that do so by
        them, as long as these cost less than `most`. This is where planning spends its time, hence
        one loop."""
        graph, runs, costs, steps = self._graph, self._runs, self._costs, self._steps
        users, used, push, pop = graph.users, graph.used, heapq.heappush, heapq.heappop
        weighted = list(zip(graph.weights, graph.where, strict=True))
        waiting = [(costs[at], at) for at in known]
        heapq.heapify(waiting)
        while waiting:
            cost, at = pop(waiting)
            if cost != costs[at]:
                continue  # it has become cheaper since
            if cost >= most:
                return
            i, run = divmod(at, runs)
            for user, own, inputs, way in users[i]:
                target, whole = user + run, own[run]
                limit = costs[target] * CLEARLY
                if whole + cost < limit:  # else other inputs do not matter
                    for below in inputs:
                        whole += costs[below + run]
                    if whole < limit:
                        costs[target], steps[target] = whole, way
                        push(waiting, (whole, target))
            weight, engine = weighted[run]
            saved, loads = cost + weight * graph.saves[i][engine], graph.loads[i]
            for later in used[i]:
                if later <= run:
                    continue
                weight, engine = weighted[later]
                target, whole = i * runs + later, saved + weight * loads[engine]
                if whole < costs[target] * CLEARLY:
                    costs[target], steps[target] = whole, run
                    push(waiting, (whole, target))

    def _take(
        self, at: int, cost: float, step: Way | int | Existing | None, cheaper: list[int]
    ) -> None:
        """Note a way to have a relation in a run, if it is clearly the cheapest so far."""
        if cost < self._costs[at] * CLEARLY:
            self._costs[at], self._steps[at] = cost, step
            cheaper.append(at)


def _by_engine(costs: Iterable[float]) -> ByEngine:
    return (*costs, inf)
