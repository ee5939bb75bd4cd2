"""Every way to compute every relation of a query, side by side: the memo (001, 5.1).

A *time-varying relation* (TVR) is one expression of the query, at every time. It has relations:
its rows at a time, plain or with weights, its change between two times, the partial sums of an
aggregate and their change; each whole, or restricted to keys. Such a relation is a *group*; its
members are ways to compute it, as algebra over other groups (`Ref`).

Times are symbolic, before and after a change: along a timeline the structure is the same from
each time to the next, so it is explored once (translational symmetry, 001, 5.3).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from slackwater.algebra.expr import Expr
from slackwater.algebra.relation import Relation, Scan
from slackwater.tree import Node
from slackwater.tvr.references import NO_PROMISES, Promises
from slackwater.tvr.restrict import Keys, Restrictable
from slackwater.tvr.rules import Fitting, Place
from slackwater.tvr.rules import Rewrite as Rewrite
from slackwater.tvr.rules import Rule as Rule
from slackwater.tvr.time import reads
from slackwater.types import BIGINT, WEIGHT, Field, Schema

ROWS = "rows"
WEIGHTED = "weighted"
CHANGED = "change"
SUMS = "sums"
SUMS_CHANGED = "change of sums"


@dataclass(frozen=True, eq=False)
class Tvr(Node):
    """An expression of the query, at every time. Its number is its place in the memo."""

    id: int
    node: Relation


@dataclass(frozen=True)
class Trait:
    """Which relation of a TVR: its kind, at the old time or the new one; of restricted ones the
    keys, and the relation of keys that are wanted."""

    kind: str
    old: bool = False
    keys: Keys = ()
    wanted: Relation | None = None

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        """Asked for more often than anything else."""
        return hash((self.kind, self.old, self.keys, self.wanted))

    @property
    def whole(self) -> Trait:
        """The same without restriction."""
        return Trait(self.kind, self.old)


@dataclass(frozen=True, eq=False)
class Ref(Restrictable):
    """A group, as an input of what is computed from it."""

    tvr: Tvr
    trait: Trait
    fields: Schema

    def identity(self) -> tuple[Any, ...]:
        """A relation of an expression has one schema."""
        return (self.tvr, self.trait, len(self.fields))

    @cached_property
    def schema(self) -> Schema:
        return self.fields

    @cached_property
    def children(self) -> tuple[Node, ...]:
        return ()

    def restricted(self, keys: Keys, wanted: Relation) -> Ref | None:
        """The group of those rows whose keys are wanted."""
        if self.trait.wanted is not None:
            return None
        return self.at(Trait(self.trait.kind, self.trait.old, keys, wanted))

    def at(self, trait: Trait) -> Ref:
        """Another relation of the same expression with the same columns."""
        return Ref(self.tvr, trait, self.fields)


@dataclass(frozen=True, eq=False)
class Member:
    """One way to compute a group."""

    rule: str
    method: str
    relation: Relation

    @cached_property
    def refs(self) -> tuple[Ref, ...]:
        """The groups that it is computed from."""
        return tuple(n for n in self._nodes if isinstance(n, Ref))

    @cached_property
    def operators(self) -> tuple[Relation, ...]:
        """What is done with them."""
        return tuple(n for n in self._nodes if not isinstance(n, Ref))

    @cached_property
    def _nodes(self) -> tuple[Relation, ...]:
        return tuple(self.relation.walk())


@dataclass
class Group:
    """One relation of a TVR, and the ways to compute it. What is stored needs none."""

    id: int
    ref: Ref
    stored: bool
    ways: dict[Relation, Member] = field(default_factory=dict)

    @property
    def members(self) -> Collection[Member]:
        """The ways, in the order in which they came up."""
        return self.ways.values()

    def add(self, member: Member) -> None:
        """One more way, unless it is known."""
        if member.relation is not self.ref:
            self.ways.setdefault(member.relation, member)


Shrinks = Callable[[Relation, tuple[Expr, ...]], bool]
"""Has a relation clearly fewer groups by some expressions than rows?"""


def always(relation: Relation, keys: tuple[Expr, ...]) -> bool:
    """Where nothing is known of rows, any relation may."""
    return True


class Memo:
    """The groups of a query of which some sources change. `pruned`: without ways that seldom pay
    (001, 5.3). `promises`: what can be relied on between the two times. `shrinks`: are there
    clearly fewer groups than rows, so that it promises something to sum up first?"""

    def __init__(
        self,
        changed: frozenset[str],
        rules: Iterable[Rule],
        rewrites: Iterable[Rewrite] = (),
        pruned: bool = True,
        promises: Promises = NO_PROMISES,
        shrinks: Shrinks = always,
    ) -> None:
        self.changed = changed
        self.pruned = pruned
        self.promises = promises
        self.shrinks = shrinks
        self.rules = tuple(rules)
        self.rewrites = tuple(rewrites)
        self.fired: Counter[str] = Counter()  # by rule, how many ways and forms it gave
        self._fitting = Fitting(self.rules)
        self._tvrs: dict[Relation, Tvr] = {}
        self._forms: list[dict[Relation, str]] = []
        self._groups: dict[Ref, Group] = {}
        self._refs: dict[tuple[Relation, str, bool], Ref] = {}
        self._changes: dict[Relation, bool] = {}
        self._own: set[Relation] = set()

    # -- time-varying relations

    def tvr(self, node: Relation) -> Tvr:
        """The TVR of an expression; other forms of one expression have the same."""
        if node not in self._tvrs:
            made = Tvr(len(self._forms), node)
            self._tvrs[node] = made
            self._forms.append({node: ""})
            self._rewrite(made)
        return self._tvrs[node]

    def _rewrite(self, tvr: Tvr) -> None:
        forms = self._forms[tvr.id]
        waiting = [tvr.node]
        while waiting:
            form = waiting.pop()
            for rewrite in self.rewrites:
                for other in rewrite.apply(self, form) if rewrite.operators.fit(form) else ():
                    if other not in forms and other not in self._tvrs:
                        self.fired[rewrite.name] += 1
                        forms[other] = rewrite.method
                        self._tvrs[other] = tvr
                        waiting.append(other)

    def forms(self, tvr: Tvr) -> Iterator[tuple[Relation, str]]:
        """An expression in all its forms, each with the method it belongs to."""
        yield from self._forms[tvr.id].items()

    def known(self, node: Relation) -> Tvr | None:
        """The TVR of an expression, if it has come up."""
        return self._tvrs.get(node)

    def expressions(self) -> Iterator[tuple[Relation, Tvr]]:
        """All expressions, in all forms."""
        yield from self._tvrs.items()

    def changes(self, node: Relation) -> bool:
        """Does the expression read anything that changes?"""
        if node not in self._changes:
            self._changes[node] = reads(node, self.changed)
        return self._changes[node]

    # -- groups

    def ref(
        self, node: Relation, kind: str, old: bool = False, schema: Schema | None = None
    ) -> Ref:
        """A relation of an expression; `schema` is that of its sums."""
        key = (node, kind, old)
        if key not in self._refs:
            columns = node.schema if schema is None else schema
            fields = columns if kind == ROWS else (*columns, Field(WEIGHT, BIGINT, False))
            self._refs[key] = Ref(self.tvr(node), Trait(kind, old and self.changes(node)), fields)
        return self._refs[key]

    def group(self, ref: Ref) -> Group:
        """The group of a reference."""
        if ref not in self._groups:
            is_source = isinstance(ref.tvr.node, Scan) and ref.trait.kind in (WEIGHTED, CHANGED)
            stored = is_source and not ref.trait.keys
            self._groups[ref] = Group(len(self._groups), ref, stored)
        return self._groups[ref]

    def groups(self) -> tuple[Group, ...]:
        """All groups, in the order in which they came up."""
        return tuple(self._groups.values())

    def is_own(self, node: Relation) -> bool:
        """Is it an expression of the query itself, not one of another form?"""
        return node in self._own

    def explore(self, wanted: Iterable[Ref]) -> None:
        """Every way to compute some relations, and all that these are computed from."""
        waiting = [self.group(ref) for ref in wanted]
        self._own.update(*(group.ref.tvr.node.walk() for group in waiting))
        seen = {group.id for group in waiting}
        while waiting:
            group = waiting.pop()
            self._fire(group)
            for member in group.members:
                for ref in member.refs:
                    below = self.group(ref)
                    if below.id not in seen:
                        seen.add(below.id)
                        waiting.append(below)

    def _fire(self, group: Group) -> None:
        ref, tvr = group.ref, group.ref.tvr
        after = not ref.trait.old and self.changes(tvr.node)
        for form, method in self.forms(tvr):
            place = Place(ref.trait.kind, ref.trait.wanted is not None, after, form is tvr.node)
            for rule in self._fitting.of(place, form):
                for relation in rule.apply(self, ref, form):
                    self.fired[rule.name] += 1
                    group.add(Member(rule.name, method or rule.method, relation))

    def check(self) -> None:
        """Raise unless the memo is whole: every member gives its group's columns from groups that
        are known, every group can be computed, and every TVR is found by each of its forms."""
        for group in self._groups.values():
            types = [f.type for f in group.ref.schema]
            for member in group.members:
                assert [f.type for f in member.relation.schema] == types, (group.ref, member)
                assert all(ref in self._groups for ref in member.refs), (group.ref, member)
        grounded = self.ranks()
        missing = [group.ref for group in self._groups.values() if group.id not in grounded]
        assert not missing, missing
        for forms, tvr in zip(self._forms, dict.fromkeys(self._tvrs.values()), strict=True):
            assert all(self._tvrs[form] is tvr for form in forms), tvr

    def ranks(self) -> dict[int, int]:
        """How many members deep each group is computed from what is stored, at least. Groups that
        cannot be are left out."""
        found = {group.id: 0 for group in self._groups.values() if group.stored}
        owners: list[int] = []
        left: list[int] = []  # by member, how many of its groups have no rank yet
        users: dict[int, list[int]] = {id: [] for id in range(len(self._groups))}
        for group in self._groups.values():
            for member in group.members:
                for id in (below := {self._groups[ref].id for ref in member.refs}):
                    users[id].append(len(owners))
                owners.append(group.id)
                left.append(len(below))
        ready = [n for n, count in enumerate(left) if not count]
        rank, level = 0, list(found)
        while level or ready:
            rank += 1
            for id in level:
                for n in users[id]:
                    left[n] -= 1
                    if not left[n]:
                        ready.append(n)
            level = [id for id in dict.fromkeys(owners[n] for n in ready) if id not in found]
            found.update(dict.fromkeys(level, rank))
            ready = []
        return found
