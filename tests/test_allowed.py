"""How long a result may take: one meaning of `within`, whoever asks."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest

import slackwater
from slackwater import Warehouse
from slackwater.catalog.model import View
from slackwater.planner.pace import Found, Goal, Search
from slackwater.planner.simulation import Inflow, Setting, Simulation
from slackwater.planner.subplans import cut
from slackwater.service.clock import SimulatedClock
from slackwater.service.goals import within_seconds
from slackwater.stats.rows import Change
from slackwater.tvr.normal import normalize
from slackwater.work import allowed, parts
from slackwater.work.allowed import allowed_seconds, batch
from slackwater.work.meaning import as_written
from slackwater.work.standing import Newest, standing
from slackwater.work.world import World

BY_KIND = "SELECT kind, SUM(amount) AS total FROM sales GROUP BY kind"
ABOVE = f"SELECT s.id, s.amount FROM sales s JOIN ({BY_KIND}) t USING (kind) WHERE amount > total"


@pytest.fixture
def clock() -> SimulatedClock:
    """Midnight; every refresh takes two seconds."""
    return SimulatedClock("2026-01-05 00:00", taking=lambda reports, measured: 2.0)


@pytest.fixture
def db(tmp_path: Path, clock: SimulatedClock) -> Iterator[Warehouse]:
    """Many sales, to which few come every hour."""
    with slackwater.connect(tmp_path / "w", placement="local", clock=clock) as db:
        db.sql("CREATE TABLE sales (id BIGINT, kind BIGINT, amount BIGINT)")
        sell(db, 100_000)
        clock.every(3600, lambda: sell(db, 500), until="2026-01-07 00:00")
        yield db


def sell(db: Warehouse, rows: int, table: str = "sales") -> None:
    """More sales."""
    ids = range(rows)
    columns = {"id": ids, "kind": [i % 100 for i in ids], "amount": [i % 77 for i in ids]}
    db.append(table, pa.table(columns))


def view(db: Warehouse, name: str, query: str, **options: str) -> View:
    said = ", ".join(f"{key} = '{value}'" for key, value in options.items())
    db.sql(f"CREATE MATERIALIZED VIEW {name} WITH ({said}) AS {query}")
    return found(db, name)


def found(db: Warehouse, name: str) -> View:
    made = db.catalog.snapshot().find(name)
    assert isinstance(made, View)
    return made


def world(db: Warehouse) -> World:
    return World(db._house, db.catalog.snapshot(), defining=True)


def test_plans_and_goals_of_results_agree_on_what_is_allowed(
    db: Warehouse, clock: SimulatedClock
) -> None:
    """Told in the plan after one result, and with the next one when it was due."""
    goals = {"sums": "0.5x", "above": "0.02x", "upper": "2x", "lower": "1.5 seconds"}
    queries = {
        "sums": BY_KIND,
        "above": ABOVE,
        "upper": "SELECT MAX(total) AS most FROM sums",
        "lower": "SELECT COUNT(*) AS n FROM sales",
    }
    for name, query in queries.items():
        view(db, name, query, schedule="every 6 hours", within=goals[name])
    with db.scheduler(poll_seconds=3600) as scheduler:
        scheduler.run(until="2026-01-05 12:00")
    told = {name: planned.wanted_seconds for name, planned in db.plan().views.items()}
    with db.scheduler(poll_seconds=3600) as scheduler:
        scheduler.run(until="2026-01-05 18:00")
    assert told.keys() == goals.keys()
    for name in goals:
        event = next(e for e in db.history(name) if e["kind"] == "goal")
        assert event["due"][11:16] == "18:00"
        assert event["within_seconds"] == pytest.approx(told[name], rel=1e-3)


def test_warnings_go_by_the_rows_that_will_be_there(db: Warehouse) -> None:
    made = view(db, "sums", BY_KIND, schedule="every 6 hours", within="0.5x")
    here = standing(Newest(db.catalog), db.catalog.snapshot(), made)
    (table,) = db.catalog.snapshot().tables()
    now, later = (within_seconds(db._house, here, r) for r in (None, {table.id: 10_000_000.0}))
    assert now is not None
    assert later is not None
    assert later > 5 * now
    db.sql("DROP VIEW sums")
    assert within_seconds(db._house, here) is None


def test_a_goal_is_not_shorter_where_little_comes(db: Warehouse, clock: SimulatedClock) -> None:
    """A refresh by few changes keeps a share of the batch without early runs."""
    db.sql("CREATE TABLE old (id BIGINT, kind BIGINT, amount BIGINT)")
    sell(db, 5_000_000, "old")
    both = f"SELECT * FROM ({BY_KIND}) UNION ALL {BY_KIND.replace('sales', 'old')}"
    view(db, "sums", both, schedule="every 6 hours", within="0.9x")
    db.refresh()
    clock.wait(datetime(2026, 1, 6, 12, tzinfo=UTC))
    (rhythm,) = db.plan().rhythms
    (planned,) = rhythm.views
    assert [table.expected_rows for table in rhythm.tables if table.table == "old"] == [0]
    assert planned.wanted_seconds is not None
    assert planned.final_seconds < planned.wanted_seconds < 60
    assert planned.is_met
    assert [piece.pace for piece in rhythm.pieces] == [1] * len(rhythm.pieces)


def test_from_nothing_it_is_the_share_of_one_run_that_searches_go_by(db: Warehouse) -> None:
    made = view(db, "above", ABOVE, schedule="daily 06:00", within="0.25x")
    house = db._house
    query = normalize(as_written(world(db), made)[0])
    (table,) = db.catalog.snapshot().tables()
    arriving = Setting(
        {table.id: Inflow(0, Change(inserts=100_000))}, house.experience.of("").model, ("local",)
    )
    search = Search(Simulation(cut({"above": query}), arriving), {"above": Goal(share=0.25)})
    assert allowed_seconds(world(db), made) == pytest.approx(search.wanted["above"], rel=0.05)


def test_a_batch_is_that_of_the_query_whatever_parts_there_are(db: Warehouse) -> None:
    """A share such as '0.1x' does not shrink as parts are computed early; and who asks may still
    hold the view as it was before its parts were planned anew."""
    before = view(db, "totals", BY_KIND)
    db.refresh()
    alone = batch(world(db), before)
    dag = cut({"totals": normalize(as_written(world(db), before)[0])})
    zero = {"totals": 0.0}
    paced = Found(dict.fromkeys(dag.subplans[0].paths, 4), 0.0, zero, zero)
    parts.apply(db._house, parts.forms(dag, paced, {}, parts.Ids(db.catalog.snapshot())))
    formed = found(db, "totals")
    assert formed.form
    assert batch(world(db), formed) == batch(world(db), before) == alone > 0


def test_the_views_below_count(db: Warehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    """A refresh brings them along, whenever they are due; what differs each time is read as it is
    stored."""
    sums = view(db, "sums", BY_KIND, schedule="daily 06:00")
    upper = view(db, "upper", "SELECT MAX(total) AS m FROM sums", schedule="daily 18:00")
    db.refresh()
    whole = batch(world(db), upper)
    assert whole > batch(world(db), sums)
    monkeypatch.setattr(allowed, "can_expand", lambda *_: False)
    assert 0 < batch(world(db), upper) < whole


def test_nothing_at_all_is_allowed_the_time_of_a_row(db: Warehouse) -> None:
    db.sql("CREATE TABLE empty (a BIGINT)")
    made = view(db, "none", "SELECT COUNT(*) AS n FROM empty", within="0.5x")
    seconds = allowed_seconds(world(db), made)
    assert seconds is not None
    assert seconds > 0


def test_without_a_goal_nothing_is_asked_for(db: Warehouse) -> None:
    made = view(db, "sums", BY_KIND, schedule="daily 06:00")
    assert allowed_seconds(world(db), made) is None
    db.sql("ALTER WAREHOUSE SET (within = '2 minutes')")
    assert allowed_seconds(world(db), made) == timedelta(minutes=2).total_seconds()
