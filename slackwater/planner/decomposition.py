"""Who shares with whom: pieces that are shared, split again where that is cheaper (000, 4.3).

Sharing saves the work that queries have in common, and makes all who share run at the pace of the
most demanding. So after paces were found with everything shared, each shared piece is looked at,
from the results down. Its queries begin apart, each at the lowest pace that meets its share of the
goal; the two sets that save most by sharing are joined, until none saves anything. A split stays if
the whole becomes cheaper with it. Where a piece is split, what its members have in common further
down may still be shared: a split in part.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import inf

from slackwater.algebra.relation import Relation
from slackwater.planner.alike import Group, Member, Sharing, Split, in_one_order, shared
from slackwater.planner.pace import LADDER, Found, Goal, Search
from slackwater.planner.sharing import share
from slackwater.planner.simulation import Cost, Setting, Simulation
from slackwater.planner.splitting import best_split, clustered
from slackwater.planner.subplans import Dag, cut

Clusters = tuple[frozenset[Member], ...]


@dataclass(frozen=True)
class Shared:
    """Queries, what they share, and at which paces they run."""

    sharing: Sharing
    search: Search
    found: Found

    @property
    def dag(self) -> Dag:
        """Its subplans."""
        return self.search.dag

    @property
    def badness(self) -> tuple[float, float]:
        """Missed goals first, then cost."""
        return round(sum(self.found.missed.values()), 9), self.found.total


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
    _alone: dict[Relation, dict[int, Cost]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.ordered = in_one_order(self.queries)
        alone = Simulation(cut(self.ordered, sharing=False), self.setting, LADDER)
        self._batch = Search(alone, {}, self.mode, self.most).batch().final

    # -- the whole

    @cached_property
    def together(self) -> Shared:
        """Everything is shared that can be."""
        return self._with({})

    @cached_property
    def apart(self) -> Shared:
        """Nobody shares what differs."""
        found: dict[object, Clusters] = {}
        while merged := shared(self.ordered, self._splitting(found)).merged:
            for group, _, _ in merged:
                found[group.likeness] = tuple(frozenset({m}) for m in group.members)
        return self._with(found)

    @cached_property
    def unshared(self) -> Shared:
        """Nobody shares anything, not even what is equal."""
        dag = cut(self.ordered, sharing=False)
        return self._searched(Sharing(self.ordered, frozenset()), dag)

    def best(self) -> Shared:
        """Shared where that is cheapest: pieces are split from the largest down, and what is left
        of them below is looked at in turn."""
        best, splits, seen = self.together, dict[object, Clusters](), set[object]()
        while waiting := [m for m in best.sharing.merged if m[0].likeness not in seen]:
            group, members, _ = waiting[0]
            seen.add(group.likeness)
            clusters = self.clusters(members)
            if len(clusters) > 1:
                tried = self._with({**splits, group.likeness: clusters})
                if tried.badness < best.badness:
                    best, splits = tried, {**splits, group.likeness: clusters}
        ways = best, self.together, self.apart, self.unshared
        chosen = min(ways, key=lambda s: s.badness)
        chosen.search.rivals = tuple(s.search for s in ways if s is not chosen)
        return chosen

    def _with(self, splits: Mapping[object, Clusters]) -> Shared:
        sharing = shared(self.ordered, self._splitting(splits))
        return self._searched(sharing, cut(sharing.queries, at=sharing.pieces))

    def _searched(self, sharing: Sharing, dag: Dag) -> Shared:
        simulation = Simulation(dag, self.setting)
        search = Search(simulation, self._absolute(), self.mode, self.most)
        return Shared(sharing, search, search.greedy())

    def _absolute(self) -> dict[str, Goal]:
        """Goals in seconds: a share is one of the query's own batch, not of a shared one."""
        return {
            q: g if g.share is None else Goal(g.share * self._batch[q])
            for q, g in self.goals.items()
        }

    @staticmethod
    def _splitting(splits: Mapping[object, Clusters]) -> Split:
        def split(group: Group) -> Sequence[Sequence[Member]]:
            known = splits.get(group.likeness)
            if known is None:
                return (group.members,)
            apart = [m for m in group.members if not any(m in cluster for cluster in known)]
            own = [[m for m in group.members if m in cluster] for cluster in known]
            return [*own, *([m] for m in apart)]

        return split

    # -- one piece

    def clusters(self, members: Sequence[Member]) -> Clusters:
        """Sets of members that share: by sharing benefit, or of least work among all."""
        return (best_split if self.every_split else clustered)(members, self._work)

    def _work(self, cluster: frozenset[Member]) -> float:
        """The work of a set of members that share, at the lowest pace at which each of them takes
        no more than its share of the goal."""
        nodes = list(dict.fromkeys(node for _, node in sorted(cluster, key=lambda m: m[0])))
        found = share(nodes) if len(nodes) > 1 else (nodes[0], ())
        if found is None:
            return inf
        wanted = min(self._local_goal(*member) for member in cluster)
        costs = self._costs(found[0])
        meeting = [c.total for c in costs.values() if c.final <= wanted]
        shortest = min(costs.values(), key=lambda c: c.final)
        return min(meeting, default=shortest.total)

    def _local_goal(self, query: str, node: Relation) -> float:
        """The part of a query's goal that is one piece's, by its part of the batch."""
        goal = self._absolute().get(query, Goal())
        batch = self._batch[query]
        return goal.seconds * self._costs(node)[1].final / batch if batch else inf

    def _costs(self, relation: Relation) -> dict[int, Cost]:
        """By pace, what a relation costs that is computed by itself."""
        if relation not in self._alone:
            simulation = Simulation(cut({"": relation}, sharing=False), self.setting, LADDER)
            found = {}
            for k in self._ladder:
                *below, root = (
                    simulation.cost(s.number, [k] * len(simulation.moving(s)))
                    for s in simulation.dag.subplans
                )
                own = [*(c.steps_alone for c in below), root]
                total, final = sum(c.total for c in own), sum(c.final for c in own)
                found[k] = Cost(total, final, max((c.runs for c in own), default=0))
            self._alone[relation] = found
        return self._alone[relation]

    @property
    def _ladder(self) -> Sequence[int]:
        return [k for k in LADDER if k < self.most] + [self.most]
