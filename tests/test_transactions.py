"""Transactions: many changes, one version; all of them or none."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import slackwater
from slackwater import UserError, Warehouse
from tests.works import require_no_garbage


@pytest.fixture
def shop(any_db: Warehouse) -> Warehouse:
    any_db.sql("CREATE TABLE stock (item STRING, pieces INT)")
    any_db.sql("CREATE TABLE log (item STRING, change INT)")
    any_db.sql("INSERT INTO stock VALUES ('pen', 10), ('cup', 5)")
    any_db.sql("CREATE MATERIALIZED VIEW sold AS SELECT item, sum(change) s FROM log GROUP BY item")
    return any_db


@pytest.fixture
def other(db: Warehouse) -> Iterator[Warehouse]:
    """A second connection to the warehouse of `db`."""
    with slackwater.connect(db.path, placement="local", lease_wait_seconds=0.1) as opened:
        yield opened


def rows(db: Warehouse, query: str) -> list[tuple[Any, ...]]:
    return sorted(db.sql(query).fetchall())


def versions(db: Warehouse) -> dict[str, int]:
    return {t.name: t.version for t in db.catalog.snapshot().tables()}


def test_many_statements_are_one_version_and_read_what_they_wrote(shop: Warehouse) -> None:
    before, commit = versions(shop), shop.catalog.snapshot().commit
    with shop.transaction():
        shop.sql("INSERT INTO stock VALUES ('ink', 1)")
        assert rows(shop, "SELECT pieces FROM stock WHERE item = 'ink'") == [(1,)]
        shop.sql("UPDATE stock SET pieces = pieces * 3 WHERE item IN ('ink', 'pen')")
        assert rows(shop, "SELECT * FROM stock") == [("cup", 5), ("ink", 3), ("pen", 30)]
        shop.sql("INSERT INTO log SELECT item, -pieces FROM stock")
        shop.sql("DELETE FROM stock WHERE item = 'cup'")
        shop.append("log", [{"item": "ink", "change": 8}])
        assert rows(shop, "SELECT sum(change) FROM log") == [(-30,)]
    assert shop.catalog.snapshot().commit == commit + 1
    assert versions(shop) == {"stock": before["stock"] + 1, "log": before["log"] + 1}
    assert rows(shop, "SELECT * FROM stock") == [("ink", 3), ("pen", 30)]
    shop.refresh()
    assert rows(shop, "SELECT * FROM sold") == [("cup", -5), ("ink", 5), ("pen", -30)]
    assert shop.verify("sold")


def test_truncate_then_insert_replaces_the_content(shop: Warehouse) -> None:
    with shop.transaction():
        shop.sql("INSERT INTO stock VALUES ('lost', 1)")
        shop.sql("TRUNCATE TABLE stock")
        assert rows(shop, "SELECT * FROM stock") == []
        shop.sql("INSERT INTO stock VALUES ('new', 2)")
        shop.sql("UPDATE stock SET pieces = 3")
    assert rows(shop, "SELECT * FROM stock") == [("new", 3)]


def test_an_exception_leaves_nothing(shop: Warehouse) -> None:
    before = versions(shop)

    def half_done() -> None:
        with shop.transaction():
            shop.sql("DELETE FROM stock")
            shop.sql("INSERT INTO log VALUES ('pen', 1)")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        half_done()
    assert versions(shop) == before
    assert rows(shop, "SELECT * FROM stock") == [("cup", 5), ("pen", 10)]
    assert rows(shop, "SELECT * FROM log") == []
    shop.sql("INSERT INTO log VALUES ('pen', 2)")  # the lease is free again
    require_no_garbage(shop)


def test_a_failed_statement_that_is_caught_changes_nothing_by_itself(shop: Warehouse) -> None:
    with shop.transaction():
        shop.sql("INSERT INTO log VALUES ('pen', 1)")
        with pytest.raises(UserError) as error:
            shop.sql("INSERT INTO log SELECT item, pieces / 0 FROM stock")
        assert error.value.code == "DIVIDE_BY_ZERO"
        shop.sql("INSERT INTO log VALUES ('pen', 2)")
    assert rows(shop, "SELECT * FROM log") == [("pen", 1), ("pen", 2)]
    require_no_garbage(shop)


def test_a_transaction_in_which_nothing_changes_makes_no_commit(db: Warehouse) -> None:
    before = db.catalog.snapshot().commit
    with db.transaction():
        assert db.sql("SELECT 1").fetchall() == [(1,)]
    assert db.catalog.snapshot().commit == before


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TABLE t (x INT)",
        "CREATE TABLE t AS SELECT 1 AS x",
        "CREATE MATERIALIZED VIEW v AS SELECT 1 AS x",
        "ALTER MATERIALIZED VIEW v SET (refresh = 'full')",
        "DROP TABLE held",
        "REFRESH MATERIALIZED VIEW v",
    ],
)
def test_definitions_and_refreshes_are_refused_inside(db: Warehouse, statement: str) -> None:
    db.sql("CREATE TABLE held (x INT)")
    with db.transaction():
        db.sql("INSERT INTO held VALUES (1)")
        with pytest.raises(UserError) as error:
            db.sql(statement)
        assert error.value.code == "IN_TRANSACTION"
    assert rows(db, "SELECT * FROM held") == [(1,)]  # the refusal did not spoil the rest


def test_a_nested_transaction_is_refused(db: Warehouse) -> None:
    with db.transaction():
        with pytest.raises(UserError) as error, db.transaction():
            raise AssertionError("this must not begin")
        assert error.value.code == "IN_TRANSACTION"
    with db.transaction():
        assert db.sql("SELECT 1").num_rows == 1


def test_other_connections_see_nothing_until_the_commit(db: Warehouse, other: Warehouse) -> None:
    db.sql("CREATE TABLE a (x INT)")
    db.sql("CREATE TABLE b (x INT)")
    with db.transaction():
        db.sql("INSERT INTO a VALUES (1)")
        db.sql("INSERT INTO b VALUES (2)")
        assert rows(other, "SELECT x FROM a UNION ALL SELECT x FROM b") == []
        with pytest.raises(slackwater.StateError) as error:
            other.sql("INSERT INTO b VALUES (3)")
        assert error.value.code == "LEASE_HELD"
    assert rows(other, "SELECT x FROM a UNION ALL SELECT x FROM b") == [(1,), (2,)]


def test_a_table_dropped_by_somebody_else_cannot_be_committed_to(db: Warehouse) -> None:
    """The lease keeps others from dropping what a transaction changes."""
    db.sql("CREATE TABLE a (x INT)")
    with slackwater.connect(db.path, placement="local", lease_wait_seconds=0.1) as other:
        with db.transaction():
            db.sql("INSERT INTO a VALUES (1)")
            with pytest.raises(slackwater.StateError) as error:
                other.sql("DROP TABLE a")
            assert error.value.code == "LEASE_HELD"
        other.sql("DROP TABLE a")
    with pytest.raises(UserError) as gone:
        db.sql("INSERT INTO a VALUES (2)")
    assert gone.value.code == "UNKNOWN_TABLE"


def test_closing_the_warehouse_inside_rolls_back_and_says_so(db: Warehouse) -> None:
    db.sql("CREATE TABLE a (x INT)")

    def closed_inside() -> None:
        with db.transaction():
            db.sql("INSERT INTO a VALUES (1)")
            db.close()

    with pytest.raises(UserError) as error:
        closed_inside()
    assert error.value.code == "CLOSED"
    with slackwater.connect(db.path, placement="local") as again:
        assert rows(again, "SELECT * FROM a") == []


def test_rows_are_counted_per_statement(db: Warehouse) -> None:
    db.sql("CREATE TABLE a (x INT)")
    with db.transaction():
        assert db.sql("INSERT INTO a VALUES (1), (2), (3)").message == "INSERT: 3 rows"
        assert db.sql("UPDATE a SET x = 0 WHERE x > 1").message == "UPDATE: 2 rows"
        assert db.sql("DELETE FROM a WHERE x = 0").message == "DELETE: 2 rows"
    assert db.history(limit=1)[0]["rows"] == {"insert": 3, "update": 2, "delete": 2}


def test_a_view_of_extrema_is_refreshed_when_its_table_changed_by_nothing(db: Warehouse) -> None:
    db.sql("CREATE TABLE t (k INT, v INT)")
    db.sql("INSERT INTO t VALUES (1, 1), (1, 2)")
    db.sql("CREATE MATERIALIZED VIEW m AS SELECT k, MAX(v) AS v FROM t GROUP BY k")
    db.refresh("m")
    db.sql("DELETE FROM t WHERE k = 7")
    db.sql("UPDATE t SET v = v WHERE k = 7")
    db.refresh("m")
    assert db.verify("m").equal


def test_a_step_that_raises_is_retried_as_a_recompute(db: Warehouse) -> None:
    """The row that cannot be divided by comes and goes within one change."""
    db.sql("CREATE TABLE t (k INT, v INT)")
    db.sql("INSERT INTO t VALUES (1, 1)")
    db.sql("CREATE MATERIALIZED VIEW m AS SELECT k, SUM(10 DIV v) AS n FROM t GROUP BY k")
    db.refresh("m")
    db.sql("INSERT INTO t VALUES (2, 0)")
    db.sql("DELETE FROM t WHERE k = 2")
    (report,) = db.refresh("m")
    assert (report.mode, report.reasons) == ("full", ["STEP_RAISED"])
    assert [step.name for step in report.steps] == ["build sums by 1 keys of m", "recompute m"]
    assert db.verify("m").equal
