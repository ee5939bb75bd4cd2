"""Total cost against latency: as bars in the terminal, and as a page that loads nothing."""

from __future__ import annotations

import html
import math
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from slackwater.cli.context import Session
from slackwater.cli.output import counted, print_table, table
from slackwater.timing.texts import in_units

if TYPE_CHECKING:
    from slackwater.work.plan_report import PlanReport
    from slackwater.work.tradeoff import Curve, Point, Tradeoff

BAR = 30
WIDTH, HEIGHT, LEFT, TOP, BOTTOM = 640, 320, 64, 12, 36
COLORS = ("#222222", "#2b6cb0", "#d9822b", "#2f855a", "#b83280", "#6b46c1", "#b7791f", "#319795")
STYLE = """
body { font: 14px/1.5 system-ui, sans-serif; margin: 2em auto; max-width: 60em; color: #222; }
svg { display: block; margin: 0 0 1em; } text { font-size: 11px; fill: #444; }
table { border-collapse: collapse; margin: 0 0 2em; }
th, td { padding: 2px 10px; text-align: right; border-bottom: 1px solid #ddd; }
.key { display: inline-block; width: 10px; height: 10px; margin: 0 4px 0 16px; }
"""
Place = Callable[[float], float]


# -- in the terminal


def print_curves(own: Session, curves: Tradeoff) -> None:
    """A bar for each goal, then the figures of each view."""
    points = curves.together.points
    most = max((p.cpu_seconds for p in points), default=0.0)
    rows = [(*_told(p), len(curves.views) - p.missed, bar(p.cpu_seconds, most)) for p in points]
    title = f"What shorter results cost, {_headed(curves)}"
    print_table(own.out, table(("goal", "CPU s", "longest s", "met", ""), rows, title=title))
    names = ("view", "", *(f"{p.share:g}x" for p in points))
    lines = [line for curve in curves.views for line in _lines(curve)]
    print_table(own.out, table(names, lines))


def _headed(curves: Tradeoff) -> str:
    period = in_units(curves.period_seconds).removeprefix("1 ")
    return f"every {period}, {counted(len(curves.views), 'view')}"


def _told(point: Point) -> tuple[str, str, str]:
    return f"{point.share:g}x", f"{point.cpu_seconds:.3f}", f"{point.final_seconds:.3f}"


def _lines(curve: Curve) -> Iterator[tuple[str, ...]]:
    """A missed goal has a mark."""
    finals = (f"{p.final_seconds:.3f}{'!' if p.missed else ''}" for p in curve.points)
    yield curve.view or "", "due s", *finals
    yield "", "CPU s", *(f"{p.cpu_seconds:.3f}" for p in curve.points)


def bar(value: float, most: float) -> str:
    """A bar in eighths of a character.

    >>> bar(1.0, 2.0), bar(0.0, 2.0), len(bar(2.0, 2.0))
    ('███████████████', '', 30)
    """
    eighths = round(8 * BAR * value / most) if most > 0 else 0
    rest = " ▏▎▍▌▋▊▉"[eighths % 8].strip()
    return "█" * (eighths // 8) + rest


# -- as a page


def page(told: PlanReport) -> str:
    """The curves of all rhythms as an HTML page."""
    title = "slackwater plan: what shorter results cost"
    supposed = "".join(f"<p>Supposing: <code>{html.escape(s)}</code></p>" for s in told.supposing)
    parts = [f"<h1>{title}</h1>", supposed]
    for curves in told.simulation or ():
        parts += [f"<h2>{html.escape(_headed(curves).capitalize())}</h2>", *_figure(curves)]
    head = f'<meta charset="utf-8"><title>{title}</title><style>{STYLE}</style>'
    return f"<!doctype html>\n<html><head>{head}</head><body>{''.join(parts)}</body></html>\n"


def _figure(curves: Tradeoff) -> Iterator[str]:
    drawn = [curves.together, *curves.views]
    named = [(curve.view or "all together, by the longest", curve) for curve in drawn]
    yield (
        "<p>Upwards: CPU seconds of a period. To the right: seconds that a result takes when it is "
        "due. Both scales are logarithmic; an empty point is a goal that is missed.<br>"
    )
    for i, (name, _) in enumerate(named):
        color = COLORS[i % len(COLORS)]
        yield f'<span class="key" style="background:{color}"></span>{html.escape(name)}'
    yield "</p>"
    yield _chart(drawn)
    for name, curve in named:
        yield f"<h3>{html.escape(name)}</h3>{_table(curve)}"


def _chart(drawn: Sequence[Curve]) -> str:
    """Lines from goal to goal; both scales are logarithmic."""
    points = [p for curve in drawn for p in curve.points]
    across = scale([p.final_seconds for p in points], LEFT, WIDTH - 12)
    down = scale([p.cpu_seconds for p in points], HEIGHT - BOTTOM, TOP)
    if across is None or down is None:
        return "<p>Nothing is expected to come.</p>"
    marks = [*_axes(points, across, down)]
    for i, curve in enumerate(drawn):
        marks += _line(curve, COLORS[i % len(COLORS)], across, down)
    return f'<svg width="{WIDTH}" height="{HEIGHT}">{"".join(marks)}</svg>'


def scale(values: Sequence[float], start: float, end: float) -> Place | None:
    """Where a value is drawn; None where there is nothing to draw.

    >>> place = scale([0.1, 10.0], 0.0, 100.0)
    >>> place and [round(place(v)) for v in (0.1, 1.0, 10.0)]
    [0, 50, 100]
    """
    logs = [math.log10(v) for v in values if v > 0]
    if not logs:
        return None
    low, high = min(logs), max(logs)
    if high - low < 0.01:
        low, high = low - 0.5, high + 0.5

    def place(value: float) -> float:
        at = math.log10(value) if value > 0 else low
        return start + (end - start) * (at - low) / (high - low)

    return place


def _axes(points: Sequence[Point], across: Place, down: Place) -> Iterator[str]:
    base = HEIGHT - BOTTOM
    yield f'<line x1="{LEFT}" x2="{WIDTH}" y1="{base}" y2="{base}" stroke="#999"/>'
    yield f'<line x1="{LEFT}" x2="{LEFT}" y1="0" y2="{base}" stroke="#999"/>'
    for value in _ticks([p.cpu_seconds for p in points]):
        yield (
            f'<text x="{LEFT - 6}" y="{down(value) + 4:.1f}" text-anchor="end">{value:.3g}</text>'
        )
    for value in _ticks([p.final_seconds for p in points]):
        yield (
            f'<text x="{across(value):.1f}" y="{base + 16}" text-anchor="middle">{value:.3g}</text>'
        )


def _ticks(values: Sequence[float]) -> list[float]:
    """The ends, and what is halfway."""
    some = sorted(v for v in values if v > 0)
    return sorted({some[0], math.sqrt(some[0] * some[-1]), some[-1]})


def _line(curve: Curve, color: str, across: Place, down: Place) -> Iterator[str]:
    places = [(across(p.final_seconds), down(p.cpu_seconds)) for p in curve.points]
    joined = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    yield f'<polyline points="{joined}" fill="none" stroke="{color}" stroke-width="1.5"/>'
    name = html.escape(curve.view or "all")
    for (x, y), point in zip(places, curve.points, strict=True):
        told = (
            f"{name}, {point.share:g}x: {point.final_seconds:.3f} s, {point.cpu_seconds:.3f} CPU s"
        )
        fill = "#fff" if point.missed else color
        yield (
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" fill="{fill}" stroke="{color}">'
            f"<title>{told}</title></circle>"
        )


def _table(curve: Curve) -> str:
    head = "".join(f"<th>{name}</th>" for name in ("goal", "CPU s", "s when due", "missed"))
    rows = "".join(
        "<tr>" + "".join(f"<td>{cell}</td>" for cell in (*_told(p), p.missed)) + "</tr>"
        for p in curve.points
    )
    return f"<table><tr>{head}</tr>{rows}</table>"
