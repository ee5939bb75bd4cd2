"""Disks that are full or read-only, and data files that are missing or cut short."""

from __future__ import annotations

import errno
import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from sqlalchemy import event
from typer.testing import CliRunner

import slackwater
from slackwater import StateError, Warehouse
from slackwater.cli.app import app
from slackwater.engine.segment_writer import SegmentWriter
from tests.works import require_no_garbage, require_published

# -- missing and truncated segments


@pytest.fixture
def sales(any_db: Warehouse) -> Warehouse:
    any_db.sql("CREATE TABLE sales (id INT, price INT)")
    any_db.sql("INSERT INTO sales VALUES (1, 10), (2, 20)")
    any_db.sql("CREATE MATERIALIZED VIEW total AS SELECT sum(price) AS t FROM sales")
    any_db.refresh()
    return any_db


def files(db: Warehouse, name: str) -> list[Path]:
    snapshot = db.catalog.snapshot()
    found = snapshot.find(name)
    assert found is not None
    return [db.path / s.path for s in snapshot.segments(found.id)]


def remove(path: Path) -> None:
    path.unlink()


def cut(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


DAMAGES = {"SEGMENT_MISSING": remove, "SEGMENT_TRUNCATED": cut}


@pytest.mark.parametrize("code", DAMAGES)
def test_reading_a_damaged_table_names_the_file_and_the_way_out(
    sales: Warehouse, code: str
) -> None:
    damaged = files(sales, "sales")[0]
    DAMAGES[code](damaged)
    for statement in (
        "SELECT * FROM sales",
        "UPDATE sales SET price = 1",
        "CREATE TABLE copied AS SELECT * FROM sales",
        "REFRESH MATERIALIZED VIEW total FULL",
    ):
        with pytest.raises(StateError, match=damaged.name) as error:
            sales.sql(statement)
        assert error.value.code == code
        assert "backup" in error.value.hint
    assert sales.sql("SELECT * FROM total").fetchall() == [(30,)]


@pytest.mark.parametrize("code", DAMAGES)
def test_a_damaged_view_is_made_whole_by_a_full_refresh(sales: Warehouse, code: str) -> None:
    DAMAGES[code](files(sales, "total")[0])
    with pytest.raises(StateError, match="refresh the view in full") as error:
        sales.sql("SELECT * FROM total")
    assert error.value.code == code
    sales.sql("REFRESH MATERIALIZED VIEW total FULL")
    assert sales.sql("SELECT * FROM total").fetchall() == [(30,)]
    assert sales.verify("total")
    require_published(sales)


@pytest.mark.parametrize("code", DAMAGES)
def test_a_damaged_warehouse_opens_and_the_doctor_finds_the_file(
    db: Warehouse, tmp_path: Path, code: str
) -> None:
    db.sql("CREATE TABLE t (x INT); INSERT INTO t VALUES (1)")
    db.sql("CREATE MATERIALIZED VIEW v AS SELECT x FROM t; REFRESH MATERIALIZED VIEW v")
    DAMAGES[code](files(db, "v")[0])
    shutil.rmtree(db.path / "published")  # the damaged file is the one to be published
    db.close()
    told = CliRunner().invoke(app, ["--warehouse", str(db.path), "doctor"])
    assert code.removeprefix("SEGMENT_").lower() in told.output
    with slackwater.connect(db.path, placement="local") as again:
        assert again.sql("SELECT * FROM t").fetchall() == [(1,)]
        again.sql("REFRESH MATERIALIZED VIEW v FULL")
        require_published(again)


# -- states


def state_files(db: Warehouse, view: str) -> list[Path]:
    snapshot = db.catalog.snapshot()
    found = snapshot.find(view)
    assert found is not None
    return [db.path / s.path for t in snapshot.states(found.id) for s in snapshot.segments(t.id)]


@pytest.mark.parametrize("code", DAMAGES)
def test_a_damaged_state_loses_nothing_and_is_built_again(sales: Warehouse, code: str) -> None:
    """The refresh that needs it stops; the view stays readable; a full refresh makes it whole."""
    damaged = state_files(sales, "total")[0]
    DAMAGES[code](damaged)
    sales.sql("INSERT INTO sales VALUES (3, 5)")
    with pytest.raises(StateError, match=damaged.name) as error:
        sales.refresh()
    assert error.value.code == code
    assert "refresh the view in full" in error.value.hint
    assert sales.sql("SELECT * FROM total").fetchall() == [(30,)]
    sales.refresh("total", full=True)
    assert sales.sql("SELECT * FROM total").fetchall() == [(35,)]
    sales.sql("INSERT INTO sales VALUES (4, 5)")
    assert sales.refresh()[0].mode == "incremental"
    assert sales.verify("total")
    require_no_garbage(sales)


@pytest.mark.parametrize("code", DAMAGES)
def test_the_doctor_tells_which_views_to_rebuild_and_which_tables_to_restore(
    db: Warehouse, code: str
) -> None:
    db.sql("CREATE TABLE fine (x INT); CREATE TABLE lost (x INT)")
    db.sql("INSERT INTO fine VALUES (1); INSERT INTO lost VALUES (1)")
    db.sql("CREATE MATERIALIZED VIEW v AS SELECT x, count(*) AS n FROM fine GROUP BY x")
    db.sql("CREATE MATERIALIZED VIEW whole AS SELECT x FROM fine")
    db.refresh()
    DAMAGES[code](state_files(db, "v")[0])
    DAMAGES[code](files(db, "lost")[0])
    db.close()
    restore = "Restore from a backup, or drop and load again: lost."
    rebuild = "Rebuild from the tables with 'slackwater refresh --full': v."
    assert advice(db.path) == f"{restore} {rebuild}"
    rebuilt = CliRunner().invoke(
        app, ["--warehouse", str(db.path), "--placement", "local", "refresh", "--full", "v"]
    )
    assert rebuilt.exit_code == 0, rebuilt.output
    assert advice(db.path) == restore
    with slackwater.connect(db.path, placement="local") as again:
        assert again.verify("v")


def advice(path: Path) -> str:
    """What the doctor says of the segments."""
    told = CliRunner().invoke(app, ["--warehouse", str(path), "doctor", "--json"])
    assert told.exit_code == 3
    return str(next(f["advice"] for f in json.loads(told.stdout) if f["check"] == "segments"))


@pytest.mark.parametrize("code", DAMAGES)
def test_compacting_a_damaged_relation_leaves_it_as_it_is(sales: Warehouse, code: str) -> None:
    sales.sql("INSERT INTO sales VALUES (3, 5)")
    sales.refresh()
    damaged = state_files(sales, "total")[0]
    DAMAGES[code](damaged)
    with pytest.raises(StateError, match=damaged.name) as error:
        sales.compact("total")
    assert error.value.code == code
    assert state_files(sales, "total")[0] == damaged
    assert sales.sql("SELECT * FROM total").fetchall() == [(35,)]


# -- a full disk


@pytest.fixture
def full_disk(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every write of a data file fails while the list is not empty."""
    reasons: list[str] = []
    real = SegmentWriter._close

    def close(writer: SegmentWriter) -> Path:
        if reasons:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return real(writer)

    monkeypatch.setattr(SegmentWriter, "_close", close)
    return reasons


def test_a_disk_that_fills_up_leaves_the_old_version(db: Warehouse, full_disk: list[str]) -> None:
    db.sql("CREATE TABLE t (x INT); INSERT INTO t VALUES (1)")
    full_disk.append("full")
    with pytest.raises(StateError) as error:
        db.sql("INSERT INTO t VALUES (2)")
    assert error.value.code == "DISK_FULL"
    assert db.sql("SELECT * FROM t").fetchall() == [(1,)]
    full_disk.clear()
    db.sql("INSERT INTO t VALUES (3)")
    assert sorted(db.sql("SELECT * FROM t").fetchall()) == [(1,), (3,)]
    require_no_garbage(db)


def test_a_disk_that_fills_up_in_a_refresh_or_compaction_leaves_the_old_version(
    db: Warehouse, full_disk: list[str]
) -> None:
    db.sql("CREATE TABLE t (x INT); INSERT INTO t VALUES (1)")
    db.sql("CREATE MATERIALIZED VIEW v AS SELECT x, count(*) AS n FROM t GROUP BY x")
    db.refresh()
    db.sql("INSERT INTO t VALUES (1), (2)")
    require_full(db.refresh, full_disk)
    assert db.sql("SELECT * FROM v").fetchall() == [(1, 1)]
    assert db.refresh()[0].mode == "incremental"
    require_full(db.compact, full_disk)
    assert sorted(db.sql("SELECT * FROM v").fetchall()) == [(1, 2), (2, 1)]
    assert db.compact()
    assert db.verify("v")
    require_no_garbage(db)


def require_full(work: Callable[[], object], full_disk: list[str]) -> None:
    full_disk.append("full")
    with pytest.raises(StateError) as error:
        work()
    assert error.value.code == "DISK_FULL"
    full_disk.clear()


def test_a_disk_that_fills_up_while_publishing_delays_only_the_publication(
    db: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    from slackwater.engine import publish

    db.sql("CREATE TABLE t (x INT); INSERT INTO t VALUES (1)")
    db.sql("CREATE MATERIALIZED VIEW v AS SELECT x FROM t")

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as broken:
        broken.setattr(publish, "_write_files", full)
        with pytest.raises(StateError) as error:
            db.refresh("v")
        assert error.value.code == "DISK_FULL"
        assert "committed" in str(error.value)
    assert db.sql("SELECT * FROM v").fetchall() == [(1,)]
    db.close()
    with slackwater.connect(db.path, placement="local") as again:
        require_published(again)


@contextmanager
def small_disk(folder: Path, options: str) -> Iterator[bool]:
    """A file system in memory, where the test may mount one."""
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)]
    mounted = shutil.which("mount") and subprocess.run(mount, capture_output=True).returncode == 0
    try:
        yield bool(mounted)
    finally:
        if mounted:
            subprocess.run(["umount", "-l", str(folder)], check=True)


def test_a_really_full_disk_loses_nothing(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", "size=3m") as mounted:
        if not mounted:
            pytest.skip("this user may not mount a file system; the simulated test covers it")
        with slackwater.connect(tmp_path / "disk" / "w", placement="local") as db:
            db.sql("CREATE TABLE t (x BIGINT, s STRING)")
            appended = fill(db)
            assert db.sql("SELECT count(*), sum(x) FROM t").fetchall() == [(appended, appended)]
        (tmp_path / "disk" / "ballast").unlink(missing_ok=True)
        with slackwater.connect(tmp_path / "disk" / "w", placement="local") as db:
            assert db.sql("SELECT count(*) FROM t").fetchall() == [(appended,)]
            db.append("t", [{"x": 1, "s": "more"}])
            require_no_garbage(db)


def fill(db: Warehouse) -> int:
    """Append until the disk is full; how many rows are there. Then make room for the catalog."""
    ballast = db.path.parent / "ballast"
    ballast.write_bytes(b"x" * 500_000)
    appended: list[int] = []

    def append_until_full() -> None:
        while sum(appended) < 200_000:
            appended.append(db.append("t", noise()))

    with pytest.raises(StateError) as error:
        append_until_full()
    ballast.unlink()
    assert error.value.code == "DISK_FULL"
    return sum(appended)


def noise() -> pa.Table:
    return pa.table({"x": [1] * 2000, "s": [os.urandom(40).hex() for _ in range(2000)]})


# -- a read-only disk


def test_a_folder_that_may_not_be_written_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def denied(path: Path, *_: object, **__: object) -> None:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))

    monkeypatch.setattr(Path, "mkdir", denied)
    with pytest.raises(StateError, match="may not be written") as error:
        slackwater.connect(tmp_path / "w")
    assert error.value.code == "NOT_WRITABLE"


def test_a_read_only_disk_is_told_in_one_error(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", "size=3m") as mounted:
        if not mounted:
            pytest.skip("this user may not mount a file system; the simulated test covers it")
        with slackwater.connect(tmp_path / "disk" / "w", placement="local") as db:
            db.sql("CREATE TABLE t (x INT)")
        subprocess.run(["mount", "-o", "remount,ro", str(tmp_path / "disk")], check=True)
        with pytest.raises(StateError) as error:
            slackwater.connect(tmp_path / "disk" / "w")
        assert error.value.code in ("NOT_WRITABLE", "CATALOG_UNAVAILABLE")
        assert "written" in str(error.value)


@contextmanager
def _read_only(db: Warehouse) -> Iterator[None]:
    def query_only(connection: Any, *_: object) -> None:
        connection.execute("PRAGMA query_only = ON")

    engine = db.catalog._database._engine
    engine.dispose()
    event.listen(engine, "connect", query_only)
    try:
        yield
    finally:
        event.remove(engine, "connect", query_only)
        engine.dispose()


def test_a_catalog_that_cannot_be_written_is_told_and_nothing_is_lost(
    db: Warehouse,
) -> None:
    db.sql("CREATE TABLE t (x INT); INSERT INTO t VALUES (1)")
    db.sql("CREATE MATERIALIZED VIEW v AS SELECT x, count(*) AS n FROM t GROUP BY x")
    db.refresh()
    db.sql("INSERT INTO t VALUES (2)")
    db.refresh()
    db.sql("INSERT INTO t VALUES (3)")
    with _read_only(db):
        for work in (db.refresh, db.compact, lambda: db.sql("DELETE FROM t")):
            with pytest.raises(StateError) as error:
                work()
            assert error.value.code == "CATALOG_UNAVAILABLE", str(error.value)
    assert {r.mode for r in db.refresh()} == {"incremental"}
    assert sorted(db.sql("SELECT * FROM v").fetchall()) == [(1, 1), (2, 1), (3, 1)]
    assert db.verify("v")
    require_no_garbage(db)
