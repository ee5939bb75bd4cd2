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
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, reduce
from math import inf
from typing import Any, Protocol

import numpy as np

from slackwater.planner.problem import Problem, Span, array
from slackwater.stats.amounts import Amount, least
from slackwater.tree import Node
from slackwater.tvr import zset
from slackwater.tvr.memo import (
    CHANGED,
    ROWS,
    SUMS_CHANGED,
    WEIGHTED,
    Member,
    Memo,
    Ref,
    Trait,
    Tvr,
)

Value = float | tuple[float, ...]
"""What is compared: the weighted cost, or the costs of all runs, the last first."""
CLEARLY = 1 - 1e-9
"""Sums of the same costs in another order differ by less than by this factor."""


@dataclass(frozen=True, eq=False)
class Timed(Node):
    """A group of the memo at a place of the timeline: between two of its points."""

    ref: Ref
    start: int
    end: int

    @cached_property
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
    """The memo along the points of a problem. It is the same at every interval; where that is not
    taken for granted, there is one for each in `memos`. Unless merges are `left_deep`, rows also
    follow from those before the last change, and changes are put together from several."""

    memo: Memo
    problem: Problem
    left_deep: bool = True
    memos: Mapping[tuple[int, int], Memo] = field(default_factory=dict)
    _spans: dict[tuple[int, int], Span] = field(default_factory=dict, repr=False)
    _counts: dict[tuple[Span, Ref], Amount] = field(default_factory=dict, repr=False)
    _timed: dict[tuple[Ref, int, int], Timed] = field(default_factory=dict, repr=False)
    _in_two: dict[Ref, Member] = field(default_factory=dict, repr=False)

    def timed(self, ref: Ref, start: int, end: int) -> Timed:
        """A relation, under the one name that it has wherever it is met: rows at a time are those
        after the change before it, except at the first."""
        key = (ref, start, end)
        found = self._timed.get(key)
        if found is None:
            found = self._timed[key] = self._named(ref, start, end)
        return found

    def _named(self, ref: Ref, start: int, end: int) -> Timed:
        trait = ref.trait
        if not self.memo.changes(ref.tvr.node) and trait.wanted is None:
            return Timed(ref, 0, 0)
        if trait.wanted is not None or _is_change(ref):
            return Timed(ref, start, end)
        point = start if trait.old else end
        if point == 0:
            return Timed(self._at(ref, old=True), 0, min(1, len(self.problem.prices) - 1))
        return Timed(self._at(ref, old=False), point - 1, point)

    def _at(self, ref: Ref, old: bool) -> Ref:
        return ref.at(Trait(ref.trait.kind, old))

    def members(self, timed: Timed) -> Iterator[tuple[Member, Timed, list[Timed]]]:
        """The ways to compute a relation, each with the interval it is taken at and what it
        reads."""
        yield from self._members(timed, timed)
        if self.left_deep or timed.ref.trait.wanted is not None or timed.end < 2:
            return
        if _is_change(timed.ref):
            for middle in range(timed.start + 1, timed.end):
                yield self._put_together(timed, middle)
        elif not timed.ref.trait.old:
            for start in range(timed.end - 1):
                yield from self._members(timed, Timed(timed.ref, start, timed.end))

    def _members(self, timed: Timed, at: Timed) -> Iterator[tuple[Member, Timed, list[Timed]]]:
        """By the rules, at an interval; at longer ones than its own, those that follow a change."""
        memo = self.memos.get((at.start, at.end), self.memo)
        for member in memo.group(timed.ref).members:
            if at is timed or any(_is_change(r) for r in member.refs):
                yield member, at, [self.timed(r, at.start, at.end) for r in member.refs]

    def _put_together(self, timed: Timed, middle: int) -> tuple[Member, Timed, list[Timed]]:
        """ΔR(t, t''] = ΔR(t, t'] + ΔR(t', t'']"""
        ref = timed.ref
        if ref not in self._in_two:
            earlier = ref.at(Trait(ref.trait.kind, old=True))
            self._in_two[ref] = Member("put_together", "", zset.plus([earlier, ref]))
        parts = [Timed(ref, timed.start, middle), Timed(ref, middle, timed.end)]
        return self._in_two[ref], timed, parts

    def is_source(self, timed: Timed) -> bool:
        """Is it stored without our doing?"""
        return self.memo.group(timed.ref).stored

    def span(self, timed: Timed) -> Span:
        """The span in which a relation's interval is looked at."""
        interval = (timed.start, timed.end)
        if interval not in self._spans:
            known = self.problem.spans.get(interval)
            self._spans[interval] = known or self.problem.span(interval)
        return self._spans[interval]

    def rows(self, timed: Timed) -> float:
        """How many rows it is expected to have."""
        return within(self.counts(self.span(timed), timed.ref), timed)

    def counts(self, span: Span, ref: Ref) -> Amount:
        """The rows of a group over a span."""
        key = (span, ref)
        if key not in self._counts:
            self._counts[key] = self._expected(span, ref)
        return self._counts[key]

    def _expected(self, span: Span, ref: Ref) -> Amount:
        trait, found = ref.trait, span.estimates.of(ref.tvr.node)
        if _is_change(ref):
            count = 0.0 if trait.old else found.change.rows  # of two parts, one counts for both
        else:
            count = found.before if trait.old else found.after
        if trait.wanted is None:
            return count
        wanted = sum(self.read(span, r) for r in trait.wanted.walk() if isinstance(r, Ref))
        keys = span.estimates.domain.distinct(ref.tvr.node, trait.keys)
        return count * least(1.0, wanted / keys)

    def read(self, span: Span, ref: Ref) -> Amount:
        """The rows of a group as it is read over a span, under its one name."""
        timed = [self.timed(ref, start, end) for start, end in span.intervals]
        if all(one is timed[0] for one in timed):
            return self.rows(timed[0])
        return array(self.rows(one) for one in timed)


def _is_change(ref: Ref) -> bool:
    return ref.trait.kind in (CHANGED, SUMS_CHANGED)


def within(amount: Amount, timed: Timed) -> float:
    """Of what there is over a span, that of one interval. Only the intervals from each point to the
    next are looked at together."""
    return float(amount[timed.start] if isinstance(amount, np.ndarray) else amount)


@dataclass(frozen=True, slots=True)
class Way:
    """One way to compute a relation: from which others, by number, and for how much."""

    member: Member
    inputs: tuple[int, ...]
    cost: float


Use = tuple[int, float, tuple[int, ...], Way]
"""A way as it is looked at from its inputs: where in the list of costs is what it computes, what it
costs itself, where its inputs are."""


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
            for member, at, inputs in timeline.members(timed):
                cost = costs.member(at, member, timeline)
                if cost < inf:
                    ways.append(Way(member, tuple(map(self._number, inputs)), float(cost)))
            self.ways.append(ways)
            done += 1
        self.reads = [
            float(costs.read(t, timeline)) if timeline.is_source(t) else None for t in self.nodes
        ]
        self.saves = [float(costs.save(t, timeline)) for t in self.nodes]
        self.loads = [float(costs.load(t, timeline)) for t in self.nodes]
        self.ranks = timeline.memo.ranks()
        self.groups = [timeline.memo.group(t.ref).id for t in self.nodes]
        self.users = self._users()
        self.contents = self._contents()

    def _users(self) -> list[list[Use]]:
        """By number, the ways that take a relation."""
        runs = len(self.problem.prices)
        found: list[list[Use]] = [[] for _ in self.nodes]
        for i, ways in enumerate(self.ways):
            for way in ways:
                use = (i * runs, way.cost, tuple(below * runs for below in way.inputs), way)
                for below in dict.fromkeys(way.inputs):
                    found[below].append(use)
        return found

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
    differ little; and how they come about, another: a way, or the run that has saved them.
    """

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._runs = len(graph.problem.prices)
        self.kept: frozenset[Key] = frozenset()
        self._costs: list[Any] = [graph.never] * (len(graph.nodes) * self._runs)
        self._steps: list[Way | int | None] = [None] * len(self._costs)
        known: list[int] = []
        for i in range(len(graph.nodes)):
            cost, alone = graph.reads[i], [way for way in graph.ways[i] if not way.inputs]
            for run in graph.runs(i):
                at = i * self._runs + run
                if cost is not None:
                    self._take(at, graph.priced(run, cost), None, known)
                for way in alone:
                    self._take(at, graph.priced(run, way.cost), way, known)
        self._settle(known, graph.never)

    def keeping(self, key: Key) -> Assignment:
        """The same with one more relation kept: only what may be computed from it changes."""
        return self._keeping(key, self._graph.never)

    def cost_keeping(self, key: Key, wanted: Sequence[Key]) -> Value:
        """What some relations would cost if one more were kept. Nothing that costs as much as the
        dearest of them can make any of them cheaper."""
        made = self._keeping(key, max(map(self.cost, wanted)))
        return total(map(made.cost, wanted))

    def _keeping(self, key: Key, most: Value) -> Assignment:
        made = object.__new__(Assignment)
        made._graph, made._runs = self._graph, self._runs
        made.kept = self.kept | {key}
        made._costs, made._steps = self._costs.copy(), self._steps.copy()
        at = key[0] * self._runs + key[1]
        made._costs[at] = self._graph.priced(key[1], 0.0)
        made._settle([at], most)
        return made

    def cost(self, key: Key) -> Value:
        """What it costs to have a relation in a run."""
        found: Value = self._costs[key[0] * self._runs + key[1]]
        return found

    def step(self, key: Key) -> Step:
        """How it comes to be there."""
        found = self._steps[key[0] * self._runs + key[1]]
        return Step(saved_at=found) if isinstance(found, int) else Step(found)

    def _settle(self, known: list[int], most: Value) -> None:
        """From relations that have become cheaper, the cheapest first, to all that do so by
        them, as long as these cost less than `most`."""
        waiting = [(self._costs[at], at) for at in known]
        heapq.heapify(waiting)
        if self._graph.problem.last_first:
            self._in_turn(waiting, most)
        else:
            self._weighted(waiting, most)

    def _weighted(self, waiting: list[tuple[Any, int]], most: Any) -> None:
        """Where costs are numbers. This is where planning spends its time, hence one loop."""
        graph, runs, costs, steps = self._graph, self._runs, self._costs, self._steps
        prices, users, push, pop = graph.problem.prices, graph.users, heapq.heappush, heapq.heappop
        while waiting:
            cost, at = pop(waiting)
            if cost != costs[at]:
                continue  # it has become cheaper since
            if cost >= most:
                return
            i, run = divmod(at, runs)
            price = prices[run]
            for user, own, inputs, way in users[i]:
                target, whole = user + run, price * own
                limit = costs[target] * CLEARLY
                if whole + cost < limit:  # else other inputs do not matter
                    for below in inputs:
                        whole += costs[below + run]
                    if whole < limit:
                        costs[target], steps[target] = whole, way
                        push(waiting, (whole, target))
            saved, load = cost + price * graph.saves[i], graph.loads[i]
            for later in range(run + 1, runs):
                target, whole = i * runs + later, saved + prices[later] * load
                if whole < costs[target] * CLEARLY:
                    costs[target], steps[target] = whole, run
                    push(waiting, (whole, target))

    def _in_turn(self, waiting: list[tuple[Any, int]], most: Value) -> None:
        """Where they are compared one after the other."""
        graph, runs, costs = self._graph, self._runs, self._costs
        while waiting:
            cost, at = heapq.heappop(waiting)
            if cost != costs[at]:
                continue
            if cost >= most:
                return
            i, run = divmod(at, runs)
            cheaper: list[int] = []
            for user, own, inputs, way in graph.users[i]:
                whole = graph.priced(run, own)
                if not less(plus(whole, cost), costs[user + run]):
                    continue
                for below in inputs:
                    whole = plus(whole, costs[below + run])
                self._take(user + run, whole, way, cheaper)
            saved = plus(cost, graph.priced(run, graph.saves[i]))
            for later in range(run + 1, runs):
                loaded = plus(saved, graph.priced(later, graph.loads[i]))
                self._take(i * runs + later, loaded, run, cheaper)
            for target in cheaper:
                heapq.heappush(waiting, (costs[target], target))

    def _take(self, at: int, cost: Value, step: Way | int | None, cheaper: list[int]) -> None:
        """Note a way to have a relation in a run, if it is clearly the cheapest so far."""
        if less(cost, self._costs[at]):
            self._costs[at], self._steps[at] = cost, step
            cheaper.append(at)


def total(values: Iterable[Value]) -> Value:
    """All together; there is at least one."""
    return reduce(plus, values)


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
