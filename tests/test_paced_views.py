"""Views on views have paces: planned as they are over tables, where all are due together."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest

import slackwater
from slackwater import Warehouse
from slackwater.catalog.model import View
from slackwater.planner import simulation
from slackwater.service.clock import SimulatedClock
from slackwater.service.paced import ByGoals
from slackwater.work import parts
from slackwater.work.expanded import read_views
from slackwater.work.pacing import planned
from slackwater.work.world import World
from tests.conftest import PROOF

BY_CUSTOMER = "SELECT customer, SUM(amount) AS n FROM sales GROUP BY customer"
BUCKETS = "SELECT n % 10 AS bucket, COUNT(*) AS k FROM customers GROUP BY n % 10"
DAILY = "schedule = 'daily 06:00'"


@pytest.fixture
def clock() -> SimulatedClock:
    return SimulatedClock("2026-01-05 00:00", taking=lambda reports, measured: 1.0)


@pytest.fixture
def db(
    tmp_path: Path, clock: SimulatedClock, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Warehouse]:
    """Where only rows cost anything; some come every hour."""
    for measure in simulation.RUN:
        monkeypatch.setitem(simulation.RUN, measure, 0.0)
    with slackwater.connect(tmp_path / "w", placement="local", clock=clock) as db:
        db.sql("CREATE TABLE sales (id BIGINT, customer BIGINT, amount BIGINT)")
        for hour in range(5):
            clock.wait(datetime(2026, 1, 5, hour, 30, tzinfo=UTC))
            sell(db)
        yield db


def sell(db: Warehouse, rows: int = 20_000) -> None:
    ids = list(range(rows))
    table = {"id": ids, "customer": [i % 500 for i in ids], "amount": [i % 7 for i in ids]}
    db.append("sales", pa.table(table))


def make(db: Warehouse, lower: str = DAILY, upper: str = DAILY) -> None:
    db.sql(
        f"CREATE MATERIALIZED VIEW customers WITH ({lower}) AS {BY_CUSTOMER};"
        f"CREATE MATERIALIZED VIEW buckets WITH ({upper}) AS {BUCKETS}"
    )


def view(db: Warehouse, name: str) -> View:
    found = db.catalog.snapshot().find(name)
    assert isinstance(found, View)
    return found


def test_a_view_is_planned_with_the_view_that_it_reads(db: Warehouse) -> None:
    make(db)
    (rhythm,) = db.plan().rhythms
    assert [v.view for v in rhythm.views] == ["buckets", "customers"]
    assert db.plan().unpaced == ()
    lower, upper = rhythm.pieces
    assert (lower.views, upper.views) == (("buckets", "customers"), ("buckets",))
    assert upper.inputs == {"#0": 1}
    assert [t.table for t in rhythm.tables] == ["sales"]


def test_where_nothing_runs_early_a_view_reads_the_other_view(db: Warehouse) -> None:
    make(db)
    ByGoals(db._house).units(db._house.now())
    assert db.catalog.snapshot().parts() == ()
    assert not view(db, "buckets").form
    db.refresh("buckets")
    assert db.verify("buckets").equal
    assert db.verify("customers").equal


def test_a_goal_of_a_view_lets_what_it_reads_run_early(
    db: Warehouse, clock: SimulatedClock
) -> None:
    """No result of either is seen before it is due."""
    make(db, upper=f"{DAILY}, within = '0.6x'")
    for hour in range(5, 54):
        clock.at(datetime(2026, 1, 5 + hour // 24, hour % 24, 15, tzinfo=UTC), lambda: sell(db))
    seen: list[tuple[int, int]] = []
    with db.scheduler(poll_seconds=900) as scheduler:
        scheduler.run(until=datetime(2026, 1, 6, 6, 10, tzinfo=UTC))
        before = db.sql("SELECT SUM(n) FROM customers").fetchall()[0][0]
        scheduler.run(until=datetime(2026, 1, 7, 5, 50, tzinfo=UTC))
        seen.append((before, db.sql("SELECT SUM(n) FROM customers").fetchall()[0][0]))
        scheduler.run(until=datetime(2026, 1, 7, 6, 10, tzinfo=UTC))
    assert seen[0][0] == seen[0][1]
    assert any(e["kind"] == "early" for e in db.history(limit=1000))
    (part, *_) = db.catalog.snapshot().parts()
    assert set(parts.views_of(part)) == {"customers", "buckets"}
    assert int(part.options[parts.PACE]) > 1
    assert db.verify("customers").equal
    assert db.verify("buckets").equal
    assert db.plan(apply=True).applied
    assert db.plan().rebuild.is_nothing


@pytest.mark.parametrize(
    ("lower", "upper"),
    [
        ("schedule = 'every 1 hour'", DAILY),
        ("schedule = 'manual'", DAILY),
        (f"{DAILY}, refresh = 'full'", DAILY),
        ("schedule = 'every 100 rows'", "schedule = 'every 100 rows'"),
    ],
)
def test_views_that_are_not_due_together_say_so(db: Warehouse, lower: str, upper: str) -> None:
    make(db, lower, upper)
    told = {u.view: u for u in db.plan().unpaced}
    assert told["buckets"].reason == "READS_VIEWS"
    assert told["buckets"].at == "Scan customers"
    (status,) = (v for v in db.status()["views"] if v["name"] == "buckets")
    assert status["unpaced"]["code"] == "READS_VIEWS"


def test_a_view_that_differs_each_time_is_computed_once_for_all(db: Warehouse) -> None:
    db.sql(
        f"CREATE MATERIALIZED VIEW noise WITH ({DAILY}) AS SELECT id, rand() AS r FROM sales;"
        f"CREATE MATERIALIZED VIEW low WITH ({DAILY}) AS SELECT id FROM noise WHERE r < 0.5"
    )
    assert {u.view: u.reason for u in db.plan().unpaced}["low"] == "READS_VIEWS"


def test_views_are_read_through_others(db: Warehouse) -> None:
    make(db)
    db.sql(f"CREATE MATERIALIZED VIEW top WITH ({DAILY}) AS SELECT MAX(k) AS k FROM buckets")
    world = World(db._house, db.catalog.snapshot(), defining=True)
    read = read_views(world, world.view("top")).values()
    assert sorted(v.name for v in read) == ["buckets", "customers"]
    (paced,) = planned(db._house, db._house.now())
    assert sorted(paced.dag.roots) == ["buckets", "customers", "top"]
    assert paced.forms.parts == ()


ABOVE = (
    "SELECT customer, n FROM customers WHERE n > 40",
    "SELECT c.customer, b.k FROM customers c JOIN buckets b ON c.n % 10 = b.bucket",
    "SELECT k, COUNT(*) AS times FROM buckets GROUP BY k",
    "SELECT s.id, c.n FROM sales s JOIN customers c ON s.customer = c.customer WHERE s.id < 50",
    "SELECT * FROM customers",
    BY_CUSTOMER,
)


@pytest.mark.parametrize("seed", range(24 if PROOF else 6))
def test_results_are_exact_whatever_is_planned(db: Warehouse, seed: int) -> None:
    """Goals by chance, plans made again and again, and parts that run now and then."""
    rng = random.Random(seed)
    goals = ("", ", within = '0.7x'", ", within = '0.3x'", ", within = '0.05x'")
    make(db, DAILY + rng.choice(goals), DAILY + rng.choice(goals))
    names = ["customers", "buckets"]
    for i, text in enumerate(rng.sample(ABOVE, 3)):
        names.append(f"v{i}")
        db.sql(f"CREATE MATERIALIZED VIEW v{i} WITH ({DAILY}{rng.choice(goals)}) AS {text}")
    if rng.random() < 0.5:
        db.refresh()
    for _ in range(3):
        name = rng.choice(names)
        db.sql(f"ALTER MATERIALIZED VIEW {name} SET (within = '{rng.choice((5, 0.5, 0.1))}x')")
        paces = ByGoals(db._house)
        units = paces.units(db._house.now())
        for _ in range(2):
            sell(db, rng.randint(1, 2_000))
            db.sql(f"DELETE FROM sales WHERE customer = {rng.randint(0, 499)}")
            paces.advance([unit for unit in units if rng.random() < 0.6])
        db.refresh(*rng.sample(names, 2)) if rng.random() < 0.3 else db.refresh()
        db.refresh()
        for name in names:
            checked = db.verify(name)
            assert checked.equal, (name, str(checked))
