"""Who shares what at which paces: the approaches that `slackwater bench sharing` compares.

All find their plans by the same costs. Those that share and do not split start from what a
multi-query optimizer would share, which knows of no paces: whatever costs less in one batch; what
would then cost more is left out (003, 6.1). Two run nothing early: what sharing saves by itself
(figure 10). The best of all splits is looked for where queries are few enough (figure 14).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from math import inf
from typing import Any

from bench.pacing import Pacing
from bench.progress import Piece
from slackwater.algebra.relation import Relation
from slackwater.planner.decomposition import Decomposition
from slackwater.planner.pace import Found, Goal, Search
from slackwater.planner.simulation import Setting, Simulation
from slackwater.planner.subplans import Dag, Subplan, is_subplan, number_of

OURS = "shared, split where cheaper"
AT_ONCE, SHARED_AT_ONCE = "unshared, one batch", "shared, one batch"
PACES = ("none", "uniform", "subplans")
"""Nothing is run early; all that belongs together has one pace; each subplan has its own."""
FEW = 20
"""Queries of which every split is tried, at most, as in figure 14. The number of splits grows
exponentially with those who share a piece, of these twenty six at most (figure 16)."""


@dataclass(frozen=True)
class Asked:
    """Queries, what they are run in, and what is wanted."""

    queries: Mapping[str, Relation]
    setting: Setting
    goals: Mapping[str, Goal]
    most: int

    def decomposed(self, **more: Any) -> Decomposition:
        """A search over who shares with whom."""
        return Decomposition(self.queries, self.setting, self.goals, most=self.most, **more)

    def alone(self, name: str) -> Pacing:
        """One of the queries by itself."""
        return Pacing(name, self.queries[name], self.setting, self.most)

    def within(self, name: str) -> Goal:
        """What its last run may take: a share of its own batch, in seconds."""
        return Goal((self.goals[name].share or 1.0) * self.alone(name).batch())

    @cached_property
    def merged(self) -> Dag:
        """What is shared where all is run once, when it is due."""
        anything = dict.fromkeys(self.queries, Goal())
        return Decomposition(self.queries, self.setting, anything, "uniform", most=1).best().dag

    def search(self, mode: str) -> Search:
        """For paces of what is shared so."""
        goals = {name: self.within(name) for name in self.queries}
        return Search(Simulation(self.merged, self.setting), goals, mode, self.most)


@dataclass(frozen=True)
class Approach:
    """How to find a plan, and of what kind it is."""

    plan: Callable[[Asked], Sequence[Piece]]
    sharing: bool
    paces: str
    most_queries: float = inf


def _alone(find: Callable[[Pacing, Goal], Found]) -> Callable[[Asked], Sequence[Piece]]:
    """Each query by itself, within a share of its own batch."""

    def planned(asked: Asked) -> Sequence[Piece]:
        found = []
        for name in asked.queries:
            pacing = asked.alone(name)
            found.append(pacing.piece(find(pacing, asked.within(name))))
        return found

    return planned


def _by(mode: str) -> Callable[[Pacing, Goal], Found]:
    return lambda pacing, goal: pacing.found(mode, goal)


def _at_once(pacing: Pacing, goal: Goal) -> Found:
    return pacing.search("uniform", goal).batch()


def _shared_at_once(asked: Asked) -> Sequence[Piece]:
    return [Piece(asked.merged, asked.search("uniform").batch())]


def _one_pace(asked: Asked) -> Sequence[Piece]:
    """One pace for all that have anything in common: the best of all."""
    return [Piece(asked.merged, asked.search("uniform").exhaustive(range(1, asked.most + 1)))]


def _never_split(asked: Asked) -> Sequence[Piece]:
    return [Piece(asked.merged, asked.search("subplans").greedy())]


def _decomposed(every_split: bool, asked: Asked) -> Sequence[Piece]:
    own = asked.decomposed(every_split=every_split).best()
    return [Piece(own.dag, own.found)]


APPROACHES = {
    AT_ONCE: Approach(_alone(_at_once), False, "none"),
    SHARED_AT_ONCE: Approach(_shared_at_once, True, "none"),
    "unshared, one pace": Approach(_alone(_by("uniform")), False, "uniform"),
    "unshared": Approach(_alone(_by("subplans")), False, "subplans"),
    "shared, one pace": Approach(_one_pace, True, "uniform"),
    "shared, never split": Approach(_never_split, True, "subplans"),
    "shared, best of all splits": Approach(partial(_decomposed, True), True, "subplans", FEW),
    OURS: Approach(partial(_decomposed, False), True, "subplans"),
}


def chosen(sharing: str, paces: str) -> dict[str, Approach]:
    """Those that share ('on') or do not ('off'), with such paces; '': all."""
    wanted = {"": (False, True), "on": (True,), "off": (False,)}[sharing]
    return {
        name: way
        for name, way in APPROACHES.items()
        if way.sharing in wanted and paces in ("", way.paces)
    }


# -- which plans are the same

Plans = frozenset[tuple[str, frozenset[Any]]]
"""By query, its subplans: what each gives, for whom, and the paces of what it reads."""


def plans(pieces: Sequence[Piece]) -> Plans:
    """What is run how often for whom. Where nothing of a query is run early or shared, it does not
    matter how it is cut."""
    found = []
    for piece in pieces:
        for query in piece.dag.roots:
            own = [_subplan(piece, s) for s in piece.dag.of(query)]
            waits = all(pace == 1 for _, _, paces in own for _, pace in paces)
            alone = all(queries == {query} for _, queries, _ in own)
            found.append((query, frozenset[Any]() if waits and alone else frozenset(own)))
    return frozenset(found)


def _subplan(piece: Piece, subplan: Subplan) -> tuple[str, frozenset[str], frozenset[Any]]:
    def read(source: str) -> str:
        known = is_subplan(source)
        return piece.dag.expanded(number_of(source)).digest() if known else source

    number = subplan.number
    paces = {(read(s), pace) for (n, s), pace in piece.found.paces.items() if n == number}
    digest = piece.dag.expanded(number).digest()
    return digest, frozenset(subplan.queries), frozenset(paces)
