"""Which states are worth their room (DISS, 000, 5.2): dynamic programming over operators.

An operator gives its change, or all its rows, or both, in one of several ways that differ in what
they keep and in what they ask of the operators below. For a set of kept states,

    change(op) = min over actions:  seconds + Σ of what is asked below
    rows(op)   = the same for all rows                  (the D and F of 000, 5.2.3)

The thesis fills a table over (operator, budget). Here each operator has the frontier of what can
be had: bytes, and the seconds to give the change, the rows, or both, none better than another in
all of them. Frontiers are merged from the leaves up, and thinned.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import inf

from slackwater.stats.sound import MOST, sound

CHANGE, ROWS, BOTH = 1, 2, 3
"""What may be asked of an operator, as bits; 0 is nothing."""
MOST_POINTS = 16
"""So many points of a frontier are merged further."""


@dataclass(frozen=True, slots=True)
class Way:
    """How an operator gives something: its own seconds, and what it asks of each input."""

    seconds: float
    asks: tuple[int, ...] = ()


@dataclass(frozen=True)
class Action:
    """One way to run an operator: the states that it keeps, the operators below, and how it gives
    its change and its rows; None where it cannot. What giving both takes is told where that is
    less than the sum."""

    keeps: tuple[str, ...] = ()
    inputs: tuple[Operator, ...] = ()
    change: Way | None = None
    rows: Way | None = None
    both: Way | None = None

    def __post_init__(self) -> None:
        for way in (self.change, self.rows, self.both):
            assert way is None or len(way.asks) == len(self.inputs)

    def way(self, ask: int) -> Way | None:
        """How it gives what is asked: what both take of an input is taken once."""
        if ask != BOTH:
            return self.change if ask == CHANGE else self.rows
        if self.change is None or self.rows is None or self.both is not None:
            return self.both
        asks = (a | b for a, b in zip(self.change.asks, self.rows.asks, strict=True))
        return Way(self.change.seconds + self.rows.seconds, tuple(asks))


@dataclass(frozen=True, eq=False)
class Operator:
    """The actions that there are."""

    name: str
    actions: tuple[Action, ...]


@dataclass(frozen=True, slots=True)
class Kept:
    """What a state takes: room, and the seconds by refresh to have it at all."""

    bytes: float
    seconds: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "bytes", sound(self.bytes, MOST))
        object.__setattr__(self, "seconds", sound(self.seconds, MOST))


@dataclass(frozen=True, slots=True)
class Point:
    """What can be had with some states kept: seconds for the change, the rows, both."""

    bytes: float
    seconds: tuple[float, float, float]
    states: frozenset[str] = frozenset()

    def of(self, ask: int) -> float:
        """Seconds for what is asked."""
        return self.seconds[ask - 1] if ask else 0.0

    @property
    def cost(self) -> float:
        """Of a whole view: it follows its changes, or is computed anew."""
        return min(self.seconds[0], self.seconds[1])

    def is_as_good_as(self, other: Point) -> bool:
        """In room and in all seconds."""
        return self.bytes <= other.bytes and all(
            a <= b for a, b in zip(self.seconds, other.seconds, strict=True)
        )


Frontier = tuple[Point, ...]
"""Points by ascending bytes, none as good as another."""


def frontier(
    root: Operator,
    kept: Mapping[str, Kept],
    budget: float = inf,
    most_points: int | None = MOST_POINTS,
) -> Frontier:
    """What can be had of an operator within a budget; without a number of points, exactly."""
    known: dict[Operator, Frontier] = {}

    def of(operator: Operator) -> Frontier:
        if operator not in known:
            found = [p for action in operator.actions for p in points(action)]
            known[operator] = thinned(best(found), most_points)
        return known[operator]

    def points(action: Action) -> Iterator[Point]:
        for below in product(*(of(operator) for operator in action.inputs)):
            states = frozenset(action.keeps).union(*(p.states for p in below))
            point = _point(action, below, states, kept)
            if point.bytes <= budget and min(point.seconds) < inf:
                yield point

    return of(root)


def _point(
    action: Action, below: Sequence[Point], states: frozenset[str], kept: Mapping[str, Kept]
) -> Point:
    """A state that several keep takes its room once."""
    own = sum(kept[s].seconds for s in action.keeps)

    def seconds(ask: int) -> float:
        way = action.way(ask)
        if way is None:
            return inf
        return own + way.seconds + sum(p.of(a) for p, a in zip(below, way.asks, strict=True))

    size = sum(kept[s].bytes for s in states)
    return Point(size, (seconds(CHANGE), seconds(ROWS), seconds(BOTH)), states)


def best(points: Iterable[Point]) -> Frontier:
    """Those than which no other is as good."""
    found: list[Point] = []
    for point in sorted(points, key=lambda p: (p.bytes, p.seconds, len(p.states))):
        if not any(other.is_as_good_as(point) for other in found):
            found.append(point)
    return tuple(found)


def thinned(points: Frontier, most: int | None) -> Frontier:
    """At most so many: the one that takes no more room than any, the ones that are best at
    something, and of the rest those spread over the room."""
    if most is None or len(points) <= most:
        return points
    ends = {0, *(_least(points, ask) for ask in (CHANGE, ROWS, BOTH))}
    rest = [i for i in range(len(points)) if i not in ends]
    left = max(0, most - len(ends))
    spread = {rest[(2 * k + 1) * len(rest) // (2 * left)] for k in range(left)} if left else set()
    return tuple(points[i] for i in sorted(ends | spread))


def _least(points: Frontier, ask: int) -> int:
    return min(range(len(points)), key=lambda i: (points[i].of(ask), i))


def choose(points: Frontier, budget: float) -> Point | None:
    """The cheapest for a view within a budget, of equal ones the smallest; None: nothing fits."""
    fitting = [p for p in points if p.bytes <= budget]
    return min(fitting, key=lambda p: (p.cost, p.bytes), default=None)
