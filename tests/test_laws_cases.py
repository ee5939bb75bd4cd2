"""Small cases that once went wrong, each with what it is about as its name."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from slackwater import Warehouse
from slackwater.algebra.expr import TRUE, conjuncts
from slackwater.algebra.relation import Filter, Join, Relation, Scan
from slackwater.sql.bind import bind, context
from slackwater.sql.tables import unordered
from slackwater.tvr.normal import normalize
from slackwater.types import INT, Field, Schema

SCHEMAS: dict[str, Schema] = {
    "r": (Field("a", INT), Field("b", INT)),
    "s": (Field("b", INT), Field("c", INT)),
    "t": (Field("a", INT), Field("c", INT)),
}


def normal(text: str) -> Relation:
    def lookup(name: str) -> Relation | None:
        return Scan(name, name, SCHEMAS[name]) if name in SCHEMAS else None

    oracle: Any = None  # every query here is portable
    return normalize(unordered(bind(text, context(lookup, lambda: list(SCHEMAS), oracle))))


def joins(relation: Relation) -> list[Join]:
    return [node for node in relation.walk() if isinstance(node, Join)]


def filters_above_joins(relation: Relation) -> list[Filter]:
    found = [node for node in relation.walk() if isinstance(node, Filter)]
    return [node for node in found if joins(node)]


def test_a_count_of_nothing_has_a_state_without_columns(any_db: Warehouse) -> None:
    any_db.sql("CREATE TABLE r (a INT); CREATE MATERIALIZED VIEW n AS SELECT count(*) AS n FROM r")
    any_db.refresh()
    for statement, expected in (
        ("INSERT INTO r VALUES (1), (NULL)", 2),
        ("DELETE FROM r", 0),
        ("INSERT INTO r VALUES (3)", 1),
    ):
        any_db.sql(statement)
        any_db.refresh()
        assert any_db.sql("SELECT * FROM n").fetchall() == [(expected,)]


def test_more_equal_rows_go_than_a_buffer_holds_of_them(any_db: Warehouse) -> None:
    """All rows of the buffer are gone then, and what comes after them is not all that is left."""
    any_db.sql("CREATE TABLE r (a INT)")
    any_db.apply("r", [{"a": 1, "w": 300}], weight_column="w")
    any_db.sql("CREATE MATERIALIZED VIEW v AS SELECT a FROM r ORDER BY a LIMIT 2")
    any_db.refresh()
    any_db.apply("r", [{"a": 1, "w": -200}, {"a": 5, "w": 7}], weight_column="w")
    any_db.refresh()
    assert any_db.sql("SELECT a FROM v").fetchall() == [(1,), (1,)]


def test_conditions_of_a_comma_join_are_in_its_joins() -> None:
    query = normal("SELECT r.a FROM r, s, t WHERE r.a = t.a AND s.c = t.c AND r.b > 1")
    assert all(join.condition is not TRUE for join in joins(query))
    assert not filters_above_joins(query)


def test_a_condition_in_every_branch_of_an_or_is_a_condition_of_the_join() -> None:
    query = normal("SELECT r.a FROM r, t WHERE (r.a = t.a AND r.b > 1) OR (r.a = t.a AND t.c < 3)")
    (join,) = joins(query)
    assert len(conjuncts(join.condition)) == 2


def test_a_condition_that_may_raise_stays_above_the_join() -> None:
    query = normal("SELECT r.a FROM r, t WHERE r.a = t.a AND 10 / r.b > 1")
    (join,) = joins(query)
    assert len(conjuncts(join.condition)) == 1
    assert len(filters_above_joins(query)) == 1


def test_conditions_on_the_right_of_an_outer_join_stay_above_it() -> None:
    query = normal("SELECT r.a FROM r LEFT JOIN t ON r.a = t.a WHERE t.c IS NULL AND r.b > 1")
    (above,) = filters_above_joins(query)
    assert len(conjuncts(above.predicate)) == 1
    (join,) = joins(query)
    assert any(isinstance(node, Filter) for node in join.left.walk())


@pytest.mark.parametrize("condition", ["r.a = t.a AND s.c = t.c", "r.a = t.a OR s.c = t.c"])
def test_joins_in_another_order_give_the_same_rows(db: Warehouse, condition: str) -> None:
    for name in SCHEMAS:
        first, second = (f.name for f in SCHEMAS[name])
        db.sql(f"CREATE TABLE {name} ({first} INT, {second} INT)")
        db.sql(f"INSERT INTO {name} VALUES (1, 1), (1, 2), (2, 1), (NULL, 2), (2, NULL)")
    select = "SELECT r.a, r.b, s.b AS sb, s.c, t.a AS ta, t.c AS tc FROM r, s, t"
    db.sql(f"CREATE MATERIALIZED VIEW v AS {select} WHERE {condition}")
    db.refresh()
    db.sql("DELETE FROM s WHERE c = 1; INSERT INTO t VALUES (2, 2), (1, 1)")
    db.sql("UPDATE r SET b = 7 WHERE a = 1")
    assert [report.mode for report in db.refresh()] == ["incremental"]
    assert db.verify("v").equal, str(db.verify("v"))


def test_rows_of_many_decimal_places_that_come_several_times(any_db: Warehouse) -> None:
    """A product of 38 digits and a weight would be rounded to six places."""
    any_db.sql("CREATE TABLE r (a INT, x DECIMAL(12,9))")
    any_db.sql("CREATE MATERIALIZED VIEW v AS SELECT a, sum(x) AS n FROM r GROUP BY a")
    any_db.refresh()
    any_db.apply("r", [{"a": 1, "x": Decimal("0.000000001"), "w": 3}], weight_column="w")
    assert [report.mode for report in any_db.refresh()] == ["incremental"]
    assert any_db.sql("SELECT * FROM v").fetchall() == [(1, Decimal("0.000000003"))]
