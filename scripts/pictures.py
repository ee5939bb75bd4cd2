"""The pictures of docs/, from figures that were measured.

    slackwater bench goals --sf 1 --what main,bias,bursts,cardinality --json goals.json
    slackwater bench sharing --sf 1 --set random --seeds 1 --json sharing.json
    slackwater bench budget --sf 1 --json budget.json
    slackwater bench search --json search.json
    slackwater bench day --json day.json
    slackwater bench methods --json methods.json
    slackwater plan --simulate --json > plan.json
    python -m scripts.pictures goals.json sharing.json budget.json search.json day.json …

Each file is told by what it holds, and drawn as docs/pictures/NAME.svg: as many pictures as it has
figures for. With `--only goals,bias` no others are drawn.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from bench import budget_shapes, goals_shapes, sharing_shapes
from bench.shapes import Dots, Shape

DOCS = Path(__file__).parent.parent / "docs"
FOLDER = DOCS / "pictures"
Told = Mapping[str, Any]


def methods(told: Told) -> Dots:
    """Each method alone as a multiple of all together."""
    cases: dict[str, dict[str, dict[str, float]]] = {}
    for line in told["lines"]:
        own = cases.setdefault(f"{line['query']} {line['scenario']}", {})
        own[line["pattern"]] = {name: cost / line["mixed"] for name, cost in line["alone"].items()}
    return Dots("Expected cost of each method alone ÷ of all methods together", cases)


def pictures(told: Told) -> Iterator[tuple[str, Shape]]:
    """All that can be drawn of some figures, by name."""
    if "never_above" in told:
        yield "methods", methods(told)
    elif told.get("simulation"):
        yield "tradeoff", goals_shapes.tradeoff(told)
    elif "refreshes" in told:
        yield from budget_shapes.shapes(told)
    elif "views" in told:
        yield "day", sharing_shapes.day(told)
    elif "limit" in told:
        yield "search", sharing_shapes.searches(told)
    elif "ratios" in told:
        yield from sharing_shapes.shapes(told)
    else:
        yield from goals_shapes.shapes(told)


def main() -> None:
    """Draw every file; say what no chapter shows."""
    parser = argparse.ArgumentParser(description="Draw the pictures of docs/.")
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--only", default="", help="names with commas; all when not given")
    asked = parser.parse_args()
    only = {name for name in asked.only.split(",") if name}
    chapters = "".join(chapter.read_text() for chapter in DOCS.glob("*.md"))
    FOLDER.mkdir(exist_ok=True)
    for path in asked.files:
        for name, shape in pictures(json.loads(path.read_text())):
            if not only or name in only:
                (FOLDER / f"{name}.svg").write_text(shape.svg())
                shown = f"pictures/{name}.svg" in chapters
                print(f"{name}.svg", "" if shown else "(no chapter shows it)")


if __name__ == "__main__":
    main()
