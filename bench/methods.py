"""`slackwater bench methods`: what all methods together save over each alone (001, 8.2).

For queries of TPC-DS, the arrival patterns and both scenarios of 001, 8.1, the cheapest plan of
all methods in one search space beside the cheapest plan of each, and beside computing everything in
full, at the paper's scale. Costs are estimates; nothing is run.
"""

from __future__ import annotations

import html
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from bench.problems import PATTERNS, ROWS_OF_1TB, Bound, bound_queries, problem
from slackwater.errors import UserError, nearest
from slackwater.planner.plan import METHODS, plan

OnStage = Callable[[str, int, int], None]
QUERIES = ("q10", "q35", "q40", "q80", "q5", "q25", "q29", "q37", "q77", "q93")
SCENARIOS = {"pdw": (0.25, 0.3, 1.0), "ivm": (1.0, 1.0)}
"""The prices of the runs. `pdw`: early runs at a lower price, one result; `ivm`: a result at each
of two times, of which the second counts."""
FULL = "full"
ALONE = {**{method: (method,) for method in METHODS}, FULL: ()}
"""What a plan of one method may take from; computing in full is open to each."""
SAME = 1e-6
"""Costs that differ by less are equal."""


@dataclass(frozen=True)
class Settings:
    """What to plan."""

    queries: tuple[str, ...] = QUERIES
    patterns: tuple[str, ...] = tuple(PATTERNS)
    scenarios: tuple[str, ...] = tuple(SCENARIOS)
    keys: bool = True
    """Rely on the keys and references of TPC-DS."""

    def __post_init__(self) -> None:
        for given, known in ((self.patterns, PATTERNS), (self.scenarios, SCENARIOS)):
            if unknown := [name for name in given if name not in known]:
                raise UserError(
                    f"'{unknown[0]}' is not known.",
                    code="BAD_OPTION",
                    hint=nearest(unknown[0], known),
                )


def run(settings: Settings, on_stage: OnStage | None = None) -> dict[str, Any]:
    """Plan each query in each way."""
    lines = []
    cases = [
        (query, pattern, scenario)
        for query in settings.queries
        for scenario in settings.scenarios
        for pattern in settings.patterns
    ]
    with bound_queries(settings.keys) as bound:
        for i, (query, pattern, scenario) in enumerate(cases):
            if query not in bound:
                raise UserError(
                    f"Query '{query}' is not one of TPC-DS's that bind.",
                    code="UNKNOWN_QUERY",
                    hint=nearest(query, bound),
                )
            if on_stage is not None:
                on_stage(f"{query}, {scenario}, {pattern}", i, len(cases))
            lines.append(_line(query, bound[query], pattern, scenario))
    return {
        "lines": lines,
        "never_above": all(mark(line) != "ABOVE" for line in lines),
        "below": sum(mark(line) == "<" for line in lines),
    }


def _line(name: str, query: Bound, pattern: str, scenario: str) -> dict[str, Any]:
    asked = problem(query, pattern, SCENARIOS[scenario], scenario, ROWS_OF_1TB)
    mixed = plan(asked)
    alone = {name: plan(asked, methods=methods).cost for name, methods in ALONE.items()}
    best = min((FULL, *METHODS), key=lambda name: alone[name] * (1 + SAME * (name != FULL)))
    return {
        "query": name,
        "scenario": scenario,
        "pattern": pattern,
        "mixed": mixed.cost,
        "methods": sorted(mixed.methods()),
        "alone": alone,
        "best": best,
        "ratio": mixed.cost / alone[best],
    }


def mark(line: dict[str, Any]) -> str:
    """Is the plan of all methods below the best of one, the same, or above it?"""
    if abs(line["ratio"] - 1) <= SAME:
        return "="
    return "<" if line["ratio"] < 1 else "ABOVE"


# -- the chart

COLORS = dict(zip(ALONE, ("#2b6cb0", "#d9822b", "#3a9d5d", "#8a5cb8", "#8a8a8a"), strict=True))
LEFT, ROW, WIDTH = 190, 16, 520
STYLE = "body { font: 14px/1.5 system-ui, sans-serif; margin: 2em } text { font-size: 11px }"


def page(told: dict[str, Any]) -> str:
    """The costs as an HTML page that loads nothing: for each plan, how many times as dear as all
    methods together each method alone is."""
    keys = "".join(f'<span style="color:{c}">&#9632; {m} </span>' for m, c in COLORS.items())
    rows = [_row(i, line) for i, line in enumerate(told["lines"])]
    size = f'width="{LEFT + WIDTH + 60}" height="{ROW * len(rows) + 8}"'
    return (
        '<!doctype html>\n<html><head><meta charset="utf-8"><title>slackwater bench methods</title>'
        f"<style>{STYLE}</style></head><body><h1>Each method alone ÷ all methods</h1>"
        f"<p>Estimated cost of the cheapest plan; 1 is as cheap, the end of a line four times as "
        f"dear or more. {keys}</p><svg {size}>{''.join(rows)}</svg></body></html>\n"
    )


def _row(i: int, line: dict[str, Any]) -> str:
    y = ROW * i + 12
    name = html.escape(f"{line['query']} {line['scenario']} {line['pattern']}")
    dots = "".join(
        f'<circle cx="{_place(cost / line["mixed"]):.1f}" cy="{y - 4}" r="4" fill="{COLORS[m]}" '
        f'fill-opacity="0.8"><title>{m}: {cost / line["mixed"]:.2f}</title></circle>'
        for m, cost in line["alone"].items()
    )
    rule = f'<line x1="{LEFT}" x2="{LEFT + WIDTH}" y1="{y - 4}" y2="{y - 4}" stroke="#ddd"/>'
    return f'<text x="0" y="{y}">{name}</text>{rule}{dots}'


def _place(ratio: float) -> float:
    return LEFT + WIDTH * min(1.0, max(0.0, (ratio - 1) / 3))
