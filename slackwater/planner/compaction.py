"""Which segments of a relation to write anew as fewer, as a log-structured merge tree does.

Segments stand on levels by their size, each level eight times the one below. A level that has
eight segments is merged, with all below it, into one of the next; so a row is written again once
per level, and a relation has few segments however many changes made it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from math import ceil

from slackwater.catalog.model import Segment

FANOUT = 8
SMALLEST_BYTES = 128 * 1024  # up to here a segment is on the lowest level
LARGEST_BYTES = 64 * 1024 * 1024  # beyond, segments are not too many whatever their number
STALE_SHARE = 0.5
"""Rows written since the oldest segments, as a share of those, from which all are merged."""


def level(segment: Segment) -> int:
    """The level of a segment, from 0 up.

    >>> [level(Segment("", 1, size, 1, 1)) for size in (1_000, 200_000, 2_000_000)]
    [0, 1, 2]
    """
    found, limit = 0, SMALLEST_BYTES
    while segment.bytes > limit:
        found, limit = found + 1, limit * FANOUT
    return found


def due(segments: Sequence[Segment], adds_up: bool) -> tuple[Segment, ...]:
    """The segments to merge now; none while they are few.

    `adds_up`: rows of one segment change or take away those of another, so that merging all
    makes the sum smaller.
    """
    if len(segments) >= FANOUT and adds_up and _is_stale(segments):
        return tuple(segments)
    small = [s for s in segments if s.bytes <= LARGEST_BYTES]
    counts = Counter(level(s) for s in small)
    full = max((found for found, n in counts.items() if n >= FANOUT), default=None)
    chosen = () if full is None else tuple(s for s in small if level(s) <= full)
    return one_after_the_other(chosen, segments) if adds_up else chosen


def worthwhile(segments: Sequence[Segment], adds_up: bool) -> tuple[Segment, ...]:
    """The segments to merge when somebody asks for as few as can be. Large ones of one version do
    not add up to less: one change or one merge has written them."""
    all_of_them = adds_up and len({s.version for s in segments}) > 1
    chosen = [s for s in segments if all_of_them or s.bytes <= LARGEST_BYTES]
    return tuple(chosen) if len(chosen) > 1 else ()


def most_files(segments: Sequence[Segment]) -> int:
    """Into how many files to merge segments at most.

    Each file holds twice as much as the largest segments that are merged for their number: there
    are half as many afterwards, or fewer, and the same is not merged again and again.

    >>> most_files([Segment("", 1, LARGEST_BYTES, 1, 1)] * 8)
    4
    """
    return max(1, ceil(sum(s.bytes for s in segments) / (2 * LARGEST_BYTES)))


def commits_until_due(segments: Sequence[Segment]) -> int:
    """After how many more commits a look is worth while, if each adds one segment."""
    counts = Counter(level(s) for s in segments)
    return max(1, FANOUT - max(counts.values(), default=0))


def one_after_the_other(
    chosen: Sequence[Segment], segments: Sequence[Segment]
) -> tuple[Segment, ...]:
    """The longest run of whole versions among some chosen segments.

    So a segment stands for an interval of versions, and what is older than all deletions is what
    the relation once held.
    """
    whole = {s.version for s in chosen} - {s.version for s in segments if s not in chosen}
    runs: list[list[Segment]] = [[]]
    for version in sorted({s.version for s in segments}):
        if version in whole:
            runs[-1] += [s for s in chosen if s.version == version]
        else:
            runs.append([])
    longest = max(runs, key=len)
    return tuple(longest) if len(longest) > 1 else ()


def _is_stale(segments: Sequence[Segment]) -> bool:
    oldest = min(s.version for s in segments)
    base = sum(s.rows for s in segments if s.version == oldest)
    return sum(s.rows for s in segments) - base > STALE_SHARE * base
