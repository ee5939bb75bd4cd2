"""Higher-order maintenance of outer and semi joins: what a right side is joined with is kept.

    (C ⟕ R) ⋈ T = (C ⋈ T) ⟕ R        where T is joined by columns of C; and ⋉, ▷ likewise

The joins down the left sides of a query, its *spine*, may come in any order in which each finds the
columns that it reads. A change of R then meets all else, joined already.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from slackwater.algebra.expr import Column, Expr, columns, remap, used_columns
from slackwater.algebra.relation import Join, Project, Relation
from slackwater.tvr.memo import Memo, Rewrite
from slackwater.tvr.methods.higher_order import METHOD, Part
from slackwater.tvr.rules import Operators

KINDS = ("inner", "left", "semi", "anti")


@dataclass(frozen=True)
class Rib:
    """One join of a spine: its right side, whose columns begin at a place of the row of all, and
    its condition over that row."""

    how: str
    right: Relation
    start: int
    condition: Expr

    @property
    def own(self) -> range:
        """The places of its right side's columns."""
        return range(self.start, self.start + self.right.width)

    @property
    def read(self) -> set[int]:
        """The places of other columns that it reads."""
        return used_columns(self.condition) - set(self.own)


@dataclass(frozen=True)
class Spine:
    """What is at the lower end, the joins from there up, where the columns of the uppermost are in
    the row of all, and the joins as they are."""

    core: Relation
    ribs: tuple[Rib, ...]
    places: tuple[int, ...]
    joins: frozenset[Relation]


def spine(join: Join) -> Spine:
    """The spine below and including a join."""
    ribs: list[Rib] = []
    ends: list[Relation] = []
    joins: set[Relation] = set()

    def visit(node: Relation) -> list[int]:
        """Where the columns of a node are."""
        if isinstance(node, Join) and node.how in KINDS:
            joins.add(node)
            places = visit(node.left)
            start = ends[0].width + sum(rib.right.width for rib in ribs)
            row = [*places, *range(start, start + node.right.width)]
            condition = remap(node.condition, row.__getitem__)
            ribs.append(Rib(node.how, node.right, start, condition))
            return row if node.how in ("inner", "left") else places
        if _leaves_columns_out(node):
            below = visit(node.inputs[0])
            return [below[e.index] for e in node.expressions if isinstance(e, Column)]
        ends.append(node)
        return list(range(node.width))

    found = tuple(visit(join))
    return Spine(ends[0], tuple(ribs), found, frozenset(joins))


def spines(root: Relation) -> Iterator[tuple[Join, Spine]]:
    """The spines of a query that are not part of larger ones, by their uppermost joins."""
    seen: set[Relation] = set()
    for node in reversed(list(root.walk())):  # those above first
        if isinstance(node, Join) and node.how in KINDS and node not in seen:
            found = spine(node)
            seen |= found.joins
            yield node, found


def _leaves_columns_out(node: Relation) -> bool:
    """Is it nothing but columns of a join?"""
    if type(node) is not Project or not all(isinstance(e, Column) for e in node.exprs):
        return False
    return isinstance(node.input, Join) or _leaves_columns_out(node.input)


def last_of_all(memo: Memo, node: Relation) -> Iterator[Relation]:
    """(C ⟕ R) ⋈ T = (C ⋈ T) ⟕ R, for each right side R that changes and is not joined last"""
    assert isinstance(node, Join)
    found = spine(node)
    if isinstance(found.core, Part):
        return  # it has been put in another order already
    names = tuple(f.name for f in node.schema)
    for i, rib in enumerate(found.ribs):
        if rib.how != "inner" and memo.changes(rib.right) and _can_wait(found, i):
            yield _reordered(found, rib, names)


def _can_wait(whole: Spine, i: int) -> bool:
    """Is there a join after this one, and does none read its columns?"""
    return i + 1 < len(whole.ribs) and _is_read_by_none(whole, i)


def _is_read_by_none(whole: Spine, i: int) -> bool:
    own = set(whole.ribs[i].own)
    return not any(rib.read & own for rib in whole.ribs[i + 1 :])


def with_one_last(join: Join, whole: Spine) -> Iterator[tuple[Relation, Project]]:
    """Each right side of a spine that may be joined last, over all others as a part, and that
    form of the spine."""
    names = tuple(f.name for f in join.schema)
    for i, rib in enumerate(whole.ribs):
        if rib.how != "inner" and len(whole.ribs) > 1 and _is_read_by_none(whole, i):
            yield rib.right, _reordered(whole, rib, names)


def _reordered(whole: Spine, last: Rib, names: tuple[str, ...]) -> Project:
    """The spine with one of its joins done last, over all others as a part."""
    others = [rib for rib in whole.ribs if rib is not last]
    joined, places = _joined(whole.core, {c: c for c in range(whole.core.width)}, others)
    read = sorted((set(whole.places) | last.read) & places.keys())
    row = columns(joined.schema)
    part = Part(joined, tuple(row[places[c]] for c in read), tuple(f"c{i}" for i in read))
    done, places = _joined(part, {c: i for i, c in enumerate(read)}, [last])
    row = columns(done.schema)
    return Project(done, tuple(row[places[c]] for c in whole.places), names)


def _joined(
    relation: Relation, places: dict[int, int], ribs: Iterable[Rib]
) -> tuple[Relation, dict[int, int]]:
    """Joins done one after the other, and where the columns of the row of all are then."""
    for rib in ribs:
        at = relation.width
        both = places | {c: at + i for i, c in enumerate(rib.own)}
        relation = Join(relation, rib.right, rib.how, remap(rib.condition, both.__getitem__))
        places = both if rib.how in ("inner", "left") else places
    return relation, places


REWRITES = (Rewrite("last_of_all", METHOD, last_of_all, Operators((Join,), joins=KINDS)),)
