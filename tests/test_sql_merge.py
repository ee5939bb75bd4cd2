"""MERGE with all its clauses, on both engines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from slackwater.errors import SlackwaterError
from tests.conform import sampled

if TYPE_CHECKING:
    from slackwater import Warehouse

SCRIPT = """
CREATE TABLE t (k INT, s STRING, n INT DEFAULT 7);
INSERT INTO t VALUES (1, 'a', 10), (2, 'b', 20), (NULL, 'n', 30), (4, 'd', 40);
CREATE TABLE src (k INT, s STRING, n INT);
INSERT INTO src VALUES (1, 'A', 100), (3, 'C', 300), (NULL, 'N', 500), (4, 'D', NULL)
"""
START: list[tuple[Any, ...]] = [(1, "a", 10), (2, "b", 20), (4, "d", 40), (None, "n", 30)]
MERGES: dict[str, list[tuple[Any, ...]]] = {
    "WHEN MATCHED THEN UPDATE SET *": [
        (1, "A", 100),
        (2, "b", 20),
        (4, "D", None),
        (None, "n", 30),
    ],
    "WHEN MATCHED THEN UPDATE SET n = t.n + src.n, s = src.s": [
        (1, "A", 110),
        (2, "b", 20),
        (4, "D", None),
        (None, "n", 30),
    ],
    "WHEN MATCHED THEN DELETE": [(2, "b", 20), (None, "n", 30)],
    "WHEN MATCHED AND src.n > 50 THEN DELETE": [(2, "b", 20), (4, "d", 40), (None, "n", 30)],
    "WHEN MATCHED AND src.n > 50 THEN DELETE WHEN MATCHED THEN UPDATE SET k = 44": [
        (2, "b", 20),
        (44, "d", 40),
        (None, "n", 30),
    ],
    "WHEN NOT MATCHED THEN INSERT *": [*START, (3, "C", 300), (None, "N", 500)],
    "WHEN NOT MATCHED AND src.k = 3 THEN INSERT (k, s) VALUES (src.k, lower(src.s))": [
        *START,
        (3, "c", 7),
    ],
    "WHEN NOT MATCHED AND src.n > 400 THEN INSERT (k) VALUES (9) WHEN NOT MATCHED THEN INSERT *": [
        *START,
        (3, "C", 300),
        (9, None, 7),
    ],
    "WHEN NOT MATCHED BY TARGET THEN INSERT (k, n) VALUES (src.k, DEFAULT)": [
        *START,
        (3, None, 7),
        (None, None, 7),
    ],
    "WHEN NOT MATCHED BY SOURCE THEN DELETE": [(1, "a", 10), (4, "d", 40)],
    "WHEN NOT MATCHED BY SOURCE AND t.k = 2 THEN UPDATE SET n = DEFAULT": [
        (1, "a", 10),
        (2, "b", 7),
        (4, "d", 40),
        (None, "n", 30),
    ],
    "WHEN MATCHED THEN UPDATE SET s = src.s WHEN NOT MATCHED THEN INSERT * "
    "WHEN NOT MATCHED BY SOURCE THEN DELETE": [
        (1, "A", 10),
        (3, "C", 300),
        (4, "D", 40),
        (None, "N", 500),
    ],
    "WHEN MATCHED AND src.k IN (SELECT k FROM t WHERE n = 10) THEN DELETE": [
        (2, "b", 20),
        (4, "d", 40),
        (None, "n", 30),
    ],
}


def rows(db: Warehouse) -> list[tuple[Any, ...]]:
    return sorted(db.sql("SELECT * FROM t").fetchall(), key=repr)


@pytest.mark.parametrize("clauses", sampled(MERGES, 0.4))
def test_merge(clauses: str, any_db: Warehouse) -> None:
    any_db.sql(SCRIPT)
    any_db.sql(f"MERGE INTO t USING src ON t.k = src.k {clauses}")
    assert rows(any_db) == sorted(MERGES[clauses], key=repr)


def test_null_safe_conditions_match_nulls(any_db: Warehouse) -> None:
    any_db.sql(SCRIPT)
    any_db.sql(
        "MERGE INTO t USING (SELECT * FROM src WHERE k IS NULL) AS x ON t.k <=> x.k"
        " WHEN MATCHED THEN UPDATE SET n = x.n"
    )
    assert (None, "n", 500) in rows(any_db)


def test_duplicate_target_rows_all_change(any_db: Warehouse) -> None:
    any_db.sql(SCRIPT)
    any_db.sql("INSERT INTO t VALUES (1, 'a', 10)")
    any_db.sql("MERGE INTO t USING src ON t.k = src.k WHEN MATCHED THEN UPDATE SET n = src.n")
    assert rows(any_db).count((1, "a", 100)) == 2


MANY = "(SELECT k, n FROM src UNION ALL SELECT k, n + 1 FROM src) AS x"


def test_a_row_matched_twice_is_refused(any_db: Warehouse) -> None:
    any_db.sql(SCRIPT)
    with pytest.raises(SlackwaterError, match="MERGE_CARDINALITY_VIOLATION"):
        any_db.sql(f"MERGE INTO t USING {MANY} ON t.k = x.k WHEN MATCHED THEN UPDATE SET n = x.n")
    assert rows(any_db) == sorted(START, key=repr)


def test_a_row_deleted_twice_is_gone_once(any_db: Warehouse) -> None:
    any_db.sql(SCRIPT)
    any_db.sql(f"MERGE INTO t USING {MANY} ON t.k = x.k WHEN MATCHED THEN DELETE")
    assert rows(any_db) == [(2, "b", 20), (None, "n", 30)]
