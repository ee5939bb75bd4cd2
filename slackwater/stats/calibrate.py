"""Prices fitted to measured steps.

The fit minimizes the relative error of what steps were measured to take, and the relative
distance from the prior: kinds of work that no step had much of keep the price that they had.

    Σ ((Σ p·a − y) / y)²  +  BELIEF · Σ ((p − p₀) / p₀)²        p ≥ 0
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from slackwater.stats.cost import MEASURES, PRIOR, Model, Prices, Work

BELIEF = 0.2
"""How many measured steps the prior is worth, for each kind of work."""
LEAST = 0.02
"""No price falls below this share of its prior: nothing is free."""
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


def fitted(steps: Iterable[Measured], prior: Mapping[tuple[str, str], Prices] = PRIOR) -> Model:
    """The prices that explain the measured steps best, oldest steps first."""
    by_engine: dict[str, list[Measured]] = {}
    for step in steps:
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
    """Least squares in units of the prior, with the prices that would fall too low held."""
    base = np.array(prior)
    seconds = np.array(took)
    shares = np.array([work.amounts for work in works]) * base / seconds[:, None]
    belief = np.sqrt(BELIEF) * np.eye(len(base))
    rows, wanted = (
        np.vstack([shares, belief]),
        np.concatenate([np.ones(len(took)), np.diag(belief)]),
    )
    factors = np.full(len(base), LEAST)
    free = np.ones(len(base), dtype=bool)
    while free.any():
        held = rows[:, ~free] @ factors[~free]
        factors[free] = np.linalg.lstsq(rows[:, free], wanted - held, rcond=None)[0]
        low = free & (factors < LEAST)
        if not low.any():
            break
        factors[low] = LEAST
        free &= ~low
    return tuple(float(price) for price in base * factors)
