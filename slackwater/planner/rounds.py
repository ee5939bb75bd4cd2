"""Paces and kept states in turn, where views have budgets for their states (DESIGN 6, steps 4-6).

What a run takes depends on what is kept, and what is worth keeping on how much comes between two
runs. So paces are looked for with all states kept; which of them the budgets allow is then chosen
for runs at these paces, each with the change that it has to follow; and paces are looked for again
with these states alone, until that gains nothing any more.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from math import inf

from slackwater.planner.budget import CHANGE, Action, Kept, Operator, Way, choose, frontier
from slackwater.planner.pace import Found, Goal, Search
from slackwater.planner.simulation import Cost, Setting, Simulation
from slackwater.planner.subplans import Subplan

ROUNDS = 3
GAIN = 0.01
"""Another round is worth its time where the last one gained more than this share."""

WORTHS = (0.0, 1.0, 10.0, 100.0, 1e4)
"""Seconds of work that a second of a last run may be worth, where a goal is missed."""

Sought = tuple[Search, Found]
Seek = Callable[[Setting], Sought]
States = frozenset[str]
"""By signatures over the sources."""


@dataclass(frozen=True)
class Budgets:
    """Bytes by query, where somebody said how many; and what states take."""

    bytes: Mapping[str, float]
    bytes_of: Callable[[float, int], float]
    """Of a state, by its rows and columns."""


def within_budgets(seek: Seek, setting: Setting, budgets: Budgets) -> Sought:
    """The paces that `seek` finds, with no more states kept than there is room for."""
    search, found = seek(setting)
    goals = {query: Goal(search.wanted[query]) for query in search.goals}  # whatever is kept
    best: Sought | None = None
    for _ in range(ROUNDS if budgets.bytes else 0):
        own = replace(setting, dropped=_dropped(search, found, budgets), _costs={})
        if best is None and not own.dropped:
            return search, found
        tried = Search(Simulation(search.dag, own), goals, search.mode, search.most)
        paced = tried.greedy()
        if best is not None and not _gains(best[1], paced):
            break
        best = tried, paced
        search, found = seek(own)
    return best or (search, found)


def _gains(before: Found, after: Found) -> bool:
    late, later = (sum(f.missed.values()) for f in (after, before))
    return late < later * (1 - GAIN) or (late <= later and after.total < before.total * (1 - GAIN))


def _dropped(search: Search, found: Found, budgets: Budgets) -> States:
    """The states for which there is no room, at some paces. A state of what several queries share
    counts for each with its share, and is kept if each of them would."""
    choices = _Choices(search, found, budgets)
    kept = {query: choices.kept(query) for query in budgets.bytes if query in search.dag.roots}
    gone: set[str] = set()
    for subplan in search.dag.subplans:
        for query in subplan.queries & kept.keys():
            gone |= choices.every_state(subplan) - kept[query]
    return frozenset(gone)


class _Choices:
    """What may be kept of each subplan, and what its runs at some paces take then."""

    def __init__(self, search: Search, found: Found, budgets: Budgets) -> None:
        self._dag = search.dag
        self._found = found
        self._budgets = budgets
        self._setting = replace(search.simulation.setting, dropped=frozenset(), _costs={})
        self._whole = Simulation(self._dag, self._setting)
        self._units = search.units(found.paces)
        own = (self._dag.subplans[number] for number in self._units)
        self.limited = [s for s in own if s.queries & budgets.bytes.keys()]
        self._subsets = {
            s.number: list(_subsets(self.states(s), self._usual(s))) for s in self.limited
        }
        self._costs = self._priced()

    def states(self, subplan: Subplan) -> dict[str, float]:
        """What it and those inside of it may keep, with the bytes that each state takes."""
        bytes_of = self._budgets.bytes_of
        found = self._whole.states(subplan.number, self._units[subplan.number])
        return {s: bytes_of(rows, width) for s, (rows, width) in found.items()}

    def every_state(self, subplan: Subplan) -> States:
        """What it may keep, also by itself, where it is a part of another at these paces."""
        alone = self._whole.states(subplan.number)
        return States(alone).union(self.states(subplan) if subplan in self.limited else ())

    def _usual(self, subplan: Subplan) -> States:
        return self._whole.usual_states(subplan.number, self._units[subplan.number])

    def _priced(self) -> dict[int, dict[States, Cost]]:
        """By subplan and what is kept of it; one simulation tells one subset of each."""
        costs: dict[int, dict[States, Cost]] = {s.number: {} for s in self.limited}
        for i in range(max(map(len, self._subsets.values()), default=0)):
            own = {n: subsets[i] for n, subsets in self._subsets.items() if i < len(subsets)}
            gone = (self.states(self._dag.subplans[n]).keys() - own[n] for n in own)
            setting = replace(self._setting, dropped=States().union(*gone), _costs={})
            simulation = Simulation(self._dag, setting)
            for n, kept in own.items():
                moving = simulation.moving(self._dag.subplans[n])
                paces = [self._found.paces[n, name] for name in moving]
                costs[n][kept] = simulation.cost(n, paces, self._units[n])
        return costs

    def kept(self, query: str) -> States:
        """The states that are best for a query within its budget: those with which all runs take
        least, of those with which its goal is met. What a second of its last run is worth goes up
        until it is, or no more is to be had."""
        own = [s for s in self.limited if query in s.queries]
        sizes = {
            state: Kept(size / len(s.queries))
            for s in own
            for state, size in self.states(s).items()
        }
        budget, wanted = self._budgets.bytes[query], self._found.wanted[query]
        best, least = States(), inf
        for worth in WORTHS:
            whole = reduce(_both, (self._operator(s.number, worth) for s in own))
            found = choose(frontier(whole, sizes, budget), budget)
            if found is None:
                break
            final = self._final(own, found.states)
            if final < least:
                best, least = found.states, final
            if final <= wanted * (1 + 1e-9):
                break
        return best

    def _operator(self, number: int, worth: float) -> Operator:
        costs = self._costs[number].items()
        ways = ((kept, Way(cost.total + worth * cost.final)) for kept, cost in costs)
        return Operator(f"#{number}", tuple(Action(tuple(kept), (), way) for kept, way in ways))

    def _final(self, own: Sequence[Subplan], kept: States) -> float:
        """What the last runs of some subplans take together."""
        states = {s.number: frozenset(self.states(s)) for s in own}
        return sum(self._costs[n][kept & ours].final for n, ours in states.items())


def _both(left: Operator, right: Operator) -> Operator:
    both = Action((), (left, right), Way(0.0, (CHANGE, CHANGE)))
    return Operator("both", (both,))


def _subsets(states: Collection[str], usual: States) -> Iterator[States]:
    """What may be kept together: of the usual states of a run none, one, all but one, or all; and
    all states."""
    found = [States(), *(States({s}) for s in usual), *(usual - {s} for s in usual), usual]
    yield from dict.fromkeys([*found, States(states)])
