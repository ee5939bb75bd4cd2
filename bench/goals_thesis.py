"""What the thesis tells of InQP in figures 3.5 to 3.7 and the text around them (000, 3.4), beside
what was measured here. Its figures are pictures; numbers are those that the text gives.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import mean
from typing import Any

PARTLY = "q2 q11 q13 q15 q16 q17 q18 q20 q21 q22 qaggjoin qouter".split()
"""Queries that it calls not fully incrementable."""
FIGURE_3_5 = 0.02
"""The constraint of figure 3.5, and that of queries for which it is out of reach."""
INSTEAD = {"q17": 0.05, "qaggjoin": 0.05, "qouter": 0.05}
SHARES = {"q15": {"uniform": 0.015, "leaves": 0.015}}
"""The additional CPU of paths as a share of another approach's."""
SAYS = {
    "q15": "0.015 of the additional CPU of one pace, and of paces on leaves",
    "q17": "0.02 cannot be met, 0.05 can; paths far below both",
    "qaggjoin": "0.02 cannot be met, 0.05 can; paths below both",
    "qouter": "0.02 cannot be met, 0.05 can; paths as leaves, below one pace",
}
"""What it says of single queries (figures 3.5 and 3.6)."""
MET = {"paths": 0.64, "uniform": 0.38}
MET_OF = (0.5, 0.2, 0.1, 0.05, 0.02)
"""How often a constraint was met, of these, over TPC-H. Of others it says nothing."""
Lines = Sequence[Mapping[str, Any]]


def says(query: str) -> str:
    """What is told of a query, by itself or by its kind."""
    if query in SAYS:
        return SAYS[query]
    return "paths much below both" if query in PARTLY else "paths as one pace and leaves"


def beside(lines: Lines) -> list[dict[str, Any]]:
    """Figure 3.5: by query, at the constraint that the thesis has, what paths add to the CPU of one
    run as a share of what others add, and latencies. None where another approach adds nothing."""
    found = []
    for query in dict.fromkeys(line["query"] for line in lines):
        own = [line for line in lines if line["query"] == query]
        wanted = INSTEAD.get(query, FIGURE_3_5)
        constraint = min((o["constraint"] for o in own), key=lambda share: abs(share - wanted))
        by_name = {o["approach"]: o for o in own if o["constraint"] == constraint}
        ours = by_name.get("paths")
        if ours is not None:
            shares = {
                name: _share(ours, other) for name, other in by_name.items() if other is not ours
            }
            latencies = {name: line["latency_ratio"] for name, line in by_name.items()}
            told = {"query": query, "constraint": constraint, "shares": shares}
            thesis = {"thesis_shares": SHARES.get(query, {}), "thesis": says(query)}
            found.append(told | {"latency_ratios": latencies} | thesis)
    return found


def _share(ours: Mapping[str, Any], other: Mapping[str, Any]) -> float | None:
    if not other["runs"]:
        return None
    more = float(other["additional_cpu_seconds"])
    return float(ours["additional_cpu_seconds"]) / more if more > 0 else None


def met(lines: Lines) -> Iterator[dict[str, Any]]:
    """By approach, how often the last run took no more than its constraint, where that asks for
    anything; and which constraints these were, here and in the thesis."""
    for approach in dict.fromkeys(line["approach"] for line in lines):
        own = [o for o in lines if o["approach"] == approach and o["constraint"] < 1]
        if own:
            kept = sum(o["latency_ratio"] <= o["constraint"] for o in own)
            constraints = sorted({o["constraint"] for o in own}, reverse=True)
            told = {"approach": approach, "asked": len(own), "met": kept}
            thesis = {"thesis": MET.get(approach), "thesis_constraints": list(MET_OF)}
            yield told | {"constraints": constraints} | thesis


def thrift(lines: Lines) -> Iterator[dict[str, Any]]:
    """Figure 3.7: by constraint and approach, by how many seconds results come sooner for each
    second of additional CPU time, the mean over the queries of which anything is run early."""
    for constraint in dict.fromkeys(line["constraint"] for line in lines):
        for approach in dict.fromkeys(line["approach"] for line in lines):
            found = [
                (o["batch_latency_seconds"] - o["latency_seconds"]) / o["additional_cpu_seconds"]
                for o in lines
                if (o["constraint"], o["approach"]) == (constraint, approach)
                and o["runs"]
                and o["additional_cpu_seconds"] > 0
            ]
            if found:
                told = {"constraint": constraint, "approach": approach, "queries": len(found)}
                yield told | {"seconds_per_cpu_second": mean(found)}
