"""A commit in the making, and the rows it reads and writes.

Rows are never changed in place, except those the same commit added: a change closes the old row
(`removed_commit`) and adds a new one, so that older snapshots keep what they saw.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from sqlalchemy import Connection, Insert, Row, Select, Update, bindparam, insert, select, update
from sqlalchemy import Table as SqlTable

from slackwater.catalog.tables import definitions, segments
from slackwater.errors import StateError

_ROWS_AT_ONCE = 1000  # a database bounds how many values a statement may hold


@dataclass(slots=True)
class Transaction:
    """Its connection, its number, its moment."""

    connection: Connection
    commit: int
    now: float
    bumped: set[str] = field(default_factory=set)  # relations that got a new version in it

    def find(self, table: SqlTable, id: str) -> Row[Any] | None:
        """The relation's live row in `definitions` or `versions`."""
        return self.connection.execute(_live(table), {"of": id}).one_or_none()

    def live(self, table: SqlTable, id: str) -> Row[Any]:
        """The same, of a relation that must exist."""
        row = self.find(table, id)
        if row is None:
            raise StateError(
                f"'{name_of(self.connection, id)}' does not exist any more.",
                code="RELATION_GONE",
                hint="Somebody dropped it meanwhile. Nothing of this change is visible.",
            )
        return row

    def put(self, table: SqlTable, id: str, **values: Any) -> None:
        """The live row with some values changed, as this commit's row."""
        old = self.live(table, id)
        if old.added_commit == self.commit:
            change = update(table).where(table.c.row_id == old.row_id)
            self.connection.execute(change.values(values))
            return
        self.close(table, id)
        new = {k: v for k, v in old._mapping.items() if k not in ("row_id", "removed_commit")}
        self.connection.execute(_new(table), new | values | {"added_commit": self.commit})

    def close(self, table: SqlTable, id: str) -> None:
        """The relation's live rows end with the commit before this one."""
        self.connection.execute(_closing(table), {"of": id, "removed_commit": self.commit})

    def close_segments(self, rows: Sequence[int]) -> None:
        """The same for some segments."""
        for start in range(0, len(rows), _ROWS_AT_ONCE):
            some = rows[start : start + _ROWS_AT_ONCE]
            change = update(segments).where(segments.c.row_id.in_(some))
            self.connection.execute(change.values(removed_commit=self.commit))


# Statements are built once: that takes longer than running them does.


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
