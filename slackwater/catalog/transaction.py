"""A commit in the making, and the rows it reads and writes.

Rows are never changed in place, except those the same commit added: a change closes the old row
(`removed_commit`) and adds a new one, so that older snapshots keep what they saw.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from types import SimpleNamespace
from typing import Any

from sqlalchemy import Connection, Insert, Row, Select, Update, bindparam, insert, select, update
from sqlalchemy import Table as SqlTable

from slackwater.catalog.tables import definitions, runs, segments, versions
from slackwater.errors import StateError

_ROWS_AT_ONCE = 1000  # a database bounds how many values a statement may hold

Live = SimpleNamespace
"""A row that no commit has closed, with its columns as attributes."""


@dataclass(slots=True)
class Transaction:
    """Its connection, its number, its moment; and the rows it has read and is to write.

    Nobody else writes meanwhile, so a row is read once. Rows are written when all is done, or
    when something else than their relation's id is asked about (`flush`).
    """

    connection: Connection
    commit: int
    now: float
    bumped: set[str] = field(default_factory=set)  # relations that got a new version in it
    leases: Mapping[str, Row[Any]] = field(default_factory=dict)  # of names that were asked for
    _there: set[str] = field(default_factory=set)  # relations that were defined when it began
    _runs: dict[str, Row[Any] | None] = field(default_factory=dict)
    _read: dict[tuple[SqlTable, str], Live | None] = field(default_factory=dict)
    _changed: dict[tuple[SqlTable, str], Live] = field(default_factory=dict)

    def look_for(self, defined: Iterable[str], versioned: Iterable[str]) -> None:
        """Ask once for what is asked for one by one later: relations that must exist, and live
        rows of `versions`."""
        for some in _some(defined):
            self._there.update(self.connection.scalars(_THERE, {"ids": some}))
        for some in _some(versioned):
            self._read |= {(versions, id): None for id in some}
            for row in self.connection.execute(_VERSIONS, {"ids": some}):
                self._read[versions, row.relation_id] = Live(**row._mapping)

    def exists(self, id: str) -> bool:
        """Is the relation defined?"""
        if id in self._there and (definitions, id) not in self._read:
            return True
        return self.find(definitions, id) is not None

    def run(self, id: str) -> Row[Any] | None:
        """A run's token, state and commit, as this commit found them."""
        if id not in self._runs:
            self._runs[id] = self.connection.execute(_RUN, {"run": id}).one_or_none()
        return self._runs[id]

    def find(self, table: SqlTable, id: str) -> Live | None:
        """The relation's live row in `definitions` or `versions`."""
        if (table, id) not in self._read:
            row = self.connection.execute(_live(table), {"of": id}).one_or_none()
            self._read[table, id] = None if row is None else Live(**row._mapping)
        return self._read[table, id]

    def live(self, table: SqlTable, id: str) -> Live:
        """The same, of a relation that must exist."""
        row = self.find(table, id)
        if row is None:
            raise self.gone(id)
        return row

    def gone(self, id: str) -> StateError:
        """The relation does not exist."""
        return StateError(
            f"'{name_of(self.connection, id)}' does not exist any more.",
            code="RELATION_GONE",
            hint="Somebody dropped it meanwhile. Nothing of this change is visible.",
        )

    def add(self, table: SqlTable, id: str, **values: Any) -> None:
        """The first row of a new relation."""
        row = Live(row_id=None, relation_id=id, removed_commit=None, **values)
        row.added_commit = self.commit
        self._read[table, id] = self._changed[table, id] = row

    def put(self, table: SqlTable, id: str, **values: Any) -> None:
        """The live row with some values changed, as this commit's row."""
        row = self._changed[table, id] = self.live(table, id)
        vars(row).update(values)

    def close(self, table: SqlTable, id: str) -> None:
        """The relation's live rows end with the commit before this one."""
        self.flush(table)
        self.connection.execute(_closing(table), {"of": id, "removed_commit": self.commit})
        self._read[table, id] = None
        self._there.discard(id)

    def flush(self, *only: SqlTable) -> None:
        """Write the changed rows of some tables; of all, where none is named."""
        for table in only or {t for t, _ in self._changed}:
            changed = [row for (of, _), row in self._changed.items() if of is table]
            self._write(table, changed)
            for row in changed:
                del self._changed[table, row.relation_id]
                del self._read[table, row.relation_id]

    def _write(self, table: SqlTable, rows: Sequence[Live]) -> None:
        """Replaces the rows that this commit found; those that it wrote before are changed."""
        closed, new = [], []
        for row in rows:
            values = vars(row) | {"added_commit": self.commit}
            row_id = values.pop("row_id")
            del values["removed_commit"]
            if row.added_commit != self.commit:
                closed.append({"of": row.relation_id, "removed_commit": self.commit})
            elif row_id is not None:
                change = update(table).where(table.c.row_id == row_id)
                self.connection.execute(change.values(values))
                continue
            new.append(values)
        if closed:
            self.connection.execute(_closing(table), closed)
        if new:
            self.connection.execute(_new(table), new)

    def close_segments(self, rows: Sequence[int]) -> None:
        """The same for some segments."""
        for start in range(0, len(rows), _ROWS_AT_ONCE):
            some = rows[start : start + _ROWS_AT_ONCE]
            change = update(segments).where(segments.c.row_id.in_(some))
            self.connection.execute(change.values(removed_commit=self.commit))


# Statements are built once: that takes longer than running them does.
_THERE = select(definitions.c.relation_id).where(
    definitions.c.relation_id.in_(bindparam("ids", expanding=True)),
    definitions.c.removed_commit.is_(None),
)
_VERSIONS = select(versions).where(
    versions.c.relation_id.in_(bindparam("ids", expanding=True)),
    versions.c.removed_commit.is_(None),
)
_RUN: Select[Any] = select(runs.c.token, runs.c.state, runs.c.commit_id).where(
    runs.c.id == bindparam("run")
)


def _some(ids: Iterable[str]) -> Iterator[list[str]]:
    """Each id once, not too many at a time."""
    wanted = list(dict.fromkeys(ids))
    for start in range(0, len(wanted), _ROWS_AT_ONCE):
        yield wanted[start : start + _ROWS_AT_ONCE]


@cache
def _live(table: SqlTable) -> Select[Any]:
    return select(table).where(
        table.c.relation_id == bindparam("of"), table.c.removed_commit.is_(None)
    )


@cache
def _new(table: SqlTable) -> Insert:
    return insert(table)


@cache
def _closing(table: SqlTable) -> Update:
    return update(table).where(
        table.c.relation_id == bindparam("of"), table.c.removed_commit.is_(None)
    )


def name_of(connection: Connection, id: str) -> str:
    """What people call, or last called, the relation; the id itself when nobody knows."""
    query = select(definitions.c.name).where(definitions.c.relation_id == id)
    return connection.scalar(query.order_by(definitions.c.row_id.desc()).limit(1)) or id


def run_revoked(run_id: str, state: str | None) -> StateError:
    """The run may not commit."""
    return StateError(
        f"Run {run_id} may not commit: it is {state or 'not known'}.",
        code="RUN_REVOKED",
        hint="Its process was taken for dead, or it has ended already. Nothing of it is visible; "
        "try again.",
    )
