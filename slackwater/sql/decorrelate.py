"""Subqueries become joins and aggregates.

Two ways, the cheaper first:

* `pull_up`: where the enclosing row is read only in filters that can be moved to the top, they
  become the condition of a join (with equalities, below an aggregate too: its keys grow).
* `depend`: in general the query is computed for every distinct value `d` of what it reads,
  D = δ(outer values), each operator carrying d along, and joined back on d. This is the unnesting
  of arbitrary queries by Neumann and Kemper.

The count bug: an aggregate without keys has a row even where nothing matches. After `pull_up` the
join gives NULLs there, so the value of the select list over the empty input stands in.
"""

from __future__ import annotations

from collections.abc import Sequence

from slackwater.algebra.expr import (
    Call,
    Expr,
    conjunction,
    conjuncts,
    transform,
)
from slackwater.algebra.relation import (
    Filter,
    Relation,
)
from slackwater.sql import build
from slackwater.sql.match_queries import mark, semi_join
from slackwater.sql.scalar_queries import scalar_value
from slackwater.sql.subquery import (
    MatchQuery,
    ScalarQuery,
    has_subquery,
)
from slackwater.types import BOOLEAN


def filter_by(relation: Relation, predicate: Expr) -> Relation:
    """The rows that satisfy a predicate, which may hold subqueries."""
    plain = [p for p in conjuncts(predicate) if not has_subquery(p)]
    result: Relation = Filter(relation, conjunction(plain)) if plain else relation
    for part in conjuncts(predicate):
        if has_subquery(part):
            result = _filter_one(result, part)
    return result


def _filter_one(relation: Relation, predicate: Expr) -> Relation:
    if isinstance(predicate, MatchQuery):
        return _joined(relation, predicate, "semi")
    if isinstance(predicate, Call) and predicate.name == "not":
        inner = predicate.args[0]
        if isinstance(inner, MatchQuery):
            return _joined(relation, inner, "anti")
    lifted, (condition,) = lift(relation, [two_valued(predicate)])
    return build.first_columns(Filter(lifted, condition), relation.width)


def _joined(relation: Relation, node: MatchQuery, how: str) -> Relation:
    """A semi or anti join; what the match itself asks subqueries for is computed before."""
    lifted, exprs = lift(relation, [*node.outer, node.match])
    plain = node.replace(outer=tuple(exprs[:-1]), match=exprs[-1])
    return build.first_columns(semi_join(lifted, plain, how), relation.width)


def two_valued(predicate: Expr) -> Expr:
    """Mark matches that stand under AND and OR only, where NULL is as good as FALSE."""
    if isinstance(predicate, Call) and predicate.name in ("and", "or"):
        return predicate.replace(args=tuple(two_valued(a) for a in predicate.args))
    return predicate.replace(two_valued=True) if isinstance(predicate, MatchQuery) else predicate


def negations_inward(expr: Expr) -> Expr:
    """NOT (x IN q) means "surely not in q": (x IN q) IS FALSE, with the unknown told apart.

    Like Spark's optimizer we move NOT through AND and OR first.
    """

    def change(e: Expr) -> Expr | None:
        if not (isinstance(e, Call) and e.name == "not" and has_subquery(e)):
            return None
        inner = e.args[0]
        if isinstance(inner, MatchQuery):
            exact = inner.replace(two_valued=False)
            return Call(BOOLEAN, e.nullable, "is_false", (exact,)) if inner.two_valued else None
        if isinstance(inner, Call) and inner.name == "not":
            return negations_inward(inner.args[0])
        if isinstance(inner, Call) and inner.name in ("and", "or"):
            parts = tuple(negations_inward(build.negation(a)) for a in inner.args)
            return inner.replace(name="or" if inner.name == "and" else "and", args=parts)
        return None

    result: Expr = transform(expr, change)
    return result


def lift(relation: Relation, exprs: Sequence[Expr]) -> tuple[Relation, list[Expr]]:
    """The relation with a column added behind for each subquery in the expressions, and the
    expressions reading those columns."""
    found: dict[Expr, Expr] = {}
    exprs = [negations_inward(e) for e in exprs]
    for expr in exprs:
        for node in expr.walk():
            if isinstance(node, ScalarQuery | MatchQuery) and node not in found:
                relation, found[node] = _lift_one(relation, _replaced(node, found))
    return relation, [_replaced(e, found) for e in exprs]


def _replaced(expr: Expr, found: dict[Expr, Expr]) -> Expr:
    result: Expr = transform(expr, found.get)
    return result


def _lift_one(relation: Relation, node: Expr) -> tuple[Relation, Expr]:
    if isinstance(node, ScalarQuery):
        return scalar_value(relation, node)
    assert isinstance(node, MatchQuery)
    marked, value = mark(relation, node)
    return marked, value.replace(nullable=node.nullable) if node.nullable else value
