"""What work was measured to cost in a warehouse, and the prices fitted to it.

What a refresh was expected to be, and what it took, is in its event.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from typing import Any

from slackwater.catalog.store import Catalog
from slackwater.stats.calibrate import MOST_STEPS, Measured, fitted
from slackwater.stats.cost import Model, Work

REFIT = 20
"""Prices are fitted again after so many more refreshes."""


class Experience:
    """Of one open warehouse. Several threads may ask it."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._lock = threading.Lock()
        self._measured: list[Measured] | None = None
        self._fitted = 0
        self._model = Model()

    def model(self) -> Model:
        """The prices, as far as they are known by now."""
        with self._lock:
            if self._measured is None:
                events = self._catalog.events(kind="refresh", limit=MOST_STEPS)
                self._measured = [m for e in reversed(events) for m in _measured(e.body)]
                self._fit(self._measured)
            elif len(self._measured) >= self._fitted + REFIT:
                self._fit(self._measured)
            return self._model

    def _fit(self, measured: list[Measured]) -> None:
        del measured[: -2 * MOST_STEPS]
        self._fitted = len(measured)
        self._model = fitted(measured) if measured else Model()

    def learn(self, event: Mapping[str, Any]) -> None:
        """A refresh was done, and this is its event."""
        with self._lock:
            if self._measured is not None:
                self._measured += _measured(event)


def _measured(event: Mapping[str, Any]) -> Iterator[Measured]:
    """A refresh, where it is known what was expected of it, and nothing else was done."""
    chosen, steps = event.get("chosen"), event.get("steps") or ()
    if not isinstance(chosen, dict) or "work" not in chosen or not steps:
        return
    if not chosen["alone"] or {step["engine"] for step in steps} != {chosen["engine"]}:
        return
    cpu = sum(step["cpu_seconds"] for step in steps)
    latency = sum(step["seconds"] for step in steps)
    yield Measured(chosen["engine"], Work(*chosen["work"]), cpu, latency)
