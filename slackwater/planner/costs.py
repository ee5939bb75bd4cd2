"""What the ways of the memo cost, by the same model that a refresh is planned with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from slackwater.algebra.expr import used_columns
from slackwater.algebra.relation import Bag, Project, Relation, Scan
from slackwater.planner.temporal import Timed, Timeline
from slackwater.stats.cost import KINDS, Model, operator_work
from slackwater.stats.rows import Estimates, Rows
from slackwater.stats.values import Domain
from slackwater.tvr.memo import Member, Ref


class Seconds:
    """CPU seconds on an engine: a `Costs` of `planner/temporal.py`."""

    def __init__(self, model: Model, engine: str = "local") -> None:
        self._prices = dict(zip(KINDS, model.prices[engine, "cpu"], strict=True))
        self._within: dict[tuple[int, int], _Within] = {}
        self._operators: dict[tuple[int, int, Relation], float] = {}
        self._read: dict[Relation, Mapping[str, int]] = {}

    def member(self, timed: Timed, member: Member, timeline: Timeline) -> float:
        """The work of its operators."""
        rows = self._rows(timed, timeline)
        rows.know(member.relation, timeline.rows(timed))
        total = 0.0
        for node in member.relation.walk():
            if not isinstance(node, Ref) and not self._is_plain(node, timed, timeline):
                key = (timed.start, timed.end, node)
                if key not in self._operators:
                    self._operators[key] = self._operator(node, rows)
                total += self._operators[key]
        return total

    def _is_plain(self, node: Relation, timed: Timed, timeline: Timeline) -> bool:
        """Are these the rows of a source from which none was taken away? They are stored so."""
        if not isinstance(node, Bag) or not isinstance(node.input, Ref):
            return False
        source = timeline.timed(node.input, timed.start, timed.end)
        scan = source.ref.tvr.node
        if not isinstance(scan, Scan):
            return False
        changes = timeline.problem.arrivals[scan.source].changes[: source.point]
        return not any(change.deletes or change.updates for change in changes)

    def _operator(self, node: Relation, rows: _Within) -> float:
        amounts = operator_work(node, rows.count)
        return self._prices["operators"] + sum(self._prices[k] * a for k, a in amounts)

    def _rows(self, timed: Timed, timeline: Timeline) -> _Within:
        key = (timed.start, timed.end)
        if key not in self._within:
            self._within[key] = _Within(timeline, *key)
        return self._within[key]

    def read(self, timed: Timed, timeline: Timeline) -> float:
        """A source is read whenever it is needed."""
        return self.load(timed, timeline)

    def save(self, timed: Timed, timeline: Timeline) -> float:
        """Values written."""
        return self._prices["written"] * timeline.rows(timed) * timed.ref.width

    def load(self, timed: Timed, timeline: Timeline) -> float:
        """Values read; of a source, only of columns that the query reads."""
        node = timed.ref.tvr.node
        width = timed.ref.width
        if isinstance(node, Scan):
            width = self._columns(timeline.problem.query).get(node.source, width)
        return self._prices["scanned"] * timeline.rows(timed) * width

    def _columns(self, query: Relation) -> Mapping[str, int]:
        if query not in self._read:
            self._read[query] = columns_read(query)
        return self._read[query]


def columns_read(query: Relation) -> dict[str, int]:
    """By source, of how many columns a query reads values, weights included."""
    found: dict[str, set[int]] = {}
    for node in query.walk():
        for scan in node.inputs:
            if isinstance(scan, Scan):
                every = set(range(scan.width))
                read = used_columns(*node.exprs) if isinstance(node, Project) else every
                found.setdefault(scan.source, set()).update(read)
    return {source: len(read) + 1 for source, read in found.items()}


class _Within(Estimates):
    """The rows of relations over groups, between two points of a timeline."""

    def __init__(self, timeline: Timeline, start: int, end: int) -> None:
        super().__init__({}, timeline.problem.known)
        self._timeline = timeline
        self._start = start
        self._end = end

    def know(self, relation: Relation, rows: float) -> None:
        """What a group has, whatever its members."""
        self._found.setdefault(relation, Rows(rows))

    def count(self, relation: Relation) -> float:
        """Rows."""
        return self.of(relation).before

    def ref(self, node: Ref) -> Rows:
        return Rows(self._timeline.rows(self._timeline.timed(node, self._start, self._end)))

    @property
    def domain(self) -> Domain:
        if self._domain is None:
            below = self._timeline.problem.estimates(self._start, self._end).domain
            self._domain = _OfGroups(self._timeline.problem.known, self.count, below=below)
        return self._domain

    _domain: Domain | None = None


@dataclass(frozen=True)
class _OfGroups(Domain):
    """Different values in columns of groups: as many as in the expression that they belong to."""

    below: Domain | None = None

    def _values(self, node: Relation, i: int) -> float:
        if isinstance(node, Ref) and self.below is not None and i < node.tvr.node.width:
            return self.below.column(node.tvr.node, i)
        return super()._values(node, i)
