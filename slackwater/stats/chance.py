"""How the counts, sums and averages of groups are spread: about normally, by what is known of rows.

A group has m rows on average, about as many as chance gives (Poisson). Of the values x that are
summed up it is known between which two they lie, each being as likely as any other:

    count      mean m            variance m
    sum(x)     mean m · E x      variance m · (Var x + (E x)²)
    avg(x)     mean E x          variance Var x / m
"""

from __future__ import annotations

from dataclasses import dataclass
from math import erfc, sqrt

import numpy as np

from slackwater.stats.amounts import Amount, most

FEWEST = 1e-4
"""So many are taken to be above or below any bound: groups are seldom as even as chance has it."""
LARGEST = 1e150
"""Values beyond are not reckoned with."""
WIDE = 6.0
"""Nearly all values are within so many standard deviations, half of them on either side."""
_erfc = np.vectorize(erfc, otypes=[float])


@dataclass(frozen=True, slots=True)
class Normal:
    """Values with a mean and a variance."""

    mean: Amount
    variance: Amount

    def above(self, bound: float) -> Amount:
        """The share of values above a bound.

        >>> Normal(10.0, 4.0).above(10.0), round(Normal(10.0, 4.0).above(14.0), 3)
        (0.5, 0.023)
        """
        away = (bound - self.mean) / (2 * most(self.variance, 1e-12)) ** 0.5
        if isinstance(away, np.ndarray):
            share: Amount = np.clip(_erfc(away) / 2, FEWEST, 1 - FEWEST)
            return share
        return min(1 - FEWEST, max(FEWEST, erfc(away) / 2))

    @property
    def whole_numbers(self) -> Amount:
        """How many whole numbers are among them.

        >>> Normal(100.0, 100.0).whole_numbers
        61.0
        """
        deviation: Amount = self.variance**0.5
        return 1 + WIDE * deviation


def of_count(rows: Amount) -> Normal:
    """Of the counts of groups that have so many rows."""
    return Normal(rows, rows)


def of_sum(rows: Amount, low: float, high: float) -> Normal:
    """Of the sums of values between two others."""
    mean, variance = _even(low, high)
    return Normal(rows * mean, rows * (variance + mean**2))


def of_average(rows: Amount, low: float, high: float) -> Normal:
    """Of the averages of values between two others."""
    mean, variance = _even(low, high)
    return Normal(mean, variance / most(1.0, rows))


def _even(low: float, high: float) -> tuple[float, float]:
    low, high = max(-LARGEST, low), min(LARGEST, high)
    return (low + high) / 2, ((high - low) / sqrt(12)) ** 2
