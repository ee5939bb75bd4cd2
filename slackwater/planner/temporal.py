"""When everything is computed (001, 6): dynamic programming over relations and run points.

A relation at a time is available from then on. To have it in some run, either one of its members
is computed in that run, all inputs being there, or it was computed in an earlier run and saved:

    best[g, τ] = min over members m ( price(τ) · cost(m) + Σ there[c, τ] over inputs c of m )
    there[g, τ] = min ( best[g, τ],  min over τ' < τ ( best[g, τ'] + save(g)@τ' + load(g)@τ ) )

Relations depend on each other in circles (R' = R + ΔR, ΔR = R' − R). No cost is below that of any
input, so they are settled from the cheapest up, as by Dijkstra (Knuth 1977): each once.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from math import inf
from typing import Any, Protocol

from slackwater.planner.problem import Problem
from slackwater.tvr.memo import CHANGED, ROWS, SUMS_CHANGED, WEIGHTED, Member, Memo, Ref
from slackwater.types import BIGINT, WEIGHT, Field

Value = float | tuple[float, ...]
"""What is compared: the weighted cost, or the costs of all runs, the last first."""
CLEARLY = 1 - 1e-9
"""Sums of the same costs in another order differ by less than by this factor."""


@dataclass(frozen=True)
class Timed:
    """A group of the memo at a place of the timeline: between two of its points."""

    ref: Ref
    start: int
    end: int

    @property
    def point(self) -> int:
        """From when on it can be computed."""
        trait = self.ref.trait
        return self.start if trait.old and trait.wanted is None else self.end


class Costs(Protocol):
    """What work costs, in any unit."""

    def member(self, timed: Timed, member: Member, timeline: Timeline) -> float:
        """To compute a relation from its inputs; infinite where that is ruled out."""

    def read(self, timed: Timed, timeline: Timeline) -> float:
        """To read a source."""

    def save(self, timed: Timed, timeline: Timeline) -> float:
        """To keep a relation for later runs."""

    def load(self, timed: Timed, timeline: Timeline) -> float:
        """To have it again in a later run."""


@dataclass
class Timeline:
    """The memo along the points of a problem."""

    memo: Memo
    problem: Problem
    _rows: dict[Timed, float] = field(default_factory=dict, repr=False)

    def timed(self, ref: Ref, start: int, end: int) -> Timed:
        """A relation, under the one name that it has wherever it is met: rows at a time are those
        after the change before it, except at the first."""
        trait = ref.trait
        if not self.memo.changes(ref.tvr.node) and trait.wanted is None:
            return Timed(ref, 0, 0)
        if trait.wanted is not None or trait.kind in (CHANGED, SUMS_CHANGED):
            return Timed(ref, start, end)
        point = start if trait.old else end
        if point == 0:
            return Timed(self._at(ref, old=True), 0, min(1, len(self.problem.prices) - 1))
        return Timed(self._at(ref, old=False), point - 1, point)

    def _at(self, ref: Ref, old: bool) -> Ref:
        return ref.replace(trait=type(ref.trait)(ref.trait.kind, old))

    def members(self, timed: Timed) -> Iterator[tuple[Member, list[Timed]]]:
        """The ways to compute a relation, with what they read."""
        for member in self.memo.group(timed.ref).members:
            yield member, [self.timed(r, timed.start, timed.end) for r in member.refs]

    def is_source(self, timed: Timed) -> bool:
        """Is it stored without our doing?"""
        return self.memo.group(timed.ref).stored

    def rows(self, timed: Timed) -> float:
        """How many rows it is expected to have."""
        if timed not in self._rows:
            self._rows[timed] = self._expected(timed)
        return self._rows[timed]

    def _expected(self, timed: Timed) -> float:
        ref, trait = timed.ref, timed.ref.trait
        estimates = self.problem.estimates(timed.start, timed.end)
        found = estimates.of(ref.tvr.node)
        if trait.kind in (CHANGED, SUMS_CHANGED):
            count = found.change.rows
        else:
            count = found.before if trait.old else found.after
        if trait.wanted is None:
            return count
        wanted = sum(
            self.rows(self.timed(r, timed.start, timed.end))
            for r in trait.wanted.walk()
            if isinstance(r, Ref)
        )
        keys = estimates.domain.distinct(ref.tvr.node, trait.keys)
        return count * min(1.0, wanted / keys)


@dataclass(frozen=True, slots=True)
class Way:
    """One way to compute a relation: from which others, by number, and for how much."""

    member: Member
    inputs: tuple[int, ...]
    cost: float


class Graph:
    """All relations that a plan for some of them may need, by number, and what they cost."""

    def __init__(self, timeline: Timeline, costs: Costs, wanted: Iterable[Timed]) -> None:
        self.problem = timeline.problem
        self.nodes: list[Timed] = []
        self.numbers: dict[Timed, int] = {}
        self.ways: list[list[Way]] = []
        for timed in wanted:
            self._number(timed)
        done = 0
        while done < len(self.nodes):
            timed = self.nodes[done]
            ways = []
            for member, inputs in timeline.members(timed):
                cost = costs.member(timed, member, timeline)
                if cost < inf:
                    ways.append(Way(member, tuple(map(self._number, inputs)), cost))
            self.ways.append(ways)
            done += 1
        self.reads = [
            costs.read(t, timeline) if timeline.is_source(t) else None for t in self.nodes
        ]
        self.saves = [costs.save(t, timeline) for t in self.nodes]
        self.loads = [costs.load(t, timeline) for t in self.nodes]
        self.ranks = timeline.memo.ranks()
        self.groups = [timeline.memo.group(t.ref).id for t in self.nodes]
        self.users = self._users()
        self.contents = self._contents()

    def _users(self) -> list[list[tuple[int, Way]]]:
        """By number, the ways that take a relation, each with what it computes."""
        found: list[list[tuple[int, Way]]] = [[] for _ in self.nodes]
        for i, ways in enumerate(self.ways):
            for way in ways:
                for below in dict.fromkeys(way.inputs):
                    found[below].append((i, way))
        return found

    def _contents(self) -> list[int]:
        """By number, the first of the relations that have the same rows, with weights or not."""
        first: dict[Timed, int] = {}
        found = []
        for i, timed in enumerate(self.nodes):
            trait = timed.ref.trait
            if trait.kind == ROWS:
                weighted = (*timed.ref.schema, Field(WEIGHT, BIGINT, False))
                other = timed.ref.replace(trait=replace(trait, kind=WEIGHTED), fields=weighted)
                timed = replace(timed, ref=other)
            found.append(first.setdefault(timed, i))
        return found

    def depth(self, i: int) -> int:
        """How many members deep a relation is computed from sources, at least."""
        return self.ranks[self.groups[i]]

    def _number(self, timed: Timed) -> int:
        if timed not in self.numbers:
            self.numbers[timed] = len(self.nodes)
            self.nodes.append(timed)
        return self.numbers[timed]

    def runs(self, i: int) -> range:
        """The runs in which a relation can be there."""
        return self.problem.points[self.nodes[i].point :]

    def priced(self, run: int, cost: float) -> Value:
        """What counts of a cost in a run."""
        if self.problem.last_first:
            last = len(self.problem.prices) - 1
            return tuple(cost if last - i == run else 0.0 for i in self.problem.points)
        return cost * self.problem.prices[run]

    @property
    def never(self) -> Value:
        """The cost of what nobody knows yet how to have."""
        return tuple(inf for _ in self.problem.points) if self.problem.last_first else inf


@dataclass(frozen=True, slots=True)
class Step:
    """How a relation comes to be there in a run: by a way, from an earlier run, or as a source."""

    way: Way | None = None
    saved_at: int | None = None


Key = tuple[int, int]
"""A relation, by number, in a run."""


class Assignment:
    """The cheapest way to every relation in every run. `kept` are relations with the run in which
    they are computed anyway, so that having them there costs nothing more.

    What relations cost is one list, by relation and run, since many assignments are made that
    differ little.
    """

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._runs = len(graph.problem.prices)
        self.kept: frozenset[Key] = frozenset()
        self._costs: list[Value] = [graph.never] * (len(graph.nodes) * self._runs)
        self._steps: list[Step | None] = [None] * len(self._costs)
        known: list[Key] = []
        for i in range(len(graph.nodes)):
            cost, alone = graph.reads[i], [way for way in graph.ways[i] if not way.inputs]
            for run in graph.runs(i):
                if cost is not None:
                    self._take((i, run), graph.priced(run, cost), known)
                for way in alone:
                    self._take((i, run), graph.priced(run, way.cost), known, way)
        self._settle(known)

    def keeping(self, key: Key) -> Assignment:
        """The same with one more relation kept: only what may be computed from it changes."""
        made = object.__new__(Assignment)
        made._graph, made._runs = self._graph, self._runs
        made.kept = self.kept | {key}
        made._costs, made._steps = self._costs.copy(), self._steps.copy()
        made._costs[key[0] * self._runs + key[1]] = self._graph.priced(key[1], 0.0)
        made._settle([key])
        return made

    def cost(self, key: Key) -> Value:
        """What it costs to have a relation in a run."""
        return self._costs[key[0] * self._runs + key[1]]

    def step(self, key: Key) -> Step:
        """How it comes to be there."""
        found = self._steps[key[0] * self._runs + key[1]]
        assert found is not None, self._graph.nodes[key[0]]
        return found

    def _settle(self, known: Iterable[Key]) -> None:
        """From relations that have become cheaper, the cheapest first, to all that do so by
        them."""
        graph, runs, costs = self._graph, self._runs, self._costs
        prices = graph.problem.prices
        total = self._in_turn if graph.problem.last_first else self._weighted
        waiting: list[tuple[Any, Key]] = [(costs[i * runs + run], (i, run)) for i, run in known]
        heapq.heapify(waiting)
        while waiting:
            cost, (i, run) = heapq.heappop(waiting)
            if cost != costs[i * runs + run]:
                continue  # it has become cheaper since
            cheaper: list[Key] = []
            for user, way in graph.users[i]:
                self._take((user, run), total(way, run), cheaper, way)
            saved = plus(cost, graph.priced(run, graph.saves[i]))
            for later in range(run + 1, len(prices)):
                loaded = plus(saved, graph.priced(later, graph.loads[i]))
                self._take((i, later), loaded, cheaper, saved_at=run)
            for key in cheaper:
                heapq.heappush(waiting, (costs[key[0] * runs + key[1]], key))

    def _take(
        self,
        key: Key,
        cost: Value,
        cheaper: list[Key],
        way: Way | None = None,
        saved_at: int | None = None,
    ) -> None:
        """Note a way to have a relation in a run, if it is clearly the cheapest so far."""
        at = key[0] * self._runs + key[1]
        if less(cost, self._costs[at]):
            self._costs[at], self._steps[at] = cost, Step(way, saved_at)
            cheaper.append(key)

    def _weighted(self, way: Way, run: int) -> float:
        """What a way costs with all that it takes, where costs are numbers."""
        found: Any = self._graph.problem.prices[run] * way.cost
        for below in way.inputs:
            found += self._costs[below * self._runs + run]
        return found  # type: ignore[no-any-return]

    def _in_turn(self, way: Way, run: int) -> Value:
        """The same, where they are compared one after the other."""
        found = self._graph.priced(run, way.cost)
        for below in way.inputs:
            found = plus(found, self._costs[below * self._runs + run])
        return found


def plus(a: Value, b: Value) -> Value:
    """Both together."""
    if isinstance(a, tuple) or isinstance(b, tuple):
        return tuple(x + y for x, y in zip(in_turn(a), in_turn(b), strict=True))
    return a + b


def less(a: Value, b: Value) -> bool:
    """Clearly less."""
    if isinstance(a, float) and isinstance(b, float):
        return a < b * CLEARLY
    for x, y in zip(in_turn(a), in_turn(b), strict=True):
        if x < y * CLEARLY or y < x * CLEARLY:
            return x < y
    return False


def in_turn(value: Value) -> tuple[float, ...]:
    """The numbers that are compared, the first that differs deciding."""
    return value if isinstance(value, tuple) else (value,)
