"""Texts bound before are right again only while every name in them means the same."""

from __future__ import annotations

from slackwater import Warehouse
from slackwater.algebra.relation import Relation
from slackwater.sql.bind import Bound
from slackwater.work.world import World


def relation(db: Warehouse, bound: Bound, text: str) -> tuple[Relation, dict[str, str]]:
    """What a text means in a warehouse now, and the reasons met."""
    house = db._house
    context = World(house, house.catalog.snapshot()).context()
    return bound.bind(text, context), context.reasons


def is_known(bound: Bound, text: str) -> bool:
    """Is a text in memory?"""
    return text in bound._known


def test_a_text_is_bound_once(db: Warehouse) -> None:
    db.sql("CREATE TABLE t (a INT)")
    bound, text = Bound(), "SELECT a + 1 AS b FROM t"
    first, _ = relation(db, bound, text)
    assert is_known(bound, text)
    assert relation(db, bound, text)[0] is first


def test_a_replaced_table_is_bound_anew(db: Warehouse) -> None:
    text = "SELECT * FROM t"
    db.sql("CREATE TABLE t (a INT)")
    assert db.sql(text).to_arrow().column_names == ["a"]
    db.sql("DROP TABLE t; CREATE TABLE t (b STRING, c INT)")
    assert db.sql(text).to_arrow().column_names == ["b", "c"]
    db.sql("ALTER TABLE t ADD COLUMN d INT")
    assert db.sql(text).to_arrow().column_names == ["b", "c", "d"]


def test_a_name_in_another_case_is_the_same_name(db: Warehouse) -> None:
    db.sql("CREATE TABLE t (a INT)")
    bound = Bound()
    lower, _ = relation(db, bound, "SELECT a FROM t")
    assert relation(db, bound, "SELECT a FROM T")[0] == lower


def test_the_clock_is_asked_each_time(db: Warehouse) -> None:
    bound, text = Bound(), "SELECT current_timestamp() AS now"
    first, reasons = relation(db, bound, text)
    assert "NOT_DETERMINISTIC" in reasons
    assert not is_known(bound, text)
    assert relation(db, bound, text)[0] is not first


def test_memory_is_bounded(db: Warehouse) -> None:
    bound = Bound(size=3)
    for i in range(10):
        relation(db, bound, f"SELECT {i} AS n")
    assert len(bound._known) <= 3
