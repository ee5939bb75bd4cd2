"""Outer joins whose unmatched rows nobody reads are inner joins.

    σ[p](R ⟕ S) = σ[p](R ⋈ S)      p never true where the columns of S are NULL

A correlated subquery in a comparison is bound as a left join under a filter. As an inner join it
is one of several inputs that a change can be joined with in any order.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import singledispatch

from slackwater.algebra.expr import Column, Expr, column, transform
from slackwater.algebra.relation import (
    Aggregate,
    Distinct,
    Filter,
    Join,
    Project,
    Relation,
    Sort,
    Union,
)
from slackwater.tvr.nulls import NONE, Places, where_known, where_true


def without_idle_outer_joins(relation: Relation) -> Relation:
    """The same multiset with as few outer joins as possible."""
    nodes = list(relation.walk())
    if not any(isinstance(node, Join) and node.how in ("left", "full") for node in nodes):
        return relation
    known: dict[Relation, Places] = {relation: NONE}
    for node in reversed(nodes):  # parents first; what one of them reads, stays
        for child, own in zip(node.inputs, _below(node, known[node]), strict=True):
            known[child] = known[child] & own if child in known else own
    made: dict[Relation, Relation] = {}
    for node in nodes:
        over = node.with_children(made.__getitem__)
        if isinstance(node, Join):
            over = over.replace(how=_how(node, known[node]))
        made[node] = over if over is node else _knowing(over)
    return made[relation]


def _how(join: Join, known: Places) -> str:
    """As what a join may stand, if rows with a NULL in these columns do not matter."""
    left = any(i < join.left.width for i in known)
    right = any(i >= join.left.width for i in known)
    if join.how == "left" and right:
        return "inner"
    if join.how == "full" and left:
        return "inner" if right else "left"
    return join.how


@singledispatch
def _below(node: Relation, known: Places) -> Sequence[Places]:
    """In which columns of its inputs a NULL makes a row of no matter, if it does so in some of an
    operator's own: in none, unless known."""
    return [NONE for _ in node.inputs]


@_below.register
def _(node: Filter, known: Places) -> Sequence[Places]:
    return [known | where_true(node.predicate)]


@_below.register
def _(node: Project, known: Places) -> Sequence[Places]:
    return [NONE.union(*(where_known(node.exprs[i]) for i in known))]


@_below.register
def _(node: Aggregate, known: Places) -> Sequence[Places]:
    """A group whose key is NULL is one that only such rows are in."""
    keys = [node.keys[i] for i in known if i < len(node.keys)]
    return [NONE.union(*map(where_known, keys))]


@_below.register(Distinct)
@_below.register(Sort)
@_below.register(Union)
def _(node: Relation, known: Places) -> Sequence[Places]:
    return [known for _ in node.inputs]


@_below.register
def _(node: Join, known: Places) -> Sequence[Places]:
    """Rows that the condition is not true for match nothing; left ones stay in a left join."""
    how, width = _how(node, known), node.left.width
    if how in ("full", "right"):
        return [NONE, NONE]
    matching = where_true(node.condition)
    reached = known | matching if how in ("inner", "semi") else known
    right = reached if how == "inner" else matching
    return [
        frozenset(i for i in reached if i < width),
        frozenset(i - width for i in right if i >= width),
    ]


def _knowing(node: Relation) -> Relation:
    """The operator with columns that are as often NULL as those of its inputs now are."""
    row = [field for child in node.inputs for field in child.schema]

    def settled(expr: Expr) -> Expr | None:
        return column(expr.index, row[expr.index]) if isinstance(expr, Column) else None

    found: Relation = node.with_expressions(lambda e: transform(e, settled))
    return found
