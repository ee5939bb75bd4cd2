"""Columns as CREATE TABLE and ALTER TABLE … ADD COLUMN declare them."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from slackwater.errors import SqlError
from slackwater.sql.cursor import Cursor
from slackwater.sql.parse import parse, span
from slackwater.sql.scalars import data_type
from slackwater.types import DataType


@dataclass(frozen=True)
class ColumnDef:
    """A column as it is declared."""

    name: str
    type: DataType
    nullable: bool = True
    default: str | None = None


def column_def(node: exp.Expr) -> ColumnDef:
    """The declaration that a syntax node makes."""
    if not isinstance(node, exp.ColumnDef):
        raise _unsupported(
            node,
            f"'{node.sql(dialect='spark')}' in a column list is not supported.",
            "Declare columns as name, type, NOT NULL, DEFAULT, COMMENT.",
        )
    nullable, default = True, None
    for constraint in node.args.get("constraints") or []:
        match constraint.kind:
            case exp.NotNullColumnConstraint():
                nullable = bool(constraint.kind.args.get("allow_null"))
            case exp.DefaultColumnConstraint():
                default = constraint.kind.this.sql(dialect="spark")
            case exp.CommentColumnConstraint():
                continue
            case other:
                raise SqlError(
                    f"Constraint '{other.sql(dialect='spark')}' is not supported.",
                    code="UNSUPPORTED_STATEMENT",
                    hint="NOT NULL and DEFAULT are kept; others must be checked outside.",
                )
    if node.args.get("kind") is None:
        raise SqlError(f"Column '{node.name}' has no type.", code="SYNTAX_ERROR")
    return ColumnDef(node.name, data_type(node.args["kind"]), nullable, default)


def added_columns(c: Cursor) -> tuple[ColumnDef, ...]:
    """The columns after ADD COLUMN, in parentheses or not."""
    if c.peek() is None:
        raise c.error("a column is expected")
    text, start = c.rest()
    if text.startswith("(") and text.endswith(")"):
        text, start = text[1:-1], start + 1
    # the same places in a statement that sqlglot reads whole; the one at hand begins no shorter
    whole = f"{'CREATE TABLE t ('.ljust(start)}{text})"
    try:
        tree = parse(whole)
    except SqlError as error:
        error.sql = c.script.text
        raise
    schema = tree.this
    if not isinstance(schema, exp.Schema) or not schema.expressions:
        raise c.error("a column is expected")
    if tree.expression is not None or tree.args.get("properties") is not None:
        raise c.error("only columns are expected")
    return tuple(_added(node) for node in schema.expressions)


def _added(node: exp.Expr) -> ColumnDef:
    if isinstance(node.this, exp.Dot):
        raise _unsupported(
            node,
            "A field cannot be added to a struct.",
            "Add a column of the struct's new type and UPDATE it.",
        )
    if node.args.get("position") is not None:
        raise _unsupported(
            node,
            "A column is added at the end; FIRST and AFTER are not supported.",
            "Leave it out, and name columns in the order you want them where you select them.",
        )
    return column_def(node)


def _unsupported(node: exp.Expr, message: str, hint: str) -> SqlError:
    start, end = span(node)
    return SqlError(message, code="UNSUPPORTED_STATEMENT", hint=hint, start=start, end=end)
