"""What the ways to refresh a view depend on, and what was planned for it.

Planning a refresh takes longer than a small one does. While nothing changed but how much waits,
and that not by much, what was planned before is taken again. What decides over right and wrong
is compared exactly; what decides over costs, in steps.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import log2

from slackwater.stats.cost import Work
from slackwater.tvr.time import CHANGE, NEW, OLD
from slackwater.work.costing import Effort
from slackwater.work.interval import Interval
from slackwater.work.upkeep import FIRST, Following, Parts, Upkeep

STEPS = 4
"""From one number to twice as much there are so many steps; within one, all count as the same."""
FEW = 1_000
"""Fewer rows are no different: whatever is done with them is cheap."""
FEW_GONE = 0.05
"""Nor are deletions of fewer of a relation's rows: to look for them in all rows is what counts."""


@dataclass(frozen=True)
class Planned:
    """The ways to refresh a view, wherever they are gone."""

    efforts: tuple[Effort, ...]
    ways: Mapping[str, Following] = field(default_factory=dict)
    building: Work | None = None
    """Of the states that nothing but a higher-order refresh needs, where they are not there."""
    parts: Parts = FIRST
    """Which parts a higher-order refresh keeps."""


def situation(upkeep: Upkeep, impossible: Sequence[str]) -> Hashable:
    """The same while the same can be done, at about the same cost."""
    view, interval = upkeep.view, upkeep.interval
    return (
        upkeep.query,
        view.id,
        view.schema,
        frozenset((s.signature, s.id) for s in upkeep.known.values()),
        interval.changed,
        interval.weighted,
        upkeep.relied_on,
        tuple(impossible),
        tuple(upkeep.world.house.profiling.looks[id] for id in (*view.depends, view.id)),
        upkeep.world.house.experience.misses(view.name),
        tuple(_step(size) for size in _sizes(interval, [s.id for s in upkeep.known.values()])),
    )


def _step(size: int) -> int:
    return size and 1 + int(STEPS * log2(max(FEW, size)))


def _sizes(interval: Interval, states: Sequence[str]) -> Iterator[int]:
    """Rows and bytes of what is read, and of its changes."""
    for id in interval.view.depends:
        yield interval.bytes(id)
        yield _gone(interval, id)
        yield from (interval.rows(id, time) for time in (OLD, CHANGE))
    for id in (*sorted(states), interval.view.id):
        yield interval.rows(id, OLD)


def _gone(interval: Interval, id: str) -> int:
    """Stored deletions, as many as make a difference."""
    rows = sum(s.rows for s in interval.segments(id, NEW) if s.min_weight < 0)
    return min(rows, 1) if rows < FEW_GONE * interval.rows(id, NEW) else rows
