"""What views cost and how goals were kept: of all runs, whoever they were for."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from typer.testing import CliRunner

import slackwater
from slackwater import Warehouse
from slackwater.catalog.ids import timestamp
from slackwater.catalog.model import Event, WriteEvent
from slackwater.catalog.store import Catalog
from slackwater.catalog.sums import Goals, Spent
from slackwater.cli.app import app
from slackwater.service.clock import SimulatedClock
from slackwater.work.refreshing import advance
from tests.catalogs import BACKENDS, create, fresh_url, table, view

MANY = 12_000
"""More events than are read one by one."""
START = "2026-01-05 00:00"
BY_CUSTOMER = "SELECT customer, SUM(amount) AS n FROM sales GROUP BY customer"
LARGEST = f"SELECT MAX(n) AS n FROM ({BY_CUSTOMER}) WHERE n > 7"


@pytest.fixture
def clock() -> SimulatedClock:
    return SimulatedClock(START, taking=lambda reports, measured: 0.0)


@pytest.fixture
def db(tmp_path: Path, clock: SimulatedClock) -> Iterator[Warehouse]:
    with slackwater.connect(tmp_path / "w", placement="local", clock=clock) as db:
        db.sql("CREATE TABLE sales (id BIGINT, customer BIGINT, amount BIGINT)")
        sell(db)
        yield db


def sell(db: Warehouse, rows: int = 1000) -> None:
    ids = np.arange(rows)
    db.append("sales", pa.table({"id": ids, "customer": ids % 50, "amount": ids % 7}))


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def accounts(db: Warehouse, name: str) -> dict[str, Any]:
    return next(entry for entry in db.status()["views"] if entry["name"] == name)


def cpu(event: dict[str, Any]) -> float:
    return float(event["measured"]["cpu_seconds"])


def test_cost_is_cpu_times_the_price_at_its_time(db: Warehouse, clock: SimulatedClock) -> None:
    db.sql("ALTER WAREHOUSE SET (prices = '0.25 from 22:00 to 06:00, 2 from 12:00 to 13:00')")
    db.sql(f"CREATE MATERIALIZED VIEW v AS {BY_CUSTOMER}")
    hours = {"05 05:00": 0.25, "05 12:30": 2.0, "05 15:00": 1.0, "06 12:00": 2.0}
    for hour in hours:
        clock.wait(at(f"2026-01-{hour}"))
        sell(db)
        db.refresh("v")
    refreshes = [e for e in reversed(db.history("v")) if e["kind"] == "refresh"]
    assert [e["price"] for e in refreshes] == list(hours.values())
    db.sql("ALTER WAREHOUSE SET (prices = '100')")  # what was spent, was spent at other prices
    found = accounts(db, "v")
    days = {"2026-01-05": refreshes[:3], "2026-01-06": refreshes[3:]}
    assert found["cpu_seconds"].keys() == found["cost"].keys() == days.keys()
    for day, own in days.items():
        assert found["cpu_seconds"][day] == pytest.approx(sum(map(cpu, own)))
        assert found["cost"][day] == pytest.approx(sum(cpu(e) * e["price"] for e in own))
        assert found["cost"][day] != pytest.approx(found["cpu_seconds"][day])


def test_a_price_is_that_of_the_moment_at_which_a_run_begins(db: Warehouse, tmp_path: Path) -> None:
    slow = SimulatedClock("2026-01-05 05:30", taking=lambda reports, measured: 3600.0)
    with slackwater.connect(tmp_path / "w", placement="local", clock=slow) as db:
        db.sql("ALTER WAREHOUSE SET (prices = '0.5 from 22:00 to 06:00')")
        db.sql(f"CREATE MATERIALIZED VIEW v WITH (schedule = 'daily 05:45') AS {BY_CUSTOMER}")
        with db.scheduler(poll_seconds=600) as scheduler:
            scheduler.run(until="2026-01-05 06:45")
        goals = [e["price"] for e in db.history("v") if e["kind"] == "goal"]
        refreshes = [e["price"] for e in db.history("v") if e["kind"] == "refresh"]
        assert refreshes[-1] == 0.5
        assert goals == refreshes[: len(goals)]


def test_runs_of_a_part_count_for_its_views_also_when_it_is_gone(
    db: Warehouse, clock: SimulatedClock
) -> None:
    db.sql("ALTER WAREHOUSE SET (prices = '0.5 from 00:00 to 06:00')")
    sell(db, 2_000_000)
    for name, more in (("one", ""), ("other", " AND n < 10000000")):
        options = "WITH (schedule = 'daily 06:00', within = '5x')"
        db.sql(f"CREATE MATERIALIZED VIEW {name} {options} AS {LARGEST}{more}")
    db.plan(apply=True)
    (part,) = db.catalog.snapshot().parts()
    db.refresh()
    for hour in (3, 9):
        clock.wait(at(f"2026-01-05 {hour:02}:00"))
        sell(db, 50_000)
        advance(db._house, {part.id: ()})
    before = {name: accounts(db, name) for name in ("one", "other")}
    for name in before:
        db.sql(f"ALTER MATERIALIZED VIEW {name} RESET (schedule)")
    db.plan(apply=True)
    assert db.catalog.snapshot().parts() == ()
    events = db.catalog.events(kind="refresh")
    early = [e for e in events if e.relation == part.id]
    assert [e.body["views"] for e in early] == [["one", "other"]] * 3
    assert [e.body["price"] for e in early] == [1.0, 0.5, 0.5]
    for name, found in before.items():
        own = [e.body for e in events if e.body["view"] == name]
        shared = [e.body for e in early]
        cost = sum(cpu(b) * b["price"] for b in own) + sum(cpu(b) * b["price"] for b in shared) / 2
        assert found["cost"] == {"2026-01-05": pytest.approx(cost)}
        spent = sum(map(cpu, own)) + sum(map(cpu, shared)) / 2
        assert found["cpu_seconds"] == {"2026-01-05": pytest.approx(spent)}
        after = accounts(db, name)
        assert (after["cost"], after["cpu_seconds"]) == (found["cost"], found["cpu_seconds"])
    assert sum(map(cpu, shared)) > 0


@pytest.mark.parametrize("backend", BACKENDS)
def test_however_many_events_there_are_all_are_added_up(backend: str, tmp_path: Path) -> None:
    with Catalog.open(fresh_url(backend, tmp_path)) as catalog:
        sales = table("sales")
        own = view("own", sales)
        create(catalog, sales, own)
        moments = [at(f"2026-01-{5 + i % 3:02} {i % 24:02}:00") for i in range(MANY)]
        told = []
        kept, missed = 0, 0
        expected: dict[tuple[str, tuple[str, ...]], list[float]] = defaultdict(lambda: [0.0, 0.0])
        for i, moment in enumerate(moments):
            when = timestamp(moment.timestamp())
            body: dict[str, Any] = {"view": "own", "measured": {"cpu_seconds": i / 8}}
            if i % 5:
                body["price"] = i % 4 / 2  # else, of a version that wrote none
            if i % 7 == 0:
                body |= {"view": "p1", "views": ['a "quoted" one', "own"]}
            told.append(WriteEvent(Event("refresh", own.id, when, body)))
            amounts = expected[when[:10], tuple(body.get("views", ["own"]))]
            amounts[0] += i / 8
            amounts[1] += i / 8 * body.get("price", 1.0)
            within = None if i % 3 == 0 else 1.0
            in_time = i % 2 == 0
            goal = {"kept": in_time, "within_seconds": within}
            told.append(WriteEvent(Event("goal", own.id, when, goal)))
            if when >= "2026-01-06":
                kept += in_time and within is not None
                missed += not in_time
        catalog.commit([], told)
        found = list(catalog.spent("2026-01-06"))
        assert all(isinstance(spent, Spent) for spent in found)
        sums = {(s.day, s.views): [s.cpu_seconds, s.cost] for s in found}
        assert sums == {key: own for key, own in expected.items() if key[0] >= "2026-01-06"}
        assert catalog.goals("2026-01-06") == [Goals(own.id, kept, missed)]


def test_the_command_shows_seconds_and_cost(db: Warehouse, tmp_path: Path) -> None:
    db.sql("ALTER WAREHOUSE SET (prices = '1000')")
    db.sql(f"CREATE MATERIALIZED VIEW v AS {BY_CUSTOMER}")
    db.refresh("v")
    (entry,) = db.status()["views"]
    ((day, spent),) = entry["cpu_seconds"].items()
    assert entry["cost"][day] == pytest.approx(1000 * spent)
    moment = timestamp(datetime.now(UTC).timestamp())
    body = {"view": "v", "measured": {"cpu_seconds": 2.5}, "price": 3.0}
    db.catalog.commit([], [WriteEvent(Event("refresh", None, moment, body))])
    shown = CliRunner().invoke(app, ["-w", str(tmp_path / "w"), "--placement", "local", "status"])
    assert f"{moment[:10]}: 2.50 (7.50)" in shown.stdout
