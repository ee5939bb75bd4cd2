"""Garbage collection: takes what nobody can need, and never anything else."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from slackwater import faults
from slackwater.catalog.model import AddSegments, Drop, FinishRun, ReplaceSegments, Table
from slackwater.catalog.store import Catalog
from slackwater.engine.garbage import collect_garbage
from slackwater.engine.storage import Storage
from slackwater.errors import StateError
from slackwater.types import WEIGHT
from tests.catalogs import BACKENDS, create, fresh_url, line_of, python, table

SCHEMA = pa.schema([("id", pa.int64()), (WEIGHT, pa.int64())])

ABANDON = """
import sys
from pathlib import Path
from slackwater.catalog.store import Catalog
from slackwater.engine.storage import Storage
from tests.test_garbage import write
catalog, storage = Catalog.open(sys.argv[1]), Storage(Path(sys.argv[2]))
lease = catalog.lease(["sales"], ttl_seconds=600)
run = catalog.begin_run("test", lease)
write(storage, run, "t1", 5)
print(run.id, flush=True)
sys.stdin.readline()
"""

COLLECT = """
import sys
from pathlib import Path
from slackwater.catalog.store import Catalog
from slackwater.engine.garbage import collect_garbage
from slackwater.engine.storage import Storage
with Catalog.open(sys.argv[1]) as catalog:
    collect_garbage(catalog, Storage(Path(sys.argv[2])), grace_seconds=0)
"""

PIN = """
import sys
from slackwater.catalog.store import Catalog
catalog = Catalog.open(sys.argv[1])
pin = catalog.pin()
print(pin.commit, flush=True)
sys.stdin.readline()
"""


def write(storage, run, relation_id, *ids):
    """Segments of one row per id."""
    batch = pa.record_batch([list(ids), [1] * len(ids)], schema=SCHEMA)
    return storage.write(run, relation_id, [batch], SCHEMA)


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


def fill(catalog: Catalog, storage: Storage, target: Table, *ids: int, replace: bool = True) -> int:
    """A run that gives the table these rows."""
    run = catalog.begin_run("test")
    segments = write(storage, run, target.id, *ids)
    change = ReplaceSegments if replace else AddSegments
    return catalog.commit([run.requirement], [change(target.id, segments), FinishRun(run.id)])


def files(storage: Storage) -> set[str]:
    return {p.relative_to(storage.root).as_posix() for p in storage.root.rglob("*.parquet")}


def needed(catalog: Catalog, commit: int | None = None) -> set[str]:
    snapshot = catalog.snapshot(commit)
    return {s.path for t in snapshot.tables() for s in snapshot.segments(t.id)}


def test_replaced_segments_are_deleted(catalog: Catalog, storage: Storage, sales: Table) -> None:
    for i in range(3):
        fill(catalog, storage, sales, i)
    assert len(files(storage)) == 3
    report = collect_garbage(catalog, storage, grace_seconds=0)
    assert report.deleted_files == 2
    assert report.freed_bytes > 0
    assert report.horizon == catalog.snapshot().commit
    assert files(storage) == needed(catalog)
    assert len(list((storage.root / "data").iterdir())) == 1  # empty folders are gone, too
    again = collect_garbage(catalog, storage, grace_seconds=0)
    assert (again.deleted_files, again.deleted_directories, again.freed_bytes) == (0, 0, 0)


def test_the_grace_period_keeps_snapshots_nobody_pinned(
    catalog: Catalog, storage: Storage, sales: Table
) -> None:
    before = fill(catalog, storage, sales, 1)
    fill(catalog, storage, sales, 2)
    assert collect_garbage(catalog, storage, grace_seconds=60).deleted_files == 0
    assert files(storage) == needed(catalog) | needed(catalog, before)


def test_a_pin_keeps_its_snapshot(catalog: Catalog, storage: Storage, sales: Table) -> None:
    fill(catalog, storage, sales, 0)
    held = fill(catalog, storage, sales, 1)
    with catalog.pin(held):
        fill(catalog, storage, sales, 2)
        fill(catalog, storage, sales, 3)
        report = collect_garbage(catalog, storage, grace_seconds=0)
        assert report.horizon == held
        assert needed(catalog, held) <= files(storage)
        assert len(files(storage)) == 3  # the one between is kept, too: the horizon is one number
        with pytest.raises(StateError) as error:
            catalog.pin(held - 1)
        assert error.value.code == "SNAPSHOT_EXPIRED"
    collect_garbage(catalog, storage, grace_seconds=0)
    assert files(storage) == needed(catalog)
    with pytest.raises(StateError):
        catalog.snapshot(held)


def test_a_snapshot_that_was_collected_is_refused_not_wrong(
    catalog: Catalog, storage: Storage, sales: Table
) -> None:
    fill(catalog, storage, sales, 1)
    old = catalog.snapshot()
    fill(catalog, storage, sales, 2)
    collect_garbage(catalog, storage, grace_seconds=0)
    with pytest.raises(StateError) as error:
        old.segments(sales.id)
    assert error.value.code == "SNAPSHOT_EXPIRED"


def test_reading_pins_what_it_gives(catalog: Catalog, storage: Storage, sales: Table) -> None:
    fill(catalog, storage, sales, 1)
    with catalog.reading() as snapshot:
        fill(catalog, storage, sales, 2)
        collect_garbage(catalog, storage, grace_seconds=0)
        for segment in snapshot.segments(sales.id):
            storage.check(segment)


def test_a_dropped_table_is_deleted(catalog: Catalog, storage: Storage, sales: Table) -> None:
    fill(catalog, storage, sales, 1)
    catalog.commit(updates=[Drop(sales.id)])
    collect_garbage(catalog, storage, grace_seconds=0)
    assert files(storage) == set()


def test_a_file_that_two_relations_share_is_kept(
    catalog: Catalog, storage: Storage, sales: Table
) -> None:
    fill(catalog, storage, sales, 1)
    copy = table("copy")
    create(catalog, copy)
    catalog.commit(updates=[AddSegments(copy.id, catalog.snapshot().segments(sales.id))])
    catalog.commit(updates=[Drop(sales.id)])
    collect_garbage(catalog, storage, grace_seconds=0)
    assert files(storage) == needed(catalog) != set()
    catalog.commit(updates=[Drop(copy.id)])
    collect_garbage(catalog, storage, grace_seconds=0)
    assert files(storage) == set()


def test_what_an_open_run_writes_is_kept(catalog: Catalog, storage: Storage, sales: Table) -> None:
    run = catalog.begin_run("test")
    segments = write(storage, run, sales.id, 1)
    assert collect_garbage(catalog, storage, grace_seconds=0).revoked_runs == ()
    catalog.commit([run.requirement], [AddSegments(sales.id, segments), FinishRun(run.id)])
    assert files(storage) == needed(catalog)


def test_what_a_run_wrote_and_did_not_commit_is_deleted(
    catalog: Catalog, storage: Storage, sales: Table
) -> None:
    run = catalog.begin_run("test")
    write(storage, run, sales.id, 1)  # a first attempt
    kept = write(storage, run, sales.id, 1)
    catalog.commit([run.requirement], [AddSegments(sales.id, kept), FinishRun(run.id)])
    given_up = catalog.begin_run("test")
    write(storage, given_up, sales.id, 2)
    catalog.abort_run(given_up, "no")
    report = collect_garbage(catalog, storage, grace_seconds=0)
    assert (report.deleted_directories, report.deleted_files) == (1, 1)
    assert files(storage) == needed(catalog) != set()


def test_a_run_whose_lease_is_lost_is_revoked(
    catalog: Catalog, storage: Storage, sales: Table
) -> None:
    with catalog.lease([sales.id]) as lease:
        run = catalog.begin_run("test", lease)
        segments = write(storage, run, sales.id, 1)
        assert collect_garbage(catalog, storage).revoked_runs == ()
    assert collect_garbage(catalog, storage).revoked_runs == (run.id,)
    assert files(storage) == set()
    with pytest.raises(StateError) as error:
        catalog.commit([run.requirement], [AddSegments(sales.id, segments), FinishRun(run.id)])
    assert error.value.code == "RUN_REVOKED"
    assert catalog.runs()[0].state == "revoked"


def test_a_killed_writer_leaves_nothing_behind(
    catalog: Catalog, storage: Storage, sales: Table, url: str
) -> None:
    fill(catalog, storage, sales, 1)
    writer = python(ABANDON, url, str(storage.root))
    run_id = line_of(writer)
    assert collect_garbage(catalog, storage, grace_seconds=0).revoked_runs == ()
    assert len(files(storage)) == 2
    writer.kill()
    writer.communicate()
    report = collect_garbage(catalog, storage, grace_seconds=0)
    assert report.revoked_runs == (run_id,)
    assert files(storage) == needed(catalog)
    assert not (storage.root / "data" / run_id).exists()


def test_a_killed_reader_holds_nothing(
    catalog: Catalog, storage: Storage, sales: Table, url: str
) -> None:
    fill(catalog, storage, sales, 1)
    reader = python(PIN, url)
    assert int(line_of(reader)) == 2
    fill(catalog, storage, sales, 2)
    assert collect_garbage(catalog, storage, grace_seconds=0).horizon == 2
    reader.kill()
    reader.communicate()
    assert collect_garbage(catalog, storage, grace_seconds=0).horizon == 3
    assert files(storage) == needed(catalog)


def test_a_silent_reader_holds_nothing(
    catalog: Catalog, storage: Storage, sales: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As from another machine: it cannot be asked, and its heartbeat has ended."""
    monkeypatch.setattr("slackwater.catalog.pins.PIN_TTL_SECONDS", 0.3)
    monkeypatch.setattr(faults, "stopped", lambda: True)
    pin = catalog.pin(fill(catalog, storage, sales, 1))
    fill(catalog, storage, sales, 2)
    time.sleep(0.5)
    assert collect_garbage(catalog, storage, grace_seconds=0).horizon == pin.commit + 1
    pin.release()


@pytest.mark.parametrize("point", ["collect.before", "collect.between"])
def test_a_killed_collection_is_done_again(
    catalog: Catalog, storage: Storage, sales: Table, url: str, point: str
) -> None:
    for i in range(3):
        fill(catalog, storage, sales, i)
    abandoned = python(ABANDON, url, str(storage.root))
    line_of(abandoned)
    abandoned.kill()
    abandoned.communicate()
    process = python(COLLECT, url, str(storage.root), SLACKWATER_CRASH_AT=point)
    process.communicate(timeout=60)
    assert process.returncode == -signal.SIGKILL
    assert needed(catalog) <= files(storage)
    collect_garbage(catalog, storage, grace_seconds=0)
    assert files(storage) == needed(catalog)


def test_readers_and_writers_beside_collectors(
    catalog: Catalog, storage: Storage, sales: Table, url: str
) -> None:
    fill(catalog, storage, sales, -1)
    wrong: list[str] = []
    done = threading.Event()

    def read() -> None:
        with Catalog.open(url) as own:
            while not done.is_set():
                try:
                    with own.reading() as snapshot:
                        for segment in snapshot.segments(sales.id):
                            storage.check(segment)
                except StateError as error:
                    wrong.append(str(error))

    def collect() -> None:
        while not done.is_set():
            collect_garbage(catalog, storage, grace_seconds=0)

    threads = [threading.Thread(target=t) for t in (read, read, collect, collect)]
    for thread in threads:
        thread.start()
    for i in range(25):
        fill(catalog, storage, sales, i, replace=i % 5 == 0)
    done.set()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert catalog.snapshot().get(sales.id).version == 26
    collect_garbage(catalog, storage, grace_seconds=0)
    assert files(storage) == needed(catalog)


def test_only_our_own_files_are_deleted(
    catalog: Catalog, storage: Storage, sales: Table, tmp_path: Path
) -> None:
    fill(catalog, storage, sales, 1)
    notes = storage.root / "data" / "notes.txt"
    foreign = storage.root / "data" / "not-a-run" / "x.parquet"
    foreign.parent.mkdir()
    notes.write_text("mine")
    foreign.write_text("mine")
    collect_garbage(catalog, storage, grace_seconds=0)
    assert notes.exists()
    assert foreign.exists()
    assert os.listdir(storage.root) == ["data"]
