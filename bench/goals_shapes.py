"""What `slackwater bench goals` and `plan --simulate` tell, as shapes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from bench.curves import Factors, Lines, Spot
from bench.shapes import Bars

Told = Mapping[str, Any]
NAMES = {
    "paths": "a pace per path",
    "subplans": "a pace per subplan",
    "uniform": "one pace",
    "leaves": "paces on sources",
}
FIGURES = {"additional_cpu_seconds": "CPU seconds more", "latency_ratio": "latency ÷ one run"}


def main(told: Told) -> Bars:
    """What it costs to have results sooner, where anything is run early: under the constraint that
    asks for most."""
    least = min(line["constraint"] for line in told["lines"])
    cases: dict[str, dict[str, tuple[float, str]]] = {}
    for line in told["lines"]:
        if line["constraint"] == least:
            more = line["additional_cpu_seconds"]
            text = f"{more:.2f} s, last run {line['latency_ratio']:.2f}"
            shown = (more, text if line["runs"] else "nothing early")
            cases.setdefault(line["query"], {})[NAMES[line["approach"]]] = shown
    early = {q: own for q, own in cases.items() if any(value for value, _ in own.values())}
    return Bars(f"CPU seconds more than one run takes, TPC-H at SF {told['sf']:g}", early)


def thrift(told: Told) -> Lines:
    """Figure 3.7: by how many seconds results come sooner for each additional CPU second."""
    series: dict[str, list[Spot]] = {}
    for line in told["thrift"]:
        spot = Spot(f"{line['constraint']:g}", line["seconds_per_cpu_second"])
        series.setdefault(NAMES[line["approach"]], []).append(spot)
    title = f"Seconds sooner for each additional CPU second, TPC-H at SF {told['sf']:g}"
    return Lines(title, {"by constraint": series})


def bias(told: Told) -> Lines:
    """Figure 3.9: by how much statistics are biased."""
    title = f"Plans by biased statistics: mean, least and most, TPC-H at SF {told['sf']:g}"
    return Lines(title, _panels(told["bias"], lambda case: ("", case.partition(" ")[2])))


def bursts(told: Told) -> Lines:
    """Figure 3.10: by how many times as much a tenth of the time brings."""

    def split(case: str) -> tuple[str, str]:
        times, _, where = case.partition(" ")
        return f", burst {where}", times

    title = f"Bursts that plans do not expect, TPC-H at SF {told['sf']:g}"
    return Lines(title, _panels(told["bursts"], split))


def _panels(lines: Sequence[Told], split: Any) -> dict[str, dict[str, list[Spot]]]:
    """By query and figure: a line for each approach over the cases."""
    panels: dict[str, dict[str, list[Spot]]] = {}
    for line in lines:
        more, step = split(line["case"])
        for figure, caption in FIGURES.items():
            panel = panels.setdefault(f"{line['query']}{more}: {caption}", {})
            own = panel.setdefault(NAMES[line["approach"]], [])
            own.append(Spot(step, *line[figure]))
    return panels


def foretold(told: Told) -> Factors:
    """Table 3.1: expected rows of a run as a multiple of those that came."""
    series = {
        "error": "expected",
        "error_after_half": "by the earlier half",
        "thesis": "the thesis: InQP",
        "postgresql": "the thesis: PostgreSQL",
    }
    cases = {
        line["query"]: {
            name: max(0.0, 1 + line[figure])
            for figure, name in series.items()
            if line.get(figure) is not None
        }
        for line in told["cardinality"]
    }
    return Factors(f"Rows expected ÷ rows that came, TPC-H at SF {told['sf']:g}", cases)


def tradeoff(told: Told) -> Lines:
    """What shorter results would cost, by rhythm: of all views together, and of each."""
    panels = {}
    for curves in told["simulation"]:
        drawn = [curves["together"], *curves["views"]]
        hours = curves["period_seconds"] / 3600
        panels[f"every {hours:g} h: CPU seconds by seconds when due"] = {
            curve["view"] or "all together, by the longest": _curve(curve) for curve in drawn
        }
    return Lines("What shorter results cost, as planned", panels, logarithmic=True)


def _curve(curve: Told) -> list[Spot]:
    return [
        Spot(p["final_seconds"], p["cpu_seconds"], is_hollow=bool(p["missed"]))
        for p in curve["points"]
        if p["final_seconds"] > 0 and p["cpu_seconds"] > 0
    ]


def shapes(told: Told) -> Iterator[tuple[str, Bars | Lines | Factors]]:
    """All that was measured, by name."""
    if told["lines"]:
        yield "goals", main(told)
    if told.get("thrift"):
        yield "thrift", thrift(told)
    parts = {"bias": (bias, "bias"), "bursts": (bursts, "bursts")}
    for part, (draw, name) in (parts | {"cardinality": (foretold, "foretold")}).items():
        if told.get(part):
            yield name, draw(told)
