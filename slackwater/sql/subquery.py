"""Subqueries inside expressions, as the binder makes them and decorrelation removes them.

A subquery node keeps the values it takes from the enclosing row as `outer`, expressions over that
row; inside its query they appear as `Param`s. So rewriting an expression rewrites what its
subqueries read, and nobody else has to know.
"""

from __future__ import annotations

from dataclasses import dataclass

from slackwater.algebra.expr import Column, Expr, transform
from slackwater.algebra.relation import Relation
from slackwater.sql.scope import OuterColumn


@dataclass(frozen=True, eq=False)
class Param(Expr):
    """Inside a subquery: the value of its `outer[index]`."""

    index: int


@dataclass(frozen=True, eq=False)
class Inner(Expr):
    """Inside a `MatchQuery.match`: column `index` of the subquery's row."""

    index: int


@dataclass(frozen=True, eq=False)
class ScalarQuery(Expr):
    """The single value of a query's first column; NULL when it has no row."""

    query: Relation
    outer: tuple[Expr, ...]


@dataclass(frozen=True, eq=False)
class MatchQuery(Expr):
    """TRUE if `match` is true for some row of the query; else NULL if it is NULL for some row;
    else FALSE. EXISTS matches every row, IN by equality, ANY by its operator."""

    query: Relation
    outer: tuple[Expr, ...]
    match: Expr
    two_valued: bool = False  # NULL and FALSE mean the same where this stands


def close_over(query: Relation) -> tuple[Relation, tuple[Expr, ...]]:
    """The query with its references to the enclosing row made into `Param`s, and those values.

    References further out come one level nearer.
    """
    outer: dict[Expr, int] = {}

    def change(e: Expr) -> Expr | None:
        if not isinstance(e, OuterColumn):
            return None
        if e.level > 1:
            return e.replace(level=e.level - 1)
        column = Column(e.type, e.nullable, e.index)
        return Param(e.type, e.nullable, outer.setdefault(column, len(outer)))

    closed = query.rewrite(lambda node: node.with_expressions(lambda e: transform(e, change)))
    return closed, tuple(outer)


def has_param(*exprs: Expr) -> bool:
    """Do the expressions read the enclosing row?"""
    return any(isinstance(n, Param) for e in exprs for n in e.walk())


def is_correlated(relation: Relation) -> bool:
    """Does any operator of the relation read the enclosing row?"""
    return any(has_param(*node.expressions) for node in relation.walk())


def has_subquery(*exprs: Expr) -> bool:
    """Is there a subquery left to remove?"""
    return any(isinstance(n, ScalarQuery | MatchQuery) for e in exprs for n in e.walk())
