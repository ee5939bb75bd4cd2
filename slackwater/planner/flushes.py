"""When a subplan runs, which of its inputs each run moves on, and what runs take."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slackwater.planner.ways import METHODS

Times = NDArray[np.float64]
"""Shares of what arrives until the due point."""


def schedule(paces: Sequence[int]) -> tuple[Times, NDArray[np.bool_]]:
    """When a subplan runs, and which of its paths each run flushes.

    >>> ends, flushed = schedule((2, 3))
    >>> ends.round(2).tolist(), flushed.astype(int).tolist()
    ([0.33, 0.5, 0.67, 1.0], [[0, 1], [1, 0], [0, 1], [1, 1]])
    """
    most = np.lcm.reduce(np.array(paces, dtype=np.int64))
    ticks = np.unique(np.concatenate([np.arange(1, k + 1) * (most // k) for k in paces]))
    flushed = np.stack([ticks % (most // k) == 0 for k in paces], axis=1)
    return ticks / most, flushed


@lru_cache(maxsize=2**14)
def runs_at(paces: tuple[int, ...]) -> int:
    """How often a subplan runs.

    >>> runs_at((2, 3)), runs_at((4, 4)), runs_at(())
    (4, 4, 1)
    """
    if len(set(paces)) < 2:
        return max(paces, default=1)
    return len(schedule(paces)[0])


@dataclass(frozen=True)
class Moving:
    """Some runs, which move the same inputs from some times to others."""

    places: NDArray[np.bool_]  # among all runs
    moved: frozenset[str]
    between: Mapping[str, tuple[Times, Times]]
    only: NDArray[np.bool_]  # is there no other run until the due point?


@dataclass(frozen=True)
class Flushes:
    """The runs of a subplan at some paces of its moving inputs, then at others."""

    names: Sequence[str]
    paces: Sequence[tuple[int, ...]]

    @cached_property
    def _schedules(self) -> list[tuple[Times, NDArray[np.bool_]]]:
        return [schedule(own) for own in self.paces]

    @property
    def ends(self) -> Times:
        """When each of them is."""
        return np.concatenate([ends for ends, _ in self._schedules])

    @property
    def slices(self) -> Iterator[slice]:
        """Where the runs of each are."""
        place = 0
        for ends, _ in self._schedules:
            yield slice(place, place + len(ends))
            place += len(ends)

    @property
    def is_even(self) -> bool:
        """Does every run move all inputs?"""
        return all(len(set(own)) == 1 for own in self.paces)

    def together(self) -> Iterator[Moving]:
        """The runs that move the same inputs."""
        ends = self.ends
        flushed = np.concatenate([flushed for _, flushed in self._schedules])
        starts = np.concatenate([_last_flushes(*own) for own in self._schedules])
        only = np.concatenate([np.full(len(e), len(e) == 1) for e, _ in self._schedules])
        for mask in np.unique(flushed, axis=0):
            runs = (flushed == mask).all(axis=1)
            between = {
                name: (starts[runs, i], ends[runs] if mask[i] else starts[runs, i])
                for i, name in enumerate(self.names)
            }
            moved = frozenset(n for n, is_in in zip(self.names, mask, strict=True) if is_in)
            yield Moving(runs, moved, between, only[runs])


def _last_flushes(ends: Times, flushed: NDArray[np.bool_]) -> NDArray[np.float64]:
    """By run and path, up to when its rows had been read before."""
    read = np.where(flushed, ends[:, None], 0.0)
    return np.vstack([np.zeros(read.shape[1]), np.maximum.accumulate(read, axis=0)[:-1]])


@dataclass(frozen=True)
class Runs:
    """What runs take, and by which of the methods."""

    cpu: Times
    latency: Times
    methods: NDArray[np.int_]

    @classmethod
    def of(cls, runs: int) -> Runs:
        """So many."""
        return cls(np.zeros(runs), np.zeros(runs), np.zeros(runs, dtype=np.int_))

    def settle(self, places: NDArray[np.bool_], *told: NDArray[Any]) -> None:
        """Of some of them."""
        for own, values in zip((self.cpu, self.latency, self.methods), told, strict=True):
            own[places] = values

    def some(self, here: slice) -> Runs:
        """Some of them."""
        return Runs(self.cpu[here], self.latency[here], self.methods[here])

    @property
    def usual(self) -> str:
        """The method of most of them; that of the last, in a tie."""
        counts = np.bincount(self.methods, minlength=len(METHODS))
        most = np.flatnonzero(counts == counts.max())
        return METHODS[self.methods[-1] if self.methods[-1] in most else most[0]]
