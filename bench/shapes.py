"""Shapes that figures are drawn as: pictures of their own for docs/, or parts of pages that load
nothing. Drawn by hand, as in `bench/chart.py`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape

COLORS = ("#2b6cb0", "#d9822b", "#3a9d5d", "#8a5cb8", "#b0413e", "#8a8a8a", "#c7a12b", "#5c7f8a")
FONT = 'font-family="sans-serif" font-size="11" fill="#333"'
GROUND = '<rect width="100%" height="100%" fill="#fff"/>'
LEFT, WIDTH, RIGHT, BAR, GAP, TOP = 210, 430, 160, 13, 9, 44
KEY, ROW = 170, 16


@dataclass(frozen=True)
class Drawn:
    """Marks, and the room that they need."""

    marks: Sequence[str]
    width: int
    height: float


class Shape(ABC):
    """What can be drawn."""

    @abstractmethod
    def drawn(self) -> Drawn:
        """Its marks."""

    def svg(self) -> str:
        """As a picture of its own."""
        inner = "\n".join(self.drawn().marks)
        head = f'<svg xmlns="http://www.w3.org/2000/svg" {self._size()} {FONT}>'
        return f"{head}{GROUND}\n{inner}\n</svg>\n"

    def inline(self) -> str:
        """As a part of a page."""
        return f"<svg {self._size()} {FONT}>{''.join(self.drawn().marks)}</svg>"

    def _size(self) -> str:
        own = self.drawn()
        return f'viewBox="0 0 {own.width} {own.height:g}" width="{own.width}"'


def color(i: int) -> str:
    """That of a series by its place."""
    return COLORS[i % len(COLORS)]


def head(title: str, series: Sequence[str], in_a_row: int) -> tuple[list[str], int]:
    """A title and which colour is whose, and where the room below begins."""
    marks = [f'<text x="0" y="14" font-weight="bold">{escape(title)}</text>']
    for i, name in enumerate(series):
        row, column = divmod(i, in_a_row)
        x, y = column * KEY, 23 + row * ROW
        marks.append(f'<rect x="{x}" y="{y}" width="10" height="10" fill="{color(i)}"/>')
        marks.append(f'<text x="{x + 15}" y="{y + 9}">{escape(name)}</text>')
    return marks, TOP + max(0, (len(series) - 1) // in_a_row) * ROW


@dataclass(frozen=True)
class Bars(Shape):
    """By case and by series, how long a bar is and what is written beside it."""

    title: str
    cases: Mapping[str, Mapping[str, tuple[float, str]]]

    def drawn(self) -> Drawn:
        """A bar below the other, cases apart."""
        series = list(dict.fromkeys(name for own in self.cases.values() for name in own))
        values = [value for own in self.cases.values() for value, _ in own.values()]
        most = max(values, default=0.0) or 1.0
        marks, y = head(self.title, series if len(series) > 1 else (), 4)
        for case, own in self.cases.items():
            marks.append(
                f'<text x="{LEFT - 8}" y="{y + 10}" text-anchor="end">{escape(case)}</text>'
            )
            for name, (value, text) in own.items():
                width = max(1.0, WIDTH * max(0.0, value) / most)
                size = f'width="{width:.1f}" height="{BAR - 3}"'
                fill = color(series.index(name))
                marks.append(f'<rect x="{LEFT}" y="{y}" {size} fill="{fill}"/>')
                marks.append(f'<text x="{LEFT + width + 5:.1f}" y="{y + 9}">{escape(text)}</text>')
                y += BAR
            y += GAP
        return Drawn(marks, LEFT + WIDTH + RIGHT, y)


PANEL, BETWEEN, NAMES, MOST = 150, 24, 76, 4.0


@dataclass(frozen=True)
class Dots(Shape):
    """By case, panel and series, how many times as much: once at the left of a panel, four times
    or more at its right."""

    title: str
    cases: Mapping[str, Mapping[str, Mapping[str, float]]]

    def drawn(self) -> Drawn:
        """A row for each case."""
        panels = list(dict.fromkeys(name for own in self.cases.values() for name in own))
        rows = [own for case in self.cases.values() for own in case.values()]
        series = list(dict.fromkeys(name for own in rows for name in own))
        marks = [f'<text x="0" y="14" font-weight="bold">{escape(self.title)}</text>']
        for i, name in enumerate(series):
            marks.append(f'<circle cx="{i * 110 + 5}" cy="28" r="4" fill="{color(i)}"/>')
            marks.append(f'<text x="{i * 110 + 14}" y="32">{escape(name)}</text>')
        for i, panel in enumerate(panels):
            marks.append(f'<text x="{_left(i)}" y="{TOP + 10}">{escape(panel)}</text>')
        y = TOP + ROW + 4
        for case, own in self.cases.items():
            marks.append(
                f'<text x="{NAMES - 8}" y="{y + 8}" text-anchor="end">{escape(case)}</text>'
            )
            for i, panel in enumerate(panels):
                marks += _dots(own.get(panel, {}), series, _left(i), y + 4)
            y += ROW
        for i in range(len(panels)):
            marks += _times(_left(i), y + 12)
        return Drawn(marks, _left(len(panels)) + 8, y + 20)


def _left(panel: int) -> int:
    """Where a panel begins."""
    return NAMES + panel * (PANEL + BETWEEN)


def _dots(own: Mapping[str, float], series: Sequence[str], x: int, y: int) -> Iterator[str]:
    yield f'<line x1="{x}" x2="{x + PANEL}" y1="{y}" y2="{y}" stroke="#ddd"/>'
    for name, times in reversed(list(own.items())):  # the first on top
        at = x + PANEL * min(1.0, max(0.0, (times - 1) / (MOST - 1)))
        dot = f'cx="{at:.1f}" cy="{y}" r="4" fill="{color(series.index(name))}"'
        told = f"{escape(name)}: {times:.2f}"
        yield f'<circle {dot} fill-opacity=".8"><title>{told}</title></circle>'


def _times(left: int, y: int) -> Iterator[str]:
    for times in range(1, int(MOST) + 1):
        x = left + PANEL * (times - 1) / (MOST - 1)
        more = "+" if times == MOST else ""
        yield f'<text x="{x}" y="{y}" text-anchor="middle">{times}{more}</text>'
