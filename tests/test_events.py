"""Events of refreshes list all ways there were, and what was expected beside what it took."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import slackwater
from slackwater import Warehouse
from slackwater.cli.app import app
from slackwater.planner.choice import ENGINES, FULL, INCREMENTAL, METHODS, NONE, PLAIN
from slackwater.work.reasons import REASONS
from slackwater.work.refreshing import advance

SUMS = "SELECT k, sum(x) AS total FROM t GROUP BY k"
JOINED = "SELECT t.k, sum(u.x) AS total FROM t JOIN u ON t.k = u.k GROUP BY t.k"


@pytest.fixture
def db(tmp_path: Path) -> Iterator[Warehouse]:
    with slackwater.connect(tmp_path / "w", placement="local") as found:
        found.sql("CREATE TABLE t (k BIGINT, x BIGINT)")
        found.sql("CREATE TABLE u (k BIGINT, x BIGINT)")
        found.sql("INSERT INTO t VALUES (1, 1), (2, 2), (3, 3)")
        found.sql("INSERT INTO u VALUES (1, 1), (2, 2)")
        yield found


def _last(db: Warehouse, view: str = "v") -> dict[str, Any]:
    return next(e for e in db.events(view) if e["kind"] == "refresh")


def _is_complete(event: dict[str, Any]) -> None:
    """Each way is there once, with what it was expected to take or why it was out of the question;
    what was done is among them, or nothing was."""
    ways = [(c["method"], c["engine"]) for c in event["candidates"]]
    assert ways == [(m, e) for m in METHODS for e in ENGINES]
    for way in event["candidates"]:
        assert way["reasons"] or (way["cpu_seconds"] > 0 and way["seconds"] > 0)
        assert way["applicable"] == (not way["reasons"])
        assert set(way["reasons"]) <= event["places"].keys() & REASONS.keys()
    told = {w["code"] for w in [*event["why"], *event["why_not"]]}
    assert told == {*event["reasons"], *(r for c in event["candidates"] for r in c["reasons"])}
    assert 0 < event["planning_seconds"] <= event["seconds"]
    chosen, measured = event["chosen"], event["measured"]
    if chosen["method"] == NONE:
        assert (event["mode"], measured["cpu_seconds"], event["steps"]) == (NONE, 0, [])
        return
    assert (chosen["method"], chosen["engine"]) in ways
    assert chosen["engine"] == measured["engine"]
    assert chosen["cpu_seconds"] > 0
    assert chosen["seconds"] > 0
    for amount in ("cpu_seconds", "seconds"):
        assert measured[amount] == pytest.approx(sum(s[amount] for s in event["steps"]), abs=1e-4)


@pytest.mark.parametrize("query", [SUMS, JOINED, "SELECT k, current_date() AS day FROM t"])
@pytest.mark.parametrize("refresh", ["auto", "incremental", "full"])
@pytest.mark.parametrize("budget", ["", ", state_budget = '0 MB'", ", state_budget = '10 MB'"])
def test_every_refresh_lists_every_way(
    db: Warehouse, query: str, refresh: str, budget: str
) -> None:
    db.sql(f"CREATE MATERIALIZED VIEW v WITH (refresh = '{refresh}'{budget}) AS {query}")
    for change in ("", "", "INSERT INTO t VALUES (4, 4)", "TRUNCATE TABLE t"):
        if change:
            db.sql(change)
        db.refresh("v")
        _is_complete(_last(db))
    db.refresh("v", full=True)
    _is_complete(_last(db))
    assert db.verify("v").equal or "current_date" in query


def test_a_refresh_with_nothing_to_do_says_so(db: Warehouse) -> None:
    db.sql(f"CREATE MATERIALIZED VIEW v AS {SUMS}")
    db.refresh("v")
    db.refresh("v")
    event = _last(db)
    assert (event["mode"], event["chosen"]["method"]) == (NONE, NONE)
    assert {tuple(c["reasons"]) for c in event["candidates"]} == {("NOTHING_CHANGED",)}


def test_why_ways_are_not_looked_at(db: Warehouse) -> None:
    def why_not(method: str) -> list[str]:
        ways = _last(db)["candidates"]
        return next(c["reasons"] for c in ways if (c["method"], c["engine"]) == (method, "local"))

    db.sql(f"CREATE MATERIALIZED VIEW v AS {SUMS}")
    db.refresh("v")
    assert why_not(INCREMENTAL) == ["FIRST_REFRESH"]
    assert why_not(PLAIN) == ["STATES_ARE_BUILT"]
    db.sql("INSERT INTO t VALUES (4, 4)")
    db.refresh("v")
    assert why_not("higher-order") == ["NO_PARTS_TO_KEEP"]
    assert why_not(FULL) == []
    db.sql("ALTER MATERIALIZED VIEW v SET (refresh = 'incremental')")
    db.sql("INSERT INTO t VALUES (5, 5)")
    db.refresh("v")
    assert why_not("higher-order") in (["FEW_ROWS"], ["STATE_MISSING"])
    db.sql("ALTER MATERIALIZED VIEW v SET (refresh = 'full')")
    db.sql("INSERT INTO t VALUES (6, 6)")
    db.refresh("v")
    assert why_not(INCREMENTAL) == why_not(FULL) == ["FULL_BY_OPTION"]


def test_views_read_by_others_and_early_runs_list_every_way(db: Warehouse) -> None:
    for name in ("a", "b"):
        db.sql(f"""CREATE MATERIALIZED VIEW {name} WITH (schedule = 'every 1 hour', within = '1 ms')
                   AS SELECT k, {"sum" if name == "a" else "max"}(total) AS n
                   FROM ({JOINED}) GROUP BY k""")
    db.sql("CREATE MATERIALIZED VIEW above AS SELECT sum(n) AS n FROM a")
    db.plan(apply=True)
    db.refresh()
    db.sql("INSERT INTO t VALUES (2, 4)")
    parts = db._house.catalog.snapshot().parts()
    advance(db._house, {part.id: () for part in parts})
    db.sql("INSERT INTO u VALUES (2, 4)")
    db.refresh()
    events = [e for e in db.events(limit=100) if e["kind"] == "refresh"]
    assert len({e["view"] for e in events}) == 3 + len(parts)
    for event in events:
        _is_complete(event)


def test_history_shows_what_was_expected_beside_what_was_measured(tmp_path: Path) -> None:
    path = str(tmp_path / "w")
    with slackwater.connect(path, placement="local") as db:
        db.sql("CREATE TABLE t (k BIGINT, x BIGINT)")
        db.sql("INSERT INTO t VALUES (1, 1), (2, 2)")
        db.sql(f"CREATE MATERIALIZED VIEW v AS {SUMS}")
        db.refresh("v")
        event = _last(db)

    def history(*args: str) -> list[str]:
        found = CliRunner().invoke(app, ["-w", path, "history", "v", *args])
        assert found.exit_code == 0, found.output
        return found.stdout.splitlines()

    head, *lines = [line for line in history() if line.strip()]
    assert "expected CPU s" in head
    (line,) = [line for line in lines if " refresh " in line]
    assert f"{event['chosen']['cpu_seconds']:.3f}" in line
    assert f"{event['measured']['cpu_seconds']:.3f}" in line
    assert " full " in line
    every = history("--candidates")
    (taken,) = [line for line in every if line.lstrip().startswith("*")]
    assert taken.split()[1:3] == [FULL, "local"]
    assert f"{event['measured']['cpu_seconds']:.3f}" in taken
    for way in (INCREMENTAL, "higher-order", PLAIN):
        assert sum(line.lstrip().startswith(way) for line in every) == len(ENGINES)
    assert any(
        "STATES_ARE_BUILT" in line and REASONS["STATES_ARE_BUILT"].rewrite in line for line in every
    )


def test_prices_are_not_fitted_to_refreshes_of_a_few_rows_with_one_way(db: Warehouse) -> None:
    """They are told, but what they take is mostly what varies."""
    db.sql(f"CREATE MATERIALIZED VIEW v WITH (refresh = 'incremental') AS {SUMS}")
    db.refresh("v")
    db.sql("INSERT INTO t VALUES (4, 4)")
    db.refresh("v")
    event = _last(db)
    assert event["chosen"]["cpu_seconds"] > 0
    assert not event["chosen"]["alone"]
    assert db._house.experience.of("v").past.refreshes == 0
