"""What it costs on Spark to have rows where they are needed, run by run of a plan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil, inf, log2

from slackwater.algebra.relation import (
    Aggregate,
    Filter,
    Join,
    Project,
    Relation,
    Scan,
    TopK,
)
from slackwater.planner.places import ANYHOW, COPIED, DRIVER, FREE, Cost, Place
from slackwater.planner.problem import Problem
from slackwater.planner.runs import RunSteps, Saved, read_at, relations_of
from slackwater.stats.rows import Estimates, Rows
from slackwater.stats.values import Known, Values

EXCHANGED = (2e-7, 4e-8)
COPIED_WHOLE = (5e-7, 8e-8)
"""CPU seconds on Spark for each row, and each of its values: to exchange it, and to have a copy of
it wherever something is joined with it."""
MOST_COPIED = 8_000_000
"""Values; what has more is not copied."""
PIECE_VALUES = 2_000_000
LEAST_PIECES, MOST_PIECES = 8, 1024
"""What is spread comes in pieces of so many values, and at least and at most in so many."""
NEVER = 1e9
"""Seconds that keep out what is done only where there is nothing else."""


class Sizes:
    """How many rows there are of all that the runs of a plan compute."""

    def __init__(self, runs: Sequence[RunSteps], problem: Problem) -> None:
        self._saved = {saved.name: saved for run in runs for saved in run.saves}
        scans = (
            scan for run in runs for relation in relations_of(run) for scan in relation.scans()
        )
        sources = {
            scan.source: Rows(_expected(scan, problem))
            for scan in scans
            if scan.source not in self._saved
        }
        self._estimates = Estimates(sources, _Seen(problem.known, self._saved, self))
        for name, saved in self._saved.items():  # each reads those before it
            sources[name] = Rows(self.rows(saved.relation))

    def rows(self, relation: Relation) -> float:
        """Rows."""
        return float(self._estimates.of(relation).before)

    def values(self, relation: Relation) -> float:
        """Rows times columns."""
        return self.rows(relation) * relation.width

    def distinct(self, relation: Relation, column: int) -> float:
        """Different values of a column."""
        return float(self._estimates.domain.column(relation, column))

    def pieces(self) -> int:
        """In how many pieces rows are spread: a power of two, the same for all of a plan, since
        what comes in other numbers of pieces has to be exchanged to meet."""
        largest = max((self.values(saved.relation) for saved in self._saved.values()), default=1.0)
        wanted = max(1.0, largest / PIECE_VALUES)
        return min(MOST_PIECES, max(LEAST_PIECES, 1 << ceil(log2(wanted))))


class _Seen:
    """What is known of sources, and of what was saved from them."""

    def __init__(self, known: Known, saved: Mapping[str, Saved], sizes: Sizes) -> None:
        self._known = known
        self._saved = saved
        self._sizes = sizes

    def values(self, source: str, column: str) -> Values | None:
        if source not in self._saved:
            return self._known.values(source, column)
        relation = self._saved[source].relation
        place = [f.name for f in relation.schema].index(column)
        return Values(self._sizes.distinct(relation, place))

    def selectivity(self, node: Relation) -> float | None:
        return self._known.selectivity(node)


def _expected(scan: Scan, problem: Problem) -> float:
    """The rows of a source at a point, or of its change between two, or of what exists."""
    existing = {one.name: one.rows for one in problem.existing}
    if scan.source in existing:
        return existing[scan.source] or 0.0
    at = read_at(scan)
    arrival = problem.arrivals[at.id]
    if at.change:
        return sum(change.rows for change in arrival.changes[at.start : at.end])
    return arrival.at(at.end)


class Seconds:
    """CPU seconds of moves between Spark's workers. What is not spread by anything is gathered by
    one of them, which stands in the driver's place here; Spark never does so for joins."""

    def __init__(self, sizes: Sizes, relations: Sequence[Relation], pieces: int) -> None:
        self._sizes = sizes
        self._summed: dict[Relation, float] = {}
        for relation in relations:
            for node in relation.walk():
                if isinstance(node, Aggregate | TopK):  # most rows go before they move
                    most = self._sizes.rows(node) * pieces
                    self._summed[node.input] = min(most, self._summed.get(node.input, inf))

    def move(self, node: Relation, target: Place) -> Cost:
        rows = self._sizes.rows(node)
        if target == COPIED:
            never = NEVER if rows * node.width > MOST_COPIED else 0.0
            return (never + seconds(rows, node.width, COPIED_WHOLE), 0, 0, 0)
        if target == ANYHOW:
            return FREE  # from one worker
        return (seconds(min(rows, self._summed.get(node, inf)), node.width, EXCHANGED), 0, 0, 0)

    def operator(self, node: Relation, place: Place) -> Cost:
        copied = place == COPIED and not isinstance(node, Filter | Project)
        gathered = place == DRIVER and isinstance(node, Join)
        return (NEVER, 0, 0, 0) if copied or gathered else FREE


def seconds(rows: float, width: int, prices: tuple[float, float]) -> float:
    """What it takes to move so many rows."""
    return rows * (prices[0] + width * prices[1])
