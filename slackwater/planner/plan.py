"""From a planning problem to a plan: explore, assign times, choose what to keep (001).

    plan(Problem(query, arrivals, prices=(0.3, 1.0)))

Nothing is run. The plan says for each run what is computed, by which rule, and what is kept.
"""

from __future__ import annotations

import gc
import time
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

from slackwater.algebra.explain import describe
from slackwater.collecting import held_off
from slackwater.errors import UserError
from slackwater.planner.costs import Seconds
from slackwater.planner.engines import Relief, placed, possible, unplaced
from slackwater.planner.existing import Existing
from slackwater.planner.layout import laid_out, spared
from slackwater.planner.places import Meeting
from slackwater.planner.problem import Problem
from slackwater.planner.runs import RunSteps, lacking, unfold
from slackwater.planner.states import Solution, solve
from slackwater.planner.temporal import Key, Step
from slackwater.planner.timeline import Costs, Timed, Timeline
from slackwater.stats.cost import Model
from slackwater.tvr import below_joins, explore
from slackwater.tvr.memo import ROWS, Memo, Rewrite, Rule, always
from slackwater.tvr.methods import higher_order, im2, ojv, promised, spine

OTHER_TIME = "it is as of no time point of the problem"
LACKS_COLUMNS = "it lacks columns that would be read"
NOT_FOUND = "no way to compute the query meets it"
DEARER = "other ways cost less"
"""Why what exists is not loaded."""

METHODS = ("im1", "im2", "ojv", "higher_order")
"""Methods that can be left out; recomputing cannot."""
_RULES = (*explore.RULES, *below_joins.RULES, *promised.RULES, *im2.RULES, *ojv.RULES)
_REWRITES = (*im2.REWRITES, *higher_order.REWRITES, *spine.REWRITES)


def rules_of(
    methods: Collection[str], without: Collection[str] = ()
) -> tuple[list[Rule], list[Rewrite]]:
    """The rules of some methods, and those that belong to none, but for some by their names."""
    if unknown := set(methods) - set(METHODS):
        raise UserError(
            f"Method '{min(unknown)}' is not known.",
            code="BAD_METHOD",
            hint=f"Existing: {', '.join(METHODS)}.",
        )
    if unknown := set(without) - {*(r.name for r in _RULES), *(r.name for r in _REWRITES)}:
        raise UserError(
            f"Rule '{min(unknown)}' is not known.",
            code="BAD_RULE",
            hint="Rules are counted by name in the memo of a plan: plan(problem).memo.fired.",
        )
    allowed = {"", "recompute", *methods}

    def asked(one: Rule | Rewrite) -> bool:
        return one.method in allowed and one.name not in without

    return [*filter(asked, _RULES)], [*filter(asked, _REWRITES)]


@dataclass(frozen=True)
class Plan:
    """What is to be done in each run, and how it was found."""

    problem: Problem
    memos: tuple[Memo, ...]  # one for all intervals, or one for each
    solution: Solution
    by_run: tuple[float, ...]  # what each run costs, whatever its price
    engines: tuple[str, ...]  # of each run; empty where it does nothing, or if nobody asked
    explored_seconds: float
    assigned_seconds: float
    layout: bool = True  # is Spark told how rows meet, and how to lay out what is saved?
    lacking: frozenset[str] = frozenset()  # what exists without columns that would be read

    @cached_property
    def runs(self) -> tuple[RunSteps, ...]:
        """What each run does, as algebra."""
        unfolded = unfold(self.solution)
        if not self.layout:
            return tuple(unfolded)
        return laid_out(unfolded, _sized(self.problem, self.solution), self.engines)

    @cached_property
    def loaded(self) -> Mapping[str, tuple[int, ...]]:
        """What existed and is read, each with the runs that do so."""
        found: dict[str, set[int]] = {}
        for (_, run), step in self.solution.steps().items():
            if step.existing is not None:
                found.setdefault(step.existing.name, set()).add(run)
        return {name: tuple(sorted(runs)) for name, runs in found.items()}

    @cached_property
    def not_loaded(self) -> Mapping[str, str]:
        """What exists and is not read, each with the reason."""
        return {
            one.name: self._why_not(one)
            for one in self.problem.existing
            if one.name not in self.loaded
        }

    def _why_not(self, one: Existing) -> str:
        if one.at is None:
            return OTHER_TIME
        if one.name in self.lacking:
            return LACKS_COLUMNS
        known = {each.name for each in self.solution.graph.existing.values()}
        return DEARER if one.name in known else NOT_FOUND

    @property
    def memo(self) -> Memo:
        """What was explored."""
        return self.memos[0]

    @property
    def cost(self) -> float:
        """What counts: the weighted cost, or that of the last run."""
        if self.problem.last_first:
            return self.by_run[-1]
        return sum(p * cost for p, cost in zip(self.problem.prices, self.by_run, strict=True))

    def steps(self) -> Iterator[tuple[int, str, Step]]:
        """By run, what is there and how it came about: computed in this run, or loaded."""
        for (i, run), step in sorted(self.solution.steps().items(), key=lambda s: (s[0][1], s[0])):
            yield run, self._described((i, run)), step

    def methods(self) -> frozenset[str]:
        """The methods that the plan takes from."""
        return self.solution.methods()

    def _described(self, key: Key) -> str:
        timed = self.solution.graph.nodes[key[0]]
        trait = timed.ref.trait
        only = " of changed keys" if trait.wanted is not None else ""
        return f"{trait.kind}{only} of {describe(timed.ref.tvr.node)} at {timed.point}"

    def text(self) -> str:
        """For people."""
        lines = [f"Expected: {self.cost:.6g}"]
        kept = set(self.solution.kept)
        for run in self.problem.points:
            where = f" on {self.engines[run]}" if self.engines[run] else ""
            lines.append(f"Run {run}{where}, price {self.problem.prices[run]:g}:")
            for (i, at), step in self.solution.steps().items():
                if at == run:
                    mark = " (kept)" if (i, at) in kept else ""
                    lines.append(f"  {_how(step)}: {self._described((i, at))}{mark}")
            lines += physical(self.runs[run])
        lines += [f"Not loaded: {name}, since {why}" for name, why in self.not_loaded.items()]
        return "\n".join(lines)

    def to_json(self) -> dict[str, Any]:
        """For programs."""
        kept = set(self.solution.kept)
        steps = self.solution.steps().items()
        runs = [
            {
                "run": run,
                "price": self.problem.prices[run],
                "engine": self.engines[run],
                "expected": self.by_run[run],
                "steps": [
                    {"how": _how(step), "what": self._described(key), "kept": key in kept}
                    for key, step in steps
                    if key[1] == run
                ],
            }
            for run in self.problem.points
        ]
        loaded = {name: list(own) for name, own in self.loaded.items()}
        told = {"loaded": loaded, "not_loaded": dict(self.not_loaded)}
        return {"expected": self.cost, "runs": runs, **told}


def physical(run: RunSteps) -> Iterator[str]:
    """How the sides of a run's joins meet, and what it saves spread by columns."""
    joins = {
        node
        for relation in (*(s.relation for s in run.saves), run.result)
        for node in (() if relation is None else relation.walk())
        if isinstance(node, Meeting)
    }
    counts = Counter(join.meets for join in joins)
    if counts:
        told = ", ".join(f"{meets} ({n})" for meets, n in sorted(counts.items()))
        yield f"  joins: {told}"
    for saved in run.saves:
        if saved.by:
            names = ", ".join(saved.labels.get(name, name) for name in saved.by)
            yield f"  saved by {names}, in {saved.pieces} pieces: {describe(saved.relation)}"


def _how(step: Step) -> str:
    if step.saved_at is not None:
        return f"load from run {step.saved_at}"
    if step.existing is not None:
        return f"load {step.existing.name}, which exists"
    return "read" if step.way is None else step.way.member.rule


@dataclass(frozen=True)
class Speedups:
    """What makes exploration faster (001, 5.3)."""

    pruned: bool = True  # without ways that seldom pay
    symmetric: bool = True  # what holds between two points holds between all
    left_deep: bool = True  # changes are merged one after the other
    prompt: bool = True  # work waits only for a result, or for a run where it costs less


FAST = Speedups()


def plan(
    problem: Problem,
    model: Model | None = None,
    methods: Collection[str] = METHODS,
    costs: Costs | None = None,
    more: Iterable[Rule | Rewrite] = (),
    speedups: Speedups = FAST,
    engines: Collection[str] = (),
    layout: bool = True,
    without: Collection[str] = (),
) -> Plan:
    """The cheapest plan for a problem, by CPU seconds unless other costs are given, from some
    methods and whatever rules are added to them, `without` some rules by their names. Of several
    `engines` ('local', 'spark') each run gets the one that makes the whole cheapest; runs that save
    less than a statement costs are left out then. With `layout`, runs on Spark are told how the
    sides of joins meet, and what they save may be spread by the columns that later runs join by."""
    if costs is not None and engines:
        raise UserError(
            "Engines have their own costs, and others were given.",
            code="BAD_PROBLEM",
            hint="Give costs or engines, not both; a model may have other prices.",
        )
    rules, rewrites = rules_of(methods, without)
    for rule in more:
        (rules if isinstance(rule, Rule) else rewrites).append(rule)  # type: ignore[arg-type]
    with _no_garbage():
        relief = partial(_spared, problem) if layout else None
        made = _planned(
            problem, model or Model(), rules, rewrites, costs, speedups, engines, relief
        )
    return made if layout else replace(made, layout=False)


@contextmanager
def _no_garbage() -> Iterator[None]:
    """What planning makes is in use until it is done. To look through all of it for garbage, again
    and again, would take a third of its time, and once a tenth: afterwards it counts as old."""
    with held_off():
        try:
            yield
        finally:
            if not gc.get_freeze_count():  # what others set aside stays there
                gc.freeze()
                gc.unfreeze()


def _planned(
    problem: Problem,
    model: Model,
    rules: Sequence[Rule],
    rewrites: Sequence[Rewrite],
    costs: Costs | None,
    speedups: Speedups,
    engines: Collection[str],
    relief: Relief | None,
) -> Plan:
    begun = time.perf_counter()

    first, memos = explored(problem, rules, rewrites, speedups)
    done = time.perf_counter()
    ignored: frozenset[str] = frozenset()
    while True:
        timeline = Timeline(
            first, problem, speedups.left_deep, speedups.prompt, memos, ignored=ignored
        )
        if engines:
            able = possible(engines, model, problem.query)
            found = placed(timeline, able, _wanted(timeline), relief)
        else:
            found = unplaced(assign(timeline, costs or Seconds(model)))
        without = _lacking(found.solution)
        if not without:
            break
        ignored |= without
    ended = time.perf_counter()
    every = tuple(memos.values()) or (first,)
    return Plan(
        problem,
        every,
        found.solution,
        found.by_run,
        found.names,
        done - begun,
        ended - done,
        lacking=ignored,
    )


def explored(
    problem: Problem,
    rules: Collection[Rule],
    rewrites: Collection[Rewrite],
    speedups: Speedups = FAST,
) -> tuple[Memo, dict[tuple[int, int], Memo]]:
    """Everything that some rules give for a problem; without symmetry, for each interval by
    itself."""

    def memo() -> Memo:
        promise = problem.shrinks if speedups.pruned else always
        made = Memo(problem.changed, rules, rewrites, speedups.pruned, problem.relied_on, promise)
        made.explore([made.ref(problem.query, ROWS), made.ref(problem.query, ROWS, old=True)])
        return made

    first = memo()
    if speedups.symmetric:
        return first, {}
    intervals = _intervals(problem, speedups)
    return first, {interval: memo() if n else first for n, interval in enumerate(intervals)}


def _spared(problem: Problem, solution: Solution, engines: tuple[str, ...]) -> list[float]:
    """What a layout of a plan's runs spares in each of them."""
    if engines.count("spark") < 2:  # nobody to spread rows for
        return [0.0] * len(engines)
    return spared(unfold(solution), _sized(problem, solution), engines)


def _sized(problem: Problem, solution: Solution) -> Problem:
    """The same, with the rows of what exists as they are expected where nobody counted."""
    return replace(problem, existing=tuple(solution.graph.existing.values()))


def _lacking(solution: Solution) -> frozenset[str]:
    """What a plan loads without columns that it reads."""
    if all(one.is_whole for one in solution.graph.existing.values()):
        return frozenset()
    return lacking(unfold(solution))


def assign(timeline: Timeline, costs: Costs) -> Solution:
    """The cheapest way to the results of a problem, from what was explored."""
    return solve(timeline, costs, _wanted(timeline))


def _wanted(timeline: Timeline) -> dict[int, Timed]:
    """The results of a problem, by the runs in which they are due."""
    problem = timeline.problem
    result = timeline.memo.ref(problem.query, ROWS)
    return {p: timeline.timed(result, max(0, p - 1), p) for p in problem.results}


def _intervals(problem: Problem, speedups: Speedups) -> list[tuple[int, int]]:
    """From each point to the next, or to all later ones."""
    return [
        (start, end)
        for start in problem.points
        for end in problem.points[start + 1 :]
        if end == start + 1 or not speedups.left_deep
    ]
