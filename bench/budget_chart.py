"""The figures of `slackwater bench budget` as one HTML page that loads nothing.

Bars for the CPU seconds of each way, by query; a line over the refreshes where relations are
cleaned one after the other. Drawn by hand, as in `bench/chart.py`.
"""

from __future__ import annotations

import html
from collections.abc import Iterator, Sequence
from typing import Any

from bench.chart import STYLE, number

COLORS = ("#8a8a8a", "#d9822b", "#2b6cb0", "#3a9d5d", "#8a5cb8", "#b0413e", "#5c7f8a", "#c7a12b")
TITLES = {
    "late": "Late data: 90% at first, then 9%, 0.9% and 0.1% of all tables",
    "budgets": "A change of 1% at parts of the bytes that all states take",
    "prediction": "Expectations that were wrong",
    "deletes": "Changes of 1% of which a part goes",
    "injected": "Without parts of joins, with those of the order of the query, with all",
    "cleaning": "Tables cleaned one after the other",
}
LEFT, BAR, ROW, WIDTH, HEIGHT = 200, 9, 6, 560, 220


def page(told: dict[str, Any]) -> str:
    """All parts that were measured."""
    title = f"slackwater bench budget: TPC-H at SF {told['sf']:g}"
    exact = "All results equal recompute." if told["exact"] else "<b>Some results differ.</b>"
    parts = [f"<h1>{html.escape(title)}</h1><p>{told['cores']} cores. {exact}</p>"]
    for name, caption in TITLES.items():
        if name in told:
            parts.append(f"<h2>{html.escape(caption)}</h2>")
            parts.append(_lines(told[name]) if name == "cleaning" else _bars(told[name]))
    head = f'<meta charset="utf-8"><title>{html.escape(title)}</title><style>{STYLE}</style>'
    return f"<!doctype html>\n<html><head>{head}</head><body>{''.join(parts)}</body></html>\n"


def ways_of(line: dict[str, Any]) -> list[str]:
    """The ways that a line tells of."""
    return [name for name, value in line.items() if isinstance(value, dict)]


def case_of(line: dict[str, Any]) -> str:
    """The query, and what was special."""
    going = f"{line['going']:.0%} go" if "going" in line else ""
    changes = f"{line['changes']} changes" if "changes" in line else ""
    told = (line["query"], line.get("change", ""), going, changes)
    return ", ".join(part for part in told if part)


def _bars(lines: Sequence[dict[str, Any]]) -> str:
    """CPU seconds of a refresh, the mean over the changes."""
    names = ways_of(lines[0])
    most = max(line[w]["cpu_seconds"] for line in lines for w in ways_of(line))
    marks, y = [], 0
    for line in lines:
        marks += list(_group(line, y, most))
        y += BAR * len(ways_of(line)) + ROW
    keys = "".join(
        f'<span class="key" style="background:{COLORS[i % len(COLORS)]}"></span>{html.escape(n)}'
        for i, n in enumerate(names)
    )
    svg = f'<svg width="{LEFT + WIDTH + 160}" height="{y}">{"".join(marks)}</svg>'
    return f"<p>CPU seconds of a refresh, and the bytes of the states.{keys}</p>{svg}"


def _group(line: dict[str, Any], y: int, most: float) -> Iterator[str]:
    ways = ways_of(line)
    middle = y + BAR * len(ways) / 2 + 4
    yield f'<text x="0" y="{middle:.1f}">{html.escape(case_of(line))}</text>'
    for i, way in enumerate(ways):
        own = line[way]
        width = max(1.0, WIDTH * own["cpu_seconds"] / most)
        told = f"{number(own['cpu_seconds'])} s, {own['state_bytes']:,} bytes"
        top = y + i * BAR
        yield (
            f'<rect x="{LEFT}" y="{top}" width="{width:.1f}" height="{BAR - 1}" '
            f'fill="{COLORS[i % len(COLORS)]}"><title>{html.escape(way)}: {told}</title></rect>'
        )
        yield f'<text x="{LEFT + width + 4:.1f}" y="{top + BAR - 1}" font-size="9">{told}</text>'


def _lines(samples: Sequence[dict[str, Any]]) -> str:
    """CPU seconds after each batch."""
    if not samples:
        return ""
    later = [s for s in samples if s["batch"]]
    most, last = max(s["cpu_seconds"] for s in later), max(s["batch"] for s in later)
    marks, names = [], list(dict.fromkeys(s["way"] for s in samples))
    for i, way in enumerate(names):
        own = sorted((s for s in later if s["way"] == way), key=lambda s: s["batch"])
        points = " ".join(
            f"{LEFT + WIDTH * s['batch'] / last:.1f},{HEIGHT * (1 - s['cpu_seconds'] / most):.1f}"
            for s in own
        )
        marks.append(f'<polyline points="{points}" fill="none" stroke="{COLORS[i]}"/>')
    tables: dict[str, int] = {}
    for s in later:
        tables.setdefault(s["table"], s["batch"])
    for table, batch in tables.items():
        x = LEFT + WIDTH * batch / last
        marks.append(f'<text x="{x:.1f}" y="{HEIGHT + 14}">{html.escape(table)}</text>')
    keys = "".join(
        f'<span class="key" style="background:{COLORS[i]}"></span>{html.escape(n)}'
        for i, n in enumerate(names)
    )
    size = f'width="{LEFT + WIDTH + 60}" height="{HEIGHT + 24}"'
    told = f"CPU seconds of each refresh; the top is {number(most)} s.{keys}"
    return f"<p>{told}</p><svg {size}>{''.join(marks)}</svg>"
