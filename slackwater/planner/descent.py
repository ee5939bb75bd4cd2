"""Which ways to share are tried for a family, one after the other (000, 4.3; 003, 4.1-4.4).

From nothing that is shared, whole queries are put together in sets, the best two first. From
everything shared, pieces are split from the largest down, each as deep as is best, and what is left
of them below is looked at in turn. From only that shared which is equal, single pieces are put
together. A way stays if the plan of all families is better with it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Sequence
from itertools import combinations

from slackwater.planner.alike import Group, Member
from slackwater.planner.family import Family, Splits
from slackwater.planner.parts import Badness, Shared
from slackwater.planner.pieces import Clusters

Better = Generator[None, None, tuple[Shared, Splits]]
"""A stop after each way; in the end the best of them."""


class Descent:
    """Ways for a family, by what the whole plan is worth with each."""

    def __init__(self, family: Family, worth: Callable[[Shared], Badness]) -> None:
        self._family = family
        self._worth = worth

    def phases(self) -> Iterator[Iterator[None]]:
        """All that is tried, with a stop after each way: first what costs least to find out."""
        yield self._in_sets()
        yield self._split()
        yield self._put_together()
        yield self._in_pairs()

    def _in_sets(self) -> Iterator[None]:
        """From nothing that is shared, not even what is equal, queries are put together."""
        best, found = self._family.unshared, True
        sets: list[Collection[str]] = [frozenset({query}) for query in self._family.queries]
        while found:
            found, better = False, sets
            for a, b in combinations(sets, 2):
                united = [own for own in sets if own not in (a, b)] + [{*a, *b}]
                tried = self._family.partitioned(united)
                yield
                if self._worth(tried) < self._worth(best):
                    best, better, found = tried, united, True
            sets = better

    def _split(self) -> Iterator[None]:
        best, made, seen = self._family.together, Splits(), set[object]()
        while waiting := [m for m in best.sharing.merged if m[0].likeness not in seen]:
            group, members, _ = waiting[0]
            seen.add(group.likeness)
            best, made = yield from self._tried(best, made, self._depths(made, group, members))

    def _put_together(self) -> Iterator[None]:
        singles = self._family.singles
        best, made = self._family.apart, singles
        for group in self._family.groups:
            sets = {group.likeness: self._family.clusters(group.members)}
            yield
            if len(sets[group.likeness]) < len(group.members):
                others = [singles] if made is singles else [made, singles]
                best, made = yield from self._tried(
                    best, made, (own.but(sets, ()) for own in others)
                )

    def _in_pairs(self) -> Iterator[None]:
        """Two that share a piece, whatever is expected of that."""
        yield from self._tried(self._family.apart, self._family.singles, self._pairs())

    def _pairs(self) -> Iterator[Splits]:
        for group in self._family.groups:
            for pair in combinations(group.members, 2):
                single = (frozenset({m}) for m in group.members if m not in pair)
                yield self._family.singles.but({group.likeness: (frozenset(pair), *single)}, ())

    def _tried(self, best: Shared, made: Splits, others: Iterable[Splits]) -> Better:
        """The best so far, or one of some others."""
        for more in others:
            tried = self._family.split_as(more)
            yield
            if self._worth(tried) < self._worth(best):
                best, made = tried, more
        return best, made

    def _depths(self, made: Splits, group: Group, members: Sequence[Member]) -> Iterator[Splits]:
        """A piece split at the top, with all below shared as it was; the whole of it, in the same
        sets; and so far down, by one operator after the other. Not split at all, what is below may
        still be shared with others."""
        clusters = self._family.clusters(members)
        below = [g for g in self._family.groups if _inside(g, clusters)]
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
