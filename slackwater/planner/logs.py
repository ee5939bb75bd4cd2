"""What waits in the log of a subplan that is read less often than it runs."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from slackwater.planner.compaction import FANOUT
from slackwater.planner.flushes import Times


class Log:
    """The log of a subplan of so many runs, until its reader of a lower pace comes by: what many
    runs wrote is merged meanwhile, and the last ones are left."""

    def __init__(self, runs: int, pace: int) -> None:
        self.ends = np.arange(1, runs + 1) / runs
        self.readings = np.arange(1, pace + 1) / pace
        self.begins = self.readings - 1 / pace
        self._reading = np.minimum(np.searchsorted(self.readings, self.ends - 1e-9), pace - 1)
        waiting = np.bincount(self._reading, minlength=pace)
        merged = waiting // FANOUT * FANOUT
        before = np.concatenate([[0], waiting.cumsum()[:-1]])
        self.is_left = np.arange(runs) - before[self._reading] >= merged[self._reading]
        self.merged_to = self.begins + merged / runs

    def by_reading(self, rows: Times) -> Times:
        """The rows that each reading finds, of those that each run wrote."""
        found = np.bincount(self._reading, weights=rows, minlength=len(self.readings))
        return found.astype(np.float64)


@lru_cache(maxsize=2**12)
def waiting(runs: int, pace: int) -> Log:
    """The log of so many runs that is read at a lower pace."""
    return Log(runs, pace)
