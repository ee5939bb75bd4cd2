"""What is kept of an operator between runs, and which operators have something kept of them."""

from __future__ import annotations

from collections.abc import Callable

from slackwater.algebra.relation import Aggregate, Opaque, Relation, TopK, Window
from slackwater.tvr.laws.keyed import shared_partition
from slackwater.tvr.states.buffer import BufferState
from slackwater.tvr.states.rows import RowState
from slackwater.tvr.states.sums import SumState, is_invertible
from slackwater.types import DOUBLE, FLOAT

State = SumState | RowState | BufferState


def choose_states(relation: Relation, name: Callable[[Relation], str]) -> dict[Relation, State]:
    """The states of a query in normal form, those that others are computed from first."""
    found = {node: state_of(node, name) for node in relation.walk()}
    return {node: state for node, state in found.items() if state is not None}


def state_of(node: Relation, name: Callable[[Relation], str]) -> State | None:
    """What is kept of an operator; nothing where its change follows from its inputs' alone."""
    match node:
        case Aggregate() if is_invertible(node):
            return SumState(node, name(node))
        case TopK() if node.limit is not None:
            return BufferState(node, name(node))
        case Aggregate(keys=(), input=TopK(limit=int())):
            return None  # of few rows, which are kept themselves
        case Aggregate() | Opaque() | TopK():
            return RowState(node, name(node))
        case Window() if not shared_partition(node) or _is_inexact(node):
            return RowState(node, name(node))
    return None


def _is_inexact(node: Window) -> bool:
    """May the same rows give values that differ in their last bits?"""
    return any(call.type in (FLOAT, DOUBLE) for call in node.calls)
