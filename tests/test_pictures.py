"""The pictures of docs/ are drawn from what benchmarks write."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

from scripts.pictures import FOLDER, goals, kind, methods

DOCS = Path(__file__).parent.parent / "docs"


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


def test_queries_of_which_nothing_is_run_early_are_left_out() -> None:
    def line(query: str, approach: str, more: float, runs: int) -> dict[str, object]:
        return {
            "query": query,
            "approach": approach,
            "constraint": 0.2,
            "additional_cpu_seconds": more,
            "latency_ratio": 0.5,
            "runs": runs,
        }

    lines = [line("q1", "paths", 1.5, 7), line("q1", "leaves", 0.0, 0), line("q2", "paths", 0.0, 0)]
    told = {"sf": 1.0, "lines": lines}
    assert kind(told) is goals
    text = goals(told).svg()
    assert "1.50 s, last run 0.50" in text
    assert "nothing early" in text
    assert "q2" not in text


def test_methods_that_cost_as_much_as_all_together_are_at_the_left() -> None:
    line = {"query": "q40", "scenario": "ivm", "pattern": "delta-R", "mixed": 2.0}
    told = {"never_above": True, "lines": [line | {"alone": {"im1": 9.0, "higher_order": 2.0}}]}
    assert kind(told) is methods
    drawn = ElementTree.fromstring(methods(told).svg())
    dots = {
        dot[0].text: float(dot.attrib["cx"]) for dot in drawn.findall(".//{*}circle") if len(dot)
    }
    (rule,) = drawn.findall(".//{*}line")
    assert dots == {
        "higher_order: 1.00": float(rule.attrib["x1"]),
        "im1: 4.50": float(rule.attrib["x2"]),  # as far right as there is room
    }
