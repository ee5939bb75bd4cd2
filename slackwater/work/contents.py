"""The rows of views, for publication: of small ones, remembered from one time to the next.

What segments add up to never changes, since segments never do. So where a view has all of the
segments whose sum is remembered, only its new ones are read: opening each of many small files
takes longer than adding them up.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from slackwater.algebra.relation import Scan
from slackwater.catalog.model import Segment, View
from slackwater.engine.runner import Runner
from slackwater.engine.segment_reader import read_segments
from slackwater.engine.sources import Given, Log, Source, Stored
from slackwater.engine.storage import Storage
from slackwater.planner.placement import not_local
from slackwater.tvr.time import NEW, OLD, weighted_scan
from slackwater.tvr.zset import consolidate, plus, with_weight
from slackwater.types import NULL, WEIGHT, to_arrow_schema

SMALL_BYTES = 1_000_000
"""Of a view with more in its files nothing is remembered."""
MOST_BYTES = 256 * 1024
"""Nor are more rows of a view, in memory."""
MOST_VIEWS = 200
"""The rows of so many views are remembered: those that were published last."""


@dataclass(frozen=True)
class _Content:
    """What some segments add up to: rows with weights, all above zero."""

    paths: frozenset[str]
    rows: pa.Table


class Contents:
    """Of one open warehouse. Several threads may ask it."""

    def __init__(self, runner: Runner) -> None:
        self._runner = runner
        self._lock = threading.Lock()
        self._known: dict[str, _Content] = {}  # by the ids of views, the newest last

    def rows_of(
        self, storage: Storage, view: View, segments: Sequence[Segment]
    ) -> Iterator[pa.RecordBatch]:
        """A view's rows with weights, all above zero."""
        if sum(s.bytes for s in segments) > SMALL_BYTES:
            return self._streamed(storage, view, segments)
        paths = frozenset(s.path for s in segments)
        known = self._of(view, paths)
        new = tuple(s for s in segments if s.path not in known.paths)
        if all(s.min_weight > 0 for s in new):
            rows = _together(known.rows, read_segments(storage, view, new))
        elif _is_plain(view):
            rows = self._added_up(view, known.rows, new)
        else:
            return self._streamed(storage, view, segments)
        self._keep(view.id, _Content(paths, rows))
        return iter(rows.to_batches())

    def _of(self, view: View, paths: frozenset[str]) -> _Content:
        """What is known of a view, if it is part of what some segments add up to."""
        with self._lock:
            known = self._known.get(view.id)
        schema = _schema(view)
        if known is not None and known.paths <= paths and known.rows.schema == schema:
            return known
        return _Content(frozenset(), _nothing(schema))

    def _keep(self, id: str, content: _Content) -> None:
        with self._lock:
            self._known.pop(id, None)
            if content.rows.nbytes <= MOST_BYTES:
                self._known[id] = content
            while len(self._known) > MOST_VIEWS:
                del self._known[next(iter(self._known))]

    def _streamed(
        self, storage: Storage, view: View, segments: Sequence[Segment]
    ) -> Iterator[pa.RecordBatch]:
        """Whatever their size."""
        if all(s.min_weight > 0 for s in segments):
            return read_segments(storage, view, segments)
        content = with_weight(Scan(view.id, view.name, view.schema))
        return self._runner.copied(content, {view.id: Stored(tuple(segments), view.schema)})

    def _added_up(self, view: View, rows: pa.Table, new: tuple[Segment, ...]) -> pa.Table:
        """Rows with more segments."""
        added = weighted_scan(view.id, view.name, view.schema, NEW)
        parts, sources = [added], dict[str, Source]({added.source: Log(new, view.schema)})
        if rows.num_rows:
            before = weighted_scan(view.id, view.name, view.schema, OLD)
            parts.insert(0, before)
            sources[before.source] = Given(rows, before.schema, rows.nbytes)
        summed = self._runner.copied(consolidate(plus(parts)), sources)
        return _together(_nothing(_schema(view)), summed)


def _is_plain(view: View) -> bool:
    """Can the driver add up rows of these types, given by whomever?"""
    scan = weighted_scan(view.id, view.name, view.schema, NEW)
    return not_local(scan) is None and all(f.type != NULL for f in view.schema)


def _schema(view: View) -> pa.Schema:
    return to_arrow_schema(view.schema).append(pa.field(WEIGHT, pa.int64(), nullable=False))


def _nothing(schema: pa.Schema) -> pa.Table:
    """No rows. Arrow's own way to say so loads pandas first, which takes longer than a refresh."""
    return pa.Table.from_batches([], schema)


def _together(rows: pa.Table, batches: Iterable[pa.RecordBatch]) -> pa.Table:
    names, schema = rows.schema.names, rows.schema
    added = [batch.select(names).cast(schema) for batch in batches]
    return pa.concat_tables([rows, pa.Table.from_batches(added, schema)])
