"""Compaction beside the work: a thread that looks after what was changed."""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Iterable

from slackwater.catalog.codec import fold
from slackwater.catalog.model import View
from slackwater.errors import SlackwaterError
from slackwater.planner.compaction import FANOUT, commits_until_due, due
from slackwater.work.compacting import compact_one, related, stretches
from slackwater.work.house import House

logger = logging.getLogger(__name__)
_EXPECTED = ("LEASE_HELD", "COMPACTION_OVERTAKEN", "RELATION_GONE")
"""Somebody else compacts, replaced or dropped it: nothing to tell."""


class Tidier:
    """Merges segments when a relation has become many of them; nobody waits for it.

    The thread starts when it has something to look at, and ends with the warehouse.
    """

    def __init__(self, house: House) -> None:
        self._house = house
        self._queue: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._left: dict[str, int] = {}  # commits of a relation until the next look at it
        self._thread: threading.Thread | None = None

    def changed(self, names: Iterable[str]) -> None:
        """Tables or views have new segments."""
        if not self._house.settings.compact:
            return
        for name in map(fold, names):
            self._left[name] = self._left.get(name, 1) - 1
            if self._left[name] <= 0:
                self._left[name] = FANOUT
                self._queue.put(name)
                self._start()

    def _start(self) -> None:
        if self._thread is None or not self._thread.is_alive():
            self._thread = threading.Thread(target=self._work, name="compaction", daemon=True)
            self._thread.start()

    def _work(self) -> None:
        while (name := self._queue.get()) is not None:
            try:
                self._tidy(name)
            except SlackwaterError as error:
                logger.warning("Segments of '%s' were not compacted: %s", name, error)

    def _tidy(self, name: str) -> None:
        snapshot = self._house.catalog.snapshot()
        found = snapshot.find(name)
        ids = list(related(snapshot, name))
        if isinstance(found, View):
            ids += found.depends  # whose changes it has read now
        merged = [id for id in ids if self._merge(id)]
        if merged:
            self._house.collect_garbage()
            snapshot = self._house.catalog.snapshot()
        is_view = isinstance(found, View)  # its next refresh has read all there is
        left = [
            commits_until_due(own)
            for id in ids
            if id in snapshot
            for own in ((snapshot.segments(id),) if is_view else stretches(snapshot, id))
        ]
        self._left[name] = min(left, default=FANOUT)

    def _merge(self, id: str) -> bool:
        try:
            return compact_one(self._house, id, due, wait_seconds=0) is not None
        except SlackwaterError as error:
            if error.code not in _EXPECTED:
                raise
            return False

    def close(self) -> None:
        """Finish what is to be done."""
        if self._thread is not None:
            self._queue.put(None)
            self._thread.join()
            self._thread = None
