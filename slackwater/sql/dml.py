"""INSERT, UPDATE, DELETE and MERGE as relations: rows with weights, −1 for what goes, +1 for
what comes. The runner runs them like any other."""

from __future__ import annotations

from dataclasses import dataclass, replace

from sqlglot import exp

from slackwater.algebra.expr import Expr, columns
from slackwater.algebra.relation import Expand, Project, Relation
from slackwater.errors import SqlError
from slackwater.sql.assign import (
    MINUS,
    PLUS,
    Target,
    assign,
    assignment,
    default_value,
    is_default,
    position,
)
from slackwater.sql.context import Context
from slackwater.sql.decorrelate import filter_by, lift
from slackwater.sql.merge import merge
from slackwater.sql.parse import parse_expression, span
from slackwater.sql.scalars import Scalars
from slackwater.sql.scope import Scope, scope_of
from slackwater.sql.tables import unordered, values
from slackwater.types import WEIGHT


@dataclass(frozen=True)
class Check:
    """A relation that must be empty, and the error to raise where it is not."""

    relation: Relation
    message: str
    code: str
    hint: str


@dataclass(frozen=True)
class Delta:
    """What a statement changes: rows with a weight as last column, and what must hold."""

    relation: Relation
    checks: tuple[Check, ...] = ()


def bind_change(context: Context, target: Target, tree: exp.Expr) -> Delta:
    """The change that a DML statement makes."""
    match tree:
        case exp.Insert():
            return insert(context, target, tree)
        case exp.Delete():
            return delete(context, target, tree)
        case exp.Update():
            return update(context, target, tree)
        case exp.Merge():
            relation, many = merge(context, target, tree)
            return Delta(relation, (_one_match(target, many),) if many is not None else ())
    raise SqlError("Not a change.", code="UNSUPPORTED_STATEMENT")


def _one_match(target: Target, many: Relation) -> Check:
    return Check(
        many,
        f"MERGE: a row of '{target.name}' is matched by more than one source row.",
        "MERGE_CARDINALITY_VIOLATION",
        "Make the source rows unique in the columns of the ON condition.",
    )


# -- INSERT


def insert(context: Context, target: Target, tree: exp.Expr) -> Delta:
    """INSERT INTO t [(columns)] VALUES … or SELECT …"""
    if tree.args.get("overwrite"):
        raise SqlError(
            "INSERT OVERWRITE is not supported.",
            code="UNSUPPORTED_STATEMENT",
            hint="TRUNCATE the table and INSERT, inside db.transaction().",
        )
    source = tree.expression
    named = _named_columns(target, tree)
    if isinstance(source, exp.Values):
        source = _with_defaults(target, source, named)
        relation = values(context, source)
    else:
        relation = unordered(context.query(source, None))
    by_name = bool(tree.args.get("by_name"))
    if by_name:
        named = [position(target, f.name, None) for f in relation.schema]
    _check_width(target, relation, named, tree)
    return Delta(stored(context, target, relation, named, by_name=by_name))


def _named_columns(target: Target, tree: exp.Expr) -> list[int]:
    if not isinstance(tree.this, exp.Schema):
        return list(range(len(target.schema)))
    found = [position(target, c.name, c) for c in tree.this.expressions]
    if len(set(found)) < len(found):
        raise SqlError("A column is named twice.", code="COLUMN_COUNT")
    return found


def _check_width(target: Target, relation: Relation, named: list[int], tree: exp.Expr) -> None:
    if relation.width != len(named):
        start, end = span(tree.expression)
        raise SqlError(
            f"INSERT gives {relation.width} values for {len(named)} columns of '{target.name}'.",
            code="COLUMN_COUNT",
            hint=f"Columns: {', '.join(target.schema[i].name for i in named)}.",
            start=start,
            end=end,
        )


def _with_defaults(target: Target, source: exp.Expr, named: list[int]) -> exp.Expr:
    """VALUES in which DEFAULT is replaced by the column's default."""
    source = source.copy()
    for row in source.expressions:
        cells = row.expressions if isinstance(row, exp.Tuple) else [row]
        for cell, index in zip(list(cells), named, strict=False):
            if is_default(cell):
                cell.replace(_default_tree(target, index))
    return source


def _default_tree(target: Target, index: int) -> exp.Expr:
    text = target.defaults.get(target.schema[index].name)
    return parse_expression(text) if text is not None else exp.Null()


def stored(
    context: Context,
    target: Target,
    relation: Relation,
    named: list[int],
    *,
    by_name: bool = True,
) -> Relation:
    """Rows for the named columns, as rows of the table: assigned types, defaults, weight +1.

    Fields inside structs go by name, or as in INSERT by position."""
    row = columns(relation.schema)
    exprs: list[Expr] = []
    for i in range(len(target.schema)):
        if i in named:
            exprs.append(assign(row[named.index(i)], target, i, by_name=by_name))
        else:
            exprs.append(default_value(context, target, i))
    names = (*(f.name for f in target.schema), WEIGHT)
    return Project(relation, (*exprs, PLUS), names)


# -- DELETE and UPDATE


def delete(context: Context, target: Target, tree: exp.Expr) -> Delta:
    """DELETE FROM t [WHERE …]: each matching row with weight −1."""
    rows = _where(context, target, tree)
    names = (*(f.name for f in target.schema), WEIGHT)
    return Delta(Project(rows, (*columns(target.schema), MINUS), names))


def _scope(target: Target, node: exp.Expr) -> Scope:
    return scope_of(target.scan, node.alias or target.name, None)


def _where(context: Context, target: Target, tree: exp.Expr) -> Relation:
    where = tree.args.get("where")
    if where is None:
        return target.scan
    scope = _scope(target, tree.this)
    return filter_by(target.scan, Scalars(context, scope, "WHERE").predicate(where.this))


def update(context: Context, target: Target, tree: exp.Expr) -> Delta:
    """UPDATE t SET …: matching rows with weight −1, as they become with weight +1."""
    rows = _where(context, target, tree)
    scope = replace(_scope(target, tree.this), relation=rows)
    scalars = Scalars(context, scope, "SET")
    old = columns(target.schema)
    new: list[Expr] = list(old)
    for item in tree.expressions:
        index, value = assignment(context, scalars, target, item)
        new[index] = value
    lifted, exprs = lift(rows, new)
    names = (*(f.name for f in target.schema), WEIGHT)
    return Delta(Expand(lifted, ((*old, MINUS), (*exprs, PLUS)), names))
