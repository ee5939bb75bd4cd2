"""A few columns by which rows are looked up, as far as segments tell."""

from __future__ import annotations

from collections.abc import Sequence

from slackwater.catalog.model import Segment
from slackwater.types import Schema

MOST = 2
"""Columns by which rows are looked up."""
ALIKE = 100
"""Columns whose values lie closer together tell too little."""


def telling_columns(schema: Schema, segments: Sequence[Segment]) -> list[int]:
    """The places of the columns that tell most rows of some segments apart: those with the widest
    ranges. None is NULL anywhere. No columns where no range is wide enough, or known."""
    live = [s for s in segments if s.rows]
    widths = {}
    for i, field in enumerate(schema):
        ranges = [s.stats[field.name] for s in live if field.name in s.stats]
        if ranges and len(ranges) == len(live):
            widths[i] = max(high for _, high in ranges) - min(low for low, _ in ranges)
    widest = sorted((i for i in widths if widths[i] > ALIKE), key=lambda i: -widths[i])
    return sorted(widest[:MOST])
