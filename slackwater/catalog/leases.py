"""Leases: who may change a table or a group of views, with fencing tokens.

Each new holder of a name gets a larger token. A commit requires the token, so a holder that was
stopped while another took over cannot commit, whatever it believes.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any, Self

from sqlalchemy import Connection, Row, bindparam, insert, select, update

from slackwater.catalog.database import Database
from slackwater.catalog.ids import new_id, timestamp
from slackwater.catalog.keepalive import Keepalive, letting_go
from slackwater.catalog.model import LeaseIs
from slackwater.catalog.process import Owner, is_live, this_process
from slackwater.catalog.tables import leases
from slackwater.catalog.transaction import name_of
from slackwater.errors import InternalError, StateError

_OF_NAME = select(leases).where(leases.c.name == bindparam("of"))
_OF_NAMES = select(leases).where(leases.c.name.in_(bindparam("names", expanding=True)))
_NEW = insert(leases)
_TAKEN = update(leases).where(leases.c.name == bindparam("of"))
_MINE = update(leases).where(
    leases.c.name.in_(bindparam("names", expanding=True)), leases.c.holder == bindparam("mine")
)
_STILL_MINE = _MINE.where(leases.c.expires > bindparam("now"))
_NAMES_AT_ONCE = 1000  # a database bounds how many values a statement may hold
_FIRST_POLL_SECONDS = 0.02
_LONGEST_POLL_SECONDS = 0.25

Beside = Callable[[Connection, float, Mapping[str, int]], None]
"""What else is done in the transaction that hands names over: at its moment, under these tokens."""


class Lease:
    """The right to change some names until it is released or lost."""

    def __init__(
        self,
        database: Database,
        keepalive: Keepalive,
        holder: str,
        tokens: Mapping[str, int],
        ttl_seconds: float,
    ) -> None:
        self._database = database
        self._keepalive = keepalive
        self._holder = holder
        self.tokens = tokens
        self.ttl_seconds = ttl_seconds
        self.lost = False
        self.over = False
        self.freed = False

    @property
    def names(self) -> tuple[str, ...]:
        """What is leased, sorted."""
        return tuple(self.tokens)

    def token(self, name: str) -> int:
        """The fencing token of one name."""
        if name not in self.tokens:
            raise InternalError(f"lease on {', '.join(self.names)} was asked for {name!r}")
        return self.tokens[name]

    @property
    def requirements(self) -> tuple[LeaseIs, ...]:
        """What a commit under this lease requires."""
        return tuple(LeaseIs(name, token) for name, token in self.tokens.items())

    def renew(self, connection: Connection, now: float) -> bool:
        """Hold on for another `ttl_seconds`, unless any name has expired or was taken."""
        if self.over:
            self.free(connection)
            return False
        values = {"now": now, "expires": now + self.ttl_seconds}
        result = connection.execute(_STILL_MINE, self._mine() | values)
        return result.rowcount == len(self.tokens)

    def release(self) -> None:
        """Let the next one have the names; their tokens stay used up.

        Where that fails, the heartbeat goes on trying.
        """
        if self.freed:
            return
        self.over = True
        with letting_go("A lease"):
            self.finish()

    def finish(self) -> None:
        """Give the names back, if they are still to be given back."""
        if self.over and not self.freed:
            with self._database.writing() as connection:
                self.free(connection)
            self.is_free()

    def free(self, connection: Connection) -> None:
        """Give the names back within a transaction."""
        connection.execute(_MINE, self._mine() | {"holder": None, "expires": 0.0})

    def is_free(self) -> None:
        """That transaction was committed."""
        self.over = self.freed = True
        self._keepalive.remove(self)

    def _mine(self) -> dict[str, Any]:
        return {"names": self.names, "mine": self._holder}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.release()


def acquire(
    database: Database,
    keepalive: Keepalive,
    names: Iterable[str],
    wait_seconds: float,
    ttl_seconds: float,
    beside: Beside | None = None,
) -> Lease:
    """Lease all names or none; waits for their holders up to `wait_seconds`."""
    wanted = tuple(sorted(set(names)))
    deadline, poll = time.monotonic() + wait_seconds, _FIRST_POLL_SECONDS
    blocker: Row[Any] | None = None
    while True:
        for item in keepalive.held():
            if isinstance(item, Lease):
                item.finish()  # what could not be given back may be what is in the way
        if blocker is None:
            taken = _take(database, keepalive, wanted, ttl_seconds, beside)
            if isinstance(taken, Lease):
                keepalive.add(taken)
                return taken
            blocker = taken
        else:
            blocker = _blocker(database, wanted)  # without the write lock, which others need
        if blocker is None:
            continue
        if time.monotonic() >= deadline:
            raise _held(database, blocker, wait_seconds)
        time.sleep(min(poll, max(0.0, deadline - time.monotonic())))
        poll = min(poll * 1.5, _LONGEST_POLL_SECONDS)


def is_held(connection: Connection, name: str, token: int, now: float) -> bool:
    """Whether `name` is still leased under `token`."""
    row = connection.execute(_OF_NAME, {"of": name}).one_or_none()
    return is_held_by(row, token, now)


def is_held_by(row: Row[Any] | None, token: int, now: float) -> bool:
    """The same, of the row of a name."""
    return row is not None and row.token == token and row.holder is not None and row.expires > now


def rows_of(connection: Connection, names: Sequence[str]) -> dict[str, Row[Any]]:
    """The rows of names that were ever leased."""
    found: dict[str, Row[Any]] = {}
    for start in range(0, len(names), _NAMES_AT_ONCE):
        some = {"names": names[start : start + _NAMES_AT_ONCE]}
        found |= {row.name: row for row in connection.execute(_OF_NAMES, some)}
    return found


def _blocker(database: Database, names: tuple[str, ...]) -> Row[Any] | None:
    """The first name's row that a live process holds."""
    with database.reading() as connection:
        return _first_held(rows_of(connection, names), database.now(connection))


def _first_held(rows: Mapping[str, Row[Any]], now: float) -> Row[Any] | None:
    held = (row for _, row in sorted(rows.items()) if row.holder is not None)
    return next((row for row in held if is_live(row.owner, row.expires, now)), None)


def _take(
    database: Database,
    keepalive: Keepalive,
    names: tuple[str, ...],
    ttl_seconds: float,
    beside: Beside | None,
) -> Lease | Row[Any]:
    """Lease the names, or the row of one that a live process holds."""
    holder = new_id("l")
    with database.writing(durable=beside is not None) as connection:
        now = database.now(connection)
        known = rows_of(connection, names)
        held = _first_held(known, now)
        if held is not None:
            return held
        row = {
            "holder": holder,
            "owner": this_process().json,
            "since": now,
            "expires": now + ttl_seconds,
        }
        tokens = _hand_over(connection, names, known, row)
        if beside is not None:
            beside(connection, now, tokens)
    return Lease(database, keepalive, holder, tokens, ttl_seconds)


def _hand_over(
    connection: Connection,
    names: tuple[str, ...],
    known: Mapping[str, Row[Any]],
    row: Mapping[str, Any],
) -> dict[str, int]:
    """Give names to a new holder, each under its next token."""
    tokens = {name: known[name].token + 1 if name in known else 1 for name in names}
    new = [{"name": n, "token": t, **row} for n, t in tokens.items() if n not in known]
    taken = [{"of": n, "token": t, **row} for n, t in tokens.items() if n in known]
    if new:
        connection.execute(_NEW, new)
    if taken:
        connection.execute(_TAKEN, taken)
    return tokens


def _held(database: Database, row: Row[Any], waited: float) -> StateError:
    owner = Owner.from_json(row.owner)
    with database.reading() as connection:
        name = name_of(connection, row.name)  # most leases are named by a relation's id
    return StateError(
        f"'{name}' is being changed by {owner} since {timestamp(row.since)}; "
        f"waited {waited:g} s for it.",
        code="LEASE_HELD",
        hint="Try again when it is done. If that process hangs, end it: its lease is then free.",
    )
