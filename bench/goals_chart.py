"""The figures of `slackwater bench goals`, `sharing`, `search` and `day` as HTML pages that load
nothing.

Points of latency against additional CPU time, by approach; bars of total CPU time. Drawn by hand,
as in `bench/chart.py`.
"""

from __future__ import annotations

import html
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from bench import goals_shapes, sharing_shapes
from bench.chart import STYLE, number
from bench.shapes import COLORS

WIDTH, HEIGHT, LEFT, TOP = 260, 160, 46, 18


def page(told: dict[str, Any]) -> str:
    """All queries under all constraints, and what else was measured."""
    title = f"slackwater bench goals: TPC-H at SF {told['sf']:g}, up to {told['most']} runs"
    exact = "All results equal recompute." if told["exact"] else "<b>Some results differ.</b>"
    drawn = (shape for name, shape in goals_shapes.shapes(told) if name != "goals")
    more = "".join(f"<p>{shape.inline()}</p>" for shape in drawn)
    return whole(title, f"<p>{exact}</p>{_by_query(told['lines'])}{more}")


def _by_query(lines: Sequence[Mapping[str, Any]]) -> str:
    if not lines:
        return ""
    approaches = list(dict.fromkeys(line["approach"] for line in lines))
    keys = legend(approaches)
    body = f"<p>Right: additional CPU seconds; up: latency ÷ batch latency.{keys}</p>"
    for query in dict.fromkeys(line["query"] for line in lines):
        body += _points(query, [line for line in lines if line["query"] == query], approaches)
    return body


def search_page(told: dict[str, Any]) -> str:
    """How long searches took."""
    title = f"slackwater bench search: TPC-H at SF {told['sf']:g}"
    wanted = (
        f"Of 22 queries at maximum pace 100: below {told['wanted']:g} s is wanted; the paper: "
        f"{told['paper']:g} s. Empty points: given up after {told['limit']:g} CPU s."
    )
    return whole(title, f"<p>{wanted}</p>{sharing_shapes.searches(told).inline()}")


def whole(title: str, body: str) -> str:
    """A page."""
    style = f"{STYLE} svg.small {{ display: inline-block; margin: 0 1em 1em 0; }}"
    head = f'<meta charset="utf-8"><title>{html.escape(title)}</title><style>{style}</style>'
    top = f"<h1>{html.escape(title)}</h1>"
    return f"<!doctype html>\n<html><head>{head}</head><body>{top}{body}</body></html>\n"


def legend(names: Sequence[str]) -> str:
    """Which colour is whose."""
    return "".join(
        f'<span class="key" style="background:{COLORS[i % len(COLORS)]}"></span>{html.escape(name)}'
        for i, name in enumerate(names)
    )


def _points(query: str, lines: Sequence[Mapping[str, Any]], approaches: Sequence[str]) -> str:
    most = max(0.1, *(line["additional_cpu_seconds"] for line in lines))
    high = max(1.0, *(line["latency_ratio"] for line in lines))
    marks = list(_axes(query, most, high))
    for line in lines:
        x = LEFT + WIDTH * max(0.0, line["additional_cpu_seconds"]) / most
        y = TOP + HEIGHT * (1 - line["latency_ratio"] / high)
        color = COLORS[approaches.index(line["approach"])]
        tip = (
            f"{line['approach']}, {line['constraint']:g}: +{line['additional_cpu_seconds']:.2f} s,"
            f" {line['latency_ratio']:.2f}, {line['runs']} runs"
        )
        size = 3 + 3 * line["constraint"]
        marks.append(
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{size:.1f}" fill="{color}" fill-opacity=".7">'
            f"<title>{html.escape(tip)}</title></circle>"
        )
    size_of = f'width="{LEFT + WIDTH + 20}" height="{TOP + HEIGHT + 24}"'
    return f'<svg class="small" {size_of}>{"".join(marks)}</svg>'


def _axes(query: str, most: float, high: float) -> Iterator[str]:
    bottom = TOP + HEIGHT
    yield f'<text x="{LEFT}" y="12"><tspan font-weight="bold">{html.escape(query)}</tspan></text>'
    yield f'<line x1="{LEFT}" x2="{LEFT + WIDTH}" y1="{bottom}" y2="{bottom}" stroke="#aaa"/>'
    yield f'<line x1="{LEFT}" x2="{LEFT}" y1="{TOP}" y2="{bottom}" stroke="#aaa"/>'
    yield f'<text x="{LEFT + WIDTH}" y="{bottom + 14}" text-anchor="end">{number(most)} s</text>'
    yield f'<text x="{LEFT - 4}" y="{TOP + 8}" text-anchor="end">{high:.2f}</text>'


def bars(groups: Mapping[str, Mapping[str, float]], unit: str) -> str:
    """By case, a bar for each approach."""
    names = list(dict.fromkeys(name for own in groups.values() for name in own))
    most = max([1e-9, *(value for own in groups.values() for value in own.values())])
    marks, y = [], 0
    for case, own in groups.items():
        marks.append(f'<text x="0" y="{y + 10}">{html.escape(case)}</text>')
        for name, value in own.items():
            width = max(1.0, 480 * value / most)
            color = COLORS[names.index(name) % len(COLORS)]
            marks.append(f'<rect x="180" y="{y}" width="{width:.1f}" height="10" fill="{color}"/>')
            shown = f"{number(value)} {unit}"
            marks.append(f'<text x="{184 + width:.1f}" y="{y + 9}">{html.escape(shown)}</text>')
            y += 12
        y += 8
    return f'<p>{legend(names)}</p><svg width="820" height="{y}">{"".join(marks)}</svg>'


def sharing_page(told: dict[str, Any]) -> str:
    """Total CPU and missed goals of each set by each approach."""
    title = f"slackwater bench sharing: TPC-H at SF {told['sf']:g}, up to {told['most']} runs"
    exact = "All results equal recompute." if told["exact"] else "<b>Some results differ.</b>"
    cpu: dict[str, dict[str, float]] = {}
    missed: dict[str, dict[str, float]] = {}
    for line in told["lines"]:
        cpu.setdefault(line["case"], {})[line["approach"]] = line["cpu_seconds"]
        missed.setdefault(line["case"], {})[line["approach"]] = line["missed"]
    body = f"<p>{exact}</p><h2>CPU seconds until all results are there</h2>{bars(cpu, 's')}"
    tuned = [s for name, s in sharing_shapes.shapes(told) if name == sharing_shapes.TUNED]
    more = "".join(f"<p>{shape.inline()}</p>" for shape in tuned)
    return whole(title, f"{body}<h2>Goals missed</h2>{bars(missed, 'missed')}{more}")


def day_page(told: dict[str, Any]) -> str:
    """Weighted CPU and missed goals of each way."""
    title = f"slackwater bench day: {told['views']} views over TPC-H at SF {told['sf']:g}"
    exact = "All results equal recompute." if told["exact"] else "<b>Some results differ.</b>"
    cost = {line["way"]: {"weighted CPU": line["cost"]} for line in told["lines"]}
    missed = {line["way"]: {"goals missed": line["missed"]} for line in told["lines"]}
    body = f"<p>{exact} Prices: {html.escape(told['prices'])}.</p><h2>Weighted CPU seconds</h2>"
    return whole(title, f"{body}{bars(cost, 's')}<h2>Goals missed</h2>{bars(missed, 'missed')}")
