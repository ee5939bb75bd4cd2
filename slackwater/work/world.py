"""The relations at one commit, plus what an open transaction or run has written so far."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from threading import Lock
from typing import Any

from slackwater.algebra.relation import Relation, Scan
from slackwater.catalog.model import Segment, Table, View
from slackwater.catalog.snapshot import Snapshot
from slackwater.engine.sources import Files, Given, Source, Stored
from slackwater.errors import UserError, nearest
from slackwater.sources import parquet
from slackwater.sql import bind
from slackwater.sql.context import Context
from slackwater.work.house import House


@dataclass
class Pending:
    """Segments that are written and not committed, by relation."""

    added: dict[str, list[Segment]] = field(default_factory=dict)
    replaced: set[str] = field(default_factory=set)  # the committed segments no longer count

    def add(self, id: str, segments: Iterable[Segment]) -> None:
        """More rows for a relation."""
        self.added.setdefault(id, []).extend(segments)

    def forget(self, id: str) -> None:
        """As if nothing had been written of a relation."""
        self.added.pop(id, None)
        self.replaced.discard(id)

    def replace(self, id: str, segments: Iterable[Segment]) -> None:
        """A relation made anew."""
        self.added[id] = list(segments)
        self.replaced.add(id)


class World:
    """What names mean and where rows are, at one moment."""

    def __init__(
        self,
        house: House,
        snapshot: Snapshot,
        pending: Pending | None = None,
        defining: bool = False,
    ) -> None:
        self.house = house
        self.snapshot = snapshot
        self.pending = pending or Pending()
        self.defining = defining  # never-refreshed views may be named
        self.given: dict[str, Given] = {}
        self.held: Mapping[str, frozenset[str]] = {}
        """By view, sources that stay as it last read them."""
        self.kept: dict[str, float] = {}
        """By view or part, the bytes of states that it keeps after this run, once that is settled,
        which one does after the other."""
        self.settling = Lock()
        self._files: dict[str, tuple[parquet.File, ...]] = {}

    def context(self, now: datetime | None = None, view: View | None = None) -> Context:
        """For binding SQL over this world: any, or that of a view."""
        lookup = self.lookup if view is None else partial(self._as_defined, view)
        spark, now = self.house.runner.spark, now or self.house.now()
        return bind.context(lookup, self.known_names, spark, now)

    def _as_defined(self, view: View, name: str) -> Relation | None:
        """The relation of a name as a view knows it: without columns that were added later."""
        table = self.snapshot.find(name)
        if not isinstance(table, Table):
            return self.lookup(name)
        width = view.widths.get(table.id, table.first_width)
        return Scan(table.id, table.name, table.schema[:width])

    def lookup(self, name: str) -> Relation | None:
        """The relation of a name."""
        found = self.snapshot.find(name)
        if found is None:
            return None
        if isinstance(found, View) and found.refreshed_at is None and not self.defining:
            raise UserError(
                f"View '{found.name}' has no content yet.",
                code="VIEW_NOT_REFRESHED",
                hint=f"Run REFRESH MATERIALIZED VIEW {found.name} first.",
            )
        return Scan(found.id, found.name, found.schema)

    def known_names(self) -> list[str]:
        """The names of tables and views."""
        return sorted(
            [t.name for t in self.snapshot.tables()] + [v.name for v in self.snapshot.views()]
        )

    def table(self, name: str) -> Table:
        """A table by name, for a change."""
        found = self.snapshot.find(name)
        if isinstance(found, Table):
            return found
        if isinstance(found, View):
            raise UserError(
                f"'{name}' is a view and cannot be changed directly.",
                code="NOT_A_TABLE",
                hint="Change the tables it reads; refresh brings the view along.",
            )
        raise UserError(
            f"Table '{name}' does not exist.",
            code="UNKNOWN_TABLE",
            hint=nearest(name, [t.name for t in self.snapshot.tables()])
            or "There are no tables yet; create one with CREATE TABLE.",
        )

    def view(self, name: str) -> View:
        """A view by name."""
        found = self.snapshot.find(name)
        if isinstance(found, View):
            return found
        what = f"'{name}' is a table, not a view." if found else f"View '{name}' does not exist."
        raise UserError(
            what,
            code="UNKNOWN_VIEW",
            hint=nearest(name, [v.name for v in self.snapshot.views()])
            or "There are no views yet; create one with CREATE MATERIALIZED VIEW.",
        )

    def relation(self, name: str) -> Table | View:
        """A table or view by name."""
        found = self.snapshot.find(name)
        if found is None:
            raise UserError(
                f"Table or view '{name}' does not exist.",
                code="UNKNOWN_TABLE",
                hint=nearest(name, self.known_names()),
            )
        return found

    def segments(self, id: str) -> tuple[Segment, ...]:
        """The segments of a relation, pending ones included."""
        kept = () if id in self.pending.replaced else self.snapshot.segments(id)
        return (*kept, *self.pending.added.get(id, ()))

    def external(self, id: str) -> Table | None:
        """The table of some id, where its rows are in files that are not ours."""
        found = self.snapshot.get(id)
        return found if isinstance(found, Table) and found.source == "parquet" else None

    def rows(self, id: str) -> int:
        """The stored rows of a table or view, or those that the footers of its files tell."""
        table = self.external(id)
        if table is not None:
            return parquet.rows_of(self.files(table))
        return sum(s.rows for s in self.segments(id))

    def files(self, table: Table) -> tuple[parquet.File, ...]:
        """The files of an external table, looked at once."""
        if table.id not in self._files:
            found = parquet.files(table.options["path"])
            parquet.check_schema(table.schema, found, table.name)
            self._files[table.id] = found
        return self._files[table.id]

    def give(self, name: str, given: Given) -> Scan:
        """Rows handed in, as a relation."""
        self.given[name] = given
        return Scan(name, name, given.schema)

    def sources(self, relation: Relation) -> dict[str, Source]:
        """Where the rows of everything that a relation scans are."""
        return {scan.source: self.source(scan) for scan in relation.scans()}

    def source(self, scan: Scan) -> Source:
        """Where the rows of one scan are."""
        if scan.source in self.given:
            return self.given[scan.source]
        found = self.snapshot.get(scan.source)
        if isinstance(found, Table) and found.source == "parquet":
            files = self.files(found)
            size = sum(f.bytes for f in files)
            return Files(tuple(f.path for f in files), found.schema, size)
        key = found.key if isinstance(found, Table) else ()
        return Stored(self.segments(scan.source), found.schema, key=key)

    @contextmanager
    def steady_files(self) -> Iterator[None]:
        """External files are the same after the block as before; if not, that is the error to
        tell, whatever an engine said of a file that was gone."""
        try:
            yield
        finally:
            self._check_files()

    def _check_files(self) -> None:
        for id, files in self._files.items():
            parquet.require_unchanged(files, self.snapshot.get(id).name)

    def seen(self, ids: Iterable[str], versions: Callable[[str], int]) -> dict[str, Any]:
        """At which version, or over which files, sources are read here."""
        result: dict[str, Any] = {}
        for id in ids:
            found = self.snapshot.get(id)
            if isinstance(found, Table) and found.source == "parquet":
                result[id] = [f.to_json() for f in self.files(found)]
            else:
                result[id] = versions(id)
        return result
