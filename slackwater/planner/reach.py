"""The shortest last run that any paces reach: what can be promised.

Each subplan alone may have a pace at which its last run is shortest; together they need not, since
nothing is run more often than what it reads, and who reads less often has more to read. So paces
are looked for at which the last run of the whole query is shortest: first one for all of it, then
others for some of it, as long as that makes it shorter.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from slackwater.planner.subplans import Dag, Path

if TYPE_CHECKING:
    from slackwater.planner.pace import Search

Paces = Mapping[Path, int]
ENOUGH = 1 - 1e-9
EVEN = ("subplans", "uniform")
"""Modes in which all inputs of a subplan have one pace."""


def at_least(search: Search, query: str) -> float:
    """Less is out of reach: the shortest last run of each subplan, whatever the others do, with as
    many levels of those below inside of it as makes the whole shortest. Nothing is known so easily
    where one of its inputs may be read more often than another."""
    if search.mode not in EVEN:
        return 0.0
    dag, least = search.dag, dict[int, float]()
    for own in dag.of(query):  # those below come first
        least[own.number] = min(
            _shortest_final(search, own.number, inside) + sum(least[n] for n in below)
            for inside, below in _levels(dag, own.number)
        )
    return sum(s for n, s in least.items() if dag.only_readers[n] is None)


def _levels(dag: Dag, number: int) -> Iterator[tuple[frozenset[int], Sequence[int]]]:
    """The subplans that may be inside of one, level by level, and those right below them."""
    inside, below = frozenset[int](), dag.only_read[number]
    yield inside, below
    while below:
        inside = inside.union(below)
        below = tuple(child for n in below for child in dag.only_read[n])
        yield inside, below


def _shortest_final(search: Search, number: int, inside: frozenset[int]) -> float:
    played = search.simulation
    moving = len(played.moving(search.dag.subplans[number]))
    return min(played.cost(number, [k] * moving, inside).final for k in search.ladder)


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
