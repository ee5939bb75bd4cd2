"""Names of tables, views and columns: whatever a user thinks of is a name, and only a name."""

from __future__ import annotations

from pathlib import Path

import pytest

from slackwater import UserError, Warehouse
from slackwater.engine.publish import published_folder
from slackwater.types import quote
from tests.engines import on_both
from tests.works import require_no_garbage, require_published

ODD = {
    "spaces": "my table",
    "outer spaces": " padded ",
    "single quote": "it's",
    "double quote": 'say "hi"',
    "backtick": "back`tick",
    "dot": "a.b.c",
    "semicolon": "a; DROP TABLE b",
    "comment": "a -- b /* c */",
    "parentheses": "f(x), *",
    "umlaut": "größe",
    "chinese": "数据表",
    "arabic": "جدول",
    "emoji": "🌊🌊",
    "combining": "e\u0301",
    "newline": "two\nlines",
    "tab and control": "a\tb\x01c",
    "backslash": "a\\b\\",
    "dollar and braces": "${x} {0} %s",
    "keyword": "SELECT",
    "number": "1",
    "parent": "../x",
    "absolute": "/etc/passwd",
    "folders": "a/b",
    "one dot": ".",
    "two dots": "..",
    "device": "CON",
    "hidden": ".hidden",
    "pointer": "CURRENT",
    "pattern": "*?[a]",
    "255": "x" * 255,
    "256": "ä" * 256,
    "1000": "1000 " * 200,
}


def inside(folder: Path, before: set[Path]) -> None:
    """Nothing was written beside the warehouse."""
    assert set(folder.iterdir()) == before


@on_both("kind", ODD, sample=5, proof=12)
def test_a_table_a_view_and_a_column_of_any_name(
    any_db: Warehouse, tmp_path: Path, kind: str
) -> None:
    name = ODD[kind]
    table, view, column = quote(name), quote(f"{name}v"[-1000:]), quote(name[:200])
    before = set(tmp_path.iterdir())
    any_db.sql(f"CREATE TABLE {table} ({column} INT, other STRING DEFAULT 'd')")
    any_db.sql(f"INSERT INTO {table} ({column}) VALUES (1), (2), (3)")
    any_db.sql(f"UPDATE {table} SET {column} = {column} + 10 WHERE {column} = 2")
    any_db.sql(f"DELETE FROM {table} WHERE {column} = 3")
    any_db.append(name, [{name[:200]: 5, "other": "e"}])
    any_db.sql(f"""CREATE MATERIALIZED VIEW {view} AS
        SELECT {column}, other AS {quote(name[:199] + "2")} FROM {table} t WHERE t.{column} > 1""")
    any_db.sql(f"REFRESH MATERIALIZED VIEW {view}")
    found = any_db.sql(f"SELECT * FROM {view} ORDER BY 1")
    assert found.columns == [name[:200], name[:199] + "2"]
    assert found.fetchall() == [(5, "e"), (12, "d")]
    assert any_db.verify(f"{name}v"[-1000:])
    assert any_db.sql(f"DESCRIBE {table}").num_rows == 2
    assert any_db.tables().fetchall()[0][0] == name
    assert any_db.explain(f"{name}v"[-1000:])
    assert any_db.history(name)
    require_published(any_db)
    any_db.sql(f"DROP VIEW {view}")
    any_db.sql(f"DROP TABLE {table}")
    assert any_db.tables().num_rows == 0
    require_no_garbage(any_db)
    inside(tmp_path, before)


@pytest.mark.parametrize("kind", ["parent", "absolute", "folders", "two dots", "device", "1000"])
def test_results_are_published_inside_the_warehouse(db: Warehouse, kind: str) -> None:
    view = quote(ODD[kind])
    db.sql(f"CREATE MATERIALIZED VIEW {view} AS SELECT 1 AS x")
    db.refresh()
    folder = published_folder(db._house.storage, ODD[kind])
    assert folder.resolve().parent == (db.path / "published").resolve()
    assert len(folder.name.encode()) < 100
    assert (folder / "CURRENT").exists()


def test_names_that_look_alike_on_disk_are_published_apart(db: Warehouse) -> None:
    names = ["a b", "a_b", "a/b", "a.b", "../a b", "A-B", "ä b", "x" * 300, "x" * 301]
    for i, name in enumerate(names):
        db.sql(f"CREATE MATERIALIZED VIEW {quote(name)} AS SELECT {i} AS x")
    db.refresh()
    assert len({published_folder(db._house.storage, name) for name in names}) == len(names)
    require_published(db)


@pytest.mark.parametrize(
    ("first", "second"), [("Sales", "SALES"), ("größe", "GRÖSSE"), ("a b", "A B"), ("İ", "i̇")]
)
def test_names_that_differ_by_case_only_are_one_name(
    any_db: Warehouse, first: str, second: str
) -> None:
    any_db.sql(f"CREATE TABLE {quote(first)} (x INT)")
    for statement in (
        f"CREATE TABLE {quote(second)} (x INT)",
        f"CREATE MATERIALIZED VIEW {quote(second)} AS SELECT 1 AS x",
    ):
        with pytest.raises(UserError) as error:
            any_db.sql(statement)
        assert error.value.code == "NAME_TAKEN"
    any_db.sql(f"INSERT INTO {quote(second)} VALUES (1)")
    assert any_db.sql(f"SELECT * FROM {quote(first)}").fetchall() == [(1,)]


@pytest.mark.parametrize("columns", ["a INT, A INT", "`ä` INT, `Ä` INT", "a INT, b INT, `a` INT"])
def test_columns_that_differ_by_case_only_are_refused(db: Warehouse, columns: str) -> None:
    with pytest.raises(UserError) as error:
        db.sql(f"CREATE TABLE t ({columns})")
    assert error.value.code == "BAD_COLUMNS"


@pytest.mark.parametrize("name", ["", " ", "x" * 1001, "a\0b"])
def test_what_is_no_name_is_refused(db: Warehouse, name: str) -> None:
    for statement in (
        f"CREATE TABLE {quote(name)} (x INT)",
        f"CREATE MATERIALIZED VIEW {quote(name)} AS SELECT 1 AS x",
    ):
        with pytest.raises(UserError) as error:
            db.sql(statement)
        assert error.value.code in ("BAD_NAME", "SYNTAX_ERROR")
    assert db.tables().num_rows == db.views().num_rows == 0


def test_the_name_of_the_weight_is_ours(db: Warehouse) -> None:
    for columns in ("__w BIGINT, x INT", "x INT, `__W` INT"):
        with pytest.raises(UserError) as error:
            db.sql(f"CREATE TABLE t ({columns})")
        assert error.value.code == "BAD_COLUMNS"


def test_text_that_looks_like_a_variable_is_text(any_db: Warehouse) -> None:
    """Spark would put a setting's value in the place of it."""
    query = "SELECT '${spark.app.name}' AS a, concat('${', 'x}') AS b"
    assert any_db.sql(query).fetchall() == [("${spark.app.name}", "${x}")]


def test_a_dot_outside_quotes_is_no_name(db: Warehouse) -> None:
    with pytest.raises(UserError):
        db.sql("CREATE TABLE a.b (x INT)")
    with pytest.raises(UserError):
        db.sql("SELECT * FROM a.b")


def test_internal_names_do_not_collide(any_db: Warehouse) -> None:
    """Columns and tables named as the compiled SQL names its own."""
    any_db.sql("CREATE TABLE n0 (c1 INT, c0 INT, i INT, w INT)")
    any_db.sql("CREATE TABLE incoming (incoming INT)")
    any_db.sql("INSERT INTO n0 VALUES (1, 2, 3, 4), (1, 2, 3, 4)")
    any_db.sql("DELETE FROM n0 WHERE c0 = 3")
    any_db.apply("n0", [{"c1": 1, "c0": 2, "i": 3, "w": 4, "n": -1}], weight_column="n")
    any_db.append("incoming", [{"incoming": 7}])
    query = "WITH n1 AS (SELECT * FROM n0) SELECT c0, c1, i, incoming FROM n1, incoming AS s"
    assert any_db.sql(query).fetchall() == [(2, 1, 3, 7)]
