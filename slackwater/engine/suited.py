"""What suits a statement on Spark, by how much it begins with and how much it reads altogether."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from slackwater.algebra.relation import Relation
from slackwater.engine.dialects import IN_ONE_PIECE, SPARK, Dialect
from slackwater.engine.sources import Given, Source, Sources, Stored, changed_bytes
from slackwater.engine.spark_settings import FROM_FEW_ROWS, NOTHING_SENT, OVER_FEW_ROWS, Overlay
from slackwater.types import BINARY, STRING, Field

SHORT_BYTES = 8_000_000
"""A statement that begins with less begins with few rows."""
ONE_PIECE_BYTES = 24_000_000
"""A statement that begins with a small change and reads less altogether is one task, as any is that
reads less than `SHORT_BYTES`: to exchange rows, or to send them, is a stage or a job, and takes
longer than other cores save."""
TINY_BYTES = 500_000
"""A statement that reads less is interpreted: it runs for less long than its code would compile."""


@dataclass(frozen=True)
class Suited:
    """How a statement is best run."""

    from_few: bool = False
    one_piece: bool = False
    over_few: bool = False

    @property
    def overlays(self) -> list[Overlay]:
        """The settings for it."""
        asked = {
            FROM_FEW_ROWS: self.from_few,
            NOTHING_SENT: self.one_piece,
            OVER_FEW_ROWS: self.over_few,
        }
        return [overlay for overlay, wanted in asked.items() if wanted]

    @property
    def dialect(self) -> Dialect:
        """How it is written."""
        return IN_ONE_PIECE if self.one_piece else SPARK


def suited(sources: Sources, relations: Sequence[Relation]) -> Suited:
    """What suits a statement for some relations that begins with few rows (a small change, or small
    inputs altogether), and one that reads few at all."""
    if any(isinstance(s, Given) and not s.is_local for s in sources.values()):
        return Suited()  # of any size
    whole = sum(source.bytes for source in sources.values())
    by_change = 0 < changed_bytes(sources) < SHORT_BYTES
    short = whole < SHORT_BYTES
    return Suited(
        from_few=short or by_change,
        one_piece=short or (by_change and read_bytes(sources, relations) < ONE_PIECE_BYTES),
        over_few=whole < TINY_BYTES,
    )


def read_bytes(sources: Sources, relations: Sequence[Relation]) -> float:
    """About how much there is to read in the columns that some relations scan."""
    wanted: dict[str, set[str]] = {}
    for relation in relations:
        for scan in relation.scans():
            wanted.setdefault(scan.source, set()).update(f.name for f in scan.fields)
    return sum(_read(source, wanted.get(name, ())) for name, source in sources.items())


def _read(source: Source, wanted: Collection[str]) -> float:
    if not isinstance(source, Stored):
        return source.bytes
    read = sum(_width(f) for f in source.schema if f.name in wanted)
    return source.bytes * read / max(1, sum(map(_width, source.schema)))


def _width(field: Field) -> int:
    """As Spark itself takes them: a text is as long as a few numbers."""
    return 20 if field.type in (STRING, BINARY) else 8
