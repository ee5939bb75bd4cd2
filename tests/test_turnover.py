"""How many rows changed before tells how many will."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import slackwater
from slackwater import Warehouse
from slackwater.algebra.relation import Scan
from slackwater.planner import simulation
from slackwater.planner.subplans import name_of
from slackwater.service.clock import SimulatedClock
from slackwater.stats.rows import Change, Rows
from slackwater.stats.turnover import Seen, Turnover, seen
from slackwater.stats.values import Ignorance
from slackwater.types import INT, Field
from slackwater.work.pacing import planned

SCAN = Scan("t", "t", (Field("k", INT, False),))
FEW_SELL = """
    SELECT customer, SUM(amount) AS s FROM sales GROUP BY customer HAVING SUM(amount) > 3000
"""
VIEWS = {
    "large": FEW_SELL,
    "counted": f"SELECT s % 1000 AS k, COUNT(*) AS n FROM ({FEW_SELL}) GROUP BY s % 1000",
    "equal": "SELECT s.id, t.id AS other FROM sales s JOIN sales t "
    "ON s.customer = t.customer AND s.amount = t.amount WHERE s.kind = t.kind",
}


def _sources(rows: float, *kinds: float) -> dict[str, Rows]:
    return {"t": Rows(rows, Change(*kinds))}


def _factor(shown: list[Seen], *kinds: float) -> float | None:
    return Turnover({"k": shown}).factor("k", SCAN, _sources(1e6, *kinds), Ignorance())


def test_of_what_was_never_seen_nothing_is_told() -> None:
    assert _factor([], 100.0) is None
    assert _factor([Seen({"other": Rows(1.0)}, 5.0)], 100.0) is None


def test_what_was_counted_corrects_what_is_said() -> None:
    assert _factor([Seen(_sources(1e6, 1000.0), 100.0)], 500.0) == pytest.approx(0.1, rel=0.01)
    assert _factor([Seen(_sources(1e6, 1000.0), 0.0)], 500.0) < 0.002  # type: ignore[operator]


def test_few_rows_say_little() -> None:
    assert _factor([Seen(_sources(1e6, 1.0), 0.0)], 500.0) == pytest.approx(0.5)


def test_each_kind_of_change_has_its_own() -> None:
    shown = [Seen(_sources(1e6, 1e4), 1e2), Seen(_sources(1e6, 0.0, 0.0, 1e4), 1e3)]
    assert _factor(shown, 500.0) == pytest.approx(0.01, rel=0.02)
    assert _factor(shown, 0.0, 0.0, 5.0) == pytest.approx(0.1, rel=0.02)
    assert _factor(shown, 0.0, 500.0, 0.0) == pytest.approx(1.0)


def test_the_last_refreshes_count_most() -> None:
    old, new = Seen(_sources(1e6, 1e4), 1e4), Seen(_sources(1e6, 1e4), 1e3)
    after = [_factor([old] * 4 + [new] * n, 500.0) for n in range(5)]
    assert after == sorted(after, reverse=True)  # type: ignore[type-var]
    assert 0.1 < after[4] < 0.4 < after[1] < 0.8 < after[0]  # type: ignore[operator]


def test_events_that_show_nothing() -> None:
    assert list(seen({})) == []
    assert list(seen({"turnover": None})) == []
    (shown,) = seen({"turnover": {"sources": {"t": [None, 1, 2, 3]}, "rows": {"k": None}}})
    assert shown == ("k", Seen(_sources(0.0, 1, 2, 3), 0.0))


# -- in a warehouse


@pytest.fixture
def clock() -> SimulatedClock:
    return SimulatedClock("2026-01-05 00:00", taking=lambda reports, measured: 1.0)


@pytest.fixture
def db(tmp_path: Path, clock: SimulatedClock) -> Iterator[Warehouse]:
    with slackwater.connect(tmp_path / "w", placement="local", clock=clock) as opened:
        opened.sql("CREATE TABLE sales (id BIGINT, customer BIGINT, amount BIGINT, kind BIGINT)")
        yield opened


def _sell(db: Warehouse, seed: int, rows: int) -> None:
    """Few customers buy most; of what kind it is depends on how much it is."""
    rng = np.random.default_rng(seed)
    amount = rng.integers(0, 100, rows)
    told = {
        "id": np.arange(rows) + 10**6 * seed,
        "customer": rng.zipf(1.5, rows) % 5000,
        "amount": amount,
        "kind": amount % 7,
    }
    db.append("sales", pa.table(told))


def _expected(db: Warehouse, view: str) -> float:
    outputs = json.loads(db.explain(view, format="json"))["next"]["outputs"]
    rows: float = next(o["rows"] for o in outputs if not o["state"])
    return rows


def _in_paces(db: Warehouse, clock: SimulatedClock, view: str, share: float) -> float:
    """The rows that are expected to change in a share of what comes, where paces are looked for."""
    (paced,) = planned(db._house, clock.now())
    name = name_of(paced.dag.roots[view])
    times = np.array([1 - share]), np.array([1.0])
    return float(np.ravel(paced.search.simulation._flow(name, *times).change.rows)[0])


@pytest.mark.parametrize("view", VIEWS)
def test_of_a_steady_stream_the_next_change_is_foretold_within_a_factor_of_two(
    db: Warehouse, clock: SimulatedClock, view: str
) -> None:
    _sell(db, 0, 20_000)
    options = "WITH (schedule = 'every 1 hour', within = '0.5x', refresh = 'incremental')"
    db.sql(f"CREATE MATERIALIZED VIEW {view} {options} AS {VIEWS[view]}")
    db.refresh(view)
    off = []
    for hour in range(1, 7):
        clock.wait(datetime(2026, 1, 5, hour, tzinfo=UTC))
        _sell(db, hour, 200)
        expected = _expected(db, view)
        (report,) = db.refresh(view)
        assert report.mode == "incremental"
        off.append(expected / report.rows)
    assert all(0.5 < ratio < 2 for ratio in off[2:]), off
    assert db.verify(view).equal
    # 200 rows an hour, and more for what may come
    in_paces = _in_paces(db, clock, view, 1.0)
    assert 0.5 < in_paces / report.rows < 4


def test_it_is_known_when_a_warehouse_is_opened_again(tmp_path: Path) -> None:
    for opening in range(2):
        with slackwater.connect(tmp_path / "w", placement="local") as db:
            if not opening:
                db.sql(
                    "CREATE TABLE sales (id BIGINT, customer BIGINT, amount BIGINT, kind BIGINT)"
                )
                _sell(db, 0, 20_000)
                db.sql(f"CREATE MATERIALIZED VIEW counted AS {VIEWS['counted']}")
                db.refresh("counted")
            _sell(db, 1 + opening, 200)
            expected = _expected(db, "counted")
            (report,) = db.refresh("counted")
    assert 0.5 < expected / report.rows < 2


def test_a_part_tells_plans_in_which_it_is_cut_out_again(
    db: Warehouse, clock: SimulatedClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    for measure in simulation.RUN:
        monkeypatch.setitem(simulation.RUN, measure, 0.0)
    for hour in range(6):
        clock.wait(datetime(2026, 1, 5, hour, 30, tzinfo=UTC))
        _sell(db, hour, 200_000)
    options = "WITH (schedule = 'every 6 hours', within = '5x')"
    db.sql(f"CREATE MATERIALIZED VIEW counted {options} AS {VIEWS['counted']}")
    db.sql(f"CREATE MATERIALIZED VIEW most {options} AS SELECT MAX(s) AS s FROM ({FEW_SELL})")
    db.plan(apply=True)
    assert db.catalog.snapshot().parts()
    db.refresh()
    for batch in range(3):
        clock.wait(clock.now() + timedelta(minutes=30))
        _sell(db, 10 + batch, 2_000)
        db.refresh()
        assert db.verify("counted").equal
    (paced,) = planned(db._house, clock.now())
    shown = paced.search.simulation._shown
    factors = [shown._factor(subplan.number) for subplan in paced.dag.subplans]
    assert any(factor is not None and factor[0] for factor in factors)
