"""Processes killed, stopped or cut off at every named point of a run: the old version or the
new one, whole; and what was written for nothing is collected."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sqlalchemy import text
from sqlalchemy.engine import Connection

from slackwater import faults
from slackwater.catalog import database
from slackwater.catalog.model import CreateTable, Event, Table, WriteEvent
from slackwater.catalog.store import Catalog
from slackwater.engine.garbage import collect_garbage
from slackwater.engine.storage import Storage
from slackwater.errors import InternalError, StateError, UserError
from slackwater.types import WEIGHT
from tests.catalogs import BACKENDS, create, finish, fresh_url, now, python, table

SCHEMA = pa.schema([("id", pa.int64()), (WEIGHT, pa.int64())])

INSERT = """
import sys
from pathlib import Path
from slackwater.catalog.store import Catalog
from slackwater.engine.storage import Storage
from tests.test_catalog_faults import insert
with Catalog.open(sys.argv[1]) as catalog:
    insert(catalog, Storage(Path(sys.argv[2])), int(sys.argv[3]))
"""

OLD = ("run.begun", "segment.writing", "segment.written", "commit.before", "commit.inside")
NEW = ("commit.after",)


def insert(catalog: Catalog, storage: Storage, *ids: int) -> None:
    """The whole path of a writer: lease, run, segments, commit."""
    from slackwater.catalog.model import AddSegments, FinishRun, VersionIs

    found = catalog.snapshot().find("sales")
    assert found is not None
    lease = catalog.lease([found.id], wait_seconds=20)  # less than a dead writer's has left
    with lease, catalog.running("insert", lease) as run:
        target = catalog.snapshot().get(found.id)
        batch = pa.record_batch([list(ids), [1] * len(ids)], schema=SCHEMA)
        segments = storage.write(run, target.id, [batch], SCHEMA)
        catalog.commit(
            [*lease.requirements, run.requirement, VersionIs(target.id, target.version)],
            [AddSegments(target.id, segments), FinishRun(run.id)],
        )


def content(catalog: Catalog, storage: Storage) -> list[int]:
    found: list[int] = []
    snapshot = catalog.snapshot()
    for segment in snapshot.segments(snapshot.tables()[0].id):
        storage.check(segment)
        found += pq.read_table(storage.path(segment))["id"].to_pylist()
    return sorted(found)


@pytest.fixture(params=BACKENDS)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return fresh_url(request.param, tmp_path)


@pytest.fixture
def catalog(url: str) -> Iterator[Catalog]:
    with Catalog.open(url) as opened:
        yield opened


@pytest.fixture
def storage(tmp_path: Path) -> Storage:
    return Storage(tmp_path / "warehouse")


@pytest.fixture
def sales(catalog: Catalog) -> Table:
    made = table("sales")
    create(catalog, made)
    return made


@pytest.mark.usefixtures("sales")
@pytest.mark.parametrize("point", OLD + NEW)
def test_a_killed_writer_leaves_the_old_or_the_new_version(
    catalog: Catalog, storage: Storage, url: str, point: str
) -> None:
    insert(catalog, storage, 1)
    writer = python(INSERT, url, str(storage.root), "2", SLACKWATER_CRASH_AT=point)
    writer.communicate(timeout=60)
    assert writer.returncode == -signal.SIGKILL
    expected = [1, 2] if point in NEW else [1]
    assert content(catalog, storage) == expected
    collect_garbage(catalog, storage, grace_seconds=0)
    assert len(list(storage.root.rglob("*.parquet"))) == len(expected)
    insert(catalog, storage, 3)  # the dead writer's lease is no obstacle
    assert content(catalog, storage) == [*expected, 3]


@pytest.mark.usefixtures("sales")
def test_two_writers_beside_a_collector_lose_and_double_nothing(
    catalog: Catalog, storage: Storage, url: str
) -> None:
    writers = [python(INSERT, url, str(storage.root), str(i)) for i in range(3)]
    done = threading.Event()

    def collect() -> None:
        while not done.is_set():
            collect_garbage(catalog, storage, grace_seconds=0)
            time.sleep(0.05)

    collector = threading.Thread(target=collect)
    collector.start()
    for writer in writers:
        finish(writer)
    done.set()
    collector.join()
    assert content(catalog, storage) == [0, 1, 2]


@pytest.mark.parametrize("landed", [True, False])
def test_a_connection_lost_while_committing_is_cleared_up(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch, landed: bool
) -> None:
    """The answer is what happened, not what the client heard."""
    engine = catalog._database._engine
    real = engine.dialect.do_commit
    failures = iter([True])

    def cut_off(connection: Any) -> None:
        failing = next(failures, False)
        if landed or not failing:
            real(connection)
        if failing:
            raise engine.dialect.loaded_dbapi.OperationalError("server closed the connection")

    monkeypatch.setattr(engine.dialect, "do_commit", cut_off)
    if landed:
        assert create(catalog, table("sales")) == 1
    else:
        with pytest.raises(StateError) as error:
            create(catalog, table("sales"))
        assert error.value.code == "CATALOG_UNAVAILABLE"
    assert (catalog.snapshot().find("sales") is not None) == landed
    create(catalog, table("next"))


def test_an_outcome_that_cannot_be_known_is_told(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    dialect = catalog._database._engine.dialect

    def cut_off(_connection: Any) -> None:
        raise dialect.loaded_dbapi.OperationalError("server closed the connection")

    with monkeypatch.context() as broken:
        broken.setattr(dialect, "do_commit", cut_off)
        with pytest.raises(StateError) as error:
            create(catalog, table("sales"))
    assert error.value.code == "COMMIT_UNKNOWN"


@pytest.mark.postgres
def test_a_writer_stopped_inside_its_commit_does_not_stop_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "BUSY_SECONDS", 2.0)
    url = fresh_url("postgresql", tmp_path)
    with Catalog.open(url) as one, Catalog.open(url) as two:
        monkeypatch.setenv("SLACKWATER_PAUSE_AT", "commit.inside:3")
        failed: list[str] = []

        def stopped() -> None:
            try:
                create(one, table("late"))
            except StateError as error:
                failed.append(error.code)

        thread = threading.Thread(target=stopped)
        thread.start()
        while not faults.stopped():
            time.sleep(0.01)
        assert create(two, table("mine")) == 1  # as soon as the server has given the other up
        thread.join()
        assert failed == ["CATALOG_UNAVAILABLE"]
        assert [t.name for t in two.snapshot().tables()] == ["mine"]
        assert create(one, table("later")) == 2


@pytest.mark.postgres
def test_a_server_that_drops_connections_is_reached_again(tmp_path: Path) -> None:
    with Catalog.open(fresh_url("postgresql", tmp_path)) as catalog:
        create(catalog, table("sales"))
        with catalog._database.reading() as connection:
            _end_other_sessions(connection)
        create(catalog, table("orders"))
        assert len(catalog.snapshot().tables()) == 2


def _end_other_sessions(connection: Connection) -> None:
    connection.execute(
        text(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE datname = current_database()"
            " AND pid <> pg_backend_pid()"
        )
    )


@pytest.mark.parametrize("name", ["", "a\0b", "\ud800"])
def test_a_name_that_is_no_text_is_refused(catalog: Catalog, name: str) -> None:
    with pytest.raises(UserError) as error:
        create(catalog, table(name))
    assert error.value.code == "BAD_NAME"


@pytest.mark.parametrize("value", [object(), float("nan")])
def test_what_is_no_json_is_our_bug(catalog: Catalog, value: object) -> None:
    with pytest.raises(InternalError):
        catalog.commit(updates=[WriteEvent(Event("test", None, now(), {"value": value}))])
    assert catalog.events() == ()


def test_an_id_used_twice_is_our_bug(catalog: Catalog, sales: Table) -> None:
    with pytest.raises(InternalError):
        catalog.commit(updates=[CreateTable(Table(sales.id, "other", sales.schema))])
    assert catalog.snapshot().tables() == (sales,)
