"""The pictures of docs/ are drawn from what benchmarks write; figures here are made up."""

from __future__ import annotations

import json
import re
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from bench.curves import Factors, Lines, Spot
from bench.goals_chart import page, search_page, sharing_page
from bench.shapes import Shape
from scripts import pictures as script
from scripts.pictures import DOCS, FOLDER, pictures
from slackwater.work.tradeoff import SHARES, Curve, Point, Tradeoff


def test_every_picture_that_a_chapter_shows_is_there_and_drawn() -> None:
    shown = {
        name
        for chapter in DOCS.glob("*.md")
        for name in re.findall(r"\]\(pictures/([a-z_]+\.svg)\)", chapter.read_text())
    }
    assert shown == {path.name for path in FOLDER.iterdir()}
    for name in shown:
        drawn = ElementTree.fromstring((FOLDER / name).read_text())
        assert len(drawn) > 4


def drawn(shape: Shape) -> ElementTree.Element:
    """A picture, read as what it is."""
    found = ElementTree.fromstring(shape.svg())
    assert shape.svg().count("<svg") == shape.inline().count("<svg") == 1
    assert "http" not in shape.inline()
    return found


def texts(shape: Shape) -> list[str]:
    """What is written in it."""
    return [text.text or "" for text in drawn(shape).findall(".//{*}text")]


def tips(shape: Shape) -> list[str]:
    """What its points tell."""
    return [title.text or "" for title in drawn(shape).findall(".//{*}circle/{*}title")]


# -- goals


def goals_line(query: str, approach: str, more: float, runs: int) -> dict[str, object]:
    return {
        "query": query,
        "approach": approach,
        "constraint": 0.2,
        "additional_cpu_seconds": more,
        "latency_ratio": 0.5,
        "runs": runs,
    }


def case(query: str, name: str, approach: str, cpu: float) -> dict[str, Any]:
    figures = {"additional_cpu_seconds": (cpu, cpu - 1, cpu + 1), "latency_ratio": (0.5, 0.4, 0.6)}
    return {"query": query, "case": name, "approach": approach, **figures}


GOALS: dict[str, Any] = {
    "sf": 1.0,
    "most": 20,
    "exact": True,
    "lines": [
        goals_line("q1", "paths", 1.5, 7),
        goals_line("q1", "leaves", 0.0, 0),
        goals_line("q2", "paths", 0.0, 0),
    ],
    "thrift": [
        {"constraint": c, "approach": a, "queries": 2, "seconds_per_cpu_second": c}
        for c in (1.0, 0.2)
        for a in ("paths", "uniform")
    ],
    "bias": [
        case("q17", f"bias {ratio:g}", approach, 10 * ratio)
        for ratio in (0.2, 1.0, 5.0)
        for approach in ("paths", "uniform")
    ],
    "bursts": [
        case("q17", f"×{times} {where}", "paths", 2.0)
        for times in (1, 3, 5)
        for where in ("in the middle", "at the end")
    ],
    "cardinality": [
        {"query": "q2", "error": 9.0, "error_after_half": -0.9, "thesis": -0.155}
        | {"postgresql": -0.532},
        {"query": "q18", "error": -1.0, "error_after_half": 0.0, "thesis": -0.001}
        | {"postgresql": -0.075},
    ],
}


def test_all_that_goals_measured_is_drawn() -> None:
    found = dict(pictures(GOALS))
    assert list(found) == ["goals", "thrift", "bias", "bursts", "foretold"]
    only = dict(pictures(GOALS | {"lines": [], "thrift": [], "bursts": []}))
    assert list(only) == ["bias", "foretold"]


def test_queries_of_which_nothing_is_run_early_are_left_out() -> None:
    written = texts(dict(pictures(GOALS))["goals"])
    assert "1.50 s, last run 0.50" in written
    assert "nothing early" in written
    assert "q2" not in written


def test_lines_go_through_the_mean_with_the_least_and_the_most() -> None:
    shape = dict(pictures(GOALS))["bias"]
    assert {"q17: CPU seconds more", "q17: latency ÷ one run", "0.2", "5"} <= set(texts(shape))
    assert {"a pace per path, 0.2: 2.000", "one pace, 5: 50.0"} <= set(tips(shape))
    picture = drawn(shape)
    assert len(picture.findall(".//{*}polyline")) == 2 * 2
    axes, points = 2 * 2, 2 * 2 * 3
    assert len(picture.findall(".//{*}line")) == axes + points
    bursts = texts(dict(pictures(GOALS))["bursts"])
    assert "q17, burst at the end: CPU seconds more" in bursts
    assert "×3" in bursts


def test_what_was_foretold_rightly_is_in_the_middle() -> None:
    shape = dict(pictures(GOALS))["foretold"]
    places = {dot[0].text: float(dot.attrib["cx"]) for dot in drawn(shape).findall(".//{*}circle")}
    right = places["by the earlier half: 1 times"]
    tenfold, tenth = (
        places["expected: 10 times"],
        places["by the earlier half: 0.1 times"],
    )
    assert tenfold - right == right - tenth > 0
    assert places["expected: 0 times"] == tenth  # nothing at all: as far to the left as there is
    assert right > places["the thesis: PostgreSQL: 0.468 times"] > tenth


def test_the_page_of_goals_has_all_that_was_measured_and_loads_nothing() -> None:
    text = page(GOALS)
    assert text.count("<svg") == 2 + 4  # two queries; thrift, bias, bursts, rows foretold
    alone = page(GOALS | {"lines": [], "thrift": [], "bias": [], "bursts": []})
    assert alone.count("<svg") == 1
    assert "Rows expected ÷ rows that came" in alone
    for part in (text, alone):
        for name in ("http", "src=", "href=", "<script", "@import", "url("):
            assert name not in part


# -- sharing, and how long it is searched


def sharing_line(kind: str, name: str, approach: str, share: float, cpu: float) -> dict[str, Any]:
    constraints = {"q5": 1.0, "q8": share} if kind.startswith("pair") else {"q5": share}
    told = {"set": kind, "case": name, "approach": approach, "constraints": constraints}
    return told | {"cpu_seconds": cpu, "missed": 1}


def test_each_kind_of_set_has_a_picture() -> None:
    lines = [
        sharing_line("random", f"22 queries, random {i}", name, 0.1, cpu * i)
        for i in (1, 2)
        for name, cpu in (("unshared", 2.0), ("shared", 1.0))
    ]
    lines += [
        sharing_line(kind, f"{kind} {share:g}", name, share, 3.0)
        for kind in ("ten", "pair A", "pair B")
        for share in (1.0, 0.1)
        for name in ("unshared", "shared")
    ]
    told = {"sf": 1.0, "most": 20, "exact": True, "ratios": [], "lines": lines, "tuned": lines[:2]}
    found = dict(pictures(told))
    assert list(found) == ["sharing", "sharing_ten", "sharing_pair", "sharing_tuned"]
    assert sharing_page(told).count("<svg") == 1 + sharing_page(told | {"tuned": []}).count("<svg")
    assert "http" not in sharing_page(told)
    assert "3.0 s (2.0 to 4.0), 2 missed" in texts(found["sharing"])
    assert "2.0 s, 1 missed" in texts(found["sharing_tuned"])
    written = texts(found["sharing_pair"])
    assert {"pair A: CPU seconds by constraint", "pair B: goals missed by constraint"} <= {*written}
    assert {"1", "0.1"} <= set(written)
    assert len(drawn(found["sharing_ten"]).findall(".//{*}polyline")) == 2 * 2


SEARCH: dict[str, Any] = {
    "sf": 1.0,
    "share": 0.01,
    "limit": 60.0,
    "wanted": 3.0,
    "paper": 25.6,
    "lines": [
        {"queries": 22, "most": 10, "costs": "remembered", "splits": "clusters", "seconds": 1.5},
        {"queries": 22, "most": 10, "costs": "computed again", "splits": "clusters"}
        | {"seconds": None},
        {"queries": 2, "most": 10, "costs": "remembered", "splits": "every split", "seconds": 0.5},
    ],
}


def test_searches_that_were_given_up_are_hollow() -> None:
    ((name, shape),) = pictures(SEARCH)
    assert name == "search"
    dots = {d[0].text: d.attrib["fill"] for d in drawn(shape).findall(".//{*}circle")}
    assert dots.pop("costs computed again, 10: 60.0") == "#fff"
    assert set(dots) == {"costs remembered, 10: 1.500", "split by every split, 2: 0.500"}
    assert "#fff" not in dots.values()


def test_the_page_of_searches_loads_nothing() -> None:
    text = search_page(SEARCH)
    assert text.count("<svg") == 1
    assert "given up after 60 CPU s" in text
    for name in ("http", "src=", "href=", "<script", "@import", "url("):
        assert name not in text


# -- budgets


def cost(seconds: float) -> dict[str, Any]:
    return {"cpu_seconds": seconds, "state_bytes": 10}


def budget_told() -> dict[str, Any]:
    rooms = ("0", "0.0625", "0.125", "0.25", "0.5", "1")
    swept = {f"budget {room}": cost(1 - float(room) / 2) for room in rooms}
    known = {"recompute": cost(1.0), "all": cost(2.0)}
    both = {"right": cost(0.2), "wrong": cost(0.8)}
    return {
        "sf": 1.0,
        "refreshes": 9,
        "late": [{"query": "q1", **known, "budget": cost(0.5)}],
        "budgets": [{"query": "q1", **known, **swept, "unlimited": cost(0.4), "all_bytes": 99}],
        "deletes": [{"query": "q1", **known, "going": going} for going in (0.0, 1.0)],
        "prediction": [
            *(
                {"query": "q8", "recompute": cost(1.0), **both, "room": room}
                | {"change": f"{size}, room {room}"}
                for size in ("small", "large")
                for room in ("0", "unlimited")
            ),
            {"query": "q8", "recompute": cost(1.0), **both, "change": "all expected, 1 change"},
        ],
        "cleaning": [
            {"way": way, "batch": batch, "table": table, "cpu_seconds": batch + 0.5}
            for way in ("recompute", "budget")
            for batch, table in enumerate(("", "part", "orders"))
        ],
    }


def test_budgets_deletes_wrong_expectations_and_cleaning_are_drawn() -> None:
    found = dict(pictures(budget_told()))
    names = ["budget", "budgets", "deletes", "cleaning", "prediction", "prediction_tables"]
    assert list(found) == names
    swept = tips(found["budgets"])
    assert {"within the budget, 0: 1.000", "within the budget, unlimited: 0.400"} <= set(swept)
    assert sum(tip.startswith("computed anew") for tip in swept) == 7  # all along
    assert "all is kept, 100%: 2.000" in tips(found["deletes"])
    assert {"q8, small change", "q8, large change"} <= set(texts(found["prediction"]))
    assert "expected wrongly, unlimited: 0.800" in tips(found["prediction"])
    assert "q8: all expected, 1 change" in texts(found["prediction_tables"])
    cleaned = tips(found["cleaning"])
    assert "what pays is kept, orders 2: 2.500" in cleaned
    assert not any(" 0:" in tip for tip in cleaned)  # the first computation is none


# -- the others


def test_the_tradeoff_of_a_plan_is_drawn_on_logarithmic_scales() -> None:
    points = tuple(Point(share, share * 10, 1 / share, int(share < 0.05)) for share in SHARES)
    curves = Tradeoff(21_600, Curve(None, points), (Curve("v", points),))
    told = {"simulation": [asdict(curves)]}
    ((name, shape),) = pictures(told)
    assert name == "tradeoff"
    assert {"v", "all together, by the longest", "every 6 h: CPU seconds by seconds when due"} <= {
        *texts(shape)
    }
    dots = drawn(shape).findall(".//{*}circle")
    assert sum(dot.attrib["fill"] == "#fff" for dot in dots) == 2
    xs = [float(dot.attrib["cx"]) for dot in dots[: len(SHARES)]]
    assert xs == sorted(xs, reverse=True)
    steps = dict(zip(SHARES, xs, strict=True))
    assert steps[1.0] - steps[0.1] == pytest.approx(steps[0.5] - steps[0.05], abs=0.2)


def test_a_day_has_two_bars_for_each_way() -> None:
    line = {"way": "goals", "cost": 4.0, "process_cpu_seconds": 12.0}
    told = {"sf": 0.05, "views": 30, "lines": [line]}
    ((name, shape),) = pictures(told)
    assert name == "day"
    assert {"goals", "4.0 s", "12.0 s"} <= set(texts(shape))


def test_methods_that_cost_as_much_as_all_together_are_at_the_left() -> None:
    line = {"query": "q40", "scenario": "ivm", "pattern": "delta-R", "mixed": 2.0}
    told = {"never_above": True, "lines": [line | {"alone": {"im1": 9.0, "higher_order": 2.0}}]}
    ((name, shape),) = pictures(told)
    assert name == "methods"
    picture = drawn(shape)
    dots = {
        dot[0].text: float(dot.attrib["cx"]) for dot in picture.findall(".//{*}circle") if len(dot)
    }
    (rule,) = picture.findall(".//{*}line")
    assert dots == {
        "higher_order: 1.00": float(rule.attrib["x1"]),
        "im1: 4.50": float(rule.attrib["x2"]),  # as far right as there is room
    }


def test_nothing_measured_draws_nothing_wrong() -> None:
    assert "nan" not in drawn(Lines("empty", {"panel": {"a": []}})).attrib["viewBox"]
    assert tips(Lines("level", {"panel": {"a": [Spot("0", 0.0)]}})) == ["a, 0: 0.000"]
    assert drawn(Factors("empty", {})).attrib["width"] == "750"


def test_pictures_are_written_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "goals.json"
    file.write_text(json.dumps(GOALS))
    monkeypatch.setattr(script, "FOLDER", tmp_path / "pictures")
    monkeypatch.setattr(sys, "argv", ["pictures", str(file), "--only", "goals,bias"])
    script.main()
    assert {path.name for path in (tmp_path / "pictures").iterdir()} == {"goals.svg", "bias.svg"}
    assert "bias.svg" in capsys.readouterr().out
