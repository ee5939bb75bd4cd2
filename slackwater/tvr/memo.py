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
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from slackwater.algebra.expr import Expr
from slackwater.algebra.relation import Relation, Scan
from slackwater.tvr.forms import Forms
from slackwater.tvr.forms import Tvr as Tvr
from slackwater.tvr.groups import CHANGED as CHANGED
from slackwater.tvr.groups import OF_FORMS as OF_FORMS
from slackwater.tvr.groups import ROWS as ROWS
from slackwater.tvr.groups import SUMS as SUMS
from slackwater.tvr.groups import SUMS_CHANGED as SUMS_CHANGED
from slackwater.tvr.groups import WEIGHTED as WEIGHTED
from slackwater.tvr.groups import Group as Group
from slackwater.tvr.groups import Member as Member
from slackwater.tvr.groups import Ref as Ref
from slackwater.tvr.groups import Trait as Trait
from slackwater.tvr.groups import ranks
from slackwater.tvr.references import NO_PROMISES, Promises
from slackwater.tvr.rules import Fitting, Place
from slackwater.tvr.rules import Rewrite as Rewrite
from slackwater.tvr.rules import Rule as Rule
from slackwater.tvr.time import reads
from slackwater.types import BIGINT, WEIGHT, Field, Schema

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
        self._forms = Forms(self, self.rewrites, self.fired)
        self._wanted: dict[Ref, None] = {}
        self._groups: dict[Ref, Group] = {}
        self._before: dict[Ref, Group] = {}  # those that may be reached again
        self._refs: dict[tuple[Relation, str, bool], Ref] = {}
        self._changes: dict[Relation, bool] = {}
        self._own: set[Relation] = set()

    # -- time-varying relations

    def tvr(self, node: Relation) -> Tvr:
        """The TVR of an expression; other forms of one expression have the same."""
        return self._forms.tvr(node)

    def forms(self, tvr: Tvr) -> tuple[tuple[Relation, str], ...]:
        """An expression in all its forms, each with the method it belongs to."""
        return tuple(self._forms.of(tvr).items())

    def known(self, node: Relation) -> Tvr | None:
        """The TVR of an expression, if it has come up."""
        return self._forms.known(node)

    def expressions(self) -> Iterator[tuple[Relation, Tvr]]:
        """All expressions, in all forms."""
        yield from self._forms.expressions().items()

    def changes(self, node: Relation) -> bool:
        """Does the expression read anything that changes?"""
        if node not in self._changes:
            self._changes[node] = reads(node, self.changed)
        return self._changes[node]

    # -- groups

    def ref(
        self, node: Relation, kind: str, old: bool = False, schema: Schema | None = None
    ) -> Ref:
        """A relation of an expression; `schema` is that of its sums. These are the aggregate's own:
        another one with the same rows may have other sums."""
        key = (node, kind, old)
        if key not in self._refs:
            tvr = self.tvr(node)
            tvr = Tvr(node) if kind in OF_FORMS else tvr
            columns = tvr.node.schema if schema is None else schema
            fields = columns if kind == ROWS else (*columns, Field(WEIGHT, BIGINT, False))
            self._refs[key] = Ref(tvr, Trait(kind, old and self.changes(tvr.node)), fields)
        return self._refs[key]

    def group(self, ref: Ref) -> Group:
        """The group of a reference."""
        found = self._groups.get(ref)
        return self._reached(self._current(ref)) if found is None else found

    def _reached(self, ref: Ref) -> Group:
        if ref not in self._groups:
            found = self._before.pop(ref, None) or Group(ref, self._is_stored(ref))
            found.id = len(self._groups)
            self._groups[ref] = found
        return self._groups[ref]

    def _is_stored(self, ref: Ref) -> bool:
        """Is it a source's rows with weights, or its change?"""
        node, trait = ref.tvr.node, ref.trait
        if not isinstance(node, Scan) or trait.keys:
            return False
        return trait.kind == WEIGHTED or (trait.kind == CHANGED and self.changes(node))

    def groups(self) -> tuple[Group, ...]:
        """All groups, in the order in which they came up."""
        return tuple(self._groups.values())

    def is_own(self, node: Relation) -> bool:
        """Is it an expression of the query itself, not one of another form?"""
        return node in self._own

    def explore(self, wanted: Iterable[Ref]) -> None:
        """Every way to compute some relations, and all that these are computed from. Where
        expressions turn out to be one on the way, what speaks of them is explored again."""
        self._wanted.update(dict.fromkeys(wanted))
        self._own.update(*(ref.tvr.node.walk() for ref in self._wanted))
        self._follow()
        while self._has_united():
            self._follow()

    def _follow(self) -> None:
        """From what is wanted down."""
        waiting = [self.group(ref) for ref in self._wanted]
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
        self._before = {}

    def _fire(self, group: Group) -> None:
        ref, tvr = group.ref, group.ref.tvr
        new = not ref.trait.old and self.changes(tvr.node)
        for form, method in self._forms_of(ref):
            if form in group.asked:
                continue
            group.asked.add(form)
            after = new and self.changes(form)
            place = Place(ref.trait.kind, ref.trait.wanted is not None, after, form is tvr.node)
            for rule in self._fitting.of(place, form):
                own = "" if rule.first else method  # it is about the TVR, whatever its form
                for relation in rule.apply(self, ref, form):
                    self.fired[rule.name] += 1
                    group.add(Member(rule.name, own or rule.method, relation))

    def _forms_of(self, ref: Ref) -> Iterable[tuple[Relation, str]]:
        """The forms that a relation may be computed by."""
        node = ref.tvr.node
        if ref.trait.kind in OF_FORMS:
            return ((node, self._forms.of(self.tvr(node))[node]),)
        return self.forms(ref.tvr)

    # -- expressions that turn out to be one

    def _has_united(self) -> bool:
        """Have they? Then groups that speak of them by an earlier name are left out, and rules are
        asked again about what is above them, since they may look at the forms of its inputs."""
        for one, other in self._alike():
            self._forms.unite(one.node, other.node)
        if not self._forms.has_grown:
            return False
        again = self._forms.settle()
        self._refs.clear()
        self._before = {ref: g for ref, g in self._groups.items() if self._is_current(ref)}
        self._groups = {}
        for group in self._before.values():
            group.asked -= again
            if any(ref not in self._before for member in group.members for ref in member.refs):
                group.ways.clear()
                group.asked.clear()
        return True

    def _alike(self) -> Iterator[tuple[Tvr, Tvr]]:
        """TVRs whose rows are computed by the same relation."""
        makers: dict[Relation, Tvr] = {}
        for group in self._groups.values():
            tvr, trait = group.ref.tvr, group.ref.trait
            if trait.kind in (ROWS, WEIGHTED) and trait.wanted is None:
                for member in group.members:
                    first = makers.setdefault(member.relation, tvr)
                    if first is not tvr:
                        yield first, tvr

    def _current(self, ref: Ref) -> Ref:
        """A whole relation of an expression by the name that this has now."""
        tvr = self.known(ref.tvr.node)
        if tvr is ref.tvr or tvr is None or ref.trait.kind in OF_FORMS:
            return ref
        old = ref.trait.old and self.changes(tvr.node)
        return Ref(tvr, replace(ref.trait, old=old), ref.fields)

    def _is_current(self, ref: Ref) -> bool:
        """Does a reference, with the keys that it is restricted to, name TVRs by their names?"""
        wanted = ref.trait.wanted
        named = ref.trait.kind in OF_FORMS or self.known(ref.tvr.node) is ref.tvr
        return named and (wanted is None or self._are_current(wanted))

    def _are_current(self, relation: Relation) -> bool:
        return all(self._is_current(node) for node in relation.walk() if isinstance(node, Ref))

    def check(self) -> None:
        """Raise unless the memo is whole: every member gives its group's columns from groups that
        are known, every group can be computed, and no two TVRs are known to be one."""
        for group in self._groups.values():
            types = [f.type for f in group.ref.schema]
            for member in group.members:
                assert [f.type for f in member.relation.schema] == types, (group.ref, member)
                assert all(ref in self._groups for ref in member.refs), (group.ref, member)
        grounded = self.ranks()
        missing = [group.ref for group in self._groups.values() if group.id not in grounded]
        assert not missing, missing
        assert not list(self._alike())
        self._forms.check()

    def ranks(self) -> dict[int, int]:
        """How many members deep each group is computed from what is stored, at least. Groups that
        cannot be are left out."""
        return ranks(self._groups)
