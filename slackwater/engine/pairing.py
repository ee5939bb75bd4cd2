"""Pairing rows of two relations on exact keys and nearly equal floats.

Nearness is not transitive (a ~ b and b ~ c do not give a ~ c), so sorting both sides and
comparing them place by place is wrong as soon as a row has two float columns. Instead, rows are
split into groups that cannot pair with each other; almost every group is then trivially
complete, and only what remains is matched, as a bipartite graph.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

RELATIVE = 1e-9
"""Two floats are equal if they differ by at most this part of the larger one."""

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Side:
    """Rows of one relation: a code per row for all exact columns, and the finite floats."""

    keys: Ints
    floats: Floats  # rows × float columns


def near(a: Any, b: Any) -> Any:
    """|a − b| ≤ 1e-9 · max(|a|, |b|), element by element."""
    with np.errstate(over="ignore"):
        return np.abs(a - b) <= RELATIVE * np.maximum(np.abs(a), np.abs(b))


def unpaired(left: Side, right: Side) -> tuple[Ints, Ints]:
    """The rows of each side that a largest pairing leaves alone, by index."""
    cut = len(left.keys)
    keys = np.concatenate([left.keys, right.keys])
    floats = np.concatenate([left.floats, right.floats])
    if not len(keys):
        return keys, keys
    order, starts = _grouped(_refined(keys, floats))
    left_alone, right_alone = [], []
    for rows in _unsettled(order, starts, floats, cut):
        a, b = rows[rows < cut], rows[rows >= cut]
        alone_a, alone_b = _alone(a, b, floats)
        left_alone.append(alone_a)
        right_alone.append(alone_b - cut)
    return _sorted(left_alone), _sorted(right_alone)


def _sorted(parts: list[Ints]) -> Ints:
    return np.sort(np.concatenate(parts)) if parts else np.empty(0, np.int64)


def _grouped(groups: Ints) -> tuple[Ints, Ints]:
    """Row indexes ordered by group, and where each group starts."""
    order = np.argsort(groups, kind="stable")
    sorted_groups = groups[order]
    starts = np.flatnonzero(np.r_[True, sorted_groups[1:] != sorted_groups[:-1]])
    return order, starts


def _refined(groups: Ints, floats: Floats) -> Ints:
    """Groups split wherever a float column has a gap that no pair can bridge, to a fixpoint.

    A split by one column may open a gap in another, hence the loop.
    """
    count = -1
    while count != (count := _count(groups)):
        for column in floats.T:
            order = np.lexsort((column, groups))
            values, codes = column[order], groups[order]
            opens = np.r_[False, (codes[1:] != codes[:-1]) | ~near(values[1:], values[:-1])]
            groups = np.empty_like(groups)
            groups[order] = np.cumsum(opens)
    return groups


def _count(groups: Ints) -> int:
    return len(np.unique(groups))


def _unsettled(order: Ints, starts: Ints, floats: Floats, cut: int) -> list[Ints]:
    """The groups that are not complete at sight.

    A group with as many rows on the left as on the right, in which the least and the greatest
    value of every column are near, is complete: any pairing of it will do.
    """
    sizes = np.diff(np.r_[starts, len(order)])
    lefts = np.add.reduceat((order < cut).astype(np.int64), starts)
    settled = lefts * 2 == sizes
    for column in floats.T:
        values = column[order]
        low, high = np.minimum.reduceat(values, starts), np.maximum.reduceat(values, starts)
        settled &= near(low, high)
    return [order[starts[i] : starts[i] + sizes[i]] for i in np.flatnonzero(~settled)]


def _alone(a: Ints, b: Ints, floats: Floats) -> tuple[Ints, Ints]:
    """The rows of one group that a largest pairing leaves alone."""
    both = floats[np.concatenate([a, b])]
    if not len(a) or not len(b) or near(both.min(axis=0), both.max(axis=0)).all():
        paired = min(len(a), len(b))
        return a[paired:], b[paired:]
    b = b[np.argsort(floats[b, 0])]
    partners = _matching(_edges(a, b, floats), len(b))
    free = np.ones(len(b), np.bool_)
    free[[j for j in partners if j >= 0]] = False
    return a[np.array(partners) < 0], b[free]


def _edges(a: Ints, b: Ints, floats: Floats) -> list[list[int]]:
    """For each row of `a` the positions in `b` that are near in every column.

    `b` is sorted by the first column, so only a window of it is looked at.
    """
    first, sought = floats[b, 0], floats[a, 0]
    width = 2 * RELATIVE * np.abs(sought)
    lows = np.searchsorted(first, sought - width, "left")
    highs = np.searchsorted(first, sought + width, "right")
    return [
        [low + int(i) for i in np.flatnonzero(near(floats[b[low:high]], floats[row]).all(axis=1))]
        for row, low, high in zip(a, lows.tolist(), highs.tolist(), strict=True)
    ]


def _matching(edges: list[list[int]], rights: int) -> list[int]:
    """A largest bipartite matching by augmenting paths: the right partner of each left, or −1."""
    left, right = [-1] * len(edges), [-1] * rights
    for start in range(len(edges)):
        _augment(start, edges, left, right)
    return left


def _augment(start: int, edges: list[list[int]], left: list[int], right: list[int]) -> None:
    """Add `start` to the matching, if it can be.

    Breadth-first along alternating paths; a free partner is found in the first step nearly
    always. Found, each left on the way back to `start` takes the right it was led to.
    """
    came_from: dict[int, int] = {}
    queue = [start]
    for i in queue:
        for j in edges[i]:
            if j in came_from:
                continue
            came_from[j] = i
            if right[j] >= 0:
                queue.append(right[j])
                continue
            while j >= 0:
                taker = came_from[j]
                left[taker], right[j], j = j, taker, left[taker]
            return
