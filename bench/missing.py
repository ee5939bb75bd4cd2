"""Which results come later than their goals: strictly, and beyond what noise makes of it.

A result is missed by what it takes more than its constraint times one run of it alone. Who does
exactly what the one run does (nothing early, nothing shared) takes as long as it, but for noise:
such queries are told apart, and tell how large the noise was.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from bench.progress import Course

NOISE_SHARE, NOISE_SECONDS = 0.1, 0.05
"""What a result may be late by without being missed beyond noise: the larger of both, the share of
what it may take."""


@dataclass(frozen=True)
class Result:
    """When one query's result came, against what was wanted."""

    query: str
    constraint: float
    wanted: float  # seconds
    seconds: float
    is_plain: bool
    """Is all of it done in one run at the due time, as the run that it is compared with?"""

    @property
    def late(self) -> float:
        """By how many seconds it is missed; none if it is not."""
        return max(0.0, self.seconds - self.wanted)

    @property
    def is_missed(self) -> bool:
        """Is it late at all?"""
        return self.late > 0

    @property
    def is_beyond_noise(self) -> bool:
        """Is it later than noise makes it?"""
        return self.late > max(NOISE_SHARE * self.wanted, NOISE_SECONDS)


def results(constraints: Mapping[str, float], course: Course, batch: Course) -> list[Result]:
    """Those of a course, each against its share of one run."""
    return [
        Result(
            query,
            share,
            share * batch.latency[query],
            course.latency[query],
            query not in course.early,
        )
        for query, share in constraints.items()
    ]


def figures(found: Sequence[Result], batch: Course) -> dict[str, Any]:
    """How many are missed, by how much, under which constraints."""
    late = [result.late for result in found]
    relative = [result.late / result.wanted for result in found]
    shares = sorted({result.constraint for result in found}, reverse=True)
    return {
        **_counts(found),
        "missed_seconds": (sum(late) / len(late), max(late)),
        "missed_share": (sum(relative) / len(relative), max(relative)),
        "by_constraint": [
            {"constraint": share, **_counts([r for r in found if r.constraint == share])}
            for share in shares
        ],
        "noise": [
            result.seconds / batch.latency[result.query] - 1 for result in found if result.is_plain
        ],
    }


def _counts(found: Sequence[Result]) -> dict[str, int]:
    missed = [result for result in found if result.is_missed]
    return {
        "queries": len(found),
        "missed": len(missed),
        "missed_beyond_noise": sum(result.is_beyond_noise for result in missed),
        "missed_plain": sum(result.is_plain for result in missed),
    }


def by_constraint(lines: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """The same by set, approach and constraint, over all cases of a set."""
    for kind, approach in dict.fromkeys((line["set"], line["approach"]) for line in lines):
        own = [o for o in lines if (o["set"], o["approach"]) == (kind, approach)]
        told = [entry for line in own for entry in line["by_constraint"]]
        for share in sorted({entry["constraint"] for entry in told}, reverse=True):
            some = [entry for entry in told if entry["constraint"] == share]
            counts = {
                what: sum(entry[what] for entry in some)
                for what in ("queries", "missed", "missed_beyond_noise", "missed_plain")
            }
            yield {"set": kind, "approach": approach, "constraint": share, **counts}


def noise(lines: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """By how much queries that do what one run does took longer or shorter than it; what is taken
    for noise."""
    found = [abs(share) for line in lines for share in line["noise"]]
    return {
        "share": NOISE_SHARE,
        "seconds": NOISE_SECONDS,
        "measured": len(found),
        "median": median(found) if found else None,
        "most": max(found, default=None),
    }
