"""`slackwater bench planning`, `methods`, `choice` and `progressive`, on little data."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from bench import choice, methods, planning, progressive
from bench.methods import SAME
from bench.problems import bound_queries, problem
from slackwater.cli import exits
from slackwater.cli.app import app
from slackwater.cli.bench_plans import _scores
from slackwater.planner.choice import FULL, HIGHER_ORDER, INCREMENTAL, PLAIN
from slackwater.planner.plan import METHODS, plan

FEW = choice.Settings(
    scale=0.01,
    kinds=("tpch",),
    queries=("q3", "q6"),
    shares=(0.001, 0.1),
    repeat=1,
    engines=("local",),
)


def test_planning_tells_how_long_and_how_much_was_explored() -> None:
    told = planning.run(planning.Settings(queries=("q96", "q52")))
    assert [line["query"] for line in told["queries"]] == ["q52", "q96"]
    for line in told["queries"]:
        assert line["seconds"] >= line["explored_seconds"] > 0
        assert line["expressions"] > line["groups"] > 10
        assert line["cost"] > 0


def test_numbers_of_points_are_compared_in_one_run(tmp_path: Path) -> None:
    file = tmp_path / "told.json"
    asked = ["--queries", "q52,q96", "--points", "3,9", "--json", str(file)]
    done = CliRunner().invoke(app, ["bench", "planning", *asked])
    assert done.exit_code == exits.OK, done.output
    told = json.loads(file.read_text())
    assert told["points"] == 3
    assert [line["query"] for line in told["queries"]] == ["q52", "q96"]
    three, nine = told["compared"]
    assert (three["points"], nine["points"]) == (3, 9)
    assert three["seconds"] == sum(line["seconds"] for line in told["queries"])
    assert nine["seconds"] == sum(line["at_points"]["9"]["seconds"] for line in told["queries"])
    assert (three["seconds_ratio"], three["explored_seconds_ratio"]) == (1, 1)
    assert nine["seconds_ratio"] == nine["seconds"] / three["seconds"]
    assert nine["seconds"] >= nine["explored_seconds"] > 0
    assert "planning in all" in done.output


def test_one_number_of_points_is_compared_with_nothing(tmp_path: Path) -> None:
    file = tmp_path / "told.json"
    asked = ["--queries", "q96", "--points", "9", "--json", str(file)]
    done = CliRunner().invoke(app, ["bench", "planning", *asked])
    assert done.exit_code == exits.OK, done.output
    told = json.loads(file.read_text())
    assert (told["points"], told["compared"]) == (9, [])
    assert "at_points" not in told["queries"][0]


@pytest.mark.parametrize("points", ["1", "3,much", ""])
def test_points_that_make_no_plan_are_refused(points: str) -> None:
    done = CliRunner().invoke(app, ["bench", "planning", "--points", points])
    assert done.exit_code == exits.USER_ERROR
    assert "--points takes numbers" in done.output


@pytest.mark.parametrize("query", planning.SHOWN)
def test_every_method_is_in_the_memo(query: str) -> None:
    """From one memo, a plan of each method alone can be taken."""
    told = planning.run(planning.Settings(queries=(query,)))
    assert set(told["extracted"][query]) == set(METHODS)
    assert all(steps > 0 for steps in told["extracted"][query].values()), told["extracted"]
    assert told["fired"]["last_of_all"] > 0


def test_no_two_expressions_of_a_query_are_known_to_be_one_and_kept_apart() -> None:
    """Of some of them it turns out when both have been explored."""
    with bound_queries(keys=False) as queries:
        for name in ("q10", "q64", "q80", "q93"):
            made = plan(problem(queries[name], "delta-RS", (0.3, 0.3, 1.0), "pdw"))
            made.memo.check()


@pytest.mark.parametrize("scenario", ["pdw", "ivm"])
def test_speedups_lose_nothing_where_the_full_search_ends(scenario: str) -> None:
    asked = ("q3", "q15", "q37", "q40", "q45", "q84", "q93", "q96")
    told = planning.run(planning.Settings(asked, scenario=scenario, full_search=100.0))
    for line in told["queries"]:
        assert line["full_search"] > 0
        assert line["lost"] <= 1e-6, line


def test_a_full_search_that_does_not_end_in_time_says_nothing(tmp_path: Path) -> None:
    file = tmp_path / "told.json"
    asked = ["--queries", "q96", "--scenario", "ivm", "--full-search", "0.001"]
    done = CliRunner().invoke(app, ["bench", "planning", *asked, "--json", str(file)])
    assert done.exit_code == exits.OK, done.output
    assert json.loads(file.read_text())["queries"][0]["lost"] is None
    assert "did not end in time" in done.output


def test_each_speedup_is_switched_off_by_itself(tmp_path: Path) -> None:
    file = tmp_path / "told.json"
    asked = ["--queries", "q93,q96", "--speedups", "--limit", "100", "--json", str(file)]
    done = CliRunner().invoke(app, ["bench", "planning", *asked])
    assert done.exit_code == exits.OK, done.output
    told = json.loads(file.read_text())
    found = {line["off"]: line for line in told["speedups"]}
    assert set(found) == set(planning.OFF)
    for line in found.values():
        assert (line["ended"], line["queries"]) == (2, 2)
        assert line["dearer"] + line["cheaper"] <= 2
        assert line["most_lost"] < 0.05
    assert found["symmetry"]["groups_ratio"] == 2.0  # one memo for each interval
    assert found["pruning"]["rules_fired_ratio"] >= 1.0
    assert found["left-deep merges"]["groups_ratio"] == 1.0  # it is about times, not relations
    for line in told["queries"]:
        assert set(line["without"]) == {"none", *planning.OFF}
        assert line["without"]["none"]["cost"] == pytest.approx(line["cost"])
    assert "switched off" in done.output


def test_searches_that_do_not_end_are_not_compared() -> None:
    fast = {"query": "q1", "seconds": 1.0, "groups": 10, "expressions": 20, "cost": 2.2}
    slow = {**fast, "seconds": 3.0, "groups": 15, "cost": 2.0}
    without = dict.fromkeys(planning.OFF) | {"none": fast, "pruning": slow}
    for some in (fast, slow):
        some["rules_fired"] = 5
    pruning, *others = planning.speedups_of([{"query": "q1", "without": without}])
    assert (pruning["ended"], pruning["seconds_ratio"], pruning["groups_ratio"]) == (1, 3.0, 1.5)
    assert (pruning["dearer"], pruning["worst"]) == (1, "q1")
    assert pruning["most_lost"] == pytest.approx(0.1)
    assert [line["ended"] for line in others] == [0, 0, 0]


def test_every_way_is_tried_on_the_same_state() -> None:
    told = choice.run(FEW)
    asked = [(line["query"], line["change"]) for line in told["lines"]]
    assert asked == [("q3", 0.001), ("q6", 0.001), ("q3", 0.1), ("q6", 0.1)]
    for line in told["lines"]:
        assert {way["method"] for way in line["ways"]} >= {INCREMENTAL, FULL, PLAIN}
        assert all(way["expected"] > 0 for way in line["ways"])
        assert line["regret"] >= 0
        assert line["regret_of_all"] >= line["regret"]
    joined = [w for line in told["lines"] if line["query"] == "q3" for w in line["ways"]]
    assert [w["possible"] for w in joined if w["method"] == HIGHER_ORDER] == [False, False]
    assert 0 <= told["right"] <= 1
    assert set(told["always"]) == {f"{INCREMENTAL}, local", f"{PLAIN}, local"}


def test_a_choice_is_judged_by_the_cheapest_way() -> None:
    ways = [
        {"method": INCREMENTAL, "engine": "local", "cpu_seconds": 1.0},
        {"method": PLAIN, "engine": "local", "cpu_seconds": 0.5},
    ]
    line = {"ways": ways, "chosen": {"method": INCREMENTAL, "engine": "local"}}
    ways.append({"method": HIGHER_ORDER, "engine": "local", "cpu_seconds": 0.2, "possible": False})
    told = choice.report(FEW, [line])
    assert told["right"] == 0.0
    assert told["of_all"] == {"right": 0.0, "regret_seconds": pytest.approx(0.8)}
    assert told["regret_seconds"] == pytest.approx(0.5)
    plain = told["always"][f"{PLAIN}, local"]
    assert (plain["right"], plain["regret_seconds"]) == (1.0, 0.0)
    assert plain["of_all"] == {"right": 0.0, "regret_seconds": pytest.approx(0.3)}
    columns, rows = _scores(told)
    assert ["could take" in name for name in columns] == [False, True, False]
    assert rows == [
        ["chosen", "0.0%, 0.50 s", "0.0%, 0.80 s"],
        [f"always {INCREMENTAL}, local", "0.0%, 0.50 s", "0.0%, 0.80 s"],
        [f"always {PLAIN}, local", "100.0%, 0.00 s", "0.0%, 0.30 s"],
    ]


def test_the_planning_command_writes_its_report(tmp_path: Path) -> None:
    file = tmp_path / "told.json"
    done = CliRunner().invoke(app, ["bench", "planning", "--queries", "q96", "--json", str(file)])
    assert done.exit_code == exits.OK, done.output
    assert [line["query"] for line in json.loads(file.read_text())["queries"]] == ["q96"]
    assert "q96" in done.output


def test_changes_that_are_no_numbers() -> None:
    done = CliRunner().invoke(app, ["bench", "choice", "--changes", "much"])
    assert done.exit_code != exits.OK


def test_all_methods_together_are_never_dearer_than_one(tmp_path: Path) -> None:
    file, chart = tmp_path / "told.json", tmp_path / "told.html"
    asked = ["--queries", "q93", "--patterns", "delta-big,delta-RS"]
    command = ["bench", "methods", *asked, "--json", str(file), "--html", str(chart)]
    done = CliRunner().invoke(app, command)
    assert done.exit_code == exits.OK, done.output
    told = json.loads(file.read_text())
    assert len(told["lines"]) == 4
    assert told["never_above"], told["lines"]
    assert told["below"] == sum(line["ratio"] < 1 - SAME for line in told["lines"])
    for line in told["lines"]:
        assert set(line["alone"]) == {*METHODS, "full"}
        assert line["alone"]["full"] >= max(line["alone"][m] for m in METHODS) * (1 - SAME)
        assert line["mixed"] <= line["alone"][line["best"]] * (1 + SAME)
    assert chart.read_text().count("<circle") == 4 * (len(METHODS) + 1)


def test_a_plan_above_the_best_of_one_method_is_marked() -> None:
    assert [methods.mark({"ratio": r}) for r in (0.9, 1.0, 1.1)] == ["<", "=", "ABOVE"]


def test_methods_mixed_are_cheaper_than_any_alone_by_promises() -> None:
    """Of q40, sales are kept joined with what does not change, and meet changed returns alone."""
    asked = ("q40",), ("delta-RS",), ("ivm",)
    (told,) = methods.run(methods.Settings(*asked))["lines"]
    assert {"higher_order", "ojv"} <= set(told["methods"])
    assert told["ratio"] < 0.95
    assert methods.run(methods.Settings(*asked, keys=False))["lines"][0]["ratio"] <= 1 + SAME


@pytest.mark.proof
def test_all_methods_together_are_never_dearer_for_ten_queries() -> None:
    told = methods.run(methods.Settings())
    assert len(told["lines"]) == 10 * 4 * 2
    assert told["never_above"], [line for line in told["lines"] if methods.mark(line) == "ABOVE"]
    assert told["below"] >= 8
    below = {line["query"] for line in told["lines"] if methods.mark(line) == "<"}
    assert below >= {"q40", "q80"}


def test_unknown_patterns_are_refused() -> None:
    done = CliRunner().invoke(app, ["bench", "methods", "--patterns", "delta-bag"])
    assert done.exit_code == exits.USER_ERROR
    assert "delta-big" in done.output


@pytest.mark.parametrize(("kind", "queries"), [("tpch", ("q3", "q13", "q15")), ("tpcds", ("q10",))])
def test_early_runs_give_what_one_run_at_the_due_time_gives(
    kind: str, queries: tuple[str, ...]
) -> None:
    asked = progressive.Settings(scale=0.01, kinds=(kind,), queries=queries, repeat=1)
    told = progressive.run(asked)
    assert {line["query"] for line in told["queries"]} == set(queries)
    assert told["exact"], told["queries"]
    for line in told["queries"]:
        runs = line["cpu_seconds"]
        weighted = sum(price * cpu for price, cpu in zip(asked.prices, runs, strict=True))
        assert line["weighted"] == pytest.approx(weighted)
        assert line["due"] == runs[-1] > 0
        assert line["at_once"] > 0


def test_what_early_runs_save_is_told_over_all() -> None:
    lines = [
        {"weighted": 1.0, "at_once": 2.0, "cost_ratio": 0.5, "due_ratio": 0.4, "exact": True},
        {"weighted": 3.0, "at_once": 2.0, "cost_ratio": 1.5, "due_ratio": 1.2, "exact": True},
        {"query": "q1", "problem": "it does not bind"},
    ]
    told = progressive.report(lines)
    assert told["total_cost_ratio"] == 1.0
    assert told["median_cost_ratio"] == 1.0
    assert told["lower_at_due"] == 0.5
