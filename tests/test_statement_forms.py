"""How statements are written: names that stay, and the forms that Spark's rules look for."""

from __future__ import annotations

import duckdb

from slackwater.algebra.expr import AggCall, Call, Column, Expr, columns
from slackwater.algebra.relation import Aggregate, Filter, Join, Project, Relation, Scan
from slackwater.engine.compile import compile_query
from slackwater.engine.dialects import LOCAL, SPARK
from slackwater.types import BIGINT, BOOLEAN, Field

ORDERS = Scan("o", "o", (Field("id", BIGINT, False), Field("price", BIGINT, False)))
LINES = Scan("l", "l", (Field("ID", BIGINT, False), Field("qty", BIGINT, False)))
INPUTS = {"o": "o", "l": "l"}


def compared(name: str, a: Expr, b: Expr) -> Expr:
    return Call(BOOLEAN, False, name, (a, b))


def row(*relations: Relation) -> tuple[Column, ...]:
    """The columns of relations side by side."""
    found: list[Column] = []
    for relation in relations:
        found += columns(relation.schema, len(found))
    return tuple(found)


def largest(relation: Relation) -> Relation:
    """The largest value of its last column."""
    call = AggCall(BIGINT, True, "max", (columns(relation.schema)[-1],))
    return Aggregate(relation, (), (call,), ("m",))


def test_a_column_that_is_passed_on_keeps_its_name() -> None:
    kept = Filter(ORDERS, compared("=", *columns(ORDERS.schema)))
    swapped = Project(kept, columns(ORDERS.schema)[::-1], ("a", "b"))
    sql = compile_query(swapped, SPARK, INPUTS, ["a", "b"])
    assert "`price` AS `price`" in sql
    assert "`id` AS `id`" in sql
    assert "`id` AS `price`" not in sql
    assert "`price` AS `id`" not in sql


def test_names_that_are_alike_but_for_their_case_are_told_apart() -> None:
    both = Join(ORDERS, LINES, "inner", compared("=", *row(ORDERS, LINES)[::2]))
    left = Join(both, ORDERS, "left", compared("=", row(both)[2], row(both, ORDERS)[4]))
    with duckdb.connect() as database:
        database.execute("CREATE TABLE o (id BIGINT, price BIGINT); INSERT INTO o VALUES (1, 10)")
        database.execute("CREATE TABLE l (ID BIGINT, qty BIGINT); INSERT INTO l VALUES (1, 3)")
        found = database.execute(compile_query(left, LOCAL, INPUTS)).fetchall()
    assert found == [(1, 10, 1, 3, 1, 10)]


def test_spark_finds_one_value_before_it_plans_the_rest() -> None:
    top = Join(ORDERS, largest(LINES), "inner", compared(">", *row(ORDERS, largest(LINES))[1:3]))
    kept = Project(top, columns(ORDERS.schema), ("id", "price"))
    assert "(SELECT v." in compile_query(kept, SPARK, INPUTS)
    assert "CROSS JOIN" not in compile_query(kept, SPARK, INPUTS)
    assert "(SELECT v." not in compile_query(kept, LOCAL, INPUTS)


def test_two_values_that_are_compared_are_not_both_subqueries() -> None:
    values = largest(ORDERS), largest(LINES)
    both = Join(*values, "inner", compared(">", *row(*values)))
    counted = Project(both, (), ())
    sql = compile_query(counted, SPARK, INPUTS)
    assert sql.count("(SELECT v.") == 1
    assert " FROM  " not in sql


def test_a_value_that_is_given_on_is_joined() -> None:
    both = Join(ORDERS, largest(LINES), "inner", compared(">", *row(ORDERS, largest(LINES))[1:3]))
    assert "CROSS JOIN" in compile_query(both, SPARK, INPUTS)


def test_spark_is_told_of_members_by_in() -> None:
    one = Join(ORDERS, LINES, "semi", compared("=", *row(ORDERS, LINES)[::2]))
    assert " IN (SELECT " in compile_query(one, SPARK, INPUTS)
    assert "SEMI JOIN" in compile_query(one, LOCAL, INPUTS)
    more = one.replace(condition=compared("<", *row(ORDERS, LINES)[::2]))
    assert "LEFT SEMI JOIN" in compile_query(more, SPARK, INPUTS)
