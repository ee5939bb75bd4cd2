"""A warehouse whose catalog is a PostgreSQL database."""

from __future__ import annotations

from pathlib import Path

import pytest

import slackwater
from tests.postgres import server

pytestmark = pytest.mark.postgres


def test_a_warehouse_lives_on_postgresql(tmp_path: Path) -> None:
    url = server().fresh_url()
    with slackwater.connect(tmp_path / "w", catalog_url=url, placement="local") as db:
        db.sql("CREATE TABLE sales (id BIGINT, category STRING, price DECIMAL(12,2))")
        db.sql("INSERT INTO sales VALUES (1, 'books', 12.50), (2, 'toys', 3)")
        db.sql(
            "CREATE MATERIALIZED VIEW gross AS SELECT category, SUM(price) AS g FROM sales "
            "GROUP BY category"
        )
        db.refresh("gross")
        db.sql("UPDATE sales SET price = price * 2 WHERE id = 2")
    with (
        slackwater.connect(tmp_path / "w", catalog_url=url, placement="local") as first,
        slackwater.connect(tmp_path / "w", catalog_url=url, placement="local") as second,
    ):
        first.refresh("gross")
        rows = second.sql("SELECT category, CAST(g AS INT) FROM gross ORDER BY category").fetchall()
        assert rows == [("books", 12), ("toys", 6)]
        assert second.verify("gross").equal
        with first.transaction():
            first.sql("DELETE FROM sales WHERE id = 1")
            assert second.sql("SELECT COUNT(*) FROM sales").fetchall() == [(2,)]
        assert second.sql("SELECT COUNT(*) FROM sales").fetchall() == [(1,)]


def test_two_writers_on_postgresql_take_turns(tmp_path: Path) -> None:
    url = server().fresh_url()
    settings = {"catalog_url": url, "placement": "local", "lease_wait_seconds": 0.2}
    with (
        slackwater.connect(tmp_path / "w", **settings) as first,
        slackwater.connect(tmp_path / "w", **settings) as second,
    ):
        first.sql("CREATE TABLE t (a INT)")
        with first.transaction():
            first.sql("INSERT INTO t VALUES (1)")
            with pytest.raises(slackwater.StateError) as held:
                second.sql("INSERT INTO t VALUES (2)")
            assert held.value.code == "LEASE_HELD"
        second.sql("INSERT INTO t VALUES (2)")
        assert sorted(first.sql("SELECT a FROM t").fetchall()) == [(1,), (2,)]
