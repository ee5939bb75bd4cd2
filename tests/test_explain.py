"""EXPLAIN tells the runs of a view: when, what is done where, what is loaded and saved, at what
cost; as text and as JSON the same."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import slackwater
from slackwater import Warehouse
from slackwater.planner import simulation
from slackwater.planner.choice import METHODS
from slackwater.service.clock import SimulatedClock
from slackwater.service.paced import ByGoals
from slackwater.work.parts import PACE

JOINED = "SELECT t.k, sum(u.x) AS total FROM t JOIN u ON t.k = u.k GROUP BY t.k"


@pytest.fixture
def db(tmp_path: Path) -> Iterator[Warehouse]:
    with slackwater.connect(tmp_path / "w", placement="local") as found:
        found.sql("CREATE TABLE t (k BIGINT, x BIGINT)")
        found.sql("CREATE TABLE u (k BIGINT, x BIGINT)")
        found.sql("INSERT INTO t VALUES (1, 1), (2, 2), (3, 3)")
        found.sql("INSERT INTO u VALUES (1, 1), (2, 2)")
        found.sql(f"CREATE MATERIALIZED VIEW v AS {JOINED}")
        yield found


def _told(db: Warehouse, view: str = "v") -> tuple[list[str], dict[str, Any]]:
    return db.explain(view).splitlines(), json.loads(db.explain(view, "json"))


def _steps(told: dict[str, Any], when: str) -> list[dict[str, Any]]:
    return [step for run in told["runs"] if run["when"] == when for step in run["steps"]]


def _says_the_same(lines: list[str], told: dict[str, Any]) -> None:
    """All that is in the JSON form is in the lines."""

    def count(word: str) -> int:
        return sum(line.startswith(word) for line in lines)

    steps = [step for run in told["runs"] for step in run["steps"]]
    outputs = [output for step in steps for output in step["outputs"]]
    assert count("Run:") == len(told["runs"])
    assert count("Step:") == len(steps)
    assert count("Loads:") == sum(len(step["loads"]) for step in steps)
    assert count("Saves:") == sum(output["state"] for output in outputs)
    assert count("Writes:") == sum(not output["state"] for output in outputs)
    assert count("Last:") == (told["last"] is not None)
    assert count("Law:") == len(told["operators"])
    assert count("Reason:") == len(told["reasons"])
    assert count("Input:") == len(told["inputs"])
    for step in steps:
        head = f"Step:   {step['of']}: {step['method']} on {step['engine']}: about "
        assert any(line.startswith(f"{head}{step['cpu_seconds']:.3f} CPU s") for line in lines)
        shares = [output["cpu_seconds"] for output in step["outputs"]]
        assert sum(shares) == pytest.approx(step["cpu_seconds"])


def test_a_first_refresh_builds_what_it_saves(db: Warehouse) -> None:
    lines, told = _told(db)
    _says_the_same(lines, told)
    assert lines[2] == "Method: full (expected of the next refresh)"
    assert told["last"] is None
    (step,) = _steps(told, "now")
    assert (step["of"], step["method"], step["loads"]) == ("v", "full", [])
    assert [(o["name"], o["state"]) for o in step["outputs"]] == [
        ("sums by 1 keys", True),
        ("v", False),
    ]


def test_the_method_is_that_of_the_next_refresh_and_the_last_has_its_own_line(
    db: Warehouse,
) -> None:
    db.refresh("v")
    lines, told = _told(db)
    _says_the_same(lines, told)
    assert lines[2] == "Method: incremental (expected of the next refresh)"
    assert lines[3].startswith("Last:   full on local at ")
    assert "; expected " in lines[3]
    assert lines[3].endswith(" [FIRST_REFRESH]")
    event = db.events("v")[0]
    assert told["last"]["cpu_seconds"] == event["measured"]["cpu_seconds"]
    assert told["last"]["expected_cpu_seconds"] == event["chosen"]["cpu_seconds"]
    assert told["runs"] == []  # nothing waits, and no result is due
    db.refresh("v")  # which had nothing to do
    assert db.explain("v").splitlines()[3] == lines[3]


def test_what_follows_changes_loads_and_saves_states(db: Warehouse) -> None:
    db.refresh("v")
    db.sql("INSERT INTO u VALUES (3, 4)")
    lines, told = _told(db)
    _says_the_same(lines, told)
    (step,) = _steps(told, "now")
    (state,) = db.status()["views"][0]["states"]
    (loaded,) = step["loads"]
    assert (loaded["rows"], loaded["bytes"]) == (state["rows"], state["bytes"])
    assert step["outputs"][0]["reads"] == ["change of u", "t"]
    assert f"Loads:  sums by 1 keys, {state['rows']} rows, {state['bytes']:,} bytes" in lines
    assert told["next"] == step


def test_the_views_that_a_view_reads_are_steps_of_its_run(db: Warehouse) -> None:
    db.sql("CREATE MATERIALIZED VIEW above AS SELECT max(total) AS most FROM v")
    for change in ("", "INSERT INTO u VALUES (3, 4)"):
        if change:
            db.sql(change)
        lines, told = _told(db, "above")
        _says_the_same(lines, told)
        assert [step["of"] for step in _steps(told, "now")] == ["v", "above"]
        db.refresh("above")
    _, told = _told(db, "above")
    assert _steps(told, "now") == []


def test_a_view_that_is_always_full_tells_its_step(db: Warehouse) -> None:
    db.sql("ALTER MATERIALIZED VIEW v SET (refresh = 'full')")
    lines, told = _told(db)
    _says_the_same(lines, told)
    assert told["method"] == "full without states"
    (step,) = _steps(told, "now")
    assert [output["name"] for output in step["outputs"]] == ["v"]
    assert not any(line.startswith("Law:") for line in lines)


def test_a_query_has_no_runs(db: Warehouse) -> None:
    lines, told = _told(db, "SELECT k FROM t")
    assert told["view"] is None
    assert told["runs"] == []
    assert lines[0].startswith("Engine: local")


def test_a_scheduled_view_tells_its_run_at_the_due_moment(tmp_path: Path) -> None:
    clock = SimulatedClock(datetime(2026, 3, 2, tzinfo=UTC))
    with slackwater.connect(tmp_path / "w", placement="local", clock=clock) as db:
        db.sql("CREATE TABLE t (k BIGINT, x BIGINT)")
        db.sql(
            "CREATE MATERIALIZED VIEW v WITH (schedule = 'daily 06:00') AS "
            "SELECT k, sum(x) AS total FROM t GROUP BY k"
        )
        db.refresh("v")
        for hour in range(12):
            clock.wait(datetime(2026, 3, 2, 7 + hour, tzinfo=UTC))
            db.append("t", pa.table({"k": list(range(100)), "x": list(range(100))}))
        lines, told = _told(db)
    _says_the_same(lines, told)
    assert [run["when"] for run in told["runs"]] == ["now", "due"]
    due = told["runs"][1]
    assert due["at"] == ["2026-03-03T06:00:00+00:00"]
    assert due["rows"]["t"] == pytest.approx(1200, rel=0.5)
    (line,) = [line for line in lines if line.startswith("Run:    due")]
    assert re.match(r"Run:    due 2026-03-03 06:00:00, after [\d,]+ rows of t: about ", line)


def test_early_runs_of_parts_are_told_with_their_moments(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for measure in simulation.RUN:
        monkeypatch.setitem(simulation.RUN, measure, 0.0)  # so that few rows are worth early runs
    clock = SimulatedClock("2026-01-05 00:00", taking=lambda reports, measured: 1.0)
    with slackwater.connect(tmp_path / "w", placement="local", clock=clock) as db:
        db.sql("CREATE TABLE sales (customer BIGINT, amount BIGINT)")

        def sell() -> None:
            ids = list(range(20_000))
            customers = [i % 500 for i in ids]
            db.append("sales", pa.table({"customer": customers, "amount": ids}))

        sell()
        db.sql("""
            CREATE MATERIALIZED VIEW buckets WITH (schedule = 'daily 06:00', within = '0.7x') AS
            SELECT n % 10 AS bucket, COUNT(*) AS k
            FROM (SELECT customer, SUM(amount) AS n FROM sales GROUP BY customer) GROUP BY n % 10
        """)
        for hour in range(1, 34):
            clock.wait(datetime(2026, 1, 5 + hour // 24, hour % 24, 30, tzinfo=UTC))
            sell()
            if hour == 29:
                db.refresh("buckets")
        ByGoals(db._house).units(clock.now())
        db.refresh("buckets")
        parts = {p.name: int(p.options[PACE]) for p in db._house.catalog.snapshot().parts()}
        lines, told = _told(db, "buckets")
    _says_the_same(lines, told)
    early = [run for run in told["runs"] if run["when"] == "early"]
    assert early
    for run in early:
        (step,) = run["steps"]
        assert 1 <= len(run["at"]) < parts[step["of"]]
        assert run["at"] == sorted(run["at"])
        assert clock.now().isoformat() < run["at"][0]
        assert run["at"][-1] < "2026-01-07T06:00:00+00:00"
    (due,) = [run for run in told["runs"] if run["when"] == "due"]
    assert due["at"] == ["2026-01-07T06:00:00+00:00"]
    assert "buckets" in {step["of"] for step in due["steps"]}
    assert sum(line.startswith("Run:    early, ") for line in lines) == len(early)


def test_alternatives_are_the_same_as_text_and_as_json(db: Warehouse) -> None:
    for change in ("", "INSERT INTO u VALUES (3, 4)"):
        if change:
            db.sql(change)
        lines = db.explain("v", alternatives=True).splitlines()
        told = json.loads(db.explain("v", "json", alternatives=True))
        ways = [line for line in lines if line[2:].split(" ")[0] in METHODS or "full with" in line]
        assert len(ways) == len(told["candidates"])
        (taken,) = [line for line in ways if line.startswith("*")]
        chosen = told["chosen"]
        assert taken[2:].startswith(f"{chosen['method']:<20} {chosen['engine']}")
        assert f"{chosen['cpu_seconds']:.3f}" in taken
        assert sum(line.startswith("Reason:") for line in lines) == len(told["why"])
        db.refresh("v")
