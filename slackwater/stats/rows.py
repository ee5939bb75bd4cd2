"""How many rows come, change and go at each operator: thesis 000, 3.2.1.

Over an interval every operator has rows before, and a change. Inserts, updates and deletes are
told apart, because each kind has its own chance to give output, and its own cost. Many intervals
may be looked at in one go, their rows being arrays (`stats/amounts.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, singledispatch

from slackwater.algebra.expr import columns, used_columns
from slackwater.algebra.relation import (
    Aggregate,
    Bag,
    Distinct,
    Expand,
    Filter,
    Generate,
    Join,
    Opaque,
    Project,
    Relation,
    Scan,
    SetOp,
    Sort,
    TopK,
    Union,
    Window,
)
from slackwater.algebra.relation import Values as Constants
from slackwater.stats.amounts import Amount, is_any, least, most, ratio
from slackwater.stats.sound import UNKNOWN_ROWS, sound
from slackwater.stats.updates import MOVED, Shares, Updated, most_moved, shares
from slackwater.stats.values import Domain, Ignorance, Known, drawn
from slackwater.tvr.memo import Ref

GENERATED = 3.0
"""Rows that a generator makes of one."""


@dataclass(frozen=True, slots=True)
class Change:
    """How many rows come, change and go."""

    inserts: float = 0.0
    updates: float = 0.0
    deletes: float = 0.0

    def __add__(self, other: Change) -> Change:
        return Change(
            self.inserts + other.inserts,
            self.updates + other.updates,
            self.deletes + other.deletes,
        )

    def times(self, factor: float) -> Change:
        """So many for each."""
        return Change(self.inserts * factor, self.updates * factor, self.deletes * factor)

    @property
    def sound(self) -> Change:
        """As far as it is known; of what is not, nothing comes."""
        return Change(*(sound(kind, 0.0) for kind in (self.inserts, self.updates, self.deletes)))

    @property
    def net(self) -> float:
        """By how many rows the relation grows."""
        return self.inserts - self.deletes

    @property
    def rows(self) -> float:
        """The rows of the change with weights: an update is two."""
        return self.inserts + 2 * self.updates + self.deletes


@dataclass(frozen=True, slots=True)
class Rows:
    """A relation over an interval."""

    before: float
    change: Change = Change()

    @property
    def sound(self) -> Rows:
        """As far as they are known."""
        return Rows(sound(self.before, UNKNOWN_ROWS), self.change.sound)

    @property
    def after(self) -> float:
        """Rows at the end."""
        return most(0.0, self.before + self.change.net)


class Estimates:
    """The rows of every operator of a query, given those of its sources."""

    def __init__(
        self,
        sources: Mapping[str, Rows],
        known: Known | None = None,
        updated: Updated | None = None,
    ) -> None:
        self._sources = sources
        self._known = known or Ignorance()
        self._updated = updated or {}
        self._found: dict[Relation, Rows] = {}
        self._shares: dict[Relation, Shares] = {}

    def of(self, node: Relation) -> Rows:
        """Rows before, and the change."""
        if node not in self._found:
            for below in node.walk():  # a plan may be deeper than Python's stack
                if below not in self._found:
                    self._found[below] = _estimate(below, self)
        return self._found[node]

    def tell(self, node: Relation, rows: Rows) -> None:
        """Know the rows of an operator, whatever is estimated of them."""
        self._found[node] = rows

    def shares(self, node: Relation) -> Shares:
        """By column, of the updates of an operator's rows those that change it."""
        if node not in self._shares:
            for below in node.walk():
                if below not in self._shares:
                    self._shares[below] = shares(below, self._shares.__getitem__, self._updated)
        return self._shares[node]

    @cached_property
    def domain(self) -> Domain:
        """Values and selectivities, as at the end of the interval."""
        return Domain(self._known, lambda node: self.of(node).after)

    def ref(self, node: Ref) -> Rows:
        """The rows of a group of the memo, for those who know them."""
        raise AssertionError(f"no estimate for {node}")

    def source(self, name: str) -> Rows:
        """The rows of a source."""
        return self._sources[name].sound


@singledispatch
def _estimate(node: Relation, own: Estimates) -> Rows:
    raise AssertionError(f"no estimate for {type(node).__name__}")


@_estimate.register
def _(node: Scan, own: Estimates) -> Rows:
    return own.source(node.source)


@_estimate.register
def _(node: Ref, own: Estimates) -> Rows:
    return own.ref(node)


@_estimate.register
def _(node: Constants, own: Estimates) -> Rows:
    return Rows(len(node.rows))


@_estimate.register(Sort | Bag)
def _(node: Sort | Bag, own: Estimates) -> Rows:
    return own.of(node.input)


@_estimate.register
def _(node: Project, own: Estimates) -> Rows:
    """An update of columns that are not passed on is none."""
    below = own.of(node.input)
    is_seen = is_any(below.change.updates) and any(own.shares(node))
    return below if is_seen else _without_updates(below)


def _without_updates(rows: Rows) -> Rows:
    return Rows(rows.before, replace(rows.change, updates=0.0))


@_estimate.register
def _(node: Filter, own: Estimates) -> Rows:
    """An update of what the predicate reads may move a row across it: then it is a delete or an
    insert."""
    below, kept = own.of(node.input), own.domain.kept(node)
    change = below.change
    moved = _moved(own, node.input, used_columns(node.predicate))
    crossing = change.updates * moved * kept * (1 - kept)
    return Rows(
        below.before * kept,
        Change(
            change.inserts * kept + crossing,
            change.updates * kept - crossing,
            change.deletes * kept + crossing,
        ),
    )


@_estimate.register
def _(node: Union, own: Estimates) -> Rows:
    parts = [own.of(part) for part in node.parts]
    return Rows(sum(p.before for p in parts), sum((p.change for p in parts), Change()))


@_estimate.register
def _(node: Expand, own: Estimates) -> Rows:
    return _times(own.of(node.input), len(node.projections))


@_estimate.register
def _(node: Generate, own: Estimates) -> Rows:
    return _times(own.of(node.input), GENERATED)


@_estimate.register
def _(node: Aggregate, own: Estimates) -> Rows:
    below = own.of(node.input)
    args = [a for call in node.aggs for a in (*call.args, *((call.where,) if call.where else ()))]
    if not _moved(own, node.input, used_columns(*node.keys, *args)):
        below = _without_updates(below)
    if not node.keys:
        return Rows(1.0, Change(updates=least(1.0, below.change.rows)))
    below = _rekeyed(below, _moved(own, node.input, used_columns(*node.keys)))
    values = own.domain.possible(node.input, node.keys)
    if own.domain.are_all_there(node.input, node.keys) and not is_any(below.change.rows):
        return Rows(least(values, below.before))
    found = groups(below, values)
    return found if node.aggs else _without_updates(found)


@_estimate.register
def _(node: Distinct, own: Estimates) -> Rows:
    """Of a row that is there already another one is none."""
    row = columns(node.input.schema)
    below = _rekeyed(own.of(node.input), 1.0)
    return _without_updates(groups(below, own.domain.possible(node.input, row)))


@_estimate.register
def _(node: Window, own: Estimates) -> Rows:
    """Rows of a partition that changed may all change."""
    below = own.of(node.input)
    keys = [key for call in node.calls for key in call.partition_by]
    partitions = own.domain.distinct(node.input, keys)
    touched = drawn(partitions, below.change.rows)
    others = most(0.0, below.after * touched / partitions - below.change.inserts)
    change = below.change
    return Rows(below.before, Change(change.inserts, most(change.updates, others), change.deletes))


@_estimate.register
def _(node: TopK, own: Estimates) -> Rows:
    below = own.of(node.input)
    if node.limit is None:
        return below
    before, after = least(below.before, node.limit), least(below.after, node.limit)
    moved = least(below.change.rows * after / most(1.0, below.after), before, after)
    grown = after - before
    return Rows(before, Change(moved + most(0.0, grown), 0.0, moved + most(0.0, -grown)))


@_estimate.register
def _(node: SetOp, own: Estimates) -> Rows:
    """A row's copies on the other side decide, as a partner does."""
    left, right = own.of(node.left), own.of(node.right)
    row = columns(node.left.schema)
    values = most(
        own.domain.possible(node.left, row),
        own.domain.possible(node.right, columns(node.right.schema)),
    )
    if not node.all:
        left = groups(left, values)
    match = 1 / values
    return _semi(left, right, match) if node.how == "intersect" else _anti(left, right, match)


@_estimate.register
def _(node: Opaque, own: Estimates) -> Rows:
    """Nobody knows: as many rows as the largest input, all of which may change."""
    size = most(*(own.of(part).after for part in node.parts)) if node.parts else 1.0
    changes = any(is_any(own.of(part).change.rows) for part in node.parts)
    return Rows(size, Change(updates=size) if changes else Change())


@_estimate.register
def _(node: Join, own: Estimates) -> Rows:
    left, right = own.of(node.left), own.of(node.right)
    match = least(1.0, own.domain.matching(node))
    width, used = node.left.width, used_columns(node.condition)
    left = _rekeyed(left, _moved(own, node.left, [i for i in used if i < width]))
    keys = [i - width for i in used if i >= width]
    moved = _moved(own, node.right, keys)
    if node.how in ("semi", "anti") and not moved:
        right = _without_updates(right)
    right = _rekeyed(right, moved)
    if node.how == "semi":
        return _semi(left, right, match)
    if node.how == "anti":
        return _anti(left, right, match)
    parts = [_inner(left, right, match)]
    if node.how in ("left", "full"):
        parts.append(_anti(left, right, match))
    if node.how in ("right", "full"):
        parts.append(_anti(right, left, match))
    return Rows(sum(p.before for p in parts), sum((p.change for p in parts), Change()))


def _moved(own: Estimates, node: Relation, columns: Iterable[int]) -> float:
    """Of the updates of an operator's rows, those that change any of some columns."""
    if not is_any(own.of(node).change.updates):
        return 0.0
    return most_moved(columns, own.shares(node))


def _rekeyed(rows: Rows, moved: float) -> Rows:
    """For who looks at keys, a row whose key is updated goes and another comes. Where nobody says
    which columns are updated, keys are not."""
    if moved <= MOVED:
        return rows
    change, others = rows.change, rows.change.updates * moved
    kinds = change.inserts + others, change.updates - others, change.deletes + others
    return Rows(rows.before, Change(*kinds))


def _times(rows: Rows, factor: float) -> Rows:
    return Rows(rows.before * factor, rows.change.times(factor))


def groups(below: Rows, values: float) -> Rows:
    """Groups of rows with so many values in all: while some have no row yet, an insert may begin
    one; where a group has few rows, deletes may end it; else a change is an update."""
    before = drawn(values, below.before)
    change = below.change
    begun = most(0.0, drawn(values, below.before + change.inserts) - before)
    ended: Amount = 0.0
    if is_any(change.deletes):
        gone = least(1.0, ratio(change.deletes, below.before))
        ended = before * gone ** most(1.0, below.before / most(1.0, before))
    touched = drawn(values, change.inserts + change.updates + change.deletes)
    return Rows(before, Change(begun, most(0.0, touched - begun - ended), ended))


def _inner(left: Rows, right: Rows, match: float) -> Rows:
    """ΔL ⋈ R' + L ⋈ ΔR."""
    change = left.change.times(right.after * match) + right.change.times(left.before * match)
    return Rows(left.before * right.before * match, change)


@dataclass(frozen=True, slots=True)
class _Partners:
    """The chances of a row among right rows of which each matches with some probability. It
    becomes matched when it was alone and a right row that comes is its partner; it becomes alone
    when all its partners are among those that go."""

    alone_before: float
    alone_after: float
    found: float
    lost: float


def _partners(right: Rows, match: float) -> _Partners:
    come = right.change.inserts + right.change.updates

    def none_of(rows: float) -> float:
        alone: float = (1 - match) ** most(0.0, rows)
        return alone

    before, after = none_of(right.before), none_of(right.after)
    found = before * (1 - none_of(come))
    return _Partners(before, after, found, most(0.0, after - none_of(right.before + come)))


def _semi(left: Rows, right: Rows, match: float) -> Rows:
    """A left row comes with its first partner and goes with its last."""
    of, change = _partners(right, match), left.change
    stay = most(0.0, left.before - change.deletes)
    return Rows(
        left.before * (1 - of.alone_before),
        Change(
            change.inserts * (1 - of.alone_after) + stay * of.found,
            change.updates * (1 - of.alone_after),
            change.deletes * (1 - of.alone_before) + stay * of.lost,
        ),
    )


def _anti(left: Rows, right: Rows, match: float) -> Rows:
    """A left row goes with its first partner and comes with its last."""
    of, change = _partners(right, match), left.change
    stay = most(0.0, left.before - change.deletes)
    return Rows(
        left.before * of.alone_before,
        Change(
            change.inserts * of.alone_after + stay * of.lost,
            change.updates * of.alone_after,
            change.deletes * of.alone_before + stay * of.found,
        ),
    )
