"""Whose Spark session it is: the user's is left as it was, ours is shared and stopped at last."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import slackwater
from slackwater.engine.spark_settings import SHORT, TINY
from slackwater.engine.suited import SHORT_BYTES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_a_session_that_runs_already_is_used_and_left_alone(
    spark: SparkSession, tmp_path: Path
) -> None:
    spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    try:
        with slackwater.connect(tmp_path / "w", placement="spark") as db:
            db.sql("CREATE TABLE t (a INT); INSERT INTO t VALUES (1)")
            assert db.spark is not spark
            assert db.spark.sparkContext is spark.sparkContext
            assert db.spark.conf.get("spark.sql.session.timeZone") == "UTC"
        assert spark.conf.get("spark.sql.session.timeZone") == "Asia/Tokyo"
        assert spark.range(3).count() == 3
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")


def test_one_warehouse_closes_another_goes_on(spark: SparkSession, tmp_path: Path) -> None:
    with slackwater.connect(tmp_path / "b", placement="spark") as b:
        b.sql("CREATE TABLE t (a INT); INSERT INTO t VALUES (1)")
        with slackwater.connect(tmp_path / "a", placement="spark") as a:
            a.sql("CREATE TABLE t (a INT); INSERT INTO t VALUES (2)")
            assert a.spark is b.spark
        assert b.sql("SELECT a FROM t").fetchall() == [(1,)]


def test_settings_for_few_rows_hold_for_a_statement_only(
    spark: SparkSession, tmp_path: Path
) -> None:
    keys = [*SHORT, *TINY]
    before = [spark.conf.get(key) for key in keys]
    with slackwater.connect(tmp_path / "w", placement="spark", spark=spark) as db:
        db.sql("CREATE TABLE t (a INT); INSERT INTO t VALUES (1), (2), (2)")
        assert db.sql("SELECT a, count(*) AS n FROM t GROUP BY a").fetchall()
        with pytest.raises(slackwater.UserError, match="zero"):
            db.sql("SELECT 1 / (a - 1) FROM t").fetchall()
    assert [spark.conf.get(key) for key in keys] == before


TWO = """
import sys, slackwater
from pyspark import SparkContext
settings = {"placement": "spark", "spark_config": {"spark.driver.memory": "1g"}}
a = slackwater.connect(sys.argv[1] + "/a", **settings)
b = slackwater.connect(sys.argv[1] + "/b", **settings)
for db in (a, b):
    db.sql("CREATE TABLE t (a INT); INSERT INTO t VALUES (1)")
a.close()
print(b.sql("SELECT a FROM t").fetchall())
b.close()
print(SparkContext._active_spark_context)
"""


@pytest.mark.proof
@pytest.mark.spark
def test_the_last_warehouse_stops_what_the_first_started(java_home: str, tmp_path: Path) -> None:
    command = [sys.executable, "-c", TWO, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.stdout.split("\n")[:2] == ["[(1,)]", "None"], done.stderr


def test_rows_are_exchanged_in_pieces_that_memory_holds(spark: SparkSession) -> None:
    """As many as their size asks for: where each core had one, TPC-H's q4 at scale factor 10 was
    out of memory."""
    size = "spark.sql.adaptive.advisoryPartitionSizeInBytes"
    smallest = "spark.sql.adaptive.coalescePartitions.minPartitionSize"
    session = spark.newSession()
    session.conf.set("spark.sql.autoBroadcastJoinThreshold", "-1")
    joined = "SELECT a.id FROM range(200000) AS a LEFT SEMI JOIN range(100000) AS b ON a.id = b.id"
    assert session.sql(joined).rdd.getNumPartitions() == 1
    for key in (size, smallest):
        session.conf.set(key, "64k")
    assert session.sql(joined).rdd.getNumPartitions() > 8


@pytest.mark.proof
def test_what_spark_writes_has_few_files(spark: SparkSession, tmp_path: Path) -> None:
    """Else compaction would find as many again after each of its runs."""
    session = spark.newSession()
    for key in ("advisoryPartitionSizeInBytes", "coalescePartitions.minPartitionSize"):
        session.conf.set(f"spark.sql.adaptive.{key}", "64k")
    with slackwater.connect(tmp_path / "w", placement="spark", spark=session) as db:
        db.sql("CREATE TABLE t (a BIGINT, b STRING)")
        text = "concat(md5(string(id)), md5(string(-id)))"
        db.append("t", session.sql(f"SELECT id AS a, {text} AS b FROM range(300000)"))
        assert db.status()["tables"][0]["bytes"] > SHORT_BYTES
        db.sql("CREATE MATERIALIZED VIEW v AS SELECT b, max(a) AS a FROM t GROUP BY b")
        db.refresh("v")
        assert db.sql("SELECT count(*), sum(a) FROM v").fetchall() == [(300000, 44999850000)]
        assert db.status()["views"][0]["segments"] <= 2
