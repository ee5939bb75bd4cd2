"""How the refreshes of a run were done: by which methods, which fell back to computing anew, and
what they keep for the next ones."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from bench.refresh import PLACEMENTS, Sample
from slackwater.planner.choice import FULL, METHODS, NONE, PLAIN

FAILED = "failed"
ANEW = (FULL, PLAIN)
NO_CHOICE = {
    "FIRST_REFRESH",
    "FULL_REQUESTED",
    "FULL_BY_OPTION",
    "NOT_DETERMINISTIC",
    "SOURCE_ROWS_GONE",
    "SOURCE_REPLACED",
}
"""Of a view that is computed anew for one of these, no changes could be followed."""


def refreshed(samples: Iterable[Sample]) -> dict[str, Any]:
    """Of one change size, by placement: the queries of each method, over all rounds; refreshes that
    computed anew what could have followed changes, and why; the bytes of what each view keeps."""
    own = {p: [s for s in samples if s.method == p] for p in PLACEMENTS}
    return {
        "methods": {p: _methods(found) for p, found in own.items()},
        "fallbacks": {p: list(_fallbacks(found)) for p, found in own.items()},
        "state_bytes": {p: _state_bytes(found) for p, found in own.items()},
    }


def _methods(samples: Sequence[Sample]) -> dict[str, list[str]]:
    """Those that some query was refreshed by; one may be under several, in different rounds."""
    found = {
        method: list(dict.fromkeys(s.query for s in samples if _method(s) == method))
        for method in (*METHODS, NONE, FAILED)
    }
    return {method: queries for method, queries in found.items() if queries}


def _method(sample: Sample) -> str:
    return str(sample.details.get("method", FAILED))


def _fallbacks(samples: Sequence[Sample]) -> Iterator[dict[str, Any]]:
    told = []
    for sample in samples:
        reasons = sample.details.get("reasons", [])
        if _method(sample) in ANEW and not NO_CHOICE & set(reasons):
            line = {"query": sample.query, "method": _method(sample), "reasons": reasons}
            line["why"] = sample.details.get("why", [])
            if line not in told:
                told.append(line)
                yield line


def _state_bytes(samples: Sequence[Sample]) -> dict[str, int]:
    """After the last round."""
    return {s.query: s.details["state_bytes"] for s in samples if "state_bytes" in s.details}
