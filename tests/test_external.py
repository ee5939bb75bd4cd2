"""Parquet folders of others: new files, vanished files, rewritten files, files that do not fit."""

from __future__ import annotations

import os
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from slackwater import StateError, UserError, Warehouse
from slackwater.engine import runner


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "it's a lake"
    path.mkdir()
    write(path / "1.parquet", a=[1, 2], b=["x", "y"])
    return path


def write(path: Path, **columns: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), path)


def external(db: Warehouse, folder: Path, columns: str = "", name: str = "lake") -> None:
    path = str(folder).replace("'", "\\'")
    db.sql(f"CREATE TABLE {name} {columns} USING parquet OPTIONS (path '{path}')")


def rows(db: Warehouse, query: str) -> list[tuple[Any, ...]]:
    return sorted(db.sql(query).fetchall(), key=repr)


@pytest.fixture
def lake(any_db: Warehouse, folder: Path) -> Warehouse:
    external(any_db, folder)
    any_db.sql("CREATE MATERIALIZED VIEW sums AS SELECT b, sum(a) AS s FROM lake GROUP BY b")
    any_db.sql("CREATE MATERIALIZED VIEW top AS SELECT max(s) AS m FROM sums")
    any_db.refresh()
    return any_db


# -- what it is


def test_columns_are_taken_from_the_files_or_from_the_statement(
    any_db: Warehouse, folder: Path
) -> None:
    external(any_db, folder)
    external(any_db, folder, "(B STRING)", "narrow")
    assert any_db.sql("SELECT * FROM lake").columns == ["a", "b"]
    assert rows(any_db, "SELECT * FROM narrow") == [("x",), ("y",)]
    assert rows(any_db, "SELECT l.a FROM lake l JOIN narrow n ON l.b = n.b") == [(1,), (2,)]


def test_a_location_and_a_single_file_serve_as_well(db: Warehouse, folder: Path) -> None:
    file = str(folder / "1.parquet").replace("'", "\\'")
    db.sql(f"CREATE TABLE one USING parquet LOCATION '{file}'")
    assert rows(db, "SELECT a FROM one") == [(1,), (2,)]


def test_files_are_found_at_any_depth_but_not_hidden_ones(any_db: Warehouse, folder: Path) -> None:
    write(folder / "day=1" / "2.parquet", a=[3], b=["z"])
    write(folder / "_temporary" / "3.parquet", a=[4], b=["no"])
    write(folder / ".hidden.parquet", a=[5], b=["no"])
    (folder / "readme.txt").write_text("not data")
    external(any_db, folder)
    assert rows(any_db, "SELECT * FROM lake") == [(1, "x"), (2, "y"), (3, "z")]


def test_many_types_come_back_as_they_are(any_db: Warehouse, tmp_path: Path) -> None:
    table = pa.table(
        {
            "i": pa.array([1, None], pa.int32()),
            "d": pa.array([Decimal("1.25"), None], pa.decimal128(10, 2)),
            "t": pa.array([10, None], pa.date32()),
            "u": pa.array([10_000_000, None], pa.timestamp("us", tz="UTC")),
            "s": pa.array(["it's ü", None]),
        }
    )
    (tmp_path / "types").mkdir()
    pq.write_table(table, tmp_path / "types" / "1.parquet")
    external(any_db, tmp_path / "types")
    found = any_db.sql("SELECT * FROM lake").to_arrow()
    assert found.sort_by("i").to_pylist() == table.sort_by("i").to_pylist()


def test_an_empty_folder_needs_columns(any_db: Warehouse, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(UserError) as error:
        external(any_db, tmp_path / "empty")
    assert error.value.code == "SOURCE_EMPTY"
    external(any_db, tmp_path / "empty", "(a BIGINT)")
    any_db.sql("CREATE MATERIALIZED VIEW n AS SELECT count(*) AS n, sum(a) AS s FROM lake")
    any_db.refresh()
    assert rows(any_db, "SELECT * FROM n") == [(0, None)]
    write(tmp_path / "empty" / "1.parquet", a=[5])
    any_db.refresh()
    assert rows(any_db, "SELECT * FROM n") == [(1, 5)]


# -- how it changes


def test_new_files_are_picked_up(lake: Warehouse, folder: Path) -> None:
    assert lake.refresh("top")[-1].mode == "none"
    write(folder / "2.parquet", a=[10], b=["x"])
    assert rows(lake, "SELECT sum(a) FROM lake") == [(13,)]  # tables are read as they are now
    assert rows(lake, "SELECT * FROM sums") == [("x", 1), ("y", 2)]  # views as last refreshed
    lake.refresh("top")
    assert rows(lake, "SELECT * FROM sums") == [("x", 11), ("y", 2)]
    assert rows(lake, "SELECT * FROM top") == [(11,)]
    assert lake.verify("sums")
    assert lake.verify("top")


def test_rows_of_vanished_files_go_and_the_reason_is_told(lake: Warehouse, folder: Path) -> None:
    write(folder / "2.parquet", a=[10], b=["x"])
    lake.refresh()
    (folder / "1.parquet").unlink()
    report = lake.refresh("sums")[0]
    assert "SOURCE_ROWS_GONE" in report.reasons
    assert rows(lake, "SELECT * FROM sums") == [("x", 10)]
    assert lake.verify("sums")
    assert lake.history("sums", limit=1)[0]["reasons"] == report.reasons


def test_all_files_may_vanish_but_not_the_folder(lake: Warehouse, folder: Path) -> None:
    (folder / "1.parquet").unlink()
    lake.refresh("sums")
    assert rows(lake, "SELECT * FROM sums") == []
    folder.rmdir()
    with pytest.raises(UserError) as error:
        lake.refresh("sums")
    assert error.value.code == "SOURCE_MISSING"
    assert rows(lake, "SELECT * FROM sums") == []


def test_a_rewritten_file_is_refused_until_a_full_refresh(lake: Warehouse, folder: Path) -> None:
    write(folder / "1.parquet", a=[7], b=["x"])
    with pytest.raises(StateError, match="rewritten in place") as error:
        lake.refresh("sums")
    assert error.value.code == "SOURCE_FILE_REWRITTEN"
    assert rows(lake, "SELECT * FROM sums") == [("x", 1), ("y", 2)]
    lake.sql("REFRESH MATERIALIZED VIEW sums FULL")
    assert rows(lake, "SELECT * FROM sums") == [("x", 7)]
    assert lake.refresh("sums")[0].mode == "none"


def test_the_way_out_names_the_view_that_reads_the_rewritten_file(
    lake: Warehouse, folder: Path
) -> None:
    write(folder / "1.parquet", a=[7], b=["x"])
    with pytest.raises(StateError, match="REFRESH MATERIALIZED VIEW `sums` FULL"):
        lake.refresh("top", full=True)
    lake.refresh("sums", full=True)
    lake.refresh("top")
    assert rows(lake, "SELECT * FROM top") == [(7,)]


def test_a_rewrite_of_equal_length_and_time_is_noticed_by_its_footer(
    db: Warehouse, folder: Path
) -> None:
    external(db, folder)
    db.sql("CREATE MATERIALIZED VIEW sums AS SELECT sum(a) AS s FROM lake")
    db.refresh()
    file = folder / "1.parquet"
    before = file.stat()
    write(file, a=[3, 4], b=["x", "y"])
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert file.stat().st_size == before.st_size
    with pytest.raises(StateError) as error:
        db.refresh()
    assert error.value.code == "SOURCE_FILE_REWRITTEN"


def test_a_view_over_changed_files_is_stale_not_wrong(lake: Warehouse, folder: Path) -> None:
    write(folder / "2.parquet", a=[10], b=["x"])
    with pytest.raises(UserError) as error:
        lake.verify("sums")
    assert error.value.code == "VIEW_STALE"


# -- files that change while they are read


@pytest.fixture
def disturbed(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Actions that are done between the first look at the files and the end of the reading."""
    actions: list[Any] = []
    place = runner.Runner.place

    def after_the_look(*arguments: Any, **named: Any) -> Any:
        while actions:
            actions.pop()()
        return place(*arguments, **named)

    monkeypatch.setattr(runner.Runner, "place", after_the_look)
    return actions


@pytest.mark.parametrize("what", ["rewritten", "deleted"])
def test_a_file_that_changes_during_a_read_is_noticed(
    lake: Warehouse, folder: Path, disturbed: list[Any], what: str
) -> None:
    file = folder / "1.parquet"
    actions = {"rewritten": lambda: write(file, a=[9], b=["z"]), "deleted": file.unlink}
    disturbed.append(actions[what])
    with pytest.raises(StateError) as error:
        lake.sql("SELECT sum(a) FROM lake")
    assert error.value.code == "SOURCE_CHANGED"


def test_a_refresh_during_which_a_file_changes_commits_nothing(
    lake: Warehouse, folder: Path, disturbed: list[Any]
) -> None:
    write(folder / "2.parquet", a=[10], b=["x"])
    disturbed.append(lambda: write(folder / "2.parquet", a=[99], b=["x"]))
    with pytest.raises(StateError) as error:
        lake.refresh("sums")
    assert error.value.code == "SOURCE_CHANGED"
    assert rows(lake, "SELECT * FROM sums") == [("x", 1), ("y", 2)]
    lake.refresh("sums")  # the file is new and keeps still now
    assert rows(lake, "SELECT * FROM sums") == [("x", 100), ("y", 2)]


# -- what does not fit


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ("(a INT)", "column 'a' is BIGINT, not INT"),
        ("(a STRING)", "column 'a' is BIGINT, not STRING"),
        ("(missing INT)", "has no column 'missing'"),
    ],
)
def test_declared_columns_must_be_in_the_files(
    db: Warehouse, folder: Path, columns: str, message: str
) -> None:
    with pytest.raises(UserError, match=message) as error:
        external(db, folder, columns)
    assert error.value.code == "SOURCE_SCHEMA"


def test_a_new_file_that_does_not_fit_is_named(lake: Warehouse, folder: Path) -> None:
    write(folder / "2.parquet", a=["text"], b=["x"])
    with pytest.raises(UserError, match=r"2\.parquet") as error:
        lake.refresh("sums")
    assert error.value.code == "SOURCE_SCHEMA"
    (folder / "2.parquet").write_bytes(b"this is not Parquet at all")
    with pytest.raises(UserError, match=r"2\.parquet") as error:
        lake.sql("SELECT * FROM lake")
    assert error.value.code == "SOURCE_UNREADABLE"
    (folder / "2.parquet").unlink()
    assert lake.refresh("sums")[0].mode == "none"


def test_columns_may_stand_in_any_order_and_more_may_be_there(
    any_db: Warehouse, folder: Path
) -> None:
    write(folder / "2.parquet", extra=[0], b=["z"], a=[3])
    write(folder / "3.parquet", B=["w"], A=[4])
    external(any_db, folder)
    assert rows(any_db, "SELECT * FROM lake") == [(1, "x"), (2, "y"), (3, "z"), (4, "w")]


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO lake VALUES (1, 'x')",
        "UPDATE lake SET a = 1",
        "DELETE FROM lake",
        "TRUNCATE TABLE lake",
        "MERGE INTO lake USING lake AS s ON lake.a = s.a WHEN MATCHED THEN DELETE",
    ],
)
def test_files_of_others_are_never_changed(db: Warehouse, folder: Path, statement: str) -> None:
    external(db, folder)
    before = (folder / "1.parquet").read_bytes()
    with pytest.raises(UserError) as error:
        db.sql(statement)
    assert error.value.code == "EXTERNAL_TABLE"
    db.sql("DROP TABLE lake")
    assert (folder / "1.parquet").read_bytes() == before


def test_rows_may_be_copied_into_a_managed_table(any_db: Warehouse, folder: Path) -> None:
    external(any_db, folder)
    any_db.sql("CREATE TABLE own AS SELECT * FROM lake")
    any_db.sql("INSERT INTO own SELECT a + 10, b FROM lake")
    (folder / "1.parquet").unlink()
    assert rows(any_db, "SELECT a FROM own") == [(1,), (11,), (12,), (2,)]


@pytest.mark.parametrize(
    ("clause", "code"),
    [
        ("(a INT) USING delta OPTIONS (path '/x')", "SOURCE_NOT_YET"),
        ("USING iceberg OPTIONS (path '/x')", "SOURCE_NOT_YET"),
        ("(a INT) USING kafka OPTIONS (topic 't')", "SOURCE_NOT_YET"),
        ("(a INT) USING csv OPTIONS (path '/x')", "BAD_OPTION"),
        ("USING parquet OPTIONS (path '/no/such/folder')", "SOURCE_MISSING"),
        ("(a INT NOT NULL) USING parquet OPTIONS (path '/')", "BAD_COLUMNS"),
    ],
)
def test_what_cannot_be_read_yet_is_said(db: Warehouse, clause: str, code: str) -> None:
    with pytest.raises(UserError) as error:
        db.sql(f"CREATE TABLE t {clause}")
    assert error.value.code == code
    assert db.tables().num_rows == 0
