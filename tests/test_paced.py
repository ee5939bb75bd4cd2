"""Goals become paces: parts are made, run early, and results are exact when they are due."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import slackwater
from slackwater import Warehouse
from slackwater.planner import simulation
from slackwater.service.clock import SimulatedClock
from slackwater.service.paced import ByGoals
from slackwater.stats.outlook import has_changed
from slackwater.work import parts
from slackwater.work.expecting import left_for_the_result
from slackwater.work.pacing import planned

START = "2026-01-05 00:00"
BY_CUSTOMER = "SELECT customer, SUM(amount) AS n FROM sales GROUP BY customer"
LARGEST = f"SELECT n % 10 AS bucket, COUNT(*) AS k FROM ({BY_CUSTOMER}) GROUP BY n % 10"


@pytest.fixture
def clock() -> SimulatedClock:
    return SimulatedClock(START, taking=lambda reports, measured: 1.0)


@pytest.fixture
def db(
    tmp_path: Path, clock: SimulatedClock, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Warehouse]:
    """Where only rows cost anything, so that a few thousand are worth early runs."""
    for measure in simulation.RUN:
        monkeypatch.setitem(simulation.RUN, measure, 0.0)
    with slackwater.connect(tmp_path / "w", placement="local", clock=clock) as db:
        db.sql("CREATE TABLE sales (id BIGINT, customer BIGINT, amount BIGINT)")
        yield db


def sell(db: Warehouse, rows: int = 20_000) -> None:
    ids = np.arange(rows)
    db.append("sales", pa.table({"id": ids, "customer": ids % 500, "amount": ids % 7}))


def test_a_day_with_goals(db: Warehouse, clock: SimulatedClock) -> None:
    sell(db)
    db.sql(
        f"""
        CREATE MATERIALIZED VIEW buckets WITH (schedule = 'daily 06:00', within = '0.7x')
        AS {LARGEST};
        CREATE MATERIALIZED VIEW customers WITH (schedule = 'daily 06:00') AS {BY_CUSTOMER};
        """
    )
    for day in (5, 6, 7):
        for hour in range(24):
            clock.at(datetime(2026, 1, day, hour, 30, tzinfo=UTC), lambda: sell(db))
    seen: list[int] = []
    for day in (5, 6, 7):
        at = datetime(2026, 1, day, 5, 59, tzinfo=UTC)
        clock.at(at, lambda: seen.append(db.sql("SELECT SUM(k) FROM buckets").fetchall()[0][0]))
    told: list[str] = []
    with db.scheduler(poll_seconds=600, listener=lambda t: told.append(t.kind)) as scheduler:
        for day in (5, 6, 7):
            scheduler.run(until=datetime(2026, 1, day, 6, 0, 30, tzinfo=UTC))
            assert db.verify("buckets").equal
            assert db.verify("customers").equal
    assert db.catalog.snapshot().parts()  # after a day it was known how much comes
    assert "early" in told
    assert seen == [500, 500, 500]
    assert "failed" not in told


def test_without_goals_nothing_runs_early(db: Warehouse, clock: SimulatedClock) -> None:
    sell(db)
    db.sql(f"CREATE MATERIALIZED VIEW v WITH (schedule = 'every 1 hour') AS {BY_CUSTOMER}")
    assert [unit for unit in ByGoals(db._house).units(clock.now()) if unit.pace > 1] == []
    assert db.catalog.snapshot().parts() == ()


def test_paces_are_found_without_methods_that_are_switched_off(
    db: Warehouse, clock: SimulatedClock
) -> None:
    sell(db)
    options = "WITH (schedule = 'every 1 hour', within = '0.6x')"
    db.sql(f"CREATE MATERIALIZED VIEW v {options} AS {BY_CUSTOMER}")
    db.close()
    with slackwater.connect(db.path, placement="local", clock=clock, methods=["ojv"]) as again:
        (paced,) = planned(again._house, clock.now())
        assert paced.search.simulation.setting.methods == ["ojv"]


def test_plans_are_made_again_when_options_change(db: Warehouse, clock: SimulatedClock) -> None:
    for hour in range(5):
        clock.wait(datetime(2026, 1, 5, hour, 30, tzinfo=UTC))
        sell(db, 50_000)
    db.sql(f"CREATE MATERIALIZED VIEW v WITH (schedule = 'every 6 hours') AS {BY_CUSTOMER}")
    paces = ByGoals(db._house)
    assert list(paces.units(clock.now())) == []
    db.sql("ALTER MATERIALIZED VIEW v SET (within = '0.6x')")
    (unit,) = paces.units(clock.now())
    assert unit.pace > 1
    assert unit.views == ("v",)
    assert 0 < unit.seconds < 1  # as the plan expects it, until one was measured
    (paced,) = planned(db._house, clock.now())
    assert [e for e in paced.expectations() if not e.is_met] == []
    db.sql("ALTER MATERIALIZED VIEW v RESET (within)")
    assert list(paces.units(clock.now())) == []


def two_rhythms(db: Warehouse, clock: SimulatedClock) -> None:
    """The same piece, every six hours and once a day, with goals that call for early runs."""
    for hour in range(5):
        clock.wait(datetime(2026, 1, 5, hour, 30, tzinfo=UTC))
        sell(db, 50_000)
    db.sql(
        f"""
        CREATE MATERIALIZED VIEW often WITH (schedule = 'every 6 hours', within = '0.6x')
        AS {BY_CUSTOMER};
        CREATE MATERIALIZED VIEW daily WITH (schedule = 'daily 06:00', within = '0.6x')
        AS {BY_CUSTOMER};
        """
    )


def test_rhythms_with_the_same_piece_keep_one_part(db: Warehouse, clock: SimulatedClock) -> None:
    two_rhythms(db, clock)
    paces = {p.period_seconds: p.found.pace_of(0) for p in planned(db._house, clock.now())}
    ByGoals(db._house).units(clock.now())
    (part,) = db.catalog.snapshot().parts()
    assert parts.views_of(part) == ("daily", "often")
    wanted = max(paces[6 * 3600], -(-paces[24 * 3600] // 4))
    assert part.options[parts.PACE] == str(wanted)  # in six hours, as often as either needs it
    db.refresh()
    sell(db)
    db.refresh()
    assert db.verify("often").equal
    assert db.verify("daily").equal


def test_a_part_for_results_in_the_morning_and_in_the_evening_runs_for_each_half_of_the_day(
    db: Warehouse, clock: SimulatedClock
) -> None:
    two_rhythms(db, clock)
    db.sql("ALTER MATERIALIZED VIEW often SET (schedule = 'daily 18:00')")
    paces = [p.found.pace_of(0) for p in planned(db._house, clock.now())]
    ByGoals(db._house).units(clock.now())
    (part,) = db.catalog.snapshot().parts()
    assert len(paces) == 2
    assert part.options[parts.PACE] == str(-(-max(paces) // 2))


def test_planning_again_changes_nothing(db: Warehouse, clock: SimulatedClock) -> None:
    two_rhythms(db, clock)
    ByGoals(db._house).units(clock.now())
    db.refresh()
    db.plan(apply=True)  # by then it is known how many groups there are
    before = db.catalog.snapshot()
    for _ in range(2):
        assert db.plan().rebuild.is_nothing
        ByGoals(db._house).units(clock.now())
        assert db.plan(apply=True).rebuild.is_nothing
    after = db.catalog.snapshot()
    assert after.commit == before.commit
    assert after.parts() == before.parts()
    assert [r.mode for r in db.refresh()] == ["none"] * 3


def test_a_view_without_a_rhythm_any_more_gives_its_parts_back(
    db: Warehouse, clock: SimulatedClock
) -> None:
    two_rhythms(db, clock)
    paces = ByGoals(db._house)
    paces.units(clock.now())
    db.sql("ALTER MATERIALIZED VIEW often SET (schedule = 'manual')")
    (unit,) = paces.units(clock.now())
    assert unit.views == ("daily",)
    db.refresh()
    assert db.verify("often").equal
    assert db.verify("daily").equal
    db.sql("ALTER MATERIALIZED VIEW daily SET (schedule = 'manual')")
    assert list(paces.units(clock.now())) == []


def test_a_slow_view_waits_for_one_run_of_a_part_that_runs_for_others_too(
    db: Warehouse, clock: SimulatedClock
) -> None:
    two_rhythms(db, clock)
    ByGoals(db._house).units(clock.now())
    (part,) = db.catalog.snapshot().parts()
    ((table, every),) = parts.every_of(part).items()
    pace = int(part.options[parts.PACE])
    both = left_for_the_result(part, ["often", "daily"], {table: 40 * every})
    assert both == {table: pytest.approx(40 * every / pace)}
    assert left_for_the_result(part, ["daily"], {table: 40 * every}) == {table: every}


def arriving(db: Warehouse, clock: SimulatedClock, hours: range, rows: int) -> None:
    """In every hour of the fifth of January, and what is left of the days after."""
    for hour in hours:
        at = datetime(2026, 1, 5, 0, 15, tzinfo=UTC) + timedelta(hours=hour)
        clock.at(at, lambda: sell(db, rows))


def counted(paces: ByGoals, monkeypatch: pytest.MonkeyPatch) -> list[datetime]:
    """When plans are made."""
    made: list[datetime] = []
    plan = paces._plan

    def counting(now: datetime) -> object:
        made.append(now)
        return plan(now)

    monkeypatch.setattr(paces, "_plan", counting)
    return made


def test_plans_are_made_again_when_other_is_expected(
    db: Warehouse, clock: SimulatedClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not at each look, nor as long as rows come as before; nor because tables have doubled."""
    monkeypatch.setattr(ByGoals, "_magnitude", lambda self, table: 0)
    db.sql(
        f"""CREATE MATERIALIZED VIEW v WITH (schedule = 'every 2 hours', within = '0.6x')
        AS {BY_CUSTOMER}"""
    )
    arriving(db, clock, range(12), 500)
    arriving(db, clock, range(12, 24), 5_000)
    paces = ByGoals(db._house)
    made = counted(paces, monkeypatch)
    with db.scheduler(poll_seconds=300, paces=paces) as scheduler:
        scheduler.run(until=datetime(2026, 1, 5, 6, tzinfo=UTC))
        known = len(made)
        assert known >= 2  # the first knew nothing
        scheduler.run(until=datetime(2026, 1, 5, 12, tzinfo=UTC))
        assert len(made) == known  # as much as before
        scheduler.run(until=datetime(2026, 1, 6, 0, tzinfo=UTC))
    assert known < len(made) <= known + 8
    assert made[known] > datetime(2026, 1, 5, 12, tzinfo=UTC)
    gaps = [b - a for a, b in pairwise(made[1:])]
    assert min(gaps) >= timedelta(minutes=30)
    (planned_now,) = planned(db._house, clock.now())
    (expected,) = planned_now.expected.values()
    ((_, last),) = paces._made.expected.items()  # type: ignore[union-attr]
    assert not has_changed(last, expected)


@pytest.mark.parametrize(
    ("schedule", "seconds"),
    [("every 2 hours", 1800), ("every 1 minute", 60), ("daily 06:00", 21600)],
)
def test_what_is_expected_is_not_asked_at_each_look(
    db: Warehouse, clock: SimulatedClock, schedule: str, seconds: int
) -> None:
    db.sql(f"CREATE MATERIALIZED VIEW v WITH (schedule = '{schedule}') AS {BY_CUSTOMER}")
    paces = ByGoals(db._house)
    paces.units(clock.now())
    made = paces._made
    assert made is not None
    assert not made.is_to_be_looked_at(clock.now() + timedelta(seconds=seconds - 1))
    assert made.is_to_be_looked_at(clock.now() + timedelta(seconds=seconds))


def test_a_cheap_night_attracts_early_runs(db: Warehouse, clock: SimulatedClock) -> None:
    """Without any goal: what came until the evening waits for the night, and not for the due
    moment, at which work costs five times as much."""
    db.sql("ALTER WAREHOUSE SET (prices = '0.2 from 22:00 to 06:00')")
    db.sql(f"CREATE MATERIALIZED VIEW v WITH (schedule = 'daily 06:00') AS {BY_CUSTOMER}")
    arriving(db, clock, range(5 * 24), 20_000)
    with db.scheduler(poll_seconds=900) as scheduler:
        scheduler.run(until=datetime(2026, 1, 8, 12, tzinfo=UTC))
        (daily,) = db.plan().rhythms
        assert daily.cpu_seconds < 0.8 * daily.batch_cpu_seconds
        assert daily.pieces[0].pace > 1
        scheduler.run(until=datetime(2026, 1, 9, 6, 5, tzinfo=UTC))
    night = [
        e for e in db.history(limit=2000) if e["kind"] == "early" and e["at"] > "2026-01-08T12"
    ]
    assert {e["price"] for e in night} & {0.2}
    assert all(e["price"] == 0.2 for e in night if e["run"] * 2 >= e["pace"])
    assert db.verify("v").equal
    db.sql("ALTER WAREHOUSE RESET (prices)")
    (daily,) = db.plan().rhythms
    assert daily.pieces[0].pace == 1  # nothing is gained by running early


def by_rows(db: Warehouse, clock: SimulatedClock, rows: int = 1_000_000) -> None:
    """A hundred thousand rows an hour, and a view of the last million."""
    for hour in range(5):
        clock.wait(datetime(2026, 1, 5, hour, 30, tzinfo=UTC))
        sell(db, 100_000)
    db.sql(
        f"""CREATE MATERIALIZED VIEW v WITH (schedule = 'every {rows} rows', within = '0.2x')
        AS {BY_CUSTOMER}"""
    )


def test_a_view_that_is_due_by_rows_has_paces(db: Warehouse, clock: SimulatedClock) -> None:
    by_rows(db, clock)
    (rhythm,) = db.plan().rhythms
    assert rhythm.next_due == "after 1,000,000 rows"
    assert rhythm.period_seconds == pytest.approx(10 * 3600, rel=0.1)
    (sales,) = rhythm.tables
    assert sales.expected_rows == pytest.approx(1_000_000)
    assert rhythm.pieces[0].pace > 1
    assert db.plan().unpaced == ()
    db.refresh()
    arriving(db, clock, range(5, 40), 100_000)
    with db.scheduler(poll_seconds=900) as scheduler:
        scheduler.run(until=datetime(2026, 1, 6, 14, 50, tzinfo=UTC))
    events = db.history(limit=2000)
    early = [e for e in events if e["kind"] == "early"]
    assert {e["expected_rows"] for e in early} == {1_000_000}
    served = [e for e in events if e["kind"] == "goal"]
    assert len(served) == 3
    assert len(early) >= 3  # in each interval at least one
    assert db.sql("SELECT COUNT(*) FROM v").fetchall() == [(500,)]
    assert db.verify("v").equal


def test_views_that_are_due_by_the_same_rows_are_planned_together(
    db: Warehouse, clock: SimulatedClock
) -> None:
    by_rows(db, clock)
    db.sql("CREATE TABLE stores (id BIGINT, city STRING)")
    with_rows = "WITH (schedule = 'every 1000000 rows')"
    joined = "SELECT city, SUM(amount) AS n FROM sales JOIN stores ON customer = stores.id"
    db.sql(f"CREATE MATERIALIZED VIEW same {with_rows} AS {LARGEST}")
    db.sql(f"CREATE MATERIALIZED VIEW other {with_rows} AS {joined} GROUP BY city")
    told = [tuple(v.view for v in r.views) for r in db.plan().rhythms]
    assert sorted(told) == [("other",), ("same", "v")]


def test_nobody_knows_when_rows_are_there_that_have_not_begun_to_come(db: Warehouse) -> None:
    db.sql(f"CREATE MATERIALIZED VIEW v WITH (schedule = 'every 9 rows') AS {BY_CUSTOMER}")
    (told,) = db.plan().unpaced
    assert told.reason == "DUE_BY_ROWS"
