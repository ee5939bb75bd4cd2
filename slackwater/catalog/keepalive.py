"""One thread per catalog that says of all leases, pins and open runs: still alive.

What others may have acted upon is never revived: an expired lease, a pin that a collection has
left out of account, a revoked run. The holder learns so from `lost`, or from the commit that is
refused.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol

from sqlalchemy import Connection

from slackwater import faults
from slackwater.catalog.database import Database
from slackwater.errors import StateError

logger = logging.getLogger(__name__)
_BEATS_PER_TTL = 4


class Renewable(Protocol):
    """Something that is held for `ttl_seconds` beyond its last renewal."""

    ttl_seconds: float
    lost: bool
    over: bool  # it was let go, and the catalog could not be told yet

    def renew(self, connection: Connection, now: float) -> bool:
        """Hold on for another `ttl_seconds`; False when it has been lost or is over."""
        ...


@contextmanager
def letting_go(what: str) -> Iterator[None]:
    """Give something back, if the catalog can be written: where it cannot, on a full disk say,
    it is tried again later or expires by itself, and how the work went must not be hidden."""
    try:
        yield
    except StateError as error:
        logger.warning("%s could not be given back yet: %s", what, error)


class Keepalive:
    """Renews what is registered, several times within the shortest time to live."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._held: set[Renewable] = set()
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._closed = False

    def add(self, item: Renewable) -> None:
        """Keep `item` alive from now on."""
        with self._changed:
            self._held.add(item)
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._beat, name="slackwater-keepalive", daemon=True
                )
                self._thread.start()
            self._changed.notify()

    def remove(self, item: Renewable) -> None:
        """Stop keeping `item` alive."""
        with self._changed:
            self._held.discard(item)

    def held(self) -> tuple[Renewable, ...]:
        """What is being kept alive."""
        with self._changed:
            return tuple(self._held)

    def close(self) -> None:
        """Stop the thread, after a last try to give back what could not be given back."""
        if any(item.over for item in self.held()):
            self._renew_all()
        with self._changed:
            self._closed = True
            self._changed.notify()
            thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join(timeout=5)

    def _beat(self) -> None:
        while self._wait():
            if not faults.stopped():
                self._renew_all()

    def _wait(self) -> bool:
        """Sleep until the next beat is due; False when the catalog was closed."""
        with self._changed:
            self._changed.wait_for(lambda: self._closed or self._held)
            ttl = min((item.ttl_seconds for item in self._held), default=0.0)
            self._changed.wait_for(self._hurried(ttl), timeout=ttl / _BEATS_PER_TTL)
            return not self._closed

    def _hurried(self, ttl: float) -> Callable[[], bool]:
        """Whether to beat early: closed, or something short-lived was added."""
        return lambda: self._closed or any(i.ttl_seconds < ttl for i in self._held)

    def _renew_all(self) -> None:
        try:
            with self._database.writing() as connection:
                now = self._database.now(connection)
                lost = [item for item in self.held() if not item.renew(connection, now)]
        except StateError as error:
            logger.warning("Leases and pins could not be renewed, will try again: %s", error)
            return
        for item in lost:
            item.lost = True
            self.remove(item)
