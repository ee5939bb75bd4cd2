"""FROM: tables, derived tables, VALUES, joins of all kinds, LATERAL."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from slackwater.algebra import functions
from slackwater.algebra.expr import (
    TRUE,
    Expr,
    SparkCall,
    columns,
    conjunction,
)
from slackwater.algebra.relation import (
    Distinct,
    Generate,
    Join,
    Project,
    Relation,
    Sort,
    Values,
)
from slackwater.errors import SqlError
from slackwater.sql import build
from slackwater.sql.context import Context
from slackwater.sql.decorrelate import filter_by
from slackwater.sql.depend import depend
from slackwater.sql.names import GENERATORS
from slackwater.sql.parse import span
from slackwater.sql.scalars import Scalars
from slackwater.sql.scope import EMPTY_ROW, NO_COLUMNS, Name, Scope, scope_of, side_by_side
from slackwater.sql.subquery import close_over, has_subquery
from slackwater.types import NULL, Field


def from_clause(context: Context, tree: exp.Expr, parent: Scope | None) -> Scope:
    """The names and rows that a SELECT reads."""
    source = tree.args.get("from_")
    if source is None:
        scope = Scope(EMPTY_ROW, (), parent)
    else:
        scope = item(context, source.this, parent)
        scope = joins(context, scope, source.this.args.get("joins"), parent)
    scope = joins(context, scope, tree.args.get("joins"), parent)
    for lateral in tree.args.get("laterals") or []:
        scope = lateral_view(context, scope, lateral)
    return scope


def joins(
    context: Context, scope: Scope, nodes: list[exp.Expr] | None, parent: Scope | None
) -> Scope:
    """A scope joined with what follows it, left to right."""
    for node in nodes or []:
        scope = _join(context, scope, node, parent)
    return scope


def item(context: Context, node: exp.Expr, parent: Scope | None) -> Scope:
    """One item of FROM, without the joins written behind it."""
    if node.args.get("pivots") or node.args.get("sample"):
        raise context.unsupported("UNSUPPORTED_OPERATOR", "PIVOT or TABLESAMPLE")
    if isinstance(node, exp.Table):
        return _table(context, node, parent)
    if isinstance(node, exp.Subquery):
        return _derived(context, node, parent)
    if isinstance(node, exp.Values):
        return _aliased(values(context, node), node, parent)
    raise context.unsupported("UNSUPPORTED_OPERATOR", f"{type(node).__name__} in FROM")


def _table(context: Context, node: exp.Expr, parent: Scope | None) -> Scope:
    if not isinstance(node.this, exp.Identifier):
        raise context.unsupported("TABLE_FUNCTION", node.this.sql(dialect="spark"))
    for word in ("when", "version", "changes", "partition"):
        if node.args.get(word):
            raise SqlError(f"{word.upper()} on a table is not supported.", code="UNSUPPORTED")
    try:
        relation = context.table(table_name(node))
    except SqlError as error:
        error.start, error.end = span(node.this)
        raise
    return _aliased(relation, node, parent, node.name)


def table_name(node: exp.Expr) -> str:
    """A table's name; the warehouse has no schemas inside."""
    qualifiers = [node.args[k].name for k in ("catalog", "db") if node.args.get(k)]
    if qualifiers and qualifiers not in (["default"], ["spark_catalog", "default"]):
        start, end = span(node)
        raise SqlError(
            f"'{'.'.join(qualifiers)}.{node.name}': a warehouse has no schemas inside.",
            code="UNKNOWN_TABLE",
            hint=f"Write '{node.name}', or quote a name that has a dot in it with backticks.",
            start=start,
            end=end,
        )
    return str(node.name)


def _derived(context: Context, node: exp.Expr, parent: Scope | None) -> Scope:
    inner = node.this
    if isinstance(inner, exp.Table) or (
        isinstance(inner, exp.Subquery) and (inner.args.get("joins") or node.args.get("joins"))
    ):
        scope = item(context, inner, parent)
        scope = joins(context, scope, inner.args.get("joins"), parent)
        if node.alias:
            return _aliased(scope.relation, node, parent)
        return scope
    return _aliased(unordered(context.query(node, parent)), node, parent)


def _aliased(
    relation: Relation, node: exp.Expr, parent: Scope | None, default: str | None = None
) -> Scope:
    alias = node.args.get("alias")
    name = (alias.name if alias is not None else "") or default
    columns_named = alias.args.get("columns") if alias is not None else None
    if columns_named:
        relation = renamed_as(relation, columns_named, name or "the derived table")
    return scope_of(relation, name, parent)


def renamed_as(relation: Relation, nodes: list[exp.Expr], what: str) -> Relation:
    """The relation under the column names that a query gives."""
    try:
        return renamed(relation, [n.name for n in nodes], what)
    except SqlError as error:
        (error.start, _), (_, error.end) = span(nodes[0]), span(nodes[-1])
        raise


def renamed(relation: Relation, names: list[str], what: str) -> Relation:
    """The relation under other column names."""
    if len(names) != relation.width:
        raise SqlError(
            f"'{what}' has {relation.width} columns, but {len(names)} names are given.",
            code="COLUMN_COUNT",
            hint="Give one name per column.",
        )
    return Project(relation, columns(relation.schema), tuple(names))


def unordered(relation: Relation) -> Relation:
    """The same multiset without a delivery order, which means nothing inside a query."""
    if isinstance(relation, Sort):
        return relation.input
    if isinstance(relation, Project) and isinstance(relation.input, Sort):
        return relation.replace(input=relation.input.input)
    return relation


def values(context: Context, node: exp.Expr) -> Relation:
    """VALUES (…), (…): columns col1, col2, … of the common type of each position."""
    scalars = Scalars(context, NO_COLUMNS, "VALUES")
    rows = [
        scalars.bind_all(r.expressions if isinstance(r, exp.Tuple) else [r])
        for r in node.expressions
    ]
    width = len(rows[0])
    for syntax, row in zip(node.expressions, rows, strict=True):
        if len(row) != width:
            start, end = span(syntax)
            raise SqlError(
                f"A row of VALUES has {len(row)} values, the first has {width}.",
                code="COLUMN_COUNT",
                start=start,
                end=end,
            )
    fields, done = [], []
    for i in range(width):
        cells = [row[i] for row in rows]
        common = functions.common_type([c.type for c in cells])
        if common is None:
            kinds = ", ".join(sorted({c.type.sql for c in cells}))
            raise SqlError(
                f"Column {i + 1} of VALUES mixes {kinds}.",
                code="WRONG_TYPES",
                hint="Cast the values to one type.",
                start=span(node)[0],
                end=span(node)[1],
            )
        done.append([functions.coerce(c, common) for c in cells])
        fields.append(Field(f"col{i + 1}", common, any(c.nullable for c in cells)))
    return Values(tuple(zip(*done, strict=True)), tuple(fields))


# -- joins


def _join(context: Context, left: Scope, node: exp.Expr, parent: Scope | None) -> Scope:
    how = _kind(node)
    source = node.this
    if isinstance(source, exp.Lateral):
        return _lateral_join(context, left, source, node, how)
    right = item(context, source, parent)
    right = joins(context, right, source.args.get("joins"), parent)
    using = _using(node, left, right)
    if using:
        return _join_using(context, left, right, how, using, node)
    joined = side_by_side(Join(left.relation, right.relation, "inner", TRUE), left, right)
    condition: Expr = TRUE
    if node.args.get("on") is not None:
        condition = Scalars(context, joined, "a join condition").predicate(node.args["on"])
    relation = _joined(context, left.relation, right.relation, how, condition)
    if how in ("semi", "anti"):
        return left.over(relation)
    return joined.over(relation)


def _kind(node: exp.Expr) -> str:
    side, kind = (node.text("side").lower(), node.text("kind").lower())
    if kind in ("semi", "anti"):
        return kind
    return side if side in ("left", "right", "full") else "inner"


def _joined(context: Context, left: Relation, right: Relation, how: str, on: Expr) -> Relation:
    if not has_subquery(on):
        return Join(left, right, how, on)
    if how == "inner":
        return filter_by(Join(left, right, "inner", TRUE), on)
    raise context.unsupported("UNSUPPORTED_OPERATOR", "a subquery in an outer join's condition")


def _using(node: exp.Expr, left: Scope, right: Scope) -> list[str]:
    if (node.args.get("method") or "").upper() == "NATURAL":
        known = {n.column.lower() for n in right.star()}
        return [n.column for n in left.star() if n.column.lower() in known]
    return [i.name for i in node.args.get("using") or []]


def _join_using(
    context: Context, left: Scope, right: Scope, how: str, using: list[str], node: exp.Expr
) -> Scope:
    """USING and NATURAL: the keys come first and once; the other side's are there qualified."""
    s = Scalars(context, left, "a join condition")
    width = left.relation.width
    own = [_side(left, name, "left", node) for name in using]
    other = [_moved(_side(right, name, "right", node), width) for name in using]
    both = (*left.relation.schema, *right.relation.schema)
    row = columns(both)
    on = [s.operator("=", row[a.index], row[b.index]) for a, b in zip(own, other, strict=True)]
    relation: Relation = Join(left.relation, right.relation, how, conjunction(on))
    if how in ("semi", "anti"):
        rest = [n for n in left.names if n not in own]
        return replace(left, relation=relation, names=(*own, *rest))
    joined = side_by_side(relation, left, right)
    shown, hidden, relation = _merge(s, relation, how, own, other)
    rest = [n for n in joined.names if n not in own and n not in other]
    names = (*shown, *rest, *(replace(n, qualified_only=True) for n in hidden))
    return replace(joined, relation=relation, names=names)


def _moved(name: Name, width: int) -> Name:
    return replace(name, index=name.index + width)


def _side(scope: Scope, name: str, side: str, node: exp.Expr) -> Name:
    found = scope.resolve_here([name])
    if found is None:
        start, end = span(node)
        raise SqlError(
            f"USING column '{name}' is not on the {side} side of the join.",
            code="UNKNOWN_COLUMN",
            hint=f"Existing: {', '.join(n.column for n in scope.star())}.",
            start=start,
            end=end,
        )
    return next(n for n in scope.star() if n.index == found[0])


def _merge(
    s: Scalars, relation: Relation, how: str, own: list[Name], other: list[Name]
) -> tuple[list[Name], list[Name], Relation]:
    """Visible and hidden keys: the left ones are seen, or the right ones, or both coalesced."""
    if how == "right":
        return other, own, relation
    if how != "full":
        return own, other, relation
    row = columns(relation.schema)
    pairs = zip(own, other, strict=True)
    both = [s.operator("coalesce", row[a.index], row[b.index]) for a, b in pairs]
    names = [Name(a.column, None, relation.width + i) for i, a in enumerate(own)]
    return names, [*own, *other], build.with_columns(relation, both, "using")


# -- LATERAL


def _lateral_join(
    context: Context, left: Scope, lateral: exp.Expr, node: exp.Expr, how: str
) -> Scope:
    """JOIN LATERAL (query): the query for every distinct value it reads of the left row."""
    if not isinstance(lateral.this, exp.Subquery) or how not in ("inner", "left"):
        raise context.unsupported("TABLE_FUNCTION", "LATERAL")
    query, outer = close_over(unordered(context.query(lateral.this, left)))
    names = lateral.args.get("alias")
    named = scope_of(query, names.name if names is not None else None, left.parent)
    at = left.relation.width
    domain = Distinct(Project(left.relation, outer, tuple(f"d{i}" for i in range(len(outer)))))
    right = depend(query, domain)
    meets: list[Expr] = [
        build.null_safe_equal(o, d)
        for o, d in zip(outer, columns(right.schema, at)[query.width :], strict=True)
    ]
    joined = side_by_side(Join(left.relation, right, how, conjunction(meets)), left, named)
    if node.args.get("on") is not None:
        on = Scalars(context, joined, "a join condition").predicate(node.args["on"])
        joined = joined.over(Join(left.relation, right, how, conjunction([*meets, on])))
    return joined


def lateral_view(context: Context, scope: Scope, node: exp.Expr) -> Scope:
    """LATERAL VIEW explode(…) t AS a, b."""
    call = node.this
    name = call.name.lower()
    if not isinstance(call, exp.Anonymous) or name not in GENERATORS:
        raise context.unsupported("TABLE_FUNCTION", call.sql(dialect="spark"))
    alias = node.args.get("alias")
    named = [c.name for c in (alias.args.get("columns") or [])] if alias is not None else []
    made, added = generate(context, scope, call, bool(node.args.get("outer")), named)
    right = scope_of(_only(added), alias.name if alias is not None else None, scope.parent)
    return side_by_side(made, scope, right)


def generate(
    context: Context, scope: Scope, call: exp.Expr, outer: bool, aliases: list[str]
) -> tuple[Relation, tuple[Field, ...]]:
    """Rows joined with what a generator makes of each."""
    args = Scalars(context, scope, "a generator's argument").bind_all(call.expressions)
    places = ", ".join(f"{{{i}}}" for i in range(len(args)))
    text = f"{call.name.lower()}({places})"
    added = context.oracle.describe_generator(text, args, aliases)
    if outer:
        added = tuple(Field(f.name, f.type, True) for f in added)
    generator = SparkCall(NULL, True, text, tuple(args))
    return Generate(scope.relation, generator, outer, added), added


def _only(added: tuple[Field, ...]) -> Relation:
    return Values((), added)
