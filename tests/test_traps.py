"""Traps of incremental maintenance, each by its name, on both engines: joins and aggregates."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pytest

from tests.traps import ENGINES, Trap, opened


@pytest.fixture(params=ENGINES)
def trap(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Trap]:
    yield from opened(request, tmp_path)


@pytest.fixture
def pair(trap: Trap) -> Trap:
    """Two tables to join, empty."""
    trap.db.sql("CREATE TABLE l (k INT, x STRING); CREATE TABLE r (k INT, y INT)")
    return trap


@pytest.fixture
def sales(trap: Trap) -> Trap:
    """One table to group."""
    trap.db.sql("CREATE TABLE s (g STRING, n INT)")
    return trap


# -- NULLs


def test_null_join_keys(pair: Trap) -> None:
    pair.db.sql("INSERT INTO l VALUES (NULL, 'none'), (1, 'one'); INSERT INTO r VALUES (1, 10)")
    pair.view(
        "SELECT l.x, r.y, 'inner' AS how FROM l JOIN r ON l.k = r.k UNION ALL "
        "SELECT l.x, r.y, 'same' FROM l JOIN r ON l.k <=> r.k UNION ALL "
        "SELECT l.x, r.y, 'left' FROM l LEFT JOIN r ON l.k = r.k"
    )
    found = pair.after("INSERT INTO r VALUES (NULL, 99)")
    assert ("none", 99, "same") in found
    assert ("none", 99, "inner") not in found
    assert ("none", None, "left") in found
    assert ("none", 99, "same") not in pair.after("DELETE FROM r WHERE k IS NULL")


def test_null_groups(sales: Trap) -> None:
    sales.view("SELECT g, count(*) AS k, sum(n) AS n FROM s GROUP BY g")
    assert sales.after("INSERT INTO s VALUES (NULL, 1), (NULL, 2), ('', 3)") == [
        ("", 1, 3),
        (None, 2, 3),
    ]
    assert sales.after("DELETE FROM s WHERE g IS NULL AND n = 1") == [("", 1, 3), (None, 1, 2)]
    assert sales.after("DELETE FROM s WHERE g IS NULL") == [("", 1, 3)]


def test_not_in_with_nulls_on_either_side(pair: Trap) -> None:
    pair.db.sql("INSERT INTO l VALUES (1, 'one'), (2, 'two'), (NULL, 'none')")
    everything = [("none",), ("one",), ("two",)]
    assert pair.view("SELECT x FROM l WHERE k NOT IN (SELECT k FROM r)") == everything
    assert pair.after("INSERT INTO r VALUES (1, 0)") == [("two",)]  # NULL NOT IN (1) is unknown
    assert pair.after("INSERT INTO r VALUES (NULL, 0)") == []
    assert pair.after("INSERT INTO l VALUES (3, 'three')") == []
    assert pair.after("DELETE FROM r WHERE k IS NULL") == [("three",), ("two",)]
    assert pair.after("DELETE FROM r") == [("none",), ("one",), ("three",), ("two",)]


def test_sum_is_null_again_when_its_last_value_leaves(sales: Trap) -> None:
    sales.db.sql("INSERT INTO s VALUES ('a', 1), ('a', NULL)")
    assert sales.view("SELECT g, sum(n) AS n, avg(n) AS m FROM s GROUP BY g") == [("a", 1, 1.0)]
    assert sales.after("DELETE FROM s WHERE n = 1") == [("a", None, None)]
    assert sales.after("UPDATE s SET n = 4") == [("a", 4, 4.0)]


# -- aggregates


def test_the_count_bug(pair: Trap) -> None:
    pair.db.sql("INSERT INTO l VALUES (1, 'one'), (2, 'two'); INSERT INTO r VALUES (1, 5)")
    query = "SELECT x, (SELECT count(*) FROM r WHERE r.k = l.k) AS n FROM l"
    assert pair.view(query) == [("one", 1), ("two", 0)]
    assert pair.after("DELETE FROM r") == [("one", 0), ("two", 0)]
    assert pair.after("INSERT INTO r VALUES (2, 1), (2, 1)") == [("one", 0), ("two", 2)]


def test_a_global_aggregate_over_an_input_that_is_or_becomes_empty(sales: Trap) -> None:
    query = "SELECT count(*) AS k, sum(n) AS n, min(g) AS g FROM s"
    assert sales.view(query) == [(0, None, None)]
    assert sales.after("INSERT INTO s VALUES ('a', 2)") == [(1, 2, "a")]
    assert sales.after("DELETE FROM s") == [(0, None, None)]


def test_a_group_that_vanishes_and_returns(sales: Trap) -> None:
    sales.db.sql("INSERT INTO s VALUES ('a', 1), ('b', 2)")
    sales.view("SELECT g, sum(n) AS n, count(*) AS k FROM s GROUP BY g")
    assert sales.after("DELETE FROM s WHERE g = 'a'") == [("b", 2, 1)]
    assert sales.after("INSERT INTO s VALUES ('a', 7)") == [("a", 7, 1), ("b", 2, 1)]


def test_a_sum_of_zero_is_not_an_empty_group(sales: Trap) -> None:
    sales.view("SELECT g, sum(n) AS n FROM s GROUP BY g")
    assert sales.after("INSERT INTO s VALUES ('a', 1), ('a', -1)") == [("a", 0)]
    assert sales.after("DELETE FROM s WHERE n = 1", "DELETE FROM s WHERE n = -1") == []


def test_having_crossed_in_both_directions(sales: Trap) -> None:
    sales.db.sql("INSERT INTO s VALUES ('a', 1), ('b', 5)")
    query = "SELECT g, sum(n) AS n FROM s GROUP BY g HAVING sum(n) > 4"
    assert sales.view(query) == [("b", 5)]
    assert sales.after("INSERT INTO s VALUES ('a', 4), ('b', -1)") == [("a", 5)]
    assert sales.after("DELETE FROM s WHERE n = 4", "DELETE FROM s WHERE n = -1") == [("b", 5)]


def test_an_extremum_with_ties_is_deleted(sales: Trap) -> None:
    sales.db.sql("INSERT INTO s VALUES ('a', 1), ('a', 1), ('a', 3), ('a', 9), ('a', 9)")
    query = "SELECT g, min(n) AS low, max(n) AS high FROM s GROUP BY g"
    assert sales.view(query) == [("a", 1, 9)]
    assert sales.after_rows("s", [("a", 1, -1), ("a", 9, -1)]) == [("a", 1, 9)]
    assert sales.after_rows("s", [("a", 1, -1), ("a", 9, -1)]) == [("a", 3, 3)]


def test_count_distinct_with_repeats(sales: Trap) -> None:
    sales.db.sql("INSERT INTO s VALUES ('a', 1), ('a', 1), ('a', 2), ('a', NULL)")
    query = "SELECT g, count(DISTINCT n) AS k, sum(DISTINCT n) AS n FROM s GROUP BY g"
    assert sales.view(query) == [("a", 2, 3)]
    assert sales.after_rows("s", [("a", 1, -1)]) == [("a", 2, 3)]
    assert sales.after_rows("s", [("a", 1, -1)]) == [("a", 1, 2)]


def test_floats_do_not_drift_and_come_back_from_nan_and_infinity(trap: Trap) -> None:
    trap.db.sql("CREATE TABLE f (g INT, d DOUBLE); INSERT INTO f VALUES (1, 0.1D), (1, 0.2D)")
    trap.view("SELECT g, sum(d) AS n, avg(d) AS m, stddev(d) AS s FROM f GROUP BY g")
    trap.after("INSERT INTO f VALUES (1, 1e15D)")
    assert trap.after("DELETE FROM f WHERE d = 1e15D")[0][1] == pytest.approx(0.3, rel=1e-12)
    trap.query = "SELECT g, sum(d) AS n, avg(d) AS m, max(d) AS s FROM f GROUP BY g"
    trap.db.sql(f"CREATE OR REPLACE MATERIALIZED VIEW v AS {trap.query}")
    for special in (float("nan"), float("inf")):
        assert str(trap.after_rows("f", [(1, special, 1)])[0][1]) == str(special)
        assert trap.after_rows("f", [(1, special, -1)])[0][1] == pytest.approx(0.3, rel=1e-12)


# -- outer joins


def test_outer_join_loses_its_last_match_and_finds_its_first(pair: Trap) -> None:
    pair.db.sql("INSERT INTO l VALUES (1, 'a'), (1, 'a'), (2, 'b')")
    pair.view("SELECT l.x, r.y FROM l LEFT JOIN r ON l.k = r.k")
    assert pair.after("INSERT INTO r VALUES (1, 7), (1, 7)") == [("a", 7)] * 4 + [("b", None)]
    assert pair.after_rows("r", [(1, 7, -1)]) == [("a", 7)] * 2 + [("b", None)]
    assert pair.after_rows("r", [(1, 7, -1), (2, 8, 2)]) == [("a", None)] * 2 + [("b", 8)] * 2


def test_right_join_with_a_further_condition(pair: Trap) -> None:
    pair.db.sql("INSERT INTO l VALUES (1, 'a'), (1, 'z'); INSERT INTO r VALUES (1, 7), (3, 9)")
    pair.view("SELECT l.x, r.k, r.y FROM l RIGHT JOIN r ON l.k = r.k AND l.x < 'm'")
    assert pair.after("DELETE FROM l WHERE x = 'a'") == [(None, 1, 7), (None, 3, 9)]
    assert pair.after("UPDATE l SET x = 'b', k = 3") == [("b", 3, 9), (None, 1, 7)]


def test_full_join_with_both_sides_changing_in_one_batch(pair: Trap) -> None:
    pair.db.sql("INSERT INTO l VALUES (1, 'a'), (2, 'b'); INSERT INTO r VALUES (2, 20), (3, 30)")
    pair.view("SELECT l.k, l.x, r.k AS rk, r.y FROM l FULL JOIN r ON l.k = r.k")
    found = pair.after(
        "DELETE FROM l WHERE k = 2", "INSERT INTO l VALUES (3, 'c'), (4, 'd')",
        "DELETE FROM r WHERE k = 3", "INSERT INTO r VALUES (1, 10), (4, 40)",
    )  # fmt: skip
    assert found == [
        (1, "a", 1, 10),
        (3, "c", None, None),
        (4, "d", 4, 40),
        (None, None, 2, 20),
    ]


def test_three_way_outer_joins(pair: Trap) -> None:
    pair.db.sql("CREATE TABLE m (y INT, z STRING); INSERT INTO l VALUES (1, 'a'), (2, 'b')")
    pair.view("SELECT l.x, r.y, m.z FROM l LEFT JOIN r ON l.k = r.k FULL JOIN m ON r.y = m.y")
    assert pair.after("INSERT INTO r VALUES (1, 5)", "INSERT INTO m VALUES (5, 'm'), (6, 'n')") == [
        ("a", 5, "m"),
        ("b", None, None),
        (None, None, "n"),
    ]
    assert pair.after("UPDATE r SET y = 6", "DELETE FROM l WHERE k = 2") == [
        ("a", 6, "n"),
        (None, None, "m"),
    ]
    assert pair.after("DELETE FROM r", "DELETE FROM m WHERE y = 6") == [
        ("a", None, None),
        (None, None, "m"),
    ]


# -- joins


def test_a_self_join_where_one_batch_changes_both_sides(trap: Trap) -> None:
    trap.db.sql("CREATE TABLE e (id INT, boss INT); INSERT INTO e VALUES (1, NULL), (2, 1)")
    trap.view("SELECT a.id, b.id AS boss FROM e a JOIN e b ON a.boss = b.id")
    found = trap.after("INSERT INTO e VALUES (3, 4), (4, 3)", "UPDATE e SET id = 5 WHERE id = 1")
    assert found == [(3, 4), (4, 3)]
    assert trap.after("UPDATE e SET boss = 5") == [(2, 5), (3, 5), (4, 5), (5, 5)]


def test_the_same_table_three_times(trap: Trap) -> None:
    trap.db.sql("CREATE TABLE e (a INT, b INT); INSERT INTO e VALUES (1, 2), (2, 3)")
    trap.view("SELECT x.a, count(*) AS n FROM e x, e y, e z WHERE x.b = y.a AND y.b = z.a "
              "GROUP BY x.a")  # fmt: skip
    assert trap.after("INSERT INTO e VALUES (3, 1)") == [(1, 1), (2, 1), (3, 1)]
    assert trap.after_rows("e", [(1, 2, 1)]) == [(1, 2), (2, 2), (3, 2)]
    assert trap.after("DELETE FROM e WHERE a = 2") == []


def test_weights_above_one(pair: Trap) -> None:
    pair.view("SELECT l.x, sum(r.y) AS n, count(*) AS k FROM l JOIN r ON l.k = r.k GROUP BY l.x")
    pair.after_rows("l", [(1, "a", 3)])
    assert pair.after_rows("r", [(1, 10, 4)]) == [("a", 120, 12)]
    assert pair.after_rows("r", [(1, 10, -3)]) == [("a", 30, 3)]
    assert pair.after_rows("l", [(1, "a", -2), (1, "b", 2)]) == [("a", 10, 1), ("b", 20, 2)]


def test_semi_and_anti_joins_with_repeated_matches(pair: Trap) -> None:
    pair.db.sql("INSERT INTO l VALUES (1, 'a'), (2, 'b'); INSERT INTO r VALUES (1, 1), (1, 2)")
    pair.view(
        "SELECT x, 'in' AS side FROM l WHERE EXISTS (SELECT 1 FROM r WHERE r.k = l.k) UNION ALL "
        "SELECT x, 'out' FROM l WHERE NOT EXISTS (SELECT 1 FROM r WHERE r.k = l.k)"
    )
    assert pair.after("DELETE FROM r WHERE y = 1") == [("a", "in"), ("b", "out")]
    assert pair.after("UPDATE r SET k = 2") == [("a", "out"), ("b", "in")]
    assert pair.after("DELETE FROM r", "INSERT INTO l VALUES (1, 'a')") == [
        ("a", "out"),
        ("a", "out"),
        ("b", "out"),
    ]


def test_a_scalar_subquery_that_changes_every_row(pair: Trap) -> None:
    pair.db.sql("INSERT INTO l VALUES (1, 'a'), (2, 'b'); INSERT INTO r VALUES (1, 3)")
    pair.view("SELECT x, (SELECT max(y) FROM r) AS m FROM l WHERE k < (SELECT sum(y) FROM r)")
    assert pair.after("INSERT INTO r VALUES (9, -2), (9, 8)") == [("a", 8), ("b", 8)]
    assert pair.after("DELETE FROM r") == []


def test_averages_of_decimals_are_exact(trap: Trap) -> None:
    trap.db.sql("CREATE TABLE p (d DECIMAL(4,2)); INSERT INTO p VALUES (0.01), (0.02), (0.02)")
    assert trap.view("SELECT avg(d) AS m FROM p") == [(Decimal("0.016667"),)]
    assert trap.after("DELETE FROM p WHERE d = 0.01") == [(Decimal("0.020000"),)]
