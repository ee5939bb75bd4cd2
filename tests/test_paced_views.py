"""Views on views have paces: planned as they are over tables, where all are due together."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import slackwater
from slackwater import Warehouse
from slackwater.catalog.model import View
from slackwater.errors import StateError
from slackwater.planner import simulation
from slackwater.service import paced as service
from slackwater.service.clock import SimulatedClock
from slackwater.service.paced import ByGoals
from slackwater.work import parts
from slackwater.work.expanded import read_views
from slackwater.work.pacing import Paced, planned
from slackwater.work.together import together
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


def sell(db: Warehouse, rows: int = 100_000) -> None:
    ids = np.arange(rows)
    db.append("sales", pa.table({"id": ids, "customer": ids % 500, "amount": ids % 7}))


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


# -- views that are defined anew under others

GOAL = f"{DAILY}, within = '0.3x'"
FEW = BY_CUSTOMER.replace("GROUP BY", "WHERE customer < 5 GROUP BY")
MANY = "SELECT customer, n FROM customers WHERE n > 40"
TOP = "SELECT n % 7 AS rest, COUNT(*) AS k FROM many GROUP BY n % 7"
ALL = ("customers", "buckets", "many", "top")


def replace_customers(db: Warehouse, query: str = FEW) -> None:
    db.sql(f"CREATE OR REPLACE MATERIALIZED VIEW customers WITH ({DAILY}) AS {query}")


def formed(db: Warehouse) -> set[str]:
    return {v.name for v in db.catalog.snapshot().views() if v.form}


@pytest.fixture
def paces(db: Warehouse) -> ByGoals:
    """Where `buckets`, `many` and, above that, `top` are computed over a part that has `customers`
    in it."""
    make(db, upper=GOAL)
    db.sql(
        f"CREATE MATERIALIZED VIEW many WITH ({DAILY}) AS {MANY};"
        f"CREATE MATERIALIZED VIEW top WITH ({GOAL}) AS {TOP}"
    )
    paces = ByGoals(db._house)
    assert paces.units(db._house.now())
    db.refresh()
    assert formed(db) >= {"buckets", "top"}
    return paces


def test_a_view_that_is_replaced_takes_its_old_query_from_all_above_it(
    db: Warehouse, paces: ByGoals
) -> None:
    replace_customers(db)
    assert formed(db) == set()
    assert db.catalog.snapshot().parts() == ()
    modes = {report.view: report.reasons for report in db.refresh("top")}
    assert modes == {
        "customers": ["FIRST_REFRESH"],
        "many": ["SOURCE_REPLACED"],
        "top": ["SOURCE_REPLACED"],
    }
    db.refresh("buckets")
    assert db.sql("SELECT SUM(k) FROM buckets").fetchall() == [(5,)]
    assert all(db.verify(name).equal for name in ALL)


def test_views_above_a_replaced_one_stay_right_when_they_have_no_pace_any_more(
    db: Warehouse, clock: SimulatedClock
) -> None:
    db.sql(
        f"CREATE MATERIALIZED VIEW customers WITH ({DAILY}) AS {BY_CUSTOMER};"
        f"CREATE MATERIALIZED VIEW many WITH ({GOAL}) AS {MANY}"
    )
    paces = ByGoals(db._house)
    paces.units(clock.now())
    db.refresh()
    assert formed(db) >= {"many"}
    replace_customers(db)
    db.refresh("many")
    db.sql("ALTER MATERIALIZED VIEW many SET (schedule = 'manual')")
    paces.units(clock.now())
    assert formed(db) == set()
    for _ in range(2):
        sell(db, 1_000)
        db.refresh()
        assert db.verify("many").equal
    assert db.sql("SELECT COUNT(*) FROM many").fetchall() == [(5,)]


@pytest.mark.parametrize("query", [FEW, BY_CUSTOMER])
def test_views_above_a_replaced_one_are_planned_again(
    db: Warehouse, paces: ByGoals, query: str
) -> None:
    """Also where it is defined as it was, and no text has changed."""
    replace_customers(db, query)
    paces.advance(paces.units(db._house.now()))
    assert formed(db) >= {"buckets", "top"}
    for _ in range(2):
        sell(db, 1_000)
        paces.advance(paces.units(db._house.now()))
        db.refresh()
        assert all(db.verify(name).equal for name in ALL)


def test_parts_of_a_replaced_view_stay_for_others_that_do_not_read_it(db: Warehouse) -> None:
    make(db, upper=GOAL)
    beside = BUCKETS.replace("customers", f"({BY_CUSTOMER})")
    db.sql(f"CREATE MATERIALIZED VIEW beside WITH ({GOAL}) AS {beside}")
    ByGoals(db._house).units(db._house.now())
    db.refresh()
    assert formed(db) >= {"buckets", "beside"}
    replace_customers(db)
    assert formed(db) == {"beside"}
    kept = {part.id for part in db.catalog.snapshot().parts()}
    assert kept.intersection(view(db, "beside").depends)
    sell(db, 1_000)
    db.refresh()
    assert all(db.verify(name).equal for name in ("customers", "buckets", "beside"))


def test_a_plan_tells_what_a_replaced_view_takes_away(db: Warehouse, paces: ByGoals) -> None:
    gone = {part.id for part in db.catalog.snapshot().parts()}
    statement = f"CREATE OR REPLACE MATERIALIZED VIEW customers WITH ({DAILY}) AS {FEW}"
    told = db.plan(supposing=statement).rebuild
    assert {made.name for made in told.dropped_parts} == gone
    assert {made.name for made in told.views} == {"buckets", "many", "top"}
    assert formed(db) >= {"buckets", "top"}


def drop_and_make(db: Warehouse) -> None:
    for name in ("buckets", "customers"):
        db.sql(f"DROP MATERIALIZED VIEW {name}")
    make(db, upper=GOAL)


def drop_and_make_otherwise(db: Warehouse) -> None:
    db.sql("DROP MATERIALIZED VIEW buckets")
    db.sql(f"CREATE MATERIALIZED VIEW buckets WITH ({GOAL}) AS {BUCKETS} HAVING COUNT(*) > 60")


def make_the_table_anew(db: Warehouse) -> None:
    for name in ("buckets", "customers"):
        db.sql(f"DROP MATERIALIZED VIEW {name}")
    db.sql("DROP TABLE sales")
    db.sql("CREATE TABLE sales (id BIGINT, customer BIGINT, amount BIGINT)")
    sell(db)
    make(db, upper=GOAL)


RACES = [replace_customers, drop_and_make, drop_and_make_otherwise, make_the_table_anew]


@pytest.mark.parametrize("meanwhile", RACES)
def test_no_form_is_made_of_what_a_view_was_when_it_was_planned(
    db: Warehouse, meanwhile: Callable[[Warehouse], None]
) -> None:
    make(db, upper=GOAL)
    world = World(db._house, db.catalog.snapshot(), defining=True)
    wanted = together(world, planned(db._house, db._house.now(), world=world))
    assert wanted.views["buckets"] is not None
    meanwhile(db)
    before = db.catalog.snapshot().commit
    with pytest.raises(StateError, match="dropped or defined anew while it was made") as error:
        parts.apply(db._house, wanted)
    assert error.value.code == "PLAN_OUTDATED"
    assert db.catalog.snapshot().commit == before
    assert (formed(db), db.catalog.snapshot().parts()) == (set(), ())
    db.refresh()
    assert db.verify("buckets").equal


def test_a_scheduler_plans_again_what_was_replaced_while_it_planned(
    db: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(db, upper=GOAL)

    def overtaken(world: World, found: Sequence[Paced]) -> parts.Forms:
        monkeypatch.undo()
        wanted = together(world, found)
        replace_customers(db)
        return wanted

    monkeypatch.setattr(service, "together", overtaken)
    paces = ByGoals(db._house)
    assert paces.units(db._house.now()) == []
    assert paces.units(db._house.now())
    assert formed(db) >= {"buckets"}
    db.refresh()
    assert db.verify("buckets").equal


def test_a_part_that_went_while_it_was_planned_with_is_not_used(
    db: Warehouse, paces: ByGoals
) -> None:
    world = World(db._house, db.catalog.snapshot(), defining=True)
    wanted = together(world, planned(db._house, db._house.now(), world=world))
    for name in ("buckets", "top"):
        db.sql(f"ALTER MATERIALIZED VIEW {name} RESET (within)")
    db.plan(apply=True)
    assert db.catalog.snapshot().parts() == ()
    with pytest.raises(StateError, match=r"part 'p\w+' was dropped"):
        parts.apply(db._house, wanted)
    assert formed(db) == set()


def test_columns_that_are_added_below_change_no_form(db: Warehouse, paces: ByGoals) -> None:
    """Neither of what is there, nor of what was planned before."""
    world = World(db._house, db.catalog.snapshot(), defining=True)
    wanted = together(world, planned(db._house, db._house.now(), world=world))
    parts.apply(db._house, wanted)
    db.sql("ALTER TABLE sales ADD COLUMN shop BIGINT DEFAULT 3")
    assert parts.apply(db._house, wanted) == []
    db.sql("INSERT INTO sales VALUES (1, 7, 1000, 4)")
    paces.advance(paces.units(db._house.now()))
    db.refresh()
    assert all(db.verify(name).equal for name in ALL)
