"""ALTER TABLE … ADD COLUMN: what old rows hold, what views see, what is refused."""

from __future__ import annotations

import json
import random
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import slackwater
from slackwater import Warehouse
from slackwater.catalog.codec import body_of
from slackwater.catalog.model import Run, Table, View
from slackwater.cli.app import app
from slackwater.errors import SlackwaterError, StateError, UserError
from slackwater.work import compacting
from tests.conftest import PROOF
from tests.processes import Child
from tests.works import require_no_garbage, require_published, rows

Rows = list[tuple[Any, ...]]
FIRST = "FIRST_REFRESH"

VIEWS = {
    "star": "SELECT * FROM t",
    "sums": "SELECT b, sum(a) AS s, count(*) AS n FROM t GROUP BY b",
    "means": "SELECT b, avg(CAST(a AS DOUBLE)) AS m FROM t GROUP BY b",
    "first": "SELECT a, b FROM t ORDER BY a DESC, b LIMIT 3",
    "pairs (a, b, c)": "SELECT * FROM t x JOIN t y USING (a)",
    "above": "SELECT n, count(*) AS groups FROM sums GROUP BY n",
}


def start(db: Warehouse) -> Warehouse:
    """A table with segments of several kinds: plain rows, deletions, weights above one."""
    db.sql("CREATE TABLE t (a INT, b STRING)")
    db.sql("INSERT INTO t VALUES (1, 'x'), (2, 'y'), (2, 'y'), (3, NULL)")
    db.apply("t", [{"a": 4, "b": "z", "w": 2}], weight_column="w")
    db.sql("DELETE FROM t WHERE a = 1")
    return db


@pytest.fixture
def old(db: Warehouse) -> Warehouse:
    return start(db)


@pytest.fixture
def any_old(any_db: Warehouse) -> Warehouse:
    return start(any_db)


@pytest.fixture
def viewed(old: Warehouse) -> Warehouse:
    """The same with views of many kinds, all refreshed."""
    for name, query in VIEWS.items():
        old.sql(f"CREATE MATERIALIZED VIEW {name} AS {query}")
    old.refresh()
    return old


def content(db: Warehouse, query: str = "SELECT * FROM t") -> Rows:
    return rows(db.sql(query).fetchall())


def require_exact(db: Warehouse) -> None:
    for view in db.catalog.snapshot().views():
        found = db.verify(view.name)
        assert found, str(found)


# -- what rows hold


def test_old_rows_hold_the_default(any_old: Warehouse) -> None:
    told = any_old.sql("ALTER TABLE t ADD COLUMNS (c INT DEFAULT 7, d STRING)")
    assert told.message == "table 't' altered: c, d added"
    assert content(any_old) == [
        (2, "y", 7, None),
        (2, "y", 7, None),
        (3, None, 7, None),
        (4, "z", 7, None),
        (4, "z", 7, None),
    ]


def test_inserts_with_and_without_the_new_column(any_old: Warehouse) -> None:
    any_old.sql("TRUNCATE TABLE t; INSERT INTO t VALUES (1, 'x')")
    any_old.sql("ALTER TABLE t ADD COLUMN c INT DEFAULT 7")
    any_old.sql("INSERT INTO t VALUES (2, 'x', 8), (3, 'x', DEFAULT), (4, 'x', NULL)")
    any_old.sql("INSERT INTO t (a) VALUES (5)")
    any_old.append("t", [{"a": 6, "c": 9}])
    any_old.append("t", [{"b": "y", "a": 7}])
    assert content(any_old, "SELECT a, c FROM t") == [
        (1, 7),
        (2, 8),
        (3, 7),
        (4, None),
        (5, 7),
        (6, 9),
        (7, 7),
    ]


def test_old_rows_are_updated_deleted_and_merged(any_old: Warehouse) -> None:
    any_old.sql("ALTER TABLE t ADD COLUMN c INT DEFAULT 7")
    any_old.sql("INSERT INTO t VALUES (2, 'y', 7), (5, 'v', 1)")
    any_old.sql("UPDATE t SET c = c + a WHERE a = 3")
    any_old.sql("DELETE FROM t WHERE c = 7 AND a = 4")
    assert content(any_old) == [(2, "y", 7), (2, "y", 7), (2, "y", 7), (3, None, 10), (5, "v", 1)]
    any_old.sql("""
        MERGE INTO t USING (SELECT 3 AS a, 0 AS c UNION ALL SELECT 9, 1) s ON t.a = s.a
        WHEN MATCHED THEN UPDATE SET c = s.c
        WHEN NOT MATCHED THEN INSERT (a, b) VALUES (s.a, 'new')""")
    any_old.apply("t", [{"a": 2, "b": "y", "c": 7, "w": -3}], weight_column="w")
    assert content(any_old) == [(3, None, 0), (5, "v", 1), (9, "new", 7)]


def test_a_batch_names_old_rows_with_their_default(old: Warehouse) -> None:
    old.sql("ALTER TABLE t ADD COLUMN c INT DEFAULT 7")
    old.apply("t", [{"a": 2, "b": "y", "op": "delete"}], op_column="op")  # c is 7 here, too
    with pytest.raises(UserError) as refused:
        old.apply("t", [{"a": 2, "b": "y", "c": 8, "op": "delete"}], op_column="op")
    assert refused.value.code == "DELETE_OF_MISSING_ROW"
    assert content(old)[0] == (2, "y", 7)
    assert len(content(old)) == 4


TYPES: dict[str, tuple[str, Any]] = {
    "BOOLEAN": ("true", True),
    "TINYINT": ("-5", -5),
    "BIGINT": ("3000000000", 3_000_000_000),
    "FLOAT": ("2.5", 2.5),
    "DOUBLE": ("1e300", 1e300),
    "DECIMAL(38,2)": ("-0.5", Decimal("-0.50")),
    "STRING": (r"'it\'s ß \\ \n'", "it's ß \\ \n"),
    "DATE": ("DATE '2020-02-29'", date(2020, 2, 29)),
    "TIMESTAMP": (
        "TIMESTAMP '2020-02-29 23:59:59.999999'",
        datetime(2020, 2, 29, 23, 59, 59, 999_999, tzinfo=UTC),
    ),
    "TIMESTAMP_NTZ": ("TIMESTAMP_NTZ '2020-01-01 01:00:00'", datetime(2020, 1, 1, 1)),
    "INT": ("1 + 2 * 3", 7),
}


def test_defaults_of_every_type(any_old: Warehouse) -> None:
    columns = [f"c{i} {t} DEFAULT {v}" for i, (t, (v, _)) in enumerate(TYPES.items())]
    any_old.sql(f"ALTER TABLE t ADD COLUMNS ({', '.join(columns)})")
    expected = tuple(value for _, value in TYPES.values())
    any_old.sql("INSERT INTO t (a) VALUES (9)")
    names = ", ".join(f"c{i}" for i in range(len(TYPES)))
    found = any_old.sql(f"SELECT {names} FROM t WHERE a IN (3, 9)").fetchall()
    assert found == [expected, expected]


def test_the_clock_is_read_when_the_column_is_added(old: Warehouse) -> None:
    old.sql("ALTER TABLE t ADD COLUMN at TIMESTAMP DEFAULT current_timestamp()")
    first = content(old, "SELECT DISTINCT at FROM t")
    assert len(first) == 1
    old.sql("INSERT INTO t (a) VALUES (9)")
    assert content(old, "SELECT DISTINCT at FROM t WHERE a < 9") == first
    assert old.sql("SELECT at FROM t WHERE a = 9").fetchall()[0] > first[0]


def test_columns_are_added_again_and_again(any_old: Warehouse) -> None:
    """Segments of three ages, each with what it lacks."""
    any_old.sql("ALTER TABLE t ADD COLUMN c INT DEFAULT 1; INSERT INTO t VALUES (3, NULL, 5)")
    any_old.sql("ALTER TABLE t ADD COLUMN d INT NOT NULL DEFAULT 2")
    any_old.sql("INSERT INTO t VALUES (3, NULL, 6, 7); DELETE FROM t WHERE a <> 3")
    assert content(any_old) == [(3, None, 1, 2), (3, None, 5, 2), (3, None, 6, 7)]
    assert content(any_old, "SELECT d, count(*) FROM t GROUP BY d") == [(2, 2), (7, 1)]


# -- the statement


@pytest.mark.parametrize(
    "columns",
    ["COLUMN c INT", "COLUMN (c INT)", "COLUMNS c INT COMMENT 'why'", "columns(c int)"],
)
def test_forms(old: Warehouse, columns: str) -> None:
    old.sql(f"alter TABLE T ADD {columns}")
    assert old.sql("SELECT * FROM t").columns == ["a", "b", "c"]


REFUSED = {
    "COLUMN c INT NOT NULL": ("NULL_IN_NOT_NULL", "Give it a DEFAULT"),
    "COLUMN c INT NOT NULL DEFAULT NULL": ("NULL_IN_NOT_NULL", "Give it a DEFAULT"),
    "COLUMN A INT": ("COLUMN_EXISTS", "another name"),
    "COLUMNS (c INT, C STRING)": ("BAD_COLUMNS", "name of its own"),
    "COLUMN __w INT": ("BAD_COLUMNS", "cannot name a column"),
    "COLUMN c INTERVAL YEAR": ("UNSUPPORTED_TYPE", "STRING"),
    "COLUMN c INT DEFAULT 'x'": ("WRONG_TYPES", "Column 'c'"),
    "COLUMN c TINYINT DEFAULT 300": ("CAST_OVERFLOW_IN_TABLE_INSERT", "c"),
    "COLUMN c INT DEFAULT a": ("UNKNOWN_COLUMN", "a"),
    "COLUMN c INT DEFAULT (SELECT 1)": ("DEFAULT_NOT_CONSTANT", "UPDATE"),
    "COLUMN c INT FIRST": ("UNSUPPORTED_STATEMENT", "at the end"),
    "COLUMN c INT AFTER a": ("UNSUPPORTED_STATEMENT", "at the end"),
    "COLUMN a.c INT": ("UNSUPPORTED_STATEMENT", "struct"),
    "COLUMN c INT UNIQUE": ("UNSUPPORTED_STATEMENT", "UNIQUE"),
    "COLUMN c": ("UNSUPPORTED_STATEMENT", "name, type"),
    "COLUMN": ("SYNTAX_ERROR", "a column is expected"),
    "COLUMNS ()": ("SYNTAX_ERROR", "a column is expected"),
    "COLUMNS (c INT) AS (SELECT 1)": ("SYNTAX_ERROR", "only a column"),
    "COLUMN c INT nonsense": ("SYNTAX_ERROR", "nonsense"),
    "CONSTRAINT k CHECK (a > 0)": ("UNSUPPORTED_STATEMENT", "CHECK"),
}


@pytest.mark.parametrize("columns", REFUSED)
def test_what_is_refused_changes_nothing(old: Warehouse, columns: str) -> None:
    before, commit = content(old), old.catalog.snapshot().commit
    code, told = REFUSED[columns]
    with pytest.raises(UserError) as refused:
        old.sql(f"ALTER TABLE t ADD {columns}")
    assert refused.value.code == code
    assert told in str(refused.value)
    assert (content(old), old.catalog.snapshot().commit) == (before, commit)


@pytest.mark.spark
@pytest.mark.parametrize(
    ("default", "code"),
    [("rand()", "DEFAULT_NOT_CONSTANT"), ("array(1)", "UNSUPPORTED_TYPE")],
)
def test_defaults_that_are_spark_s(spark_db: Warehouse, default: str, code: str) -> None:
    spark_db.sql("CREATE TABLE t (a INT); INSERT INTO t VALUES (1)")
    type = "DOUBLE" if default == "rand()" else "ARRAY<INT>"
    with pytest.raises(UserError) as refused:
        spark_db.sql(f"ALTER TABLE t ADD COLUMN c {type} DEFAULT {default}")
    assert refused.value.code == code


@pytest.mark.spark
@pytest.mark.proof
def test_columns_of_nested_types(spark_db: Warehouse) -> None:
    spark_db.sql("CREATE TABLE t (a INT); INSERT INTO t VALUES (1)")
    spark_db.sql("ALTER TABLE t ADD COLUMNS (c ARRAY<INT>, d STRUCT<x: INT> DEFAULT NULL)")
    spark_db.sql("INSERT INTO t VALUES (2, array(1, NULL), named_struct('x', 3))")
    assert content(spark_db) == [(1, None, None), (2, [1, None], {"x": 3})]


@pytest.mark.spark
def test_defaults_that_only_spark_computes_are_read_by_both(spark_db: Warehouse) -> None:
    spark_db.sql("CREATE TABLE t (a INT); INSERT INTO t VALUES (1)")
    defaults = "c BINARY DEFAULT X'00ff', d STRING DEFAULT reverse('ab')"
    spark_db.sql(f"ALTER TABLE t ADD COLUMNS ({defaults}, e DOUBLE DEFAULT double('NaN'))")
    with slackwater.connect(spark_db.path, placement="local") as db:
        for opened in (spark_db, db):
            ((a, c, d, e),) = content(opened)
            assert (a, bytes(c), d, str(e)) == (1, b"\x00\xff", "ba", "nan")


def test_only_tables_of_ours_get_columns(old: Warehouse, tmp_path: Path) -> None:
    files = tmp_path / "files"
    files.mkdir()
    pq.write_table(pa.table({"n": [1]}), files / "1.parquet")
    old.sql(f"CREATE TABLE outside USING parquet OPTIONS (path '{files}')")
    old.sql("CREATE MATERIALIZED VIEW v AS SELECT * FROM t")
    codes = {"outside": "EXTERNAL_TABLE", "v": "NOT_A_TABLE", "nowhere": "UNKNOWN_TABLE"}
    for name, code in codes.items():
        with pytest.raises(UserError) as refused:
            old.sql(f"ALTER TABLE {name} ADD COLUMN c INT")
        assert refused.value.code == code
        assert refused.value.hint
    with pytest.raises(UserError) as refused, old.transaction():
        old.sql("ALTER TABLE t ADD COLUMN c INT")
    assert refused.value.code == "IN_TRANSACTION"


def test_it_is_told_everywhere(old: Warehouse) -> None:
    old.sql("ALTER TABLE t ADD COLUMN c INT NOT NULL DEFAULT 7")
    assert old.sql("DESCRIBE t").fetchall()[2] == ("c", "INT", False, "7", None)
    assert old.tables().fetchall() == [("t", "managed", 3, 3)]
    assert old.status()["tables"][0]["columns"] == 3
    event = old.history("t")[0]
    assert (event["kind"], event["table"], event["columns"]) == ("alter", "t", ["c"])
    found = CliRunner().invoke(app, ["-w", str(old.path), "--placement", "local", "status"])
    assert found.exit_code == 0
    assert "columns" in found.stdout
    machine = CliRunner().invoke(app, ["-w", str(old.path), "status", "--json"])
    assert json.loads(machine.stdout)["tables"][0]["columns"] == 3


# -- views


def test_views_keep_their_columns_and_go_on_incrementally(viewed: Warehouse) -> None:
    """Changes before and after it in one refresh; each view means what it meant."""
    schemas = {v.name: v.schema for v in viewed.catalog.snapshot().views()}
    viewed.sql("INSERT INTO t VALUES (5, 'x'); UPDATE t SET b = 'w' WHERE a = 3")
    viewed.sql("ALTER TABLE t ADD COLUMNS (c INT DEFAULT 7, s STRING)")
    viewed.sql("INSERT INTO t VALUES (6, 'x', 1, 's'); DELETE FROM t WHERE a = 2")
    reports = {r.view: (r.mode, r.reasons) for r in viewed.refresh()}
    assert reports == dict.fromkeys(schemas, ("incremental", []))
    assert {v.name: v.schema for v in viewed.catalog.snapshot().views()} == schemas
    require_exact(viewed)
    require_published(viewed)
    assert content(viewed, "SELECT * FROM star") == content(viewed, "SELECT a, b FROM t")
    joined = "SELECT x.a, x.b, y.b FROM t x JOIN t y ON x.a = y.a"
    assert content(viewed, "SELECT * FROM pairs") == content(viewed, joined)


def test_adding_a_column_leaves_views_fresh(viewed: Warehouse) -> None:
    viewed.sql("ALTER TABLE t ADD COLUMN c INT DEFAULT 7")
    assert all(view["fresh"] for view in viewed.status()["views"])
    assert {r.mode for r in viewed.refresh()} == {"none"}
    require_exact(viewed)
    assert viewed.explain("star").count("c#") == 0
    assert {r.mode for r in viewed.refresh(full=True)} == {"full"}
    require_exact(viewed)


def test_a_name_that_comes_to_be_ambiguous_is_still_clear_to_a_view(old: Warehouse) -> None:
    old.sql("CREATE TABLE u (a INT, d STRING); INSERT INTO u VALUES (2, 'two')")
    old.sql("CREATE MATERIALIZED VIEW v AS SELECT d FROM t JOIN u ON t.a = u.a")
    old.sql("CREATE MATERIALIZED VIEW w AS SELECT * FROM t NATURAL JOIN u")
    old.refresh()
    old.sql("ALTER TABLE t ADD COLUMN d STRING DEFAULT 'other'; INSERT INTO t (a) VALUES (2)")
    assert {r.mode for r in old.refresh()} == {"incremental"}
    assert content(old, "SELECT * FROM v") == [("two",)] * 3
    assert content(old, "SELECT * FROM w") == [(2, "y", "two"), (2, "y", "two"), (2, None, "two")]
    require_exact(old)


def test_views_defined_later_see_the_column(viewed: Warehouse) -> None:
    viewed.sql("ALTER TABLE t ADD COLUMN c INT DEFAULT 7")
    viewed.sql("CREATE MATERIALIZED VIEW by_c AS SELECT c, sum(a) AS s FROM t GROUP BY c")
    viewed.sql("CREATE OR REPLACE MATERIALIZED VIEW star AS SELECT * FROM t")
    viewed.refresh()
    assert content(viewed, "SELECT * FROM by_c") == [(7, 15)]
    assert content(viewed, "SELECT * FROM star") == content(viewed)
    viewed.sql("UPDATE t SET c = 8 WHERE a = 4; ALTER TABLE t ADD COLUMN d INT DEFAULT 1")
    viewed.sql("INSERT INTO t VALUES (1, 'x', 8, 2)")
    assert {r.mode for r in viewed.refresh()} == {"incremental"}
    assert content(viewed, "SELECT * FROM by_c") == [(7, 7), (8, 9)]
    assert content(viewed, "SELECT * FROM star") == content(viewed, "SELECT a, b, c FROM t")
    require_exact(viewed)


def test_a_view_is_verified_at_its_refresh_before_the_column(viewed: Warehouse) -> None:
    viewed.sql("INSERT INTO t VALUES (8, 'n')")
    viewed.refresh()
    viewed.sql("ALTER TABLE t ADD COLUMN c INT DEFAULT 7; INSERT INTO t VALUES (9, 'n', 1)")
    require_exact(viewed)
    assert content(viewed, "SELECT s FROM sums WHERE b = 'n'") == [(8,)]


@pytest.mark.spark
@pytest.mark.proof
def test_views_on_spark_go_on_incrementally(spark_db: Warehouse) -> None:
    start(spark_db)
    for name in ("star", "sums"):
        spark_db.sql(f"CREATE MATERIALIZED VIEW {name} AS {VIEWS[name]}")
    spark_db.refresh()
    spark_db.sql("INSERT INTO t VALUES (5, 'x')")
    spark_db.sql("ALTER TABLE t ADD COLUMN c INT DEFAULT 7")
    spark_db.sql("INSERT INTO t VALUES (6, 'x', 1); DELETE FROM t WHERE a = 2 AND c = 7")
    assert {r.mode for r in spark_db.refresh()} == {"incremental"}
    require_exact(spark_db)


# -- what is kept


def test_compaction_writes_the_column_into_old_rows(viewed: Warehouse) -> None:
    viewed.sql("ALTER TABLE t ADD COLUMN c INT DEFAULT 7; INSERT INTO t VALUES (3, NULL, 7)")
    viewed.sql("DELETE FROM t WHERE a = 2")
    viewed.refresh()
    before = content(viewed)
    viewed.compact()
    table = viewed.catalog.snapshot().find("t")
    assert table is not None
    segments = viewed.catalog.snapshot().segments(table.id)
    assert [(s.width, dict(s.missing)) for s in segments] == [(3, {})]
    assert content(viewed) == before
    viewed.sql("ALTER TABLE t ADD COLUMN d INT DEFAULT 8")
    viewed.sql("UPDATE t SET c = d, a = 5 WHERE a = 3")
    assert {r.mode for r in viewed.refresh()} == {"incremental"}
    assert content(viewed, "SELECT c, d, count(*) FROM t GROUP BY c, d") == [(7, 8, 2), (8, 8, 2)]
    require_exact(viewed)
    require_no_garbage(viewed)


def test_a_compaction_that_began_before_ends_after(
    viewed: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its files lack the column, whatever the table has by then."""
    write = compacting._Compaction._write

    def overtaken(self: Any, run: Run) -> Any:
        written = write(self, run)
        if self.owner.name == "t":
            viewed.sql("ALTER TABLE t ADD COLUMN c INT DEFAULT 7")
        return written

    monkeypatch.setattr(compacting._Compaction, "_write", overtaken)
    assert viewed.compact("t")
    assert {c for _, _, c in content(viewed)} == {7}
    viewed.sql("DELETE FROM t WHERE a = 2")
    assert {r.mode for r in viewed.refresh()} == {"incremental"}
    require_exact(viewed)


def test_all_is_there_after_reopening(viewed: Warehouse) -> None:
    viewed.sql("ALTER TABLE t ADD COLUMN c DECIMAL(5, 2) DEFAULT 1.5")
    viewed.sql("INSERT INTO t (a) VALUES (9)")
    before = content(viewed)
    viewed.close()
    with slackwater.connect(viewed.path, placement="local", refresh="incremental") as db:
        assert content(db) == before
        db.sql("DELETE FROM t WHERE c = 1.5 AND a = 2")
        assert {r.mode for r in db.refresh()} == {"incremental"}
        require_exact(db)


def test_warehouses_from_before_widths_were_kept(viewed: Warehouse) -> None:
    """Their segments and views have what their table began with."""
    for relation in (*viewed.catalog.snapshot().tables(), *viewed.catalog.snapshot().views()):
        assert body_of(relation).keys() & {"fills", "widths"}
    with viewed.catalog._database.writing() as connection:
        connection.exec_driver_sql("UPDATE segments SET width = 0")
        for row in connection.exec_driver_sql("SELECT row_id, body FROM definitions").all():
            body = {k: v for k, v in json.loads(row.body).items() if k not in ("fills", "widths")}
            update = "UPDATE definitions SET body = ? WHERE row_id = ?"
            connection.exec_driver_sql(update, (json.dumps(body), row.row_id))
    viewed.close()
    with slackwater.connect(viewed.path, placement="local", refresh="incremental") as db:
        for relation in (*db.catalog.snapshot().tables(), *db.catalog.snapshot().views()):
            assert not (relation.fills if isinstance(relation, Table) else relation.widths)
        db.sql("ALTER TABLE t ADD COLUMN c INT DEFAULT 7; INSERT INTO t VALUES (9, 'n', 1)")
        assert {r.mode for r in db.refresh()} == {"incremental"}
        require_exact(db)
        assert content(db, "SELECT c, count(*) FROM t GROUP BY c") == [(1, 1), (7, 5)]
        star = db.catalog.snapshot().find("star")
        assert isinstance(star, View)
        assert len(star.schema) == 2


# -- all of it together


@pytest.mark.parametrize("stream", range(12 if PROOF else 3))
def test_columns_come_in_the_middle_of_a_stream(
    viewed: Warehouse, rng: random.Random, stream: int
) -> None:
    """Rows as a list in Python knows them, whatever is added, changed and merged in between."""
    model = [{"a": a, "b": b} for a, b in content(viewed)]
    fills: dict[str, int | None] = {}
    for step in range(25):
        what = rng.choice(("insert", "insert", "update", "delete", "add", "compact", "refresh"))
        a, column = rng.randrange(6), rng.choice([*fills, "a"])
        if what == "insert":
            new = {"a": a, "b": rng.choice("xyz"), column: rng.randrange(6)}
            viewed.append("t", [new])
            model.append({"a": a, "b": None, **fills, **new})
        elif what == "update":
            viewed.sql(f"UPDATE t SET b = 'u', {column} = a + 1 WHERE a = {a}")
            for row in (r for r in model if r["a"] == a):
                row |= {"b": "u", column: a + 1}
        elif what == "delete":
            viewed.sql(f"DELETE FROM t WHERE {column} = {a}")
            model = [r for r in model if r[column] != a]
        elif what == "add" and len(fills) < 5:
            name, fill = f"c{step}", rng.choice((None, 0, 3))
            text = "NULL" if fill is None else fill
            viewed.sql(f"ALTER TABLE t ADD COLUMN {name} INT DEFAULT {text}")
            fills[name] = fill
            model = [r | {name: fill} for r in model]
            viewed.sql(f"CREATE MATERIALIZED VIEW v{step} AS SELECT * FROM t WHERE {name} = 3")
        elif what == "compact":
            viewed.compact()
        elif what == "refresh":
            assert "full" not in {r.mode for r in viewed.refresh() if r.reasons != [FIRST]}
        assert content(viewed) == rows([tuple(r.values()) for r in model])
    viewed.refresh()
    require_exact(viewed)
    require_published(viewed)


# -- several writers


def alter(path: Path, name: str) -> str | None:
    """Adds a column; the code of what went wrong."""
    with slackwater.connect(path, placement="local", lease_wait_seconds=30) as db:
        try:
            db.sql(f"ALTER TABLE t ADD COLUMN {name} INT DEFAULT 7")
        except SlackwaterError as error:
            return error.code
    return None


def test_of_two_who_add_the_same_column_one_does(old: Warehouse) -> None:
    writers = [Child(alter, old.path, name) for name in ("c", "c", "d")]
    assert sorted(str(w.result()) for w in writers) == ["COLUMN_EXISTS", "None", "None"]
    assert sorted(old.sql("SELECT * FROM t").columns) == ["a", "b", "c", "d"]


def test_it_waits_for_a_transaction_that_changes_the_table(old: Warehouse) -> None:
    with slackwater.connect(old.path, placement="local", lease_wait_seconds=0.2) as other:
        with old.transaction():
            old.sql("INSERT INTO t VALUES (8, 'n')")
            with pytest.raises(StateError) as held:
                other.sql("ALTER TABLE t ADD COLUMN c INT DEFAULT 7")
            assert held.value.code == "LEASE_HELD"
        other.sql("ALTER TABLE t ADD COLUMN c INT DEFAULT 7")
    assert {c for _, _, c in content(old)} == {7}
