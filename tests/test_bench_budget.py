"""`slackwater bench budget` on little data."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from bench import budget
from bench.budget_chart import page
from bench.budget_trials import ANEW
from slackwater.cli.app import app
from slackwater.errors import UserError


def test_late_data_and_budgets() -> None:
    told = budget.run(budget.Settings(0.01, ("late", "budgets"), ("q3",)))
    assert told["exact"], told["problems"]
    (late,) = told["late"]
    assert list(late) == ["query", ANEW, "all", "budget"]
    assert late[ANEW]["state_bytes"] == 0
    assert late[ANEW]["modes"] == ["full"] * 3
    assert late["all"]["modes"] == ["incremental"] * 3
    assert late["all"]["kept"] == ["rows of Part", "sums by 3 keys", "first rows for limit 10"]
    assert 0 <= late["budget"]["state_bytes"] <= late["all"]["state_bytes"]
    (swept,) = told["budgets"]
    for fraction in budget.FRACTIONS:
        own = swept[f"budget {fraction:g}"]
        assert own["state_bytes"] <= fraction * swept["all_bytes"]
    assert "<svg" in page(told)


@pytest.mark.proof
def test_wrong_expectations_deletes_and_parts_are_exact() -> None:
    told = budget.run(budget.Settings(0.01, ("prediction", "deletes", "injected"), ("q8",)))
    assert told["exact"], told["problems"]
    changes = [line["change"] for line in told["prediction"]]
    assert changes[:3] == ["small", "large", "all expected, 1 change"]
    assert len(changes) == 2 + 5 + 4
    assert [line["going"] for line in told["deletes"]] == [0.0, 0.25, 0.5]
    assert {line["changes"] for line in told["injected"]} == {"lineitem", "orders"}


def test_cleaning_by_the_command(tmp_path: Path) -> None:
    figures, chart = tmp_path / "told.json", tmp_path / "told.html"
    command = ["bench", "budget", "--sf", "0.01", "--what", "cleaning", "--batches", "1"]
    done = CliRunner().invoke(app, [*command, "--json", str(figures), "--html", str(chart)])
    assert done.exit_code == 0, done.output
    told = json.loads(figures.read_text())
    assert told["exact"]
    tables = dict.fromkeys(s["table"] for s in told["cleaning"] if s["batch"])
    assert tuple(tables) == budget.CLEANED
    assert "polyline" in chart.read_text()
    assert "lineitem" in done.output


def test_what_is_not_known_is_refused() -> None:
    with pytest.raises(UserError) as refused:
        budget.Settings(what=("lately",))
    assert refused.value.code == "BAD_OPTION"
