"""What suits a statement on Spark: small ones are one task, others exchange rows."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

import slackwater
from bench.measure import Meter
from slackwater.algebra.relation import Relation, Scan
from slackwater.catalog.model import Segment
from slackwater.engine import java, suited
from slackwater.engine.sources import Given, Log, Source, Stored
from slackwater.engine.spark import SparkEngine
from slackwater.engine.spark_errors import OUT_OF_MEMORY, translate
from slackwater.errors import StateError
from slackwater.tvr.time import CHANGE
from slackwater.types import BIGINT, STRING, Field
from tests.conftest import suited_or_not

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCHEMA = (Field("id", BIGINT, False), Field("note", STRING, True), Field("more", STRING, True))


def _segment(size: int) -> Segment:
    return Segment("folder/file", rows=1000, bytes=size, min_weight=1, max_weight=1)


def _stored(size: int) -> Stored:
    return Stored((_segment(size),), SCHEMA)


def _change(size: int) -> Log:
    return Log((_segment(size),), SCHEMA)


def _scan(source: str, *names: str) -> Relation:
    return Scan(source, source, tuple(f for f in SCHEMA if f.name in names))


def test_what_reads_little_is_one_task() -> None:
    how = suited.suited({"t": _stored(3_000_000)}, [_scan("t", "id", "note", "more")])
    assert how == suited.Suited(from_few=True, one_piece=True)


def test_of_what_a_change_is_joined_with_only_the_columns_count_that_are_read() -> None:
    sources: dict[str, Source] = {"t": _stored(60_000_000), "t" + CHANGE: _change(100_000)}
    narrow = [_scan("t", "id"), _scan("t" + CHANGE, "id", "note")]
    assert suited.read_bytes(sources, narrow) == pytest.approx(60_000_000 * 8 / 48 + 100_000)
    assert suited.suited(sources, narrow).one_piece
    assert not suited.suited(sources, [_scan("t", "id", "note"), narrow[1]]).one_piece


def test_what_is_computed_anew_from_much_is_many_tasks_however_few_columns_it_reads() -> None:
    how = suited.suited({"t": _stored(20_000_000)}, [_scan("t", "id")])
    assert how == suited.Suited()


def test_of_what_spark_is_handed_nobody_knows_the_size() -> None:
    frame = Given(object(), SCHEMA, 0)
    assert suited.suited({"incoming": frame}, [_scan("incoming", "id")]) == suited.Suited()


def test_a_small_refresh_is_a_task_for_each_of_its_statements(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Joins, groups, distinct rows and both sides of a union, and nothing is exchanged."""
    for chosen in (suited.suited, suited_or_not):
        monkeypatch.setattr("slackwater.engine.runner.suited", chosen)
        with _refreshed(spark, tmp_path / chosen.__name__) as db:
            _, cost = Meter(SparkEngine(tmp_path, spark)).measure(lambda: db.refresh("v"))
            assert db.verify("v").equal
        if chosen is suited.suited:
            assert cost.stages == cost.jobs == cost.executions == 1


def test_what_one_task_has_no_memory_for_is_run_in_several(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And as many operators are not tried in one again."""
    pieces, table = [], SparkEngine.table

    def full(engine: SparkEngine, sql: str) -> pa.Table:
        pieces.append("COALESCE(1)" in sql)
        if pieces[-1]:
            raise StateError("Spark ran out of memory.", code=OUT_OF_MEMORY)
        return table(engine, sql)

    monkeypatch.setattr("slackwater.engine.runner.suited", suited.suited)
    with _refreshed(spark, tmp_path) as db:
        monkeypatch.setattr(SparkEngine, "table", full)
        db.refresh("v")
        assert pieces == [True, False]
        db.sql("INSERT INTO t VALUES (1002, 5)")
        db.refresh("v")
        assert pieces == [True, False, False]
        assert db.verify("v").equal


def test_no_memory_is_told_as_such_however_deep_it_is_said() -> None:
    class Thrown:
        def __init__(self, text: str, cause: Thrown | None = None) -> None:
            self.toString = self.getMessage = lambda: text
            self.getCause = lambda: cause

    error = Exception("An error occurred while calling o1.collect.")
    told = Thrown("UNABLE_TO_ACQUIRE_MEMORY: 248 bytes")
    error.java_exception = Thrown("awaitResult", Thrown("job aborted", told))  # type: ignore
    found = translate(error)
    assert isinstance(found, StateError)
    assert found.code == OUT_OF_MEMORY


def _refreshed(spark: SparkSession, folder: Path) -> slackwater.Warehouse:
    db = slackwater.connect(folder, placement="spark", refresh="incremental", spark=spark)
    db.sql("CREATE TABLE t (id BIGINT, a BIGINT); CREATE TABLE u (a BIGINT, name STRING)")
    db.append("t", pa.table({"id": range(200), "a": [i % 7 for i in range(200)]}))
    db.append("u", pa.table({"a": range(7), "name": [f"n{i % 3}" for i in range(7)]}))
    db.sql("""
        CREATE MATERIALIZED VIEW v AS
        SELECT name, count(*) AS n, sum(id) AS total FROM t JOIN u ON t.a = u.a GROUP BY name
    """)
    db.refresh("v")
    db.sql("INSERT INTO t VALUES (1000, 3), (1001, 4)")
    db.sql("DELETE FROM t WHERE id = 5")
    return db


def test_java_is_told_how_to_collect_garbage_where_nobody_else_tells_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in java.SAY:
        monkeypatch.delenv(name, raising=False)
    assert java.own_options("local[*]") == java.COLLECTOR
    assert java.own_options("yarn") == ""
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", "-XX:+UseG1GC")
    assert java.own_options("local[*]") == ""
