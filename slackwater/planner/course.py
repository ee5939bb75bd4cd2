"""What a run costs that is for the first part of the rows: the price when they are there.

Paces are told in shares of what comes, prices in hours of the day. Between them stands when rows
are expected. A run need not be done at once: it may wait for a lower price until the rows of the
next one are there. The last run is done when the result is due.

    run i of k:  min { price(t) | t from when i/k are there to when (i + 1)/k are },  i < k
    run k:       price(due)

Results that are due several times a day are so at different prices. Then all intervals of a day are
looked at, each counting by its rows.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Interval:
    """From one result to the next, at even moments with both ends: prices, and by source the share
    of its rows that is there (evenly, where nothing is said) and how many these are in all."""

    prices: Floats
    there: Mapping[str, Floats] = field(default_factory=dict)
    rows: Mapping[str, float] = field(default_factory=dict)

    def weight(self, sources: Collection[str]) -> float:
        """The rows that come from some sources."""
        return sum(self.rows.get(source, 0.0) for source in sources)

    def paid(self, sources: Collection[str], ends: Floats) -> Floats:
        """The prices of runs for some shares of the rows of sources, the last of which is all."""
        there = self._there(sources)
        begins = np.minimum(np.searchsorted(there, ends - 1e-9), len(there) - 1)
        begins[-1] = len(there) - 1
        found: Floats = np.minimum.reduceat(self.prices, begins)
        return found

    def _there(self, sources: Collection[str]) -> Floats:
        even: Floats = np.linspace(0.0, 1.0, len(self.prices))
        whole = self.weight(sources)
        if not whole > 0:
            return even
        shares = (self.rows.get(s, 0.0) / whole * self.there.get(s, even) for s in sources)
        found: Floats = np.sum(list(shares), axis=0)
        return found


@dataclass(frozen=True)
class Course:
    """What runs cost between results, over all intervals that differ."""

    intervals: Sequence[Interval]
    _known: dict[object, Floats] = field(default_factory=dict, repr=False, compare=False)

    @property
    def varies(self) -> bool:
        """Is work cheaper at some times than at others?"""
        return len({price for i in self.intervals for price in i.prices.tolist()}) > 1

    def paid(self, sources: Collection[str], ends: Floats) -> Floats:
        """The prices of runs for some shares of the rows of sources, the last of which is all.

        >>> night = Course([Interval(np.array([1.0, 1.0, 0.2, 0.2, 1.0]))])
        >>> night.paid((), np.array([1.0])), night.paid((), np.array([0.25, 0.5, 1.0]))
        (array([1.]), array([1. , 0.2, 1. ]))
        """
        key = (frozenset(sources), ends.tobytes())
        if key not in self._known:
            weights = np.array([i.weight(sources) for i in self.intervals])
            prices = np.stack([i.paid(sources, ends) for i in self.intervals])
            told = weights if weights.sum() > 0 else np.ones(len(weights))
            self._known[key] = np.average(prices, axis=0, weights=told)
        return self._known[key]
