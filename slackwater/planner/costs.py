"""What the ways of the memo cost, by the same model that a refresh is planned with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from slackwater.algebra.relation import Bag, Relation, Scan
from slackwater.planner.problem import Span, array
from slackwater.planner.timeline import Timed, Timeline, within
from slackwater.stats.amounts import Amount
from slackwater.stats.cost import KINDS, Model, operator_work
from slackwater.stats.reading import columns_read
from slackwater.stats.rows import Estimates, Rows
from slackwater.stats.values import Domain
from slackwater.tvr.memo import Member, Ref


class Seconds:
    """CPU seconds on an engine: a `Costs` of `planner/temporal.py`."""

    def __init__(self, model: Model, engine: str = "local") -> None:
        self._prices = dict(zip(KINDS, model.prices[engine, "cpu"], strict=True))
        self._over: dict[Span, _Over] = {}
        self._read: dict[Relation, Mapping[str, int]] = {}

    def member(self, timed: Timed, member: Member, timeline: Timeline) -> float:
        """The work of its operators."""
        span = timeline.span(timed)
        if span not in self._over:
            self._over[span] = _Over(timeline, span)
        over = self._over[span]
        if member not in over.members:
            over.know(member.relation, timeline.counts(span, timed.ref))
            over.members[member] = sum(self._operator(node, over) for node in member.operators)
        return within(over.members[member], timed)

    def _operator(self, node: Relation, over: _Over) -> Amount:
        if node not in over.operators:
            amounts = operator_work(node, over.count)
            cost = self._prices["operators"] + sum(self._prices[k] * a for k, a in amounts)
            over.operators[node] = cost * over.done(node)
        return over.operators[node]

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
            read = self._columns(timeline.problem.query).get(node.source)
            width = width if read is None else read + 1  # with weights
        return self._prices["scanned"] * timeline.rows(timed) * width

    def _columns(self, query: Relation) -> Mapping[str, int]:
        if query not in self._read:
            self._read[query] = columns_read([query])
        return self._read[query]


class _Over(Estimates):
    """The rows of relations over groups, in a span of a timeline, and what work costs there."""

    def __init__(self, timeline: Timeline, span: Span) -> None:
        super().__init__({}, timeline.problem.known)
        self._timeline = timeline
        self._span = span
        self.members: dict[Member, Amount] = {}
        self.operators: dict[Relation, Amount] = {}

    def know(self, relation: Relation, rows: Amount) -> None:
        """What a group has, whatever its members."""
        self._found.setdefault(relation, Rows(rows))

    def count(self, relation: Relation) -> Amount:
        """Rows."""
        return self.of(relation).before

    def ref(self, node: Ref) -> Rows:
        return Rows(self._timeline.read(self._span, node))

    def done(self, node: Relation) -> Amount:
        """Where an operator has anything to do: rows of a source from which none was taken away
        are stored as such."""
        if not isinstance(node, Bag) or not isinstance(node.input, Ref):
            return 1.0
        scan = node.input.tvr.node
        if not isinstance(scan, Scan):
            return 1.0
        read = [self._timeline.timed(node.input, *i).point for i in self._span.intervals]
        changes = self._timeline.problem.arrivals[scan.source].changes
        gone = [any(c.deletes or c.updates for c in changes[:point]) for point in read]
        return float(gone[0]) if len(set(gone)) == 1 else array(gone)

    @property
    def domain(self) -> Domain:
        if self._domain is None:
            below = self._span.estimates.domain
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
