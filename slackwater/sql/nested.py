"""Subqueries in expressions: bound here, removed by `decorrelate.py`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from slackwater.algebra import functions
from slackwater.algebra.expr import TRUE, Expr
from slackwater.errors import SqlError
from slackwater.sql.subquery import Inner, MatchQuery, ScalarQuery, close_over
from slackwater.types import BOOLEAN

if TYPE_CHECKING:
    from slackwater.algebra.relation import Relation
    from slackwater.sql.scalars import Scalars

_NEGATED = {"=": "!=", "!=": "=", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}


def scalar_query(s: Scalars, node: exp.Expr) -> Expr:
    """(SELECT one column): its value, NULL for no row."""
    query, outer = _closed(s, node)
    if query.width != 1:
        raise SqlError(
            f"A subquery used as a value must have one column, not {query.width}.",
            code="SUBQUERY_COLUMNS",
            hint="Select just the column you need.",
        )
    return ScalarQuery(query.schema[0].type, True, query, outer)


def exists(s: Scalars, node: exp.Expr) -> Expr:
    """EXISTS (SELECT …)."""
    query, outer = _closed(s, node)
    return MatchQuery(BOOLEAN, False, query, outer, TRUE)


def in_query(s: Scalars, node: exp.Expr) -> Expr:
    """x IN (SELECT …), (x, y) IN (SELECT …).

    Spark answers FALSE where SQL's answer is unknown, and so do we; `decorrelate.lift` sees to
    NOT IN, which is FALSE there, too.
    """
    query, outer = _closed(s, node.args["query"])
    left = node.this.unnest() if isinstance(node.this, exp.Paren) else node.this
    args = s.bind_all(left.expressions if isinstance(left, exp.Tuple) else [left])
    if len(args) != query.width:
        raise SqlError(
            f"IN compares {len(args)} value(s) with a subquery of {query.width} column(s).",
            code="SUBQUERY_COLUMNS",
            hint="Both sides need the same number of columns.",
        )
    match = s.operator("=", args[0], _inner(query, 0))
    for i, arg in enumerate(args[1:], 1):
        match = s.operator("and", match, s.operator("=", arg, _inner(query, i)))
    nullable = any(a.nullable for a in args) or any(f.nullable for f in query.schema)
    return MatchQuery(BOOLEAN, nullable, query, outer, match, two_valued=True)


def quantified(s: Scalars, op: str, left: exp.Expr, right: exp.Expr) -> Expr:
    """x op ANY (SELECT …) and x op ALL (SELECT …), which is NOT (x negated-op ANY …)."""
    every = isinstance(right, exp.All)
    query, outer = _closed(s, right.this)
    if query.width != 1:
        raise SqlError(
            f"ANY and ALL take a subquery of one column, not {query.width}.",
            code="SUBQUERY_COLUMNS",
        )
    match = s.operator(_NEGATED[op] if every else op, s.bind(left), _inner(query, 0))
    found = MatchQuery(BOOLEAN, match.nullable, query, outer, match)
    if not every:
        return found
    negated = functions.call("not", [found])
    assert negated is not None
    return negated


def _inner(query: Relation, index: int) -> Inner:
    f = query.schema[index]
    return Inner(f.type, f.nullable, index)


def _closed(s: Scalars, node: exp.Expr) -> tuple[Relation, tuple[Expr, ...]]:
    tree = node
    while isinstance(tree, exp.Subquery | exp.Paren | exp.Exists):
        tree = tree.this
    return close_over(s.context.query(tree, s.scope))
