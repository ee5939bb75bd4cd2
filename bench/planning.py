"""`slackwater bench planning`: how long it takes to plan, over all TPC-DS queries that bind, and
what is explored for it (001, 8.3)."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from math import inf
from multiprocessing import get_context
from typing import Any, TypeVar

from bench.problems import Bound, bound_queries, problem
from slackwater.planner.costs import Seconds
from slackwater.planner.plan import METHODS, Plan, Speedups, assign, plan
from slackwater.planner.problem import Arrival, Problem
from slackwater.planner.timeline import Timed, Timeline
from slackwater.stats.cost import Model
from slackwater.tvr.explore import FOLLOWING
from slackwater.tvr.memo import Member, Memo, Tvr

OnStage = Callable[[str, int, int], None]
SHOWN = ("q10", "q40")
"""Queries of which a plan of each method is taken out of the memo."""
SAME = 1e-6
"""Costs that differ by less are equal."""
FIGURES = ("explored_seconds", "seconds")
FIRST = 3
"""Points of such a plan, at most."""


@dataclass(frozen=True)
class Settings:
    """What to measure."""

    queries: tuple[str, ...] = ()
    """All that bind when there are none."""
    points: int = 3
    compared: tuple[int, ...] = ()
    """Other numbers of points, each planned in the same run."""
    pattern: str = "delta-RS"
    scenario: str = "pdw"
    methods: tuple[str, ...] = METHODS
    speedups: Speedups = field(default_factory=Speedups)
    keys: bool = False
    """Rely on the keys and references of TPC-DS; the paper does not."""
    full_search: float = 0.0
    """Seconds for the search without any speed-up, of which is told what they lose; 0: none."""
    each_off: float = 0.0
    """Seconds for the search without one of the speed-ups, for each in turn; 0: none."""


def run(settings: Settings, on_stage: OnStage | None = None) -> dict[str, Any]:
    """Plan each query, and tell how long that took."""
    with bound_queries(settings.keys) as bound:
        chosen = {n: q for n, q in bound.items() if n in (settings.queries or bound)}
        lines, fired, extracted = [], Counter[str](), {}
        for i, (name, query) in enumerate(chosen.items()):
            if on_stage is not None:
                on_stage(name, i, len(chosen))
            begun = time.perf_counter()
            made = _planned(query, settings)
            line = _line(name, made, time.perf_counter() - begun)
            line |= _lost(made, settings.full_search)
            line |= _compared(query, settings)
            lines.append(line | _each_off(name, query, settings))
            for memo in made.memos:
                fired += memo.fired
            if name in SHOWN:
                extracted[name] = plans_by_method(made)
    return {
        "points": settings.points,
        "queries": lines,
        "fired": dict(fired.most_common()),
        "extracted": extracted,
        "speedups": speedups_of(lines),
        "compared": list(compared(lines, settings)),
    }


def _planned(query: Bound, settings: Settings) -> Plan:
    prices = (*(0.3 for _ in range(settings.points - 1)), 1.0)
    stated = problem(query, settings.pattern, prices, settings.scenario)
    return plan(stated, methods=settings.methods, speedups=settings.speedups)


def _line(name: str, made: Plan, seconds: float) -> dict[str, Any]:
    groups = [group for memo in made.memos for group in memo.groups()]
    return {
        "query": name,
        "seconds": seconds,
        "explored_seconds": made.explored_seconds,
        "assigned_seconds": made.assigned_seconds,
        "groups": len(groups),
        "expressions": sum(len(group.members) for group in groups),
        "rules_fired": sum(memo.fired.total() for memo in made.memos),
        "cost": made.cost,
        "methods": sorted(made.methods()),
    }


# -- more points


def _compared(query: Bound, settings: Settings) -> dict[str, Any]:
    """By another number of points, how long planning took with it."""
    found = {}
    for points in settings.compared:
        begun = time.perf_counter()
        made = _planned(query, replace(settings, points=points))
        seconds = time.perf_counter() - begun
        explored = {"explored_seconds": made.explored_seconds}
        found[str(points)] = {"seconds": seconds, "cost": made.cost} | explored
    return {"at_points": found} if found else {}


def compared(lines: Sequence[dict[str, Any]], settings: Settings) -> Iterator[dict[str, Any]]:
    """By number of points, over all queries: exploring and planning, and as multiples of what they
    take with the first number."""
    first = {figure: sum(line[figure] for line in lines) for figure in FIGURES}
    for points in (settings.points, *settings.compared) if settings.compared and lines else ():
        others = [
            line if points == settings.points else line["at_points"][str(points)] for line in lines
        ]
        told = {figure: sum(own[figure] for own in others) for figure in FIGURES}
        ratios = {f"{figure}_ratio": told[figure] / first[figure] for figure in FIGURES}
        yield {"points": points, **told, **ratios}


# -- what the speed-ups lose

EVERYTHING = Speedups(pruned=False, symmetric=False, left_deep=False, prompt=False)


def _lost(made: Plan, seconds: float) -> dict[str, Any]:
    """By which factor a plan costs more than what the search finds that leaves nothing out; None
    where that does not end in time."""
    if not seconds:
        return {}
    found = _in_time(lambda: plan(made.problem, speedups=EVERYTHING).cost, seconds)
    return {"full_search": found, "lost": None if found is None else made.cost / found - 1}


T = TypeVar("T")


def _in_time(work: Callable[[], T], seconds: float) -> T | None:
    """What some work gives, in a process of its own that can be ended."""
    context = get_context("fork")
    receiving, sending = context.Pipe(duplex=False)
    process = context.Process(target=lambda: sending.send(work()))
    process.start()
    found: T | None = receiving.recv() if receiving.poll(seconds) else None
    process.terminate()
    process.join()
    return found


# -- what each speed-up by itself brings, and loses

OFF = {
    "pruning": {"pruned": False},
    "symmetry": {"symmetric": False},
    "left-deep merges": {"left_deep": False},
    "prompt work": {"prompt": False},
}


def _each_off(name: str, query: Bound, settings: Settings) -> dict[str, Any]:
    """The same with one speed-up less, for each: what was found, or None where that did not end in
    time."""
    if not settings.each_off:
        return {}

    def work(speedups: Speedups) -> dict[str, Any]:
        begun = time.perf_counter()
        made = _planned(query, replace(settings, speedups=speedups))
        return _line(name, made, time.perf_counter() - begun)

    found = {"none": _in_time(partial(work, settings.speedups), settings.each_off)}
    for what, off in OFF.items():
        less = partial(work, replace(settings.speedups, **off))
        found[what] = _in_time(less, settings.each_off)
    return {"without": found}


def speedups_of(lines: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """By what is switched off: over the queries for which that search ended in time, as multiples
    of what it is with all of them; by how much plans are dearer with it, and where it is most."""
    told = []
    for what in OFF if lines and "without" in lines[0] else ():
        both = [(line["without"]["none"], line["without"][what]) for line in lines]
        ended = [(fast, slow) for fast, slow in both if fast is not None and slow is not None]
        entry: dict[str, Any] = {"off": what, "queries": len(lines), "ended": len(ended)}
        for figure in ("seconds", "groups", "expressions", "rules_fired"):
            with_it, without = (sum(pair[i][figure] for pair in ended) for i in (0, 1))
            entry[figure] = without
            entry[f"{figure}_ratio"] = without / with_it if with_it else None
        lost = {slow["query"]: fast["cost"] / slow["cost"] - 1 for fast, slow in ended}
        worst = max(lost, key=lambda query: lost[query], default=None)
        entry["dearer"] = sum(share > SAME for share in lost.values())
        entry["cheaper"] = sum(share < -SAME for share in lost.values())
        entry["most_lost"] = max(0.0, lost[worst]) if worst else None
        entry["worst"] = worst
        told.append(entry)
    return told


# -- plans of each method, out of the memo of all


class Only(Seconds):
    """Costs by which whatever a method has a way for, after the first point, is computed by it."""

    def __init__(self, method: str, memo: Memo) -> None:
        super().__init__(Model())
        self._method = method
        self._own: dict[Tvr, set[str]] = {}
        for group in memo.groups():
            trait, members = group.ref.trait, group.members
            if trait.wanted is None and any(m.method == method for m in members):
                self._own.setdefault(group.ref.tvr, set()).add(trait.kind)

    def member(self, timed: Timed, member: Member, timeline: Timeline) -> float:
        tvr, trait = timed.ref.tvr, timed.ref.trait
        if member.method in METHODS and member.method != self._method:
            return inf
        if tvr in self._own and trait.wanted is None and timed.point:
            turned = trait.kind not in self._own[tvr] and all(r.tvr is tvr for r in member.refs)
            if member.method != self._method and not turned:
                return inf
        return super().member(timed, member, timeline)


def plans_by_method(made: Plan) -> dict[str, int]:
    """By method, how many steps of the plan that is taken out of the memo for it are its own; the
    others are those that no method needs. As in maintenance, a result is due at each of the first
    points."""
    asked = made.problem
    kept = Problem(
        asked.query,
        {n: Arrival(a.rows, a.changes[: FIRST - 1]) for n, a in asked.arrivals.items()},
        asked.prices[:FIRST],
        due=frozenset(asked.points[:FIRST]),
        last_first=True,
        known=asked.known,
    )
    found = {}
    for method in METHODS:
        solution = assign(Timeline(made.memo, kept), Only(method, made.memo))
        assert solution.methods() <= {"recompute", FOLLOWING, method}
        ways = (step.way for step in solution.steps().values())
        found[method] = sum(way is not None and way.member.method == method for way in ways)
    return found
