"""What the driver's statements do not say twice, and do not check where nothing can go wrong."""

from __future__ import annotations

import duckdb
import pytest

from slackwater.algebra.expr import AggCall, Call, Cast, Expr, columns
from slackwater.algebra.relation import Aggregate, Scan
from slackwater.engine.compile import compile_query
from slackwater.engine.dialects import LOCAL
from slackwater.engine.local_sql import render
from slackwater.types import BIGINT, INT, DataType, Decimal, Field

WIDE = Decimal(38, 2)
ROWS = Scan("t", "t", (Field("k", INT, True), Field("x", WIDE, True)))
K, X = columns(ROWS.schema)


def cast(value: Expr, t: DataType) -> Expr:
    return Cast(t, value.nullable, value)


def test_aggregate_calls_are_written_once() -> None:
    total, count = (
        AggCall(WIDE, True, "sum", (X,)),
        AggCall(BIGINT, False, "count", (X,)),
    )
    mean = AggCall(Decimal(38, 6), True, "avg", (X,))
    sql = compile_query(
        Aggregate(ROWS, (K,), (total, mean, count), ("k", "s", "m", "n")), LOCAL, {"t": "t"}
    )
    assert sql.count("sum(") == 1
    assert sql.count("count(") == 1
    values = "(VALUES (1, 1.50), (1, 2.50), (NULL, NULL)) AS v(k, x)"
    with duckdb.connect() as connection:
        connection.execute(f"CREATE TABLE t AS SELECT k, x::DECIMAL(38,2) AS x FROM {values}")
        found = {k: [str(v) for v in row] for k, *row in connection.execute(sql).fetchall()}
    assert found == {1: ["4.00", "2.000000", "2"], None: ["None", "None", "0"]}


def test_plain_aggregates_stand_by_themselves() -> None:
    count = AggCall(BIGINT, False, "count", (X,))
    sql = compile_query(Aggregate(ROWS, (K,), (count,), ("k", "n")), LOCAL, {"t": "t"})
    assert " AS g" not in sql


@pytest.mark.parametrize(
    ("source", "target", "checked"),
    [
        (BIGINT, Decimal(20, 0), False),
        (BIGINT, Decimal(20, 1), False),
        (BIGINT, Decimal(20, 2), True),
        (INT, Decimal(10, 0), False),
        (INT, Decimal(9, 0), True),
    ],
)
def test_whole_numbers_that_always_fit(source: DataType, target: Decimal, checked: bool) -> None:
    (value,) = columns((Field("x", source, True),))
    assert ("TRY_CAST" in render(cast(value, target), ["x"])) == checked


@pytest.mark.parametrize(
    ("source", "checked"),
    [(Decimal(15, 2), False), (Decimal(33, 2), False), (Decimal(34, 2), True), (BIGINT, False)],
)
def test_a_sign_change_within_34_digits(source: DataType, checked: bool) -> None:
    (value,) = columns((Field("x", source, True),))
    negated = Call(WIDE, True, "neg", (cast(value, WIDE),))
    assert ("34 digits" in render(negated, ["x"])) == checked
