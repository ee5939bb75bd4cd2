"""Looking at what views read: how many different values there are in the columns that decide, and
what share of the rows their filters keep.

Done after a view was computed in full, on the driver, once; and again when a relation has doubled
or halved; in files of others, too. Counts are sketches: off by a fifth, say, and cheap.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import pyarrow as pa

from slackwater.algebra.expr import is_portable
from slackwater.algebra.relation import Relation
from slackwater.catalog.model import Segment
from slackwater.catalog.store import Catalog
from slackwater.engine.inputs import weighted
from slackwater.engine.local import LocalEngine
from slackwater.errors import NeedsSpark, SlackwaterError
from slackwater.planner.placement import is_local_type
from slackwater.sources import parquet
from slackwater.stats.profile import Asked, Profile, Profiles, asked_of, deciding_columns
from slackwater.stats.sound import sound_values
from slackwater.stats.values import Values
from slackwater.types import DATE, Field, Schema, is_numeric

if TYPE_CHECKING:
    from slackwater.work.world import World

LEAST_ROWS = 10_000
"""For queries that read fewer rows no profile is made: whatever is done with them is cheap."""
MOST_BYTES = 4_000_000_000
"""Of larger ones neither: reading them is not."""
MOST_SHARES = 100
"""Filters of which it is known what they keep, for each relation: the newest."""
_PREFIX = "profile:"
_LOOKED = pa.schema(
    [
        ("i", pa.int64()),
        ("distinct", pa.int64()),
        ("filled", pa.int64()),
        ("low", pa.float64()),
        ("high", pa.float64()),
    ]
)


@dataclass(frozen=True)
class _Stored:
    """A relation's rows as they lie there: in segments, or in files of others."""

    schema: Schema
    segments: tuple[Segment, ...] = ()
    files: tuple[parquet.File, ...] = ()

    @classmethod
    def of(cls, world: World, id: str) -> _Stored:
        schema, table = world.snapshot.get(id).schema, world.external(id)
        if table is not None:
            return cls(schema, files=world.files(table))
        return cls(schema, world.snapshot.segments(id))

    @cached_property
    def rows(self) -> int:
        return parquet.rows_of(self.files) + sum(s.rows for s in self.segments)

    @property
    def bytes(self) -> int:
        return sum(f.bytes for f in self.files) + sum(s.bytes for s in self.segments)

    def text(self, local: LocalEngine) -> str:
        """What stands for them in FROM."""
        if self.files:
            return local.read_paths([f.path for f in self.files], self.schema, weights=False)
        return weighted(self.segments, self.schema, local.dialect, local.read)


class Profiling:
    """The profiles of a warehouse. Several threads may ask for them."""

    def __init__(self, catalog: Catalog, local: LocalEngine) -> None:
        self._catalog = catalog
        self._local = local
        self._lock = threading.Lock()
        self._kept: dict[str, Profile] | None = None
        self.looks = Counter[str]()
        """By relation, how often it was looked at: what is known of it changes with that."""

    def known(self) -> Profiles:
        """All that there are."""
        with self._lock:
            if self._kept is None:
                self._kept = {
                    key.removeprefix(_PREFIX): Profile.from_json(value)
                    for key, value in self._catalog.settings().items()
                    if key.startswith(_PREFIX)
                }
            return Profiles(dict(self._kept))

    def look(self, world: World, query: Relation, again: bool = False) -> None:
        """Make the profiles of what a query reads, where there are none that serve; `again`: none
        does that is of other rows than there are now."""
        stored = {s.source: _Stored.of(world, s.source) for s in query.scans()}
        if sum(own.rows for own in stored.values()) < LEAST_ROWS:
            return
        known, filters = self.known().known, asked_of(query)
        for id, columns in deciding_columns(query).items():
            own, rows = stored[id], stored[id].rows
            before = known.get(id, Profile(0))
            serves = before.rows == rows if again else before.serves(rows)
            kept = before if serves else Profile(rows)
            wanted = (columns | set(before.columns)) - set(kept.columns)
            questions = [f for text, f in filters.get(id, {}).items() if text not in kept.shares]
            if rows and (wanted or questions) and own.bytes <= MOST_BYTES:
                found = self._found(own, kept, wanted, questions)
                if found is not None:
                    self._keep(id, found)

    def _found(
        self, stored: _Stored, kept: Profile, wanted: set[str], questions: Sequence[Asked]
    ) -> Profile | None:
        """A profile with what was not known; None where files of others are not what they were:
        they are looked at another time."""
        try:
            columns = self._looked_at(stored, wanted)
            shares = {**kept.shares, **self._shares(stored, questions)}
        except SlackwaterError:
            if not stored.files:
                raise
            return None
        newest = dict(list(shares.items())[-MOST_SHARES:])
        return Profile(kept.rows, {**kept.columns, **columns}, newest)

    def _keep(self, id: str, profile: Profile) -> None:
        self._catalog.set_setting(_PREFIX + id, profile.to_json())
        with self._lock:
            assert self._kept is not None
            self._kept[id] = profile
            self.looks[id] += 1

    def _looked_at(self, stored: _Stored, names: set[str]) -> dict[str, Values]:
        fields = [f for f in stored.schema if f.name in names and is_local_type(f.type)]
        text = stored.text(self._local)
        parts = [f"SELECT {i}, {self._looks(f)} FROM {text}" for i, f in enumerate(fields)]
        found = self._local.batches(" UNION ALL ".join(parts), _LOOKED) if parts else ()
        columns = {}
        for batch in found:
            for row in batch.to_pylist():
                nulls = 1 - row["filled"] / stored.rows
                values = Values(float(row["distinct"]), nulls, row["low"], row["high"])
                found_out = sound_values(values)  # a column of floats may end in NaN
                if found_out is not None:
                    columns[fields[row["i"]].name] = found_out
        return columns

    def _shares(self, stored: _Stored, filters: Sequence[Asked]) -> dict[str, float]:
        """What some filters keep; nothing where the local engine cannot tell."""
        strange = {f.name for f in stored.schema if not is_local_type(f.type)}
        filters = [f for f in filters if is_portable(f.predicate) and strange.isdisjoint(f.names)]
        if not filters:
            return {}
        dialect = self._local.dialect
        counts = [
            f"count(*) FILTER (WHERE {dialect.render(f.predicate, [*map(dialect.quote, f.names)])})"
            for f in filters
        ]
        text = stored.text(self._local)
        counted = pa.schema([(f"c{i}", pa.int64()) for i in range(len(counts))])
        try:
            found = [*self._local.batches(f"SELECT {', '.join(counts)} FROM {text}", counted)]
        except (NeedsSpark, SlackwaterError):
            return {}
        (kept,) = pa.Table.from_batches(found, counted).to_pylist()
        return {f.text: kept[f"c{i}"] / stored.rows for i, f in enumerate(filters)}

    def _looks(self, field: Field) -> str:
        """What is asked of a column."""
        name = self._local.dialect.quote(field.name)
        ends = ["NULL", "NULL"]
        if is_numeric(field.type):
            ends = [f"{end}({name})" for end in ("min", "max")]
        elif field.type == DATE:
            ends = [f"{end}({name}) - DATE '1970-01-01'" for end in ("min", "max")]
        low, high = (f"CAST({end} AS DOUBLE)" for end in ends)
        return f"approx_count_distinct({name}), count({name}), {low}, {high}"
