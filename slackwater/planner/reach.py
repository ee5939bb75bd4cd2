"""The shortest last run that any paces reach: what can be promised.

Each subplan alone may have a pace at which its last run is shortest; together they need not, since
nothing is run more often than what it reads, and who reads less often has more to read. So paces
are looked for at which the last run of the whole query is shortest: first one for all of it, then
others for some of it, as long as that makes it shorter.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from slackwater.planner.subplans import Path

if TYPE_CHECKING:
    from slackwater.planner.pace import Search

Paces = Mapping[Path, int]
ENOUGH = 1 - 1e-9
EVEN = ("subplans", "uniform")
"""Modes in which all inputs of a subplan have one pace."""


def at_least(search: Search, query: str) -> float:
    """Less is out of reach: the shortest last run of each subplan, whatever the others do, and in
    one run with the only one that reads it. Nothing is known so easily where one of its inputs may
    be read more often than another."""
    if search.mode not in EVEN:
        return 0.0
    played, least = search.simulation, 0.0
    for own in search.dag.of(query):
        costs = [played.cost(own.number, [k] * len(played.moving(own))) for k in search.ladder]
        if search.only_reader[own.number] is not None:
            costs = [cost.steps_alone for cost in costs]
        least += min(cost.final for cost in costs)
    return least


def shortest(search: Search, query: str) -> Paces:
    """Paces at which the last run of a query is shortest; what it has nothing to do with waits."""
    numbers = frozenset(s.number for s in search.dag.of(query))
    own = {path for group in search.groups if numbers & {n for n, _ in group} for path in group}
    moves = [group for group in search.moves if own.issuperset(group)]

    def final(paces: Paces) -> float:
        return sum(search.cost(number, paces).final for number in numbers)

    wait = dict.fromkeys(search.paths, 1)
    starts = (search.flowing({**wait, **dict.fromkeys(own, k)}) for k in search.ladder)
    best = min(starts, key=final)
    least, shorter = final(best), True
    while shorter:
        shorter = False
        for group in moves:
            for rung in search.ladder:
                tried = search.flowing({**best, **dict.fromkeys(group, rung)})
                seconds = final(tried)
                if seconds < least * ENOUGH and search.is_allowed(tried, group):
                    best, least, shorter = tried, seconds, True
    return best


def nearest_goal(search: Search, query: str) -> float:
    """The shortest last run of a query that can be promised, in seconds, whoever shares."""
    return min(own.reach(query)[0] for own in (search, *search.rivals))
