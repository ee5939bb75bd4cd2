"""`slackwater bench goals` and `sharing`: small runs of everything that they measure."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pyarrow.compute as pc
import pytest
from typer.testing import CliRunner

from bench import (
    corpus,
    day,
    goals,
    goals_noise,
    goals_thesis,
    missing,
    search,
    sharing,
    sharing_sets,
    sharing_tuned,
)
from bench.arrivals import Arrivals, burst, even
from bench.goals_chart import day_page, page, sharing_page
from bench.pacing import Pacing
from bench.progress import Course, Piece
from bench.sharing_approaches import Approach, Asked
from bench.sharing_sets import PAIRS, SETS, TEN
from slackwater.algebra.relation import Distinct, Scan
from slackwater.cli.app import app
from slackwater.cli.bench_goals import _met
from slackwater.cli.bench_sharing import _days, _tuned
from slackwater.errors import UserError
from slackwater.planner.decomposition import Decomposition
from slackwater.planner.pace import Found, Goal
from slackwater.planner.subplans import cut
from slackwater.types import BIGINT, Field

pytestmark = pytest.mark.xdist_group("bench_goals")


def test_all_rows_come_and_lines_come_with_their_orders() -> None:
    files = corpus.generate("tpch", 0.01)
    arrivals = Arrivals(files, tuple(files), even(7))
    rows = dict.fromkeys(arrivals.moving, 0)
    for batch in arrivals.batches():
        for table, content in batch.items():
            rows[table] += content.num_rows
        for own, theirs in (("lineitem.l_orderkey", "orders.o_orderkey"),):
            table, column = own.split(".")
            leader, key = theirs.split(".")
            assert pc.all(
                pc.is_in(batch[table][column], batch[leader][key].combine_chunks())
            ).as_py()
    assert rows == {table: arrivals.rows(table) for table in arrivals.moving}


def test_a_burst_brings_more_in_a_tenth_of_the_time() -> None:
    for at_end in (False, True):
        shares = burst(20, 5, at_end)
        assert sum(shares) == pytest.approx(1)
        assert max(shares) == pytest.approx(5 * min(shares))
        assert (shares[-1] == max(shares)) == at_end


def test_goals_are_measured_and_exact() -> None:
    settings = goals.Settings(0.01, ("q6", "q17"), constraints=(1.0, 0.05), most=3, engine="local")
    told = goals.run(settings)
    assert told["exact"], told["problems"]
    assert {(o["query"], o["constraint"], o["approach"]) for o in told["lines"]} == {
        (q, c, a) for q in ("q6", "q17") for c in (1.0, 0.05) for a in goals.APPROACHES
    }
    for line in told["lines"]:
        assert line["expected_ratio"] <= line["reached"] * 1.001
        assert line["is_nearest"] == (line["reached"] > line["constraint"] * 1.0001)
    assert "<svg" in page(told)


def test_paces_that_a_plan_has_are_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the costs say: 3 of 4 batches are followed early, and the result is exact."""
    monkeypatch.setattr(goals_noise, "RUNS", 4)
    told = goals.run(goals.Settings(0.01, ("q15",), what=("cardinality",), engine="local"))
    (line,) = told["cardinality"]
    assert line["exact"], line["problems"]
    assert line["runs"] == 3
    assert line["rows"] > 0
    assert line["error_after_half"] >= -1


def test_biased_statistics_and_bursts_by_the_command(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(goals_noise, "RATIOS", (0.2, 1.0))
    monkeypatch.setattr(goals_noise, "SPIKES", (5.0,))
    out, chart = tmp_path / "told.json", tmp_path / "told.html"
    asked = "bench goals --sf 0.01 --queries q6 --what bias,bursts --repeat 1 --max-pace 3".split()
    asked += [
        "--engine",
        "local",
        "--paces",
        "paths,uniform",
        "--json",
        str(out),
        "--html",
        str(chart),
    ]
    result = CliRunner().invoke(app, asked)
    assert result.exit_code == 0, result.output
    told = json.loads(out.read_text())
    assert told["exact"]
    assert {line["case"] for line in told["bias"]} == {"bias 0.2", "bias 1"}
    assert {line["case"] for line in told["bursts"]} == {"×5 in the middle", "×5 at the end"}
    text = chart.read_text()
    assert text.count("<svg") == 2
    assert "q6, burst at the end: latency ÷ one run" in text
    assert "http" not in text


def test_sharing_is_measured_and_exact(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sharing_sets, "PAIRS", {"C": sharing_sets.PAIRS["C"]})
    settings = sharing.Settings(
        scale=0.01, sets=("pairs",), constraints=(0.5,), most=2, searching=False, engine="local"
    )
    told = sharing.run(settings)
    assert told["exact"], told["problems"]
    assert {line["approach"] for line in told["lines"]} == set(sharing.APPROACHES)
    for line in told["lines"]:
        same = next(
            o
            for o in told["lines"]
            if (o["case"], o["approach"]) == (line["case"], line["measured_as"])
        )
        assert same["latency_seconds"] == line["latency_seconds"]
        assert same["cpu_seconds"] == line["cpu_seconds"]
    assert {r["set"] for r in told["ratios"]} == {"pair C"}
    assert {r["against"] for r in told["ratios"]}.isdisjoint({sharing.OURS, sharing.AT_ONCE})
    asked = [(line["approach"], line["constraint"]) for line in told["by_constraint"]]
    assert asked == [(name, share) for name in sharing.APPROACHES for share in (1.0, 0.5)]
    for line in told["lines"]:
        own = [entry for entry in told["by_constraint"] if entry["approach"] == line["approach"]]
        assert sum(entry["missed"] for entry in own) == line["missed"]
        assert line["missed_beyond_noise"] <= line["missed"] <= line["queries"]
    assert told["noise"]["measured"] == sum(len(line["noise"]) for line in told["lines"])
    assert "<svg" in sharing_page(told)


def test_one_batch_is_measured_shared_and_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sharing_sets, "TEN", ("q14", "q19"))
    settings = sharing.Settings(
        0.01, ("ten",), paces="none", constraints=(1.0,), most=2, searching=False, engine="local"
    )
    told = sharing.run(settings)
    assert told["exact"], told["problems"]
    apart, together = told["lines"]
    assert (apart["approach"], together["approach"]) == (sharing.AT_ONCE, sharing.SHARED_AT_ONCE)
    assert apart["parts"] == 0
    assert apart["runs"] == together["runs"] == 0
    assert apart["early_cpu_seconds"] == together["early_cpu_seconds"] == 0
    assert told["ratios"] == []
    (once,) = told["at_once"]
    assert (once["shared"], once["unshared"]) == (together["cpu_seconds"], apart["cpu_seconds"])
    assert once["cpu_ratio"] == pytest.approx(once["shared"] / once["unshared"])
    assert "<svg" in sharing_page(told)


def _line(name: str, took: float, cpu: float) -> dict[str, Any]:
    """An approach to two queries that take a second each in one run."""
    return {
        "case": "two",
        "approach": name,
        "constraints": {"q1": 0.5, "q2": 1.0},
        "latency_seconds": {"q1": took, "q2": 1.0},
        "batch_latency_seconds": {"q1": 1.0, "q2": 1.0},
        "cpu_seconds": cpu,
    }


def test_goals_that_were_missed_are_asked_for_anew_until_they_are_met() -> None:
    other = "unshared"
    first = [
        _line(sharing.AT_ONCE, 9.0, 1.0),
        _line(other, 0.9, 5.0),
        _line(sharing.OURS, 0.8, 4.0),
    ]
    asked: list[Any] = []
    measured = [
        [_line(other, 0.7, 6.0), _line(sharing.OURS, 0.51, 8.0)],  # ours is within noise now
        [_line(other, 0.75, 5.5)],  # worse than before
        [],  # half as much changes nothing
    ]

    def again(wanted: Any) -> list[dict[str, Any]]:
        asked.append(wanted)
        return measured[len(asked) - 1]

    theirs, ours = sharing_tuned.tuned(first, again, tries=9)
    assert [set(wanted) for wanted in asked] == [{other, sharing.OURS}, {other}, {other}]
    assert asked[0][other] == ({"q1": 0.5, "q2": 1.0}, {"q1": 0.25, "q2": 1.0})
    assert asked[2][other][1] == {"q1": 0.0625, "q2": 1.0}
    assert (theirs["tries"], theirs["cpu_seconds"]) == (2, 6.0)
    assert theirs["late_seconds"] == pytest.approx(0.2)
    assert (ours["tries"], ours["asked"]["q1"], ours["late_seconds"]) == (2, 0.25, 0)
    (ratio,) = sharing_tuned.ratios([theirs, ours])
    assert (ratio["against"], ratio["cpu_ratio"], ratio["paper"]) == (other, 8 / 6, 0.8)


def test_a_goal_that_was_missed_is_planned_and_measured_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With a pace of one through the share, as far as that goes, and always late."""

    def planned(asked: Asked) -> list[Piece]:
        pacing = Pacing("q1", asked.queries["q1"], asked.setting, asked.most)
        search = pacing.search("uniform", Goal())
        pace = min(asked.most, round(1 / (asked.goals["q1"].share or 1.0)))
        return [pacing.piece(search.sampled([[pace] * search.choices]))]

    monkeypatch.setattr(sharing_sets, "TEN", ("q1",))
    monkeypatch.setitem(sharing.APPROACHES, "unshared", Approach(planned, False, "subplans"))
    monkeypatch.setattr(sharing_tuned.Try, "late", {"q1": 1.0})
    found = []
    monkeypatch.setattr(sharing_tuned.Try, "tighter", _counted(sharing_tuned.Try.tighter, found))
    told = sharing.run(
        sharing.Settings(
            scale=0.01,
            sets=("ten",),
            sharing="off",
            paces="subplans",
            constraints=(0.5,),
            most=4,
            tries=9,
            searching=False,
            engine="local",
        )
    )
    assert told["exact"], told["problems"]
    first, second = (own.line for own in found)  # an eighth changes nothing any more
    assert (first["runs"], second["runs"]) == (1, 3)  # the last run is the result's own
    (best,) = told["tuned"]
    least = min(first, second, key=lambda line: line["cpu_seconds"])
    assert (best["cpu_seconds"], best["runs"]) == (least["cpu_seconds"], least["runs"])
    rows = _tuned(told["tuned"], told["tuned_ratios"])[1]
    assert [row[1] for row in rows] == ["unshared"]


def _counted(method: Any, seen: list[Any]) -> Any:
    """A method, and whose it was."""

    def called(own: Any) -> Any:
        seen.append(own)
        return method(own)

    return called


def test_what_was_measured_stands_beside_the_thesis() -> None:
    def line(query: str, approach: str, constraint: float, more: float, latency: float) -> Any:
        return {
            "query": query,
            "approach": approach,
            "constraint": constraint,
            "runs": 5 if more else 0,
            "additional_cpu_seconds": more,
            "batch_latency_seconds": 2.0,
            "latency_seconds": 2.0 * latency,
            "latency_ratio": latency,
        }

    lines = [
        line("q15", "paths", 0.02, 1.0, 0.01),
        line("q15", "uniform", 0.02, 4.0, 0.5),
        line("q15", "leaves", 0.02, 0.0, 1.0),
        line("q17", "paths", 0.02, 1.0, 0.5),
        line("q17", "paths", 0.05, 1.0, 0.05),
    ]
    q15, q17 = goals_thesis.beside(lines)
    assert q15["shares"] == {"uniform": 0.25, "leaves": None}
    assert q15["thesis_shares"]["uniform"] == 0.015
    assert (q15["constraint"], q17["constraint"]) == (0.02, 0.05)
    paths, uniform, leaves = goals_thesis.met(lines)
    assert (paths["met"], paths["asked"], paths["thesis"]) == (2, 3, 0.64)
    assert (uniform["met"], leaves["met"]) == (0, 0)
    text = "paths: last run within its constraint for 2 of 3, 67% of 0.05, 0.02"
    assert _met(paths) == f"{text} (the thesis: 64% of 0.5, 0.2, 0.1, 0.05, 0.02)"
    assert _met(leaves) == "leaves: last run within its constraint for 0 of 1, 0% of 0.02"
    sooner = {(t["constraint"], t["approach"]): t for t in goals_thesis.thrift(lines)}
    assert sooner[0.02, "paths"]["seconds_per_cpu_second"] == pytest.approx((1.98 + 1.0) / 2)
    assert sooner[0.02, "uniform"]["seconds_per_cpu_second"] == pytest.approx(0.25)
    assert (0.02, "leaves") not in sooner


def test_every_query_has_what_the_thesis_says() -> None:
    every = [*corpus.queries("tpch"), *goals.OWN]
    assert all(goals_thesis.says(query) for query in every)
    assert set(goals_thesis.PARTLY) < set(every)


def test_misses_are_counted_strictly_and_beyond_noise() -> None:
    batch = Course("batch", latency={"q1": 1.0, "q2": 1.0, "q3": 0.2, "q4": 2.0})
    ours = Course("c0", latency={"q1": 1.02, "q2": 0.71, "q3": 0.06, "q4": 1.9}, early={"q2", "q3"})
    constraints = {"q1": 1.0, "q2": 0.5, "q3": 0.1, "q4": 1.0}
    found = missing.results(constraints, ours, batch)
    assert [result.query for result in found if result.is_missed] == ["q1", "q2", "q3"]
    assert [result.query for result in found if result.is_beyond_noise] == ["q2"]
    told = missing.figures(found, batch)
    assert (told["missed"], told["missed_beyond_noise"], told["missed_plain"]) == (3, 1, 1)
    ones = {"constraint": 1.0, "queries": 2, "missed": 1, "missed_beyond_noise": 0}
    assert told["by_constraint"][0] == ones | {"missed_plain": 1}
    lines = [told | {"set": "ten", "approach": "ours"}] * 2
    assert [line["missed"] for line in missing.by_constraint(lines)] == [2, 2, 2]
    assert missing.noise(lines)["most"] == pytest.approx(0.05)  # q4


def test_plans_are_the_same_by_what_runs_how_often_for_whom() -> None:
    def piece(name: str, pace: int) -> Piece:
        dag = cut({name: Distinct(Scan("t1", "t", (Field("a", BIGINT),)))})
        paces = {(s.number, source): pace for s in dag.subplans for source in s.inputs}
        return Piece(dag, Found(paces, 0.0, {}, {}))

    once, often = [piece("q1", 1), piece("q2", 1)], [piece("q1", 3), piece("q2", 1)]
    assert sharing.plans(often) == sharing.plans(often[::-1])
    assert sharing.plans(once) != sharing.plans(often)
    assert sharing.plans([piece("q1", 2)]) != sharing.plans([piece("q1", 3)])
    assert dict(sharing.plans(once)) == {"q1": frozenset(), "q2": frozenset()}  # nothing early


def test_switches_choose_approaches() -> None:
    chosen = sharing.Settings(sharing="off", paces="uniform").approaches()
    assert list(chosen) == ["unshared, one pace"]
    assert list(sharing.Settings(sharing="on").approaches())[-1] == sharing.OURS
    once = sharing.Settings(paces="none").approaches()
    assert list(once) == [sharing.AT_ONCE, sharing.SHARED_AT_ONCE]
    for wrong in ({"sharing": "perhaps"}, {"paces": "slow"}, {"sets": ("eleven",)}):
        with pytest.raises(UserError, match="is not known"):
            sharing.Settings(**wrong)


def test_the_best_of_all_splits_is_looked_for_among_few_queries() -> None:
    ways = sharing.APPROACHES
    (best,) = (way for name, way in ways.items() if "all splits" in name)
    own = search.catalogue(1.0)
    names = {"pair": PAIRS["A"], "four": TEN[:4]}
    for queries in names.values():
        few = {name: own.queries[name] for name in queries}
        asked = Asked(few, own.setting, {name: Goal(share=0.1) for name in few}, 3)
        (split,), (ours,) = best.plan(asked), ways[sharing.OURS].plan(asked)
        assert set(split.dag.roots) == set(few)
        assert split.found.total <= ours.found.total * 1.01
    assert best.most_queries < len(own.queries)


def test_what_is_shared_with_one_pace_is_what_costs_less_in_one_batch() -> None:
    """As a multi-query optimizer would have it, which knows of no paces (003, 6.1)."""
    own, ways = search.catalogue(1.0), sharing.APPROACHES
    few = {name: own.queries[name] for name in TEN}
    asked = Asked(few, own.setting, {name: Goal(share=0.5) for name in few}, 4)
    assert any(len(subplan.queries) > 1 for subplan in asked.merged.subplans)
    (once,) = ways[sharing.SHARED_AT_ONCE].plan(asked)
    apart = asked.decomposed(mode="uniform").unshared.search.batch()
    assert once.found.total < apart.total
    (together,) = ways["shared, one pace"].plan(asked)
    assert together.dag == asked.merged
    by_part = [
        {together.found.paces[path] for path in group} for group in asked.search("uniform").groups
    ]
    assert all(len(paces) == 1 for paces in by_part)
    batch = asked.search("uniform").batch()
    assert sum(together.found.missed.values()) <= sum(batch.missed.values())


def test_sets_are_those_of_the_paper() -> None:
    cases = {name: list(make((1.0, 0.1), 3, Random(1))) for name, make in SETS.items()}
    assert [len(own) for own in cases.values()] == [3, 2, 2, 2, 6]
    assert {len(case.texts) for case in cases["random"]} == {22}
    assert len(cases["twenty"][0].texts) == 2 * len(TEN)
    varied = cases["twenty"][0].texts
    assert all(varied[f"v{name[1:]}"] != varied[name] for name in TEN)


def test_the_command_writes_what_it_measured(tmp_path: Path) -> None:
    out, chart = tmp_path / "told.json", tmp_path / "told.html"
    asked = "bench goals --sf 0.01 --queries q6 --constraints 1.0,0.5 --max-pace 3".split()
    asked += ["--engine", "local"]
    result = CliRunner().invoke(app, [*asked, "--json", str(out), "--html", str(chart)])
    assert result.exit_code == 0, result.output
    told = json.loads(out.read_text())
    assert told["exact"]
    keys = {"additional_cpu_seconds", "latency_ratio", "reached", "mode", "paces", "exact"}
    assert keys <= set(told["lines"][0])
    assert chart.read_text().startswith("<!doctype html>")


def test_a_day_is_lived_and_exact() -> None:
    told = day.run(day.Settings(scale=0.01, views=2, ways=("goals",), engine="local"))
    assert told["exact"], told["problems"]
    (ours,) = told["lines"]
    assert ours["refreshed"] == ours["kept"] + ours["missed"] == 24 + 6
    assert ours["ratio"] == 1.0
    (room,) = ours["budgets"]
    assert (room["view"], room["budget_bytes"], room["kept"]) == ("q1", 1_000_000, True)
    assert room["state_bytes"] <= room["budget_bytes"]
    assert _days(told["lines"])[1][0][7] == "1/1"
    assert "<svg" in day_page(told)


def test_some_views_of_a_day_have_a_budget() -> None:
    budgets = day.Settings().budgets()
    assert len(budgets) == 6
    assert set(budgets.values()) == set(day.BUDGETS)
    assert set(budgets) <= set(day.Settings().texts())


def test_goals_shorter_than_one_run_are_begun_before_they_are_due() -> None:
    settings = day.Settings(scale=0.01, views=4, ways=("goals",), engine="local", tight=0.5)
    assert settings.tight_views() == ("q1", "q4")
    assert settings.goals()["q4"] == ("daily 09:10", "0.5x")
    few = replace(settings, views=1)
    told = day.run(few)
    assert told["exact"], told["problems"]
    (ours,) = told["lines"]
    (result,) = ours["tight"]
    assert (result["view"], result["due"][11:16]) == ("q1", "08:10")
    assert result["kept"] == (result["latency_seconds"] <= result["within_seconds"])
    assert ours["tight_kept"] == ours["kept"] == result["kept"]
    assert "early runs" in " ".join(_days(told["lines"])[0])


def test_searches_with_costs_remembered_or_not_and_split_in_every_way_find_the_same() -> None:
    settings = search.Settings(paces=(3,), counts=(3,), limit=600, queries=TEN[:3])
    remembered, again, clusters, every = search.run(settings)["lines"]
    assert remembered["tried"] == again["tried"] > 3
    assert remembered["total"] == pytest.approx(again["total"])
    assert remembered["subplans"] == again["subplans"]
    assert every["total"] <= clusters["total"] * 1.01


def test_of_all_queries_of_tpch_more_than_a_handful_of_plans_is_compared() -> None:
    own = search.catalogue(1.0)
    goals = {name: Goal(share=0.01) for name in own.queries}
    found = Decomposition(own.queries, own.setting, goals, most=12)
    best = found.best()
    assert len(own.queries) == 22
    assert best.found.tried > 20
    assert best.badness < min(w.badness for w in (found.together, found.apart, found.unshared))


def test_a_search_ends_when_its_time_is_up() -> None:
    lines = search.run(search.Settings(paces=(1,), counts=(), limit=0.0))["lines"]
    assert {line["seconds"] for line in lines} == {None}


def test_the_command_tells_how_long_searches_take(tmp_path: Path) -> None:
    out, chart = tmp_path / "told.json", tmp_path / "told.html"
    asked = "bench search --paces 1 --counts 2 --limit 0".split()
    result = CliRunner().invoke(app, [*asked, "--json", str(out), "--html", str(chart)])
    assert result.exit_code == 0, result.output
    assert "22 queries, by maximum pace" in chart.read_text()
    assert [line["queries"] for line in json.loads(out.read_text())["lines"]] == [22, 22, 2, 2]
    assert "more than 0" in result.output
