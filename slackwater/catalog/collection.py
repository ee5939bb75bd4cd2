"""The catalog's side of garbage collection: what nobody can need any more.

A segment removed by commit r is needed by snapshots before r only. So it is garbage once every
live pin, and every commit younger than the grace period, is at r or later. That boundary is the
horizon: it is moved first, in a transaction of its own, and snapshots before it are refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, bindparam, delete, func, select, update

from slackwater.catalog import runs
from slackwater.catalog.database import Database
from slackwater.catalog.model import RunRecord
from slackwater.catalog.pins import oldest_pinned
from slackwater.catalog.tables import (
    commits,
    definitions,
    head,
    segments,
    versions,
    warehouse_settings,
)

_PATHS_AT_ONCE = 1000  # a database bounds how many values a statement may hold
_NAMED = select(segments.c.path).where(segments.c.path.in_(bindparam("paths", expanding=True)))


@dataclass(frozen=True, slots=True)
class DeadSegment:
    """A row of a segment that no snapshot at or after the horizon sees."""

    row_id: int
    path: str
    shared: bool  # another row, of a kept snapshot, names the same file


class Collection:
    """Questions and answers between the catalog and whoever deletes files."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._forgotten = -1  # the horizon that history was last forgotten up to

    def revoke_abandoned_runs(self) -> tuple[RunRecord, ...]:
        """Take the right to commit from runs whose process or lease is gone."""
        return runs.revoke_abandoned(self._database)

    def unswept_runs(self) -> tuple[RunRecord, ...]:
        """Runs that have ended and whose directory was not looked through."""
        return runs.ended_unswept(self._database)

    def mark_swept(self, run_ids: Sequence[str]) -> None:
        """The directories of these runs hold no garbage."""
        if run_ids:
            runs.mark_swept(self._database, run_ids)

    def known_paths(self, paths: Sequence[str]) -> frozenset[str]:
        """Those of some paths that any segment row names."""
        found: set[str] = set()
        with self._database.reading() as connection:
            for start in range(0, len(paths), _PATHS_AT_ONCE):
                some = {"paths": paths[start : start + _PATHS_AT_ONCE]}
                found.update(connection.scalars(_NAMED, some))
        return frozenset(found)

    def advance_horizon(self, grace_seconds: float) -> int:
        """Move the horizon as far as pins and the grace period allow; it never goes back."""
        with self._database.writing() as connection:
            now = self._database.now(connection)
            horizon = self._reachable(connection, now, grace_seconds)
            connection.execute(update(head).where(head.c.horizon < horizon).values(horizon=horizon))
            return int(connection.execute(select(head.c.horizon)).scalar_one())

    def _reachable(self, connection: Connection, now: float, grace_seconds: float) -> int:
        """The oldest commit that somebody may still read.

        Without a pin it is the one that was newest when the grace period began.
        """
        settled = connection.scalar(
            select(func.max(commits.c.id)).where(commits.c.at <= now - grace_seconds)
        )
        pinned = oldest_pinned(connection, now)
        return min(settled or 0, pinned if pinned is not None else settled or 0)

    def dead_segments(self, horizon: int, most: int = 1000) -> tuple[DeadSegment, ...]:
        """Segments that were removed at or before the horizon."""
        other = segments.alias("other")
        live = other.c.removed_commit.is_(None) | (other.c.removed_commit > horizon)
        shared = select(other.c.row_id).where(other.c.path == segments.c.path, live).exists()
        query = (
            select(segments.c.row_id, segments.c.path, shared.label("shared"))
            .where(segments.c.removed_commit <= horizon)
            .order_by(segments.c.row_id)
            .limit(most)
        )
        with self._database.reading() as connection:
            rows = connection.execute(query).all()
        return tuple(DeadSegment(row.row_id, row.path, bool(row.shared)) for row in rows)

    def forget_segments(self, dead: Sequence[DeadSegment]) -> None:
        """Their files are deleted; so are their rows."""
        ids = [segment.row_id for segment in dead]
        with self._database.writing() as connection:
            connection.execute(delete(segments).where(segments.c.row_id.in_(ids)))

    def forget_history(self, horizon: int) -> None:
        """Drop what only snapshots before the horizon see, and the commits before it."""
        if horizon == self._forgotten:
            return
        with self._database.writing() as connection:
            for table in (definitions, versions, warehouse_settings):
                connection.execute(delete(table).where(table.c.removed_commit <= horizon))
            connection.execute(delete(commits).where(commits.c.id < horizon))
        self._forgotten = horizon
