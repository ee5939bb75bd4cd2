"""What work was measured to cost in a warehouse, the prices fitted to it, and how far they were
off for each view.

What a refresh was expected to be, and what it took, is in its event.
"""

from __future__ import annotations

import threading
from collections import Counter, deque
from collections.abc import Mapping
from math import inf
from typing import Any

from slackwater.catalog.store import Catalog
from slackwater.planner.choice import remembered_as
from slackwater.stats.calibrate import MOST_STEPS, Measured, fitted
from slackwater.stats.cost import KINDS, Model, Work
from slackwater.stats.recall import Expected, Past, is_missed
from slackwater.stats.sound import sound
from slackwater.stats.turnover import MOST, Seen, Turnover, seen

REFIT = 20
"""Prices are fitted again after so many more refreshes."""


class Experience:
    """Of one open warehouse. Several threads may ask it."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._lock = threading.Lock()
        self._measured: list[Measured] | None = None
        self._pasts: dict[str, Past] = {}  # by the names of views
        self._misses = Counter[str]()  # since this warehouse was opened
        self._seen: dict[str, deque[Seen]] = {}  # by what stands for a relation
        self._fitted = 0
        self._model = Model()
        self._gone: set[tuple[str, str]] = set()  # ways of views, on Spark

    def of(self, view: str) -> Expected:
        """What ways to refresh a view are expected to take, as far as it is known by now."""
        with self._lock:
            measured = self._all()
            if len(measured) >= self._fitted + REFIT:
                self._fit(measured)
            return Expected(self._model, self._pasts.get(view, Past()).copy())

    def turnover(self) -> Turnover:
        """How many rows changed of relations, as far as it was seen by now."""
        with self._lock:
            self._all()
            return Turnover({key: tuple(seen) for key, seen in self._seen.items()})

    def _all(self) -> list[Measured]:
        """What was measured, by the events of before at first."""
        if self._measured is None:
            self._measured = []
            for event in reversed(self._catalog.events(kind="refresh", limit=MOST_STEPS)):
                self._add(self._measured, event.body)
            self._fit(self._measured)
        return self._measured

    def misses(self, view: str) -> int:
        """How often refreshes of a view took ten times what was expected: what was planned for it
        before the last time does not hold."""
        with self._lock:
            return self._misses[view]

    def _fit(self, measured: list[Measured]) -> None:
        del measured[: -2 * MOST_STEPS]
        self._fitted = len(measured)
        self._model = fitted(measured) if measured else Model()

    def is_warm(self, view: str, method: str, engine: str) -> bool:
        """Will a refresh that was just done by a way take as long again? Not the first on Spark:
        it starts, and writes and compiles code for statements that it has not seen."""
        if engine != "spark":
            return True
        with self._lock:
            known = (view, method) in self._gone
            self._gone.add((view, method))
            return known

    def learn(self, event: Mapping[str, Any]) -> None:
        """A refresh was done, and this is its event."""
        with self._lock:
            self._misses[event["view"]] += has_missed(event)
            if self._measured is not None:
                self._add(self._measured, event)

    def _add(self, measured: list[Measured], event: Mapping[str, Any]) -> None:
        for key, shown in seen(event):
            self._seen.setdefault(key, deque(maxlen=MOST)).append(shown)
        found = _measured(event)
        if found is not None:
            measured.append(found)
            past = self._pasts.setdefault(event["view"], Past())
            past.add(remembered_as(event["chosen"]["method"]), found)


def has_missed(event: Mapping[str, Any]) -> bool:
    """Did a refresh take ten times what was expected?"""
    found = _measured(event)
    expected = None if found is None else event["chosen"]["cpu_seconds"]
    return found is not None and expected is not None and is_missed(expected, found.cpu)


def _measured(event: Mapping[str, Any]) -> Measured | None:
    """A refresh, where it is known what was expected of it, and nothing else was done."""
    chosen, steps = event.get("chosen"), event.get("steps") or ()
    if not isinstance(chosen, dict) or not steps:
        return None
    work = chosen.get("work")
    if not isinstance(work, list) or len(work) != len(KINDS):
        return None
    if not chosen.get("alone") or {step.get("engine") for step in steps} != {chosen["engine"]}:
        return None
    cpu, latency = (
        sum(sound(step.get(m), inf, high=inf) for step in steps) for m in ("cpu_seconds", "seconds")
    )
    found = Measured(chosen["engine"], Work(*work), cpu, latency)
    return found if found.is_sound else None
