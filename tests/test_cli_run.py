"""`slackwater run`, and what `status` tells of it."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import slackwater
from slackwater.cli import exits, running
from slackwater.cli.app import app
from slackwater.warehouse import Warehouse
from tests.processes import ROOT, SECONDS

Run = Callable[..., Any]
SCRIPT = """
CREATE TABLE sales (id BIGINT, amount BIGINT);
INSERT INTO sales VALUES (1, 10), (2, 20);
CREATE MATERIALIZED VIEW total WITH (schedule = 'every 1 second', within = '1 hour',
  state_budget = '1 MB') AS SELECT SUM(amount) AS amount FROM sales;
CREATE MATERIALIZED VIEW counted WITH (schedule = 'every 5 rows')
  AS SELECT COUNT(*) AS n FROM sales;
CREATE MATERIALIZED VIEW by_hand AS SELECT MAX(amount) AS most FROM sales;
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    with slackwater.connect(tmp_path / "wh", placement="local") as db:
        db.sql(SCRIPT)
    return tmp_path / "wh"


@pytest.fixture
def run(path: Path) -> Run:
    def call(*args: str, code: int = exits.OK) -> Any:
        result = CliRunner().invoke(app, ["-w", str(path), "--placement", "local", *args])
        assert result.exit_code == code, result.output
        return result

    return call


def test_once_does_what_is_due_and_ends(run: Run) -> None:
    told = [json.loads(line) for line in run("run", "--once", "--json").stdout.splitlines()]
    assert [t["kind"] for t in told] == ["start", "refreshed", "refreshed", "stop"]
    assert {t["view"] for t in told} == {None, "total", "counted"}
    run("sql", "INSERT INTO sales VALUES (3, 1), (4, 1), (5, 1), (6, 1), (7, 1)")
    shown = run("run", "--once").stdout
    assert "counted: incremental" in shown
    assert "by_hand" not in shown


def test_status_tells_when_views_are_due_and_how_goals_were_kept(run: Run) -> None:
    run("run", "--once")
    run("sql", "INSERT INTO sales VALUES (3, 1)")
    run("run", "--until", "2026-01-01 00:00")  # has passed, so it does what is due and ends
    views = {v["name"]: v for v in json.loads(run("status", "--json").stdout)["views"]}
    assert views["counted"]["rows_until_due"] == 4
    assert views["by_hand"]["next_due"] is None
    assert views["total"]["state_budget"] == 1_000_000
    assert sum(views["total"]["cpu_seconds"].values()) > 0
    shown = run("status").stdout
    for words in ("every 1 second", "in 4 rows", "1 hour", "of 1.0 MB", "manual"):
        assert words in shown


def test_wrong_options_say_the_way_out(run: Run) -> None:
    assert "BAD_TIME" in run("run", "--until", "soon", code=exits.USER_ERROR).stderr
    run("run", "--poll", "0", code=exits.USAGE)


def test_a_process_that_is_told_to_end_ends_well(path: Path) -> None:
    """It is told so after its first refreshes, between two looks or in the middle of the next."""
    command = [sys.executable, "-m", "slackwater", "-w", str(path), "--placement", "local"]
    for number in (signal.SIGTERM, signal.SIGINT):
        process = subprocess.Popen(
            [*command, "run", "--json", "--poll", "0.05"],
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
        )
        assert process.stdout is not None
        for line in process.stdout:
            if json.loads(line)["view"] == "total":
                break
        process.send_signal(number)
        rest, _ = process.communicate(timeout=SECONDS)
        assert process.returncode == 0
        assert json.loads(rest.splitlines()[-1])["kind"] == "stop"
    with slackwater.connect(path, placement="local") as db:
        assert db.verify("total")
        assert {r.state for r in db.catalog.runs() if r.kind == "refresh"} == {"committed"}


def test_the_second_signal_insists() -> None:
    asked, before = [], signal.getsignal(signal.SIGINT)
    with running._stopping(lambda: asked.append(True)):
        signal.raise_signal(signal.SIGTERM)
        assert asked == [True]
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is before


def test_a_refresh_that_is_given_up_leaves_all_as_it_was(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def given_up(self: Warehouse, *names: str, **options: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Warehouse, "refresh", given_up)
    assert "given up" in run("run").stderr
    assert not any(v["refreshed_at"] for v in json.loads(run("status", "--json").stdout)["views"])
