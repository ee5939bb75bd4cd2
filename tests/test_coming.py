"""What views with a budget expect of their next refresh: from the clock and from the past."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import pytest

import slackwater
from slackwater import Warehouse
from slackwater.service.clock import SimulatedClock
from slackwater.work.coming import next_moment
from slackwater.work.world import World

JOINED = """AS SELECT c.region, SUM(o.amount) AS total
  FROM orders o JOIN customers c ON o.customer = c.id GROUP BY c.region"""


def moment(day: int, hour: int, minute: int = 0) -> datetime:
    return datetime(2026, 1, day, hour, minute, tzinfo=UTC)


@pytest.fixture
def clock() -> SimulatedClock:
    return SimulatedClock(moment(1, 0))


@pytest.fixture
def db(tmp_path: Path, clock: SimulatedClock) -> Iterator[Warehouse]:
    with slackwater.connect(tmp_path / "w", placement="local", clock=clock) as db:
        db.sql("CREATE TABLE customers (id BIGINT, region STRING)")
        db.sql("CREATE TABLE orders (id BIGINT, customer BIGINT, amount BIGINT)")
        come(db, "customers", 10)
        come(db, "orders", 10)
        yield db


def come(db: Warehouse, table: str, rows: int) -> None:
    """So many rows of a table."""
    columns = {"customers": {"region": "r"}, "orders": {"customer": 1, "amount": 5}}[table]
    db.append(table, [{"id": i} | columns for i in range(rows)])


def view(db: Warehouse, schedule: str, name: str = "v", query: str = JOINED) -> None:
    options = f"schedule = '{schedule}', state_budget = '1 MB'"
    db.sql(f"CREATE MATERIALIZED VIEW {name} WITH ({options}) {query}")


def expected(db: Warehouse) -> dict[str, float]:
    """After a refresh, of the next."""
    told = db.refresh("v")[0].states
    assert told is not None
    found: dict[str, float] = told["expected"]
    return found


def test_before_anything_came_a_little_of_everything_is_expected(db: Warehouse) -> None:
    view(db, "every 1 hour")
    assert expected(db) == {"orders": 0.1, "customers": 0.1}


def test_what_was_loaded_once_is_not_expected_to_come(db: Warehouse, clock: SimulatedClock) -> None:
    """Known from the past of the tables, before the view has one."""
    clock.every(3600, partial(come, db, "orders", 20), until=moment(1, 12))
    clock.wait(moment(1, 12))
    view(db, "every 3 hours")
    found = expected(db)
    assert found["orders"] == pytest.approx(60, rel=0.2)
    assert found["customers"] == 0


def test_what_comes_at_a_time_of_day_is_expected_before_it(
    db: Warehouse, clock: SimulatedClock
) -> None:
    for day in range(1, 6):
        clock.at(moment(day, 5, 30), partial(come, db, "customers", 4))
    clock.every(1200, partial(come, db, "orders", 20), until=moment(6, 0))
    view(db, "every 1 hour")
    found = {}
    for hour in range(1, 24):
        clock.wait(moment(5, hour))
        found[hour] = {name for name, rows in expected(db).items() if rows}
    assert found[5] == {"orders", "customers"}
    assert all(found[hour] == {"orders"} for hour in (*range(1, 5), *range(6, 24)))


def test_more_is_expected_where_predictions_were_off(db: Warehouse, clock: SimulatedClock) -> None:
    for hour in range(1, 24):
        clock.at(moment(1, hour), partial(come, db, "orders", 10))
        clock.at(moment(1, hour), partial(come, db, "customers", 1 if hour % 2 else 19))
    clock.wait(moment(1, 23, 1))
    view(db, "every 1 hour")
    found = expected(db)
    assert 9 < found["orders"] < 14
    assert found["customers"] > 1.3 * found["orders"]  # as many, and the error


def test_what_came_at_the_last_refreshes_counts_where_predictions_are_poor(
    db: Warehouse, clock: SimulatedClock
) -> None:
    """One table after the other is cleaned: by the hour alone, both come as often."""
    view(db, "every 1 hour")
    found = []
    for hour, table in enumerate(["orders"] * 6 + ["customers"] * 4, start=1):
        come(db, table, 20)
        clock.wait(moment(1, hour))
        found.append({name for name, rows in expected(db).items() if rows})
    assert found[5] == {"orders"}
    assert "customers" in found[6]
    assert found[-1] == {"customers"}


def test_without_a_schedule_the_last_refreshes_are_expected_again(db: Warehouse) -> None:
    view(db, "manual")
    db.refresh("v")
    found = []
    for tables in (("orders",), ("orders",), ("orders", "customers"), ("orders",), ("orders",)):
        for table in tables:
            come(db, table, 20)
        found.append(expected(db))
    assert [{name for name, rows in f.items() if rows} for f in found] == [
        {"orders"},
        {"orders"},
        {"orders", "customers"},  # now
        {"orders"},  # it was once
        {"orders"},
    ]
    assert all(f["orders"] == 20 for f in found)


def test_the_next_refresh_is_the_first_that_is_due_or_that_a_reader_is(db: Warehouse) -> None:
    def next_of(name: str) -> datetime | None:
        world = World(db._house, db.catalog.snapshot(), defining=True)
        return next_moment(world, world.view(name), moment(1, 0, 5))

    view(db, "daily 06:00")
    assert next_of("v") == moment(1, 6)
    view(db, "every 2 hours", "above", "AS SELECT MAX(total) AS most FROM v")
    view(db, "every 1 hour", "top", "AS SELECT most FROM above")
    assert (next_of("v"), next_of("above"), next_of("top")) == (moment(1, 1),) * 3
    db.sql("ALTER MATERIALIZED VIEW top SET (schedule = 'every 10 rows')")
    assert (next_of("v"), next_of("top")) == (moment(1, 2), None)
