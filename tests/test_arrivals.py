"""The history of a table's changes, as predictions read it."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import slackwater
from slackwater import Warehouse
from slackwater.catalog.model import Event, WriteEvent
from slackwater.stats.arrival import predict
from slackwater.stats.rows import Change
from slackwater.work.arrivals import arrivals, history
from slackwater.work.world import World

BEGIN = datetime(2026, 3, 2, 6, tzinfo=UTC)


class Hands:
    """A clock that is moved by hand."""

    def __init__(self) -> None:
        self.moment = BEGIN

    def now(self) -> datetime:
        return self.moment


def table_id(db: Warehouse, name: str = "t") -> str:
    found = db.catalog.snapshot().find(name)
    assert found is not None
    return found.id


def changes(db: Warehouse) -> list[Change]:
    return [a.rows for a in arrivals(db.catalog, table_id(db))]


def test_every_kind_of_change_is_told(db: Warehouse) -> None:
    db.sql("CREATE TABLE t (a INT, b INT)")
    db.sql("INSERT INTO t VALUES (1, 1), (2, 2), (3, 3)")
    db.append("t", [{"a": 4, "b": 4}])
    db.sql("UPDATE t SET b = 0 WHERE a < 3")
    db.sql("DELETE FROM t WHERE a = 4")
    db.apply("t", [{"a": 5, "b": 5, "w": 1}, {"a": 6, "b": 6, "w": 1}], weight_column="w")
    db.apply("t", [{"a": 5, "b": 5, "w": -1}], weight_column="w")
    db.apply("t", [{"a": 6, "b": 6, "w": -1}, {"a": 6, "b": 7, "w": 1}], weight_column="w")
    assert changes(db) == [
        Change(inserts=3),
        Change(inserts=1),
        Change(updates=2),
        Change(deletes=1),
        Change(inserts=2),
        Change(deletes=1),
        Change(updates=1),
    ]


def test_a_transaction_is_one_arrival(db: Warehouse) -> None:
    db.sql("CREATE TABLE t (a INT, b INT)")
    with db.transaction():
        db.sql("INSERT INTO t VALUES (1, 1), (2, 2)")
        db.sql("UPDATE t SET b = 0 WHERE a = 1")
        db.sql("DELETE FROM t WHERE a = 2")
    assert changes(db) == [Change(2, 1, 1)]


def test_compaction_and_truncation_are_no_arrivals(db: Warehouse) -> None:
    db.sql("CREATE TABLE t (a INT)")
    for i in range(3):
        db.sql(f"INSERT INTO t VALUES ({i})")
    db.compact("t")
    db.sql("TRUNCATE TABLE t")
    assert sum(c.rows for c in changes(db)) == 3


def test_events_from_before_are_understood(db: Warehouse) -> None:
    db.sql("CREATE TABLE t (a INT)")
    body = {"table": "t", "rows": {"append": 5, "update": 2, "delete": 1, "arrive": 4}}
    db.catalog.commit([], [WriteEvent(Event("change", table_id(db), BEGIN.isoformat(), body))])
    assert changes(db) == [Change(9, 2, 1)]


def test_what_was_written_down_is_predicted_from(tmp_path: Path) -> None:
    clock = Hands()
    with slackwater.connect(tmp_path / "w", placement="local", clock=clock) as db:
        db.sql("CREATE TABLE t (a INT)")
        for i in range(12):
            db.append("t", [{"a": i}] * 10)
            clock.moment += timedelta(minutes=5)
        past = arrivals(db.catalog, table_id(db))
        assert [a.at for a in past] == [BEGIN + i * timedelta(minutes=5) for i in range(12)]
        now = past[-1].at
        expected = predict(past, now, now + timedelta(hours=1))
    assert expected.model == "steady"
    assert expected.change.inserts == pytest.approx(120)
    assert expected.error == pytest.approx(0, abs=1e-6)


def test_files_of_others_came_when_they_were_written(db: Warehouse, tmp_path: Path) -> None:
    folder = tmp_path / "files"
    folder.mkdir()
    for i, rows in enumerate((3, 5)):
        pq.write_table(pa.table({"a": list(range(rows))}), folder / f"{i}.parquet")
        at = (BEGIN + timedelta(hours=i)).timestamp()
        os.utime(folder / f"{i}.parquet", (at, at))
    db.sql(f"CREATE TABLE t USING parquet OPTIONS (path '{folder}')")
    world = World(db._house, db.catalog.snapshot())
    found = history(world, world.table("t"))
    assert [(a.at, a.rows.inserts) for a in found] == [(BEGIN, 3), (BEGIN + timedelta(hours=1), 5)]
