"""Goals of views that have no pace: said where they cannot be met, and only there."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest

import slackwater
from slackwater import Warehouse
from slackwater.service.clock import SimulatedClock
from slackwater.work.without_pace import WithoutPace
from slackwater.work.world import World

ROWS = 300_000
SUMS = "SELECT kind, SUM(amount) AS total FROM sales GROUP BY kind"
TOP = "SELECT COUNT(*) AS n, MAX(total) AS most FROM sums WHERE total > 0"


@pytest.fixture
def clock() -> SimulatedClock:
    return SimulatedClock("2026-01-05 00:00")


@pytest.fixture
def db(tmp_path: Path, clock: SimulatedClock) -> Iterator[Warehouse]:
    """Sales of many kinds, and a view of them that is due each hour."""
    with slackwater.connect(tmp_path / "w", placement="local", clock=clock) as db:
        db.sql("CREATE TABLE sales (kind BIGINT, amount BIGINT)")
        sell(db, ROWS)
        db.sql(f"CREATE MATERIALIZED VIEW sums WITH (schedule = 'every 1 hour') AS {SUMS}")
        yield db


def sell(db: Warehouse, rows: int, table: str = "sales") -> None:
    """More sales, each of a kind of its own at first."""
    db.append(table, pa.table({"kind": range(rows), "amount": range(rows)}))


def seconds(db: Warehouse) -> float:
    """Of the refresh that is expected."""
    world = World(db._house, db.catalog.snapshot(), defining=True)
    return WithoutPace(world, world.view("v")).seconds()


def made(db: Warehouse, schedule: str, within: str, query: str = TOP, refresh: str = "auto") -> str:
    """What is told of a view."""
    options = f"schedule = '{schedule}', within = '{within}', refresh = '{refresh}'"
    return db.sql(f"CREATE OR REPLACE MATERIALIZED VIEW v WITH ({options}) AS {query}").message


@pytest.mark.parametrize(
    ("schedule", "query", "refresh", "reason"),
    [
        ("daily 07:00", TOP, "auto", "READS_VIEWS"),
        ("every 100 rows", TOP, "auto", "READS_VIEWS"),
        ("every 100 rows", SUMS, "auto", "DUE_BY_ROWS"),
        ("daily 07:00", SUMS, "full", "REFRESH_FULL"),
        ("daily 07:00", TOP, "full", "REFRESH_FULL"),
    ],
)
@pytest.mark.parametrize("within", ["0.0001 seconds", "0.0001x"])
def test_a_goal_out_of_reach_is_said_with_the_nearest(
    db: Warehouse, schedule: str, query: str, refresh: str, reason: str, within: str
) -> None:
    told = made(db, schedule, within, query, refresh)
    assert f"within = '{within}' cannot be met: about " in told
    (unpaced,) = db.plan().unpaced
    assert unpaced.reason == reason
    assert unpaced.note in told
    nearest = re.search(r"about (\S+x) |about (.+?) can", unpaced.note)
    assert nearest is not None
    met = nearest[1] or nearest[2]
    altered = db.sql(f"ALTER MATERIALIZED VIEW v SET (within = '{met}')").message
    assert "cannot be met" not in altered
    assert db.plan().unpaced[0].note == ""


def test_by_few_changes_a_goal_is_met_that_computing_anew_would_miss(
    db: Warehouse, clock: SimulatedClock
) -> None:
    db.sql("CREATE TABLE few (kind BIGINT, amount BIGINT)")
    db.sql(
        "CREATE MATERIALIZED VIEW both WITH (schedule = 'every 1 hour') AS SELECT kind, "
        "SUM(amount) AS total FROM (SELECT * FROM sales UNION ALL SELECT * FROM few) GROUP BY kind"
    )
    clock.every(3600, lambda: sell(db, 10, "few"), until="2026-01-08 00:00")
    clock.wait(datetime(2026, 1, 8, 0, 30, tzinfo=UTC))
    query = TOP.replace("sums", "both")
    made(db, "daily 07:00", "1 hour", query)  # neither was computed until now
    by_changes = seconds(db)
    db.sql("ALTER MATERIALIZED VIEW both SET (refresh = 'full')")
    made(db, "daily 07:00", "1 hour", query, "full")
    assert 0 < by_changes < 0.9 * seconds(db)
    between = f"{(by_changes + seconds(db)) / 2:.4f} seconds"
    assert "cannot be met: about " in made(db, "daily 07:00", between, query, "full")
    db.sql("ALTER MATERIALIZED VIEW both SET (refresh = 'auto')")
    assert "cannot be met" not in made(db, "daily 07:00", between, query)


def test_what_comes_is_that_of_each_views_own_period(db: Warehouse, clock: SimulatedClock) -> None:
    """`sums` is brought along every hour, so that of a day little is left to it."""
    clock.every(3600, lambda: sell(db, 20_000), until="2026-01-08 00:00")
    clock.wait(datetime(2026, 1, 8, 0, 30, tzinfo=UTC))
    made(db, "daily 07:00", "1 hour")
    hourly = seconds(db)
    db.sql("ALTER MATERIALIZED VIEW sums SET (schedule = 'manual')")
    assert seconds(db) > hourly > 0


def test_without_a_moment_or_rows_nothing_is_said(db: Warehouse) -> None:
    assert "met" not in made(db, "manual", "0.0001 seconds")
    db.sql("CREATE TABLE none (kind BIGINT)")
    db.sql("CREATE MATERIALIZED VIEW low WITH (schedule = 'daily 05:00') AS SELECT * FROM none")
    assert "met" not in made(db, "daily 07:00", "0.01 seconds", "SELECT COUNT(*) AS n FROM low")
