"""Operators that are linear: the operator of rows with weights keeps the weights.

    Δσ(R) = σ(ΔR)    Δπ(R) = π(ΔR)    Δ(R + S) = ΔR + ΔS
    Δε(R) = ε(ΔR)    Δ(R × g(R)) = ΔR × g(ΔR)

The same function gives an operator's change from its input's change, and its content with
weights from its input's.
"""

from __future__ import annotations

from slackwater.algebra.expr import is_deterministic
from slackwater.algebra.relation import Expand, Filter, Generate, Project, Relation, Union
from slackwater.sql import build
from slackwater.tvr import zset
from slackwater.types import WEIGHT

LINEAR = (Filter, Project, Expand, Generate)


def over_weighted(node: Relation, z: Relation) -> Relation:
    """A linear operator of one input, over rows with weights."""
    match node:
        case Filter():
            return filtered(node, z)
        case Project():
            return projected(node, z)
        case Expand():
            return expanded(node, z)
        case Generate():
            return generated(node, z)
    raise AssertionError(f"{type(node).__name__} is not linear")


def filtered(node: Filter, z: Relation) -> Relation:
    """σ(z): a row's weight does not matter to it"""
    return Filter(z, node.predicate)


def projected(node: Project, z: Relation) -> Relation:
    """π(z): one row per row, the weight kept"""
    return Project(z, (*node.exprs, zset.weight(z)), (*node.names, WEIGHT))


def expanded(node: Expand, z: Relation) -> Relation:
    """ε(z): each row once per projection"""
    weight = zset.weight(z)
    return Expand(z, tuple((*p, weight) for p in node.projections), (*node.names, WEIGHT))


def generated(node: Generate, z: Relation) -> Relation:
    """z × g(z): what a row generates depends on the row alone"""
    assert is_deterministic(node.generator)
    made = Generate(z, node.generator, node.outer, node.added)
    width, added = node.input.width, len(node.added)
    return build.pick(made, [*range(width), *range(width + 1, width + 1 + added), width])


def added(node: Union, parts: list[Relation]) -> Relation:
    """R + S + …: weights are not touched"""
    return zset.plus(parts)
