"""Queries as a whole: WITH, set operations, parentheses, ORDER BY and LIMIT on top."""

from __future__ import annotations

from sqlglot import exp

from slackwater.algebra import functions
from slackwater.algebra.expr import Expr, columns
from slackwater.algebra.relation import (
    Distinct,
    Opaque,
    Project,
    Relation,
    SetOp,
    Union,
)
from slackwater.errors import SqlError
from slackwater.sql.calls import sort_key
from slackwater.sql.context import Context, Unsupported
from slackwater.sql.ordering import limited, ordinal
from slackwater.sql.parse import span
from slackwater.sql.scalars import Scalars
from slackwater.sql.scope import Scope, scope_of
from slackwater.sql.select import bind_select
from slackwater.sql.tables import renamed_as, table_name, unordered, values
from slackwater.types import DataType, Map


def bind_query(context: Context, tree: exp.Expr, parent: Scope | None) -> Relation:
    """The relation of a query; what the algebra lacks becomes `Opaque`, as small as can be."""
    try:
        return _bind(_with(context, tree, parent), tree, parent)
    except Unsupported as unsupported:
        if parent is not None:
            raise
        return opaque(context, tree, unsupported)


def _bind(context: Context, tree: exp.Expr, parent: Scope | None) -> Relation:
    if isinstance(tree, exp.Select):
        return bind_select(context, tree, parent)
    if isinstance(tree, exp.SetOperation):
        return _ordered(context, tree, _set_operation(context, tree, parent))
    if isinstance(tree, exp.Subquery):
        inner = context.query(tree.this, parent)
        if tree.args.get("order") or tree.args.get("limit") or tree.args.get("offset"):
            return _ordered(context, tree, unordered(inner))
        return inner
    if isinstance(tree, exp.Values):
        relation = values(context, tree)
        alias = tree.args.get("alias")
        if alias is not None and alias.args.get("columns"):
            relation = renamed_as(relation, alias.args["columns"], alias.name)
        return _ordered(context, tree, relation)
    if isinstance(tree, exp.Table):
        return context.table(table_name(tree))
    raise context.unsupported("UNSUPPORTED_OPERATOR", type(tree).__name__)


def _with(context: Context, tree: exp.Expr, parent: Scope | None) -> Context:
    clause = tree.args.get("with_")
    if clause is None:
        return context
    if clause.args.get("recursive"):
        raise context.unsupported("RECURSIVE_QUERY", "WITH RECURSIVE")
    for cte in clause.expressions:
        relation = unordered(context.query(cte.this, None))
        names = cte.args["alias"].args.get("columns")
        if names:
            relation = renamed_as(relation, names, cte.alias)
        context = context.with_cte(cte.alias, relation)
    return context


# -- set operations


def _set_operation(context: Context, tree: exp.Expr, parent: Scope | None) -> Relation:
    left = unordered(context.query(tree.this, parent))
    right = unordered(context.query(tree.expression, parent))
    if tree.args.get("by_name"):
        raise context.unsupported("UNSUPPORTED_OPERATOR", "UNION BY NAME")
    word = type(tree).__name__.upper()
    left, right = aligned(left, right, word, tree)
    distinct = tree.args.get("distinct")
    if isinstance(tree, exp.Union):
        union = Union((*_parts(left), *_parts(right)))
        return Distinct(union) if distinct else union
    how = "intersect" if isinstance(tree, exp.Intersect) else "except"
    return SetOp(left, right, how, not distinct)


def _parts(relation: Relation) -> tuple[Relation, ...]:
    return relation.parts if isinstance(relation, Union) else (relation,)


def aligned(
    left: Relation, right: Relation, word: str, tree: exp.Expr
) -> tuple[Relation, Relation]:
    """Both sides of a set operation, cast to common types."""
    start, end = span(tree.expression)
    if left.width != right.width:
        raise SqlError(
            f"{word} needs as many columns on both sides: {left.width} and {right.width}.",
            code="COLUMN_COUNT",
            hint="Select the same columns on both sides.",
            start=start,
            end=end,
        )
    types = []
    for i, (a, b) in enumerate(zip(left.schema, right.schema, strict=True)):
        common = functions.common_type([a.type, b.type])
        if common is None or (isinstance(common, Map) and word != "UNION"):
            raise SqlError(
                f"{word}: column {i + 1} is {a.type.sql} on the left, {b.type.sql} on the right.",
                code="WRONG_TYPES",
                hint="Cast one of them.",
                start=start,
                end=end,
            )
        types.append(common)
    return _as_types(left, types), _as_types(right, types)


def _as_types(relation: Relation, types: list[DataType]) -> Relation:
    if all(f.type == t for f, t in zip(relation.schema, types, strict=True)):
        return relation
    row = columns(relation.schema)
    exprs = tuple(functions.coerce(c, t) for c, t in zip(row, types, strict=True))
    return Project(relation, exprs, tuple(f.name for f in relation.schema))


# -- ORDER BY and LIMIT over a finished row


def _ordered(context: Context, tree: exp.Expr, relation: Relation) -> Relation:
    scope = scope_of(relation, None, None)
    scalars = Scalars(context, scope, "ORDER BY")

    def bind(node: exp.Expr) -> Expr:
        index = ordinal(node, relation.width, "ORDER BY")
        return scope.column(index) if index is not None else scalars.bind(node)

    order = tree.args.get("order")
    keys = tuple(sort_key(scalars, o, bind) for o in order.expressions) if order else ()
    return limited(context, tree, relation, keys)


# -- what Spark runs as written


def opaque(context: Context, tree: exp.Expr, cause: Unsupported) -> Relation:
    """The query as text over its inputs, for Spark to run."""
    tree = tree.copy()
    inner = {c.alias.lower() for c in tree.find_all(exp.CTE)}
    parts: list[Relation] = []
    for table in list(tree.find_all(exp.Table)):
        if not isinstance(table.this, exp.Identifier) or table.name.lower() in inner:
            continue
        relation = context.table(table_name(table))
        if relation not in parts:
            parts.append(relation)
        alias = table.alias or table.name
        table.set("this", exp.to_identifier(f"__in{parts.index(relation)}__"))
        table.set("db", None)
        table.set("catalog", None)
        if not table.alias:
            table.set("alias", exp.TableAlias(this=exp.to_identifier(alias, quoted=True)))
    text = tree.sql(dialect="spark").replace("{", "{{").replace("}", "}}")
    for i in range(len(parts)):
        text = text.replace(f"__in{i}__", f"{{{i}}}")
    schema = context.oracle.describe_query(text, [p.schema for p in parts])
    context.reasons.setdefault(cause.reason, cause.what)
    return Opaque(text, tuple(parts), schema, cause.reason)
