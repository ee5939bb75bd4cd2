"""How eagerly each path is flushed: paces, by incrementability (000, 3.3 and 4.2).

All paths begin at pace one: everything waits for the due point, which costs least. While a goal is
missed, the pace goes up that takes most of the missed final work away for each second that it adds:

    incrementability(P → P') = Σ over queries max(0, F(P) − max(goal, F(P'))) / (T(P') − T(P))

A path is never flushed more often than the subplan that it reads is run. When all goals are met,
paces are lowered again where that saves anything and misses nothing. Where prices differ, they are
then raised where early runs are so much cheaper that the whole is.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product
from math import inf

from slackwater.errors import UserError
from slackwater.planner.flushes import runs_at
from slackwater.planner.reach import at_least, shortest
from slackwater.planner.simulation import NOTHING, Cost, Simulation
from slackwater.planner.subplans import Path, is_subplan, number_of

LADDER = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 100)
"""Paces that are tried; one below and above the best are tried at the end."""
MODES = ("paths", "subplans", "leaves", "uniform")
"""What has a pace of its own: every path; every subplan; every source, whose rows go through to
the result at once; a query."""
WORTH = 0.005
"""Seconds of missed final work that a second of CPU time must take away: a goal that is out of
reach is not chased at any cost."""
SAVED = 0.05
"""The part of what pieces cost that running them at cheaper times must save."""
NEVER = 1e-12

Paces = Mapping[Path, int]


@dataclass(frozen=True)
class Goal:
    """How long the last run of a query may take: in seconds, or as a share of its batch."""

    seconds: float = inf
    share: float | None = None


@dataclass(frozen=True)
class Found:
    """Paces, what they are expected to cost, and what was wanted."""

    paces: Paces
    total: float  # CPU seconds until the due point, of all queries
    final: Mapping[str, float]  # seconds of the last run, by query
    wanted: Mapping[str, float]
    steps: int = 0
    tried: int = 1  # ways to share that were compared

    @property
    def missed(self) -> dict[str, float]:
        """Queries whose goal is not met, with the seconds that are too many."""
        late = {q: _late(f, self.wanted[q]) for q, f in self.final.items()}
        return {q: seconds for q, seconds in late.items() if seconds}

    def pace_of(self, number: int) -> int:
        """How often a subplan runs at least."""
        return max((pace for (n, _), pace in self.paces.items() if n == number), default=1)


@dataclass(frozen=True)
class _Step:
    """Paces that go up, what they bring for what they cost, and the final work then."""

    worth: float
    paces: Mapping[Path, int]
    final: Mapping[str, float]


_NO_STEP = _Step(-inf, {}, {})


@dataclass
class Search:
    """Paces for the queries of a simulation."""

    simulation: Simulation
    goals: Mapping[str, Goal]
    mode: str = "paths"
    most: int = LADDER[-1]
    worth: float = WORTH
    rivals: tuple[Search, ...] = ()
    """Searches for the same queries that share in other ways."""
    groups: list[tuple[Path, ...]] = field(default_factory=list)
    looks: int = 0
    """How often it was asked what a subplan costs."""

    def __post_init__(self) -> None:
        if self.mode not in MODES:
            raise UserError(
                f"Paces by '{self.mode}' are not known.",
                code="BAD_OPTION",
                hint=f"Choose one of {', '.join(MODES)}.",
            )
        self.dag = self.simulation.dag
        self.paths = [(s.number, n) for s in self.dag.subplans for n in self.simulation.moving(s)]
        self.groups = list(self._grouped())
        self.ladder = self._ladder()
        self.simulation.rungs = self.ladder
        self.wanted = self._wanted()
        self._least_final: dict[str, float] = {}
        self._reached: dict[str, tuple[float, Paces]] = {}

    def _ladder(self) -> list[int]:
        """Paces that are tried: all there are, where all of a query has one."""
        if self.mode == "uniform":
            return list(range(1, self.most + 1))
        return [k for k in LADDER if k < self.most] + [self.most]

    # -- what moves together

    def _grouped(self) -> Iterator[tuple[Path, ...]]:
        """Paths that have one pace."""
        match self.mode:
            case "paths":
                yield from ((path,) for path in self.paths)
            case "subplans":
                yield from self._by_subplan()
            case "leaves":
                yield from ((p,) for p in self.paths if not is_subplan(p[1]))
            case "uniform":
                yield from self._together()

    def _by_subplan(self) -> Iterator[tuple[Path, ...]]:
        for subplan in self.dag.subplans:
            own = tuple(p for p in self.paths if p[0] == subplan.number)
            if own:
                yield own

    @property
    def moves(self) -> Iterator[tuple[Path, ...]]:
        """Paths whose paces go up or down in one step: beside single ones all of a subplan, whose
        runs may then rely on references between its inputs; and all of a query, since who reads
        less often than is written has more to read."""
        yield from self.groups
        if self.mode == "paths":
            yield from (own for own in self._by_subplan() if len(own) > 1)
        if self.mode != "uniform":
            yield from dict.fromkeys(
                own for own in self._by_query() if len({n for n, _ in own}) > 1
            )

    def _by_query(self) -> Iterator[tuple[Path, ...]]:
        paced = {path for group in self.groups for path in group}
        for query in self.dag.roots:
            numbers = {subplan.number for subplan in self.dag.of(query)}
            yield tuple(p for p in self.paths if p[0] in numbers and p in paced)

    def _together(self) -> Iterator[tuple[Path, ...]]:
        """The paths of queries that have any subplan in common."""
        of: dict[str, set[str]] = {}
        for subplan in self.dag.subplans:
            together = set().union(*(of.get(q, {q}) for q in subplan.queries))
            of |= dict.fromkeys(together, together)
        for queries in {id(g): g for g in of.values()}.values():
            numbers = {s.number for s in self.dag.subplans if s.queries & queries}
            own = tuple(p for p in self.paths if p[0] in numbers)
            if own:
                yield own

    def flowing(self, paces: dict[Path, int]) -> dict[Path, int]:
        """Where only leaves have paces rows go on at once: who reads a subplan runs with it."""
        if self.mode == "leaves":
            for number, name in self.paths:
                if is_subplan(name):
                    child = number_of(name)
                    own = [pace for (n, _), pace in paces.items() if n == child]
                    paces[number, name] = max(own, default=1)
        return paces

    # -- what paces cost

    def batch(self) -> Found:
        """Everything waits for the due point."""
        return self._found(dict.fromkeys(self.paths, 1), 0)

    def _wanted(self) -> dict[str, float]:
        found = {}
        for query, final in self._final(dict.fromkeys(self.paths, 1)).items():
            goal = self.goals.get(query, Goal())
            found[query] = goal.seconds if goal.share is None else goal.share * final
        return found

    def cost(self, number: int, paces: Paces) -> Cost:
        """Of one subplan, and of those inside of it: one that always runs with the only one that
        reads it is a part of that, and nothing by itself."""
        self.looks += 1
        own = [paces[path] for path in self._paths_of[number]]
        if self._is_inside(number, paces):
            return NOTHING
        inside = self._inside(number, paces)
        cost = self.simulation.cost(number, own, inside)
        for reader in (number, *inside):
            for child, path in self._reads[reader]:
                runs = self._runs(child, paces)
                if paces[path] < runs:
                    cost += self.simulation.backlog(child, runs, paces[path])
        return cost

    def _runs(self, number: int, paces: Paces) -> int:
        """How often a subplan runs."""
        return runs_at(tuple(paces[path] for path in self._paths_of[number]))

    def _is_inside(self, number: int, paces: Paces) -> bool:
        reader = self.dag.only_readers[number]
        if reader is None:
            return False
        return len({paces[p] for n in (number, reader) for p in self._paths_of[n]}) <= 1

    def _inside(self, number: int, paces: Paces) -> frozenset[int]:
        """The subplans that are parts of one, at some paces."""
        own = [c for c in self.dag.only_read[number] if self._is_inside(c, paces)]
        return frozenset(own).union(*(self._inside(c, paces) for c in own))

    def units(self, paces: Paces) -> dict[int, frozenset[int]]:
        """The subplans that are no part of another, each with those inside of it."""
        numbers = (subplan.number for subplan in self.dag.subplans)
        return {n: self._inside(n, paces) for n in numbers if not self._is_inside(n, paces)}

    def run_with(self, number: int, paces: Paces) -> int:
        """The subplan that one is a part of; itself, if it is none."""
        while self._is_inside(number, paces):
            reader = self.dag.only_readers[number]
            assert reader is not None
            number = reader
        return number

    @cached_property
    def _paths_of(self) -> list[tuple[Path, ...]]:
        """By subplan, its moving inputs."""
        subplans = self.dag.subplans
        return [tuple((s.number, n) for n in self.simulation.moving(s)) for s in subplans]

    @cached_property
    def _reads(self) -> list[tuple[tuple[int, Path], ...]]:
        """By subplan, those of which it reads the changes, and on which path."""
        return [
            tuple((number_of(path[1]), path) for path in own if is_subplan(path[1]))
            for own in self._paths_of
        ]

    def _final(self, paces: Paces) -> dict[str, float]:
        final = dict.fromkeys(self.dag.roots, 0.0)
        for subplan in self.dag.subplans:
            seconds = self.cost(subplan.number, paces).final
            for query in subplan.queries:
                final[query] += seconds
        return final

    def total(self, paces: Paces) -> float:
        """CPU seconds of everything."""
        return sum(self.cost(s.number, paces).total for s in self.dag.subplans)

    def _found(self, paces: Paces, steps: int) -> Found:
        return Found(dict(paces), self.total(paces), self._final(paces), self.wanted, steps)

    # -- searching

    def greedy(self) -> Found:
        """The paces that incrementability leads to. What a step of some paths would bring changes
        only with steps that touch one of their queries. One pace for all of a query is so little to
        choose that all are tried."""
        if self.mode == "uniform":
            return self.exhaustive(self.ladder)
        paces = self.flowing(dict.fromkeys(self.paths, 1))
        final, steps = self._final(paces), 0
        moves = list(self.moves)
        queries = [self._queries(group) for group in moves]
        best: dict[int, _Step] = {}
        stale = set(range(len(moves)))
        while any(final[q] > self.wanted[q] for q in final):
            for i in stale:
                best[i] = self._step(moves[i], queries[i], paces, final)
            chosen = max(best, key=lambda i: best[i].worth, default=None)
            if chosen is None or not best[chosen].paces:
                break
            paces = self.flowing({**paces, **best[chosen].paces})
            final, steps = {**final, **best[chosen].final}, steps + 1
            stale = {i for i, own in enumerate(queries) if own & queries[chosen]}
        found = self._with_reached(self.lowered(self._found(paces, steps)))
        course = self.simulation.setting.course
        if course is None or not course.varies:
            return found
        return self.lowered(self.cheaper(found))

    def _step(
        self,
        group: Sequence[Path],
        queries: set[str],
        paces: dict[Path, int],
        final: dict[str, float],
    ) -> _Step:
        """One rung up for some paths, or several where one alone takes nothing away."""
        if all(final[q] <= self.wanted[q] for q in queries):
            return _NO_STEP
        for rung in (k for k in self.ladder if k > max(paces[path] for path in group)):
            raised = dict.fromkeys(group, rung)
            tried = self.flowing({**paces, **raised})
            if not self.is_allowed(tried, group):
                break
            gained, added, after = self._compared(paces, tried, final)
            if gained > max(0.0, added) * self._least(queries, final):
                changed = {q: seconds for q, seconds in after.items() if seconds != final[q]}
                return _Step(gained / max(added, NEVER), raised, changed)
        return _NO_STEP

    def _least(self, queries: set[str], final: Mapping[str, float]) -> float:
        """What a second of CPU time must take away: anything, where a goal within reach is missed;
        a goal out of reach is not chased at any cost."""
        late = (q for q in queries if final[q] > self.wanted[q])
        return 0.0 if any(map(self._is_within_reach, late)) else self.worth

    def _is_within_reach(self, query: str) -> bool:
        wanted = self.wanted[query] * (1 + 1e-9)
        if query not in self._least_final:
            self._least_final[query] = at_least(self, query)
        return self._least_final[query] <= wanted and self.reach(query)[0] <= wanted

    def reach(self, query: str) -> tuple[float, Paces]:
        """The shortest last run of a query, and at which paces that is."""
        if query not in self._reached:
            paces = shortest(self, query)
            self._reached[query] = self._final(paces)[query], paces
        return self._reached[query]

    def _with_reached(self, found: Found) -> Found:
        """The same, or other paces where a goal is missed that is within reach."""
        for query in sorted(found.missed):
            if self._is_within_reach(query):
                _, short = self.reach(query)
                own = {path: short[path] for path in self.paths if query in self._queries([path])}
                most = {path: max(pace, found.paces[path]) for path, pace in own.items()}
                tried = (self.flowing({**found.paces, **paces}) for paces in (own, most))
                more = [
                    self.lowered(self._found(paces, found.steps))
                    for paces in tried
                    if self.is_allowed(paces)
                ]
                found = min([found, *more], key=_badness)
        return found

    def _queries(self, group: Sequence[Path]) -> set[str]:
        return set().union(*(self.dag.subplans[number].queries for number, _ in group))

    def _compared(
        self, paces: Paces, tried: Paces, final: Mapping[str, float]
    ) -> tuple[float, float, dict[str, float]]:
        """The missed final work that other paces take away, what they add, and what is left of the
        queries concerned."""
        added, after = 0.0, dict[str, float]()
        touched = {path[0] for path, pace in tried.items() if pace != paces[path]}
        for number in self._concerned(touched):
            old, new = self.cost(number, paces), self.cost(number, tried)
            added += new.total - old.total
            for query in self.dag.subplans[number].queries:
                after[query] = after.get(query, final[query]) + new.final - old.final
        gained = sum(max(0.0, final[q] - max(self.wanted[q], after[q])) for q in after)
        lost = sum(max(0.0, after[q] - max(self.wanted[q], final[q])) for q in after)
        return gained - lost, added, after

    def _concerned(self, touched: Collection[int]) -> set[int]:
        """Subplans that may cost something else once the paces of some are others: those, what they
        read and what reads them, and what all of these may have become parts of."""
        below = {c for number in touched for c in self.dag.subplans[number].children}
        above = {reader for number in touched for reader in self.dag.parents[number]}
        found = below.union(touched, above)
        for number in (*found,):
            reader = self.dag.only_readers[number]
            while reader is not None and reader not in found:
                found.add(reader)
                reader = self.dag.only_readers[reader]
        return found

    def is_allowed(self, paces: Paces, touched: Sequence[Path] = ()) -> bool:
        """Is nothing flushed more often than it is made? Only what some paths, if any, have to do
        with is looked at."""
        numbers = {number for number, _ in touched or self.paths}
        return all(
            paces[number, name] <= self._made(number_of(name), paces)
            for number, name in self._between
            if number in numbers or number_of(name) in numbers
        )

    @cached_property
    def _between(self) -> list[Path]:
        """Paths from one subplan to another."""
        return [path for path in self.paths if is_subplan(path[1])]

    def _made(self, child: int, paces: Paces) -> int:
        moving = self.simulation.moving(self.dag.subplans[child])
        return max((paces[child, name] for name in moving), default=1)

    def lowered(self, found: Found) -> Found:
        """Paces as low as can be without missing more: what later steps made unnecessary, and one
        by one between the rungs."""
        paces, final = dict(found.paces), dict(found.final)
        lowering = True
        while lowering:
            lowering = False
            for group in self.moves:
                for lower in self._below(max(paces[path] for path in group)):
                    tried = self.flowing({**paces, **dict.fromkeys(group, lower)})
                    gained, added, after = self._compared(paces, tried, final)
                    if gained >= 0 and added < 0 and self.is_allowed(tried, group):
                        paces, final, lowering = tried, {**final, **after}, True
                        break
        return self._found(paces, found.steps)

    def cheaper(self, found: Found) -> Found:
        """Paces raised where work is cheaper before the due point than at it, and by enough that
        running more often is paid for."""
        paces, final, moved = dict(found.paces), dict(found.final), True
        while moved:
            moved = False
            for group in self.moves:
                own = {self.run_with(number, paces) for number, _ in group}
                spent = sum(self.cost(number, paces).total for number in own)
                best = -SAVED * spent
                for tried in self._raised(group, paces):
                    gained, added, after = self._compared(paces, tried, final)
                    if gained >= 0 and added < best:
                        best, better, moved = added, (tried, {**final, **after}), True
                if best < -SAVED * spent:
                    paces, final = better
        return self._found(paces, found.steps)

    def _raised(self, group: Sequence[Path], paces: dict[Path, int]) -> Iterator[dict[Path, int]]:
        """All higher rungs for some paths."""
        for rung in (k for k in self.ladder if k > max(paces[path] for path in group)):
            tried = self.flowing({**paces, **dict.fromkeys(group, rung)})
            if self.is_allowed(tried, group):
                yield tried

    def _below(self, pace: int) -> Iterator[int]:
        yield from (k for k in self.ladder if k < pace)
        if pace > 1:
            yield pace - 1

    # -- for comparison

    def brute_force(self, rungs: Sequence[int]) -> Found:
        """The cheapest of all paces that meet the goals; if none does, of those that miss least."""
        return min(map(self._at, self._all(rungs)), key=_badness)

    def exhaustive(self, rungs: Sequence[int]) -> Found:
        """The cheapest paces that meet the goals, where groups have nothing in common, as with one
        pace for each query, or for all that share anything. Goals out of reach are chased as far
        as it is worth."""
        paces = dict.fromkeys(self.paths, 1)
        for group in self.groups:
            tried = (dict.fromkeys(group, k) for k in rungs)
            paces |= min(tried, key=lambda own: self._price({**paces, **own}, self._queries(group)))
        return self._at(paces)

    def _price(self, paces: Paces, queries: set[str]) -> tuple[float, float]:
        """Of some queries that share with no others: what they miss, and what they take."""
        total, final = 0.0, dict.fromkeys(queries, 0.0)
        for subplan in self.dag.subplans:
            for query in subplan.queries & queries:
                final[query] += self.cost(subplan.number, paces).final
            if subplan.queries & queries:
                total += self.cost(subplan.number, paces).total
        missed = sum(_late(final[query], self.wanted[query]) for query in queries)
        return missed + self.worth * total if missed else 0.0, total

    def sampled(self, paces: Sequence[Sequence[int]]) -> Found:
        """The same among some paces, one for each group."""
        allowed = (self._set(p) for p in paces)
        return min((self._at(p) for p in allowed if self.is_allowed(p)), key=_badness)

    def _all(self, rungs: Sequence[int]) -> Iterator[dict[Path, int]]:
        for combination in product(rungs, repeat=len(self.groups)):
            paces = self._set(combination)
            if self.is_allowed(paces):
                yield paces

    def _set(self, combination: Sequence[int]) -> dict[Path, int]:
        paces = dict.fromkeys(self.paths, 1)
        for group, pace in zip(self.groups, combination, strict=True):
            paces |= dict.fromkeys(group, pace)
        return self.flowing(paces)

    def _at(self, paces: Paces) -> Found:
        return self._found(paces, 0)

    @property
    def choices(self) -> int:
        """How many paces there are to choose."""
        return len(self.groups)


def _late(final: float, wanted: float) -> float:
    """The seconds that a last run takes too long."""
    return final - wanted if final - wanted > 1e-9 * final else 0.0


def _badness(found: Found) -> tuple[float, float]:
    return sum(found.missed.values()), found.total
