"""What shorter results cost: predicted arrivals played for one goal after the other.

The same search that plans go by, who shares with whom and what is kept included, with every view
under the same goal: a share of its batch work, as `within` says it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from slackwater.planner.pace import Found, Paces, Search
from slackwater.planner.rounds import Sought
from slackwater.work.pacing import Paced

SHARES = (1.0, 0.7, 0.5, 0.3, 0.2, 0.1, 0.05, 0.02)
ALL = "all"
TOLERANCE = 1.001


@dataclass(frozen=True)
class Point:
    """What one goal leads to, in a period."""

    share: float
    final_seconds: float  # of all views together: of the longest
    cpu_seconds: float
    missed: int  # views that take longer than their share


@dataclass(frozen=True)
class Curve:
    """Total cost against latency, of a view or of all together (which has no name of its own)."""

    view: str | None
    points: tuple[Point, ...]


@dataclass(frozen=True)
class Tradeoff:
    """Of the views of one rhythm."""

    period_seconds: float
    together: Curve
    views: tuple[Curve, ...]


def tradeoff(paced: Paced, on_point: Callable[[float], None]) -> Tradeoff:
    """The curves of one rhythm; each point is told of before it is looked for."""
    played = {share: _played(paced, share, on_point) for share in SHARES}
    together = Curve(None, tuple(_together(*own, share) for share, own in played.items()))
    views = tuple(
        Curve(name, tuple(_of_view(name, *own, share) for share, own in played.items()))
        for name in sorted(paced.dag.roots)
    )
    return Tradeoff(paced.period_seconds, together, views)


def _played(paced: Paced, share: float, on_point: Callable[[float], None]) -> Sought:
    on_point(share)
    return paced.at_share(share)


def _together(search: Search, found: Found, share: float) -> Point:
    missed = sum(_is_missed(found, name) for name in found.final)
    return Point(share, max(found.final.values(), default=0.0), found.total, missed)


def _of_view(name: str, search: Search, found: Found, share: float) -> Point:
    cpu = cpu_by_view(search, found.paces)[name]
    return Point(share, found.final[name], cpu, int(_is_missed(found, name)))


def _is_missed(found: Found, name: str) -> bool:
    return found.final[name] > found.wanted[name] * TOLERANCE


def cpu_by_view(search: Search, paces: Paces) -> Mapping[str, float]:
    """The CPU seconds of a period, those of what views share divided evenly among them."""
    found = dict.fromkeys(search.dag.roots, 0.0)
    for subplan in search.dag.subplans:
        each = search.cost(subplan.number, paces).total / len(subplan.queries)
        for name in subplan.queries:
            found[name] += each
    return found
