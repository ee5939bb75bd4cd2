"""How far the model was off for the ways of one view, when they were tried before.

One model for all work errs for some views. What a way of this view took corrects it, as far as
that is like what waits now, and not long ago:

    expected · exp( Σ wᵢ log((tookᵢ + NOISE) / (expectedᵢ + NOISE)) / (BELIEF + Σ wᵢ) )
    wᵢ = likeness of the amounts of work · FADING^(refreshes since)

Where the model was off by ten times, it is hardly worth anything any more for that way of the view:
what was measured once is then believed at once (`SHAKEN` for `BELIEF`, `SHORTEST` for `NOISE`).

How far that was still off is the margin to leave where being late matters.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from math import exp, log, sqrt

from slackwater.stats.calibrate import SHORTEST, Measured
from slackwater.stats.cost import Model, Work

BELIEF = 1.0
"""How many measured refreshes the model is worth."""
NOISE = 0.25
"""Seconds that a refresh may take more or less for reasons of its own: something was cold."""
MISS, LEAST_MISS = 10.0, 0.1
"""What takes so many times the CPU seconds that were expected, and so many at least, was missed."""
SHAKEN = 0.05
"""How many measured refreshes the model is worth that missed one of them."""
FADING = 0.9
"""What a refresh counts for after one more."""
MOST = 8
"""The newest so many refreshes by each way count."""

Way = tuple[str, str]
"""A method and an engine."""


def is_missed(expected: float, took: float) -> bool:
    """Were CPU seconds that some work took wrongly expected, so that all has to be planned again?

    >>> is_missed(0.02, 0.3), is_missed(0.2, 0.3), is_missed(0.001, 0.05)
    (True, False, False)
    """
    return took >= max(LEAST_MISS, MISS * expected)


@dataclass
class Past:
    """What the refreshes of one view took."""

    refreshes: int = 0
    _taken: dict[Way, deque[tuple[int, Measured]]] = field(default_factory=dict)

    def add(self, method: str, measured: Measured) -> None:
        """One more refresh."""
        self.refreshes += 1
        if not measured.is_sound:
            return
        taken = self._taken.setdefault((method, measured.engine), deque(maxlen=MOST))
        taken.append((self.refreshes, measured))

    def copy(self) -> Past:
        """As it is now."""
        return Past(self.refreshes, {way: taken.copy() for way, taken in self._taken.items()})

    def by(self, way: Way) -> Iterator[tuple[int, Measured]]:
        """The refreshes by one way, each with how many came after it."""
        for number, measured in self._taken.get(way, ()):
            yield self.refreshes - number, measured


@dataclass(frozen=True)
class Expected:
    """What ways to refresh one view are expected to take: by the model, and by its past."""

    model: Model = field(default_factory=Model)
    past: Past = field(default_factory=Past)

    def factor(self, method: str, engine: str) -> float:
        """How many times what the model says the last refresh by a way would take again."""
        last = min(self.past.by((method, engine)), key=lambda seen: seen[0], default=None)
        if last is None:
            return 1.0
        work = last[1].work
        return self.seconds(work, method, engine) / self.model.seconds(work, engine)

    def seconds(self, work: Work, method: str, engine: str, measure: str = "cpu") -> float:
        """Of some work, by a way."""
        expected = self.model.seconds(work, engine, measure)
        belief, noise = self._trust(method, engine)
        off = 0.0
        for age, measured in self.past.by((method, engine)):
            then = self.model.seconds(measured.work, engine, measure)
            weight = FADING**age * min(expected, then) / max(expected, then)
            off += weight * log((getattr(measured, measure) + noise) / (then + noise))
            belief += weight
        return expected * exp(off / belief)

    def _trust(self, method: str, engine: str) -> tuple[float, float]:
        """How many refreshes the model is worth for a way, and the seconds that are noise."""
        for _, measured in self.past.by((method, engine)):
            if is_missed(self.model.seconds(measured.work, engine), measured.cpu):
                return SHAKEN, SHORTEST
        return BELIEF, NOISE

    def error(self, method: str, engine: str, measure: str = "latency") -> float:
        """How much longer than is expected now refreshes by a way took, as a share of that; 0
        where nothing is known. What took less needs no margin:

            exp √( Σ wᵢ max(0, log((tookᵢ + NOISE) / (expectedᵢ + NOISE)))² / Σ wᵢ ) − 1
            wᵢ = FADING^(refreshes since)
        """
        longer, total = 0.0, 0.0
        for age, measured in self.past.by((method, engine)):
            said = self.seconds(measured.work, method, engine, measure)
            off = log((getattr(measured, measure) + NOISE) / (said + NOISE))
            longer += FADING**age * max(0.0, off) ** 2
            total += FADING**age
        return exp(sqrt(longer / total)) - 1 if total else 0.0
