"""Compaction: fewer segments, the same rows, changes still readable, nobody disturbed."""

from __future__ import annotations

import json
import random
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import slackwater
from slackwater import Warehouse
from slackwater.catalog.model import Segment, View
from slackwater.cli.app import app
from slackwater.engine import segment_writer
from slackwater.errors import SlackwaterError, StateError, UserError
from slackwater.planner.compaction import (
    FANOUT,
    LARGEST_BYTES,
    due,
    level,
    most_files,
    worthwhile,
)
from slackwater.work import compacting
from tests.works import require_no_garbage, require_published, rows

VIEWS = {
    "sums": "SELECT k, sum(x) AS s, count(*) AS n FROM t GROUP BY k",
    "whole": "SELECT sum(x) AS s, avg(x) AS a, count(x) AS n FROM t",
    "extremes": "SELECT k, max(x) AS m, min(x) AS l FROM t GROUP BY k",
    "first": "SELECT k, x FROM t ORDER BY x DESC LIMIT 3",
    "joined": "SELECT t.k, t.x, u.name FROM t JOIN u ON t.k = u.k",
    "above": "SELECT n, count(*) AS groups FROM sums GROUP BY n",
}


def stream(db: Warehouse, batches: int, seed: int = 0) -> None:
    """Inserts, updates and deletions, with NULLs and equal rows."""
    for i in range(seed, seed + batches):
        db.sql(f"INSERT INTO t VALUES ({i % 5}, {i}), ({i % 3}, 7), (NULL, {i})")
        db.sql(f"UPDATE t SET x = x + 1 WHERE k = {i % 4}")
        db.sql(f"DELETE FROM t WHERE k IS NULL AND x < {i - 3}")
        db.refresh()


def fill(db: Warehouse) -> Warehouse:
    db.sql("CREATE TABLE t (k INT, x BIGINT); CREATE TABLE u (k INT, name STRING)")
    db.sql("INSERT INTO u VALUES (0, 'zero'), (1, 'one'), (NULL, 'none')")
    for name, query in VIEWS.items():
        db.sql(f"CREATE MATERIALIZED VIEW {name} AS {query}")
    db.refresh()
    return db


@pytest.fixture
def manual(tmp_path: Path) -> Any:
    """A warehouse that compacts only when asked. Views follow their changes, whatever the cost."""
    settings = {"placement": "local", "refresh": "incremental", "compact": False}
    with slackwater.connect(tmp_path / "manual", **settings) as db:
        yield fill(db)


def content(db: Warehouse) -> dict[str, Any]:
    return {n: rows(db.sql(f"SELECT * FROM {n}").fetchall()) for n in ("t", "u", *VIEWS)}


def counts(db: Warehouse) -> dict[str, int]:
    snapshot = db.catalog.snapshot()
    return {id: len(snapshot.segments(id)) for id in snapshot.stored()}


def verify_all(db: Warehouse) -> None:
    for name in VIEWS:
        found = db.verify(name)
        assert found, str(found)


def test_compacting_everything_changes_no_row_and_no_mode(manual: Warehouse) -> None:
    stream(manual, 4)
    before, versions = content(manual), manual.status()
    reports = manual.compact()
    assert {r.state for r in reports} >= {"", "sums", "buffer"}
    assert content(manual) == before
    assert all(n <= 1 for n in counts(manual).values()), counts(manual)
    for old, new in zip(versions["views"], manual.status()["views"], strict=True):
        assert old["version"] == new["version"]
        assert new["fresh"]
    assert manual.compact() == []
    manual.sql("INSERT INTO t VALUES (1, 100), (NULL, 1)")
    manual.sql("DELETE FROM t WHERE k = 2")
    assert {r.mode for r in manual.refresh()} == {"incremental"}
    verify_all(manual)
    require_published(manual)
    require_no_garbage(manual)


def test_merged_segments_hold_no_row_twice_and_none_that_is_gone(manual: Warehouse) -> None:
    stream(manual, 6)
    manual.compact()
    snapshot = manual.catalog.snapshot()
    for id in snapshot.stored():
        for segment in snapshot.segments(id):
            relation = snapshot.relation(id)
            if getattr(relation, "kind", "rows") != "sums":
                assert segment.min_weight > 0, relation.name
    live = manual.sql("SELECT count(DISTINCT k, x) FROM t WHERE k IS NOT NULL").fetchall()[0][0]
    nulls = manual.sql("SELECT count(DISTINCT x) FROM t WHERE k IS NULL").fetchall()[0][0]
    table = snapshot.find("t")
    assert table is not None
    assert sum(s.rows for s in snapshot.segments(table.id)) == live + nulls


def test_changes_that_a_view_has_not_read_stay_readable(manual: Warehouse) -> None:
    stream(manual, 2)
    manual.refresh("sums")
    for i in range(3):
        manual.sql(f"INSERT INTO t VALUES ({i}, 1)")
        manual.refresh("joined")
    assert [(r.segments, r.into) for r in manual.compact("t")][-1] == (3, 1)  # of those to come
    assert segments_of(manual, "t") == 2
    assert {r.mode for r in manual.refresh()} <= {"incremental", "none"}
    verify_all(manual)
    manual.compact("t")
    assert segments_of(manual, "t") == 1


def segments_of(db: Warehouse, table: str) -> int:
    snapshot = db.catalog.snapshot()
    found = snapshot.find(table)
    assert found is not None
    return len(snapshot.segments(found.id))


def test_what_nobody_has_read_yet_is_merged_beside_the_work(db: Warehouse) -> None:
    fill(db)
    for i in range(4 * FANOUT):
        db.sql(f"INSERT INTO t VALUES ({i % 5}, {i})")
    db.close()
    with slackwater.connect(db.path, placement="local", refresh="incremental") as again:
        assert segments_of(again, "t") < 2 * FANOUT
        assert {r.mode for r in again.refresh()} == {"incremental"}
        verify_all(again)


def test_a_refresh_under_way_ends_between_what_is_merged(manual: Warehouse) -> None:
    """A commit that somebody pins is one at which their refresh may end."""
    stream(manual, 1)
    for i in range(3):
        manual.sql(f"INSERT INTO t VALUES ({i}, 1)")
    with manual.catalog.pin():
        for i in range(3):
            manual.sql(f"INSERT INTO t VALUES ({i}, 2)")
        manual.compact("t")
        assert segments_of(manual, "t") == 3
    manual.compact("t")
    assert segments_of(manual, "t") == 2
    assert {r.mode for r in manual.refresh()} <= {"incremental", "none"}
    verify_all(manual)


def merge_whoever_has_read_them(
    db: Warehouse, monkeypatch: pytest.MonkeyPatch, newest: int | None = None
) -> compacting.CompactReport:
    """The table's segments, or the newest of them, as if nobody had read some and not others."""
    snapshot, found = db.catalog.snapshot(), db.catalog.snapshot().find("t")
    assert found is not None
    chosen = snapshot.segments(found.id)[-newest if newest else 0 :]
    with monkeypatch.context() as patch:
        patch.setattr(compacting, "_unparted", lambda house, pinned, id, choose: chosen)
        report = compacting.compact_one(db._house, found.id, worthwhile, 0)
    assert report is not None
    return report


def test_changes_that_can_no_longer_be_told_apart_are_not_followed(
    manual: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream(manual, 1)
    manual.sql("INSERT INTO t VALUES (1, 1)")
    manual.refresh("sums")
    manual.sql("INSERT INTO t VALUES (2, 2)")
    merge_whoever_has_read_them(manual, monkeypatch)
    assert {r.view: r.reasons for r in manual.refresh()}["sums"] == ["SOURCE_REPLACED"]
    verify_all(manual)


def test_who_has_read_half_of_what_cancels_is_told(
    manual: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream(manual, 1)
    manual.sql("INSERT INTO t VALUES (9, 9)")
    manual.refresh("sums")
    manual.sql("DELETE FROM t WHERE k = 9")
    report = merge_whoever_has_read_them(manual, monkeypatch, newest=2)
    assert (report.segments, report.into) == (2, 0)
    assert {r.view: r.reasons for r in manual.refresh()}["sums"] == ["SOURCE_REPLACED"]
    verify_all(manual)


def test_a_view_that_reads_others_for_a_while_still_parts_what_is_merged(manual: Warehouse) -> None:
    """What it had read is not merged with what comes later: it may read that again."""
    stream(manual, 1)
    manual.sql("INSERT INTO t VALUES (7, 7)")
    manual.refresh("whole", "extremes", "first", "joined")
    snapshot = manual.catalog.snapshot()
    table, view = snapshot.find("t"), snapshot.find("sums")
    assert table is not None
    assert isinstance(view, View)
    without = snapshot.supposing([replace(view, depends=())])
    assert [len(own) for own in compacting.stretches(without, table.id)] == [2, 1]


@pytest.fixture
def small_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """A merge of some hundred rows writes several files, as one of some hundred MB does."""
    monkeypatch.setattr(segment_writer, "ROW_GROUP_ROWS", 100)
    monkeypatch.setattr(segment_writer, "FILE_BYTES", 1000)


@pytest.mark.timeout(60)
@pytest.mark.usefixtures("small_files")
def test_compacting_ends_though_what_is_merged_is_several_files(manual: Warehouse) -> None:
    manual.append("t", [{"k": i % 500, "x": i} for i in range(1000)])
    manual.refresh("sums")
    manual.append("t", [{"k": i % 500, "x": -i} for i in range(500)])
    manual.sql("DELETE FROM t WHERE x % 10 = 0")
    reports = manual.compact()
    whose = [(r.name, r.state, r.version) for r in reports]
    assert len(whose) == len(set(whose))
    assert max(r.into for r in reports if r.name == "t") > 1
    assert max(r.into for r in reports if r.state == "sums") > 1
    manual.refresh()
    verify_all(manual)


@pytest.mark.timeout(60)
def test_compacting_ends_though_others_write_meanwhile(
    manual: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream(manual, 2)
    write = compacting._Compaction._write

    def beside(self: Any, run: Any) -> Any:
        manual.sql("INSERT INTO t VALUES (1, 1)")
        manual.sql("DELETE FROM t WHERE k = 1")
        return write(self, run)

    monkeypatch.setattr(compacting._Compaction, "_write", beside)
    assert len(manual.compact("t")) == 1
    assert segments_of(manual, "t") == 3
    verify_all(manual)


@pytest.mark.parametrize("number", range(4))
def test_views_read_at_their_own_times_whatever_is_merged_when(
    manual: Warehouse, rng: random.Random, number: int
) -> None:
    for i in range(12):
        manual.sql(f"INSERT INTO t VALUES ({rng.randrange(5)}, {i}), (NULL, {number})")
        if rng.random() < 0.5:
            manual.sql(f"UPDATE t SET x = x + 1 WHERE k = {rng.randrange(5)}")
        if rng.random() < 0.3:
            manual.sql(f"DELETE FROM t WHERE k = {rng.randrange(5)}")
        if rng.random() < 0.5:
            own = rng.choice(sorted(VIEWS))
            assert all(r.mode != "full" for r in manual.refresh(own))
            assert manual.verify(own), own
        if rng.random() < 0.5:
            manual.compact("t")
    assert {r.mode for r in manual.refresh()} <= {"incremental", "none"}
    verify_all(manual)


def test_segments_stay_few_by_themselves(db: Warehouse) -> None:
    fill(db)
    stream(db, 10)
    db.close()  # waits for the compaction beside the work
    with slackwater.connect(db.path, placement="local", refresh="incremental") as again:
        events = again.history(limit=1000)
        assert {e["kind"] for e in events} == {"compact", "change", "refresh"}
        assert max(counts(again).values()) < 2 * FANOUT, counts(again)
        modes = {e["mode"] for e in events if e["kind"] == "refresh"}
        assert modes <= {"full", "incremental", "none"}
        full = [e for e in events if e["kind"] == "refresh" and e["mode"] == "full"]
        assert all(e["reasons"] == ["FIRST_REFRESH"] for e in full)
        verify_all(again)
        require_published(again)
        require_no_garbage(again)


def test_a_relation_replaced_meanwhile_is_left_alone(
    manual: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream(manual, 2)
    write = compacting._Compaction._write

    def late(self: Any, run: Any) -> Any:
        done = write(self, run)
        manual.refresh("sums", full=True)
        return done

    monkeypatch.setattr(compacting._Compaction, "_write", late)
    with pytest.raises(StateError) as error:
        manual.compact("sums")
    assert error.value.code == "COMPACTION_OVERTAKEN"
    monkeypatch.undo()
    verify_all(manual)
    require_no_garbage(manual)


def test_a_compaction_holds_up_neither_changes_nor_refreshes(
    manual: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream(manual, 2)
    begun, go_on = threading.Event(), threading.Event()
    write = compacting._Compaction._write

    def slow(self: Any, run: Any) -> Any:
        done = write(self, run)
        begun.set()
        assert go_on.wait(30)
        return done

    monkeypatch.setattr(compacting._Compaction, "_write", slow)
    compaction = threading.Thread(target=manual.compact, args=("t",))
    compaction.start()
    assert begun.wait(30)
    stream(manual, 1, seed=50)
    with pytest.raises(SlackwaterError) as error:
        compacting.compact_one(manual._house, manual.catalog.snapshot().find("t").id, worthwhile, 0)  # type: ignore[union-attr]
    assert error.value.code == "LEASE_HELD"
    go_on.set()
    compaction.join()
    verify_all(manual)
    stream(manual, 1, seed=60)
    verify_all(manual)
    require_no_garbage(manual)


@pytest.mark.proof
def test_on_spark_too(spark_db: Warehouse) -> None:
    fill(spark_db)
    stream(spark_db, 1)
    before = content(spark_db)
    reports = spark_db.compact()
    assert {r.engine for r in reports} == {"spark"}
    assert content(spark_db) == before
    spark_db.sql("DELETE FROM t WHERE k = 0")
    assert {r.mode for r in spark_db.refresh()} == {"incremental"}
    verify_all(spark_db)


def test_spark_writes_no_more_files_than_told(spark_db: Warehouse, tmp_path: Path) -> None:
    spark = spark_db._house.runner.spark
    for most, files in ((None, 4), (3, 3), (9, 4)):
        place = tmp_path / f"most {most}"
        spark.write("SELECT id FROM range(0, 1000, 1, 4)", place, most_files=most)
        assert len(list(place.glob("*.parquet"))) == files


def test_a_name_that_is_not_there(manual: Warehouse) -> None:
    with pytest.raises(UserError, match="'tt' does not exist"):
        manual.compact("tt")


# -- which segments


def segment(size: int, version: int = 1, weight: int = 1, rows: int = 10) -> Segment:
    return Segment(f"s{version}", rows, size, weight, max(weight, 1), version)


def test_a_level_is_merged_when_it_is_full() -> None:
    small = [segment(1000, v) for v in range(FANOUT - 1)]
    large = [segment(500_000, 100 + v) for v in range(3)]
    assert due([*small, *large], adds_up=False) == ()
    small.append(segment(2000, 99))
    assert due([*small, *large], adds_up=False) == tuple(small)
    full = [segment(500_000, 200 + v) for v in range(FANOUT)]
    assert set(due([*small[:2], *full], adds_up=False)) == {*small[:2], *full}


def test_large_segments_are_merged_only_where_rows_add_up() -> None:
    large = [segment(LARGEST_BYTES + 1, v) for v in range(2 * FANOUT)]
    assert due(large, adds_up=False) == ()
    assert worthwhile(large, adds_up=False) == ()
    assert due(large, adds_up=True) == tuple(large)


def test_all_are_merged_when_much_was_written_since_the_oldest() -> None:
    base = segment(5_000_000, 1, rows=1000)
    few = [segment(1000, 2 + v, -1, rows=10) for v in range(FANOUT - 1)]
    assert due([base, *few], adds_up=True) == ()
    many = [segment(1000, 2 + v, -1, rows=100) for v in range(FANOUT - 1)]
    assert due([base, *many], adds_up=True) == (base, *many)


def test_large_segments_that_one_merge_wrote_are_not_merged_again() -> None:
    large = [segment(LARGEST_BYTES + 1, 5, -1) for _ in range(3)]
    assert worthwhile(large, adds_up=True) == ()
    later = segment(1000, 6)
    assert worthwhile([*large, later], adds_up=True) == (*large, later)


@pytest.mark.parametrize("adds_up", [False, True])
@pytest.mark.parametrize("size", [1_000, 5_000_000, LARGEST_BYTES])
def test_looks_at_what_no_one_changes_come_to_an_end(size: int, adds_up: bool) -> None:
    """Spark makes of a merge as many files as it may, all of one size."""
    segments = [segment(size, v, rows=size) for v in range(10 * FANOUT)]
    for _ in range(10):
        chosen = due(segments, adds_up)
        files, newest = most_files(chosen), max((s.version for s in chosen), default=0)
        made = [segment(sum(s.bytes for s in chosen) // files, newest) for _ in range(files)]
        segments = [s for s in segments if s not in chosen] + (made if chosen else [])
    assert due(segments, adds_up) == ()
    assert len([s for s in segments if s.bytes <= LARGEST_BYTES]) < FANOUT


def test_levels_grow_by_the_fanout() -> None:
    assert [level(segment(128 * 1024 * FANOUT**n)) for n in range(4)] == [0, 1, 2, 3]


# -- seen from outside


def test_status_tells_rows_bytes_and_segments_of_every_state(manual: Warehouse) -> None:
    stream(manual, 2)
    views = {v["name"]: v for v in manual.status()["views"]}
    (state,) = views["sums"]["states"]
    assert state["kind"] == "sums"
    assert state["segments"] > 1
    assert state["bytes"] > 0
    manual.compact("sums")
    (after,) = next(v for v in manual.status()["views"] if v["name"] == "sums")["states"]
    assert after["segments"] == 1
    assert 0 < after["rows"] < state["rows"]


def test_the_commands_status_and_compact(manual: Warehouse) -> None:
    stream(manual, 2)
    manual.close()
    own = ["--warehouse", str(manual.path), "--placement", "local"]
    told = CliRunner().invoke(app, [*own, "compact", "sums", "--json"])
    assert told.exit_code == 0, told.output
    assert {r["state"] for r in json.loads(told.stdout)} == {"", "sums"}
    assert CliRunner().invoke(app, [*own, "compact"]).exit_code == 0
    assert json.loads(CliRunner().invoke(app, [*own, "compact", "--json"]).stdout) == []
    shown = CliRunner().invoke(app, [*own, "status"]).stdout
    assert "States" in shown
    assert "buffer" in shown
