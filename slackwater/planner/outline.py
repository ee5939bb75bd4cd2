"""A view as operators of the budget, its costs taken from the laws themselves.

An operator is one that something may be kept of, with all below it that nothing is kept of, down
to tables and to the next such operators. With those cut off and put in as scans, the laws give its
change and its rows, with and without its state: what they do is what it costs, and the scans that
they read are what it asks of the operators below.

A join is taken as it is, or divided into parts that are operators of their own: around an input
that changes, the others joined as far as they hold together, or every input by itself. One input is
a part where a condition leaves out rows of it: none, either or both sides of a join may be kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from slackwater.algebra.relation import Join, Relation, Scan
from slackwater.planner.budget import Action, Operator, Way
from slackwater.planner.cutting import Cut, Scene, leaf
from slackwater.stats.cost import Work, work_of
from slackwater.stats.rows import Rows
from slackwater.tvr import zset
from slackwater.tvr.delta import Deltas
from slackwater.tvr.maintenance import Maintenance, is_repeatable
from slackwater.tvr.methods.divided import Injected, divisions
from slackwater.tvr.methods.higher_order import Part, spread, whole_joins
from slackwater.tvr.states import State
from slackwater.tvr.states.buffer import BufferState
from slackwater.tvr.states.rows import RowState
from slackwater.tvr.states.sums import SumState

MOST_PIVOTS = (2, 1)
"""Around so many inputs, those that change most, a join is taken; and so many, a part's."""
LEAST_SECONDS = 0.2
"""What takes less to compute is not worth looking for parts to keep."""


@dataclass(frozen=True)
class Candidate:
    """A state that may be kept: how many rows it would have, and what it takes to build."""

    state: State
    rows: float
    build_seconds: float


@dataclass
class Outline:
    """One view and what is expected to come next.

    `pivots`: around how many inputs a join is taken, a part's, and so on. `injected`: which parts
    of joins may be kept. `anew_seconds`: what the work of computing the whole view takes, where
    more is known of that.
    """

    plan: Maintenance
    scene: Scene
    pivots: tuple[int, ...] = MOST_PIVOTS
    injected: Injected = Injected.ALL
    least_seconds: float = LEAST_SECONDS
    anew_seconds: Callable[[Work], float] | None = None
    candidates: dict[str, Candidate] = field(default_factory=dict)
    """By signature, what there is to choose from; filled by `operator`."""
    _operators: dict[Relation, Operator] = field(default_factory=dict)

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
        rows = zset.with_weight(self.plan.root)
        work = work_of([rows], [rows], self.scene.at.count, merged=self.scene.merged)
        return Action(rows=Way(float((self.anew_seconds or self.scene.seconds)(work))))

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

    def _cuts(self, node: Relation, depth: int) -> Iterator[Cut]:
        """An operator down to those below it: as it is, and with a join divided."""
        whole = self._cut(node, {}, depth)
        yield whole
        if depth >= len(self.pivots) or whole.anew.seconds < self.least_seconds:
            return
        for join in self._joins(node):
            pivots = self._pivots(join, self.pivots[depth])
            for form in divisions(join, pivots, self.injected) if pivots else ():
                yield self._cut(node, {join: form}, depth)

    def _joins(self, node: Relation) -> list[Join]:
        """The joins above the next operators."""
        below = {
            n for c in node.walk() if c is not node and c in self.plan.states for n in c.walk()
        }
        return [join for join in whole_joins(node) if join not in below]

    def _pivots(self, join: Join, most: int) -> list[int]:
        inputs = spread(join).inner.inputs
        changes = [self.scene.estimates.of(r).change.rows for r in inputs]
        order = sorted((i for i, rows in enumerate(changes) if rows), key=lambda i: -changes[i])
        return order[:most]

    def _cut(self, node: Relation, forms: Mapping[Relation, Relation], depth: int) -> Cut:
        found: dict[Relation, Scan] = {}

        def visit(below: Relation) -> Relation:
            if below in forms:
                return visit(forms[below])
            if below is not node and (below in self.plan.states or isinstance(below, Part)):
                return found.setdefault(below, leaf(below, len(found)))
            return below.with_children(visit)

        tree = visit(node)
        operators = tuple(
            self._below(n, depth + 1 if isinstance(n, Part) else depth) for n in found
        )
        return Cut(self.scene, node, tree, tuple(found), operators, self._kept_rows(node))

    def _kept_rows(self, node: Relation) -> dict[str, tuple[State, Rows]]:
        """What may be kept of an operator, by what it is stored under, and its rows."""
        rows = self.scene.estimates.of(node)
        found: dict[str, tuple[State, Rows]] = {}
        if node is self.plan.root and self.plan.own is not None:
            found[self.plan.own.id] = self.plan.own, rows
        if node in self.plan.states or isinstance(node, Part):
            state = self._state(node)
            before = rows.before
            if isinstance(state, BufferState):
                below = self.scene.estimates.of(state.node.input).before
                before = min(float(state.filled), float(below))
            found[state.id] = state, Rows(before, rows.change)
        return found

    # -- actions

    def _dropped(self, cut: Cut, is_view: bool = False) -> Action:
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

    def _of_view(self, cut: Cut, own: RowState) -> Action:
        """The view's own rows are there anyway."""
        if not cut.changes:
            return Action((), cut.operators, Way(0.0, cut.nothing))
        state = replace(own, node=cut.tree)
        found = state.change(cut.deltas({cut.tree: state}))
        return Action((), cut.operators, cut.way([found], [found]))

    def _kept(self, cut: Cut, state: State, is_view: bool = False) -> Action:
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

    def _candidate(self, cut: Cut, state: State) -> Candidate:
        """Built from tables alone, as what is kept besides is not known."""
        found = state.initial(Deltas(frozenset(), self.scene.weighted))
        work = work_of([found], [found], self.scene.at.count)
        _, rows = cut.kept[state.id]
        return Candidate(state, float(rows.before), float(self.scene.seconds(work)))
