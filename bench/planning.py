"""`slackwater bench planning`: how long it takes to plan, over all TPC-DS queries that bind."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from bench.problems import bound_queries, problem
from slackwater.algebra.relation import Relation
from slackwater.planner.plan import METHODS, plan

OnStage = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Settings:
    """What to measure."""

    queries: tuple[str, ...] = ()
    """All that bind when there are none."""
    points: int = 3
    pattern: str = "delta-RS"
    scenario: str = "pdw"
    methods: tuple[str, ...] = METHODS
    pruned: bool = True


def run(settings: Settings, on_stage: OnStage | None = None) -> dict[str, Any]:
    """Plan each query, and tell how long that took."""
    with bound_queries() as bound:
        chosen = {n: q for n, q in bound.items() if n in (settings.queries or bound)}
        lines = []
        for i, (name, query) in enumerate(chosen.items()):
            if on_stage is not None:
                on_stage(name, i, len(chosen))
            lines.append(_line(name, query, settings))
    return {"points": settings.points, "queries": lines}


def _line(name: str, query: Relation, settings: Settings) -> dict[str, Any]:
    prices = (*(0.3 for _ in range(settings.points - 1)), 1.0)
    begun = time.perf_counter()
    stated = problem(query, settings.pattern, prices, settings.scenario)
    made = plan(stated, methods=settings.methods, pruned=settings.pruned)
    seconds = time.perf_counter() - begun
    groups = made.memo.groups()
    return {
        "query": name,
        "seconds": seconds,
        "explored_seconds": made.explored_seconds,
        "assigned_seconds": made.assigned_seconds,
        "groups": len(groups),
        "expressions": sum(len(group.members) for group in groups),
        "rules_fired": made.memo.fired.total(),
        "by_rule": dict(made.memo.fired),
        "cost": made.cost,
        "methods": sorted(made.methods()),
    }
