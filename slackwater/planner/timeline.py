"""The memo along the points of a problem: its groups, each at a place of the timeline (001, 6)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol

import numpy as np

from slackwater.planner.existing import Existing, located
from slackwater.planner.problem import Problem, Span, array
from slackwater.stats.amounts import Amount, least
from slackwater.tvr import zset
from slackwater.tvr.memo import (
    CHANGED,
    SUMS_CHANGED,
    Member,
    Memo,
    Ref,
    Trait,
)


@dataclass(frozen=True, eq=False, slots=True)
class Timed:
    """A group of the memo at a place of the timeline: between two of its points. A timeline has one
    for each place."""

    ref: Ref
    start: int
    end: int
    point: int
    """From when on it can be computed."""


class Costs(Protocol):
    """What work costs, in any unit."""

    def member(self, timed: Timed, member: Member, timeline: Timeline) -> float:
        """To compute a relation from its inputs; infinite where that is ruled out."""

    def read(self, timed: Timed, timeline: Timeline) -> float:
        """To read a source."""

    def save(self, timed: Timed, timeline: Timeline) -> float:
        """To keep a relation for later runs."""

    def load(self, timed: Timed, timeline: Timeline) -> float:
        """To have it again in a later run."""


@dataclass
class Timeline:
    """The memo along the points of a problem. It is the same at every interval; where that is not
    taken for granted, there is one for each in `memos`. Unless merges are `left_deep`, rows also
    follow from those before the last change, and changes are put together from several; unless
    work is `prompt`, it may wait for any later run."""

    memo: Memo
    problem: Problem
    left_deep: bool = True
    prompt: bool = True
    memos: Mapping[tuple[int, int], Memo] = field(default_factory=dict)
    ignored: frozenset[str] = frozenset()  # names of what exists and cannot be used
    _spans: dict[tuple[int, int], Span] = field(default_factory=dict, repr=False)
    _counts: dict[tuple[Span, Ref], Amount] = field(default_factory=dict, repr=False)
    _timed: dict[tuple[Ref, int, int], Timed] = field(default_factory=dict, repr=False)
    _placed: dict[tuple[Ref, int, int], Timed] = field(default_factory=dict, repr=False)
    _in_two: dict[Ref, Member] = field(default_factory=dict, repr=False)

    @cached_property
    def existing(self) -> Mapping[Timed, Existing]:
        """What lies there already, by where it stands."""
        usable = tuple(e for e in self.problem.existing if e.name not in self.ignored)
        found: dict[Timed, Existing] = {}
        for existing, ref in located(self.memo, usable):
            found.setdefault(self.timed(ref, *existing.interval), existing)
        return found

    def timed(self, ref: Ref, start: int, end: int) -> Timed:
        """A relation, under the one name that it has wherever it is met: rows at a time are those
        after the change before it, except at the first."""
        key = (ref, start, end)
        found = self._timed.get(key)
        if found is None:
            found = self._timed[key] = self._named(ref, start, end)
        return found

    def _named(self, ref: Ref, start: int, end: int) -> Timed:
        trait = ref.trait
        if not self.memo.changes(ref.tvr.node) and trait.wanted is None:
            return self._place(ref, 0, 0)
        if trait.wanted is not None or _is_change(ref):
            return self._place(ref, start, end)
        point = start if trait.old else end
        if point == 0:
            return self._place(self._at(ref, old=True), 0, min(1, len(self.problem.prices) - 1))
        return self._place(self._at(ref, old=False), point - 1, point)

    def _place(self, ref: Ref, start: int, end: int) -> Timed:
        key = (ref, start, end)
        found = self._placed.get(key)
        if found is None:
            point = start if ref.trait.old and ref.trait.wanted is None else end
            found = self._placed[key] = Timed(ref, start, end, point)
        return found

    def _at(self, ref: Ref, old: bool) -> Ref:
        return ref.at(Trait(ref.trait.kind, old))

    def members(self, timed: Timed) -> Iterator[tuple[Member, Timed, list[Timed]]]:
        """The ways to compute a relation, each with the interval it is taken at and what it
        reads."""
        yield from self._members(timed, timed)
        if self.left_deep or timed.ref.trait.wanted is not None or timed.end < 2:
            return
        if _is_change(timed.ref):
            for middle in range(timed.start + 1, timed.end):
                yield self._put_together(timed, middle)
        elif not timed.ref.trait.old:
            for start in range(timed.end - 1):
                yield from self._members(timed, self._place(timed.ref, start, timed.end))

    def _members(self, timed: Timed, at: Timed) -> Iterator[tuple[Member, Timed, list[Timed]]]:
        """By the rules, at an interval; at longer ones than its own, those that follow a change."""
        memo = self.memos.get((at.start, at.end), self.memo)
        for member in memo.group(timed.ref).members:
            if at is timed or any(_is_change(r) for r in member.refs):
                yield member, at, [self.timed(r, at.start, at.end) for r in member.refs]

    def _put_together(self, timed: Timed, middle: int) -> tuple[Member, Timed, list[Timed]]:
        """ΔR(t, t''] = ΔR(t, t'] + ΔR(t', t'']"""
        ref = timed.ref
        if ref not in self._in_two:
            earlier = ref.at(Trait(ref.trait.kind, old=True))
            self._in_two[ref] = Member("put_together", "", zset.plus([earlier, ref]))
        parts = [self._place(ref, timed.start, middle), self._place(ref, middle, timed.end)]
        return self._in_two[ref], timed, parts

    def is_source(self, timed: Timed) -> bool:
        """Is it stored without our doing?"""
        return self.memo.group(timed.ref).stored

    def span(self, timed: Timed) -> Span:
        """The span in which a relation's interval is looked at."""
        interval = (timed.start, timed.end)
        if interval not in self._spans:
            known = self.problem.spans.get(interval)
            self._spans[interval] = known or self.problem.span(interval)
        return self._spans[interval]

    def rows(self, timed: Timed) -> float:
        """How many rows it is expected to have, or has."""
        existing = self.existing.get(timed)
        if existing is not None and existing.rows is not None:
            return existing.rows
        return within(self.counts(self.span(timed), timed.ref), timed)

    def counts(self, span: Span, ref: Ref) -> Amount:
        """The rows of a group over a span."""
        key = (span, ref)
        if key not in self._counts:
            self._counts[key] = self._expected(span, ref)
        return self._counts[key]

    def _expected(self, span: Span, ref: Ref) -> Amount:
        trait, found = ref.trait, span.estimates.of(ref.tvr.node)
        if _is_change(ref):
            count = 0.0 if trait.old else found.change.rows  # of two parts, one counts for both
        else:
            count = found.before if trait.old else found.after
        if trait.wanted is None:
            return count
        wanted = sum(self.read(span, r) for r in trait.wanted.walk() if isinstance(r, Ref))
        keys = span.estimates.domain.distinct(ref.tvr.node, trait.keys)
        return count * least(1.0, wanted / keys)

    def read(self, span: Span, ref: Ref) -> Amount:
        """The rows of a group as it is read over a span, under its one name."""
        timed = [self.timed(ref, start, end) for start, end in span.intervals]
        if all(one is timed[0] for one in timed):
            return self.rows(timed[0])
        return array(self.rows(one) for one in timed)


def _is_change(ref: Ref) -> bool:
    return ref.trait.kind in (CHANGED, SUMS_CHANGED)


def within(amount: Amount, timed: Timed) -> float:
    """Of what there is over a span, that of one interval. Only the intervals from each point to the
    next are looked at together."""
    return float(amount[timed.start] if isinstance(amount, np.ndarray) else amount)
