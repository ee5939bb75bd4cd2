"""The time between a view's last refresh and now: what changed, and where its rows are."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace
from functools import cached_property

from slackwater.algebra.relation import Relation, Scan
from slackwater.catalog.model import Segment, Table, View
from slackwater.engine.sources import Files, Log, Made, Source, Stored
from slackwater.sources import parquet
from slackwater.tvr.time import CHANGE, NEW, OLD, split
from slackwater.work.world import World

UNEVEN = "@uneven"
"""Stands among the versions that a view was computed at where they are not all of one moment."""


class Interval:
    """From the versions that a view was computed at to those of this run."""

    def __init__(self, world: World, view: View) -> None:
        self.world = world
        self.view = view
        self.held = world.held.get(view.id, frozenset())
        """Sources that stay as the view last read them, whatever they hold by now."""

    def segments(self, id: str, time: str) -> tuple[Segment, ...]:
        """The segments of a stored relation before, after or of the change; at any other time,
        all."""
        if id in self.held:
            seen = self.view.as_of[id]
            old = tuple(s for s in self.world.snapshot.segments(id) if s.version <= seen)
            return () if time == CHANGE else old
        pending = tuple(self.world.pending.added.get(id, ()))
        if id in self.world.pending.replaced or id not in self.world.snapshot:
            return pending
        kept = self.world.snapshot.segments(id)
        seen = self.view.as_of.get(id, float("inf"))
        new = tuple(s for s in kept if s.version > seen)
        old = tuple(s for s in kept if s.version <= seen)
        return {OLD: old, CHANGE: (*new, *pending)}.get(time, (*kept, *pending))

    def external(self, id: str) -> Table | None:
        """The table of a source whose files are not ours."""
        return self.world.external(id) if id in self.view.depends else None

    def rows(self, id: str, time: str) -> int:
        """The stored rows of a relation before, after or of the change; at any other time, all.
        Those of files that are not ours are in their footers."""
        table = self.external(id)
        if table is not None:
            return parquet.rows_of(self.files(table, time))
        return sum(s.rows for s in self.segments(id, time))

    def bytes(self, id: str) -> int:
        """How much of a relation there is to read now."""
        table = self.external(id)
        stored = self.segments(id, NEW) if table is None else self.files(table, NEW)
        return sum(one.bytes for one in stored)

    def _files(self, table: Table) -> parquet.Changes:
        before = self.view.as_of.get(table.id, ())
        return parquet.compare(before, self.world.files(table), table.name, self.view.name)

    def files(self, table: Table, time: str) -> tuple[parquet.File, ...]:
        """The files of an external table before, after or of the change; else all."""
        files = self.world.files(table)
        if table.id in self.held:
            time = CHANGE if time == CHANGE else OLD
        if time in (OLD, CHANGE):
            new = set(self._files(table).added)
            files = tuple(f for f in files if (f in new) == (time == CHANGE))
        return files

    def broken(self) -> dict[str, str]:
        """Why the changes of some sources are not known, and of which; nothing where all are."""
        found: dict[str, list[str]] = {}
        for id in self.view.depends:
            for reason in self._broken(id):
                found.setdefault(reason, []).append(id)
        return {reason: self.scans(ids) for reason, ids in found.items()}

    def scans(self, ids: Iterable[str]) -> str:
        """Sources as a plan shows them."""
        return ", ".join(f"Scan {self.world.snapshot.get(id).name}" for id in ids)

    def _broken(self, id: str) -> Iterable[str]:
        external = self.external(id)
        if id not in self.view.as_of:
            yield "SOURCE_REPLACED"
        elif external is not None:
            if self._files(external).gone:
                yield "SOURCE_ROWS_GONE"
        elif id in self.world.pending.replaced or not self.world.snapshot.tells_changes(
            id, self.view.as_of[id]
        ):
            yield "SOURCE_REPLACED"

    @cached_property
    def changed(self) -> frozenset[str]:
        """The sources with changed rows."""
        return frozenset(id for id in self.view.depends if self._has_changed(id))

    def _has_changed(self, id: str) -> bool:
        external = self.external(id)
        if id in self.held:
            return False
        if external is not None:
            return bool(self._files(external).added)
        return any(s.rows for s in self.segments(id, CHANGE))

    @cached_property
    def weighted(self) -> frozenset[str]:
        """The sources with rows whose weight is not one."""
        return frozenset(
            id
            for id in self.view.depends
            if self.external(id) is None
            and any(s.min_weight != 1 or s.max_weight != 1 for s in self.segments(id, NEW))
        )

    def sources(
        self, relations: Iterable[Relation], making: Collection[str] = ()
    ) -> dict[str, Source]:
        """Where the rows of everything that some relations scan are; `making` are the states and
        views whose change is made in the same step."""
        scans = {scan.source: scan for relation in relations for scan in relation.scans()}
        return {source: self._source(scan, making) for source, scan in scans.items()}

    def _source(self, scan: Scan, making: Collection[str]) -> Source:
        id, time = split(scan.source)
        if not time:
            source = self.world.source(scan)
            if id in self.held and isinstance(source, Stored):
                return replace(source, segments=self.segments(id, OLD))
            return source
        table = self.external(id)
        if table is not None:
            files = self.files(table, time)
            size = sum(f.bytes for f in files)
            return Files(tuple(f.path for f in files), table.schema, size, weights=True)
        log = Log(self.segments(id, time), scan.fields[:-1])
        if id in making and time in (NEW, CHANGE):
            return Made(id, log.schema, log if time == NEW else None)
        return log
