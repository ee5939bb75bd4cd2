"""Into which sets those who share a piece are split (000, 4.3.1; 003, 4.1).

A split is judged by the work of its sets. Clustering begins with everybody apart and joins the two
sets that save most by sharing, until none saves anything; the best of all splits is there to
compare with.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from functools import cache
from itertools import combinations
from typing import TypeVar

M = TypeVar("M", bound=Hashable)


def clustered(
    members: Sequence[M], work: Callable[[frozenset[M]], float]
) -> tuple[frozenset[M], ...]:
    """Sets of members by sharing benefit: work(A) + work(B) − work(A ∪ B).

    >>> work = {1: 3, 2: 3, 3: 3, 12: 4, 13: 7, 23: 7, 123: 9}
    >>> told = lambda own: work[int("".join(map(str, sorted(own))))]
    >>> sorted(map(sorted, clustered([1, 2, 3], told)))
    [[1, 2], [3]]
    """
    known = cache(work)
    found = [frozenset({member}) for member in members]
    while len(found) > 1:
        benefit, a, b = max(
            ((known(a) + known(b) - known(a | b), a, b) for a, b in combinations(found, 2)),
            key=lambda told: told[0],
        )
        if not benefit > 0:
            break
        found = [own for own in found if own not in (a, b)] + [a | b]
    return tuple(found)


def best_split(
    members: Sequence[M], work: Callable[[frozenset[M]], float]
) -> tuple[frozenset[M], ...]:
    """The split of least work, of all that there are.

    >>> best_split([1, 2, 3], lambda own: 1.0 if len(own) == 2 else 2.0 * len(own))
    (frozenset({1, 2}), frozenset({3}))
    """
    known = cache(work)

    @cache
    def best(left: tuple[M, ...]) -> tuple[float, tuple[frozenset[M], ...]]:
        """Of what is left, in its order: each set that the first may be in, and the best of the
        rest."""
        if not left:
            return 0.0, ()
        first, *others = left
        tried = []
        for size in range(len(others), -1, -1):
            for more in combinations(others, size):
                own = frozenset({first, *more})
                rest, sets = best(tuple(m for m in others if m not in more))
                tried.append((known(own) + rest, (own, *sets)))
        return min(tried, key=lambda told: told[0])

    return best(tuple(members))[1]


def splits(members: Sequence[M]) -> Iterator[tuple[frozenset[M], ...]]:
    """All of them.

    >>> [len(list(splits(range(n)))) for n in range(6)]
    [1, 1, 2, 5, 15, 52]
    """
    if not members:
        yield ()
        return
    first, *others = members
    for sets in splits(others):
        yield (frozenset({first}), *sets)
        for i, own in enumerate(sets):
            yield (*sets[:i], own | {first}, *sets[i + 1 :])
