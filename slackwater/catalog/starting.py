"""The start of a piece of work: its lease, its run and its pin, in one transaction.

Each takes a transaction of its own otherwise, and small work is shorter than those. The names are
leased and the run is registered before anything is written, and what is read is pinned at the
moment of the lease: nobody else changes the leased names from then on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from sqlalchemy import Connection

from slackwater.catalog import leases, pins, runs
from slackwater.catalog.database import Database
from slackwater.catalog.keepalive import Keepalive
from slackwater.catalog.leases import Lease
from slackwater.catalog.model import Requirement, Run
from slackwater.catalog.pins import Pin


@dataclass(frozen=True)
class Start:
    """What a piece of work holds."""

    lease: Lease
    run: Run
    pin: Pin
    at: str  # a moment at which what it reads was the newest

    @property
    def requirements(self) -> tuple[Requirement, ...]:
        """What its commit requires."""
        return (self.run.requirement, *self.lease.requirements)


@dataclass
class _Beside:
    """The run and the pin, registered when the names are handed over."""

    database: Database
    keepalive: Keepalive
    run: Run
    now: Callable[[], str]
    pins: list[Pin] = field(default_factory=list)
    at: str = ""

    def __call__(self, connection: Connection, now: float, tokens: Mapping[str, int]) -> None:
        runs.register(connection, now, self.run, tokens)
        self.at = self.now()
        self.pins.append(pins.register(self.database, self.keepalive, connection, now))


def start(
    database: Database,
    keepalive: Keepalive,
    kind: str,
    names: Iterable[str],
    now: Callable[[], str],
    wait_seconds: float,
    ttl_seconds: float,
) -> Start:
    """Lease all names, register a run under them, and pin the newest commit; or none of it."""
    beside = _Beside(database, keepalive, runs.fresh(kind), now)
    lease = leases.acquire(database, keepalive, names, wait_seconds, ttl_seconds, beside)
    (pin,) = beside.pins
    keepalive.add(pin)
    runs.begun(keepalive, beside.run)
    return Start(lease, beside.run, pin, beside.at)
