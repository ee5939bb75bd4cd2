"""How a query is maintained: its normal form, and what is kept of its operators."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from slackwater.algebra.relation import Join, Project, Relation
from slackwater.tvr.methods import higher_order
from slackwater.tvr.normal import normalize
from slackwater.tvr.states import State, choose_states
from slackwater.tvr.states.rows import RowState
from slackwater.types import Schema


@dataclass(frozen=True)
class Maintenance:
    """A query in normal form with its states, those that others are computed from first."""

    root: Relation
    states: Mapping[Relation, State]
    forms: Mapping[Relation, Relation] = field(default_factory=dict)
    """Operators whose change is computed in another form."""

    @property
    def kept(self) -> tuple[State, ...]:
        """The states besides the view's own rows."""
        return tuple(s for s in self.states.values() if s.node is not self.root or not _is_rows(s))

    @property
    def root_is_kept(self) -> bool:
        """Are the view's rows those of a state?"""
        return self.root in self.states and _is_rows(self.states[self.root])


def maintenance(
    query: Relation, view: str, schema: Schema, id_of: Callable[[Relation], str]
) -> Maintenance:
    """The maintenance of a view; its own rows serve as state of the topmost operator."""
    root = normalize(query)
    states = choose_states(root, id_of)
    if root in states and _is_rows(states[root]):
        states[root] = RowState(root, view, tuple(f.name for f in schema))
    return Maintenance(root, states)


def with_parts_kept(
    plan: Maintenance, pivot: Callable[[Join], int | None], id_of: Callable[[Relation], str]
) -> Maintenance | None:
    """The same with joins around an input each, and the parts that it is joined with kept; None
    where no join has such parts."""
    forms: dict[Relation, Project] = {}
    for join in _whole_joins(plan.root):
        place = pivot(join)
        form = None if place is None else higher_order.around(join, place)
        if form is not None:
            forms[join] = form
    if not forms:
        return None
    states: dict[Relation, State] = {}
    for node in plan.root.walk():  # a part reads what is below its join
        for part in higher_order.parts(forms[node]) if node in forms else ():
            states[part] = RowState(part, id_of(part))
        if node in plan.states:
            states[node] = plan.states[node]
    return Maintenance(plan.root, states, forms)


def _whole_joins(root: Relation) -> Iterator[Join]:
    """Inner joins that are not part of a larger one."""
    seen: set[Relation] = set()
    for node in reversed(list(root.walk())):  # those above first
        if isinstance(node, Join) and node.how == "inner" and node not in seen:
            seen |= higher_order.spread(node).joins
            yield node


def _is_rows(state: State) -> bool:
    return isinstance(state, RowState)
