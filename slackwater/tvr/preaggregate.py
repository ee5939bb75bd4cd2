"""A change is summed up before it is joined, where that pays.

    γ[g; Σ f·w](ΔR ⋈ S) = γ[g; Σ pf·w_S](γ[k; Σ f·w as pf, Σ w](ΔR) ⋈ S)

k are the columns of ΔR that are read later: by g, by join conditions and filters, and by sums that
read S, too. A value f that reads ΔR alone is summed below the join, all others above it, over rows
put together. The same holds for ⟕, ⋉ and ▷, which keep or widen each row of ΔR by itself.

Only exact sums are moved, and only values that never raise: below the join they are computed for
rows, too, that the join drops. (002, 3.4.3 and 4.5.)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from slackwater.algebra.expr import (
    Call,
    Column,
    Expr,
    columns,
    substitute,
    transform,
    used_columns,
)
from slackwater.algebra.fold import folded
from slackwater.algebra.relation import Filter, Join, Project, Relation, Scan, Union
from slackwater.tvr import zset
from slackwater.tvr.partials import EXACT_SCALE, ROWS, Partial, share, summed, times
from slackwater.tvr.push import never_raises
from slackwater.tvr.time import CHANGE
from slackwater.types import WEIGHT, Atomic, Decimal, is_integral

Pays = Callable[[str, Relation, tuple[Expr, ...]], bool]
"""Does it pay, for a state, to sum up a change by these keys?"""

MODES = ("auto", "on", "off")
"""What a warehouse may be told: to sum up changes where it pays, wherever it can be, never."""
SUMMING_A_ROW = 4
"""What it costs to sum up a row, in rows that come out of a join."""
SPARE_DIGITS = 6
"""So many digits more than its values has the sum of a change: a million times the largest. What
needs still more raises, and the view is computed anew."""

_ROW_WISE = ("inner", "left", "semi", "anti")
_QUIET = frozenset("case coalesce year quarter month day substring".split())
_EXACT = frozenset("+ - *".split())
_GROUPED = frozenset(
    "boolean byte short integer long string binary date timestamp timestamp_ntz".split()
)


def never(state: str, change: Relation, keys: tuple[Expr, ...]) -> bool:
    """Leave changes as they are."""
    return False


def always(state: str, change: Relation, keys: tuple[Expr, ...]) -> bool:
    """Sum changes up wherever it can be done."""
    return True


def is_worthwhile(rows: float, groups: float, matches: float, fixed: float) -> bool:
    """Does it pay to sum up so many rows in so many groups, each of which gives `matches` rows
    when it is joined? `fixed` is what it costs for any number of rows.

    >>> is_worthwhile(100_000, 10_000, matches=80, fixed=100_000)
    True
    >>> is_worthwhile(100_000, 10_000, matches=1, fixed=100_000)  # a key of the other side
    False
    >>> is_worthwhile(100_000, 99_000, matches=80, fixed=100_000)  # nothing shrinks
    False
    """
    return (rows - groups) * matches >= fixed + rows * SUMMING_A_ROW


def preaggregated(
    z: Relation,
    keys: Sequence[Expr],
    partials: Sequence[Partial],
    names: Sequence[str],
    pays: Callable[[Relation, tuple[Expr, ...]], bool],
    is_joined: bool = False,
) -> Relation | None:
    """Keys, and what to add to each sum, of a change whose parts are summed up before they are
    joined; None where that pays for no part. The last partial is the row count.

    `is_joined`: the result itself is to be joined.
    """
    terms = _terms(z)
    made = [_preaggregated(term, keys, partials, names, pays, is_joined) for term in terms]
    if not any(made):
        return None
    pairs = zip(terms, made, strict=True)
    return zset.plus([found or _as_is(term, keys, partials, names) for term, found in pairs])


def _terms(z: Relation) -> list[Relation]:
    """The parts of a sum, with the filters and projections above it."""
    match z:
        case Union():
            return [term for part in z.parts for term in _terms(part)]
        case Filter() | Project():
            return [z.replace(input=term) for term in _terms(z.input)]
    return [z]


def _as_is(
    z: Relation, keys: Sequence[Expr], partials: Sequence[Partial], names: Sequence[str]
) -> Relation:
    weight = zset.weight(z)
    return Project(z, (*keys, *(share(p, weight) for p in partials)), tuple(names))


# -- a term: a change, and what it meets


@dataclass(frozen=True)
class _Step:
    """A join with `right`; a filter, where there is none. The condition reads the row so far,
    then that of `right`."""

    condition: Expr
    right: Relation | None = None
    how: str = ""


@dataclass(frozen=True)
class _Spine:
    """A change and the steps that follow it. `row`, `width`: what is given in the end, over the
    change's columns followed by those of all that it was joined with, and their number."""

    change: Relation
    steps: tuple[_Step, ...]
    row: tuple[Expr, ...]
    width: int

    @property
    def own(self) -> int:
        """The number of the change's columns, its weight left out."""
        return self.change.width - 1

    @property
    def others(self) -> list[Column] | None:
        """The weights of the rows that a row of the change was joined with; None where they
        cannot be told."""
        found = _factors(self.row[-1]) or []
        others = [w for w in found if w.index != self.own]
        return others if len(others) == len(found) - 1 else None


def _spine(node: Relation) -> _Spine | None:
    """None where an expression that may raise would leave its place."""
    if not _leads_to_join(node):
        return _Spine(node, (), columns(node.schema), node.width)
    below = _spine(node.inputs[0])
    if below is None:
        return None
    match node:
        case Project():
            return replace(below, row=_over(node.exprs, below.row))
        case Filter():
            (condition,) = _over([node.predicate], below.row)
            return replace(below, steps=(*below.steps, _Step(condition)))
        case Join():
            return _joined(below, node)
    raise AssertionError(f"{type(node).__name__} is no step")


def _leads_to_join(node: Relation) -> bool:
    while isinstance(node, Filter | Project):
        node = node.input
    return isinstance(node, Join) and node.how in _ROW_WISE


def _joined(below: _Spine, join: Join) -> _Spine | None:
    if not all(is_quiet(e) for e in below.row):
        return None
    right = columns(join.right.schema, below.width)
    (condition,) = _over([join.condition], (*below.row, *right))
    steps = (*below.steps, _Step(condition, join.right, join.how))
    added = columns(join.schema[join.left.width :], below.width)
    return _Spine(below.change, steps, (*below.row, *added), below.width + len(added))


def _over(exprs: Sequence[Expr], row: tuple[Expr, ...]) -> tuple[Expr, ...]:
    return tuple(substitute(e, row) for e in exprs)


def _factors(weight: Expr) -> list[Column] | None:
    if weight is zset.ONE:
        return []
    if isinstance(weight, Column):
        return [weight]
    if isinstance(weight, Call) and weight.name == "*":
        left, right = (_factors(arg) for arg in weight.args)
        return None if left is None or right is None else left + right
    return None


def is_quiet(expr: Expr) -> bool:
    """Can it be computed for any row at all?"""
    return all(_never_raises(node) for node in folded(expr).walk())


def _never_raises(node: Expr) -> bool:
    if isinstance(node, Call) and node.name in _EXACT:
        # below 38 digits the type has room for every outcome
        return isinstance(node.type, Decimal) and node.type.precision < 38
    return never_raises(node) or (isinstance(node, Call) and node.name in _QUIET)


# -- the change, summed up


def _preaggregated(
    z: Relation,
    keys: Sequence[Expr],
    partials: Sequence[Partial],
    names: Sequence[str],
    pays: Callable[[Relation, tuple[Expr, ...]], bool],
    is_joined: bool,
) -> Relation | None:
    spine = _spine(z)
    if spine is None:
        return None
    if not spine.steps:
        fits = is_joined and _is_change(z) and all(is_exactly_grouped(k) for k in keys)
        return summed(z, keys, partials, names) if fits and pays(z, tuple(keys)) else None
    others = spine.others
    if others is None:
        return None
    wanted = _over(keys, spine.row)
    sums = [changed(p, lambda e: substitute(e, spine.row)) for p in partials]
    below = _Below.of(spine, wanted, sums)
    change = preaggregated(
        spine.change, below.keys, (*below.sums, ROWS), below.names, pays, is_joined=True
    )
    if change is None:
        return None
    shares = [below.share(change, p, others) for p in sums]
    keys = [below.moved(k) for k in wanted]
    return Project(below.joined(change), (*keys, *shares), tuple(names))


def _is_change(z: Relation) -> bool:
    """Is it a stored change, filtered and projected at most?"""
    while isinstance(z, Filter | Project):
        z = z.input
    return isinstance(z, Scan) and z.source.endswith(CHANGE)


def is_exactly_grouped(key: Expr) -> bool:
    """Can rows be grouped by it: are equal values of the key the same in every way?"""
    return isinstance(key.type, Decimal) or (
        isinstance(key.type, Atomic) and key.type.name in _GROUPED
    )


@dataclass(frozen=True)
class _Below:
    """What is kept of a spine's change: the columns `keys`, `sums` of its own, its weight."""

    spine: _Spine
    keys: tuple[Expr, ...]
    sums: tuple[Partial, ...]

    @classmethod
    def of(cls, spine: _Spine, wanted: Sequence[Expr], sums: Sequence[Partial]) -> _Below:
        """As few keys as later steps can do with."""
        computed = [k for k in wanted if _is_computed(k, spine.own)]
        movable = [p for p in sums if _is_movable(p, spine.own)]
        read = used_columns(
            *(step.condition for step in spine.steps), *(k for k in wanted if k not in computed)
        )
        read = read.union(*(_reads(p) for p in sums if p not in movable))
        kept = sorted(read.intersection(range(spine.own)))
        row = columns(spine.change.schema)
        keys = dict.fromkeys([*(row[i] for i in kept), *computed])
        own = dict.fromkeys(p for p in movable if not _reads(p) <= set(kept))
        return cls(spine, tuple(keys), tuple(own))

    @property
    def names(self) -> tuple[str, ...]:
        """Of its columns."""
        keys = (f"k{i}" for i in range(len(self.keys)))
        return (*keys, *(f"p{i}" for i in range(len(self.sums))), WEIGHT)

    def joined(self, change: Relation) -> Relation:
        """What the steps make of it."""
        for step in self.spine.steps:
            condition = self.moved(step.condition)
            if step.right is None:
                change = Filter(change, condition)
            else:
                change = Join(change, step.right, step.how, condition)
        return change

    def moved(self, expr: Expr) -> Expr:
        """An expression over the joined row as it is now."""
        found: Expr = transform(expr, self._place)
        return found

    def _place(self, node: Expr) -> Expr | None:
        if isinstance(node, Column):
            by = len(self.names) - self.spine.change.width
            return node.replace(index=self._places.get(node.index, node.index + by))
        if node in self.keys:
            return Column(node.type, node.nullable, self.keys.index(node))
        return None

    @cached_property
    def _places(self) -> dict[int, int]:
        """Where the change's columns that are kept stand now."""
        return {k.index: i for i, k in enumerate(self.keys) if isinstance(k, Column)}

    def share(self, change: Relation, partial: Partial, others: Sequence[Expr]) -> Expr:
        """What a joined row adds to a sum, given the weights of the rows it was joined with."""
        row = columns(change.schema)
        weights = [self.moved(w) for w in others]
        if partial not in self.sums:
            return share(changed(partial, self.moved), zset.product([row[-1], *weights]))
        own = row[len(self.keys) + self.sums.index(partial)]
        if partial.value is None:
            return zset.product([own, *weights])
        return times(own, zset.product(weights))


def changed(partial: Partial, change: Callable[[Expr], Expr]) -> Partial:
    """A sum of other expressions."""
    exprs = (partial.value, partial.condition)
    return Partial(*(None if e is None else change(e) for e in exprs))


def _reads(partial: Partial) -> set[int]:
    return used_columns(*(e for e in (partial.value, partial.condition) if e is not None))


def _is_computed(key: Expr, own: int) -> bool:
    """Is it a key that the change knows by itself?"""
    read = used_columns(key)
    return bool(read) and max(read) < own and not isinstance(key, Column) and is_quiet(key)


def _is_movable(partial: Partial, own: int) -> bool:
    """Is it a sum that the change knows by itself, exactly and without raising?"""
    exprs = [e for e in (partial.value, partial.condition) if e is not None]
    if not exprs or any(c >= own for c in _reads(partial)):
        return False
    return all(is_quiet(e) for e in exprs) and (partial.value is None or has_room(partial.value))


def has_room(value: Expr) -> bool:
    """Has the sum of many values room in 38 digits, and its product with a weight?"""
    if not isinstance(value.type, Decimal):
        return is_integral(value.type)
    return value.type.scale <= EXACT_SCALE and value.type.precision + SPARE_DIGITS <= 38
