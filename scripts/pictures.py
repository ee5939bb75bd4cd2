"""The pictures of docs/, from figures that were measured.

    slackwater bench goals --sf 1 --json goals.json
    slackwater bench sharing --sf 1 --set random --seeds 1 --json sharing.json
    slackwater bench budget --sf 1 --what late --json budget.json
    slackwater bench day --json day.json
    slackwater bench methods --json methods.json
    python scripts/pictures.py goals.json sharing.json budget.json day.json methods.json

Each file is told by what it holds, and drawn as docs/pictures/NAME.svg.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent.parent / "docs" / "pictures"
COLORS = ("#2b6cb0", "#d9822b", "#3a9d5d", "#8a5cb8", "#b0413e")
FONT = 'font-family="sans-serif" font-size="11" fill="#333"'
GROUND = '<rect width="100%" height="100%" fill="#fff"/>'
LEFT, WIDTH, RIGHT, BAR, GAP, TOP = 210, 430, 160, 13, 9, 44
Told = Mapping[str, Any]


@dataclass(frozen=True)
class Bars:
    """By case and by series, how long a bar is and what is written beside it."""

    title: str
    cases: Mapping[str, Mapping[str, tuple[float, str]]]

    def svg(self) -> str:
        """As a picture of its own."""
        series = list(dict.fromkeys(name for own in self.cases.values() for name in own))
        most = max(value for own in self.cases.values() for value, _ in own.values())
        marks = [f'<text x="0" y="14" font-weight="bold">{escape(self.title)}</text>']
        for i, name in enumerate(series if len(series) > 1 else ()):
            x = i * 170
            marks.append(f'<rect x="{x}" y="23" width="10" height="10" fill="{COLORS[i]}"/>')
            marks.append(f'<text x="{x + 15}" y="32">{escape(name)}</text>')
        y = TOP
        for case, own in self.cases.items():
            marks.append(
                f'<text x="{LEFT - 8}" y="{y + 10}" text-anchor="end">{escape(case)}</text>'
            )
            for name, (value, text) in own.items():
                width = max(1.0, WIDTH * max(0.0, value) / most)
                color = COLORS[series.index(name)]
                size = f'width="{width:.1f}" height="{BAR - 3}"'
                marks.append(f'<rect x="{LEFT}" y="{y}" {size} fill="{color}"/>')
                marks.append(f'<text x="{LEFT + width + 5:.1f}" y="{y + 9}">{escape(text)}</text>')
                y += BAR
            y += GAP
        size = f'viewBox="0 0 {LEFT + WIDTH + RIGHT} {y}" width="{LEFT + WIDTH + RIGHT}"'
        inner = "\n".join(marks)
        return f'<svg xmlns="http://www.w3.org/2000/svg" {size} {FONT}>{GROUND}\n{inner}\n</svg>\n'


PANEL, BETWEEN, NAMES, ROW, MOST = 150, 24, 76, 16, 4.0


@dataclass(frozen=True)
class Dots:
    """By case, panel and series, how many times as much: once at the left of a panel, four times
    or more at its right."""

    title: str
    cases: Mapping[str, Mapping[str, Mapping[str, float]]]

    def svg(self) -> str:
        """As a picture of its own."""
        panels = list(dict.fromkeys(name for own in self.cases.values() for name in own))
        rows = [own for case in self.cases.values() for own in case.values()]
        series = list(dict.fromkeys(name for own in rows for name in own))
        marks = [f'<text x="0" y="14" font-weight="bold">{escape(self.title)}</text>']
        for i, name in enumerate(series):
            marks.append(f'<circle cx="{i * 110 + 5}" cy="28" r="4" fill="{COLORS[i]}"/>')
            marks.append(f'<text x="{i * 110 + 14}" y="32">{escape(name)}</text>')
        for i, panel in enumerate(panels):
            marks.append(f'<text x="{_left(i)}" y="{TOP + 10}">{escape(panel)}</text>')
        y = TOP + ROW + 4
        for case, own in self.cases.items():
            marks.append(
                f'<text x="{NAMES - 8}" y="{y + 8}" text-anchor="end">{escape(case)}</text>'
            )
            for i, panel in enumerate(panels):
                x = _left(i)
                line = f'x1="{x}" x2="{x + PANEL}" y1="{y + 4}" y2="{y + 4}"'
                marks.append(f'<line {line} stroke="#ddd"/>')
                for name, times in reversed(own.get(panel, {}).items()):  # the first on top
                    at = x + PANEL * min(1.0, max(0.0, (times - 1) / (MOST - 1)))
                    dot = f'cx="{at:.1f}" cy="{y + 4}" r="4" fill="{COLORS[series.index(name)]}"'
                    told = f"{escape(name)}: {times:.2f}"
                    marks.append(f'<circle {dot} fill-opacity=".8"><title>{told}</title></circle>')
            y += ROW
        for i in range(len(panels)):
            for times in range(1, int(MOST) + 1):
                x = _left(i) + PANEL * (times - 1) / (MOST - 1)
                more = "+" if times == MOST else ""
                marks.append(
                    f'<text x="{x}" y="{y + 12}" text-anchor="middle">{times}{more}</text>'
                )
        width = _left(len(panels)) + 8
        size = f'viewBox="0 0 {width} {y + 20}" width="{width}"'
        inner = "\n".join(marks)
        return f'<svg xmlns="http://www.w3.org/2000/svg" {size} {FONT}>{GROUND}\n{inner}\n</svg>\n'


def _left(panel: int) -> int:
    """Where a panel begins."""
    return NAMES + panel * (PANEL + BETWEEN)


def goals(told: Told) -> Bars:
    """What it costs to have results sooner, where anything is run early: under the constraint that
    asks for most."""
    names = {"paths": "a pace per path", "uniform": "one pace", "leaves": "paces on sources"}
    least = min(line["constraint"] for line in told["lines"])
    cases: dict[str, dict[str, tuple[float, str]]] = {}
    for line in told["lines"]:
        if line["constraint"] == least:
            more = line["additional_cpu_seconds"]
            text = f"{more:.2f} s, last run {line['latency_ratio']:.2f}"
            shown = (more, text if line["runs"] else "nothing early")
            cases.setdefault(line["query"], {})[names[line["approach"]]] = shown
    early = {q: own for q, own in cases.items() if any(value for value, _ in own.values())}
    return Bars(f"CPU seconds more than one run takes, TPC-H at SF {told['sf']:g}", early)


def sharing(told: Told) -> Bars:
    """CPU seconds by approach."""
    cases = {
        line["approach"]: {
            "CPU": (line["cpu_seconds"], f"{line['cpu_seconds']:.1f} s, {line['missed']} missed")
        }
        for line in told["lines"]
    }
    case = told["lines"][0]["case"]
    return Bars(f"CPU seconds until all results are there: {case}, SF {told['sf']:g}", cases)


def budget(told: Told) -> Bars:
    """Late data: CPU seconds of a refresh by query and way."""
    names = {"recompute": "computed anew", "budget": "what pays is kept"}
    cases = {
        line["query"]: {
            name: (line[way]["cpu_seconds"], f"{line[way]['cpu_seconds']:.2f} s")
            for way, name in names.items()
        }
        for line in told["late"]
    }
    return Bars(f"CPU seconds of a refresh with late data, TPC-H at SF {told['sf']:g}", cases)


def day(told: Told) -> Bars:
    """Weighted CPU seconds by way, and those of the process."""
    cases = {
        line["way"]: {
            "steps, weighted by price": (line["cost"], f"{line['cost']:.1f} s"),
            "the whole process": (
                line["process_cpu_seconds"],
                f"{line['process_cpu_seconds']:.1f} s",
            ),
        }
        for line in told["lines"]
    }
    return Bars(f"CPU seconds of a day of {told['views']} views, SF {told['sf']:g}", cases)


def methods(told: Told) -> Dots:
    """Each method alone as a multiple of all together."""
    cases: dict[str, dict[str, dict[str, float]]] = {}
    for line in told["lines"]:
        own = cases.setdefault(f"{line['query']} {line['scenario']}", {})
        own[line["pattern"]] = {name: cost / line["mixed"] for name, cost in line["alone"].items()}
    return Dots("Expected cost of each method alone ÷ of all methods together", cases)


def kind(told: Told) -> Callable[[Told], Bars | Dots]:
    """Which picture some figures are for."""
    if "never_above" in told:
        return methods
    if "late" in told:
        return budget
    if "views" in told:
        return day
    return sharing if "ratios" in told else goals


def main(paths: list[str]) -> None:
    """Draw every file."""
    FOLDER.mkdir(exist_ok=True)
    for path in paths:
        told = json.loads(Path(path).read_text())
        draw = kind(told)
        (FOLDER / f"{draw.__name__}.svg").write_text(draw(told).svg())


if __name__ == "__main__":
    main(sys.argv[1:])
