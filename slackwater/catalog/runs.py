"""Runs: attempts to change something, registered before they write a byte.

A run writes into `data/<run id>`, which nobody else uses. It commits only while its token is
not revoked; a collector revokes the token first and deletes the directory afterwards, so that
the two can never both win.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, Row, bindparam, insert, select, update

from slackwater import faults
from slackwater.catalog.database import Database
from slackwater.catalog.ids import new_id, timestamp
from slackwater.catalog.keepalive import Keepalive, letting_go
from slackwater.catalog.leases import Lease, is_held
from slackwater.catalog.model import Run, RunRecord
from slackwater.catalog.process import Owner, is_dead, is_live, this_process
from slackwater.catalog.tables import runs

RUN_TTL_SECONDS = 60.0
SILENT_SECONDS = 24 * 3600.0
_NEW = insert(runs)
_ANY_OF = runs.c.id.in_(bindparam("ids", expanding=True))
_SOME = select(runs).where(_ANY_OF)
_SWEPT = update(runs).where(_ANY_OF)
_OPEN = update(runs).where(runs.c.id == bindparam("run"), runs.c.state == "open")


class _Beat:
    """Keeps an open run from being taken for abandoned."""

    ttl_seconds = RUN_TTL_SECONDS

    def __init__(self, run_id: str) -> None:
        self.run_id = run_id
        self.lost = False
        self.over = False
        self.error = ""  # why it was given up

    def renew(self, connection: Connection, now: float) -> bool:
        if self.over:
            _give_up(connection, self.run_id, self.error, now)
            return False
        values = {"run": self.run_id, "expires": now + self.ttl_seconds}
        result = connection.execute(_OPEN, values)
        return result.rowcount == 1


def fresh(kind: str) -> Run:
    """A run with a directory and a token of its own, not registered yet."""
    id = new_id("r")
    return Run(id, secrets.token_hex(16), f"data/{id}", kind)


def begin(database: Database, keepalive: Keepalive, kind: str, lease: Lease | None) -> Run:
    """Register a run and its fresh directory."""
    run = fresh(kind)
    with database.writing(durable=True) as connection:
        register(connection, database.now(connection), run, lease.tokens if lease else {})
    begun(keepalive, run)
    return run


def register(connection: Connection, now: float, run: Run, tokens: Mapping[str, int]) -> None:
    """The same within a transaction, which must be durable: what a run writes is found by its
    row alone."""
    row = {
        "id": run.id,
        "kind": run.kind,
        "token": run.token,
        "state": "open",
        "directory": run.directory,
        "leases": dict(tokens),
        "owner": this_process().json,
        "expires": now + RUN_TTL_SECONDS,
        "begun_at": now,
        "swept": 0,
    }
    connection.execute(_NEW, row)


def begun(keepalive: Keepalive, run: Run) -> None:
    """The run is registered; it is kept from being taken for abandoned."""
    keepalive.add(_Beat(run.id))
    faults.reached("run.begun")


def forget(keepalive: Keepalive, run_id: str) -> None:
    """The run has ended; its heartbeat is no longer needed."""
    for item in keepalive.held():
        if isinstance(item, _Beat) and item.run_id == run_id:
            keepalive.remove(item)


def end(connection: Connection, run_id: str, state: str, now: float, **values: Any) -> bool:
    """Close an open run; False when it was not open any more."""
    changed = {"run": run_id, "state": state, "ended_at": now, **values}
    result = connection.execute(_OPEN, changed)
    return result.rowcount == 1


def abort(database: Database, keepalive: Keepalive, run: Run, error: str) -> None:
    """Give the run up. What it wrote is garbage from now on. Where that fails, the heartbeat goes
    on trying."""
    for item in keepalive.held():
        if isinstance(item, _Beat) and item.run_id == run.id:
            item.over, item.error = True, error
    with letting_go("A run"):
        with database.writing() as connection:
            _give_up(connection, run.id, error, database.now(connection))
        forget(keepalive, run.id)


def _give_up(connection: Connection, run_id: str, error: str, now: float) -> None:
    """A run that was revoked meanwhile may have written since its directory was looked through."""
    if not end(connection, run_id, "aborted", now, error=error):
        late = update(runs).where(runs.c.id == run_id, runs.c.state == "revoked")
        connection.execute(late.values(state="aborted", swept=0))


def revoke_abandoned(database: Database) -> tuple[RunRecord, ...]:
    """Revoke the open runs whose process is dead or silent, or whose lease is lost."""
    with database.writing() as connection:
        now = database.now(connection)
        still_open = connection.execute(select(runs).where(runs.c.state == "open")).all()
        abandoned = [row for row in still_open if _is_abandoned(connection, row, now)]
        for row in abandoned:
            end(connection, row.id, "revoked", now, error="abandoned: its process or lease is gone")
    return tuple(_record(row) for row in abandoned)


def _is_abandoned(connection: Connection, row: Row[Any], now: float) -> bool:
    if not is_live(row.owner, row.expires, now):
        return True
    return not all(is_held(connection, name, token, now) for name, token in row.leases.items())


def recent(database: Database, limit: int) -> tuple[RunRecord, ...]:
    """The newest runs, newest first."""
    with database.reading() as connection:
        rows = connection.execute(select(runs).order_by(runs.c.id.desc()).limit(limit))
        return tuple(_record(row) for row in rows)


def ended_unswept(database: Database) -> tuple[RunRecord, ...]:
    """Runs that have ended and whose directory may still hold garbage."""
    query = select(runs).where(runs.c.swept == 0, runs.c.state != "open").order_by(runs.c.id)
    with database.reading() as connection:
        return tuple(_record(row) for row in connection.execute(query))


def mark_swept(database: Database, run_ids: Sequence[str]) -> None:
    """The runs' directories hold no garbage, unless a revoked writer may still wake and write."""
    with database.writing() as connection:
        now = database.now(connection)
        rows = connection.execute(_SOME, {"ids": list(run_ids)}).all()
        done = [r.id for r in rows if r.state != "revoked" or _is_silenced(r, now)]
        connection.execute(_SWEPT, {"ids": done, "swept": 1})


def _is_silenced(row: Row[Any], now: float) -> bool:
    """Whether a revoked writer will write no more: its process is gone, or silent for a day."""
    return is_dead(Owner.from_json(row.owner)) or row.ended_at < now - SILENT_SECONDS


def _record(row: Row[Any]) -> RunRecord:
    owner = Owner.from_json(row.owner)
    return RunRecord(
        id=row.id,
        kind=row.kind,
        state=row.state,
        directory=row.directory,
        host=owner.host,
        pid=owner.pid,
        begun_at=timestamp(row.begun_at),
        ended_at=None if row.ended_at is None else timestamp(row.ended_at),
        commit=row.commit_id,
        error=row.error,
    )
