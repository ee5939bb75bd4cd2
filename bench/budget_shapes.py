"""What `slackwater bench budget` tells, as shapes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from bench.budget import FRACTIONS
from bench.budget_chart import ways_of
from bench.budget_trials import ANEW
from bench.curves import Lines, Spot
from bench.shapes import Bars

Told = Mapping[str, Any]
NAMES = {ANEW: "computed anew", "all": "all is kept", "budget": "what pays is kept"}
ROOMS = [*(f"{fraction:g}" for fraction in FRACTIONS), "unlimited"]
"""Parts of the bytes that all states take."""


def shapes(told: Told) -> Iterator[tuple[str, Bars | Lines]]:
    """All that was measured, by name."""
    if "late" in told:
        yield "budget", late(told)
    for what, draw in (("budgets", budgets), ("deletes", deletes), ("cleaning", cleaning)):
        if told.get(what):
            yield what, draw(told)
    if told.get("prediction"):
        sizes = [line for line in told["prediction"] if "room" in line]
        tables = [line for line in told["prediction"] if "room" not in line]
        if sizes:
            yield "prediction", prediction(told, sizes)
        if tables:
            yield "prediction_tables", prediction_tables(told, tables)


def late(told: Told) -> Bars:
    """Late data: CPU seconds of a refresh by query and way."""
    names = {way: NAMES[way] for way in (ANEW, "budget")}
    cases = {
        line["query"]: {
            name: (line[way]["cpu_seconds"], f"{line[way]['cpu_seconds']:.2f} s")
            for way, name in names.items()
        }
        for line in told["late"]
    }
    return Bars(f"CPU seconds of a refresh with late data, TPC-H at SF {told['sf']:g}", cases)


def budgets(told: Told) -> Lines:
    """The sweep: CPU seconds of a refresh by query, over parts of the bytes of all states."""
    panels = {}
    for line in told["budgets"]:
        ways = dict(
            zip(ROOMS, [*(f"budget {room}" for room in ROOMS[:-1]), ROOMS[-1]], strict=True)
        )
        panels[line["query"]] = _level(line, ROOMS) | {
            "within the budget": [
                Spot(room, line[way]["cpu_seconds"]) for room, way in ways.items()
            ]
        }
    title = "CPU seconds of a refresh by budget, as a part of the bytes of all states"
    return Lines(f"{title}, SF {told['sf']:g}", panels)


def _level(line: Told, steps: Sequence[str]) -> dict[str, list[Spot]]:
    """Ways that know no budget, all along."""
    return {
        NAMES[way]: [Spot(step, line[way]["cpu_seconds"]) for step in steps]
        for way in (ANEW, "all")
        if way in line
    }


def deletes(told: Told) -> Lines:
    """CPU seconds of a refresh by query, over the part of a change that goes."""
    panels: dict[str, dict[str, list[Spot]]] = {}
    for line in told["deletes"]:
        for way in ways_of(dict(line)):
            own = panels.setdefault(line["query"], {}).setdefault(NAMES[way], [])
            own.append(Spot(f"{line['going']:.0%}", line[way]["cpu_seconds"]))
    title = "CPU seconds of a refresh, by the part of a change of 1% that goes"
    return Lines(f"{title}, SF {told['sf']:g}", panels)


def prediction(told: Told, lines: Sequence[Told]) -> Lines:
    """Changes that are much larger or smaller than was expected, over budgets."""
    panels: dict[str, dict[str, list[Spot]]] = {}
    for line in lines:
        name = f"{line['query']}, {line['change'].partition(',')[0]} change"
        for way in (ANEW, "right", "wrong"):
            series = NAMES.get(way, f"expected {way}ly")
            own = panels.setdefault(name, {}).setdefault(series, [])
            own.append(Spot(line["room"], line[way]["cpu_seconds"]))
    title = "CPU seconds of a refresh by budget, where sizes are expected wrongly"
    return Lines(f"{title}, SF {told['sf']:g}", panels)


def prediction_tables(told: Told, lines: Sequence[Told]) -> Bars:
    """Other tables change than was expected."""
    cases = {
        f"{line['query']}: {line['change']}": {
            NAMES.get(way, f"expected {way}ly"): (
                line[way]["cpu_seconds"],
                f"{line[way]['cpu_seconds']:.2f} s",
            )
            for way in ways_of(dict(line))
        }
        for line in lines
    }
    title = "CPU seconds of a refresh, where other tables are expected to change"
    return Bars(f"{title}, SF {told['sf']:g}", cases)


def cleaning(told: Told) -> Lines:
    """CPU seconds after each batch; steps are named by the table that is cleaned."""
    panel: dict[str, list[Spot]] = {}
    for sample in sorted(told["cleaning"], key=lambda s: int(s["batch"])):
        if sample["batch"]:
            step = f"{sample['table']} {sample['batch']}"
            own = panel.setdefault(NAMES[sample["way"]], [])
            own.append(Spot(step, sample["cpu_seconds"]))
    title = f"CPU seconds of a refresh, tables cleaned one after the other, SF {told['sf']:g}"
    return Lines(title, {"q8, by table and batch": panel})
