"""What single pieces cost, and into which sets those who share one fall by that (003, 4.1)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import inf

from slackwater.algebra.relation import Relation
from slackwater.planner.alike import Member
from slackwater.planner.pace import LADDER, WORTH, Goal
from slackwater.planner.parts import PartSearch
from slackwater.planner.sharing import share
from slackwater.planner.simulation import Cost, Simulation
from slackwater.planner.splitting import best_split, clustered
from slackwater.planner.subplans import Dag, cut

Clusters = tuple[frozenset[Member], ...]


@dataclass
class Pieces:
    """Pieces of queries, each computed by itself."""

    search: PartSearch
    batch: Mapping[str, float]
    """By query, the seconds of its one run alone."""
    every_split: bool = False
    _alone: dict[Relation, dict[int, Cost]] = field(default_factory=dict)

    def clusters(self, members: Sequence[Member]) -> Clusters:
        """Sets of members that share: by sharing benefit, or of least work among all."""
        return (best_split if self.every_split else clustered)(members, self._work)

    def _work(self, cluster: frozenset[Member]) -> float:
        """The work of a set of members that share, at the pace at which that is least: what is late
        for a member, by its share of the goal, counts as the work that it would be worth."""
        nodes = list(dict.fromkeys(node for _, node in sorted(cluster, key=lambda m: m[0])))
        found = share(nodes) if len(nodes) > 1 else (nodes[0], ())
        if found is None:
            return inf
        wanted = [self._local_goal(*member) for member in cluster]

        def price(cost: Cost) -> float:
            return cost.total + sum(max(0.0, cost.final - own) for own in wanted) / WORTH

        return min(map(price, self._costs(found[0]).values()))

    def _local_goal(self, query: str, node: Relation) -> float:
        """The part of a query's goal that is one piece's, by its part of the batch."""
        goal = self.search.goals.get(query, Goal())
        batch = self.batch[query]
        return goal.seconds * self._costs(node)[1].final / batch if batch else inf

    def _costs(self, relation: Relation) -> dict[int, Cost]:
        """By pace, what a relation costs that is computed by itself."""
        if relation not in self._alone:
            simulation = Simulation(_uncut(relation), self.search.setting, self._ladder)
            moving = len(simulation.moving(simulation.dag.subplans[0]))
            self._alone[relation] = {k: simulation.cost(0, [k] * moving) for k in self._ladder}
            self.search.meet(simulation)
        return self._alone[relation]

    @property
    def _ladder(self) -> Sequence[int]:
        most = self.search.most
        return [k for k in LADDER if k < most] + [most]


def _uncut(relation: Relation) -> Dag:
    return cut({"": relation}, blocking=False, sharing=False)
