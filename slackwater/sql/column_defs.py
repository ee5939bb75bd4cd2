"""Columns as CREATE TABLE and ALTER TABLE … ADD COLUMN declare them."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from slackwater.errors import SqlError
from slackwater.sql.constraints import ConstraintDef, constraint_defs, is_constraint, unsupported
from slackwater.sql.cursor import Cursor
from slackwater.sql.parse import parse
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
        raise unsupported(
            node,
            f"'{node.sql(dialect='spark')}' in a column list is not supported.",
            "Declare columns as name, type, NOT NULL, DEFAULT, COMMENT; keys and references with "
            "NOT ENFORCED RELY.",
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
            case exp.PrimaryKeyColumnConstraint():
                nullable = False
            case other if is_constraint(other):
                continue
            case other:
                raise unsupported(
                    node, f"Constraint '{other.sql(dialect='spark')}' is not supported."
                )
    if node.args.get("kind") is None:
        raise SqlError(f"Column '{node.name}' has no type.", code="SYNTAX_ERROR")
    return ColumnDef(node.name, data_type(node.args["kind"]), nullable, default)


def added_columns(c: Cursor) -> tuple[ColumnDef, ...]:
    """The columns after ADD COLUMN, in parentheses or not."""
    return tuple(_added(node) for node in _items(c, "a column"))


def added_constraints(c: Cursor) -> tuple[ConstraintDef, ...]:
    """The constraints after ADD, in parentheses or not."""
    return constraint_defs(_items(c, "a constraint"))


def _items(c: Cursor, what: str) -> list[exp.Expr]:
    """What is left of a statement, as items of a column list."""
    if c.peek() is None:
        raise c.error(f"{what} is expected")
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
        raise c.error(f"{what} is expected")
    if tree.expression is not None or tree.args.get("properties") is not None:
        raise c.error(f"only {what} is expected")
    return list(schema.expressions)


def _added(node: exp.Expr) -> ColumnDef:
    if isinstance(node.this, exp.Dot):
        raise unsupported(
            node,
            "A field cannot be added to a struct.",
            "Add a column of the struct's new type and UPDATE it.",
        )
    if node.args.get("position") is not None:
        raise unsupported(
            node,
            "A column is added at the end; FIRST and AFTER are not supported.",
            "Leave it out, and name columns in the order you want them where you select them.",
        )
    if constraint_defs([node]):
        raise unsupported(
            node,
            "A column cannot be added as a key or a reference.",
            "Add the column alone; then ADD CONSTRAINT.",
        )
    return column_def(node)
