"""Queries that share, part by part, and the paces of each part: found once, whoever asks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from slackwater.planner.alike import Sharing
from slackwater.planner.families import parts
from slackwater.planner.pace import WORTH, Found, Goal, Paces, Search
from slackwater.planner.simulation import Setting, Simulation, signature
from slackwater.planner.subplans import Dag, Path, is_subplan, name_of, number_of, united

LOOKS = 250
"""Looks at what subplans cost that take about as long as to simulate an operator."""
SHARED = 1.0
"""To merge what queries share, and to cut them: for each query, by the same measure."""


@dataclass(frozen=True)
class Part:
    """Queries that have subplans in common, and their paces."""

    search: Search
    found: Found


@dataclass(frozen=True)
class Shared:
    """Queries, what they share, and at which paces they run."""

    sharing: Sharing
    parts: tuple[Part, ...]
    tried: int = 1
    """Ways to share that it was chosen from, of all families of queries."""

    @cached_property
    def dag(self) -> Dag:
        """Its subplans."""
        return united([part.search.dag for part in self.parts])

    @cached_property
    def search(self) -> Search:
        """The search for all of its paces."""
        first = self.parts[0].search
        if len(self.parts) == 1:
            return first
        simulation = Simulation(self.dag, first.simulation.setting)
        return Search(simulation, first.goals, first.mode, first.most)

    @cached_property
    def found(self) -> Found:
        """The paces of all parts."""
        founds = [part.found for part in self.parts]
        return Found(
            dict(self._paces()),
            sum(found.total for found in founds),
            {query: seconds for found in founds for query, seconds in found.final.items()},
            {query: seconds for found in founds for query, seconds in found.wanted.items()},
            sum(found.steps for found in founds),
            self.tried,
        )

    def _paces(self) -> Iterator[tuple[Path, int]]:
        start = 0
        for part in self.parts:
            yield from _moved(part.found.paces, start)
            start += len(part.search.dag.subplans)

    @cached_property
    def missed(self) -> float:
        """Seconds by which goals are missed."""
        return sum(sum(part.found.missed.values()) for part in self.parts)

    @cached_property
    def total(self) -> float:
        """CPU seconds of everything."""
        return sum(part.found.total for part in self.parts)

    @property
    def badness(self) -> Badness:
        """Missed goals first, then cost; what is missed in all plans is not chased at any cost."""
        return badness([self])


Badness = tuple[float, float]


def badness(plans: Iterable[Shared]) -> Badness:
    """Of several plans of queries that have nothing in common, together."""
    several = list(plans)
    missed, total = round(sum(p.missed for p in several), 9), sum(p.total for p in several)
    return missed + WORTH * total if missed else 0.0, total


def joined(plans: Iterable[Shared]) -> Shared:
    """Several plans of queries that have nothing in common, as one."""
    several = list(plans)
    return Shared(
        Sharing(
            {name: query for p in several for name, query in p.sharing.queries.items()},
            frozenset().union(*(p.sharing.pieces for p in several)),
            tuple(merged for p in several for merged in p.sharing.merged),
        ),
        tuple(part for p in several for part in p.parts),
    )


def _moved(paces: Paces, start: int) -> Iterator[tuple[Path, int]]:
    for (number, name), pace in paces.items():
        read = name_of(number_of(name) + start) if is_subplan(name) else name
        yield (number + start, read), pace


@dataclass
class PartSearch:
    """Parts with their paces, and how much was looked at to find them.

    The effort is counted, not timed, so that the same queries get the same plan on any machine. It
    does not depend on what the setting remembers of other searches, either.
    """

    setting: Setting
    goals: Mapping[str, Goal]
    mode: str
    most: int
    effort: float = 0.0
    """In simulated operators."""
    _known: dict[object, Part] = field(default_factory=dict)
    _met: set[object] = field(default_factory=set)

    def shared(self, sharing: Sharing, dag: Dag) -> Shared:
        """Queries cut in some way, at the paces that are found for them."""
        self.effort += SHARED * len(sharing.queries)
        return Shared(sharing, tuple(map(self._part, parts(dag))))

    def _part(self, dag: Dag) -> Part:
        key = dag.subplans, tuple(dag.roots.items())
        if key not in self._known:
            search = Search(Simulation(dag, self.setting), self.goals, self.mode, self.most)
            self._known[key] = Part(search, search.greedy())
            self.effort += search.looks / LOOKS
            self.meet(search.simulation)
        return self._known[key]

    def meet(self, simulation: Simulation) -> None:
        """What was asked for is simulated where it is met first."""
        for asked in simulation.asked.values():
            key = signature(simulation.dag, asked.subplan)
            if key not in self._met:
                self._met.add(key)
                self.effort += sum(1 for _ in asked.subplan.relation.walk())
