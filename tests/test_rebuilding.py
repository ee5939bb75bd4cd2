"""What a plan says would be rebuilt, beside what then is: statements are run, views refreshed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from typer.testing import CliRunner

import slackwater
from slackwater import Warehouse
from slackwater.cli.app import app
from slackwater.planner import simulation
from slackwater.work.plan_report import Rebuild

ROWS = 50_000
STORED = """SELECT r.name, SUM(i.amount) AS total FROM items i JOIN shops s ON i.shop = s.id
    JOIN regions r ON s.region = r.id GROUP BY r.name"""
LOW = "SELECT shop, SUM(amount) AS n FROM items GROUP BY shop"
BY_SHOP = "(SELECT shop, SUM(amount) AS n FROM offers GROUP BY shop)"
OFFERED = f"SELECT s.id FROM shops s JOIN {BY_SHOP} l ON s.id = l.shop WHERE s.region < l.n"
LARGEST = f"SELECT MAX(n) AS n FROM {BY_SHOP} WHERE n > 7"
CHAIN = {
    "low": LOW,
    "mid": "SELECT n % 7 AS bucket, COUNT(*) AS k FROM low GROUP BY n % 7",
    "beside": "SELECT s.region, SUM(l.n) AS n FROM low l JOIN shops s ON l.shop = s.id "
    "GROUP BY s.region",
    "top": "SELECT MAX(k) AS most FROM mid",
    "apart": "SELECT region, COUNT(*) AS n FROM shops GROUP BY region",
}


@pytest.fixture
def db(tmp_path: Path) -> Iterator[Warehouse]:
    with slackwater.connect(tmp_path / "w", placement="local") as db:
        db.sql("CREATE TABLE regions (id BIGINT, name STRING)")
        db.sql("CREATE TABLE shops (id BIGINT, region BIGINT)")
        db.sql("CREATE TABLE items (id BIGINT, shop BIGINT, amount BIGINT)")
        db.append("regions", pa.table({"id": range(10), "name": [f"r{i}" for i in range(10)]}))
        db.append("shops", pa.table({"id": range(500), "region": [i % 10 for i in range(500)]}))
        sell(db, ROWS)
        yield db


@pytest.fixture
def sharing(db: Warehouse, monkeypatch: pytest.MonkeyPatch) -> Warehouse:
    """Two views that share a part, where only rows cost anything."""
    for measure in simulation.RUN:
        monkeypatch.setitem(simulation.RUN, measure, 0.0)
    db.sql("CREATE TABLE offers (id BIGINT, shop BIGINT, amount BIGINT)")
    sell(db, 20 * ROWS, "offers")
    options = "schedule = 'daily 06:00', within = '5x'"
    create(db, "one", OFFERED, options)
    create(db, "other", LARGEST, options)
    db.plan(apply=True)
    db.refresh()
    return db


def sell(db: Warehouse, rows: int = 20, table: str = "items") -> None:
    if not rows:
        return
    ids = np.arange(rows)
    db.append(table, pa.table({"id": ids, "shop": ids % 500, "amount": ids}))


def create(db: Warehouse, name: str, query: str, options: str = "") -> None:
    said = f"WITH ({options})" if options else ""
    db.sql(f"CREATE MATERIALIZED VIEW {name} {said} AS {query}")


def states(db: Warehouse) -> dict[tuple[str, str], int]:
    """By view and signature, the bytes of all states that there are."""
    snapshot = db.catalog.snapshot()
    return {
        (view.name, state.signature): sum(s.bytes for s in snapshot.segments(state.id))
        for view in (*snapshot.views(), *snapshot.parts())
        for state in snapshot.states(view.id)
    }


def checked(db: Warehouse, statement: str, rows: int = 0) -> Rebuild:
    """What is told before a statement, which is then run; all that it tells is what happens. So
    many rows come between the two."""
    at = db.catalog.snapshot().commit
    told = db.plan(supposing=statement).rebuild
    assert db.catalog.snapshot().commit == at
    had_content = {v.name for v in db.catalog.snapshot().views() if v.refreshed_at is not None}
    before = states(db)
    db.sql(statement)
    sell(db, rows)
    new = {v.name for v in db.catalog.snapshot().views() if v.refreshed_at is None}
    anew = {report.view for report in db.refresh() if report.mode == "full"}
    assert {made.name for made in told.views} == (anew & had_content) - new
    assert {made.name for made in told.first} == anew & new
    after = states(db)
    rebuilt = {name for name in anew if name in {made.name for made in told.first}}
    gone = [(name, before[name, s]) for name, s in before.keys() - after.keys()]
    gone += [(n, before[n, s]) for n, s in before.keys() & after.keys() if n in rebuilt]
    assert sorted((s.view, s.bytes) for s in told.dropped_states) == sorted(gone)
    made = [(n, after[n, s]) for n, s in after.keys() - before.keys() if n not in rebuilt]
    assert sorted(s.view for s in told.built_states) == sorted(view for view, _ in made)
    for view in {view for view, _ in made}:
        size = sum(taken for name, taken in made if name == view)
        assert size / 4 <= sum(s.bytes for s in told.built_states if s.view == view) <= 4 * size
    for view in db.catalog.snapshot().views():
        assert db.verify(view.name).equal
    assert db.plan().rebuild.is_nothing
    return told


# -- views on views


@pytest.mark.parametrize("waiting", [False, True])
def test_who_reads_a_replaced_view_is_computed_anew(db: Warehouse, waiting: bool) -> None:
    for name, query in CHAIN.items():
        create(db, name, query)
    db.refresh()
    if waiting:
        sell(db)
    other = LOW.replace("SUM(amount)", "SUM(amount + 1)")
    told = checked(db, f"CREATE OR REPLACE MATERIALIZED VIEW low AS {other}")
    assert {made.name for made in told.views} == {"mid", "beside", "top"}
    assert all(made.rows > 0 and made.cpu_seconds > 0 for made in told.views)
    assert {state.view for state in told.dropped_states} == {"low"}


def test_a_view_that_was_replaced_and_not_refreshed_yet_is_told_of(db: Warehouse) -> None:
    for name, query in CHAIN.items():
        create(db, name, query)
    db.refresh()
    assert db.plan().rebuild.is_nothing
    db.sql(f"CREATE OR REPLACE MATERIALIZED VIEW mid AS {CHAIN['mid']} HAVING COUNT(*) > 1")
    told = db.plan().rebuild
    assert ([m.name for m in told.views], [m.name for m in told.first]) == (["top"], ["mid"])
    full = {report.view for report in db.refresh() if report.mode == "full"}
    assert full == {"mid", "top"}


def test_who_reads_a_view_that_is_computed_anew_each_time_is_too(db: Warehouse) -> None:
    for name, query in CHAIN.items():
        create(db, name, query)
    db.refresh()
    sell(db)
    told = checked(db, "ALTER MATERIALIZED VIEW low SET (refresh = 'full')")
    assert {made.name for made in told.views} == {"low", "mid", "beside", "top"}
    assert {state.view for state in told.dropped_states} == {"low"}


def test_parts_of_a_replaced_view_are_made_anew(sharing: Warehouse) -> None:
    """Also where the new view has the same: its parts go with the old one."""
    db = sharing
    (part,) = db.catalog.snapshot().parts()
    again = "WITH (schedule = 'daily 06:00', within = '5x')"
    told = db.plan(
        supposing=[
            "DROP MATERIALIZED VIEW other",
            f"CREATE OR REPLACE MATERIALIZED VIEW one {again} AS {OFFERED}",
            f"CREATE MATERIALIZED VIEW other {again} AS {LARGEST}",
        ]
    ).rebuild
    assert [made.name for made in told.dropped_parts] == [part.id]
    assert [made.views for made in told.new_parts] == [("one", "other")]
    assert part.id not in {made.name for made in told.new_parts}


# -- what is kept


@pytest.mark.parametrize("waiting", [False, True])
@pytest.mark.parametrize("budget", ["0 MB", "2 kB", "20 kB"])
def test_states_for_which_there_is_no_room_any_more(
    db: Warehouse, waiting: bool, budget: str
) -> None:
    create(db, "stored", STORED, "refresh = 'incremental'")
    db.refresh()
    sell(db)
    db.refresh()  # by now it is known what comes
    if waiting:
        sell(db)
    alter = f"ALTER MATERIALIZED VIEW stored SET (state_budget = '{budget}')"
    told = checked(db, alter, 0 if waiting or budget != "20 kB" else 20)
    assert told.views == ()
    if budget == "0 MB":
        assert [(s.view, s.state) for s in told.dropped_states] == [("stored", "sums by 1 keys")]


def test_states_for_which_there_is_room_now(db: Warehouse) -> None:
    create(db, "stored", STORED, "refresh = 'incremental', state_budget = '0 MB'")
    db.refresh()
    sell(db)
    db.refresh()
    assert states(db) == {}
    sell(db)
    told = checked(db, "ALTER MATERIALIZED VIEW stored SET (state_budget = '2 MB')")
    assert "sums by 1 keys" in {state.state for state in told.built_states}
    assert told.dropped_states == ()


@pytest.mark.parametrize("waiting", [False, True])
@pytest.mark.parametrize("mode", ["incremental", "auto"])
def test_states_are_dropped_and_built_by_how_a_view_may_be_refreshed(
    db: Warehouse, mode: str, waiting: bool
) -> None:
    """Rows wait already, or come by the time of the refresh."""
    create(db, "stored", STORED, "refresh = 'incremental'")
    create(db, "low", LOW)
    db.refresh()
    sell(db)
    db.refresh()
    later = 0 if waiting else 20
    sell(db, 20 - later)
    told = checked(db, "ALTER MATERIALIZED VIEW stored SET (refresh = 'full')", later)
    assert [s.view for s in told.dropped_states] == ["stored"]
    assert {made.name for made in told.views} == {"stored"}
    sell(db, 20 - later)
    told = checked(db, f"ALTER MATERIALIZED VIEW stored SET (refresh = '{mode}')", later)
    assert told.dropped_states == ()
    assert {view for view, _ in states(db)} == {"low"} | {s.view for s in told.built_states}
    assert mode == "auto" or told.built_states


def test_what_is_set_for_the_warehouse_counts_for_views_that_say_nothing(db: Warehouse) -> None:
    create(db, "stored", STORED, "refresh = 'incremental'")
    create(db, "own", STORED, "refresh = 'incremental', state_budget = '3 MB'")
    db.refresh()
    sell(db)
    told = checked(db, "ALTER WAREHOUSE SET (state_budget = '0 MB')")
    assert {state.view for state in told.dropped_states} == {"stored"}
    sell(db)
    told = checked(db, "ALTER WAREHOUSE RESET (state_budget)")
    assert {state.view for state in told.built_states} == {"stored"}


def test_a_budget_that_was_set_and_not_gone_by_yet_is_told_of(db: Warehouse) -> None:
    create(db, "stored", STORED, "refresh = 'incremental'")
    db.refresh()
    for name in ("state_budget = '0 MB'", "refresh = 'full'"):
        db.sql(f"ALTER MATERIALIZED VIEW stored SET ({name})")
        assert [s.view for s in db.plan().rebuild.dropped_states] == ["stored"]
        db.sql("ALTER MATERIALIZED VIEW stored RESET (state_budget, refresh)")


def test_telling_changes_no_decision(db: Warehouse) -> None:
    """What a view keeps is decided before each refresh, and remembered; not what is supposed."""
    create(db, "stored", STORED, "refresh = 'incremental', state_budget = '2 MB'")
    db.refresh()
    sell(db)
    db.refresh()
    before = dict(db._house.keeper.decided)
    sell(db)
    db.plan(supposing="ALTER MATERIALIZED VIEW stored SET (state_budget = '1 kB')")
    assert db._house.keeper.decided == before


def test_parts_go_by_the_budgets_of_their_views(sharing: Warehouse) -> None:
    """Each of the two leaves it 2 kB."""
    (part,) = sharing.catalog.snapshot().parts()
    names = ("one", "other")
    alter = (f"ALTER MATERIALIZED VIEW {n} SET (state_budget = '2 kB')" for n in names)
    told = checked(sharing, "; ".join(alter))
    dropped = [(s.view, s.state) for s in told.dropped_states]
    assert [own for own in dropped if own[0] == part.id] == [(part.id, "sums by 1 keys")]


def test_the_command_shows_states(db: Warehouse, tmp_path: Path) -> None:
    create(db, "stored", STORED, "refresh = 'incremental'")
    db.refresh()
    alter = "ALTER MATERIALIZED VIEW stored SET (state_budget = '0 MB')"
    given = ["-w", str(tmp_path / "w"), "--placement", "local", "plan", "--with", alter]
    shown = CliRunner().invoke(app, given).stdout
    assert "dropped state" in shown
    assert "sums by 1 keys" in shown
    told = CliRunner().invoke(app, [*given, "--json"]).stdout
    assert '"dropped_states"' in told
