"""Refreshing on and on: memory, temporary views and open files stay as they are."""

from __future__ import annotations

import gc
import os
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

from slackwater import Warehouse
from slackwater.engine import local
from tests.conftest import LONG

PAGE = os.sysconf("SC_PAGE_SIZE")
VIEWS = {
    "sums": "SELECT k, sum(x) AS s, count(*) AS n FROM t GROUP BY k",
    "joined": "SELECT t.k, t.x, u.name FROM t LEFT JOIN u ON t.k = u.k WHERE t.x > 5",
}
REFRESHES = 1_000 if LONG else 150
GROWTH = 24 * 1024 * 1024
"""What may be added between a third of the refreshes and all: fragments, not a leak."""


def resident_bytes() -> int:
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def fill(db: Warehouse) -> None:
    db.sql("CREATE TABLE t (k INT, x INT); CREATE TABLE u (k INT, name STRING)")
    db.sql("INSERT INTO u VALUES (0, 'zero'), (1, 'one')")
    for name, query in VIEWS.items():
        db.sql(f"CREATE MATERIALIZED VIEW {name} AS {query}")
    db.refresh()


def step(db: Warehouse, i: int) -> None:
    """A row comes, an old one goes: the content keeps its size."""
    changes = [{"k": i % 7, "x": i, "w": 1}]
    changes += [{"k": (i - 20) % 7, "x": i - 20, "w": -1}] if i >= 20 else []
    db.apply("t", changes, weight_column="w")
    assert {r.mode for r in db.refresh()} <= {"incremental"}


@pytest.mark.timeout(900)
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="the system does not tell")
def test_memory_is_steady_over_many_refreshes(db: Warehouse) -> None:
    fill(db)
    for i in range(REFRESHES // 3):
        step(db, i)
    memory, files = resident_bytes(), open_files()
    for i in range(REFRESHES // 3, REFRESHES):
        step(db, i)
    grown = resident_bytes() - memory
    print(f"{REFRESHES} refreshes of {len(VIEWS)} views: {grown / 2**20:+.1f} MB")
    assert grown < GROWTH
    assert open_files() < files + 20
    snapshot = db.catalog.snapshot()
    assert max(len(snapshot.segments(id)) for id in snapshot.stored()) < 40
    assert all(db.verify(view) for view in VIEWS)


def test_spark_keeps_no_temporary_view_and_no_cached_table(spark_db: Warehouse) -> None:
    spark = spark_db.spark
    before = set(spark.sparkContext._jsc.getPersistentRDDs())
    fill(spark_db)
    for i in range(3):
        step(spark_db, i)
    tables = [row.tableName for row in spark.sql("SHOW TABLES").collect()]
    assert not [name for name in tables if name.startswith("slackwater_")]
    assert set(spark.sparkContext._jsc.getPersistentRDDs()) <= before


def test_the_local_database_is_replaced_when_nobody_uses_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local, "SERVED", 2)
    engine = local.LocalEngine(tmp_path)
    with engine.session(reads=0) as outer:
        outer.keep("kept", "SELECT 1 AS x")
        with engine.session(reads=0):
            pass
        schema = pa.schema([("x", pa.int32())])
        assert [b.to_pydict() for b in outer.batches("FROM kept", schema)] == [{"x": [1]}]
        assert engine._brief._connection is not None
    assert engine._brief._connection is None
    engine.close()


def test_few_bytes_are_read_by_one_thread(tmp_path: Path) -> None:
    engine = local.LocalEngine(tmp_path)
    schema = pa.schema([("threads", pa.int64())])
    asked = "SELECT current_setting('threads') AS threads"
    with engine.session(local.FEW_BYTES - 1) as session:
        assert [b.to_pydict() for b in session.batches(asked, schema)] == [{"threads": [1]}]
    every = duckdb.sql(asked).fetchone()
    with engine.session(local.FEW_BYTES) as session:
        (batch,) = session.batches(asked, schema)
        assert tuple(batch.to_pylist()[0].values()) == every
    engine.close()
