"""What `slackwater bench sharing`, `search` and `day` tell, as shapes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from statistics import mean
from typing import Any

from bench.curves import Lines, Spot
from bench.shapes import Bars

Told = Mapping[str, Any]
RANDOM, TUNED = "random", "sharing_tuned"


def shapes(told: Told) -> Iterator[tuple[str, Bars | Lines]]:
    """A picture for each kind of set, by name."""
    kinds = dict.fromkeys(line["set"].partition(" ")[0] for line in told["lines"])
    for kind in kinds:
        own = [line for line in told["lines"] if line["set"].partition(" ")[0] == kind]
        if kind == RANDOM:
            title = f"CPU seconds until all results are there: {_cases(own)}, SF {told['sf']:g}"
            yield "sharing", _by_approach(title, own)
        else:
            yield f"sharing_{kind}", _by_constraint(told, own)
    if told.get("tuned"):
        cases = _cases(told["tuned"])
        title = f"CPU seconds, paces tuned by what was measured: {cases}, SF {told['sf']:g}"
        yield TUNED, _by_approach(title, told["tuned"])


def _cases(lines: Sequence[Told]) -> str:
    names = list(dict.fromkeys(line["case"] for line in lines))
    return names[0] if len(names) == 1 else f"mean of {len(names)} sets"


def _by_approach(title: str, lines: Sequence[Told]) -> Bars:
    """The mean over the cases, and between what."""
    cases = {}
    for name in dict.fromkeys(line["approach"] for line in lines):
        own = [line for line in lines if line["approach"] == name]
        cpu, missed = [line["cpu_seconds"] for line in own], sum(line["missed"] for line in own)
        between = f" ({min(cpu):.1f} to {max(cpu):.1f})" if len(own) > 1 else ""
        cases[name] = {"CPU": (mean(cpu), f"{mean(cpu):.1f} s{between}, {missed} missed")}
    return Bars(title, cases)


def _by_constraint(told: Told, lines: Sequence[Told]) -> Lines:
    """By set: CPU seconds and goals missed over the constraints. Of pairs one constraint stays."""
    figures: dict[str, Callable[[Told], float]] = {
        "CPU seconds": lambda line: line["cpu_seconds"],
        "goals missed": lambda line: line["missed"],
    }
    panels: dict[str, dict[str, list[Spot]]] = {}
    for line in lines:
        constraint = f"{min(line['constraints'].values()):g}"
        for caption, figure in figures.items():
            panel = panels.setdefault(f"{line['set']}: {caption} by constraint", {})
            own = panel.setdefault(line["approach"], [])
            own.append(Spot(constraint, figure(line)))
    return Lines(f"Shared or not, TPC-H at SF {told['sf']:g}", panels)


def searches(told: Told) -> Lines:
    """Seconds of searches: by maximum pace, and by the number of queries. One that was given up is
    hollow, at the CPU seconds that it might take."""
    by_pace = [line for line in told["lines"] if line["costs"] != "remembered"]
    most = {line["queries"] for line in by_pace}
    panels: dict[str, dict[str, list[Spot]]] = {}
    for line in told["lines"]:
        if line["queries"] in most:
            panel, step = f"{line['queries']} queries, by maximum pace", line["most"]
            series = f"costs {line['costs']}"
        else:
            panel, step = "by the number of queries", line["queries"]
            series = f"split by {line['splits']}"
        seconds, is_up = line["seconds"], line["seconds"] is None
        spot = Spot(step, told["limit"] if is_up else seconds, is_hollow=is_up)
        panels.setdefault(panel, {}).setdefault(series, []).append(spot)
    return Lines(f"Seconds of a search, constraint {told['share']:g}", panels)


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
