"""Where rows are, and how they get to where they are needed (002, 5.2 and 5.3.1).

A relation is on the driver, spread over the workers by the values of some columns, spread anyhow,
or copied to every worker. Operators need their inputs in places that fit: a join, both sides spread
by what they are joined by, or one of them copied. Where they are elsewhere, rows move:

    scatter      driver → workers, by columns       repartition   workers → workers, by columns
    broadcast    → a copy on every worker           gather        workers → driver

002 puts moves wherever an operator needs them, then pushes them down and simplifies as long as
there are fewer. Here the places of all operators are chosen together: for each operator and place,
the fewest moves, or those that cost least. That reaches whatever its rules reach.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

from slackwater.algebra.expr import Column, Expr
from slackwater.algebra.relation import (
    Aggregate,
    Bag,
    Distinct,
    Filter,
    Join,
    Project,
    Relation,
    Scan,
    SetOp,
    Sort,
    Union,
    Values,
    Window,
)
from slackwater.errors import InternalError
from slackwater.tvr.restrict import equi_keys
from slackwater.tvr.time import CHANGE
from slackwater.types import Schema


@dataclass(frozen=True, order=True)
class Place:
    """Where the rows of a relation are; `keys` are the columns by whose values they are spread."""

    kind: str
    keys: tuple[int, ...] = ()


DRIVER, ANYHOW, COPIED = Place("driver"), Place("anyhow"), Place("copied")


def by(*keys: int) -> Place:
    """Spread over the workers by the values of some columns."""
    return Place("by", keys)


def fits(place: Place, wanted: Place) -> bool:
    """Is what is in a place where it is wanted? Whoever takes rows from anywhere takes them from
    workers that have them by key."""
    return place == wanted or (wanted == ANYHOW and place.kind == "by")


@dataclass(frozen=True, eq=False)
class Move(Relation):
    """Rows that go from one place to another."""

    input: Relation
    source: Place
    target: Place

    @cached_property
    def schema(self) -> Schema:
        return self.input.schema

    @property
    def how(self) -> str:
        """What the move is called."""
        if self.target == DRIVER:
            return "gather"
        if self.target == COPIED:
            return "broadcast"
        return "scatter" if self.source == DRIVER else "repartition"


COPY_LEFT, COPY_RIGHT = "copy left", "copy right"
HASH_LEFT, HASH_RIGHT, MERGE = "hash left", "hash right", "merge"
MEETINGS = (COPY_LEFT, COPY_RIGHT, HASH_LEFT, HASH_RIGHT, MERGE)


@dataclass(frozen=True, eq=False)
class Meeting(Join):
    """A join that says how its sides meet: one is copied to wherever the other is, or both are
    spread by what they are joined by, and one is hashed there or both are sorted."""

    meets: str = MERGE

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.meets not in MEETINGS:
            raise InternalError(f"meeting {self.meets!r} is not known")


Cost = tuple[float, float, float, float]
"""Numbers that are compared one after the other."""
FREE: Cost = (0, 0, 0, 0)


class Toll(Protocol):
    """What it costs to move rows, and to compute something in a place."""

    def move(self, node: Relation, target: Place) -> Cost:
        """To have a relation in another place."""

    def operator(self, node: Relation, place: Place) -> Cost:
        """To compute it in a place rather than on the workers."""


class Fewest:
    """Moves; moves of more than a change; moves to the driver, and operators there, where nothing
    runs side by side: each counts one."""

    def __init__(self) -> None:
        self._small: dict[Relation, bool] = {}

    def move(self, node: Relation, target: Place) -> Cost:
        return (1, 0 if self._is_small(node) else 1, 1 if target == DRIVER else 0, 0)

    def operator(self, node: Relation, place: Place) -> Cost:
        return (0, 0, 0, 1) if place == DRIVER else FREE

    def _is_small(self, node: Relation) -> bool:
        """Is it a change, or made of changes alone?"""
        if node not in self._small:
            below = all(self._is_small(i) for i in node.inputs)
            small = node.source.endswith(CHANGE) if isinstance(node, Scan) else below
            self._small[node] = small
        return self._small[node]


@dataclass(frozen=True, eq=False)
class Placed:
    """A relation in a place: computed there from its inputs in their places, or moved there."""

    node: Relation
    place: Place
    inputs: tuple[Placed, ...] = ()
    cost: Cost = FREE
    is_moved: bool = False

    @cached_property
    def relation(self) -> Relation:
        """The relation with its moves."""
        if self.is_moved:
            (below,) = self.inputs
            return Move(below.relation, below.place, self.place)
        inputs = iter(self.inputs)
        made: Relation = self.node.with_children(lambda child: next(inputs).relation)
        return made

    def moves(self) -> list[Move]:
        """In the order in which they can be done."""
        return [node for node in self.relation.walk() if isinstance(node, Move)]


FEW_KEYS = 4
"""Of so many columns, each alone is tried as what rows are spread by."""
Where = Callable[[Scan], Place]
"""Where what is stored is."""
Options = dict[Place, Placed]


def placed(relation: Relation, where: Where, wanted: Place, toll: Toll | None = None) -> Placed:
    """A relation, computed with the cheapest moves, or the fewest, in the place where it is
    wanted."""
    return _Placing(where, toll or Fewest()).best(relation, wanted)


class _Placing:
    def __init__(self, where: Where, toll: Toll) -> None:
        self._where = where
        self._toll = toll
        self._options: dict[tuple[Relation, Place], Options] = {}
        self._best: dict[tuple[Relation, Place], Placed] = {}

    def best(self, node: Relation, wanted: Place) -> Placed:
        """The cheapest way to have a relation in a place: computed there, or moved there."""
        key = (node, wanted)
        if key not in self._best:
            found = [
                option if fits(option.place, wanted) else self._moved(node, option, wanted)
                for option in self._places_of(node, wanted).values()
            ]
            self._best[key] = min(found, key=lambda option: option.cost)
        return self._best[key]

    def _moved(self, node: Relation, option: Placed, wanted: Place) -> Placed:
        cost = _sum(option.cost, self._toll.move(node, wanted))
        return Placed(node, wanted, (option,), cost, is_moved=True)

    def _places_of(self, node: Relation, wanted: Place) -> Options:
        """The places in which a relation can be computed, with the fewest moves below it; the one
        that is wanted may be reached by moves far below."""
        key = (node, wanted)
        if key not in self._options:
            found: Options = {}
            for option in self._computed(node, wanted):
                known = found.get(option.place)
                if known is None or option.cost < known.cost:
                    found[option.place] = option
            self._options[key] = found
        return self._options[key]

    def _computed(self, node: Relation, wanted: Place) -> Iterator[Placed]:
        if isinstance(node, Scan):
            yield Placed(node, self._where(node))
        elif isinstance(node, Values):
            yield from (Placed(node, place) for place in (COPIED, DRIVER, ANYHOW))
        else:
            for everything in (DRIVER, COPIED):  # in one place: any operator
                yield self._together(node, [everything] * len(node.inputs), everything)
            yield from self._on_workers(node, wanted)

    def _together(self, node: Relation, places: list[Place], result: Place) -> Placed:
        """An operator over its inputs in some places."""
        inputs = tuple(self.best(i, p) for i, p in zip(node.inputs, places, strict=True))
        cost = self._toll.operator(node, result)
        for one in inputs:
            cost = _sum(cost, one.cost)
        return Placed(node, result, inputs, cost)

    def _on_workers(self, node: Relation, wanted: Place) -> Iterator[Placed]:
        match node:
            case Filter() | Sort():
                for place in self._spread(node.inputs, wanted):
                    yield self._together(node, [place], place)
            case Project():
                for place in self._spread(node.inputs, _before(wanted, node.exprs)):
                    yield self._together(node, [place], _after(place, node.exprs))
            case Union():
                for place in self._spread(node.parts, wanted, ANYHOW):
                    yield self._together(node, [place] * len(node.parts), place)
            case Join():
                yield from self._joined(node, wanted)
            case Aggregate():
                plain = {k.index: i for i, k in enumerate(node.keys) if isinstance(k, Column)}
                for keys in self._subsets(node.input, list(plain), _before(wanted, node.keys)):
                    result = by(*(plain[k] for k in keys))
                    yield self._together(node, [by(*keys)], result)
            case Distinct() | Bag() | SetOp():
                every = list(range(node.width))
                for keys in self._subsets(node.inputs[0], every, wanted):
                    yield self._together(node, [by(*keys)] * len(node.inputs), by(*keys))
            case Window():
                shared = set.intersection(*(set(c.partition_by) for c in node.calls))
                plain = {k.index: k.index for k in shared if isinstance(k, Column)}
                for keys in self._subsets(node.input, sorted(plain), wanted):
                    yield self._together(node, [by(*keys)], by(*keys))

    def _spread(self, nodes: Iterable[Relation], *more: Place) -> list[Place]:
        """The places on workers in which some relations can be computed, and more of use."""
        found = set(more)
        for node in nodes:
            found.update(self._places_of(node, ANYHOW))
        return sorted(found - {DRIVER})

    def _subsets(
        self, below: Relation, keys: list[int], wanted: Place
    ) -> Iterator[tuple[int, ...]]:
        """Of some columns those by which rows are spread already or wanted, each alone where there
        are few, and all: rows that agree in all columns are together then."""
        places = (p.keys for p in self._spread([below], wanted))
        found = [own for own in places if own and set(own) <= set(keys)]
        found += [(k,) for k in keys] if len(keys) <= FEW_KEYS else []
        yield from dict.fromkeys([*found, *([tuple(keys)] if keys else [])])

    def _joined(self, join: Join, wanted: Place) -> Iterator[Placed]:
        width = join.left.width
        pairs = [
            (a.index, b.index)
            for a, b in equi_keys(join)
            if isinstance(a, Column) and isinstance(b, Column)
        ]
        for some in [[pair] for pair in pairs] + ([pairs] if len(pairs) > 1 else []):
            sides = [by(*(a for a, _ in some)), by(*(b for _, b in some))]
            yield self._together(join, sides, sides[0])
            if join.how == "inner":
                yield self._together(join, sides, _shifted(sides[1], width))
        if join.how in ("inner", "left", "semi", "anti"):
            own = wanted if all(k < width for k in wanted.keys) else ANYHOW
            for place in self._spread([join.left], own):
                yield self._together(join, [place, COPIED], place)
        if join.how == "inner":
            own = _shifted(wanted, -width) if all(k >= width for k in wanted.keys) else ANYHOW
            for place in self._spread([join.right], own):
                yield self._together(join, [COPIED, place], _shifted(place, width))


def _sum(a: Cost, b: Cost) -> Cost:
    return (a[0] + b[0], a[1] + b[1], a[2] + b[2], a[3] + b[3])


def _shifted(place: Place, width: int) -> Place:
    return Place(place.kind, tuple(k + width for k in place.keys))


def _after(place: Place, exprs: tuple[Expr, ...]) -> Place:
    """The same by the columns of a projection; anyhow, where it has lost them."""
    where = {e.index: i for i, e in enumerate(exprs) if isinstance(e, Column)}
    if not set(place.keys) <= set(where):
        return ANYHOW
    return Place(place.kind, tuple(where[k] for k in place.keys))


def _before(wanted: Place, exprs: tuple[Expr, ...]) -> Place:
    """The same by the columns that a projection takes; anyhow, where it computes some of them."""
    keys = []
    for k in wanted.keys:
        expr = exprs[k] if k < len(exprs) else None
        if not isinstance(expr, Column):
            return ANYHOW
        keys.append(expr.index)
    return Place(wanted.kind, tuple(keys))
