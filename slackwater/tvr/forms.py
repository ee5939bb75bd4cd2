"""Which expressions are one: time-varying relations, and the forms that each of them has.

A rewrite proves two expressions equal. Where both have come up before, each with forms of its own,
they are one TVR from then on: what is known of one holds for the other, in whatever order they
came up.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

from slackwater.algebra.relation import Relation, Scan
from slackwater.tree import Node
from slackwater.tvr.rules import Rewrite

if TYPE_CHECKING:
    from slackwater.tvr.memo import Memo

NONE: Mapping[Relation, str] = MappingProxyType({})


@dataclass(frozen=True, eq=False)
class Tvr(Node):
    """An expression of the query, at every time, known by its simplest form."""

    node: Relation


Rank = tuple[bool, bool, int]


class Forms:
    """All expressions that have come up, by what they are equal to. `fired` counts by rewrite how
    often it has told something new."""

    def __init__(self, memo: Memo, rewrites: tuple[Rewrite, ...], fired: Counter[str]) -> None:
        self._memo = memo
        self._rewrites = rewrites
        self._fired = fired
        self._tvrs: dict[Relation, Tvr] = {}
        self._forms: dict[Tvr, dict[Relation, str]] = {}
        self._grown: set[Relation] = set()

    def tvr(self, node: Relation) -> Tvr:
        """The TVR of an expression; other forms of one expression have the same."""
        if node not in self._tvrs:
            self._tvrs[node] = made = Tvr(node)
            self._forms[made] = {node: ""}
            self._rewrite(node)
        return self._tvrs[node]

    def of(self, tvr: Tvr) -> Mapping[Relation, str]:
        """Its forms, each with the method it belongs to; none, if it is known by another one."""
        return self._forms.get(tvr, NONE)

    def known(self, node: Relation) -> Tvr | None:
        """The TVR of an expression, if it has come up."""
        return self._tvrs.get(node)

    def expressions(self) -> Mapping[Relation, Tvr]:
        """All expressions, in all forms."""
        return MappingProxyType(self._tvrs)

    def _rewrite(self, node: Relation) -> None:
        """All forms that follow from one. Whatever it turns out to be is known of all of them."""
        waiting = [node]
        while waiting:
            form = waiting.pop()
            for rewrite, other in self.rewritten(form):
                if other not in self._tvrs:
                    tvr = self._tvrs[other] = self._tvrs[form]
                    self._forms[tvr][other] = rewrite.method
                    self._fired[rewrite.name] += 1
                    waiting.append(other)
                elif self._tvrs[other] is not self._tvrs[form]:
                    self._fired[rewrite.name] += 1
                    self.unite(other, form)
        self._by_simplest(self._tvrs[node])

    def rewritten(self, form: Relation) -> Iterator[tuple[Rewrite, Relation]]:
        """What the rewrites say that a form is equal to. Where it is computed from what it is equal
        to itself, they would tell the same of that again and again."""
        if any(self._tvrs.get(below) is self._tvrs[form] for below in form.inputs):
            return
        for rewrite in self._rewrites:
            if rewrite.operators.fit(form):
                for other in rewrite.apply(self._memo, form):
                    yield rewrite, other

    def unite(self, one: Relation, other: Relation) -> None:
        """Two expressions are equal, so their TVRs are one."""
        kept, gone = self._tvrs[one], self._tvrs[other]
        if kept is gone:
            return
        moved = self._forms.pop(gone)
        self._forms[kept].update(moved)
        self._tvrs.update(dict.fromkeys(moved, kept))
        self._grown.add(one)
        self._by_simplest(kept)

    def _by_simplest(self, tvr: Tvr) -> None:
        """A TVR is known by the simplest of the forms that have come up."""
        forms = self._forms[tvr]
        simplest = min(forms, key=self._rank) if len(forms) > 1 else tvr.node
        if simplest is not tvr.node:
            made = Tvr(simplest)
            self._forms[made] = self._forms.pop(tvr)
            self._tvrs.update(dict.fromkeys(forms, made))

    def _rank(self, form: Relation) -> Rank:
        """Simplest is what is stored, then what does not change, then what reads least: of that is
        known best how many rows it has. Of equals, the first stays."""
        return not isinstance(form, Scan), self._memo.changes(form), len(form.scans())

    def settle(self) -> set[Relation]:
        """Ask again of all that is above expressions of which more forms are known by now, each
        once: rewrites may look at those of their inputs. What was asked about again."""
        found: set[Relation] = set()
        while self._grown:
            grown, self._grown = {self._tvrs[node] for node in self._grown}, set()
            for form in list(self._tvrs):
                if form not in found and any(self._tvrs.get(i) in grown for i in form.inputs):
                    found.add(form)
                    self._again(form)
        return found

    def _again(self, form: Relation) -> None:
        many = len(self.of(self._tvrs[form]))
        self._rewrite(form)
        if len(self.of(self._tvrs[form])) > many:
            self._grown.add(form)

    @property
    def has_grown(self) -> bool:
        """Has any TVR turned out to be another one since they were settled?"""
        return bool(self._grown)

    def check(self) -> None:
        """Raise unless every form is one of its TVR with the same columns, and so is all that has
        come up and that rewrites say is equal to it."""
        for tvr, forms in self._forms.items():
            types = [f.type for f in tvr.node.schema]
            for form in forms:
                assert self._tvrs[form] is tvr, (tvr, form)
                assert [f.type for f in form.schema] == types, (tvr, form)
                equal = {self._tvrs.get(other, tvr) for _, other in self.rewritten(form)}
                assert equal <= {tvr}, (tvr, equal)
