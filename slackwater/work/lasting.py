"""How many refreshes what is kept will serve, by what came of the last decisions.

A state pays if it saves more, at the refreshes that it serves, than it takes to build. Decisions
go by what is expected to come, and that may be wrong: computing the view anew is then the cheapest
there is, and its states were built in vain. So

    refreshes = (PRIOR + Σ wᵢ · served) / (PRIOR / FUTURE + Σ wᵢ · in vain),  FUTURE at most
    wᵢ = FADING^(refreshes since)

| a refresh was | and | states were built |
|---|---|---|
| by changes | computing anew without states would have cost more | to serve |
| by changes | it would have cost less | in vain |
| anew | some had been kept, or changes could not be followed | in vain |
| anew | none had been kept | to serve, if just what had been expected to change did |

The last row lets trust come back, and keeps it away, while no states are kept.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import inf
from typing import Any

from slackwater.catalog.model import Event
from slackwater.planner.choice import FUTURE, PLAIN
from slackwater.work.arriving import FADING, MOST

PRIOR = 0.1
"""What is believed before anything was seen counts for so many refreshes."""
BY_COST = frozenset({"CHANGE_TOO_LARGE", "STATE_MISSING"})
"""Why a view is computed anew whose changes could be followed, with states or dearly."""


@dataclass(frozen=True)
class Lasting:
    """Of one view; `events` are its last refreshes, the newest first."""

    events: Sequence[Event]

    def refreshes(self, now: bool | None = None) -> float:
        """That a state built now will serve; `now`: whether they serve at this one, if known."""
        known = [found for found in (now, *self._served) if found is not None]
        weights = [FADING**i for i in range(len(known))]
        served = sum(w for w, found in zip(weights, known, strict=True) if found)
        in_vain = sum(weights) - served
        return min(float(FUTURE), (PRIOR + served) / (PRIOR / FUTURE + in_vain))

    def if_anew(self, kept: bool, changed: Collection[str] | None) -> bool | None:
        """Will states have served, if a view is computed anew now? `kept`: are there any;
        `changed`: the names of sources that changed, None where changes cannot be followed. None
        where nobody knows what was expected."""
        expected = _expected(self._refreshes[0].body) if self._refreshes else None
        return None if expected is None else _would_serve(kept, changed, expected)

    @cached_property
    def _refreshes(self) -> list[Event]:
        """Those that found anything changed, of the present definition."""
        found = []
        for event in self.events:
            if event.body["mode"] != "none":
                found.append(event)
            if "FIRST_REFRESH" in event.body["reasons"]:
                break
        return found[: MOST + 1]

    @property
    def _served(self) -> Iterator[bool | None]:
        """Of each refresh but the first, what became of the decision before it."""
        for event, before in zip(self._refreshes, self._refreshes[1:], strict=False):
            expected = _expected(before.body)
            if expected is None:
                yield None
            elif event.body["mode"] == "incremental":
                yield _is_cheaper(event.body)
            else:
                kept = bool(before.body["states"]["kept"])
                yield _would_serve(kept, _changed(event.body, before.body), expected)


def _expected(body: Mapping[str, Any]) -> Collection[str] | None:
    """The names of the sources that were expected to change next."""
    expected: Mapping[str, float] | None = (body.get("states") or {}).get("expected")
    return None if expected is None else [name for name, rows in expected.items() if rows]


def _is_cheaper(body: Mapping[str, Any]) -> bool:
    """Was following changes expected to cost less than computing anew without states?"""
    own, ways = body["chosen"]["cpu_seconds"], body["candidates"]
    plain = [c["cpu_seconds"] for c in ways if c["method"] == PLAIN and c["applicable"]]
    return own is None or own <= min(plain, default=inf)


def _would_serve(kept: bool, changed: Collection[str] | None, expected: Collection[str]) -> bool:
    """Of a refresh that computes a view anew."""
    return not kept and changed is not None and set(changed) <= set(expected)


def _changed(body: Mapping[str, Any], before: Mapping[str, Any]) -> Collection[str] | None:
    """The names of sources that had changed; None where changes could not be followed. Of files of
    others, older events tell only the size."""
    if set(body["reasons"]) - BY_COST:
        return None
    known = before["sources"]
    return [
        name
        for name, size in body["sources"].items()
        if size.get("changed_rows", size["bytes"] != known.get(name, {}).get("bytes"))
    ]
