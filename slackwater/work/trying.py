"""Every way to refresh a view, tried and measured; nothing is kept of it.

A way that needs states which are not there is tried, too: they are built before, as if that way had
been gone last time, and what that takes is not counted.

For the benchmark of choices: what was chosen stands beside what each way really costs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import inf
from statistics import median

from slackwater.catalog.model import CreateState, Run, Segment, State, View
from slackwater.planner.choice import FULL, HIGHER_ORDER, INCREMENTAL, PLAIN, Candidate
from slackwater.tvr.maintenance import Maintenance
from slackwater.tvr.time import CHANGE, OLD
from slackwater.work.choosing import MISSING, Choice, choose_way
from slackwater.work.house import House
from slackwater.work.interval import Interval
from slackwater.work.meaning import definition
from slackwater.work.upkeep import Parts, Upkeep, Upkept
from slackwater.work.world import Pending, World

HOPELESS = 5
"""Whatever takes so many times as long as another way the first time is not the cheapest."""


@dataclass(frozen=True)
class Tried:
    """One way, and what it took each time."""

    candidate: Candidate
    cpu: tuple[float, ...]
    seconds: tuple[float, ...]

    @property
    def is_possible(self) -> bool:
        """Could it be chosen, or were its states built only to try it?"""
        return not self.candidate.reasons


def try_ways(house: House, name: str, times: int) -> tuple[Choice, list[Tried]]:
    """What would be chosen for a view that is behind its tables, and what each way takes, by
    changes and in full, run so many times; once, if that shows that it is not the cheapest by
    far."""
    view = World(house, house.catalog.snapshot(), defining=True).view(name)
    with (
        house.lease(view.id) as lease,
        house.catalog.running("try", lease) as run,
        house.catalog.reading() as snapshot,
    ):
        trial = _Trial(World(house, snapshot, Pending(), defining=True), run, view)
        choice = trial.choice()
        possible = (c for c in choice.candidates if set(c.reasons) <= {MISSING})
        ways = sorted(possible, key=lambda c: c.cpu)
        tried: list[Tried] = []
        for way in ways:
            best = min((median(t.cpu) for t in tried), default=inf)
            known = inf if way == choice.chosen else HOPELESS * best
            tried.append(trial.tried(way, times, known, choice.parts))
        return choice, tried


@dataclass(frozen=True)
class _Trial:
    """A view in a run that is never committed."""

    world: World
    run: Run
    view: View

    def _upkeep(self, built: _Built | None = None) -> Upkeep:
        fresh = World(self.world.house, self.world.snapshot, Pending(), defining=True)
        upkeep = Upkeep(fresh, self.run, self.view, definition(fresh, self.view)[0])
        if built is not None:
            upkeep.known |= {state.signature: state for state in built.states}
            upkeep.interval = _WithStates(fresh, self.view, built)
        return upkeep

    def choice(self) -> Choice:
        upkeep = self._upkeep()
        return choose_way(upkeep, upkeep.maintenance(), [], by_cost=True)

    def tried(self, way: Candidate, times: int, most: float, parts: Parts) -> Tried:
        """A way that takes more than `most` CPU seconds is not gone again."""
        built = self._built(way, parts) if way.reasons else None
        costs = [self._once(way, built, parts)]
        while len(costs) < times and costs[0][0] <= most:
            costs.append(self._once(way, built, parts))
        return Tried(way, tuple(cpu for cpu, _ in costs), tuple(s for _, s in costs))

    def _built(self, way: Candidate, parts: Parts) -> _Built:
        """The states that a way needs and that are not there, as they were at the last refresh."""
        wanted = _wanted(self._upkeep(), way, parts)
        then = World(self.world.house, self.world.snapshot, Pending(), defining=True)
        then.held = {self.view.id: frozenset(self.view.depends)}
        upkeep = Upkeep(then, self.run, self.view, definition(then, self.view)[0])
        upkeep.engine = way.engine
        there = {s.id for s in upkeep.known.values()}
        stored = {node: state for node, state in wanted.states.items() if state.id in there}
        nothing = Upkept("incremental", [], 0)
        done = upkeep.build(wanted, replace(wanted, states=stored), nothing)
        states = tuple(u.state for u in done.updates if isinstance(u, CreateState))
        segments = {s.id: tuple(then.pending.added.get(s.id, ())) for s in states}
        return _Built(states, segments)

    def _once(self, way: Candidate, built: _Built | None, parts: Parts) -> tuple[float, float]:
        done = self._done(self._upkeep(built), way, parts)
        return sum(s.cpu_seconds for s in done.steps), sum(s.seconds for s in done.steps)

    def _done(self, upkeep: Upkeep, way: Candidate, parts: Parts) -> Upkept:
        upkeep.engine = way.engine
        plan = upkeep.maintenance()
        if way.method == PLAIN:
            return upkeep.plain([], plan.root)
        if way.method == FULL:
            return upkeep.recompute(plan, [])
        return upkeep.incremental(upkeep.following(_wanted(upkeep, way, parts)))


def _wanted(upkeep: Upkeep, way: Candidate, parts: Parts) -> Maintenance:
    """How a way follows changes."""
    plan = upkeep.maintenance()
    if way.method == INCREMENTAL:
        return plan
    joined = way.method == HIGHER_ORDER
    own = upkeep.higher_order(plan, parts) if joined else upkeep.by_outer_joins(plan, way.method)
    assert own is not None
    return own


@dataclass(frozen=True)
class _Built:
    """States that were built to try a way, with their rows."""

    states: tuple[State, ...]
    segments: Mapping[str, tuple[Segment, ...]]


class _WithStates(Interval):
    """As if states had been there at the last refresh."""

    def __init__(self, world: World, view: View, built: _Built) -> None:
        super().__init__(world, view)
        self._built = built.segments

    def segments(self, id: str, time: str) -> tuple[Segment, ...]:
        """What was built is what was, and what a step makes of it, the change."""
        if id not in self._built:
            return super().segments(id, time)
        before, made = self._built[id], tuple(self.world.pending.added.get(id, ()))
        return {OLD: before, CHANGE: made}.get(time, (*before, *made))
