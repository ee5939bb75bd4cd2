"""Samples as figures: medians per query, ratios to the baselines, and what is to be reached.

A ratio is the baseline's cost divided by ours: above one, the refresh is cheaper.
"""

from __future__ import annotations

import dataclasses
import os
import platform
from collections.abc import Iterable, Iterator, Sequence
from statistics import median
from typing import Any

from bench.measure import Cost
from bench.refresh import METHODS, PLACEMENTS, Outcome, Sample
from bench.refreshed import refreshed

RATIOS = ("latency_ratio", "cpu_ratio", "local_latency_ratio", "local_cpu_ratio")
COSTS = tuple(f.name for f in dataclasses.fields(Cost))
QUERIES = 22

THESIS_JOBS = dict(enumerate(map(int, "1 1 1 1 2 1 3 2 3 1 2 1 2 1 1 3 1 1 1 1 2 2".split()), 1))
"""Spark jobs per refresh of each query in 002, table 5.1."""
THESIS_STAGES = dict(enumerate(map(int, "1 3 3 2 5 1 6 6 7 3 4 2 4 2 3 5 2 3 2 3 4 3".split()), 1))
MOST_EXECUTIONS = 3
LEAST_RATIO = 0.9


def report(outcome: Outcome) -> dict[str, Any]:
    """Everything that was measured, as plain data."""
    sizes = [_size(outcome, share) for share in outcome.settings.shares]
    chosen = next(size for size in sizes if size["change"] == outcome.settings.change)
    result = chosen | {"goals": list(_goals(outcome, chosen)), "settings": _settings(outcome)}
    return result | ({"sweep": sizes} if outcome.settings.sweep else {})


def is_exact(told: dict[str, Any]) -> bool:
    """Did every result of the report equal Spark's?"""
    return all(size["exact"] for size in [told, *told.get("sweep", [])])


def _size(outcome: Outcome, share: float) -> dict[str, Any]:
    """The figures of one change size."""
    samples = [s for s in outcome.samples if s.share == share]
    queries = [_query(name, samples) for name in outcome.settings.texts]
    return {
        "change": share,
        "exact": all(s.exact is not False for s in samples),
        "queries": queries,
        "medians": _over(queries, median),
        "medians_of_changed": _over(queries, median, changed_only=True),
        "lowest": _over(queries, min),
        "planning_share": {p: _planning_share(queries, p) for p in PLACEMENTS},
    } | refreshed(samples)


def _query(name: str, samples: Sequence[Sample]) -> dict[str, Any]:
    own = [s for s in samples if s.query == name]
    told: dict[str, Any] = {"query": name}
    for method in METHODS:
        told[method] = _method([s for s in own if s.method == method])
    for method in METHODS[1:]:
        told[method] |= _ratios(told[method], told["recompute_spark"], "")
    for method in PLACEMENTS:
        told[method] |= _ratios(told[method], told["recompute_local"], "local_")
    return told


def _method(samples: Sequence[Sample]) -> dict[str, Any]:
    """One query in one way: the median of each cost over the rounds, and the rounds."""
    costs = [s.cost for s in samples if s.cost is not None]
    last = samples[-1]
    told: dict[str, Any] = {n: _median(getattr(cost, n) for cost in costs) for n in COSTS}
    told |= {"rows": last.rows, "exact": _all_exact(samples), **last.details}
    shares = [s.details["planning_seconds"] / s.details["report_seconds"] for s in _done(samples)]
    told |= {"planning_share": median(shares)} if shares else {}
    if problems := list(dict.fromkeys(s.problem for s in samples if s.problem)):
        told["problems"] = problems
    return told | {"rounds": [dataclasses.asdict(cost) for cost in costs]}


def _done(samples: Sequence[Sample]) -> list[Sample]:
    """Those of refreshes that had something to do."""
    return [s for s in samples if s.details.get("mode", "none") != "none"]


def _planning_share(queries: Sequence[dict[str, Any]], placement: str) -> float | None:
    """The median over queries of what choosing a way takes of a refresh that has something to
    do."""
    return _median(q[placement].get("planning_share") for q in queries)


def _median(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return median(known) if known else None


def _all_exact(samples: Sequence[Sample]) -> bool | None:
    """None where nothing was computed."""
    known = [s.exact for s in samples if s.exact is not None]
    return all(known) if known else None


def _ratios(ours: dict[str, Any], base: dict[str, Any], prefix: str) -> dict[str, float | None]:
    return {
        f"{prefix}latency_ratio": _ratio(base["seconds"], ours["seconds"]),
        f"{prefix}cpu_ratio": _ratio(base["cpu_seconds"], ours["cpu_seconds"]),
    }


def _ratio(base: float | None, ours: float | None) -> float | None:
    return base / ours if base is not None and ours else None


def _over(
    queries: Sequence[dict[str, Any]], of: Any, changed_only: bool = False
) -> dict[str, dict[str, float | None]]:
    """A median or minimum of each ratio: over all queries, or without those that had nothing to
    do because the change did not touch their tables."""
    found: dict[str, dict[str, float | None]] = {}
    for placement in PLACEMENTS:
        told = [q[placement] for q in queries]
        told = [t for t in told if not changed_only or t.get("mode") != "none"]
        known = {ratio: [t[ratio] for t in told if t[ratio] is not None] for ratio in RATIOS}
        found[placement] = {
            ratio: of(values) if values else None for ratio, values in known.items()
        }
    return found


# -- what is to be reached


def _goals(outcome: Outcome, told: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The goals that are set for a run like this one: all queries, 1% change, SF 1 or 10."""
    settings = outcome.settings
    whole = len(settings.texts) == QUERIES and settings.change == 0.01
    if not whole or settings.scale not in (1, 10):
        return
    small = settings.scale == 1
    wanted = [("spark", "latency_ratio", 2 if small else 6)]
    wanted += [("spark", "cpu_ratio", 2 if small else 6)]
    wanted += [("auto", "latency_ratio", 10), ("auto", "cpu_ratio", 10)] if small else []
    wanted += [("auto", "local_latency_ratio", 1 if small else 3)]
    for placement, ratio, least in wanted:
        value = told["medians"][placement][ratio]
        yield _goal(f"{placement}: median {ratio}", value, least)
    for placement in PLACEMENTS:
        for ratio in RATIOS[:2]:
            value = told["lowest"][placement][ratio]
            yield _goal(f"{placement}: lowest {ratio}", value, LEAST_RATIO)
    most = max(q["spark"]["executions"] or 0 for q in told["queries"])
    what = "spark: most SQL executions of a refresh"
    yield {"what": what, "value": most, "most": MOST_EXECUTIONS, "met": most <= MOST_EXECUTIONS}


def _goal(what: str, value: float | None, least: float) -> dict[str, Any]:
    return {"what": what, "value": value, "least": least, "met": (value or 0) >= least}


def _settings(outcome: Outcome) -> dict[str, Any]:
    """How it was measured, and on what."""
    own = outcome.settings
    return {
        "sf": own.scale,
        "change": own.change,
        "change_mix": "half of the touched orders are inserted, half deleted, with their lineitems",
        "queries": list(own.texts),
        "repeat": own.repeat,
        "warm_up": own.warm_up,
        "seed": own.seed,
        "spark_master": own.spark_master,
        "cores": os.cpu_count(),
        "memory_bytes": os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"),
        "machine": platform.platform(),
        **outcome.facts,
    }
