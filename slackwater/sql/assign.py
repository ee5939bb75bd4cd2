"""Values into columns: which column, which type, which default."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from sqlglot import exp

from slackwater.algebra import functions
from slackwater.algebra.expr import Expr, Literal
from slackwater.algebra.relation import Scan
from slackwater.errors import SqlError, nearest
from slackwater.sql.context import Context
from slackwater.sql.parse import parse_expression, span
from slackwater.sql.scalars import Scalars
from slackwater.sql.scope import NO_COLUMNS, field_index
from slackwater.types import BIGINT, NULL, Schema

PLUS = Literal(BIGINT, False, 1)
MINUS = Literal(BIGINT, False, -1)


@dataclass(frozen=True)
class Target:
    """The table that changes."""

    name: str
    scan: Scan
    defaults: Mapping[str, str] = field(default_factory=dict)

    @property
    def schema(self) -> Schema:
        """The table's columns."""
        return self.scan.schema


def position(target: Target, name: str, node: exp.Expr | None) -> int:
    index = field_index(target.schema, name)
    if index is None:
        start, end = span(node)
        raise SqlError(
            f"Column '{name}' is not in '{target.name}'.",
            code="UNKNOWN_COLUMN",
            hint=nearest(name, [f.name for f in target.schema]),
            start=start,
            end=end,
        )
    return index


def assign(expr: Expr, target: Target, index: int, *, by_name: bool = True) -> Expr:
    """A value made into one of a column's type, by ANSI store assignment."""
    f = target.schema[index]
    try:
        return functions.store_assign(expr, f.type, f.name, by_name=by_name)
    except SqlError as error:
        error.message = f"Column '{f.name}' of '{target.name}': {error.message}"
        raise


def default_value(context: Context, target: Target, index: int) -> Expr:
    """What a column gets that an INSERT does not mention."""
    f = target.schema[index]
    text = target.defaults.get(f.name)
    if text is None:
        if not f.nullable:
            raise SqlError(
                f"Column '{f.name}' of '{target.name}' is NOT NULL and has no default.",
                code="NULL_IN_NOT_NULL",
                hint="Give it a value.",
            )
        return functions.store_assign(Literal(NULL, True, None), f.type, f.name)
    bound = Scalars(context, NO_COLUMNS, "a default").bind(parse_expression(text))
    return assign(bound, target, index, by_name=False)


def assignment(
    context: Context, scalars: Scalars, target: Target, item: exp.Expr
) -> tuple[int, Expr]:
    """column = value, or column = DEFAULT."""
    if not isinstance(item, exp.EQ):
        raise SqlError("SET takes column = value.", code="SYNTAX_ERROR")
    index = position(target, item.this.name, item.this)
    value = item.expression
    if is_default(value):
        return index, default_value(context, target, index)
    return index, assign(scalars.bind(value), target, index)


def is_default(node: exp.Expr) -> bool:
    """Is this the word DEFAULT in the place of a value?"""
    word = isinstance(node, exp.Var) or (isinstance(node, exp.Column) and not node.table)
    return word and node.name.upper() == "DEFAULT"
