"""References between tables, and what they spare a join's change.

Let every row of L name one row of O by its key k, at every time, and let no key of O both come and
go in a change. Rows of O that come then have no partner in the old L, rows that go have none in
the new L, and

    Δ(L ⋈ₖ O) = ΔL ⋈ₖ (O + ΔO⁺)        ΔO⁺: what comes

so that L is not read. This holds as well where L is joined with others, or filtered, and where O
is filtered.

If, besides, all keys in ΔL are in ΔO, then what changes are *whole keys*: before they come and
after they go, no row has them. All rows of a join by such a key that change are made of rows that
do, and |ΔO|, what comes and what goes alike, are their partners:

    Δ(L ∘ₖ O) = ΔL ∘ₖ |ΔO|        for ⋈, ⟕, ⋉ and ▷ of any relations of which whole keys change
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

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
    Sort,
    Window,
)
from slackwater.tvr.restrict import equi_keys


@dataclass(frozen=True)
class Reference:
    """Columns of a source whose values, where none is NULL, are those of one row of another.
    `whole`: the keys in the change of the one are all in the change of the other."""

    source: str
    columns: tuple[str, ...]
    target: str
    theirs: tuple[str, ...]
    whole: bool = False


@dataclass(frozen=True)
class Promises:
    """What users promise of sources: columns, by source, whose values no two rows share, and
    references to sources of which no key both comes and goes in a change."""

    keys: frozenset[tuple[str, tuple[str, ...]]] = frozenset()
    references: frozenset[Reference] = frozenset()


NO_PROMISES = Promises()


@dataclass(frozen=True)
class Order:
    """The order in which the inputs of a join change, one after the other: the change of one meets
    those before it as they have become, those after it as they were. A change of `spared` inputs
    meets nothing, and later changes meet them with what comes and with what goes."""

    inputs: tuple[int, ...]
    spared: frozenset[int]

    def is_before(self, i: int, j: int) -> bool:
        """Has input i changed already when j does?"""
        return self.inputs.index(i) < self.inputs.index(j)


def order(
    inputs: Sequence[Relation],
    equalities: Callable[[int, int], Sequence[tuple[Expr, Expr]]],
    references: Collection[Reference],
) -> Order:
    """The order in which inputs of an inner join with equalities between two of them change."""
    by: dict[int, int] = {}  # an input, and one that references it
    targets = {r.target for r in references}
    for j, theirs in enumerate(inputs):
        if targets.isdisjoint(scan.source for scan in theirs.scans()):
            continue
        for i, ours in enumerate(inputs):
            if i != j and j not in by and not _leads_to(by, i, j):
                pairs = equalities(i, j)
                if any(_is_met(ours, theirs, pairs, r) for r in references):
                    by[j] = i
    return Order(tuple(_in_turn(len(inputs), by)), frozenset(by))


def _leads_to(by: Mapping[int, int], i: int, j: int) -> bool:
    """Is i referenced by j, by way of others or not?"""
    while i in by:
        i = by[i]
        if i == j:
            return True
    return False


def _in_turn(count: int, by: Mapping[int, int]) -> Iterator[int]:
    """From the first input to the last, but none before those that it references."""
    waiting = list(range(count))
    while waiting:
        following = next(i for i in waiting if not any(by.get(j) == i for j in waiting))
        waiting.remove(following)
        yield following


def _is_met(
    ours: Relation, theirs: Relation, pairs: Sequence[tuple[Expr, Expr]], reference: Reference
) -> bool:
    """Do the equalities between two inputs say that one references the other?"""
    for column, key in zip(reference.columns, reference.theirs, strict=True):
        if not any(
            origin(ours, a) == (reference.source, column)
            and origin(theirs, b, rows_only=True) == (reference.target, key)
            for a, b in pairs
        ):
            return False
    return True


def origin(relation: Relation, expr: Expr, rows_only: bool = False) -> tuple[str, str] | None:
    """The source and column that each value of an expression comes from; with `rows_only`, only
    where each row is a row of that source, others left out."""
    if not isinstance(expr, Column):
        return None
    match relation:
        case Scan(source, _, fields):
            return source, fields[expr.index].name
        case Filter(input):
            return origin(input, expr, rows_only)
        case Project(input, exprs):
            return origin(input, exprs[expr.index], rows_only)
    return None if rows_only else _origin_among(relation, expr)


def _origin_among(relation: Relation, column: Column) -> tuple[str, str] | None:
    """Where values come from through operators that mix rows."""
    match relation:
        case Sort(input) | Distinct(input) | Bag(input):
            return origin(input, column)
        case Aggregate(input, keys) if column.index < len(keys):
            return origin(input, keys[column.index])
        case Window(input) if column.index < input.width:
            return origin(input, column)
        case Join(left, right, how):
            width = left.width
            if column.index < width:
                return origin(left, column) if how in ("inner", "left", "semi", "anti") else None
            at = Column(column.type, column.nullable, column.index - width)
            return origin(right, at) if how == "inner" else None
    return None


# -- whole keys

Keys = frozenset[tuple[str, str]]
"""Columns of sources that hold one kind of key of which whole ones change."""


def kinds(references: Iterable[Reference]) -> list[Keys]:
    """The kinds of keys, of one column each, of which whole ones change."""
    found: dict[tuple[str, str], set[tuple[str, str]]] = {}
    for r in references:
        if r.whole and len(r.columns) == 1:
            found.setdefault((r.target, r.theirs[0]), set()).add((r.source, r.columns[0]))
    return [frozenset({target, *sources}) for target, sources in found.items()]


@dataclass(frozen=True)
class Whole:
    """Tells where only rows with whole keys change."""

    keys: Keys
    changes: Callable[[Relation], bool]

    def of(self, relation: Relation, expr: Expr) -> bool:
        """Is an expression the key, and does each row that changes hold one that changes?"""
        return origin(relation, expr) in self.keys and self._within(relation, expr)

    def _within(self, relation: Relation, expr: Expr) -> bool:
        """Does every row of the relation's change hold a changed key there?"""
        if not self.changes(relation):
            return True
        if not isinstance(expr, Column):
            return False
        match relation:
            case Scan(source, _, fields):
                return (source, fields[expr.index].name) in self.keys
            case Filter(input) | Sort(input) | Distinct(input):
                return self._within(input, expr)
            case Project(input, exprs):
                return self._within(input, exprs[expr.index])
            case Aggregate(input, keys):
                return expr.index < len(keys) and self._within(input, keys[expr.index])
            case Join(how="inner" | "left" | "semi" | "anti"):
                return self._joined(relation, expr)
        return False

    def _joined(self, join: Join, column: Column) -> bool:
        """Both sides change in rows with changed keys alone, and they are joined by them."""
        width = join.left.width
        if column.index >= width:
            if join.how != "inner":
                return False
            at = Column(column.type, column.nullable, column.index - width)
            others = [a for a, b in equi_keys(join) if _is_at(b, at.index)]
            return self._within(join.right, at) and self._any(join.left, others)
        others = [b for a, b in equi_keys(join) if _is_at(a, column.index)]
        return self._within(join.left, column) and self._any(join.right, others)

    def _any(self, side: Relation, columns: Iterable[Expr]) -> bool:
        return not self.changes(side) or any(self._within(side, column) for column in columns)


def _is_at(expr: Expr, place: int) -> bool:
    return isinstance(expr, Column) and expr.index == place
