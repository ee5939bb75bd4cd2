"""Every way to refresh a view, tried and measured; nothing is kept of it.

For the benchmark of choices: what was chosen stands beside what each way really costs.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from statistics import median

from slackwater.catalog.model import Run, View
from slackwater.planner.choice import FULL, INCREMENTAL, PLAIN, Candidate
from slackwater.work.choosing import Choice, choose_way
from slackwater.work.house import House
from slackwater.work.meaning import definition
from slackwater.work.upkeep import Upkeep
from slackwater.work.world import Pending, World

HOPELESS = 5
"""Whatever takes so many times as long as another way the first time is not the cheapest."""


@dataclass(frozen=True)
class Tried:
    """One way, and what it took each time."""

    candidate: Candidate
    cpu: tuple[float, ...]
    seconds: tuple[float, ...]


def try_ways(house: House, name: str, times: int) -> tuple[Choice, list[Tried]]:
    """What would be chosen for a view that is behind its tables, and what each possible way
    takes, by changes and in full, run so many times; once, if that shows that it is not the
    cheapest by far."""
    view = World(house, house.catalog.snapshot(), defining=True).view(name)
    with (
        house.lease(view.id) as lease,
        house.catalog.running("try", lease) as run,
        house.catalog.reading() as snapshot,
    ):
        trial = _Trial(World(house, snapshot, Pending(), defining=True), run, view)
        choice = trial.choice()
        ways = sorted((c for c in choice.candidates if not c.reasons), key=lambda c: c.cpu)
        tried: list[Tried] = []
        for way in ways:
            best = min((median(t.cpu) for t in tried), default=inf)
            known = inf if way == choice.chosen else HOPELESS * best
            tried.append(trial.tried(way, times, known))
        return choice, tried


@dataclass(frozen=True)
class _Trial:
    """A view in a run that is never committed."""

    world: World
    run: Run
    view: View

    def _upkeep(self) -> Upkeep:
        fresh = World(self.world.house, self.world.snapshot, Pending(), defining=True)
        return Upkeep(fresh, self.run, self.view, definition(fresh, self.view)[0])

    def choice(self) -> Choice:
        upkeep = self._upkeep()
        return choose_way(upkeep, upkeep.maintenance(), [], by_cost=True)

    def tried(self, way: Candidate, times: int, most: float) -> Tried:
        """A way that takes more than `most` CPU seconds is not gone again."""
        costs = [self._once(way)]
        while len(costs) < times and costs[0][0] <= most:
            costs.append(self._once(way))
        return Tried(way, tuple(cpu for cpu, _ in costs), tuple(s for _, s in costs))

    def _once(self, way: Candidate) -> tuple[float, float]:
        upkeep = self._upkeep()
        upkeep.engine = way.engine
        plan = upkeep.maintenance()
        if way.method == PLAIN:
            done = upkeep.plain([], plan.root)
        elif way.method == FULL:
            done = upkeep.recompute(plan, [])
        else:
            own = plan if way.method == INCREMENTAL else upkeep.higher_order(plan)
            assert own is not None
            done = upkeep.incremental(upkeep.following(own))
        return sum(s.cpu_seconds for s in done.steps), sum(s.seconds for s in done.steps)
