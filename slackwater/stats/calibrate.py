"""Prices fitted to measured steps.

The fit looks for prices p such that what steps were expected to take is near what they took, in
proportion, and that are near the prior p₀: kinds of work that no step had much of keep the price
that they had.

    Σ (log Σ p·a − log y)²  +  BELIEF · Σ (log p − log p₀)²
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from slackwater.stats.cost import MEASURES, PRIOR, Model, Prices, Work
from slackwater.stats.sound import is_finite

BELIEF = 2.0
"""How many measured steps the prior of each kind of work is worth."""
ROUNDS = 12
"""Of approaching the best fit; each halves the distance, at least."""
WIDEST = (-4.0, 4.0)
"""No price goes further from its prior, as a power of e: nothing is free."""
MOST_STEPS = 400
"""The newest so many steps of an engine are fitted."""
SHORTEST = 0.002
"""Seconds: shorter times are not told apart."""


@dataclass(frozen=True, slots=True)
class Measured:
    """A step: what was expected of it, and what it took."""

    engine: str
    work: Work
    cpu: float
    latency: float

    @property
    def is_sound(self) -> bool:
        """Can anything be learned of it?"""
        amounts = self.work.amounts
        numbers = (*amounts, self.cpu, self.latency)
        known = (self.engine, "cpu") in PRIOR
        return known and all(map(is_finite, numbers)) and any(a > 0 for a in amounts)


def fitted(steps: Iterable[Measured], prior: Mapping[tuple[str, str], Prices] = PRIOR) -> Model:
    """The prices that explain the measured steps best, oldest steps first."""
    by_engine: dict[str, list[Measured]] = {}
    for step in steps:
        if step.is_sound:
            by_engine.setdefault(step.engine, []).append(step)
    prices = dict(prior)
    for engine, own in by_engine.items():
        newest = own[-MOST_STEPS:]
        for measure in MEASURES:
            if (engine, measure) in prior:
                took = [max(SHORTEST, getattr(step, measure)) for step in newest]
                known = prior[engine, measure]
                prices[engine, measure] = _fit([s.work for s in newest], took, known)
    return Model(prices)


def _fit(works: Sequence[Work], took: Sequence[float], prior: Prices) -> Prices:
    """Gauss-Newton over the logarithms of the prices, as factors of the prior."""
    costs = np.array([work.amounts for work in works]) * np.array(prior)
    wanted = np.log(np.array(took))
    factors = np.zeros(len(prior))
    for _ in range(ROUNDS):
        parts = costs * np.exp(factors)
        expected = parts.sum(axis=1)
        slopes = parts / expected[:, None]
        off = np.log(expected) - wanted
        matrix = slopes.T @ slopes + BELIEF * np.eye(len(prior))
        factors = factors - np.linalg.solve(matrix, slopes.T @ off + BELIEF * factors)
        factors = np.clip(factors, *WIDEST)
    return tuple(float(price) for price in np.array(prior) * np.exp(factors))
