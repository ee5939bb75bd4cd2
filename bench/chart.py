"""A page with bars of the ratios: one HTML file that loads nothing.

The bars are drawn as SVG by hand: a plotting library would put megabytes of script into the page
for two rows of rectangles.
"""

from __future__ import annotations

import html
import math
from collections.abc import Iterator, Sequence
from typing import Any

COLORS = {"spark": "#d9822b", "auto": "#2b6cb0"}
CHARTS = (
    ("latency_ratio", "Latency: recompute on Spark ÷ refresh"),
    ("cpu_ratio", "CPU seconds: recompute on Spark ÷ refresh"),
    ("local_latency_ratio", "Latency: recompute on the local engine ÷ refresh"),
    ("local_cpu_ratio", "CPU seconds: recompute on the local engine ÷ refresh"),
)
BAR, GAP, HEIGHT, LEFT, TOP = 14, 14, 240, 48, 12
STYLE = """
body { font: 14px/1.5 system-ui, sans-serif; margin: 2em auto; max-width: 74em; color: #222; }
svg { display: block; margin: 0 0 2em; } text { font-size: 11px; fill: #444; }
table { border-collapse: collapse; margin: 0 0 2em; } caption { text-align: left; }
th, td { padding: 2px 10px; text-align: right; border-bottom: 1px solid #ddd; }
th:first-child, td:first-child { text-align: left; }
.key { display: inline-block; width: 10px; height: 10px; margin: 0 4px 0 16px; }
"""


def page(told: dict[str, Any]) -> str:
    """The report as an HTML page."""
    own = told["settings"]
    title = f"slackwater bench refresh: TPC-H at SF {own['sf']:g}"
    parts = [f"<h1>{html.escape(title)}</h1>", _intro(told)]
    for size in told.get("sweep", [told]):
        parts.append(f"<h2>{size['change']:.2%} of the orders changed</h2>")
        parts += [_chart(size["queries"], ratio, caption) for ratio, caption in CHARTS]
        parts.append(_table(size))
    head = f'<meta charset="utf-8"><title>{html.escape(title)}</title><style>{STYLE}</style>'
    return f"<!doctype html>\n<html><head>{head}</head><body>{''.join(parts)}</body></html>\n"


def _intro(told: dict[str, Any]) -> str:
    own = told["settings"]
    versions = ", ".join(f"{name} {version}" for name, version in own["versions"].items())
    keys = "".join(
        f'<span class="key" style="background:{color}"></span>placement = {name}'
        for name, color in COLORS.items()
    )
    exact = "All results equal Spark's." if told["exact"] else "<b>Some results differ.</b>"
    return (
        f"<p>{html.escape(own['change_mix'])}. {own['cores']} cores; {html.escape(versions)}; "
        f"{own['repeat']} timed rounds after {own['warm_up']} to warm up. {exact}</p>"
        f"<p>Above 1, the refresh is cheaper. The scale is logarithmic.{keys}</p>"
    )


def _chart(queries: Sequence[dict[str, Any]], ratio: str, caption: str) -> str:
    """Two bars per query, up or down from one."""
    values = [q[p][ratio] for q in queries for p in COLORS if q[p][ratio]]
    if not values:
        return ""
    low = math.floor(math.log10(min([*values, 0.5])))
    high = math.ceil(math.log10(max([*values, 2])))
    width = LEFT + len(queries) * (2 * BAR + GAP) + GAP

    def place(value: float) -> float:
        return TOP + HEIGHT * (high - math.log10(value)) / (high - low)

    marks = [*_grid(low, high, width, place), *_bars(queries, ratio, place)]
    size = f'width="{width}" height="{HEIGHT + TOP + 24}"'
    return f"<h3>{html.escape(caption)}</h3><svg {size}>{''.join(marks)}</svg>"


def _grid(low: int, high: int, width: int, place: Any) -> Iterator[str]:
    for power in range(low, high + 1):
        y = place(10.0**power)
        color = "#222" if power == 0 else "#ddd"
        yield f'<line x1="{LEFT}" x2="{width}" y1="{y:.1f}" y2="{y:.1f}" stroke="{color}"/>'
        yield f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{10.0**power:g}</text>'


def _bars(queries: Sequence[dict[str, Any]], ratio: str, place: Any) -> Iterator[str]:
    one = place(1.0)
    for i, query in enumerate(queries):
        x = LEFT + GAP + i * (2 * BAR + GAP)
        name = html.escape(query["query"])
        yield f'<text x="{x + BAR}" y="{HEIGHT + TOP + 18}" text-anchor="middle">{name}</text>'
        for k, (placement, color) in enumerate(COLORS.items()):
            value = query[placement][ratio]
            if value:
                y = place(value)
                told = f"{name}, {placement}: {value:.2f}"
                yield (
                    f'<rect x="{x + k * BAR}" y="{min(y, one):.1f}" width="{BAR - 1}" '
                    f'height="{max(abs(y - one), 0.5):.1f}" fill="{color}">'
                    f"<title>{told}</title></rect>"
                )


def _table(size: dict[str, Any]) -> str:
    """The figures behind the bars, the medians last."""
    head = ["query", "recompute: Spark s", "local s"]
    for placement in COLORS:
        head += [f"{placement}: s", "method", *("latency ×", "CPU ×", "local ×", "local CPU ×")]
    rows = [_row(query) for query in size["queries"]]
    for name in ("medians", "medians_of_changed"):
        shown = name.replace("medians", "median").replace("_", " ")
        rows.append([shown, "", "", *(v for p in COLORS for v in _medians(size[name], p))])
    body = "".join(f"<tr>{_cells(row, 'td')}</tr>" for row in rows)
    return f"<table><tr>{_cells(head, 'th')}</tr>{body}</table>"


def _row(query: dict[str, Any]) -> list[str]:
    row = [query["query"]]
    row += [number(query[m]["seconds"]) for m in ("recompute_spark", "recompute_local")]
    for placement in COLORS:
        own = query[placement]
        row += [number(own["seconds"]), own.get("method", "failed")]
        row += [number(own[ratio]) for ratio, _ in CHARTS]
    return row


def _medians(medians: dict[str, Any], placement: str) -> list[str]:
    return ["", "", *(number(medians[placement][ratio]) for ratio, _ in CHARTS)]


def _cells(values: Sequence[str], tag: str) -> str:
    return "".join(f"<{tag}>{html.escape(value)}</{tag}>" for value in values)


def number(value: float | None) -> str:
    """Three digits of a figure.

    >>> number(None), number(0.01234), number(1234.5)
    ('-', '0.012', '1,234')
    """
    if value is None:
        return "-"
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.3f}"
