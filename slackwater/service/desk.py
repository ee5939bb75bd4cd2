"""What all parts of a scheduler share: the warehouse, the clock, and whom to tell."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from slackwater.catalog.model import Event, WriteEvent
from slackwater.service.clock import Clock
from slackwater.service.told import LOUD, Listener, Summary, Told
from slackwater.timing import Prices, parse_prices
from slackwater.warehouse import Warehouse
from slackwater.work.house import House
from slackwater.work.standing import Newest

logger = logging.getLogger("slackwater.scheduler")
ANOTHER = ("LEASE_HELD", "LEASE_LOST", "VERSION_CONFLICT", "RUN_REVOKED", "RELATION_GONE")
"""Somebody else is at the same view, or it has changed: it is looked at again."""


@dataclass
class Desk:
    """Of one scheduler."""

    db: Warehouse
    house: House
    clock: Clock
    listener: Listener | None = None
    summary: Summary = field(default_factory=Summary)
    newest: Newest = field(init=False)

    def __post_init__(self) -> None:
        self.newest = Newest(self.house.catalog)

    def say(
        self, kind: str, text: str, view: str | None = None, body: Mapping[str, Any] | None = None
    ) -> None:
        """One thing that was done or found, to whoever listens, or else to the log."""
        if self.listener is None:
            logger.log(logging.WARNING if kind in LOUD else logging.INFO, "%s: %s", kind, text)
        else:
            self.listener(Told(kind, self.clock.now(), text, view, body or {}))

    def write(self, event: Event) -> None:
        """One event by itself."""
        self.house.catalog.commit([], [WriteEvent(event)])

    def prices(self) -> Prices:
        """What work costs, as it is set for the warehouse now."""
        return parse_prices(self.house.catalog.snapshot().settings.get("prices", "1"))

    def price(self, at: datetime) -> float:
        """Of a second of work at a moment."""
        return self.prices().at(at)
