"""Relations of time-varying relations, and the ways to compute each (001, 5.1)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from slackwater.algebra.relation import Relation
from slackwater.tree import Node
from slackwater.tvr.forms import Tvr
from slackwater.tvr.restrict import Keys, Restrictable
from slackwater.types import Schema

ROWS = "rows"
WEIGHTED = "weighted"
CHANGED = "change"
SUMS = "sums"
SUMS_CHANGED = "change of sums"
OF_FORMS = (SUMS, SUMS_CHANGED)
"""What belongs to one form of an expression, not to all."""


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

    ref: Ref
    stored: bool
    id: int = -1
    ways: dict[Relation, Member] = field(default_factory=dict)
    asked: set[Relation] = field(default_factory=set)
    """The forms of its TVR that rules were asked about."""

    @property
    def members(self) -> Collection[Member]:
        """The ways, in the order in which they came up."""
        return self.ways.values()

    def add(self, member: Member) -> None:
        """One more way, unless it is known."""
        if member.relation is not self.ref:
            self.ways.setdefault(member.relation, member)


def ranks(groups: Mapping[Ref, Group]) -> dict[int, int]:
    """How many members deep each group is computed from what is stored, at least. Groups that
    cannot be are left out."""
    found = {group.id: 0 for group in groups.values() if group.stored}
    owners: list[int] = []
    left: list[int] = []  # by member, how many of its groups have no rank yet
    users: dict[int, list[int]] = {id: [] for id in range(len(groups))}
    for group in groups.values():
        for member in group.members:
            for id in (below := {groups[ref].id for ref in member.refs}):
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
