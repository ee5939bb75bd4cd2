"""Traps of incremental maintenance, each by its name, on both engines: sets, order, batches."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from slackwater import UserError, Warehouse
from tests.conftest import LONG, PROOF
from tests.traps import ENGINES, Trap, opened

MILLION = 1_000_000
TINY_BATCHES = 10_000 if LONG else 1_000 if PROOF else 240
STRIDE = 20
"""So many of them share a commit, and the next one deletes; in the long run none do."""


@pytest.fixture(params=ENGINES)
def trap(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Trap]:
    yield from opened(request, tmp_path)


@pytest.fixture
def two(trap: Trap) -> Trap:
    """Two tables of one column each."""
    trap.db.sql("CREATE TABLE a (n INT); CREATE TABLE b (n INT)")
    return trap


@pytest.fixture
def sums(trap: Trap) -> Trap:
    """A table and a view that groups it, both empty."""
    trap.db.sql("CREATE TABLE s (g STRING, n INT)")
    trap.view("SELECT g, sum(n) AS n, count(*) AS k, max(n) AS m FROM s GROUP BY g")
    return trap


# -- distinct and set operations


def test_distinct_flips(two: Trap) -> None:
    two.view("SELECT DISTINCT n FROM a")
    assert two.after_rows("a", [(1, 2), (2, 1)]) == [(1,), (2,)]
    assert two.after_rows("a", [(1, -1), (2, -1)]) == [(1,)]
    assert two.after_rows("a", [(1, -1), (2, 1)]) == [(2,)]


def test_union_flips(two: Trap) -> None:
    two.db.sql("INSERT INTO a VALUES (1), (NULL); INSERT INTO b VALUES (1)")
    assert two.view("SELECT n FROM a UNION SELECT n FROM b") == [(1,), (None,)]
    assert two.after("DELETE FROM a") == [(1,)]
    assert two.after("DELETE FROM b", "INSERT INTO a VALUES (1)") == [(1,)]
    assert two.after("DELETE FROM a") == []


def test_intersect_all_counts(two: Trap) -> None:
    two.view("SELECT n FROM a INTERSECT ALL SELECT n FROM b")
    two.after_rows("a", [(1, 3), (None, 2)])
    assert two.after_rows("b", [(1, 2), (None, 1)]) == [(1,), (1,), (None,)]
    assert two.after_rows("a", [(1, -2)]) == [(1,), (None,)]
    assert two.after_rows("b", [(1, -2), (None, 4)]) == [(None,), (None,)]


def test_except_all_counts(two: Trap) -> None:
    two.view("SELECT n FROM a EXCEPT ALL SELECT n FROM b")
    two.after_rows("b", [(1, 2)])
    assert two.after_rows("a", [(1, 3)]) == [(1,)]
    assert two.after_rows("b", [(1, -1)]) == [(1,), (1,)]
    assert two.after_rows("b", [(1, 5)]) == []


def test_intersect_and_except_flips(two: Trap) -> None:
    two.db.sql("INSERT INTO a VALUES (1), (1), (2); INSERT INTO b VALUES (2)")
    two.view(
        "(SELECT n, 'both' AS w FROM a INTERSECT SELECT n, 'both' FROM b) UNION ALL "
        "(SELECT n, 'left' FROM a EXCEPT SELECT n, 'left' FROM b)"
    )
    assert two.after("INSERT INTO b VALUES (1), (1)") == [(1, "both"), (2, "both")]
    assert two.after("DELETE FROM b WHERE n = 2") == [(1, "both"), (2, "left")]


# -- order


def test_top_k_with_ties(trap: Trap) -> None:
    trap.db.sql("CREATE TABLE t (x STRING, n INT)")
    trap.db.sql("INSERT INTO t VALUES ('a', 1), ('b', 2), ('c', 2), ('d', 2), ('e', 0)")
    query = "SELECT n, x FROM t ORDER BY n DESC LIMIT 2"
    assert trap.view(query) == [(2, "b"), (2, "c")]
    assert trap.after("INSERT INTO t VALUES ('bb', 2)") == [(2, "b"), (2, "bb")]
    assert trap.after("DELETE FROM t WHERE x LIKE 'b%'") == [(2, "c"), (2, "d")]


def test_rows_leave_the_top(trap: Trap) -> None:
    trap.db.sql("CREATE TABLE t (n INT); INSERT INTO t VALUES (1), (2), (3), (4), (5), (5)")
    trap.view("SELECT n FROM t ORDER BY n DESC LIMIT 2 OFFSET 1")
    assert trap.after("DELETE FROM t WHERE n = 5") == [(2,), (3,)]
    assert trap.after("DELETE FROM t WHERE n > 1") == []
    assert trap.after("INSERT INTO t VALUES (NULL), (9)") == [(1,), (None,)]


def test_windows_with_frames_and_peers(trap: Trap) -> None:
    trap.db.sql("CREATE TABLE t (g INT, o INT, n INT)")
    trap.db.sql("INSERT INTO t VALUES (1, 1, 10), (1, 2, 20), (1, 2, 30), (2, 1, 5)")
    trap.view(
        "SELECT g, o, n, sum(n) OVER (PARTITION BY g ORDER BY o) AS running, "
        "sum(n) OVER (PARTITION BY g ORDER BY o, n ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) AS "
        "moving, rank() OVER (PARTITION BY g ORDER BY o) AS place FROM t"
    )
    assert trap.after("INSERT INTO t VALUES (1, 1, 1)") == [
        (1, 1, 1, 11, 1, 1),
        (1, 1, 10, 11, 11, 1),
        (1, 2, 20, 61, 30, 3),
        (1, 2, 30, 61, 50, 3),
        (2, 1, 5, 5, 5, 1),
    ]
    assert trap.after("DELETE FROM t WHERE n = 20", "UPDATE t SET g = 2 WHERE n = 10") == [
        (1, 1, 1, 1, 1, 1),
        (1, 2, 30, 31, 31, 2),
        (2, 1, 10, 15, 15, 1),
        (2, 1, 5, 15, 5, 1),
    ]


# -- values


def test_decimals_at_their_limits(trap: Trap) -> None:
    trap.db.sql("CREATE TABLE d (g INT, p DECIMAL(38,0), q DECIMAL(10,2))")
    most, near, price = "9" * 38, "9" * 37 + "0", Decimal("99999999.99")
    trap.db.sql(f"INSERT INTO d VALUES (1, {near}, {price}), (2, -{most}, -{price})")
    query = "SELECT g, sum(p) AS p, sum(q) AS q FROM d GROUP BY g"
    assert trap.view(query) == [(1, Decimal(near), price), (2, Decimal(f"-{most}"), -price)]
    found = trap.after(f"INSERT INTO d VALUES (1, 4, {price}), (1, 5, 0)")
    assert found[0] == (1, Decimal(most), 2 * price)
    trap.raises("ARITHMETIC_OVERFLOW", "INSERT INTO d VALUES (1, 1, 0)")
    assert trap.after("DELETE FROM d WHERE p < 5 AND p > 0")[0] == (
        1,
        Decimal(f"{near[:-1]}5"),
        price,
    )


def test_dates_and_timestamps(trap: Trap) -> None:
    trap.db.sql("CREATE TABLE t (d DATE, at TIMESTAMP)")
    trap.view("SELECT d, min(at) AS first, max(at) AS last, count(*) AS n FROM t GROUP BY d")
    trap.after(
        "INSERT INTO t VALUES (DATE'0001-01-01', TIMESTAMP'1969-12-31 23:59:59.999999'), "
        "(DATE'2024-02-29', TIMESTAMP'2024-02-29 12:00:00.000001'), (NULL, NULL)"
    )
    micro = datetime(2024, 2, 29, 12, 0, 0, 1, tzinfo=UTC)
    before = datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=UTC)
    assert trap.after(
        "INSERT INTO t VALUES (DATE'2024-02-29', TIMESTAMP'2024-02-29 12:00:00')"
    ) == [
        (None, None, None, 1),
        (date(1, 1, 1), before, before, 1),
        (date(2024, 2, 29), micro.replace(microsecond=0), micro, 2),
    ]
    found = trap.after("UPDATE t SET d = DATE'0001-01-01' WHERE d IS NULL OR at = "
                       "TIMESTAMP'2024-02-29 12:00:00'")  # fmt: skip
    assert found == [
        (date(1, 1, 1), before, micro.replace(microsecond=0), 3),
        (date(2024, 2, 29), micro, micro, 1),
    ]


def test_strings_with_trailing_blanks_and_beyond_ascii(sums: Trap) -> None:
    sums.after("INSERT INTO s VALUES ('a', 1), ('a ', 2), ('A', 3), ('ä', 4), ('a\u0308', 5)")
    assert sums.after("INSERT INTO s VALUES ('a ', 20), ('日本', 6), ('\U0001f600', 7)") == [
        ("A", 3, 1, 3),
        ("a ", 22, 2, 20),
        ("a", 1, 1, 1),
        ("a\u0308", 5, 1, 5),
        ("ä", 4, 1, 4),
        ("日本", 6, 1, 6),
        ("\U0001f600", 7, 1, 7),
    ]
    assert ("a", 1, 1, 1) not in sums.after("DELETE FROM s WHERE g = 'a'")


# -- batches


def test_insert_and_delete_of_the_same_row_in_one_batch(sums: Trap) -> None:
    sums.db.sql("INSERT INTO s VALUES ('b', 1)")
    expected = [("b", 1, 1, 1)]
    assert sums.after("INSERT INTO s VALUES ('a', 1)", "DELETE FROM s WHERE g = 'a'") == expected
    assert sums.after_rows("s", [("a", 1, 1), ("a", 1, -1)]) == expected


def test_delete_and_insert_again(sums: Trap) -> None:
    sums.db.sql("INSERT INTO s VALUES ('a', 1), ('a', 2)")
    expected = sums.refreshed()
    assert sums.after("DELETE FROM s WHERE n = 2", "INSERT INTO s VALUES ('a', 2)") == expected
    assert sums.after("DELETE FROM s") == []
    assert sums.after("INSERT INTO s VALUES ('a', 1), ('a', 2)") == expected


def test_updates_that_change_nothing(sums: Trap) -> None:
    sums.db.sql("INSERT INTO s VALUES ('a', 1), (NULL, NULL)")
    expected = sums.refreshed()
    assert sums.after("UPDATE s SET g = g, n = n") == expected
    assert sums.after_rows("s", [("a", 1, -1), ("a", 1, 1)]) == expected


def test_updates_of_key_and_group_columns(trap: Trap) -> None:
    trap.db.sql("CREATE TABLE c (id INT, land STRING); CREATE TABLE o (c INT, n INT)")
    trap.db.sql("INSERT INTO c VALUES (1, 'x'), (2, 'y'); INSERT INTO o VALUES (1, 5), (2, 7)")
    trap.view("SELECT land, sum(n) AS n FROM c JOIN o ON c.id = o.c GROUP BY land")
    assert trap.after("UPDATE o SET c = 2") == [("y", 12)]
    assert trap.after("UPDATE c SET land = 'z' WHERE id = 2") == [("z", 12)]
    assert trap.after("UPDATE c SET id = 3 - id") == [("x", 12)]  # the keys change places


def test_an_empty_batch(sums: Trap) -> None:
    sums.db.sql("INSERT INTO s VALUES ('a', 1)")
    expected = sums.refreshed()
    assert sums.after() == expected
    assert sums.after("DELETE FROM s WHERE g = 'nobody'") == expected
    sums.db.append("s", pa.table({"g": pa.array([], pa.string()), "n": pa.array([], pa.int32())}))
    assert sums.refreshed() == expected


def test_a_batch_larger_than_the_table(sums: Trap) -> None:
    sums.after("INSERT INTO s VALUES ('a', 1)")
    sums.db.append("s", pa.table({"g": ["a", "b"] * 5_000, "n": range(10_000)}))
    assert sums.refreshed() == [("a", 24_995_001, 5_001, 9_998), ("b", 25_000_000, 5_000, 9_999)]
    assert sums.after("DELETE FROM s WHERE n > 1") == [("a", 1, 2, 1), ("b", 1, 1, 1)]


def test_truncate(sums: Trap) -> None:
    sums.after("INSERT INTO s VALUES ('a', 1), ('b', 2)")
    assert sums.after("TRUNCATE TABLE s") == []
    assert sums.after("INSERT INTO s VALUES ('a', 4)") == [("a", 4, 1, 4)]
    assert sums.after("TRUNCATE TABLE s", "INSERT INTO s VALUES ('c', 9)") == [("c", 9, 1, 9)]


def test_ten_thousand_tiny_batches(sums: Trap) -> None:
    """A refresh comes now and then; a batch in twenty deletes what another one brought."""
    for start in range(0, TINY_BATCHES, STRIDE):
        with nullcontext() if LONG else sums.db.transaction():
            for i in range(start, start + STRIDE):
                sums.db.append("s", [{"g": f"g{i % 7}", "n": i}])
        sums.db.apply("s", [{"g": f"g{start % 7}", "n": start, "w": -1}], weight_column="w")
        if start % (TINY_BATCHES // 4) == 0:
            sums.refreshed()
    batches = TINY_BATCHES - TINY_BATCHES // STRIDE
    assert sum(row[2] for row in sums.refreshed()) == batches


# -- lives of tables and views


def test_a_view_created_before_any_data(sums: Trap) -> None:
    assert sums.refreshed() == []
    assert sums.after("INSERT INTO s VALUES ('a', 1)") == [("a", 1, 1, 1)]


def test_a_view_created_after_a_million_rows(trap: Trap) -> None:
    trap.db.sql("CREATE TABLE s (g INT, n BIGINT)")
    numbers = pa.array(range(MILLION), pa.int64())
    groups = pa.array([i % 1_000 for i in range(MILLION)], pa.int32())
    trap.db.append("s", pa.table({"g": groups, "n": numbers}))
    trap.view("SELECT g, sum(n) AS n, count(*) AS k, max(n) AS m FROM s GROUP BY g")
    trap.after("INSERT INTO s VALUES (7, 1), (-1, 2)", "DELETE FROM s WHERE n = 999999")
    found = {row[0]: row[1:] for row in trap.refreshed()}
    assert found[-1] == (2, 1, 2)
    assert found[7] == (499_507_001, 1_001, 999_007)
    assert found[999] == (499_499_001, 999, 998_999)


def test_views_on_views_follow_in_one_refresh(sums: Trap) -> None:
    sums.db.sql("CREATE MATERIALIZED VIEW above AS SELECT k, count(*) AS n FROM v GROUP BY k")
    for statement, expected in (
        ("INSERT INTO s VALUES ('a', 1), ('b', 1), ('b', 2)", [(1, 1), (2, 1)]),
        ("INSERT INTO s VALUES ('a', 1)", [(2, 2)]),
        ("DELETE FROM s WHERE g = 'a'", [(2, 1)]),
    ):
        sums.db.sql(statement)
        sums.refresher.refresh("above")
        assert sorted(sums.db.sql("SELECT * FROM above").fetchall()) == expected


def test_a_column_added_to_a_table(sums: Trap) -> None:
    """Changes before and after it are one refresh; what was kept for the view is still good."""
    sums.after("INSERT INTO s VALUES ('a', 1), ('a', 2), ('b', 3), ('b', 3)")
    sums.db.sql("CREATE MATERIALIZED VIEW star AS SELECT * FROM s")
    sums.refresher.refresh("star")
    sums.db.sql("INSERT INTO s VALUES ('c', 4); DELETE FROM s WHERE n = 2")
    sums.db.sql("ALTER TABLE s ADD COLUMNS (more INT DEFAULT 7, g2 STRING)")
    found = sums.after("INSERT INTO s VALUES ('c', 5, 8, 'x')", "DELETE FROM s WHERE n = 3")
    assert found == [("a", 1, 1, 1), ("c", 9, 2, 5)]
    assert [r.mode for r in sums.reports] == ["incremental"]
    assert [r.mode for r in sums.refresher.refresh("star")] == ["incremental"]
    assert sorted(sums.db.sql("SELECT * FROM star").fetchall()) == [("a", 1), ("c", 4), ("c", 5)]
    assert sums.refresher.verify("star")


def test_a_column_added_is_read_by_new_views(trap: Trap) -> None:
    """Rows older than it hold its default, in segments of any age and with any weight."""
    trap.db.sql("CREATE TABLE s (g STRING, n INT); INSERT INTO s VALUES ('a', 1), ('a', 1)")
    trap.db.sql("DELETE FROM s WHERE n = 1; INSERT INTO s VALUES ('a', 2), ('b', 3)")
    trap.db.sql("ALTER TABLE s ADD COLUMN more INT DEFAULT 7")
    trap.db.sql("INSERT INTO s (g, n) VALUES ('b', 3); INSERT INTO s VALUES ('b', 4, NULL)")
    trap.view("SELECT more, sum(n) AS n, count(*) AS k, max(g) AS g FROM s GROUP BY more")
    assert trap.refreshed() == [(7, 8, 3, "b"), (None, 4, 1, "b")]
    assert trap.after("UPDATE s SET more = 1 WHERE g = 'a'", "DELETE FROM s WHERE n = 3") == [
        (1, 2, 1, "a"),
        (None, 4, 1, "b"),
    ]
    assert [r.mode for r in trap.reports] == ["incremental"]


def test_a_column_added_to_the_files_of_a_table(trap: Trap, tmp_path: Path) -> None:
    """New files of an external table may have more columns than the view knows."""
    files = tmp_path / "files"
    files.mkdir()
    pq.write_table(pa.table({"g": ["a"], "n": [1]}), files / "1.parquet")
    trap.db.sql(f"CREATE TABLE s USING parquet OPTIONS (path '{files}')")
    assert trap.view("SELECT g, sum(n) AS n FROM s GROUP BY g") == [("a", 1)]
    pq.write_table(pa.table({"n": [4, 5], "more": [1, 2], "g": ["a", "b"]}), files / "2.parquet")
    assert trap.refreshed() == [("a", 5), ("b", 5)]


def test_a_table_replaced(sums: Trap) -> None:
    """A table of the same name and other columns is another table."""
    sums.after("INSERT INTO s VALUES ('a', 1)")
    sums.db.sql("DROP VIEW v; DROP TABLE s; CREATE TABLE s (n BIGINT, g STRING, extra INT)")
    sums.db.sql("INSERT INTO s VALUES (5, 'b', 0), (6, 'b', 0)")
    assert sums.view(sums.query) == [("b", 11, 2, 6)]
    assert sums.after("DELETE FROM s WHERE n = 6") == [("b", 5, 1, 5)]


def test_a_view_replaced(sums: Trap) -> None:
    sums.after("INSERT INTO s VALUES ('a', 1), ('b', 2)")
    sums.query = "SELECT count(*) AS n FROM s WHERE n > 1"
    sums.db.sql(f"CREATE OR REPLACE MATERIALIZED VIEW v AS {sums.query}")
    assert sums.refreshed() == [(1,)]
    assert sums.after("UPDATE s SET n = 3") == [(2,)]


def test_what_is_tested_for_null_may_raise(any_db: Warehouse) -> None:
    """The local engine once answered by the statistics of files, without computing the sum; where
    a column is NOT NULL, both engines know the answer without it."""
    any_db.sql("CREATE TABLE a (n INT); CREATE TABLE b (n INT NOT NULL)")
    for table in ("a", "b"):
        any_db.sql(
            f"CREATE MATERIALIZED VIEW v_{table} AS SELECT n FROM {table} WHERE n + n IS NULL"
        )
        any_db.sql(f"INSERT INTO {table} VALUES (1)")
    any_db.refresh()
    any_db.sql("INSERT INTO a VALUES (2147483647); INSERT INTO b VALUES (2147483647)")
    any_db.refresh("v_b")
    assert any_db.sql("SELECT count(*) FROM v_b").fetchall() == [(0,)]
    for work in (any_db.refresh, lambda: any_db.sql("SELECT n FROM a WHERE n + n IS NULL")):
        with pytest.raises(UserError) as raised:
            work()
        assert raised.value.code == "ARITHMETIC_OVERFLOW"


LARGE_WITH_DELETIONS = """
import sys, numpy as np, pyarrow as pa, slackwater
with slackwater.connect(sys.argv[1], placement="local", compact=False) as db:
    db.sql("CREATE TABLE t (k BIGINT, x BIGINT)")
    rows = np.arange(1_500_000)
    db.append("t", pa.table({"k": rows, "x": rows * 7919 % 1_000_003}))
    db.sql("DELETE FROM t WHERE k % 5000 = 0")
    print(db.sql("SELECT * FROM t").to_arrow().num_rows)
"""


def test_many_rows_with_deletions_are_read_to_the_end(tmp_path: Path) -> None:
    """DuckDB once waited for ever: a result of several pipelines did not fit its buffer."""
    run = [sys.executable, "-c", LARGE_WITH_DELETIONS, str(tmp_path / "w")]
    done = subprocess.run(run, capture_output=True, text=True, timeout=300)
    assert done.stdout.split() == ["1499700"], done.stderr
