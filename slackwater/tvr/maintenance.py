"""How a query is maintained: its normal form, and what is kept of its operators."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace

from slackwater.algebra.relation import Aggregate, Join, Opaque, Project, Relation, TopK, Window
from slackwater.tvr.delta import Laws
from slackwater.tvr.methods import higher_order, im2, ojv
from slackwater.tvr.methods.counted import counted
from slackwater.tvr.methods.divided import Wish
from slackwater.tvr.methods.higher_order import whole_joins
from slackwater.tvr.methods.spine import Spine, spines
from slackwater.tvr.normal import normalize
from slackwater.tvr.states import State, choose_states
from slackwater.tvr.states.rows import RowState
from slackwater.tvr.states.sums import SumState
from slackwater.types import DOUBLE, FLOAT, Schema

REPEATABLE = frozenset({"count", "sum", "avg", "min", "max"})
"""Aggregates that give the same for the same rows, in whatever order these come."""


@dataclass(frozen=True)
class Maintenance:
    """A query in normal form with its states, those that others are computed from first."""

    root: Relation
    states: Mapping[Relation, State]
    forms: Mapping[Relation, Relation] = field(default_factory=dict)
    """Operators whose change is computed in another form."""
    laws: Mapping[Relation, Laws] = field(default_factory=dict)
    """Operators whose change is computed by laws of their own."""
    own: RowState | None = None
    """The view's own rows as those of its topmost operator, where it is one that may need them."""

    @property
    def kept(self) -> tuple[State, ...]:
        """The states besides the view's own rows."""
        return tuple(s for s in self.states.values() if s.node is not self.root or not _is_rows(s))

    @property
    def root_is_kept(self) -> bool:
        """Are the view's rows those of a state?"""
        return self.root in self.states and _is_rows(self.states[self.root])


def _in_no_other_order(join: Join, spine: Spine) -> None:
    return None


def maintenance(
    query: Relation, view: str, schema: Schema, id_of: Callable[[Relation], str]
) -> Maintenance:
    """The maintenance of a view; its own rows serve as state of the topmost operator."""
    root = normalize(query)
    states = choose_states(root, id_of)
    own = RowState(root, view, tuple(f.name for f in schema))
    if root in states and _is_rows(states[root]):
        states[root] = own
    serves = isinstance(root, Aggregate | Opaque | TopK | Window)
    return Maintenance(root, states, own=own if serves else None)


def with_parts_kept(
    plan: Maintenance,
    pivot: Callable[[Join], int | None],
    id_of: Callable[[Relation], str],
    last: Callable[[Join, Spine], Project | None] = _in_no_other_order,
) -> Maintenance | None:
    """The same with joins around an input each, and the parts that it is joined with kept; with
    spines that have a form in which one right side is joined last, and all else is kept; and with
    the keys of the right sides of semi joins kept. None where no join has any of these."""
    forms, done = _with_ones_last(plan.root, last)
    for join in (j for j in whole_joins(plan.root) if j not in done):
        place = pivot(join)
        form = None if place is None else higher_order.around(join, place)
        if form is not None:
            forms[join] = form
    parts: dict[Relation, list[State]] = {
        join: [RowState(part, id_of(part)) for part in higher_order.parts(form)]
        for join, form in forms.items()
    }
    for node in plan.root.walk():
        found = counted(node) if isinstance(node, Join) and node not in done else None
        if found is not None:
            forms[node], keys = found
            parts[node] = [SumState(keys, id_of(keys))]
    if not forms:
        return None
    states: dict[Relation, State] = {}
    for node in plan.root.walk():  # a part reads what is below its join
        states |= {state.node: state for state in parts.get(node, ())}
        if node in plan.states:
            states[node] = plan.states[node]
    return Maintenance(plan.root, states, forms)


def _with_ones_last(
    root: Relation, last: Callable[[Join, Spine], Project | None]
) -> tuple[dict[Relation, Relation], set[Relation]]:
    """The forms of spines in which one right side is joined last, and the joins of these."""
    forms: dict[Relation, Relation] = {}
    done: set[Relation] = set()
    for top, spine in spines(root):
        form = last(top, spine)
        if form is not None:
            forms[top] = form
            done |= spine.joins
    return forms, done


def by_direct_and_indirect(
    plan: Maintenance, changes: Callable[[Relation], bool]
) -> Maintenance | None:
    """The same with left joins maintained by OJV; None where no right side of them changes."""
    joins = [node for node in padding(plan, changes) if ojv.is_for(node)]
    return replace(plan, laws=dict.fromkeys(joins, ojv.LAWS)) if joins else None


def by_parts(plan: Maintenance, changes: Callable[[Relation], bool]) -> Maintenance | None:
    """The same with outer joins maintained by IM-2; None where they pad nothing that changes."""
    joins = padding(plan, changes)
    forms: dict[Relation, Relation] = {join: im2.in_parts(join) for join in joins}
    return replace(plan, forms={**plan.forms, **forms}) if joins else None


def padding(plan: Maintenance, changes: Callable[[Relation], bool]) -> list[Join]:
    """The outer joins that pad other rows when a side of theirs changes, and one does."""
    return [
        node
        for node in _outer_joins(plan)
        if changes(node.right) or (node.how == "full" and changes(node.left))
    ]


def _outer_joins(plan: Maintenance) -> list[Join]:
    """Those of a query, and of other forms of its joins, whose change may be asked for."""
    roots = (plan.root, *plan.forms.values())
    found = dict.fromkeys(join for root in roots for join in outer_joins(root))
    return [join for join in found if join not in plan.forms]


def outer_joins(root: Relation) -> Iterator[Join]:
    """The left and full joins of a query."""
    for node in root.walk():
        if isinstance(node, Join) and node.how in ("left", "full"):
            yield node


def keeping(
    plan: Maintenance, wanted: Collection[str], id_of: Callable[[Relation], str]
) -> Maintenance:
    """The same with those states alone whose signatures are wanted; a join is divided where parts
    of it are among them, and so are the joins of parts.

    Every law works with and without states. Where the topmost operator has none, the view's own
    rows serve."""
    ours = {node: node.digest() for node in plan.states}
    joined = frozenset(wanted) - frozenset(ours.values())
    wish = Wish(joined)
    forms: dict[Relation, Relation] = {}
    states: dict[Relation, State] = {}

    def add_parts(join: Join) -> None:
        form = wish.form(join)
        if form is None:
            return
        forms[join] = form
        for part in higher_order.parts(form):
            for below in whole_joins(part):
                add_parts(below)
            if part.digest() in joined:
                states[part] = RowState(part, id_of(part))

    tops = set(whole_joins(plan.root)) if joined else set()
    for node in plan.root.walk():  # a part reads what is below its join
        if node in tops:
            add_parts(node)
        if node in plan.states and (plan.states[node] is plan.own or ours[node] in wanted):
            states[node] = plan.states[node]
    if plan.own is not None:
        states.setdefault(plan.root, plan.own)
    return Maintenance(plan.root, states, forms, own=plan.own)


def every_part(root: Relation, pivot: Callable[[Join], int | None]) -> Iterator[Relation]:
    """The parts of the joins of a relation, around an input each, and the parts of those."""
    for join in whole_joins(root):
        place = pivot(join)
        form = None if place is None else higher_order.around(join, place)
        for part in () if form is None else higher_order.parts(form):
            yield part
            yield from every_part(part, pivot)


def is_repeatable(node: Relation) -> bool:
    """Does an operator give the same rows, to the last bit, when it is computed again? If not,
    its change cannot be told without the rows that it gave."""
    match node:
        case Aggregate():
            return all(
                agg.name in REPEATABLE and not agg.text and agg.type not in (FLOAT, DOUBLE)
                for agg in node.aggs
            )
        case Window():
            return all(call.type not in (FLOAT, DOUBLE) for call in node.calls)
        case Opaque():
            return False
    return True


def _is_rows(state: State) -> bool:
    return isinstance(state, RowState)
