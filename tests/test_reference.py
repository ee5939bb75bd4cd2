"""Reference texts: ties broken by all remaining output columns, NULLs first."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from slackwater.errors import UserError
from slackwater.sql.reference import tie_broken

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TABLES = {"t": ["k", "a", "b"], "u": ["k", "c"]}

CASES = {
    # nothing is left to chance: the very text
    "select  a from t order by a": "select  a from t order by a",
    "select a, rank() over (order by b) from t": "select a, rank() over (order by b) from t",
    "select a from t limit all": "select a from t limit all",
    "select a, b from t order by all limit 3": "select a, b from t order by all limit 3",
    "select a from t order by a limit 3": "select a from t order by a limit 3",
    # LIMIT and OFFSET
    "SELECT a, b FROM t LIMIT 3": "SELECT a, b FROM t ORDER BY 1, 2 LIMIT 3",
    "SELECT a, b FROM t OFFSET 3": "SELECT a, b FROM t ORDER BY 1, 2 OFFSET 3",
    "SELECT a, b FROM t ORDER BY 2 DESC LIMIT 3": "SELECT a, b FROM t ORDER BY 2 DESC, 1 LIMIT 3",
    "SELECT t.a AS x, b FROM t ORDER BY t.a LIMIT 3": (
        "SELECT t.a AS x, b FROM t ORDER BY t.a, 1, 2 LIMIT 3"
    ),
    "SELECT a FROM t UNION ALL SELECT c FROM u LIMIT 3": (
        "SELECT a FROM t UNION ALL SELECT c FROM u ORDER BY 1 LIMIT 3"
    ),
    "(SELECT a FROM t LIMIT 2) LIMIT 1": "(SELECT a FROM t ORDER BY 1 LIMIT 2) ORDER BY 1 LIMIT 1",
    "SELECT (SELECT max(c) FROM u LIMIT 1) FROM t WHERE a IN (SELECT c FROM u LIMIT 2)": (
        "SELECT (SELECT max(c) FROM u ORDER BY 1 LIMIT 1) FROM t"
        " WHERE a IN (SELECT c FROM u ORDER BY 1 LIMIT 2)"
    ),
    # * in the select list
    "SELECT * FROM t LIMIT 3": "SELECT * FROM t ORDER BY 1, 2, 3 LIMIT 3",
    "SELECT * EXCEPT (a) FROM t LIMIT 3": "SELECT * EXCEPT (a) FROM t ORDER BY 1, 2 LIMIT 3",
    "SELECT u.*, a FROM t, u LIMIT 3": "SELECT u.*, a FROM t CROSS JOIN u ORDER BY 1, 2, 3 LIMIT 3",
    "SELECT * FROM t JOIN u USING (k) LIMIT 3": (
        "SELECT * FROM t JOIN u USING (k) ORDER BY 1, 2, 3, 4 LIMIT 3"
    ),
    "SELECT * FROM t LEFT SEMI JOIN u ON t.k = u.k LIMIT 3": (
        "SELECT * FROM t LEFT SEMI JOIN u ON t.k = u.k ORDER BY 1, 2, 3 LIMIT 3"
    ),
    "WITH t AS (SELECT k, a FROM t) SELECT * FROM t LIMIT 3": (
        "WITH t AS (SELECT k, a FROM t) SELECT * FROM t ORDER BY 1, 2 LIMIT 3"
    ),
    "SELECT * FROM (SELECT * FROM u) AS s(x, y) LIMIT 3": (
        "SELECT * FROM (SELECT * FROM u) AS s(x, y) ORDER BY 1, 2 LIMIT 3"
    ),
    # window functions
    "SELECT 1, a, row_number() OVER (PARTITION BY a ORDER BY b DESC) AS n, k FROM t": (
        "SELECT 1, a, row_number() OVER (PARTITION BY a ORDER BY b DESC, k) AS n, k FROM t"
    ),
    "SELECT a, lag(b) OVER (ORDER BY k), rank() OVER (ORDER BY k) FROM t": (
        "SELECT a, lag(b) OVER (ORDER BY k, a, b), rank() OVER (ORDER BY k) FROM t"
    ),
    "SELECT a, count(*), ntile(2) OVER (ORDER BY max(b)) FROM t GROUP BY a": (
        "SELECT a, count(*), ntile(2) OVER (ORDER BY max(b), a, count(*)) FROM t GROUP BY a"
    ),
    "SELECT a, sum(b) OVER (ORDER BY k ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) FROM t": (
        "SELECT a, sum(b) OVER (ORDER BY k, a, b ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) FROM t"
    ),
    "SELECT a, first_value(b) OVER (ORDER BY k), last_value(b) OVER (ORDER BY k) FROM t": (
        "SELECT a, first_value(b) OVER (ORDER BY k, a, b), last_value(b) OVER (ORDER BY k) FROM t"
    ),
    "SELECT a, row_number() OVER w, rank() OVER w FROM t WINDOW w AS (ORDER BY b)": (
        "SELECT a, row_number() OVER (ORDER BY b, a), rank() OVER w FROM t WINDOW w AS (ORDER BY b)"
    ),
    "SELECT a FROM t QUALIFY row_number() OVER (ORDER BY b) = 1": (
        "SELECT a FROM t QUALIFY row_number() OVER (ORDER BY b, a) = 1"
    ),
    "SELECT t.*, row_number() OVER (ORDER BY b) FROM t": (
        "SELECT t.*, row_number() OVER (ORDER BY b, `t`.`k`, `t`.`a`, `t`.`b`) FROM t"
    ),
}


@pytest.mark.parametrize("sql", CASES)
def test_ties_are_broken(sql: str) -> None:
    assert tie_broken(sql, TABLES.__getitem__) == CASES[sql]


@pytest.mark.parametrize("sql", CASES)
def test_a_reference_text_is_its_own_reference(sql: str) -> None:
    assert tie_broken(CASES[sql], TABLES.__getitem__) == CASES[sql]


def test_a_star_needs_its_columns() -> None:
    with pytest.raises(UserError, match="not known at 't'"):
        tie_broken("SELECT * FROM t LIMIT 3")
    with pytest.raises(UserError, match="LATERAL VIEW"):
        tie_broken("SELECT * FROM t LATERAL VIEW explode(a) AS x LIMIT 3", TABLES.__getitem__)


def test_spark_takes_every_reference_text(spark: SparkSession) -> None:
    session = spark.newSession()
    for name, columns in TABLES.items():
        data = session.range(12).selectExpr(
            *(f"id % {i + 2} AS {c}" for i, c in enumerate(columns))
        )
        data.createOrReplaceTempView(name)
    for sql, broken in CASES.items():
        answer, plain = session.sql(broken), session.sql(sql)
        assert [f.dataType for f in answer.schema] == [f.dataType for f in plain.schema]
        assert answer.collect() == session.sql(broken).collect()
