"""Rewrites that make expressions equal which have come up by themselves, and queries with such."""

from __future__ import annotations

import random
from collections.abc import Iterator

from slackwater.algebra.expr import Literal, columns
from slackwater.algebra.relation import Aggregate, Distinct, Join, Relation, Scan, Union
from slackwater.sql import build
from slackwater.tvr.memo import Memo, Rewrite
from slackwater.tvr.rules import Operators
from slackwater.types import BOOLEAN
from tests.test_laws import SCHEMAS

TRUE = Literal(BOOLEAN, False, True)


def beside(left: Relation, table: str) -> Join:
    """L ⋉ γ[](R): L, since one row is always there."""
    scan = Scan(table, table, SCHEMAS[table])
    return Join(left, Aggregate(scan, (), (build.count_star(),), ("n",)), "semi", TRUE)


def is_beside(node: Relation) -> bool:
    return (
        isinstance(node, Join)
        and node.how == "semi"
        and node.condition is TRUE
        and isinstance(node.right, Aggregate)
        and not node.right.keys
    )


def not_beside(memo: Memo, node: Relation) -> Iterator[Relation]:
    """L ⋉ γ[](R) = L"""
    if is_beside(node):
        yield node.inputs[0]


def beside_one(memo: Memo, node: Relation) -> Iterator[Relation]:
    """(L ⋉ γ[](R)) ⋉ γ[](S) = L ⋉ γ[](S) = L ⋉ γ[](R)"""
    if is_beside(node) and is_beside(inner := node.inputs[0]):
        yield node.with_children(lambda child: inner.inputs[0] if child is inner else child)
        yield inner


def once(memo: Memo, node: Relation) -> Iterator[Relation]:
    """γ[K](R + R) = γ[K](R), where nothing is summed up"""
    assert isinstance(node, Aggregate)
    below = node.input
    if not node.aggs and isinstance(below, Union) and len(set(below.parts)) == 1:
        yield node.replace(input=below.parts[0])


def grouped(memo: Memo, node: Relation) -> Iterator[Relation]:
    """δ(R) = γ[all columns](R)"""
    assert isinstance(node, Distinct)
    yield groups(node.input)


def groups(relation: Relation) -> Aggregate:
    names = tuple(f.name for f in relation.schema)
    return Aggregate(relation, columns(relation.schema), (), names)


SEMI = Operators((Join,), joins=("semi",))
NOT_BESIDE = Rewrite("not_beside", "", not_beside, SEMI)
BESIDE_ONE = Rewrite("beside_one", "", beside_one, SEMI)
ONCE = Rewrite("once", "", once, Operators((Aggregate,)))
GROUPED = Rewrite("grouped", "", grouped, Operators((Distinct,)))
REWRITES = (NOT_BESIDE, BESIDE_ONE, ONCE, GROUPED)


def changed_somewhere(rng: random.Random, query: Relation) -> Relation:
    """The same query, some expressions of it written in another way."""

    def other(node: Relation) -> Relation:
        table = rng.choice(sorted(SCHEMAS))
        if isinstance(node, Distinct) and rng.random() < 0.5:
            return groups(node.input)
        if isinstance(node, Aggregate) and not node.aggs and rng.random() < 0.5:
            return node.replace(input=Union((node.input, node.input)))
        return beside(node, table) if rng.random() < 0.2 and node.width else node

    found: Relation = query.rewrite(other)
    return found


def twice(rng: random.Random, query: Relation) -> Relation:
    """A query and what is the same, put together in some order."""
    parts = [query, changed_somewhere(rng, query)]
    if rng.random() < 0.3:
        parts.append(changed_somewhere(rng, query))
    rng.shuffle(parts)
    return Union(tuple(parts))
