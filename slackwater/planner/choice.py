"""Which way a view is refreshed: every way that there is, with what it is expected to cost.

A refresh by changes needs states, and brings them along. One in full may build them, or let them
go. So what counts is the cost now and, as if so many refreshes to come were like this one, the
cost of what is possible then.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from typing import Any

from slackwater.stats.cost import NO_WORK, Work

INCREMENTAL, OJV, IM2 = "incremental", "ojv", "im2"
HIGHER_ORDER = "higher-order"
FULL, PLAIN = "full", "full without states"
"""The methods: by changes, of an outer join those of its left rows with changed keys; of the inner
join and of left rows that find a first partner or lose the last one (OJV); of its parts, joined
rows and rows without a partner (IM-2); by changes, with what these are joined with kept, too; in
full, with the states that changes need; in full without."""
BY_CHANGES = (INCREMENTAL, OJV, IM2)
"""Those that need the same states, and bring them along."""
OPTIONAL = (OJV, IM2, HIGHER_ORDER)
"""Methods that may be switched off: the others can always be taken."""
METHODS = (*BY_CHANGES, HIGHER_ORDER, FULL, PLAIN)
NONE = "none"
"""What is done where nothing has changed."""
ENGINES = ("local", "spark")
ELSEWHERE = frozenset({"NOT_PLACED_THERE", "NO_JAVA", "NOT_PORTABLE"})
"""Why an engine is out of the question, now and later."""
FUTURE = 10
"""So many refreshes to come count as like this one."""
UNSURE = 1.25
"""So much dearer than expected may states turn out for which something is built."""
TIE = 0.025
"""Seconds that make no difference: then changes are followed, which keeps the log of changes. It is
about what binding and committing a small refresh vary by."""
NEAR = {"spark": 0.15}
"""By engine, shares of what is expected that make no difference either. What Spark takes is off by
a third as often as not, and of changes that are not followed nothing is learned."""
WORTH = 0.05
"""Seconds that a refresh must save before something is built for it."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """One way to refresh a view, on one engine."""

    method: str
    engine: str
    cpu: float = inf  # seconds, expected
    latency: float = inf
    work: Work = NO_WORK
    reasons: tuple[str, ...] = ()  # why it is not possible now

    @property
    def may_come(self) -> bool:
        """Is it possible now, or may it be at a later refresh?"""
        return ELSEWHERE.isdisjoint(self.reasons)

    def to_json(self) -> dict[str, Any]:
        """As plain data."""
        known = self.cpu < inf
        return {
            "method": self.method,
            "engine": self.engine,
            "applicable": not self.reasons,
            "reasons": list(self.reasons),
            "cpu_seconds": round(self.cpu, 6) if known else None,
            "seconds": round(self.latency, 6) if known else None,
        }


def choose(candidates: Sequence[Candidate], to_build: float = inf) -> Candidate | None:
    """The cheapest over this refresh and those to come; None where none is possible. `to_build`:
    seconds of building, beside a refresh by changes, what higher-order ones need."""

    later = {method: cheapest(candidates, method) for method in METHODS}
    built = once_built(later[HIGHER_ORDER]) + to_build / FUTURE
    followed = min(built, *(later[method] for method in BY_CHANGES))
    later |= dict.fromkeys((*BY_CHANGES, FULL), followed)
    possible = [c for c in candidates if not c.reasons]

    def total(c: Candidate) -> float:
        return c.cpu + FUTURE * later[c.method]

    best = min(possible, key=lambda c: (total(c), c.cpu), default=None)
    for method in (HIGHER_ORDER, *BY_CHANGES):  # what there is already is kept, in a tie
        own = min((c for c in possible if c.method == method), key=lambda c: c.cpu, default=None)
        if best is None or own is None:
            continue
        near = 1 + NEAR.get(best.engine, 0.0)
        if own.cpu < best.cpu + _tie(best) or total(own) < near * total(best):
            return own
    return best


def _tie(best: Candidate) -> float:
    """Seconds by which a way may be dearer than the best and be taken for as good."""
    return max(TIE, NEAR.get(best.engine, 0.0) * best.cpu)


def cheapest(candidates: Sequence[Candidate], method: str) -> float:
    """What a method takes where it may be possible, now or later."""
    return min((c.cpu for c in candidates if c.method == method and c.may_come), default=inf)


def remembered_as(method: str) -> str:
    """The method that what one took says most about: computing anew is one thing."""
    return FULL if method == PLAIN else method


def is_worth_building(candidates: Sequence[Candidate], chosen: Candidate, cost: float) -> bool:
    """Do states that nothing but a higher-order refresh needs save more, in refreshes like this
    one, than it costs to build them?"""
    with_them = cheapest(candidates, HIGHER_ORDER)
    if chosen.method not in BY_CHANGES or with_them == inf:
        return False
    return FUTURE * (chosen.cpu - once_built(with_them)) > cost


def once_built(expected: float) -> float:
    """What a refresh with states that are not there yet has to be thought to take."""
    return UNSURE * expected + WORTH
