"""`slackwater bench budget` on little data."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import pytest
from typer.testing import CliRunner

from bench import budget
from bench.budget_chart import page
from bench.budget_trials import ANEW
from slackwater.cli.app import app
from slackwater.errors import UserError
from slackwater.planner.outline import Outline
from slackwater.stats.cost import KINDS, PRIOR, Model
from slackwater.stats.rows import Change
from slackwater.work import experience, stakes

ALL = "unlimited"


def test_late_data_and_budgets() -> None:
    told = budget.run(budget.Settings(0.01, ("late", "budgets"), ("q3",), engine="local"))
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
    told = budget.run(
        budget.Settings(0.01, ("prediction", "deletes", "injected"), ("q8",), engine="local")
    )
    assert told["exact"], told["problems"]
    sizes = [line for line in told["prediction"] if "room" in line]
    assert [line["room"] for line in sizes] == 2 * [*(f"{f:g}" for f in budget.FRACTIONS), ALL]
    for line in sizes:
        most = line["all_bytes"] * (1e12 if line["room"] == ALL else float(line["room"]))
        assert max(line["right"]["state_bytes"], line["wrong"]["state_bytes"]) <= most
    others = [line["change"] for line in told["prediction"] if "room" not in line]
    assert others[0] == "all expected, 1 change"
    assert len(others) == 5 + 4
    assert [line["going"] for line in told["deletes"]] == [0.0, 0.25, 0.5, 0.75, 1.0]
    assert {line["changes"] for line in told["injected"]} == set(budget.INJECTED)


def test_parts_of_joins_in_three_cases(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lines of q3 meet orders joined with customers, as the query has them; orders of q8 meet what
    no operator of the query gives."""
    dear = tuple(1e-4 if kind == "scanned" else 1e-9 for kind in KINDS)
    model = Model(PRIOR | {("local", "cpu"): dear})
    monkeypatch.setattr(experience, "Model", lambda: model)
    monkeypatch.setattr(experience, "fitted", lambda measured: model)
    monkeypatch.setattr(stakes, "Outline", partial(Outline, least_seconds=0.0))
    monkeypatch.setattr(budget, "INJECTED", {t: (t,) for t in ("lineitem", "orders")})
    told = budget.run(budget.Settings(0.01, ("injected",), ("q3", "q8"), engine="local"))
    assert told["exact"], told["problems"]
    ways = ["without", "materialize", "with"]
    kept = {}
    for line in told["injected"]:
        assert list(line) == ["query", ANEW, *ways, "changes"]
        parts = [line[way]["kept"].count("rows of Part") for way in ways]
        kept[line["query"], line["changes"]] = parts
    assert kept["q3", "lineitem"] == [0, 1, 1]
    without, given, every = kept["q8", "orders"]
    assert without <= given < every


def test_what_is_expected_is_told_with_what_goes() -> None:
    coming = {"lineitem": Change(inserts=30, deletes=10), "orders": Change()}
    assert budget._times(2.0)(coming)["lineitem"] == Change(inserts=60, deletes=20)
    assert budget._every(coming)["orders"] == coming["lineitem"]
    assert budget._few(("orders",))(coming) == {"orders": Change()}


@pytest.mark.proof
def test_deletes_alone_and_parts_of_joins_by_the_command(tmp_path: Path) -> None:
    figures = tmp_path / "told.json"
    command = "bench budget --sf 0.01 --what deletes,injected --queries q3 --engine local".split()
    done = CliRunner().invoke(app, [*command, "--json", str(figures)])
    assert done.exit_code == 0, done.output
    told = json.loads(figures.read_text())
    assert told["exact"]
    assert [line["going"] for line in told["deletes"]][-1] == 1.0
    assert "q3, every table changes" in done.output


@pytest.mark.spark
def test_states_on_spark(spark: object) -> None:
    told = budget.run(budget.Settings(0.01, ("late",), ("q6",), engine="spark"))
    assert told["exact"], told["problems"]
    assert told["engine"] == "spark"
    (late,) = told["late"]
    assert late["all"]["modes"] == ["incremental"] * 3


def test_cleaning_by_the_command(tmp_path: Path) -> None:
    figures, chart = tmp_path / "told.json", tmp_path / "told.html"
    command = ["bench", "budget", "--sf", "0.01", "--what", "cleaning", "--batches", "1"]
    command += ["--engine", "local"]
    done = CliRunner().invoke(app, [*command, "--json", str(figures), "--html", str(chart)])
    assert done.exit_code == 0, done.output
    told = json.loads(figures.read_text())
    assert told["exact"]
    tables = dict.fromkeys(s["table"] for s in told["cleaning"] if s["batch"])
    assert tuple(tables) == budget.CLEANED
    assert "polyline" in chart.read_text()
    assert "lineitem" in done.output


@pytest.mark.spark
def test_whoever_does_not_say_has_the_cheapest_engine(spark: object) -> None:
    told = budget.run(budget.Settings(0.01, ("late",), ("q6",)))
    assert told["exact"], told["problems"]
    assert told["engine"] == "auto"


def test_what_is_not_known_is_refused() -> None:
    with pytest.raises(UserError) as refused:
        budget.Settings(what=("lately",))
    assert refused.value.code == "BAD_OPTION"
