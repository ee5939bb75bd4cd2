"""Restriction to keys: σ(key ∈ K)(R), computed as deep down as the keys can be followed.

K is a relation of distinct keys, NULLs equal. What is read of the inputs then depends on K, not
on their size.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from slackwater.algebra.expr import (
    Call,
    Column,
    Expr,
    columns,
    conjunction,
    conjuncts,
    shift,
    substitute,
    used_columns,
)
from slackwater.algebra.relation import (
    Aggregate,
    Bag,
    Distinct,
    Filter,
    Join,
    Project,
    Relation,
    SetOp,
    Sort,
    Union,
    Values,
    Window,
)
from slackwater.types import BOOLEAN

Keys = tuple[Expr, ...]


class Restrictable(Relation):
    """A relation that knows itself what it is when it is restricted."""

    def restricted(self, keys: Keys, wanted: Relation) -> Relation | None:
        """It, restricted to keys; None, as here, where only its rows can be."""
        return None


def restrict(relation: Relation, keys: Keys, wanted: Relation) -> Relation:
    """The rows of a relation whose keys are in `wanted` (a relation of distinct keys)."""
    if not keys:
        return relation
    match relation:
        case Filter():
            return relation.replace(input=restrict(relation.input, keys, wanted))
        case Sort() | Distinct() | Bag():
            return relation.replace(input=restrict(relation.input, keys, wanted))
        case Project():
            below = tuple(substitute(k, relation.exprs) for k in keys)
            return relation.replace(input=restrict(relation.input, below, wanted))
        case Union():
            return Union(tuple(restrict(p, keys, wanted) for p in relation.parts))
        case SetOp():
            left = restrict(relation.left, keys, wanted)
            return relation.replace(left=left, right=restrict(relation.right, keys, wanted))
        case Join():
            return _join(relation, keys, wanted)
        case Aggregate():
            return _grouped(relation, keys, wanted)
        case Window():
            return _windowed(relation, keys, wanted)
        case Restrictable() if (own := relation.restricted(keys, wanted)) is not None:
            return own
    return semi_join(relation, keys, wanted)


def distinct_keys(changes: Sequence[Relation], keys: Sequence[Keys]) -> Relation:
    """The distinct values of the keys of some relations, as one relation."""
    names = tuple(f"k{i}" for i in range(len(keys[0])))
    found = [Project(rows, own, names) for rows, own in zip(changes, keys, strict=True)]
    return Distinct(found[0] if len(found) == 1 else Union(tuple(found)))


def semi_join(relation: Relation, keys: Keys, wanted: Relation) -> Relation:
    """The restriction done right here."""
    if isinstance(relation, Values) and not relation.rows:
        return relation
    theirs = columns(wanted.schema, relation.width)
    same = [_same(ours, other) for ours, other in zip(keys, theirs, strict=True)]
    return Join(relation, wanted, "semi", conjunction(same))


def _same(ours: Expr, other: Expr) -> Expr:
    """Equal, NULLs too; where there are none, a plain equality, which engines know best."""
    name = "<=>" if ours.nullable and other.nullable else "="
    return Call(BOOLEAN, name == "=" and (ours.nullable or other.nullable), name, (ours, other))


def chosen(wanted: Relation, places: Sequence[int]) -> Relation:
    """The distinct values of some of the key columns."""
    if list(places) == list(range(wanted.width)):
        return wanted
    row = columns(wanted.schema)
    names = tuple(wanted.schema[i].name for i in places)
    return Distinct(Project(wanted, tuple(row[i] for i in places), names))


def equi_keys(join: Join) -> list[tuple[Expr, Expr]]:
    """(left side, right side over its own row) of the join's equalities."""
    sides = (equal_sides(part, join.left.width) for part in conjuncts(join.condition))
    return [pair for pair in sides if pair is not None]


@lru_cache(maxsize=2**14)
def equal_sides(part: Expr, width: int) -> tuple[Expr, Expr] | None:
    """The sides of an equality between both inputs of a join, the left of which has so many
    columns; each side over its own row."""
    if isinstance(part, Call) and part.name in ("=", "<=>"):
        for a, b in (part.args, part.args[::-1]):
            left, right = used_columns(a), used_columns(b)
            if left and right and max(left) < width <= min(right):
                return a, shift(b, -width)
    return None


def _join(join: Join, keys: Keys, wanted: Relation) -> Relation:
    """Each side is restricted by the keys that can be told from it, over equalities too.

    A left (semi, anti) join keeps or drops a left row by its own partners alone, so keys of the
    left row may choose left rows, and right rows that equal them. Keys of the right side choose
    nothing there: unmatched rows have NULL instead. Right and full joins are restricted on top.
    """
    if join.how in ("right", "full"):
        return semi_join(join, keys, wanted)
    width, pairs = join.left.width, equi_keys(join)
    left_keys = [_of_left(k, width, pairs, join.how) for k in keys]
    right_keys = [_of_right(k, width, pairs, join.how) for k in keys]
    narrowed = join.replace(
        left=_side(join.left, left_keys, wanted), right=_side(join.right, right_keys, wanted)
    )
    settled = None not in left_keys or (join.how == "inner" and None not in right_keys)
    return narrowed if settled else semi_join(narrowed, keys, wanted)


def _side(side: Relation, keys: list[Expr | None], wanted: Relation) -> Relation:
    places = [i for i, k in enumerate(keys) if k is not None]
    if not places:
        return side
    own = tuple(k for k in keys if k is not None)
    return restrict(side, own, chosen(wanted, places))


def _of_left(key: Expr, width: int, pairs: list[tuple[Expr, Expr]], how: str) -> Expr | None:
    places = used_columns(key)
    if places and max(places) < width:
        return key
    if how == "inner":
        return next((a for a, b in pairs if shift(b, width) is key), None)
    return None


def _of_right(key: Expr, width: int, pairs: list[tuple[Expr, Expr]], how: str) -> Expr | None:
    places = used_columns(key)
    if places and min(places) >= width:
        return shift(key, -width) if how == "inner" else None
    return next((b for a, b in pairs if a is key), None)


def _grouped(node: Aggregate, keys: Keys, wanted: Relation) -> Relation:
    """Keys that are grouping keys choose whole groups, so the input can be restricted."""
    places = [i for i, k in enumerate(keys) if isinstance(k, Column) and k.index < len(node.keys)]
    if not places:
        return semi_join(node, keys, wanted)
    own = tuple(
        node.keys[k.index] for i, k in enumerate(keys) if i in places and isinstance(k, Column)
    )
    narrowed = node.replace(input=restrict(node.input, own, chosen(wanted, places)))
    if len(places) == len(keys):
        return narrowed
    return semi_join(narrowed, keys, wanted)


def _windowed(node: Window, keys: Keys, wanted: Relation) -> Relation:
    """Keys by which every window is partitioned choose whole partitions."""
    shared = set(node.calls[0].partition_by)
    for call in node.calls[1:]:
        shared &= set(call.partition_by)
    places = [i for i, k in enumerate(keys) if k in shared]
    if not places:
        return semi_join(node, keys, wanted)
    own = tuple(keys[i] for i in places)
    narrowed = node.replace(input=restrict(node.input, own, chosen(wanted, places)))
    return narrowed if len(places) == len(keys) else semi_join(narrowed, keys, wanted)
