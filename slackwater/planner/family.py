"""One family of queries, and the ways in which its queries may share (000, 4.3; 003, 4).

A *way* says which queries may share anything with one another, and into which sets the pieces that
are alike are split. Every way is looked at once.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from slackwater.algebra.relation import Relation
from slackwater.planner.alike import Group, Member, Sharing, groups, shared
from slackwater.planner.parts import PartSearch, Shared
from slackwater.planner.pieces import Clusters, Pieces
from slackwater.planner.subplans import Dag, cut, united


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


class Family:
    """Queries that may share, and what was found of the ways in which they do."""

    def __init__(
        self,
        queries: Mapping[str, Relation],
        as_written: Mapping[str, Relation],
        search: PartSearch,
        pieces: Pieces,
    ) -> None:
        self.queries = queries
        self._as_written = as_written
        self.groups = groups(queries)
        self.effort = 0.0
        self._search = search
        self._pieces = pieces
        self._found: dict[object, Shared] = {}

    @property
    def found(self) -> Collection[Shared]:
        """All ways that were looked at."""
        return self._found.values()

    @cached_property
    def together(self) -> Shared:
        """Everything is shared that can be."""
        return self.split_as(Splits())

    @cached_property
    def apart(self) -> Shared:
        """Nobody shares what differs."""
        return self.split_as(self.singles)

    @cached_property
    def unshared(self) -> Shared:
        """Nobody shares anything, not even what is equal."""
        return self.partitioned([{query} for query in self.queries])

    @cached_property
    def singles(self) -> Splits:
        """All pieces split into their members."""
        found: dict[object, Clusters] = {}
        while merged := shared(self.queries, Splits(found).split).merged:
            for group, _, _ in merged:
                found[group.likeness] = tuple(frozenset({m}) for m in group.members)
        return Splits(found)

    def clusters(self, members: Sequence[Member]) -> Clusters:
        """Sets of members that share."""
        before = self._search.effort
        found = self._pieces.clusters(members)
        self.effort += self._search.effort - before
        return found

    def split_as(self, made: Splits) -> Shared:
        """Pieces are split in a certain way."""
        likenesses = [g.likeness for g in self.groups]
        own = [(made.clusters.get(kind), kind in made.first) for kind in likenesses]
        key = tuple((c and frozenset(c), first) for c, first in own)
        return self._once(key, lambda: self._split_as(made))

    def _split_as(self, made: Splits) -> Shared:
        first = [g.likeness for g in self.groups if g.likeness in made.first]
        sharing = shared(self.queries, made.split, first)
        return self._search.shared(sharing, self._cut(sharing.queries, sharing))

    def partitioned(self, sets: Iterable[Collection[str]]) -> Shared:
        """Queries share all that they can with those of their own set, and nothing with others."""
        own = [[q for q in self.queries if q in some] for some in sets]
        own = [some for some in own if some]
        return self._once(frozenset(map(frozenset, own)), lambda: self._partitioned(own))

    def _partitioned(self, sets: Sequence[Sequence[str]]) -> Shared:
        place = {query: i for i, own in enumerate(sets) for query in own}

        def split(group: Group) -> Sequence[Sequence[Member]]:
            found: dict[int, list[Member]] = {}
            for member in group.members:
                found.setdefault(place[member[0]], []).append(member)
            return list(found.values())

        sharing = shared(self.queries, split)
        return self._search.shared(sharing, united([self._cut(own, sharing) for own in sets]))

    def _cut(self, queries: Collection[str], sharing: Sharing) -> Dag:
        """Some queries that share with nobody else. Of these, one that shares nothing joins in the
        order that it has, and not in that of others."""
        whole = {query: sharing.queries[query] for query in queries}
        found = cut(whole, at=sharing.pieces)
        alone = [
            query
            for query, relation in whole.items()
            if sharing.pieces.isdisjoint(relation.walk())
            and all(len(subplan.queries) == 1 for subplan in found.of(query))
        ]
        if not alone:
            return found
        rest = {query: relation for query, relation in whole.items() if query not in alone}
        apart = [cut({query: self._as_written[query]}) for query in alone]
        return united([cut(rest, at=sharing.pieces), *apart])

    def _once(self, key: object, make: Callable[[], Shared]) -> Shared:
        if key not in self._found:
            before = self._search.effort
            self._found[key] = make()
            self.effort += self._search.effort - before
        return self._found[key]
