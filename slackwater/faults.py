"""Named points at which a test may kill or pause the process.

Set `SLACKWATER_CRASH_AT=point` to die by SIGKILL there, as a power cut would do (`point:2`: the
second time the process comes by), or `SLACKWATER_PAUSE_AT=point:seconds` to sleep there once, as
a stopped machine would do.
"""

from __future__ import annotations

import os
import signal
import time

POINTS = (
    "run.begun",  # the run is registered, nothing is written
    "segment.writing",  # a data file is partly written
    "segment.written",  # a data file is complete and synced
    "commit.before",  # everything is written, nothing is visible
    "commit.inside",  # the transaction has done its updates and not committed
    "commit.after",  # everything is visible
    "publish.writing",  # plain files are partly written
    "publish.before_pointer",  # plain files are complete, the pointer is old
    "publish.after",  # the pointer is new
    "collect.before",  # garbage is chosen, nothing is deleted
    "collect.between",  # some garbage is deleted
)


_stopped = False
_passed = 0  # how often the process came by the point at which it is to die


def stopped() -> bool:
    """Whether a pause is under way, in which a stopped machine would send no heartbeat."""
    return _stopped


def reached(point: str) -> None:
    """Mark that the process is at `point`."""
    name, _, times = os.environ.get("SLACKWATER_CRASH_AT", "").partition(":")
    if name == point:
        _crash(int(times or 1))
    name, _, seconds = os.environ.get("SLACKWATER_PAUSE_AT", "").partition(":")
    if name == point:
        os.environ.pop("SLACKWATER_PAUSE_AT")
        _pause(float(seconds))


def _crash(times: int) -> None:
    global _passed
    _passed += 1
    if _passed == times:
        os.kill(os.getpid(), signal.SIGKILL)


def _pause(seconds: float) -> None:
    global _stopped
    _stopped = True
    try:
        time.sleep(seconds)
    finally:
        _stopped = False
