"""States under a budget where expectations are wrong, or change: what is built again, and when.

Costs are those of a model in which reading is dear, and nothing is learned of how long the small
refreshes of these tests take, so that the same is decided on any machine.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import slackwater
from slackwater import Warehouse
from slackwater.planner.choice import FULL, INCREMENTAL, PLAIN
from slackwater.service.clock import SimulatedClock
from slackwater.stats.cost import KINDS, PRIOR, Model
from slackwater.work.experience import Experience
from slackwater.work.keeper import Decision
from slackwater.work.keeping import Keeping
from slackwater.work.refreshing import ways
from tests.test_budget_views import Expects

ROWS = 20_000
SUMS, PART = "sums by 1 keys", "rows of Part"
OF_ONE_NATION = """
  SELECT n.name, SUM(o.amount) AS total FROM orders o
  JOIN customers c ON o.customer = c.id JOIN nations n ON c.nation = n.id
  WHERE n.name = 'n3' GROUP BY n.name"""
ORDERS, ALL = ("orders",), ("orders", "customers", "nations")


@pytest.fixture
def clock() -> SimulatedClock:
    return SimulatedClock("2026-01-01 00:00")


@pytest.fixture
def db(
    tmp_path: Path, clock: SimulatedClock, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Warehouse]:
    monkeypatch.setattr(Experience, "learn", lambda self, event: None)
    settings: dict[str, Any] = {"placement": "local", "compact": False, "clock": clock}
    with slackwater.connect(tmp_path / "w", **settings) as db:
        dear = tuple(1e-4 if kind == "scanned" else 1e-6 for kind in KINDS)
        db._house.experience._measured = []
        db._house.experience._model = Model(PRIOR | {("local", "cpu"): dear})
        db.sql("CREATE TABLE nations (id BIGINT, name STRING)")
        db.sql("CREATE TABLE customers (id BIGINT, nation BIGINT)")
        db.sql("CREATE TABLE orders (id BIGINT, customer BIGINT, amount BIGINT)")
        _come(db, "nations", 0, 25)
        _come(db, "customers", 0, ROWS)
        _come(db, "orders", 0, ROWS)
        yield db


def _come(db: Warehouse, table: str, start: int, rows: int) -> None:
    ids = np.arange(start, start + rows)
    columns: dict[str, Any] = {
        "nations": {"name": [f"n{i}" for i in ids]},
        "customers": {"nation": ids % 25},
        "orders": {"customer": ids % ROWS, "amount": ids % 97},
    }[table]
    db.append(table, pa.table({"id": ids} | columns))


def _view(db: Warehouse, schedule: str = "manual") -> None:
    options = f"state_budget = '10 MB', schedule = '{schedule}'"
    db.sql(f"CREATE MATERIALIZED VIEW v WITH ({options}) AS {OF_ONE_NATION}")


def _refreshed(
    db: Warehouse, tables: Sequence[str], start: int, rows: int = 100
) -> tuple[str, set[str]]:
    """How the view was refreshed after some rows of tables, and what is kept."""
    for table in tables:
        _come(db, table, start, 2 if table == "nations" else rows)
    report = db.refresh("v")[0]
    assert db.verify("v").equal
    assert report.choice is not None
    assert report.states is not None
    return report.choice.chosen.method, set(report.states["kept"])


def _signatures(db: Warehouse) -> set[str]:
    """Of the states that are stored."""
    snapshot = db.catalog.snapshot()
    return {state.signature for state in snapshot.states(snapshot.views()[0].id)}


def _candidates(db: Warehouse) -> dict[str, float]:
    """What each way was expected to cost at the last refresh."""
    event = next(e for e in db.events("v") if e["kind"] == "refresh")
    return {c["method"]: c["cpu_seconds"] for c in event["candidates"] if c["applicable"]}


def test_a_state_that_was_built_in_vain_is_not_built_again_right_away(db: Warehouse) -> None:
    """The part helps where orders come. Others come as well, and computing anew is cheapest; once
    that is seen not to be chance, it is done."""
    _view(db)
    db._house.keeper.arrivals = Expects(db, orders=100)
    db.refresh("v")
    found = [
        _refreshed(db, tables, 100_000 * i, 5_000 if tables is ALL else 100)
        for i, tables in enumerate([ORDERS] * 2 + [ALL] * 4 + [ORDERS] * 3, start=1)
    ]
    assert found[:2] == [(INCREMENTAL, {SUMS, PART})] * 2
    given_up = found.index((FULL, {SUMS}))
    assert found[2:given_up] == [(INCREMENTAL, {SUMS, PART})] * (given_up - 2)
    assert given_up <= 4
    assert found[given_up:6] == [(FULL, {SUMS})] * (6 - given_up)  # the part would not be computed
    assert found[6] == (INCREMENTAL, {SUMS})  # it may be chance
    assert found[7:] == [(INCREMENTAL, {SUMS, PART})] * 2


def test_states_for_another_change_are_built_when_it_is_foreseen(db: Warehouse) -> None:
    """Tables that are cleaned one after the other."""
    _view(db)
    db._house.keeper.arrivals = Expects(db, orders=100)
    db.refresh("v")
    for i in range(1, 4):
        assert _refreshed(db, ORDERS, 100_000 * i) == (INCREMENTAL, {SUMS, PART})
    before = _signatures(db)
    db._house.keeper.arrivals = Expects(db, nations=2)
    assert _refreshed(db, ORDERS, 400_000) == (INCREMENTAL, {SUMS, PART})
    assert _signatures(db) != before
    for i in range(5, 7):
        assert _refreshed(db, ("nations",), 100_000 * i) == (INCREMENTAL, {SUMS, PART})
        cost = _candidates(db)
        assert cost[INCREMENTAL] < 0.5 * cost[PLAIN]


def test_states_that_serve_now_are_not_blamed_for_what_others_cost_to_build(
    db: Warehouse,
) -> None:
    """What comes is as expected: if the view is computed anew, then for what is built besides."""
    _view(db)
    db._house.keeper.arrivals = Expects(db, orders=100)
    db.refresh("v")
    _refreshed(db, ORDERS, 100_000)
    _come(db, "orders", 200_000, 100)
    keeping = ways(db._house, db.catalog.snapshot().views()[0]).upkeep.keeping
    assert keeping is not None
    ahead = {}
    for keeping.serves in (False, True):
        ahead[keeping.serves] = keeping.seconds_ahead(PLAIN)
    assert ahead[True] > 5 * ahead[False]


def test_computing_anew_costs_no_more_than_without_states(db: Warehouse) -> None:
    """When expectations are wrong each time."""
    _view(db)
    db._house.keeper.arrivals = Expects(db, orders=100)
    db.refresh("v")
    for i in range(1, 5):
        method, _ = _refreshed(db, ALL, 100_000 * i)
        cost = _candidates(db)
        assert method != INCREMENTAL
        assert cost[method] <= 1.01 * cost[PLAIN]


def test_a_single_surprise_after_many_that_were_right_does_not_lose_what_is_dear(
    db: Warehouse,
) -> None:
    """Following changes costs little more this time, and saves much at the next."""
    _view(db)
    db._house.keeper.arrivals = Expects(db, orders=100)
    db.refresh("v")
    for i in range(1, 4):
        _refreshed(db, ORDERS, 100_000 * i)
    assert _refreshed(db, ("orders", "nations"), 500_000) == (INCREMENTAL, {SUMS, PART})
    assert _refreshed(db, ORDERS, 600_000) == (INCREMENTAL, {SUMS, PART})


def test_explain_tells_what_computing_anew_would_keep(db: Warehouse) -> None:
    _view(db)
    db._house.keeper.arrivals = Expects(db, orders=100)
    db.refresh("v")
    for table in ALL:
        _come(db, table, 100_000, 2 if table == "nations" else 100)
    lines = db.explain("v").splitlines()
    assert any(line.startswith("Step:   v: full on local") for line in lines)
    assert any(line.startswith("Keeps:  sums by 1 keys, about ") for line in lines)
    assert "Drops:  rows" in lines
    found = json.loads(db.explain("v", "json"))["budget"]
    assert [state["name"] for state in found["states"]] == [SUMS]
    assert _refreshed(db, (), 0) == (FULL, {SUMS})


def test_a_full_refresh_each_time_builds_no_parts_again(db: Warehouse) -> None:
    _view(db)
    db._house.keeper.arrivals = Expects(db, orders=100)
    db.refresh("v")
    kept = []
    for i in range(1, 4):
        _come(db, "orders", 100_000 * i, 100)
        kept.append(set(db.refresh("v", full=True)[0].states["kept"]))  # type: ignore[index]
    assert kept == [{SUMS}] * 3


def test_states_follow_the_prediction(db: Warehouse, clock: SimulatedClock) -> None:
    """Orders come every hour, and the part is kept. Then customers and nations do, too: it is let
    go, and kept again when they no longer come."""
    hour = timedelta(hours=1)
    _view(db, "every 1 hour")
    found = []
    for i, tables in enumerate([ORDERS] * 4 + [ALL] * 4 + [ORDERS] * 12, start=1):
        clock.wait(clock.now() + hour)
        found.append(_refreshed(db, tables, 100_000 * i))
    assert found[3] == (INCREMENTAL, {SUMS, PART})
    assert all(PART not in kept for _, kept in found[5:8])
    assert found[-1] == (INCREMENTAL, {SUMS, PART})


def test_what_is_ahead_is_compared_by_what_states_save(monkeypatch: pytest.MonkeyPatch) -> None:
    """The two decisions may be of different times, and so of different prices. Where neither keeps
    anything, nothing that is ahead differs (q8 was refreshed by changes for three times the cost of
    computing it anew)."""
    keeping = Keeping(None, None, 10**6, anew=False)  # type: ignore[arg-type]
    monkeypatch.setattr(Keeping, "_serving", lambda self, anew: 10.0)
    keeping.__dict__["_after_changes"] = Decision(frozenset(), None, (), 0.4, 0.4)
    keeping.__dict__["_after_anew"] = Decision(frozenset(), None, (), 0.7, 0.7)
    assert {keeping.seconds_ahead(method) for method in (INCREMENTAL, FULL, PLAIN)} == {7.0}
    keeping.__dict__["_after_changes"] = Decision(frozenset({"sums"}), None, (), 0.1, 0.4)
    assert keeping.seconds_ahead(INCREMENTAL) == pytest.approx(7.0 / 4)
