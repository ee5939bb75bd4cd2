"""Pins: a reader's word that it still reads the snapshot of a commit.

Garbage collection keeps whatever a live pin's snapshot needs. A pin and a collection exclude
each other by the write lock: either the pin is seen, or it is refused because the snapshot is
no longer whole.
"""

from __future__ import annotations

from types import TracebackType
from typing import Self

from sqlalchemy import Connection, bindparam, delete, insert, or_, select, update

from slackwater.catalog.database import Database
from slackwater.catalog.ids import new_id
from slackwater.catalog.keepalive import Keepalive, letting_go
from slackwater.catalog.process import is_live, this_process
from slackwater.catalog.tables import head, pins, versions
from slackwater.errors import StateError

PIN_TTL_SECONDS = 60.0
HEAD = select(head)
_NEW = insert(pins)
_GONE = delete(pins).where(pins.c.id == bindparam("pin"))
_KEPT = update(pins).where(pins.c.id == bindparam("pin"))
_VERSIONS = select(pins.c.owner, pins.c.expires, versions.c.version).where(
    versions.c.relation_id == bindparam("of"),
    versions.c.added_commit <= pins.c.commit_id,
    or_(versions.c.removed_commit.is_(None), versions.c.removed_commit > pins.c.commit_id),
)


class Pin:
    """Holds the snapshot of `commit` until it is released."""

    ttl_seconds = PIN_TTL_SECONDS

    def __init__(self, database: Database, keepalive: Keepalive, id: str, commit: int) -> None:
        self._database = database
        self._keepalive = keepalive
        self._id = id
        self.commit = commit
        self.lost = False
        self.over = False
        self.freed = False

    def renew(self, connection: Connection, now: float) -> bool:
        """Hold on for another minute, unless the pin was taken for dead and removed."""
        if self.over:
            self.free(connection)
            return False
        values = {"pin": self._id, "expires": now + self.ttl_seconds}
        result = connection.execute(_KEPT, values)
        return result.rowcount == 1

    def release(self) -> None:
        """Let the snapshot go. Where that fails, the heartbeat goes on trying."""
        if self.freed:
            return
        self.over = True
        with letting_go("A pin"):
            with self._database.writing() as connection:
                self.free(connection)
            self.is_free()

    def free(self, connection: Connection) -> None:
        """Let the snapshot go within a transaction."""
        connection.execute(_GONE, {"pin": self._id})

    def is_free(self) -> None:
        """That transaction was committed."""
        self.over = self.freed = True
        self._keepalive.remove(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.release()


def pin(database: Database, keepalive: Keepalive, commit: int | None) -> Pin:
    """Pin a commit (the newest, if None) that is still whole."""
    with database.writing() as connection:
        made = register(database, keepalive, connection, database.now(connection), commit)
    keepalive.add(made)
    return made


def register(
    database: Database,
    keepalive: Keepalive,
    connection: Connection,
    now: float,
    commit: int | None = None,
) -> Pin:
    """The same within a transaction, for the caller to keep alive."""
    newest = connection.execute(HEAD).one()
    wanted = newest.commit_id if commit is None else commit
    require_whole(wanted, newest.horizon, newest.commit_id)
    made = Pin(database, keepalive, new_id("p"), wanted)
    row = {
        "id": made._id,
        "commit_id": wanted,
        "owner": this_process().json,
        "expires": now + PIN_TTL_SECONDS,
    }
    connection.execute(_NEW, row)
    return made


def oldest_pinned(connection: Connection, now: float) -> int | None:
    """The oldest commit that a live reader holds. Pins of dead readers are removed."""
    live = []
    for row in connection.execute(select(pins)).all():
        if is_live(row.owner, row.expires, now):
            live.append(int(row.commit_id))
        else:
            connection.execute(delete(pins).where(pins.c.id == row.id))
    return min(live, default=None)


def versions_pinned(connection: Connection, now: float, relation: str) -> frozenset[int]:
    """The versions of a relation in the snapshots that live readers hold."""
    rows = connection.execute(_VERSIONS, {"of": relation}).all()
    return frozenset(row.version for row in rows if is_live(row.owner, row.expires, now))


def require_whole(commit: int, horizon: int, newest: int) -> None:
    """Refuse a commit that is in the future or whose files may be collected."""
    if commit > newest:
        raise StateError(
            f"Commit {commit} does not exist; the newest is {newest}.",
            code="NO_SUCH_COMMIT",
            hint="Was the catalog restored from a backup? Open the warehouse again.",
        )
    if commit < horizon:
        raise StateError(
            f"The snapshot of commit {commit} was collected; the oldest kept is {horizon}.",
            code="SNAPSHOT_EXPIRED",
            hint="Read again at the newest commit, or pin a commit before reading it for long.",
        )
