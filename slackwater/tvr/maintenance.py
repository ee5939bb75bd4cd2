"""How a query is maintained: its normal form, and what is kept of its operators."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from slackwater.algebra.relation import Relation
from slackwater.tvr.normal import normalize
from slackwater.tvr.states import State, choose_states
from slackwater.tvr.states.rows import RowState
from slackwater.types import Schema


@dataclass(frozen=True)
class Maintenance:
    """A query in normal form with its states, those that others are computed from first."""

    root: Relation
    states: Mapping[Relation, State]

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


def _is_rows(state: State) -> bool:
    return isinstance(state, RowState)
