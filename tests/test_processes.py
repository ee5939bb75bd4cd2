"""Several processes on one warehouse: nobody corrupts, nobody waits for long, nothing is wrong."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import slackwater
from slackwater import Warehouse
from slackwater.errors import StateError
from slackwater.work.house import House
from tests.processes import Child
from tests.works import collect, require_no_garbage, require_published

ACCOUNTS = 4
MONEY = 400
LONGEST_WAIT_SECONDS = 10.0  # a statement takes some 50 ms; machines of tests are busy

SCHEMA = """
CREATE TABLE savings (id BIGINT, balance BIGINT);
CREATE TABLE checking (id BIGINT, balance BIGINT);
INSERT INTO savings VALUES (0, 100), (1, 100), (2, 100), (3, 100);
INSERT INTO checking VALUES (0, 0), (1, 0), (2, 0), (3, 0);
CREATE MATERIALIZED VIEW money AS
  SELECT sum(balance) AS total, count(*) AS accounts
  FROM (SELECT * FROM savings UNION ALL SELECT * FROM checking);
CREATE MATERIALIZED VIEW seen AS SELECT total FROM money;
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    with slackwater.connect(tmp_path / "bank", placement="local") as db:
        db.sql(SCHEMA)
        db.refresh()
    return tmp_path / "bank"


@pytest.fixture
def bank(path: Path) -> Iterator[Warehouse]:
    with slackwater.connect(path, placement="local", lease_wait_seconds=10) as db:
        yield db


def opened(path: Path, **settings: Any) -> Warehouse:
    return slackwater.connect(path, placement="local", refresh="incremental", **settings)


# -- two writers


def deposit(path: Path, times: int) -> int:
    """Adds one to the first account, again and again; each time reads what it writes."""
    with opened(path, lease_wait_seconds=60) as db:
        for _ in range(times):
            db.sql("UPDATE savings SET balance = balance + 1 WHERE id = 0")
    return times


def test_writers_of_one_table_wait_for_each_other_and_lose_nothing(
    path: Path, bank: Warehouse
) -> None:
    writers = [Child(deposit, path, 5) for _ in range(3)]
    assert sum(w.result() for w in writers) == 15
    assert bank.sql("SELECT balance FROM savings WHERE id = 0").fetchall() == [(115,)]
    require_no_garbage(bank)


def hold(path: Path) -> None:
    with opened(path) as db, db.transaction():
        db.sql("UPDATE savings SET balance = balance + 1 WHERE id = 0")
        (path / "held").touch()
        wait_for(path / "enough")


def wait_for(file: Path) -> None:
    deadline = time.monotonic() + 30
    while not file.exists():
        assert time.monotonic() < deadline, f"{file.name} did not come"
        time.sleep(0.01)


def test_a_writer_that_does_not_want_to_wait_is_told_who_holds_the_table(path: Path) -> None:
    holder = Child(hold, path)
    wait_for(path / "held")
    with opened(path, lease_wait_seconds=0.2) as db:
        with pytest.raises(StateError, match=f"'savings' is being changed by process {holder.pid}"):
            db.sql("DELETE FROM savings")
        with pytest.raises(StateError) as error:
            db.sql("TRUNCATE TABLE savings")
        assert error.value.code == "LEASE_HELD"
        db.sql("INSERT INTO checking VALUES (9, 0)")  # another table is free
        assert db.refresh("money")[0].mode == "incremental"  # and so are the views
        assert db.sql("SELECT total FROM money").fetchall() == [(MONEY,)]
    (path / "enough").touch()
    holder.result()
    with opened(path) as db:
        assert db.sql("SELECT sum(balance), count(*) FROM savings").fetchall() == [(401, 4)]


def test_the_next_writer_does_not_wait_for_the_lease_of_a_killed_one(
    path: Path, bank: Warehouse
) -> None:
    holder = Child(hold, path)
    wait_for(path / "held")
    os.kill(holder.pid, signal.SIGKILL)
    bank.sql("UPDATE savings SET balance = balance + 10 WHERE id = 0")
    assert bank.sql("SELECT balance FROM savings WHERE id = 0").fetchall() == [(110,)]
    assert holder.exit_code() == -signal.SIGKILL
    require_no_garbage(bank)


# -- a writer that is stopped


def late(path: Path) -> str:
    """Changes the table under a short lease; the code of the error that stops it."""
    try:
        with opened(path, lease_seconds=0.5) as db:
            db.sql("UPDATE savings SET balance = 0")
    except StateError as error:
        return error.code
    return "committed"


@pytest.mark.parametrize("point", ["run.begun", "segment.writing", "segment.written"])
def test_a_writer_paused_past_its_lease_cannot_commit(
    path: Path, bank: Warehouse, point: str
) -> None:
    paused = Child(late, path, env={"SLACKWATER_PAUSE_AT": f"{point}:5"})
    wait_for_run(bank)
    bank.sql("UPDATE savings SET balance = balance + 1 WHERE id = 0")
    assert paused.running, "the next writer waited for the paused one"
    collect(bank)  # while the paused one believes that its files are still there
    assert paused.result() in ("LEASE_LOST", "RUN_REVOKED", "SEGMENT_MISSING")
    assert bank.sql("SELECT sum(balance) FROM savings").fetchall() == [(MONEY + 1,)]
    require_no_garbage(bank)


def wait_for_run(db: Warehouse) -> None:
    deadline = time.monotonic() + 30
    while not any(r.state == "open" for r in db.catalog.runs(limit=5)):
        assert time.monotonic() < deadline, "the other process began no run"
        time.sleep(0.01)


def test_a_writer_paused_within_its_lease_commits(path: Path, bank: Warehouse) -> None:
    paused = Child(late_but_in_time, path, env={"SLACKWATER_PAUSE_AT": "segment.written:0.5"})
    assert paused.result() == 1
    assert bank.sql("SELECT balance FROM savings WHERE id = 0").fetchall() == [(101,)]


def late_but_in_time(path: Path) -> int:
    return deposit(path, 1)


# -- ingesting, refreshing, reading and collecting, all at once


def transfer(path: Path, seconds: float) -> tuple[int, float]:
    """Moves money between two tables, always as one transaction; how often, and the longest."""
    times, longest = 0, 0.0
    with opened(path) as db:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            began, account = time.monotonic(), times % ACCOUNTS
            with db.transaction():
                db.sql(f"UPDATE savings SET balance = balance - 1 WHERE id = {account}")
                db.sql(f"UPDATE checking SET balance = balance + 1 WHERE id = {account}")
            times, longest = times + 1, max(longest, time.monotonic() - began)
    return times, longest


def keep_refreshing(path: Path, seconds: float) -> tuple[int, float]:
    times, longest = 0, 0.0
    with opened(path) as db:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            began = time.monotonic()
            db.refresh("seen")
            times, longest = times + 1, max(longest, time.monotonic() - began)
    return times, longest


QUESTION = """
SELECT (SELECT sum(balance) FROM savings) + (SELECT sum(balance) FROM checking) AS now,
       (SELECT total FROM money) AS money, (SELECT total FROM seen) AS seen
"""


def read(path: Path, seconds: float) -> tuple[int, float]:
    """Asks for the total of two tables and two views while it collects garbage between."""
    times, longest = 0, 0.0
    with opened(path) as db:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            began = time.monotonic()
            found = db.sql(QUESTION).fetchall()
            longest = max(longest, time.monotonic() - began)
            assert found == [(MONEY, MONEY, MONEY)], found
            collect(db)
            times += 1
    return times, longest


def test_ingest_refresh_and_reads_beside_a_collector_disturb_nobody(
    path: Path, bank: Warehouse
) -> None:
    """Money only moves, so every consistent snapshot has the same total."""
    children = [Child(work, path, 5.0) for work in (transfer, keep_refreshing, read)]
    for times, longest in [child.result() for child in children]:
        assert times >= 3
        assert longest < LONGEST_WAIT_SECONDS
    bank.refresh()
    assert bank.verify("money")
    assert bank.verify("seen")
    assert bank.sql("SELECT min(balance) < 100 FROM savings").fetchall() == [(True,)]
    require_published(bank)
    require_no_garbage(bank)


def test_a_view_is_verified_against_what_its_refresh_read(path: Path, bank: Warehouse) -> None:
    """Tables that change between a refresh's reading and its commit are no difference."""
    slow = Child(refresh_slowly, path, env={"SLACKWATER_PAUSE_AT": "segment.written:1.5"})
    wait_for_run(bank)
    bank.sql("INSERT INTO savings VALUES (9, 1000)")  # while the refresh computes
    slow.result()
    assert bank.sql("SELECT total FROM seen").fetchall() == [(MONEY,)]
    assert bank.verify("money")
    assert bank.verify("seen")
    bank.refresh()
    assert bank.sql("SELECT total FROM seen").fetchall() == [(MONEY + 1000,)]


def refresh_slowly(path: Path) -> None:
    with opened(path) as db:
        db.refresh("money", "seen", full=True)


def open_and_count(path: Path) -> int:
    with opened(path) as db:
        db.sql("CREATE TABLE IF NOT EXISTS t (x INT)")
        db.sql("INSERT INTO t VALUES (1)")
        return int(db.sql("SELECT count(*) FROM t").fetchall()[0][0])


def test_processes_may_create_one_warehouse_at_the_same_time(tmp_path: Path) -> None:
    children = [Child(open_and_count, tmp_path / "new") for _ in range(4)]
    assert max(child.result() for child in children) == 4


def define(path: Path, statements: list[str]) -> list[str]:
    """Runs statements, none of which may fail because somebody else was faster."""
    with opened(path) as db:
        return [db.sql(statement).message for statement in statements for _ in range(3)]


def test_if_not_exists_and_if_exists_hold_among_processes(path: Path, bank: Warehouse) -> None:
    statements = [
        "CREATE TABLE IF NOT EXISTS made (x INT)",
        "CREATE TABLE IF NOT EXISTS copied AS SELECT * FROM savings",
        "CREATE MATERIALIZED VIEW IF NOT EXISTS v AS SELECT * FROM savings",
        "DROP VIEW IF EXISTS v",
        "DROP TABLE IF EXISTS made",
        "DROP TABLE IF EXISTS copied",
    ]
    children = [Child(define, path, statements) for _ in range(3)]
    assert all(len(child.result()) == 18 for child in children)
    require_no_garbage(bank)


def test_a_table_made_anew_while_a_writer_waited_is_leased_anew(
    path: Path, bank: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The lease is on the table that is written, not on its dropped namesake."""
    bank.sql("CREATE TABLE t (x INT)")
    start, lease = House.start, House.lease
    leased: list[str] = []

    def after_a_drop(house: House, kind: str, *ids: str) -> Any:
        Child(define_anew, path).result()
        leased.extend(ids)
        return start(house, kind, *ids)

    def anew(house: House, *ids: str) -> Any:
        leased.extend(ids)
        return lease(house, *ids)

    monkeypatch.setattr(House, "start", after_a_drop)
    monkeypatch.setattr(House, "lease", anew)
    bank.sql("INSERT INTO t VALUES (1)")
    found = bank.catalog.snapshot().find("t")
    assert found is not None
    assert len(leased) == 2
    assert leased[-1] == found.id
    assert bank.sql("SELECT * FROM t").fetchall() == [(1,)]


def define_anew(path: Path) -> None:
    with opened(path) as db:
        db.sql("DROP TABLE t; CREATE TABLE t (x INT)")
