"""A view as operators of the budget, its costs taken from the laws themselves.

An operator is one that something may be kept of, with all below it that nothing is kept of, down
to tables and to the next such operators. With those cut off and put in as scans, the laws give its
change and its rows, with and without its state: what they do is what it costs, and the scans that
they read are what it asks of the operators below.

A join is taken as it is, or around an input that changes, with the parts that it is joined with as
operators of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from slackwater.algebra.expr import Column
from slackwater.algebra.relation import Join, Relation, Scan
from slackwater.planner.budget import BOTH, CHANGE, ROWS, Action, Operator, Way
from slackwater.stats.cost import KINDS, Work, operator_work
from slackwater.stats.rows import Estimates, Rows
from slackwater.stats.values import Known, Values
from slackwater.tvr import time, zset
from slackwater.tvr.delta import Deltas
from slackwater.tvr.maintenance import Maintenance, is_repeatable, whole_joins
from slackwater.tvr.methods.higher_order import Part, around, parts, spread
from slackwater.tvr.references import Reference
from slackwater.tvr.states import State
from slackwater.tvr.states.buffer import BufferState
from slackwater.tvr.states.rows import RowState
from slackwater.tvr.states.sums import SumState
from slackwater.types import Field

MOST_PIVOTS = (2, 1)
"""Around so many inputs, those that change most, a join is taken; and so many, a part's."""
LEAST_SECONDS = 0.2
"""What takes less to compute is not worth looking for parts to keep."""
TIMES = (time.OLD, time.NEW, time.NOW, time.CHANGE)


@dataclass(frozen=True)
class Candidate:
    """A state that may be kept: how many rows it would have, and what it takes to build."""

    state: State
    rows: float
    build_seconds: float


@dataclass
class Outline:
    """One view and what is expected to come next.

    `rows`: of each source, before and what comes. `seconds`: what work takes. `weighted`: sources
    that are stored with weights. `pivots`: around how many inputs a join is taken, a part's, and
    so on; none where parts of joins are not to be kept.
    """

    plan: Maintenance
    rows: Mapping[str, Rows]
    known: Known
    seconds: Callable[[Work], float]
    weighted: frozenset[str] = frozenset()
    references: frozenset[Reference] = frozenset()
    pivots: tuple[int, ...] = MOST_PIVOTS
    least_seconds: float = LEAST_SECONDS
    anew_seconds: Callable[[Work], float] | None = None
    """What the work of computing the whole view takes, where more is known of that."""
    candidates: dict[str, Candidate] = field(default_factory=dict)
    """By signature, what there is to choose from; filled by `operator`."""
    _operators: dict[Relation, Operator] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._estimates = Estimates(self.rows, self.known)
        self._changed = frozenset(id for id, rows in self.rows.items() if rows.change.rows)

    def operator(self) -> Operator:
        """The view: it follows changes, or is computed anew from its tables alone."""
        root, plan = self.plan.root, self.plan
        state, actions = plan.states.get(root), [self._anew()]
        for cut in self._cuts(root, 0):
            if state is not None and state is not plan.own:
                actions.append(self._kept(cut, state, is_view=True))
            if plan.own is not None:
                actions.append(self._of_view(cut, plan.own))
            elif cut.is_whole or state is None:
                actions.append(self._dropped(cut, is_view=True))
        return Operator("view", tuple(actions))

    def _anew(self) -> Action:
        rows = zset.with_weight(Deltas(frozenset(), self.weighted).rows(self.plan.root))
        work = work_of([rows], [rows], self._at.count)
        return Action(rows=Way(float((self.anew_seconds or self.seconds)(work))))

    def _below(self, node: Relation, depth: int) -> Operator:
        """An operator that something may be kept of. Parts are of use to what it keeps, where its
        change can do without other rows of its inputs."""
        if node not in self._operators:
            state = self._state(node)
            actions = []
            for cut in self._cuts(node, depth):
                if cut.is_whole or not isinstance(state, SumState):
                    actions.append(self._dropped(cut))
                actions.append(self._kept(cut, state))
            self._operators[node] = Operator(state.name, tuple(actions))
        return self._operators[node]

    def _state(self, node: Relation) -> State:
        if isinstance(node, Part):
            return RowState(node, node.digest())
        return self.plan.states[node]

    # -- cutting off

    def _cuts(self, node: Relation, depth: int) -> Iterator[_Cut]:
        """An operator down to those below it: as it is, and with a join around an input."""
        whole = self._cut(node, {}, depth)
        yield whole
        if depth >= len(self.pivots) or whole.anew.seconds < self.least_seconds:
            return
        for join in self._joins(node):
            for pivot in self._pivots(join, self.pivots[depth]):
                form = around(join, pivot)
                if form is not None and parts(form):
                    yield self._cut(node, {join: form}, depth)

    def _joins(self, node: Relation) -> list[Join]:
        """The joins above the next operators."""
        below = {
            n for c in node.walk() if c is not node and c in self.plan.states for n in c.walk()
        }
        return [join for join in whole_joins(node) if join not in below]

    def _pivots(self, join: Join, most: int) -> list[int]:
        inputs = spread(join).inner.inputs
        changes = [self._estimates.of(r).change.rows for r in inputs]
        order = sorted((i for i, rows in enumerate(changes) if rows), key=lambda i: -changes[i])
        return order[:most]

    def _cut(self, node: Relation, forms: Mapping[Relation, Relation], depth: int) -> _Cut:
        found: dict[Relation, Scan] = {}

        def visit(below: Relation) -> Relation:
            if below in forms:
                return visit(forms[below])
            if below is not node and (below in self.plan.states or isinstance(below, Part)):
                return found.setdefault(below, _leaf(below, len(found)))
            return below.with_children(visit)

        tree = visit(node)
        operators = tuple(
            self._below(n, depth + 1 if isinstance(n, Part) else depth) for n in found
        )
        return _Cut(self, node, tree, tuple(found), operators, self._kept_rows(node))

    def _kept_rows(self, node: Relation) -> dict[str, Rows]:
        """Of what may be kept of an operator, by what it is stored under."""
        rows = self._estimates.of(node)
        found = (
            {} if node is not self.plan.root or self.plan.own is None else {self.plan.own.id: rows}
        )
        if node in self.plan.states or isinstance(node, Part):
            state = self._state(node)
            before = rows.before
            if isinstance(state, BufferState):
                below = self._estimates.of(state.node.input).before
                before = min(float(state.filled), float(below))
            found[state.id] = Rows(before, rows.change)
        return found

    # -- actions

    def _dropped(self, cut: _Cut, is_view: bool = False) -> Action:
        """Nothing is kept: both follow from what is below; a change that cannot be told from rows
        computed again, not at all."""
        rows = None if is_view else cut.anew
        if not cut.changes:
            return Action((), cut.operators, Way(0.0, cut.nothing), rows, rows)
        if not is_repeatable(cut.node) and cut.node in self.plan.states:
            return Action((), cut.operators, None, rows)
        found = cut.deltas({}).sure(cut.tree)
        change = cut.way([found], [zset.consolidate(found)] if is_view else ())
        return Action((), cut.operators, change, rows)

    def _of_view(self, cut: _Cut, own: RowState) -> Action:
        """The view's own rows are there anyway."""
        if not cut.changes:
            return Action((), cut.operators, Way(0.0, cut.nothing))
        state = replace(own, node=cut.tree)
        found = state.change(cut.deltas({cut.tree: state}))
        return Action((), cut.operators, cut.way([found], [found]))

    def _kept(self, cut: _Cut, state: State, is_view: bool = False) -> Action:
        """A state is brought along, whatever is asked; all rows are then read from it."""
        signature = cut.node.digest()
        if signature not in self.candidates:
            self.candidates[signature] = self._candidate(cut, state)
        own: State = replace(state, node=cut.tree)  # type: ignore[arg-type]
        deltas = cut.deltas({cut.tree: own})
        change = Way(0.0, cut.nothing)
        if cut.changes:
            made, given = own.change(deltas), own.delta(deltas)
            written = [made, zset.consolidate(given)] if is_view else [made]
            change = cut.way([made, given], written)
        if is_view:
            return Action((signature,), cut.operators, change)
        read = cut.way([zset.with_weight(deltas.rows(cut.tree))])
        rows = Way(change.seconds + read.seconds, change.asks)
        return Action((signature,), cut.operators, change, rows, rows)

    def _candidate(self, cut: _Cut, state: State) -> Candidate:
        """Built from tables alone, as what is kept besides is not known."""
        found = state.initial(Deltas(frozenset(), self.weighted))
        work = work_of([found], [found], self._at.count)
        rows = cut.kept[state.id].before
        return Candidate(state, float(rows), float(self.seconds(work)))

    @cached_property
    def _at(self) -> _At:
        return _At(self, {}, {})


@dataclass(frozen=True)
class _Cut:
    """An operator with those below it put in as scans."""

    outline: Outline
    node: Relation
    tree: Relation
    leaves: tuple[Relation, ...]
    operators: tuple[Operator, ...]
    kept: Mapping[str, Rows]

    @cached_property
    def at(self) -> _At:
        """How many rows there are of anything over it."""
        leaves = {_leaf_id(i): leaf for i, leaf in enumerate(self.leaves)}
        return _At(self.outline, leaves, self.kept)

    @property
    def is_whole(self) -> bool:
        """Is no join of it put around an input?"""
        return not any(isinstance(leaf, Part) for leaf in self.leaves)

    @property
    def changes(self) -> bool:
        """Does anything below it?"""
        return time.reads(self.node, self.outline._changed)

    @property
    def nothing(self) -> tuple[int, ...]:
        """Asked of those below."""
        return (0,) * len(self.leaves)

    @cached_property
    def anew(self) -> Way:
        """All rows, with nothing kept."""
        return self.way([self._plain])

    @cached_property
    def _plain(self) -> Relation:
        return zset.with_weight(Deltas(frozenset(), self.outline.weighted).rows(self.tree))

    def deltas(self, states: Mapping[Relation, State]) -> Deltas:
        """For its change."""
        changing = {
            _leaf_id(i)
            for i, leaf in enumerate(self.leaves)
            if time.reads(leaf, self.outline._changed)
        }
        changed = self.outline._changed | changing
        return Deltas(changed, self.outline.weighted, states, references=self.outline.references)

    def way(self, relations: Sequence[Relation], written: Iterable[Relation] = ()) -> Way:
        """What it takes to compute relations over the scans, and to write some, and what of the
        operators below they read."""
        asks = [0] * len(self.leaves)
        for relation in relations:
            for scan in relation.scans():
                id, when = time.split(scan.source)
                if id in self.at.leaves:
                    own = list(self.at.leaves).index(id)
                    asks[own] |= CHANGE if when == time.CHANGE else ROWS
        work = work_of(relations, written, self.at.count, set(self.at.leaves))
        return Way(float(self.outline.seconds(work)), tuple(a & BOTH for a in asks))


class _At:
    """The rows of relations over sources, leaves and states at any time."""

    def __init__(
        self,
        outline: Outline,
        leaves: Mapping[str, Relation],
        states: Mapping[str, Rows],
    ) -> None:
        self.leaves = leaves
        self._outline = outline
        over = {**outline.rows, **states}
        over |= {id: outline._estimates.of(leaf) for id, leaf in leaves.items()}
        sizes = {id: Rows(rows.after) for id, rows in over.items()}
        for id, rows in over.items():
            counts = (rows.before, rows.after, rows.after, rows.change.rows)
            sizes |= {id + t: Rows(n) for t, n in zip(TIMES, counts, strict=True)}
        self._estimates = Estimates(sizes, self)

    def count(self, relation: Relation) -> float:
        """How many."""
        return float(self._estimates.of(relation).before)

    def values(self, source: str, column: str) -> Values | None:
        """What is known of a column; of a leaf's, what follows from those below it."""
        id, _ = time.split(source)
        if id not in self.leaves:
            return self._outline.known.values(source, column)
        leaf, place = self.leaves[id], column.removeprefix("c")
        if not place.isdigit():
            return None
        own = leaf.schema[int(place)]
        domain = self._outline._estimates.domain
        return Values(domain.distinct(leaf, [Column(own.type, own.nullable, int(place))]))

    def selectivity(self, node: Relation) -> float | None:
        """As it was measured."""
        return self._outline.known.selectivity(node)


def work_of(
    relations: Iterable[Relation],
    written: Iterable[Relation],
    rows: Callable[[Relation], float],
    given: Iterable[str] = (),
) -> Work:
    """What it takes to compute relations, and to write some of them; what is given is not read."""
    written = list(written)
    there = set(given)
    totals = dict.fromkeys(KINDS, 0.0)
    totals["written"] = sum(rows(r) * r.width for r in written)
    for node in {n for r in (*relations, *written) for n in r.walk()}:
        if isinstance(node, Scan) and time.split(node.source)[0] in there:
            continue
        totals["operators"] += 1.0
        for kind, amount in operator_work(node, rows):
            totals[kind] += amount
    return Work(**totals)


def _leaf_id(i: int) -> str:
    return f"leaf{i}"


def _leaf(node: Relation, i: int) -> Scan:
    fields = tuple(Field(f"c{k}", f.type, f.nullable) for k, f in enumerate(node.schema))
    return Scan(_leaf_id(i), _leaf_id(i), fields)
