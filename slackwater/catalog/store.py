"""The catalog: one commit path, snapshots, leases, pins and runs."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Self

from sqlalchemy import insert, select, update

from slackwater import faults
from slackwater.catalog import collection, history, leases, pins, runs, snapshot, starting, sums
from slackwater.catalog.database import Database
from slackwater.catalog.ids import timestamp
from slackwater.catalog.keepalive import Keepalive
from slackwater.catalog.leases import Lease
from slackwater.catalog.model import (
    AddSegments,
    Event,
    Exists,
    FinishRun,
    LeaseIs,
    Measurement,
    Requirement,
    Run,
    RunRecord,
    SetAsOf,
    Update,
    VersionIs,
)
from slackwater.catalog.outcome import outcome
from slackwater.catalog.pins import Pin
from slackwater.catalog.requirements import check
from slackwater.catalog.snapshot import Snapshot
from slackwater.catalog.starting import Start
from slackwater.catalog.sums import Goals, Spent
from slackwater.catalog.tables import commits, head
from slackwater.catalog.transaction import Transaction
from slackwater.catalog.updates import apply

_NEWEST = select(head.c.commit_id)
_COMMITTED = insert(commits)
_ONWARD = update(head)


class Catalog:
    """What is known and kept. Safe for use from many threads, processes and machines."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._keepalive = Keepalive(database)
        self._newest: Snapshot | None = None
        self._running: set[str] = set()  # runs begun and not ended by `running`
        self.collection = collection.Collection(database)

    @classmethod
    def open(cls, url: str) -> Catalog:
        """The catalog at `url`, created or migrated when needed."""
        database = Database(url)
        database.migrate()
        return cls(database)

    def commit(
        self,
        requires: Iterable[Requirement] = (),
        updates: Iterable[Update] = (),
        lets_go: Collection[Lease | Pin] = (),
    ) -> int:
        """Do all updates if every requirement holds, or nothing; the new commit's number. What is
        not needed any more is given back in the same transaction."""
        wanted, changes = tuple(requires), tuple(updates)
        faults.reached("commit.before")
        with outcome(self._database) as result, self._transaction() as tx:
            _look_for_all(tx, wanted, changes)
            for requirement in wanted:
                check(requirement, tx)
            for change in changes:
                apply(change, tx)
            tx.flush()
            for item in lets_go:
                item.free(tx.connection)
            faults.reached("commit.inside")
            result.expect(tx)
        faults.reached("commit.after")
        for item in lets_go:
            item.is_free()
        self._forget_finished(changes)
        return tx.commit

    @contextmanager
    def _transaction(self) -> Iterator[Transaction]:
        """A writing transaction that takes the next commit number."""
        with self._database.writing(durable=True) as connection:
            commit = int(connection.execute(_NEWEST).scalar_one()) + 1
            now = self._database.now(connection)
            connection.execute(_COMMITTED, {"id": commit, "at": now})
            connection.execute(_ONWARD, {"commit_id": commit})
            yield Transaction(connection, commit, now)

    def _forget_finished(self, changes: tuple[Update, ...]) -> None:
        for change in changes:
            if isinstance(change, FinishRun):
                runs.forget(self._keepalive, change.run_id)
                self._running.discard(change.run_id)

    def snapshot(self, commit: int | None = None) -> Snapshot:
        """Everything at one commit: the newest, or an older one that is still whole."""
        found = snapshot.load(self._database, commit, self._newest)
        if self._newest is None or found.commit >= self._newest.commit:
            self._newest = found
        return found

    def pin(self, commit: int | None = None) -> Pin:
        """Keep what the snapshot of `commit` (None: the newest) needs until released."""
        return pins.pin(self._database, self._keepalive, commit)

    @contextmanager
    def reading(self) -> Iterator[Snapshot]:
        """The newest snapshot, pinned while it is used."""
        with self.pin() as pin:
            yield self._pinned(pin)

    def pinned_versions(self, id: str) -> frozenset[int]:
        """The versions of a relation that live readers hold."""
        with self._database.reading() as connection:
            return pins.versions_pinned(connection, self._database.now(connection), id)

    def _pinned(self, pin: Pin) -> Snapshot:
        known = self._newest
        if known is not None and known.commit == pin.commit:
            return known  # it stays whole while pinned
        return self.snapshot(pin.commit)

    def lease(
        self, names: Iterable[str], wait_seconds: float = 30.0, ttl_seconds: float = 30.0
    ) -> Lease:
        """The right to change all `names`, waiting for their present holders."""
        return leases.acquire(self._database, self._keepalive, names, wait_seconds, ttl_seconds)

    def begin_run(self, kind: str, lease: Lease | None = None) -> Run:
        """Register a run with a fresh directory and a token of its own."""
        return runs.begin(self._database, self._keepalive, kind, lease)

    def abort_run(self, run: Run, error: str) -> None:
        """Give a run up; what it wrote is garbage."""
        self._running.discard(run.id)
        runs.abort(self._database, self._keepalive, run, error)

    @contextmanager
    def running(self, kind: str, lease: Lease | None = None) -> Iterator[Run]:
        """A run that is given up when the block raises, or ends without committing it."""
        run = self.begin_run(kind, lease)
        with self._given_up_unless_committed(run):
            yield run

    @contextmanager
    def _given_up_unless_committed(self, run: Run) -> Iterator[None]:
        self._running.add(run.id)
        try:
            yield
        except BaseException as error:
            self.abort_run(run, f"{type(error).__name__}: {error}")
            raise
        if run.id in self._running:
            self.abort_run(run, "ended without a commit")

    def start(
        self,
        kind: str,
        names: Iterable[str],
        now: Callable[[], str] = timestamp,
        wait_seconds: float = 30.0,
        ttl_seconds: float = 30.0,
    ) -> Start:
        """Lease names, begin a run and pin the newest commit, at once. `now` tells when that is."""
        return starting.start(
            self._database, self._keepalive, kind, names, now, wait_seconds, ttl_seconds
        )

    @contextmanager
    def working(self, begun: Start) -> Iterator[Snapshot]:
        """What was pinned at the start of a piece of work. At the end its run, lease and pin are
        given back, as far as its commit has not done so."""
        with begun.lease, self._given_up_unless_committed(begun.run), begun.pin:
            yield self._pinned(begun.pin)

    def events(
        self,
        relation: str | None = None,
        kind: str | None = None,
        limit: int = 100,
        since: str | None = None,
    ) -> tuple[Event, ...]:
        """The newest events, newest first."""
        return history.recent_events(self._database, relation, kind, limit, since)

    def spent(self, since: str) -> Iterator[Spent]:
        """What refreshes took since a moment, by day and by whom they were for."""
        return sums.spent(self._database, since)

    def goals(self, since: str) -> list[Goals]:
        """How often results came in time since a moment, by view."""
        return sums.goals(self._database, since)

    def news(self, after: int | None, kinds: Sequence[str]) -> tuple[int, tuple[Event, ...]]:
        """Events of some kinds after the one of that number, oldest first, and the number of the
        newest of all; events are numbered in the order of their commits."""
        return history.news(self._database, after, kinds)

    def runs(self, limit: int = 100) -> tuple[RunRecord, ...]:
        """The newest runs, newest first."""
        return runs.recent(self._database, limit)

    def measurements(self, run_id: str) -> tuple[Measurement, ...]:
        """What the steps of a run cost."""
        return history.measurements_of(self._database, run_id)

    def settings(self) -> dict[str, Any]:
        """Every setting."""
        return history.all_settings(self._database)

    def get_setting(self, key: str, default: Any = None) -> Any:
        """One setting."""
        return self.settings().get(key, default)

    def set_setting(self, key: str, value: Any) -> None:
        """Keep a setting (any JSON value); None removes it."""
        history.set_setting(self._database, key, value)

    def close(self) -> None:
        """Stop the heartbeat, let go of what is held, close the connections."""
        held = self._keepalive.held()
        self._keepalive.close()
        try:
            for item in held:
                if isinstance(item, Lease | Pin):
                    item.release()
        finally:
            self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def _look_for_all(
    tx: Transaction, wanted: Iterable[Requirement], changes: Iterable[Update]
) -> None:
    """Read what most requirements and updates ask about, all of a kind at once."""
    defined = [r.id for r in wanted if isinstance(r, Exists)]
    versioned = [r.id for r in wanted if isinstance(r, VersionIs)]
    versioned += [c.id for c in changes if isinstance(c, AddSegments | SetAsOf)]
    tx.look_for(defined, versioned)
    names = [r.name for r in wanted if isinstance(r, LeaseIs)]
    tx.leases = leases.rows_of(tx.connection, names)
