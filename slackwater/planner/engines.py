"""Which runs there are and on which engine each goes, decided with everything else (001, 2.3).

A run is one statement on one engine, and saves files that either engine reads. So the engines of
the runs meet in what is saved and loaded: a large first run may pay on one, and change what is
worth keeping for a small last run on the other.

    cost(engines) = the cheapest plan whose run τ takes what engine(τ) takes
                    + Σ price(τ) · statement(engine(τ)) over the runs that do anything

Given a plan, each run has an engine that it costs least on; given the engines, there is a cheapest
plan. These take turns, from every engine for all runs, as long as it gets cheaper. Then each early
run is tried without: where it saves less than a statement costs, there is none. What was found on
the way is compared with what else a layout spares, given these engines (`planner/layout.py`): two
runs on Spark may spread for each other what two engines could not.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace

from slackwater.algebra.relation import Relation
from slackwater.errors import UserError
from slackwater.planner.choice import ENGINES
from slackwater.planner.costs import Seconds
from slackwater.planner.placement import not_local
from slackwater.planner.states import Solution, solved
from slackwater.planner.temporal import CLEARLY, IDLE, ByEngine, Graph, Key
from slackwater.planner.timeline import Costs, Timed, Timeline
from slackwater.stats.cost import KINDS, Model


@dataclass(frozen=True)
class Engine:
    """Where runs may go, what work costs there, and what each statement does before any work."""

    name: str
    costs: Costs
    statement: float


def possible(names: Collection[str], model: Model, query: Relation) -> list[Engine]:
    """Of some engines those that can compute a query, by the prices of a model."""
    if unknown := set(names) - set(ENGINES):
        raise UserError(
            f"Engine '{min(unknown)}' is not known.",
            code="BAD_ENGINE",
            hint=f"Existing: {', '.join(ENGINES)}.",
        )
    blocker = not_local(query)
    if blocker is not None and "spark" not in names:
        raise UserError(
            f"This cannot run on the local engine: {blocker}.",
            code="NOT_PORTABLE",
            hint="Let Spark be one of the engines.",
        )
    steps = KINDS.index("steps")
    return [
        Engine(name, Seconds(model, name), model.prices[name, "cpu"][steps])
        for name in names
        if name == "spark" or blocker is None
    ]


Relief = Callable[[Solution, tuple[str, ...]], Sequence[float]]
"""By run, the seconds that a plan spares when it is laid out on some engines."""


@dataclass(frozen=True)
class Start:
    """Where the search may begin, too: the engines of runs, and what is kept in which."""

    names: tuple[str, ...]
    kept: tuple[tuple[Timed, int], ...]


@dataclass(frozen=True)
class Placed:
    """A plan, where each of its runs goes, and what that costs altogether."""

    solution: Solution
    cost: float  # weighted
    by_run: tuple[float, ...]
    names: tuple[str, ...]
    """The engine of each run; empty where it does nothing."""


def unplaced(solution: Solution) -> Placed:
    """A plan as it is, wherever its runs go."""
    nowhere = ("",) * len(solution.graph.where)
    return Placed(solution, solution.cost, tuple(solution.by_run()), nowhere)


def placed(
    timeline: Timeline,
    engines: Sequence[Engine],
    wanted: dict[int, Timed],
    relief: Relief | None = None,
    start: Start | None = None,
) -> Placed:
    """The cheapest plan for some relations, each wanted in a run, over all runs and engines, less
    what its layout spares."""
    kept = () if start is None else start.kept
    every = [*wanted.values(), *(timed for timed, _ in kept)]
    asked = {*wanted, *(run for _, run in kept)}
    graph = Graph(timeline, [e.costs for e in engines], every, asked)
    keys = tuple((graph.numbers[timed], run) for run, timed in wanted.items())
    placing = _Placing(graph, keys, engines)
    best = placing.best()
    if start is not None:
        also = tuple((graph.numbers[timed], run) for timed, run in kept)
        best = placing.from_start(best, start.names, also)
    return best if relief is None else placing.laid_out(best, relief)


class _Placing:
    def __init__(self, graph: Graph, wanted: tuple[Key, ...], engines: Sequence[Engine]) -> None:
        self._graph = graph
        self._wanted = wanted
        self._engines = engines
        self._found: dict[tuple[int, ...], Placed] = {}

    def best(self) -> Placed:
        """From every engine for all runs."""
        runs = self._graph.problem.points
        settled = [self._settled((n,) * len(runs)) for n in range(len(self._engines))]
        best = settled[0]
        for other in settled[1:]:
            best = other if other.cost < best.cost * CLEARLY else best
        due = {run for _, run in self._wanted}
        for run in (r for r in runs if r not in due):
            best = self._without(best, run)
        return best

    def from_start(self, best: Placed, names: Sequence[str], kept: tuple[Key, ...]) -> Placed:
        """The same, or what comes of a plan with these engines that keeps these relations."""
        numbers = {engine.name: n for n, engine in enumerate(self._engines)}
        where = tuple(numbers.get(name, IDLE) for name in names)
        begun = self._charged(solved(self._graph.on(where), self._wanted, kept))
        if where not in self._found or begun.cost < self._found[where].cost:
            self._found[where] = begun
        other = self._settled(where)
        return other if other.cost < best.cost * CLEARLY else best

    def laid_out(self, best: Placed, relief: Relief) -> Placed:
        """Of all that was found, the best with what its layout spares."""
        every = [best, *(one for one in self._found.values() if one is not best)]
        laid = [self._relieved(one, relief(one.solution, one.names)) for one in every]
        best = laid[0]
        for other in laid[1:]:
            best = other if other.cost < best.cost * CLEARLY else best
        return best

    def _relieved(self, one: Placed, spared: Sequence[float]) -> Placed:
        cost = one.cost - sum(w * s for w, s in zip(self._graph.weights, spared, strict=True))
        by_run = tuple(was - s for was, s in zip(one.by_run, spared, strict=True))
        return replace(one, cost=cost, by_run=by_run)

    def _settled(self, where: tuple[int, ...]) -> Placed:
        """Plans and engines in turn, as long as it gets cheaper."""
        best = self._at(where)
        while True:
            other = self._at(self._cheapest(best.solution))
            if other.cost >= best.cost * CLEARLY:
                return best
            best = other

    def _without(self, best: Placed, run: int) -> Placed:
        """The same with nothing done in a run, if that is cheaper."""
        if not best.names[run]:
            return best
        where = list(best.solution.graph.where)
        where[run] = IDLE
        other = self._at(tuple(where))
        return other if other.cost < best.cost * CLEARLY else best

    def _at(self, where: tuple[int, ...]) -> Placed:
        if where not in self._found:
            solution = solved(self._graph.on(where), self._wanted)
            self._found[where] = self._charged(solution)
        return self._found[where]

    def _charged(self, solution: Solution) -> Placed:
        """With a statement for each run that does anything."""
        graph, cost, by_run = solution.graph, solution.cost, solution.by_run()
        names = [""] * len(graph.where)
        for run in {run for (_, run) in solution.steps()}:
            engine = self._engines[graph.where[run]]
            names[run] = engine.name
            by_run[run] += engine.statement
            cost += graph.weights[run] * engine.statement
        return Placed(solution, cost, tuple(by_run), tuple(names))

    def _cheapest(self, solution: Solution) -> tuple[int, ...]:
        """For each run of a plan, the engine that it costs least on; runs without work stay."""
        graph, steps = solution.graph, solution.steps()
        spent = {run: [e.statement for e in self._engines] for _, run in steps}
        for (i, run), step in steps.items():
            if step.saved_at is not None:
                _add(spent[run], graph.loads[i])
                _add(spent[step.saved_at], graph.saves[i])
            elif step.way is not None:
                _add(spent[run], step.way.costs)
            elif step.existing is not None:
                _add(spent[run], graph.loads[i])
            else:
                _add(spent[run], graph.reads[i])
        return tuple(
            spent[run].index(min(spent[run])) if run in spent else was
            for run, was in enumerate(graph.where)
        )


def _add(spent: list[float], costs: ByEngine) -> None:
    for n in range(len(spent)):
        spent[n] += costs[n]
