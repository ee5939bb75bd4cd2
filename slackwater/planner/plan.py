"""From a planning problem to a plan: explore, assign times, choose what to keep (001).

    plan(Problem(query, arrivals, prices=(0.3, 1.0)))

Nothing is run. The plan says for each run what is computed, by which rule, and what is kept.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from slackwater.algebra.explain import describe
from slackwater.errors import UserError
from slackwater.planner.existing import Existing
from slackwater.planner.layout import laid_out
from slackwater.planner.places import Meeting
from slackwater.planner.problem import Problem
from slackwater.planner.runs import RunSteps, unfold
from slackwater.planner.search import FAST as FAST
from slackwater.planner.search import METHODS as METHODS
from slackwater.planner.search import Before, Found, Means, search, sized
from slackwater.planner.search import Speedups as Speedups
from slackwater.planner.search import assign as assign
from slackwater.planner.search import explored as explored
from slackwater.planner.search import rules_of as rules_of
from slackwater.planner.states import Solution
from slackwater.planner.temporal import Key, Step
from slackwater.planner.timeline import Costs
from slackwater.stats.cost import Model
from slackwater.tvr.memo import Memo, Rewrite, Rule

OTHER_TIME = "it is as of no time point of the problem"
LACKS_COLUMNS = "it lacks columns that would be read"
NOT_FOUND = "no way to compute the query meets it"
DEARER = "other ways cost less"
"""Why what exists is not loaded."""


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
    means: Means = field(default_factory=Means)

    @cached_property
    def runs(self) -> tuple[RunSteps, ...]:
        """What each run does, as algebra."""
        unfolded = unfold(self.solution)
        if not self.layout:
            return tuple(unfolded)
        return laid_out(unfolded, sized(self.problem, self.solution), self.engines)

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
    """The cheapest plan for a problem, by CPU seconds of its own model unless another one or other
    costs are given, from some methods and whatever rules are added to them, `without` some rules by
    their names. Of several `engines` ('local', 'spark') each run gets the one that makes the whole
    cheapest; runs that save less than a statement costs are left out then. With `layout`, runs on
    Spark are told how the sides of joins meet, and what they save may be spread by the columns that
    later runs join by."""
    if costs is not None and engines:
        raise UserError(
            "Engines have their own costs, and others were given.",
            code="BAD_PROBLEM",
            hint="Give costs or engines, not both; a model may have other prices.",
        )
    rules, rewrites = rules_of(methods, without)
    for rule in more:
        (rules if isinstance(rule, Rule) else rewrites).append(rule)  # type: ignore[arg-type]
    means = Means(model, rules, rewrites, costs, speedups, engines, layout)
    return _made(problem, means, search(problem, means))


def replan(problem: Problem, before: Plan) -> Plan:
    """The cheapest plan for a problem that another plan was made for, with other sizes, or with
    runs that have happened since. What was explored for that is taken again where it holds, and
    what that plan would do in the runs that are left is the least that is found."""
    earlier = Before(before.memos, before.solution, before.engines)
    return _made(problem, before.means, search(problem, before.means, earlier))


def _made(problem: Problem, means: Means, found: Found) -> Plan:
    placed = found.placed
    return Plan(
        problem,
        found.memos,
        placed.solution,
        placed.by_run,
        placed.names,
        found.explored_seconds,
        found.assigned_seconds,
        means.layout,
        found.lacking,
        means,
    )
