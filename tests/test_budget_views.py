"""`state_budget` on views: what is kept, what is let go, and how that is told."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import slackwater
from slackwater import Warehouse
from slackwater.catalog.model import View
from slackwater.stats.cost import KINDS, PRIOR, Model
from slackwater.stats.rows import Change
from slackwater.work import state_bytes
from slackwater.work.keeper import ALIKE, Decision

ORDERS = 40_000
SUMS = """
  SELECT c.region, COUNT(*) AS n, SUM(o.amount) AS total
  FROM orders o JOIN customers c ON o.customer = c.id GROUP BY c.region"""
PARTS = """
  SELECT n.name, SUM(o.amount) AS total FROM orders o
  JOIN customers c ON o.customer = c.id JOIN nations n ON c.nation = n.id GROUP BY n.name"""


def _orders(start: int, rows: int) -> pa.Table:
    ids = np.arange(start, start + rows)
    return pa.table({"id": ids, "customer": ids % 1000, "amount": ids % 97})


@pytest.fixture
def db(tmp_path: Path) -> Iterator[Warehouse]:
    with slackwater.connect(tmp_path / "w", placement="local", compact=False) as db:
        db.sql("CREATE TABLE nations (id BIGINT, name STRING)")
        db.sql("CREATE TABLE customers (id BIGINT, region STRING, nation BIGINT)")
        db.sql("CREATE TABLE orders (id BIGINT, customer BIGINT, amount BIGINT)")
        ids = np.arange(1000)
        regions = [f"r{i % 10}" for i in range(1000)]
        db.append("nations", pa.table({"id": ids[:25], "name": [f"n{i}" for i in range(25)]}))
        db.append("customers", pa.table({"id": ids, "region": regions, "nation": ids % 25}))
        db.append("orders", _orders(0, ORDERS))
        yield db


def _view(db: Warehouse, query: str = SUMS, budget: str = "1 MB", refresh: str = "auto") -> None:
    options = f"state_budget = '{budget}', refresh = '{refresh}'"
    db.sql(f"CREATE OR REPLACE MATERIALIZED VIEW v WITH ({options}) AS {query}")


def _set(db: Warehouse, budget: str) -> None:
    db.sql(f"ALTER MATERIALIZED VIEW v SET (state_budget = '{budget}')")


def _states(db: Warehouse) -> list[dict[str, Any]]:
    return next(v for v in db.status()["views"] if v["name"] == "v")["states"]


def _last(db: Warehouse) -> dict[str, Any]:
    return next(e for e in db.events("v") if e["kind"] == "refresh")


class Expects:
    """In place of what came at the last refreshes."""

    def __init__(self, db: Warehouse, **rows: float) -> None:
        snapshot = db._house.catalog.snapshot()
        found = {name: snapshot.find(name) for name in rows}
        self.changes = {t.id: Change(inserts=rows[n]) for n, t in found.items() if t is not None}

    def expected_changes(self, view: View) -> Mapping[str, Change]:
        return self.changes


def test_without_a_budget_nothing_is_told_of_states(db: Warehouse) -> None:
    db.sql(f"CREATE MATERIALIZED VIEW v AS {SUMS}")
    assert db.refresh("v")[0].states is None
    assert len(_states(db)) == 1
    assert "Budget:" not in db.explain("v")
    assert json.loads(db.explain("v", "json"))["budget"] is None


def test_sums_are_kept_where_there_is_room(db: Warehouse) -> None:
    _view(db, refresh="incremental")
    told = db.refresh("v")[0].states
    assert told is not None
    assert (told["budget"], told["kept"], told["dropped"]) == (1_000_000, ["sums by 1 keys"], [])
    (state,) = _states(db)
    assert 0 < state["bytes"] == told["bytes"] <= 1_000_000
    db.append("orders", _orders(ORDERS, 100))
    report = db.refresh("v")[0]
    assert (report.mode, report.reasons) == ("incremental", [])
    assert _last(db)["states"]["kept"] == ["sums by 1 keys"]
    assert db.verify("v").equal


def test_with_no_room_changes_are_followed_from_the_tables(db: Warehouse) -> None:
    _view(db, budget="0 MB", refresh="incremental")
    db.refresh("v")
    db.append("orders", _orders(ORDERS, 3))
    report = db.refresh("v")[0]
    assert report.mode == "incremental"
    laws = {o["law"] for o in report.operators}
    assert laws == {"delta_join", "recompute_affected_keys"}
    assert _states(db) == []
    assert report.states == {
        "budget": 0,
        "bytes": 0,
        "kept": [],
        "dropped": [],
        "measured": [],
        "expected": None,
    }
    assert db.verify("v").equal


def test_a_smaller_budget_lets_states_go_and_a_larger_one_brings_them_back(db: Warehouse) -> None:
    _view(db, refresh="incremental")
    db.refresh("v")
    _set(db, "0 MB")
    report = db.refresh("v")[0]  # nothing has changed
    assert report.mode == "none"
    assert report.states is not None
    assert report.states["dropped"] == ["sums by 1 keys"]
    assert _states(db) == []
    _set(db, "1 MB")
    assert db.refresh("v")[0].mode == "none"
    db.append("orders", _orders(ORDERS, 10))
    assert db.refresh("v")[0].states["kept"] == ["sums by 1 keys"]  # type: ignore[index]
    assert len(_states(db)) == 1
    assert db.verify("v").equal


def test_a_state_that_turns_out_too_large_is_not_kept(
    db: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not even until the next refresh; nor is it tried again."""
    monkeypatch.setattr(state_bytes, "FILE_BYTES", 0)
    monkeypatch.setattr(state_bytes.StateBytes, "_per_value", 0.001)
    _view(db, budget="1 KB", refresh="incremental")
    told = db.refresh("v")[0].states
    assert told is not None
    assert (told["kept"], told["dropped"], told["bytes"]) == ([], ["sums by 1 keys"], 0)
    assert told["measured"][0]["bytes"] > 1_000
    assert _states(db) == []
    db.append("orders", _orders(ORDERS, 10))
    told = db.refresh("v")[0].states
    assert told is not None
    assert told["measured"] == []
    assert db.verify("v").equal


def test_doubles_are_computed_anew_where_their_rows_are_not_kept(db: Warehouse) -> None:
    """Sums of doubles depend on the order of rows: those given before have to be read."""
    query = SUMS.replace("SUM(o.amount)", "SUM(CAST(o.amount AS DOUBLE) / 3)")
    _view(db, f"SELECT region, total + 1 AS t FROM ({query})", "0 MB", "incremental")
    db.refresh("v")
    db.append("orders", _orders(ORDERS, 10))
    report = db.refresh("v")[0]
    assert (report.mode, report.reasons) == ("full", ["STATE_MISSING"])
    assert db.verify("v").equal
    _set(db, "1 MB")
    db.append("orders", _orders(2 * ORDERS, 10))
    db.refresh("v")
    db.append("orders", _orders(3 * ORDERS, 10))
    assert db.refresh("v")[0].mode == "incremental"
    assert db.verify("v").equal


def test_the_warehouse_may_have_a_budget_for_all_views(db: Warehouse) -> None:
    db.sql("ALTER WAREHOUSE SET (state_budget = '0 MB')")
    db.sql(f"CREATE MATERIALIZED VIEW v AS {SUMS}")
    assert db.refresh("v")[0].states["budget"] == 0  # type: ignore[index]
    assert _states(db) == []


def test_parts_are_kept_for_the_change_that_is_expected(db: Warehouse) -> None:
    """Where reading is dear, and orders come: the few customers of a nation. Where nations come,
    these are of no use."""
    _view(db, PARTS.replace("GROUP BY", "WHERE n.name = 'n3' GROUP BY"), refresh="incremental")
    db.refresh("v")
    _reading_is_dear(db)
    kept = {}
    for table, change in (
        ("orders", "INSERT INTO orders VALUES (-1, 3, 10), (-2, 4, 10)"),
        ("nations", "INSERT INTO nations VALUES (3, 'n3')"),
    ):
        db._house.keeper.arrivals = Expects(db, **{table: 2})
        db.sql(change)
        kept[table] = db.refresh("v")[0].states["kept"]  # type: ignore[index]
        assert db.verify("v").equal
    assert kept["orders"] == ["sums by 1 keys", "rows of Part"]
    assert "rows of Part" not in kept["nations"] or len(kept["nations"]) == 2
    db.sql("INSERT INTO orders VALUES (-3, 3, 1)")  # not what was expected
    assert db.refresh("v")[0].mode == "incremental"
    assert db.verify("v").equal


SIDES = """
  SELECT o.id, c.nation FROM orders o JOIN customers c ON o.customer = c.id
  WHERE o.amount = 5 AND c.region = 'r3'"""


def _reading_is_dear(db: Warehouse) -> None:
    dear = tuple(1e-4 if kind == "scanned" else 1e-9 for kind in KINDS)
    db._house.experience._model = Model(PRIOR | {("local", "cpu"): dear})


def _order(i: int) -> str:
    return f"INSERT INTO orders VALUES ({-i}, {10 * i + 3}, 5), ({-100 - i}, {i}, 6)"


def _customer(i: int) -> str:
    return f"INSERT INTO customers VALUES ({1000 + i}, 'r3', 1), ({2000 + i}, 'r4', 2)"


def _follow(db: Warehouse, changes: list[str]) -> list[dict[str, Any]]:
    """What came of the states at each of some changes, every result as computed anew."""
    told = []
    for change in changes:
        db.sql(change)
        (report,) = db.refresh("v")
        assert report.mode == "incremental"
        assert db.verify("v").equal, change
        assert report.states is not None
        told.append(report.states)
    return told


def test_both_sides_of_a_join_are_kept_where_both_change(db: Warehouse) -> None:
    """In turn, as was seen: then each change meets the rows of the other side. Where orders alone
    come, these are joined with customers; their own rows are of no use."""
    _view(db, SIDES, refresh="incremental")
    db.refresh("v")
    _reading_is_dear(db)
    changes = [change(i) for i in range(1, 6) for change in (_order, _customer)]
    last = _follow(db, changes)[-1]
    assert set(last["expected"]) == {"orders", "customers"}
    assert last["kept"] == 2 * ["rows of Part"]
    assert 0 < last["bytes"] == sum(state["bytes"] for state in _states(db)) <= 1_000_000
    db.sql("DELETE FROM orders WHERE amount = 5 AND id < 9000")
    db.sql("UPDATE customers SET region = 'r4' WHERE id = 13")
    assert db.refresh("v")[0].mode == "incremental"
    assert db.verify("v").equal
    last = _follow(db, [_order(i) for i in range(10, 16)])[-1]
    assert last["kept"] == ["rows of Part"]
    assert {name: rows > 0 for name, rows in last["expected"].items()} == {
        "orders": True,
        "customers": False,
    }


@pytest.mark.parametrize(("budget", "most"), [("0 MB", 0), ("13 KB", 1), ("1 GB", 2)])
def test_sides_are_exact_at_every_budget(db: Warehouse, budget: str, most: int) -> None:
    """Both take 15 KB. They are let go where there is no room for them, and built again."""
    _view(db, SIDES, refresh="incremental")
    db.refresh("v")
    _reading_is_dear(db)
    changes = [change(i) for i in range(1, 7) for change in (_order, _customer)]
    for some, room in ((changes[:4], "1 GB"), (changes[4:8], budget), (changes[8:], "1 GB")):
        _set(db, room)
        told = _follow(db, some)
        assert all(states["bytes"] <= states["budget"] for states in told)
        assert len(told[-1]["kept"]) == (most if room == budget else 2)


def test_everything_may_be_kept_whatever_it_brings(db: Warehouse) -> None:
    _view(db, PARTS, refresh="incremental")
    db._house.keeper.everything = True
    told = db.refresh("v")[0].states
    assert told is not None
    assert told["kept"] == ["rows of Part", "sums by 1 keys"]
    for change in (
        "INSERT INTO orders VALUES (-1, 5, 7), (-2, 2000, 1)",
        "INSERT INTO customers VALUES (2000, 'r1', 3); DELETE FROM orders WHERE id < 100",
        "UPDATE nations SET name = 'n0' WHERE id = 1",
    ):
        with db.transaction():
            db.sql(change)
        assert db.refresh("v")[0].mode == "incremental"
        assert db.verify("v").equal, change


def test_explain_tells_the_budget_and_what_is_kept(db: Warehouse) -> None:
    _view(db, refresh="incremental")
    db.refresh("v")
    lines = db.explain("v").splitlines()
    (budget,) = [line for line in lines if line.startswith("Budget:")]
    assert budget.startswith("Budget: 1,000,000 bytes for states, of which ")
    assert any(line.startswith("Keeps:  sums, about ") for line in lines)
    _set(db, "0 MB")
    db.append("orders", _orders(ORDERS, 10))
    assert "Drops:  sums" in db.explain("v").splitlines()
    told = json.loads(db.explain("v", "json"))["budget"]
    assert (told["bytes"], told["states"], told["dropped"]) == (0, [], ["sums"])
    assert _states(db) != []  # nothing was done


def test_a_decision_holds_while_sizes_are_alike() -> None:
    first = Decision(frozenset("a"), "q", (100.0, 10.0)).after(None)
    assert first.holds("q", (150.0, 6.0))
    assert not first.holds("q", (300.0, 10.0))
    assert not first.holds("other", (100.0, 10.0))
    again = Decision(frozenset("a"), "q", (300.0, 10.0)).after(first)
    assert (first.factor, again.factor) == (ALIKE, ALIKE**2)
    other = Decision(frozenset("b"), "q", (3000.0, 10.0)).after(again)
    assert other.factor == ALIKE


def test_budgets_on_spark(spark_db: Warehouse) -> None:
    spark_db.sql("CREATE TABLE nations (id BIGINT, name STRING)")
    spark_db.sql("CREATE TABLE customers (id BIGINT, nation BIGINT)")
    spark_db.sql("CREATE TABLE orders (id BIGINT, customer BIGINT, amount BIGINT)")
    spark_db.sql("INSERT INTO nations VALUES (1, 'a'), (2, 'b')")
    spark_db.sql("INSERT INTO customers VALUES (1, 1), (2, 2), (3, 1)")
    spark_db.sql("INSERT INTO orders VALUES (1, 1, 5), (2, 2, 6), (3, 3, 7)")
    spark_db._house.keeper.everything = True
    _view(spark_db, PARTS, refresh="incremental")
    spark_db.refresh("v")
    for i, budget in enumerate(("1 MB", "0 MB", "1 MB")):
        _set(spark_db, budget)
        with spark_db.transaction():
            spark_db.sql(f"INSERT INTO orders VALUES ({10 + i}, 2, 1)")
            spark_db.sql(f"DELETE FROM orders WHERE id = {1 + i}")
        spark_db.refresh("v")
        assert len(_states(spark_db)) == (2 if budget == "1 MB" else 0)
        assert spark_db.verify("v").equal
