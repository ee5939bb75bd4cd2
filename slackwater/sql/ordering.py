"""ORDER BY, LIMIT and OFFSET, with ties broken so that results do not depend on chance."""

from __future__ import annotations

from sqlglot import exp

from slackwater.algebra.expr import Expr, Literal, SortKey, columns
from slackwater.algebra.fold import folded
from slackwater.algebra.relation import Relation, Sort, TopK
from slackwater.errors import SqlError
from slackwater.sql.context import Context
from slackwater.sql.parse import span
from slackwater.sql.scalars import Scalars
from slackwater.sql.scope import NO_COLUMNS
from slackwater.types import Map


def ordinal(node: exp.Expr, width: int, clause: str) -> int | None:
    """The position that a bare number in ORDER BY or GROUP BY means."""
    if not (isinstance(node, exp.Literal) and not node.is_string and node.this.isdigit()):
        return None
    index = int(node.this)
    if not 1 <= index <= width:
        start, end = span(node)
        raise SqlError(
            f"{clause} position {index} is not in the select list, which has {width} columns.",
            code="BAD_ORDINAL",
            start=start,
            end=end,
        )
    return index - 1


def limited(
    context: Context,
    tree: exp.Expr,
    relation: Relation,
    keys: tuple[SortKey, ...],
    visible: int | None = None,
) -> Relation:
    """ORDER BY and LIMIT; ties are broken by all remaining output columns, NULLs first."""
    limit, offset = _count(context, tree, "limit"), _count(context, tree, "offset")
    if limit is None and not offset:
        return Sort(relation, keys) if keys else relation
    row = columns(relation.schema)[:visible]
    known = {k.arg for k in keys}
    rest = tuple(tie_break(c) for c in row if c not in known and not isinstance(c.type, Map))
    top = TopK(relation, keys + rest, limit, offset or 0)
    return Sort(top, keys) if keys else top


def tie_break(expr: Expr) -> SortKey:
    """A key that only breaks ties."""
    return SortKey(expr.type, expr.nullable, expr, True, True)


def _count(context: Context, tree: exp.Expr, clause: str) -> int | None:
    node = tree.args.get(clause)
    if node is None:
        return None
    value = node.expression
    if isinstance(value, exp.All) or value.name.lower() == "all":
        return None
    if (count := _constant(context, value)) is not None and count >= 0:
        return count
    start, end = span(node)
    raise SqlError(
        f"{clause.upper()} takes a whole number.", code="WRONG_TYPES", start=start, end=end
    )


def _constant(context: Context, node: exp.Expr) -> int | None:
    """The whole number that a constant expression is; None for anything else."""
    try:
        bound = folded(Scalars(context, NO_COLUMNS, "LIMIT").bind(node))
    except SqlError:
        return None
    return bound.value if isinstance(bound, Literal) and isinstance(bound.value, int) else None
