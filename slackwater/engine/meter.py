"""What steps cost: CPU time and bytes read, of this process and of Spark's.

The system counts for whole processes. Where steps run side by side, what is spent between two
moments is split evenly among those under way, so that their sum is what was spent. Python looks for
garbage before and after: among all that a process holds that takes up to half a second, and would
make a small step look ten times as dear as the next one like it.
"""

from __future__ import annotations

import gc
import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path


@dataclass(eq=False)
class Reading:
    """What a step has cost so far."""

    cpu_seconds: float = 0.0
    bytes_read: float = 0.0


class Meter:
    """The counters of this process and of another, shared by the steps under way."""

    def __init__(self, other_process: Callable[[], int | None]) -> None:
        self._other = other_process
        self._lock = threading.Lock()
        self._under_way: list[Reading] = []
        self._seen = (0.0, 0)
        self._collecting = False

    def begin(self) -> Reading:
        """A step starts."""
        reading = Reading()
        with self._lock:
            self._split()
            if not self._under_way:
                self._collecting = gc.isenabled()
                gc.disable()
            self._under_way.append(reading)
        return reading

    def end(self, reading: Reading) -> None:
        """A step ends, if it has not yet; its reading is final."""
        with self._lock:
            if reading in self._under_way:
                self._split()
                self._under_way.remove(reading)
                if self._collecting and not self._under_way:
                    gc.enable()

    def _split(self) -> None:
        now = (
            time.process_time() + cpu_seconds(self._other()),
            bytes_read(os.getpid()) + bytes_read(self._other()),
        )
        for reading in self._under_way:
            share = len(self._under_way)
            reading.cpu_seconds += max(0.0, now[0] - self._seen[0]) / share
            reading.bytes_read += max(0, now[1] - self._seen[1]) / share
        self._seen = now


def cpu_seconds(process_id: int | None) -> float:
    """CPU time of another process of this machine, children not included; 0 if unknown."""
    if process_id is None:
        return 0.0
    try:
        fields = Path(f"/proc/{process_id}/stat").read_text().rsplit(")", 1)[1].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def bytes_read(process_id: int | None) -> int:
    """What a process of this machine has read from files, cached or not; 0 if unknown."""
    if process_id is None:
        return 0
    try:
        fields = Path(f"/proc/{process_id}/io").read_text().split()
    except OSError:
        return 0
    return int(fields[fields.index("rchar:") + 1])
