"""The database under the catalog: SQLite or PostgreSQL, one writer at a time.

A writing transaction first takes the one write lock (SQLite: BEGIN IMMEDIATE; PostgreSQL: the
row of `head`, FOR UPDATE). Whatever it then reads stays true until it commits, so checking a
requirement and doing an update are one atomic thing on both. Readers never wait.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event, func, select
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import (
    ArgumentError,
    DataError,
    DBAPIError,
    IntegrityError,
    NoSuchModuleError,
    StatementError,
)

from slackwater.catalog import migrations, tables
from slackwater.errors import InternalError, StateError, UserError

BUSY_SECONDS = 30.0
_MIGRATION_LOCK = 0x51AC_3A7E  # any number, the same for everybody


class Database:
    """Connections to the catalog's database, as reading and writing transactions."""

    def __init__(self, url: str) -> None:
        self.url = _parse(url)
        self.sqlite = self.url.get_backend_name() == "sqlite"
        self._engine = _engine(self.url)
        event.listen(self._engine, "connect", _set_up_sqlite if self.sqlite else _set_up_postgres)

    def migrate(self) -> None:
        """Bring the tables to this code's version; refuse a catalog from newer code."""
        with self.reading() as connection:
            found = migrations.version(connection)
        migrations.refuse_newer(found)
        if found < migrations.NEWEST:
            with self._transaction(writes=True) as connection:
                if not self.sqlite:
                    connection.execute(select(func.pg_advisory_xact_lock(_MIGRATION_LOCK)))
                migrations.migrate(connection)

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A transaction that only reads."""
        with self._transaction(writes=False) as connection:
            yield connection

    @contextmanager
    def writing(self, durable: bool = False) -> Iterator[Connection]:
        """A transaction that holds the write lock.

        One that is not durable may be undone by a power cut, though never by halves, and never
        once a durable one came after it: enough for leases and pins, which end with the power.
        """
        with self._transaction(writes=True, durable=durable) as connection:
            if not self.sqlite:
                connection.execute(select(tables.head.c.id).with_for_update())
            yield connection

    @contextmanager
    def _transaction(self, writes: bool, durable: bool = True) -> Iterator[Connection]:
        with _translated(self.url), self._engine.connect() as connection, connection.begin():
            if self.sqlite:
                _begin_sqlite(connection, writes, durable)
            yield connection

    def now(self, connection: Connection) -> float:
        """Seconds since 1970 by the one clock that all users of this catalog share."""
        if self.sqlite:
            return time.time()
        clock = select(func.extract("epoch", func.clock_timestamp()))
        return float(connection.execute(clock).scalar_one())

    def close(self) -> None:
        """Close every connection."""
        self._engine.dispose()


def _parse(text: str) -> URL:
    """The URL, or a user error that says what a catalog URL looks like."""
    hint = "Use sqlite:///path/to/catalog.db or postgresql+psycopg://user@host/database."
    try:
        url = make_url(text)
        if url.drivername == "postgresql":
            url = url.set(drivername="postgresql+psycopg")
        backend = url.get_backend_name()
        url.get_dialect()
    except (ArgumentError, NoSuchModuleError) as error:
        raise UserError(
            "The catalog URL cannot be read.", code="BAD_CATALOG_URL", hint=hint
        ) from error
    if backend not in ("sqlite", "postgresql") or (
        backend == "sqlite" and url.database in (None, "", ":memory:")
    ):
        raise UserError(
            f"A catalog cannot be kept at {url.render_as_string()}.",
            code="BAD_CATALOG_URL",
            hint=hint,
        )
    return url


def _engine(url: URL) -> Engine:
    """As many connections as there are threads; those a server has dropped are replaced."""
    try:
        remote = url.get_backend_name() != "sqlite"
        return create_engine(url, pool_pre_ping=remote, max_overflow=-1)
    except ModuleNotFoundError as error:
        raise UserError(
            f"The driver for {url.drivername} is not installed.",
            code="MISSING_DRIVER",
            hint="Install it with: pip install 'slackwater[postgres]'",
        ) from error


def _set_up_sqlite(dbapi: Any, _record: Any) -> None:
    """Durable on commit, readers beside one writer, and transactions begun by us."""
    dbapi.isolation_level = None
    dbapi.execute(f"PRAGMA busy_timeout = {int(BUSY_SECONDS * 1000)}")
    _use_wal(dbapi)
    dbapi.execute("PRAGMA synchronous = FULL")
    dbapi.execute("PRAGMA foreign_keys = ON")


def _use_wal(dbapi: Any) -> None:
    """Switching to WAL does not heed the busy timeout when two processes do it at once."""
    deadline = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            mode = dbapi.execute("PRAGMA journal_mode = WAL").fetchone()[0]
            break
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > deadline:
                raise
            time.sleep(0.02)
    if mode != "wal":
        raise StateError(
            f"SQLite cannot keep a write-ahead log there (journal mode {mode}).",
            code="CATALOG_UNAVAILABLE",
            hint="Keep the catalog on a local disk, or in PostgreSQL.",
        )


def _begin_sqlite(connection: Connection, writes: bool, durable: bool) -> None:
    """Said to the driver itself: most transactions are shorter than SQLAlchemy's way to it."""
    dbapi: Any = connection.connection.dbapi_connection
    level = "FULL" if durable else "NORMAL"
    if writes and connection.info.get("slackwater_level") != level:
        dbapi.execute(f"PRAGMA synchronous = {level}")
        connection.info["slackwater_level"] = level
    dbapi.execute("BEGIN IMMEDIATE" if writes else "BEGIN")


def _set_up_postgres(dbapi: Any, _record: Any) -> None:
    """A stopped process must not hold the write lock for longer than others wait for it."""
    with dbapi.cursor() as cursor:
        cursor.execute(f"SET idle_in_transaction_session_timeout = '{int(BUSY_SECONDS * 500)}ms'")
        cursor.execute(f"SET lock_timeout = '{int(BUSY_SECONDS * 1000)}ms'")
    dbapi.commit()


@contextmanager
def _translated(url: URL) -> Iterator[None]:
    """Database failures as state errors that say what to do."""
    try:
        yield
    except (IntegrityError, DataError) as error:
        raise InternalError(f"the catalog refused a row: {error.orig}") from error
    except DBAPIError as error:
        raise _state_error(url, str(error.orig)) from error
    except sqlite3.Error as error:
        raise _state_error(url, str(error)) from error
    except StatementError as error:
        raise InternalError(f"the catalog cannot keep a value: {error.orig}") from error


def _state_error(url: URL, cause: str) -> StateError:
    shown, lowered = url.render_as_string(), cause.lower()
    for code, signs, hint in _FAILURES:
        if any(sign in lowered for sign in signs):
            return StateError(f"Catalog {shown}: {cause.strip()}.", code=code, hint=hint)
    return StateError(
        f"Catalog {shown} cannot be used: {cause.strip()}.",
        code="CATALOG_UNAVAILABLE",
        hint="Check that the server or the file is there and may be written, then try again.",
    )


_FAILURES = (
    (
        "CATALOG_BUSY",
        ("database is locked", "lock timeout"),
        "Another process has held the catalog's write lock for long. Look for a stopped "
        "process that uses this warehouse, then try again.",
    ),
    (
        "DISK_FULL",
        ("disk is full", "no space left"),
        "Free some space where the catalog lies. What was committed before is whole.",
    ),
    (
        "CATALOG_UNREADABLE",
        ("not a database", "malformed"),
        "The file is damaged or is not a Slackwater catalog. Restore it from a backup.",
    ),
)
