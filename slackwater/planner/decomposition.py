"""Who shares with whom: pieces that are shared, split again where that is cheaper (000, 4.3).

Sharing saves the work that queries have in common, and makes all who share run at the pace of the
most demanding. So pieces that are shared are split, others are put together, and paces are found
for each way; what is cheapest stays. Families of queries that have nothing in common take turns,
and a way for one of them leaves what was found for the others as it is. So many ways are looked at
as an effort allows, which is counted and not timed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial

from slackwater.algebra.relation import Relation
from slackwater.collecting import held_off
from slackwater.planner.alike import Member, in_one_order
from slackwater.planner.descent import Descent
from slackwater.planner.families import families
from slackwater.planner.family import Family, Splits
from slackwater.planner.pace import LADDER, Goal, Search
from slackwater.planner.parts import Badness, PartSearch, Shared, badness, joined
from slackwater.planner.pieces import Clusters, Pieces
from slackwater.planner.simulation import Setting, Simulation
from slackwater.planner.subplans import cut

__all__ = ["Decomposition", "Shared", "Splits"]

DONE = object()
"""What is left where nothing more is to be tried."""
EFFORT, AT_LEAST = 1_500.0, 1.1
"""So much is looked at, in all, by the time that it takes to simulate an operator (`PartSearch`):
TPC-H's 22 queries take less than 3 s (`slackwater bench search`). At least a tenth more than it
takes to look at everything shared and at nothing shared."""


@dataclass
class Decomposition:
    """A search over who shares with whom."""

    queries: Mapping[str, Relation]
    setting: Setting
    goals: Mapping[str, Goal]
    mode: str = "subplans"
    most: int = LADDER[-1]
    every_split: bool = False
    """Is the best of all splits of each piece looked for, and not the one of clustering?"""
    effort: float = EFFORT
    """How much is looked at in all, if that suffices for what always is."""

    def __post_init__(self) -> None:
        self.ordered = in_one_order(self.queries)
        alone = Simulation(cut(self.queries, sharing=False), self.setting, LADDER)
        batch = Search(alone, {}, self.mode, self.most).batch().final
        self._search = PartSearch(
            self.setting, _in_seconds(self.goals, batch), self.mode, self.most
        )
        self._pieces = Pieces(self._search, batch, self.every_split)
        self._families = [
            Family(own, self.queries, self._search, self._pieces) for own in families(self.ordered)
        ]

    # -- the whole

    @cached_property
    def together(self) -> Shared:
        """Everything is shared that can be."""
        return joined(family.together for family in self._families)

    @cached_property
    def apart(self) -> Shared:
        """Nobody shares what differs."""
        return joined(family.apart for family in self._families)

    @cached_property
    def unshared(self) -> Shared:
        """Nobody shares anything, not even what is equal."""
        return joined(family.unshared for family in self._families)

    def split_as(self, made: Splits) -> Shared:
        """Pieces are split in a certain way."""
        return joined(family.split_as(made) for family in self._families)

    def partitioned(self, sets: Iterable[Collection[str]]) -> Shared:
        """Queries share all that they can with those of their own set, and nothing with others."""
        own = list(sets)
        return joined(family.partitioned(own) for family in self._families)

    def clusters(self, members: Sequence[Member]) -> Clusters:
        """Sets of members that share."""
        return self._pieces.clusters(members)

    def best(self) -> Shared:
        """Shared where that is cheapest: never dearer than with everything shared, nothing, or only
        what is equal."""
        with held_off():
            ways = self.together, self.apart, self.unshared
            chosen = min(self._uniform(), key=badness)
            self._look(chosen)
            self._mix(chosen)
        best = replace(joined(chosen), tried=sum(len(f.found) for f in self._families))
        best.search.rivals = tuple(way.search for way in ways)
        return best

    def _uniform(self) -> Iterator[list[Shared]]:
        """All families in one way."""
        yield [family.together for family in self._families]
        yield [family.apart for family in self._families]
        yield [family.unshared for family in self._families]

    def _look(self, chosen: Sequence[Shared]) -> None:
        """All families put queries together in sets, then all split pieces, and so on."""
        most = max(self.effort, AT_LEAST * self._search.effort)
        descents = (Descent(f, partial(_with, chosen, i)) for i, f in enumerate(self._families))
        for phase in zip(*(descent.phases() for descent in descents), strict=True):
            self._take_turns(chosen, dict(enumerate(phase)), most)

    def _take_turns(
        self, chosen: Sequence[Shared], waiting: dict[int, Iterator[None]], most: float
    ) -> None:
        """Next is the family on which least was spent for what it costs."""
        while waiting and self._search.effort < most:
            own = min(waiting, key=lambda i: self._families[i].effort / (chosen[i].total or 1.0))
            if next(waiting[own], DONE) is DONE:
                del waiting[own]

    def _mix(self, chosen: list[Shared]) -> None:
        """For each family the best of its ways, by what all families then cost together."""
        before = None
        while before is None or badness(chosen) < before:
            before = badness(chosen)
            for i, family in enumerate(self._families):
                chosen[i] = min((chosen[i], *family.found), key=partial(_with, chosen, i))


def _with(chosen: Sequence[Shared], i: int, plan: Shared) -> Badness:
    """What all families are worth with another plan for one of them."""
    return badness([*chosen[:i], plan, *chosen[i + 1 :]])


def _in_seconds(goals: Mapping[str, Goal], batch: Mapping[str, float]) -> dict[str, Goal]:
    """A share is one of the query's own batch, not of a shared one."""
    return {q: g if g.share is None else Goal(g.share * batch[q]) for q, g in goals.items()}
