"""What lies there already when a plan is made: states of a view, what earlier runs have saved.

    there[g, τ] = load(g)@τ        in every run τ from that on since which it lies there

Such a relation is one more way to have a group of the memo: it costs what it takes to read it, and
nothing to save. It is found in the memo by its normal form, whatever its columns are called.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property

from slackwater.algebra.expr import Column
from slackwater.algebra.relation import Aggregate, Project, Relation, Scan, Values, Window
from slackwater.tvr.memo import CHANGED, OF_FORMS, ROWS, SUMS, SUMS_CHANGED, WEIGHTED, Memo, Ref
from slackwater.tvr.methods.higher_order import Part
from slackwater.tvr.normal import normalize
from slackwater.tvr.states.sums import SumState, is_invertible
from slackwater.types import Field, Schema

KINDS = (ROWS, WEIGHTED, CHANGED, SUMS, SUMS_CHANGED)
LACKING = "?"
"""Begins the name of a column that is not there."""


@dataclass(frozen=True)
class Existing:
    """A relation that lies there under a name, from run `since` on.

    `relation` is what it holds, over the sources of the query; or a group of a memo, where runs of
    another plan have saved it. `at` is the time point as of which it is, None if it is as of none;
    what belongs to an interval has its `start`, too, and ends at `at`.
    """

    name: str
    relation: Relation
    at: int | None = 0
    since: int = 0
    rows: float | None = None
    """As many as are expected, if nobody counted."""
    kind: str = ROWS
    """`rows`; `weighted`, with how often each is there as last column; `change`; partial `sums` of
    an aggregate; `change of sums`."""
    start: int | None = None
    columns: tuple[str | None, ...] = ()
    """What its columns are called where it lies, None for those that are not there; c0, c1 and so
    on, if nothing is said."""

    @property
    def interval(self) -> tuple[int, int]:
        """To which it belongs: rows, to the one that ends at their point."""
        end = self.at or 0
        return (max(0, end - 1) if self.start is None else self.start), end

    @property
    def is_whole(self) -> bool:
        """Are all its columns there?"""
        return None not in self.columns

    def scan(self, schema: Schema) -> Scan:
        """How it is read, with the columns of its group; those that are not there have names that
        tell so."""
        own = schema if self.kind == ROWS else schema[:-1]
        names = self.columns or tuple(f"c{i}" for i in range(len(own)))
        told = [f"{LACKING}{i}" if name is None else name for i, name in enumerate(names)]
        named = [Field(n, f.type, f.nullable) for n, f in zip(told, own, strict=True)]
        return Scan(self.name, self.name, (*named, *schema[len(own) :]))


def of_group(name: str, ref: Ref, interval: tuple[int, int], since: int) -> Existing:
    """A group of a memo that a run has saved."""
    start, end = interval
    return Existing(name, ref, end, since, kind=ref.trait.kind, start=start)


# -- where in a memo it is

Located = tuple[Existing, Ref]
"""What exists, and the group that it is."""


class Index:
    """The expressions of a memo by what they compute, whatever their columns are called."""

    def __init__(self, memo: Memo) -> None:
        self._memo = memo

    def find(self, existing: Existing) -> Located | None:
        """The group that a relation is, and how it is to be read as such."""
        if existing.at is None:
            return None
        if isinstance(existing.relation, Ref):
            ref = self.same(existing.relation)
            return None if ref is None else (existing, ref)
        for node in (existing.relation, normalize(existing.relation)):
            found = self._ref(node, existing.kind)
            if found is not None:
                return existing, found
        return self._without_projection(existing, node)

    def _without_projection(self, existing: Existing, node: Relation) -> Located | None:
        """What it is a choice of columns from; the others are not there."""
        if not isinstance(node, Project) or not all(isinstance(e, Column) for e in node.exprs):
            return None
        if existing.kind in OF_FORMS:
            return None
        found = self._ref(node.input, existing.kind)
        if found is None:
            return None
        names = existing.columns or tuple(f"c{i}" for i in range(node.width))
        places = [e.index for e in node.exprs if isinstance(e, Column)]
        by_place = dict(zip(places, names, strict=True))
        chosen = tuple(by_place.get(i) for i in range(node.input.width))
        return replace(existing, columns=chosen), found

    def _ref(self, node: Relation, kind: str) -> Ref | None:
        known = self._memo.known(node) is not None
        form = node if known else self._shapes.get(_shape(node, {}))
        if form is None:
            return None
        if kind not in OF_FORMS:
            return self._memo.ref(form, kind)
        if not isinstance(form, Aggregate) or not is_invertible(form):
            return None
        return self._memo.ref(form, kind, schema=SumState(form, "#").schema)

    @cached_property
    def _shapes(self) -> dict[Relation, Relation]:
        known: dict[Relation, Relation] = {}
        return {_shape(form, known): form for form, _ in self._memo.expressions()}

    def same(self, ref: Ref) -> Ref | None:
        """A group of another memo as it is in this one."""
        tvr, trait = self._memo.known(ref.tvr.node), ref.trait
        if tvr is None:
            return None
        if trait.kind in OF_FORMS:
            tvr = ref.tvr
        if trait.wanted is not None:
            groups = [r for r in trait.wanted.walk() if isinstance(r, Ref)]
            same = {group: self.same(group) for group in groups}
            if None in same.values():
                return None
            wanted = trait.wanted.rewrite(lambda node: same.get(node, node))
            trait = replace(trait, wanted=wanted)
        return Ref(tvr, trait, ref.fields)


def _shape(node: Relation, known: dict[Relation, Relation]) -> Relation:
    """A relation whose columns have no names of their own."""
    for below in node.walk():
        if below not in known:
            known[below] = _nameless(below.with_children(known.__getitem__))
    return known[node]


def _nameless(node: Relation) -> Relation:
    match node:
        case Scan():
            return node.replace(name="", fields=_numbered(node.fields))
        case Values():
            return node.replace(fields=_numbered(node.fields))
        case Part():
            return Project(node.input, node.exprs, _numbers(node.names))
        case Project() | Aggregate() | Window():
            return node.replace(names=_numbers(node.names))
    return node


def _numbers(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(f"c{i}" for i in range(len(names)))


def _numbered(fields: Schema) -> Schema:
    return tuple(Field(f"c{i}", f.type, f.nullable) for i, f in enumerate(fields))


def located(memo: Memo, every: Iterable[Existing]) -> Iterator[Located]:
    """Those relations that a memo has, each with its group."""
    index = Index(memo)
    for existing in every:
        found = index.find(existing)
        if found is not None:
            yield found
