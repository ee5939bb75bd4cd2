"""An incremental planning problem as a value (001, 2.1): times, data, results, and what counts.

Runs are possible at some time points. At the first, sources are there as they are then; between
one point and the next, each gets a change. A result is wanted at some of the points. What counts
is the cost of all runs, weighted by the price at their time, or the cost of the last run first,
then of those before it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from slackwater.algebra.expr import Expr
from slackwater.algebra.relation import Relation
from slackwater.errors import UserError
from slackwater.planner.existing import Existing
from slackwater.stats.amounts import Amount
from slackwater.stats.cost import Model
from slackwater.stats.reading import read_columns
from slackwater.stats.rows import Change, Estimates, Rows
from slackwater.stats.sound import is_finite
from slackwater.stats.turnover import Turnover
from slackwater.stats.values import Ignorance, Known, drawn
from slackwater.tvr.references import NO_PROMISES, Promises

SHRINKS = 2
"""With fewer rows in a group, to sum them up before they are joined takes more than it saves: a row
that is not summed up is hashed once to be joined, and once to be summed up then. And where each
row has a value of its own, values are expected as if drawn: 1.6 rows for each."""
MANY = 4
"""Arrays pay from so many numbers on."""


@dataclass(frozen=True)
class Arrival:
    """A source over the timeline: its rows at the first point, and the change up to each later.
    `updated`: the only columns that updates change, where that is known."""

    rows: float
    changes: tuple[Change, ...]
    updated: frozenset[str] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "rows", Rows(self.rows).sound.before)
        object.__setattr__(self, "changes", tuple(change.sound for change in self.changes))

    def seen_by(self, read: Collection[str]) -> Arrival:
        """As whoever reads some columns sees it: rows of which only others change stay."""
        if self.updated is None or not self.updated.isdisjoint(read):
            return self
        return replace(self, changes=tuple(replace(c, updates=0.0) for c in self.changes))

    def at(self, point: int) -> float:
        """Its rows at a time point."""
        return max(0.0, self.rows + sum(change.net for change in self.changes[:point]))


@dataclass(frozen=True)
class Problem:
    """What is to be planned."""

    query: Relation  # in normal form
    arrivals: Mapping[str, Arrival]
    prices: tuple[float, ...]  # of a unit of work at each time point
    due: frozenset[int] = frozenset()  # points with a result; the last, if none is named
    last_first: bool = False  # compare the last run's cost first, whatever the prices
    known: Known = field(default_factory=Ignorance)
    promises: Promises = NO_PROMISES
    existing: tuple[Existing, ...] = ()
    done: int = 0
    """So many runs have happened: nothing can be done in them any more."""
    model: Model = field(default_factory=Model)
    """What work takes on each engine, by what was measured or as it is believed before that."""
    turnover: Turnover = field(default_factory=Turnover)
    """How many rows of the query and of its operators refreshes were seen to change."""

    def __post_init__(self) -> None:
        points = len(self.prices)
        if not points:
            raise UserError(
                "A plan needs a time point.", code="BAD_PROBLEM", hint="Give a price for each run."
            )
        if not all(map(is_finite, self.prices)):
            raise UserError(
                f"No price of a run is below nothing or endless: {self.prices}.",
                code="BAD_PROBLEM",
                hint="Give each run's price as a number, such as 0.3 or 1.",
            )
        for source, arrival in self.arrivals.items():
            if len(arrival.changes) != points - 1:
                raise UserError(
                    f"Source '{source}' has {len(arrival.changes)} changes for {points} points.",
                    code="BAD_PROBLEM",
                    hint="Give one change for each time point after the first.",
                )
        for scan in self.query.scans():
            if scan.source not in self.arrivals:
                raise UserError(
                    f"Nothing is said of source '{scan.name}'.",
                    code="BAD_PROBLEM",
                    hint="Say how many rows it has, and how many come and go.",
                )
        self._check_existing()

    def _check_existing(self) -> None:
        last = len(self.prices) - 1
        if not self.done <= max((*self.due, -1)) and (self.due or self.done > last):
            raise UserError(
                f"No result is due after {self.done} runs.",
                code="BAD_PROBLEM",
                hint=f"The last run is {last}; there is nothing left to plan.",
            )
        for one in self.existing:
            places = [place for place in (one.start, one.at) if place is not None]
            if any(place not in self.points for place in (*places, one.since)):
                raise UserError(
                    f"'{one.name}' exists at a time point that the problem has not.",
                    code="BAD_PROBLEM",
                    hint=f"The points are 0 to {last}.",
                )

    @property
    def points(self) -> range:
        """The time points."""
        return range(len(self.prices))

    @cached_property
    def results(self) -> tuple[int, ...]:
        """Where a result is wanted that is not there yet."""
        return tuple(sorted(p for p in self.due if p >= self.done)) or (len(self.prices) - 1,)

    @cached_property
    def seen(self) -> Mapping[str, Arrival]:
        """The sources as the query sees them."""
        read = read_columns([self.query])
        return {source: a.seen_by(read.get(source, ())) for source, a in self.arrivals.items()}

    @cached_property
    def changed(self) -> frozenset[str]:
        """The sources that change in what the query reads of them."""
        return frozenset(s for s, a in self.seen.items() if any(c.rows for c in a.changes))

    @cached_property
    def relied_on(self) -> Promises:
        """The promises, without references to sources in which rows are expected to be updated:
        there a key both comes and goes."""
        still = {s for s, a in self.arrivals.items() if not any(c.updates for c in a.changes)}
        kept = frozenset(r for r in self.promises.references if r.target in still)
        return Promises(self.promises.keys, kept)

    def shrinks(self, relation: Relation, keys: tuple[Expr, ...]) -> bool:
        """Are there clearly fewer groups of a relation by some keys than rows, at the end?"""
        estimates = self._to_the_end.estimates
        rows = estimates.of(relation).after
        return rows > SHRINKS * drawn(estimates.domain.possible(relation, keys), rows)

    @cached_property
    def _to_the_end(self) -> Span:
        return self.span((0, self.points[-1]))

    @cached_property
    def spans(self) -> Mapping[tuple[int, int], Span]:
        """The intervals from each point to the next, each in the span that it is looked at in:
        where they are many, all in one."""
        steps = tuple((point, point + 1) for point in self.points[:-1])
        if len(steps) < MANY:
            return {step: self.span(step) for step in steps}
        return dict.fromkeys(steps, self.span(*steps))

    def span(self, *intervals: tuple[int, int]) -> Span:
        """Some intervals, with the rows of every expression in them."""
        sources = {name: _over(arrival, intervals) for name, arrival in self.seen.items()}
        updated = {s: a.updated for s, a in self.seen.items() if a.updated is not None}
        corrected = self.turnover.corrected(self.query, sources, self.known, updated)
        return Span(intervals, corrected)


@dataclass(frozen=True, eq=False)
class Span:
    """Intervals that are looked at in one pass, and the rows of every expression over them: one
    number where there is one interval, else an array."""

    intervals: tuple[tuple[int, int], ...]
    estimates: Estimates


def _over(arrival: Arrival, intervals: tuple[tuple[int, int], ...]) -> Rows:
    """A source over some intervals."""
    changes = [sum(arrival.changes[start:end], Change()) for start, end in intervals]
    befores = [arrival.at(start) for start, _ in intervals]
    if len(intervals) == 1 or not any(c.rows for c in arrival.changes):
        return Rows(befores[0], changes[0])
    kinds = zip(*((c.inserts, c.updates, c.deletes) for c in changes), strict=True)
    return Rows(array(befores), Change(*(array(kind) for kind in kinds)))


def array(values: Iterable[float]) -> Amount:
    """Numbers for many cases at once."""
    found: Amount = np.array(list(values), dtype=float)  # type: ignore[assignment]
    return found
