"""Higher-order maintenance (002, 3): what a change is joined with is kept, joined already.

    R ⋈ S ⋈ T ⋈ U = R ⋈ C₁ ⋈ C₂ ⋈ …        Cᵢ: the parts of the rest that R alone holds together

A change of R meets the parts as they are kept; each part, a query of fewer inputs, is maintained
in the same way. Rows with weights are summed up by all their columns, so that a part, projected to
the columns that anyone reads, is the aggregate that the viewlet transform pushes below the join.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from slackwater.algebra.expr import (
    Column,
    Expr,
    columns,
    conjunction,
    conjuncts,
    remap,
    substitute,
    used_columns,
)
from slackwater.algebra.relation import Filter, Join, Project, Relation, Scan
from slackwater.tvr.laws.joins import Inner
from slackwater.tvr.memo import Memo, Rewrite
from slackwater.tvr.rules import Operators

METHOD = "higher_order"

Piece = tuple[Relation, dict[int, int]]
"""A relation, and where the columns of a join's whole row are in it."""


@dataclass(frozen=True, eq=False)
class Part(Project):
    """Some inputs of a join, joined: a relation of its own, not to be taken apart again."""


@dataclass(frozen=True)
class Spread:
    """Nested inner joins, columns left out between them or not, as one: its inputs and conditions,
    where the columns of the outermost join are in the row of all inputs, the joins, and which
    inputs they join."""

    inner: Inner
    places: tuple[int, ...]
    joins: frozenset[Relation]
    joined: frozenset[tuple[int, ...]]

    def read_outside(self, own: set[int]) -> list[int]:
        """Which of an input's, or some inputs', columns are read from outside of them."""
        crossing = [used_columns(c) for c in self.inner.conditions]
        read = set(self.places).union(*(used for used in crossing if not used <= own))
        return sorted(read & own)


def spread(join: Join) -> Spread:
    """An inner join as one of all inputs below it."""
    inputs: list[Relation] = []
    conditions: list[Expr] = []
    joins: set[Relation] = set()
    joined: set[tuple[int, ...]] = set()

    def visit(node: Relation) -> list[int]:
        """Where the columns of a node are."""
        if isinstance(node, Join) and node.how == "inner":
            first = len(inputs)
            places = [*visit(node.left), *visit(node.right)]
            joins.add(node)
            joined.add(tuple(range(first, len(inputs))))
            conditions.extend(remap(c, places.__getitem__) for c in conjuncts(node.condition))
            return places
        if _leaves_columns_out(node):
            below = visit(node.inputs[0])
            return [below[e.index] for e in node.expressions if isinstance(e, Column)]
        start = sum(r.width for r in inputs)
        inputs.append(node)
        return list(range(start, start + node.width))

    found = tuple(visit(join))
    inner = Inner(tuple(inputs), tuple(conditions))
    return Spread(inner, found, frozenset(joins), frozenset(joined))


def _leaves_columns_out(node: Relation) -> bool:
    """Is it nothing but columns of an inner join?"""
    if type(node) is not Project or not all(isinstance(e, Column) for e in node.exprs):
        return False
    below = node.input
    return (isinstance(below, Join) and below.how == "inner") or _leaves_columns_out(below)


def whole_joins(root: Relation) -> Iterator[Join]:
    """Inner joins that are not part of a larger one."""
    seen: set[Relation] = set()
    for node in reversed(list(root.walk())):  # those above first
        if isinstance(node, Join) and node.how == "inner" and node not in seen:
            seen |= spread(node).joins
            yield node


Apart = Callable[[Relation], bool]
"""Is an input of a join, by itself, worth keeping?"""


def _never(node: Relation) -> bool:
    return False


def is_joined(node: Relation) -> bool:
    """Is it what an outer, semi or anti join gives? It is computed for every change of others."""
    while isinstance(node, Filter | Project):
        node = node.input
    return isinstance(node, Join)


def is_joined_or_less(node: Relation) -> bool:
    """Or is it some rows of a stored relation, and not all of them?"""
    below = list(node.walk())
    simple = all(isinstance(r, Filter | Project | Scan) for r in below)
    return is_joined(node) or (simple and any(isinstance(r, Filter) for r in below))


def around_changes(memo: Memo, node: Relation) -> Iterator[Relation]:
    """π(R ⋈ S ⋈ T) = π(R ⋈ (S ⋈ T)), around each input that changes, and each part that does"""
    join = node.input if isinstance(node, Project) else node
    if not isinstance(join, Join) or join.how != "inner":
        return
    whole = spread(join)
    if node is not join and any(isinstance(r, Part) for r in whole.inner.inputs):
        return  # it has been put around something already
    changing = {i for i, r in enumerate(whole.inner.inputs) if memo.changes(r)}
    for middle in _middles(whole.inner, changing):
        found = _around(whole, join, middle)
        if found is not None:
            yield _picked(node, found) if isinstance(node, Project) else found


def _middles(inner: Inner, changing: set[int]) -> Iterator[tuple[int, ...]]:
    """What changes, by itself: an input, or the part that another one is joined with."""
    found = [(i,) for i in sorted(changing)]
    parts = (tuple(p) for i in sorted(changing) for p in components(inner, i))
    yield from dict.fromkeys([*found, *(p for p in parts if changing.intersection(p))])


def _picked(node: Project, form: Project) -> Project:
    """A projection of what is a projection itself, as one."""
    exprs = tuple(substitute(e, form.exprs) for e in node.exprs)
    return Project(form.input, exprs, node.names)


def around(join: Join, pivot: int, apart: Apart = is_joined) -> Project | None:
    """An inner join as one of its inputs joined with parts: several inputs joined, or one that is
    worth keeping by itself; None where there are none."""
    return _around(spread(join), join, (pivot,), apart)


def _around(
    whole: Spread, join: Join, middle: tuple[int, ...], apart: Apart = _never
) -> Project | None:
    """The same around some inputs."""
    found = [_part(whole, part, apart) for part in components(whole.inner, *middle)]
    return _together(whole, join, [_part(whole, middle), *found], found)


def divided(whole: Spread, join: Join, groups: Iterable[Sequence[int]]) -> Project | None:
    """An inner join as groups of its inputs: a part for several, and for one that is worth keeping
    by itself, be it some rows of a stored relation; None where there is none."""
    pieces = [_part(whole, group, is_joined_or_less) for group in groups]
    return _together(whole, join, pieces, pieces)


def _together(
    whole: Spread, join: Join, pieces: list[Piece], kept: Iterable[Piece]
) -> Project | None:
    """Pieces joined to what a join gives; None where none of those that may be kept is a part."""
    if all(not isinstance(r, Part) or r in whole.inner.inputs for r, _ in kept):
        return None
    joined, places = _joined(pieces, whole.inner.conditions)
    row = columns(joined.schema)
    names = tuple(f.name for f in join.schema)
    return Project(joined, tuple(row[places[i]] for i in whole.places), names)


def parts(form: Relation) -> list[Relation]:
    """The parts of joins that were put in another order."""
    if isinstance(form, Part):
        return [form]
    return [part for child in form.inputs for part in parts(child)]


def components(inner: Inner, *middle: int) -> Iterator[list[int]]:
    """The other inputs, put together where a condition that does not speak of those in the middle
    connects them."""
    owner = [i for i, r in enumerate(inner.inputs) for _ in range(r.width)]
    left = [i for i in range(len(inner.inputs)) if i not in middle]
    links = [{owner[c] for c in used_columns(condition)} for condition in inner.conditions]
    links = [link for link in links if link.isdisjoint(middle)]
    while left:
        part, news = {left[0]}, True
        while news:
            more = {i for link in links if link & part for i in link}
            news = not more <= part
            part |= more
        left = [i for i in left if i not in part]
        yield sorted(part)


def _part(whole: Spread, part: Sequence[int], apart: Apart = _never) -> Piece:
    """A part as a relation of its own, with the columns that others read."""
    relation, places = piece(whole.inner, part)
    if len(part) == 1 and not apart(relation):
        return relation, places
    row = columns(relation.schema)
    order = whole.read_outside(set(places))
    names = tuple(f"c{i}" for i in range(len(order)))
    own = Part(relation, tuple(row[places[c]] for c in order), names)
    return own, {c: at for at, c in enumerate(order)}


def piece(inner: Inner, inputs: Iterable[int]) -> Piece:
    """Inputs joined by all conditions that speak of them alone."""
    pieces = [_input(inner, i) for i in inputs]
    reached = {c for _, places in pieces for c in places}
    return _joined(pieces, [c for c in inner.conditions if used_columns(c) <= reached])


def _input(inner: Inner, i: int) -> Piece:
    start, relation = inner.start(i), inner.inputs[i]
    places = {start + c: c for c in range(relation.width)}
    own = [c for c in inner.conditions if used_columns(c) and used_columns(c) <= places.keys()]
    if own:
        relation = Filter(relation, conjunction([remap(c, places.__getitem__) for c in own]))
    return relation, places


def _joined(pieces: list[Piece], conditions: Iterable[Expr]) -> Piece:
    """Pieces joined one after the other, what is connected first, by the conditions that do not
    hold within a piece already."""
    (joined, places), *left = pieces
    waiting = [c for c in conditions if not any(holds(c, own) for _, own in pieces)]
    while left:
        following = next((p for p in left if _meets(p, places, waiting)), left[0])
        left.remove(following)
        relation, own = following
        at = joined.width
        places = places | {c: at + place for c, place in own.items()}
        ready = [c for c in waiting if used_columns(c) <= places.keys()]
        waiting = [c for c in waiting if c not in ready]
        condition = conjunction([remap(c, places.__getitem__) for c in ready])
        joined = Join(joined, relation, "inner", condition)
    return joined, places


def holds(condition: Expr, places: Collection[int]) -> bool:
    """Does a condition speak of some columns alone?"""
    used = used_columns(condition)
    return bool(used) and used.issubset(places)


def _meets(piece: Piece, places: dict[int, int], waiting: list[Expr]) -> bool:
    _, own = piece
    return any(
        used_columns(c) & own.keys() and used_columns(c) <= own.keys() | places.keys()
        for c in waiting
    )


INNER_JOINS = Operators((Join, Project), joins=("inner",))

REWRITES = (Rewrite("around_changes", METHOD, around_changes, INNER_JOINS),)
