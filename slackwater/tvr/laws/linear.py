"""Operators that are linear: the change of the output is the operator of the change."""

from __future__ import annotations

from typing import TYPE_CHECKING

from slackwater.algebra.expr import is_deterministic
from slackwater.algebra.relation import Expand, Filter, Generate, Project, Relation, Union
from slackwater.sql import build
from slackwater.tvr import zset
from slackwater.types import WEIGHT

if TYPE_CHECKING:
    from slackwater.tvr.delta import Deltas


def delta_filter(deltas: Deltas, node: Filter) -> Relation:
    """Δσ(R) = σ(ΔR)"""
    return Filter(deltas.sure(node.input), node.predicate)


def delta_project(deltas: Deltas, node: Project) -> Relation:
    """Δπ(R) = π(ΔR), the weight kept"""
    change = deltas.sure(node.input)
    return Project(change, (*node.exprs, zset.weight(change)), (*node.names, WEIGHT))


def delta_union(deltas: Deltas, node: Union) -> Relation:
    """Δ(R + S) = ΔR + ΔS"""
    return zset.plus([deltas.sure(p) for p in node.parts if deltas.changes(p)])


def delta_expand(deltas: Deltas, node: Expand) -> Relation:
    """Δε(R) = ε(ΔR): each changed row once per projection"""
    change = deltas.sure(node.input)
    weight = zset.weight(change)
    return Expand(change, tuple((*p, weight) for p in node.projections), (*node.names, WEIGHT))


def delta_generate(deltas: Deltas, node: Generate) -> Relation:
    """Δ(R × g(R)) = ΔR × g(ΔR): what a row generates depends on the row alone"""
    change = deltas.sure(node.input)
    assert is_deterministic(node.generator)
    made = Generate(change, node.generator, node.outer, node.added)
    width, added = node.input.width, len(node.added)
    return build.pick(made, [*range(width), *range(width + 1, width + 1 + added), width])
