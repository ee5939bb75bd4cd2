"""INSERT, UPDATE, DELETE have SQL's meaning on both engines; Spark is asked where it knows."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest

from slackwater.errors import SlackwaterError
from tests.conform import sampled

if TYPE_CHECKING:
    from slackwater import Warehouse

SCRIPT = """
CREATE TABLE t (id INT NOT NULL, k INT, s STRING DEFAULT 'new', p DECIMAL(5,2) DEFAULT 1 + 1);
INSERT INTO t VALUES (1, 1, 'a', 1.5), (2, 1, 'b', NULL), (2, 1, 'b', NULL), (3, NULL, NULL, 0);
CREATE TABLE u (k INT, n BIGINT);
INSERT INTO u VALUES (1, 10), (1, 20), (NULL, 30)
"""
CHANGES = {
    "INSERT INTO t SELECT id + 10, k, s, p FROM t WHERE id = 2": [(12, 1, "b", None)] * 2,
    "INSERT INTO t (k, id) VALUES (5, 50)": [(50, 5, "new", Decimal("2.00"))],
    "INSERT INTO t VALUES (50, DEFAULT, DEFAULT, 7)": [(50, None, "new", Decimal("7.00"))],
    "INSERT INTO t (id) SELECT 50 UNION ALL SELECT 51": [
        (50, None, "new", Decimal("2.00")),
        (51, None, "new", Decimal("2.00")),
    ],
    "INSERT INTO t BY NAME SELECT 'x' AS s, 50 AS id": [(50, None, "x", Decimal("2.00"))],
    "INSERT INTO t SELECT n, k, 'c', 1 FROM u WHERE n < 20": [(10, 1, "c", Decimal("1.00"))],
    "INSERT INTO t WITH c AS (SELECT 50 AS id) SELECT id, id, 'c', id FROM c": [
        (50, 50, "c", Decimal("50.00"))
    ],
    "UPDATE t SET id = id + 40 WHERE id = 2": ["-", (42, 1, "b", None), (42, 1, "b", None)],
    "UPDATE t SET k = id, id = 50 WHERE id = 1": ["-", (50, 1, "a", Decimal("1.50"))],
    "UPDATE t SET s = DEFAULT, p = p * 2 WHERE k IS NULL": ["-", (3, None, "new", Decimal("0.00"))],
    "UPDATE t SET id = 50 WHERE k = NULL": [],
    "UPDATE t SET p = 9 WHERE id IN (SELECT k FROM u)": ["-", (1, 1, "a", Decimal("9.00"))],
    "UPDATE t SET p = (SELECT sum(n) FROM u WHERE u.k = t.k) WHERE id = 1": [
        "-",
        (1, 1, "a", Decimal("30.00")),
    ],
    "UPDATE t AS x SET p = 8 WHERE x.id = 3 AND NOT EXISTS (SELECT 1 FROM u WHERE u.k = x.k)": [
        "-",
        (3, None, None, Decimal("8.00")),
    ],
    "DELETE FROM t WHERE id = 2": ["-"],
    "DELETE FROM t WHERE k NOT IN (SELECT k FROM u WHERE k IS NOT NULL)": [],
    "DELETE FROM t WHERE k NOT IN (SELECT k FROM u)": [],
    "DELETE FROM t WHERE NOT EXISTS (SELECT 1 FROM u WHERE u.k = t.k)": ["-"],
    "DELETE FROM t WHERE id > (SELECT avg(id) FROM t)": ["-"],
    "DELETE FROM t WHERE s = 'a' OR k IN (SELECT k FROM u WHERE n > 100)": ["-"],
}


def rows(db: Warehouse, table: str = "t") -> list[tuple[Any, ...]]:
    """A table's rows in an order of their own."""
    return sorted(db.sql(f"SELECT * FROM {table}").fetchall(), key=repr)


def gone(statement: str, before: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """The rows that a statement of CHANGES takes away, said in Python."""
    tests = {
        "id = 2": lambda r: r[0] == 2,
        "id = 1": lambda r: r[0] == 1,
        "k IS NULL": lambda r: r[1] is None,
        "id IN (SELECT k": lambda r: r[0] == 1,
        "x.id = 3": lambda r: r[0] == 3,
        "NOT EXISTS": lambda r: r[1] is None,
        "id > (SELECT": lambda r: r[0] > 2,
        "s = 'a' OR": lambda r: r[2] == "a",
    }
    where = statement.split(" WHERE ", 1)[1] if "SELECT sum" not in statement else "id = 1"
    chosen = next(test for text, test in tests.items() if where.startswith(text))
    return [r for r in before if chosen(r)]


@pytest.mark.parametrize("statement", sampled(CHANGES, 0.4))
def test_changes(statement: str, any_db: Warehouse) -> None:
    any_db.sql(SCRIPT)
    before = rows(any_db)
    added = list(CHANGES[statement])
    expected = list(before)
    if added[:1] == ["-"]:
        for row in gone(statement, before):
            expected.remove(row)
        added = added[1:]
    any_db.sql(statement)
    assert rows(any_db) == sorted(expected + added, key=repr)


REFUSED = {
    "INSERT INTO t VALUES (1, 2)": "COLUMN_COUNT",
    "INSERT INTO t (id, nope) VALUES (1, 2)": "UNKNOWN_COLUMN",
    "INSERT INTO t (id, id) VALUES (1, 2)": "COLUMN_COUNT",
    "INSERT INTO t VALUES (NULL, 1, 'a', 1)": "NULL_IN_NOT_NULL",
    "INSERT INTO t (k) VALUES (1)": "NULL_IN_NOT_NULL",
    "UPDATE t SET id = NULL WHERE id = 1": "NULL_IN_NOT_NULL",
    "UPDATE t SET id = k": "NULL_IN_NOT_NULL",
    "UPDATE t SET nope = 1": "UNKNOWN_COLUMN",
    "INSERT INTO t VALUES (true, 1, 'a', 1)": "WRONG_TYPES",
    "INSERT INTO t VALUES ('1', 1, 'a', 1)": "WRONG_TYPES",
    "UPDATE t SET p = (SELECT n FROM u)": "SCALAR_SUBQUERY_TOO_MANY_ROWS",
    "DELETE FROM t WHERE nope = 1": "UNKNOWN_COLUMN",
    "DELETE FROM t WHERE id": "WRONG_TYPES",
    "DELETE FROM nope": "UNKNOWN_TABLE",
}


@pytest.mark.parametrize("statement", sampled(REFUSED, 0.4))
def test_refused_changes_leave_the_table_as_it_was(statement: str, any_db: Warehouse) -> None:
    any_db.sql(SCRIPT)
    before = rows(any_db)
    with pytest.raises(SlackwaterError) as caught:
        any_db.sql(statement)
    assert caught.value.code == REFUSED[statement]
    assert rows(any_db) == before
