"""When a unit is run before its results are due: as rows come, at the cheapest moment for it.

Of pace k, run i (of k − 1; the k-th is the refresh at the due moment) is for the rows up to i/k of
those expected from the last result to the next. It may wait for a lower price until those of run
i + 1 are there, or the result is due.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from slackwater.service.units import Unit
from slackwater.timing import Prices


@dataclass(frozen=True)
class Slot:
    """How far a unit's rows have come between two results."""

    unit: Unit
    since: datetime  # the last result
    until: datetime | None  # the next; None where rows decide
    arrived: float
    expected: float  # until then, from the last result on
    last: int = 0  # the run that was done last

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
        if self.run > self.last + 1:  # the next one's rows are there already
            return now
        return prices.cheapest(now, self._end(now))

    def _end(self, now: datetime) -> datetime:
        """When the rows of the next run are expected, if they come evenly from now on."""
        if self.until is None or self.until <= now:
            return now
        left = max(self.expected - self.arrived, 0.0)
        needed = max(self.expected * (self.run + 1) / self.unit.pace - self.arrived, 0.0)
        share = min(1.0, needed / left) if left else 1.0
        return now + timedelta(seconds=share * (self.until - now).total_seconds())
