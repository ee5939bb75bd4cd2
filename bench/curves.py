"""Lines over steps or over seconds, and how many times as much as came was expected; as
`bench/shapes.py`."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape

from bench.chart import number
from bench.shapes import ROW, Drawn, Shape, color, head
from slackwater.cli.planning_curves import scale

ACROSS, DOWN, MARGIN, IN_A_ROW = 300, 150, 48, 2
STEP_LABELS = 10
"""Of more steps only some are named."""
Place = Callable[[float], float]


@dataclass(frozen=True)
class Spot:
    """A point of a line: the step that it is at, how high it is, and between what."""

    x: str | float
    y: float
    low: float | None = None
    high: float | None = None
    is_hollow: bool = False  # a goal that is missed, or a search that did not end

    @property
    def most(self) -> float:
        """How high it reaches."""
        return self.y if self.high is None else max(self.y, self.high)


Series = Mapping[str, Sequence[Spot]]


@dataclass(frozen=True)
class Lines(Shape):
    """By panel and series, points joined by lines: over steps one after the other, upwards from
    nothing; or over numbers, where both scales are logarithmic."""

    title: str
    panels: Mapping[str, Series]
    logarithmic: bool = False

    def drawn(self) -> Drawn:
        """Two panels beside each other, each with scales of its own."""
        series = list(dict.fromkeys(name for own in self.panels.values() for name in own))
        marks, top = head(self.title, series, 4)
        step = ACROSS + 2 * MARGIN, DOWN + 3 * ROW
        for i, (name, own) in enumerate(self.panels.items()):
            row, column = divmod(i, IN_A_ROW)
            x, y = MARGIN + column * step[0], top + ROW + row * step[1]
            marks.append(f'<text x="{x}" y="{y - 4}">{escape(name)}</text>')
            marks += self._panel(own, series, x, y)
        rows = math.ceil(len(self.panels) / IN_A_ROW)
        return Drawn(marks, IN_A_ROW * step[0], top + rows * step[1])

    def _panel(self, own: Series, series: Sequence[str], x: int, y: int) -> Iterator[str]:
        spots = [spot for line in own.values() for spot in line]
        if not spots:
            return
        bottom = y + DOWN
        yield f'<line x1="{x}" x2="{x + ACROSS}" y1="{bottom}" y2="{bottom}" stroke="#aaa"/>'
        yield f'<line x1="{x}" x2="{x}" y1="{y}" y2="{bottom}" stroke="#aaa"/>'
        if self.logarithmic:
            across, down = _logarithmic(spots, x, y)
            ticks = _ends([float(spot.x) for spot in spots])
            labels = {number(value): across(value) for value in ticks}
            heights = _ends([spot.y for spot in spots])
        else:
            steps = list(dict.fromkeys(spot.x for spot in spots))
            across, down, heights = _stepwise(spots, steps, x, y)
            labels = {str(step): across(step) for step in steps[:: 1 + len(steps) // STEP_LABELS]}
        for value in heights:
            place = f'x="{x - 4}" y="{down(value) + 4:.1f}" text-anchor="end"'
            yield f"<text {place}>{number(value)}</text>"
        for label, at in labels.items():
            place = f'x="{at:.1f}" y="{bottom + 14}" text-anchor="middle"'
            yield f"<text {place}>{escape(label)}</text>"
        for name, line in own.items():
            yield from _line(name, line, color(series.index(name)), across, down)


def _ends(values: Sequence[float]) -> list[float]:
    return sorted({min(values), max(values)})


def _logarithmic(spots: Sequence[Spot], x: int, y: int) -> tuple[Callable[..., float], Place]:
    across = scale([float(spot.x) for spot in spots], x + 8, x + ACROSS - 8)
    down = scale([spot.y for spot in spots], y + DOWN - 8, y + 8)
    return across or (lambda value: x), down or (lambda value: y + DOWN)


def _stepwise(
    spots: Sequence[Spot], steps: Sequence[str | float], x: int, y: int
) -> tuple[Callable[..., float], Place, list[float]]:
    """Where steps and heights are, and the heights that are named."""
    most = max(spot.most for spot in spots) or 1.0
    least = min(0.0, *(spot.y if spot.low is None else spot.low for spot in spots), 0.0)
    width = ACROSS / len(steps)
    places = {step: x + width * (i + 0.5) for i, step in enumerate(steps)}

    def down(value: float) -> float:
        return y + DOWN * (1 - (value - least) / (most - least))

    return places.__getitem__, down, sorted({least, 0.0, most})


def _line(
    name: str, line: Sequence[Spot], fill: str, across: Callable[..., float], down: Place
) -> Iterator[str]:
    places = [(across(spot.x), down(spot.y)) for spot in line]
    joined = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    yield f'<polyline points="{joined}" fill="none" stroke="{fill}" stroke-width="1.5"/>'
    for (x, y), spot in zip(places, line, strict=True):
        if spot.low is not None and spot.high is not None:
            ends = f'y1="{down(spot.low):.1f}" y2="{down(spot.high):.1f}"'
            yield f'<line x1="{x:.1f}" x2="{x:.1f}" {ends} stroke="{fill}"/>'
        told = escape(f"{name}, {spot.x}: {number(spot.y)}")
        inside = "#fff" if spot.is_hollow else fill
        dot = f'cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{inside}" stroke="{fill}"'
        yield f"<circle {dot}><title>{told}</title></circle>"


FACTORS, LABELS = 460, 90


@dataclass(frozen=True)
class Factors(Shape):
    """By case and series, how many times as much as it was: at the middle what was right, as far
    to the left what was too little as to the right what was as many times too much."""

    title: str
    cases: Mapping[str, Mapping[str, float]]

    def drawn(self) -> Drawn:
        """A row for each case; what is nothing at all is at the left end."""
        series = list(dict.fromkeys(name for own in self.cases.values() for name in own))
        marks, y = head(self.title, series, 4)
        decades = self._decades()
        first = y
        for case, own in self.cases.items():
            marks.append(
                f'<text x="{LABELS - 8}" y="{y + 9}" text-anchor="end">{escape(case)}</text>'
            )
            for name, times in reversed(list(own.items())):  # the first on top
                told = escape(f"{name}: {times:.3g} times")
                dot = f'cx="{_at(times, decades):.1f}" cy="{y + 5}" r="4"'
                fill = f'fill="{color(series.index(name))}" fill-opacity=".8"'
                marks.append(f"<circle {dot} {fill}><title>{told}</title></circle>")
            y += ROW
        for power in range(-decades, decades + 1):
            x = _at(10.0**power, decades)
            stroke = "#888" if power == 0 else "#ddd"
            marks.insert(0, f'<line x1="{x}" x2="{x}" y1="{first}" y2="{y}" stroke="{stroke}"/>')
            label = f"{10.0**power:g}"
            marks.append(f'<text x="{x}" y="{y + 12}" text-anchor="middle">{label}</text>')
        return Drawn(marks, LABELS + FACTORS + 200, y + 20)

    def _decades(self) -> int:
        """How far to each side, in powers of ten."""
        values = [times for own in self.cases.values() for times in own.values() if times > 0]
        return max([1, *(math.ceil(abs(math.log10(times)) - 1e-9) for times in values)])


def _at(times: float, decades: int) -> float:
    share = (math.log10(times) / decades + 1) / 2 if times > 0 else 0.0
    return LABELS + FACTORS * min(1.0, max(0.0, share))
