"""Who shares with whom: pieces that are shared, split again where that is cheaper (000, 4.3).

Sharing saves the work that queries have in common, and makes all who share run at the pace of the
most demanding. So after paces were found with everything shared, each shared piece is looked at,
from the results down. Its queries begin apart, each at the lowest pace that meets its share of the
goal; the two sets that save most by sharing are joined, until none saves anything. A split stays if
the whole becomes cheaper with it. Where a piece is split, what its members have in common further
down may still be shared: a split in part.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations, islice
from math import inf

from slackwater.algebra.relation import Relation
from slackwater.planner.alike import (
    Group,
    Member,
    Sharing,
    groups,
    in_one_order,
    shared,
)
from slackwater.planner.pace import LADDER, WORTH, Found, Goal, Search
from slackwater.planner.sharing import share
from slackwater.planner.simulation import Cost, Setting, Simulation
from slackwater.planner.splitting import best_split, clustered
from slackwater.planner.subplans import Dag, cut, united

Clusters = tuple[frozenset[Member], ...]
LOOKS, LEAST_TRIES = 2_000, 1
"""So many plans are tried, by the square of their subplans; at least so many in any case."""


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
        """Missed goals first, then cost; what is missed in all plans is not chased at any cost."""
        missed = round(sum(self.found.missed.values()), 9)
        return missed + WORTH * self.found.total if missed else 0.0, self.found.total


@dataclass(frozen=True)
class Splits:
    """How pieces are split, by their likeness, and which are shared before larger ones are."""

    clusters: Mapping[object, Clusters] = field(default_factory=dict)
    first: frozenset[object] = frozenset()

    def but(self, clusters: Mapping[object, Clusters], first: Iterable[object]) -> Splits:
        """With others."""
        return Splits({**self.clusters, **clusters}, self.first - clusters.keys() | {*first})

    def split(self, group: Group) -> Sequence[Sequence[Member]]:
        """Who shares: all, where nothing is said."""
        known = self.clusters.get(group.likeness)
        if known is None:
            return (group.members,)
        apart = [m for m in group.members if not any(m in cluster for cluster in known)]
        own = [[m for m in group.members if m in cluster] for cluster in known]
        return [*own, *([m] for m in apart)]


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
    _tries: int = 0

    def __post_init__(self) -> None:
        self.ordered = in_one_order(self.queries)
        alone = Simulation(cut(self.ordered, sharing=False), self.setting, LADDER)
        self._batch = Search(alone, {}, self.mode, self.most).batch().final

    # -- the whole

    @cached_property
    def together(self) -> Shared:
        """Everything is shared that can be."""
        return self.split_as(Splits())

    @cached_property
    def apart(self) -> Shared:
        """Nobody shares what differs."""
        return self.split_as(self._singles)

    @cached_property
    def _singles(self) -> Splits:
        found: dict[object, Clusters] = {}
        while merged := shared(self.ordered, Splits(found).split).merged:
            for group, _, _ in merged:
                found[group.likeness] = tuple(frozenset({m}) for m in group.members)
        return Splits(found)

    @cached_property
    def unshared(self) -> Shared:
        """Nobody shares anything, not even what is equal."""
        dag = cut(self.ordered, sharing=False)
        return self._searched(Sharing(self.ordered, frozenset()), dag)

    def best(self) -> Shared:
        """Shared where that is cheapest: pieces are split from the largest down, each as deep as is
        best, and what is left of them below is looked at in turn; and from nothing that is shared,
        pieces are put together. Plans of many subplans are tried less often."""
        self._tries = max(LEAST_TRIES, LOOKS // len(self.together.dag.subplans) ** 2)
        found = self._split(), self._put_together(), self._in_sets()
        ways = (*found, self.together, self.apart, self.unshared)
        chosen = min(ways, key=lambda s: s.badness)
        chosen.search.rivals = tuple(s.search for s in ways if s is not chosen)
        return chosen

    def _split(self) -> Shared:
        best, made, seen = self.together, Splits(), set[object]()
        while self._tries > 0:
            waiting = [m for m in best.sharing.merged if m[0].likeness not in seen]
            if not waiting:
                break
            group, members, _ = waiting[0]
            seen.add(group.likeness)
            best, made = self._tried(best, made, self._depths(made, group, members))
        return best

    def _put_together(self) -> Shared:
        best, made = self.apart, self._singles
        for group in groups(self.ordered):
            if self._tries > 0:
                sets = {group.likeness: self.clusters(group.members)}
                if len(sets[group.likeness]) < len(group.members):
                    others = [self._singles] if made is self._singles else [made, self._singles]
                    best, made = self._tried(best, made, [own.but(sets, ()) for own in others])
        return self._tried(best, made, self._pairs())[0]

    def _in_sets(self) -> Shared:
        """From nothing that is shared, not even what is equal, queries are put together."""
        best, found = self.unshared, True
        sets = [frozenset({query}) for query in self.queries]
        while found:
            found = False
            for a, b in islice(combinations(sets, 2), self._tries):
                self._tries -= 1
                joined = [own for own in sets if own not in (a, b)] + [a | b]
                tried = self.partitioned(joined)
                if tried.badness < best.badness:
                    best, better, found = tried, joined, True
            sets = better if found else sets
        return best

    def _pairs(self) -> Iterator[Splits]:
        """Two that share a piece, whatever is expected of that."""
        for group in groups(self.ordered):
            for pair in combinations(group.members, 2):
                single = (frozenset({m}) for m in group.members if m not in pair)
                yield self._singles.but({group.likeness: (frozenset(pair), *single)}, ())

    def _tried(self, best: Shared, made: Splits, others: Iterable[Splits]) -> tuple[Shared, Splits]:
        """The best so far, or one of some others."""
        for more in islice(others, self._tries):
            self._tries -= 1
            tried = self.split_as(more)
            if tried.badness < best.badness:
                best, made = tried, more
        return best, made

    def _depths(self, made: Splits, group: Group, members: Sequence[Member]) -> Iterator[Splits]:
        """A piece split at the top, with all below shared as it was; the whole of it, in the same
        sets; and so far down, by one operator after the other. Not split at all, what is below may
        still be shared with others."""
        clusters = self.clusters(members)
        below = [g for g in groups(self.ordered) if _inside(g, clusters)]
        likenesses = [g.likeness for g in below]
        if len(clusters) == 1:
            if any(_others(g, clusters) for g in below):
                yield made.but({}, likenesses)
            return
        several = any(len(cluster) > 1 for cluster in clusters)
        own = {g.likeness: (*_inside(g, clusters), *_others(g, clusters)) for g in below}
        for depth in dict.fromkeys((0, len(below), *range(1, len(below)))):
            split = {kind: own[kind] for kind in likenesses[:depth]}
            first = likenesses[depth:] if several else ()
            yield made.but({group.likeness: clusters, **split}, first)

    def partitioned(self, sets: Iterable[Collection[str]]) -> Shared:
        """Queries share all that they can with those of their own set, and nothing with others."""
        place = {query: i for i, own in enumerate(sets) for query in own}

        def split(group: Group) -> Sequence[Sequence[Member]]:
            found: dict[int, list[Member]] = {}
            for member in group.members:
                found.setdefault(place[member[0]], []).append(member)
            return list(found.values())

        sharing = shared(self.ordered, split)
        apart = [{q: sharing.queries[q] for q in own} for own in sets]
        return self._searched(sharing, united([cut(own, at=sharing.pieces) for own in apart]))

    def split_as(self, made: Splits) -> Shared:
        """Pieces are split in a certain way."""
        sharing = shared(self.ordered, made.split, made.first)
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

    # -- one piece

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


def _inside(group: Group, clusters: Clusters) -> Clusters:
    """The members of a group that are a part of some sets' members, in the same sets."""
    found = []
    for cluster in clusters:
        below = {(name, part) for name, node in cluster for part in node.walk() if part is not node}
        found.append(frozenset(below.intersection(group.members)))
    return tuple(own for own in found if own)


def _others(group: Group, clusters: Clusters) -> Clusters:
    """Those that are not, together."""
    left = frozenset(group.members).difference(*_inside(group, clusters))
    return (left,) if left else ()
