"""When a unit is run before its results are due: as rows come, at the cheapest moment for it.

Of pace k, run i (of k − 1; the k-th is the refresh at the due moment) is for the rows up to i/k of
those expected from the last result to the next. It may wait for a lower price until those of run
i + 1 are there, or the result is due.

No result waits for an early run: one begins only if it is expected to be over before any is due,
and else is left until after that. What found no room for a whole slot is not believed to take that
long any more: one run that was slow by chance does not keep all later ones from being tried.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise

from slackwater.service.units import Unit
from slackwater.timing import Prices

BEFORE = timedelta(seconds=1)
"""At the due moment it is too late for an early run, however cheap that is."""
LONGER = 0.5
"""An early run may take longer than is expected, by this part of it."""
DOUBT = 0.5
"""The part of what a run is expected to take that is believed after each slot without room."""


@dataclass(frozen=True)
class Slot:
    """How far a unit's rows have come between two results."""

    unit: Unit
    since: datetime  # the last result
    until: datetime | None  # the next; None where rows decide
    arrived: float
    expected: float  # until then, from the last result on
    last: int = 0  # the run that was done last
    course: tuple[float, ...] = (0.0, 1.0)
    """The shares of the rows still to come that are there at even steps from now to the next."""
    seconds: float = 0.0
    """What a run is expected to take."""
    due: datetime | None = None
    """When any view's result is due next, this unit's or another's."""
    without: int = 0
    """Between how many results, one after the other, it was not run at all."""

    @property
    def takes(self) -> timedelta:
        """What a run is expected to take at most."""
        put_off = self.without + max(0, self.run - self.last - 1)
        return timedelta(seconds=self.seconds * (1 + LONGER) * DOUBT**put_off)

    def fits(self, begin: datetime) -> bool:
        """Is a run over before any result is due?"""
        return self.due is None or begin + self.takes + BEFORE <= self.due

    @property
    def run(self) -> int:
        """The run that what has come is enough for."""
        if self.expected <= 0:
            return 0
        return min(self.unit.pace - 1, int(self.arrived * self.unit.pace / self.expected))

    def when(self, now: datetime, prices: Prices) -> datetime | None:
        """When to run it; None where it is not its turn."""
        if self.run <= self.last:
            return None
        at = now  # where the next one's rows are there already
        if self.run == self.last + 1:
            at = prices.cheapest(now, self._end(now))
        return self.due if at == now and not self.fits(now) else at

    def _end(self, now: datetime) -> datetime:
        """When the rows of the next run are expected."""
        if self.until is None or self.until <= now:
            return now
        if self.run + 1 == self.unit.pace:  # the next is the result's
            return max(now, self.until - BEFORE - self.takes)
        left = max(self.expected - self.arrived, 0.0)
        needed = max(self.expected * (self.run + 1) / self.unit.pace - self.arrived, 0.0)
        share = min(1.0, needed / left) if left else 1.0
        return now + _passed(share, self.course) * (self.until - now)


def fitting(slots: Sequence[Slot], now: datetime) -> list[Slot]:
    """Those of which all are over, one after the other, before any result is due."""
    found: list[Slot] = []
    begin = now
    for slot in slots:
        if slot.fits(begin):
            found.append(slot)
            begin += slot.takes
    return found


def _passed(share: float, course: Sequence[float]) -> float:
    """How much of the time has passed when that share of the rows is there.

    >>> _passed(0.5, (0.0, 1.0)), _passed(0.5, (0.0, 0.0, 1.0)), _passed(0.5, (0.0, 1.0, 1.0))
    (0.5, 0.75, 0.25)
    """
    steps = len(course) - 1
    for i, (here, there) in enumerate(pairwise(course)):
        if there >= share and there > here:
            return (i + max(0.0, share - here) / (there - here)) / steps
    return 1.0
