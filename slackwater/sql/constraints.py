"""Keys and references as CREATE TABLE and ALTER TABLE … ADD declare them: promises that are relied
on, not checked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sqlglot import exp

from slackwater.errors import SqlError
from slackwater.sql.parse import span
from slackwater.sql.tables import table_name

NODES = (exp.Constraint, exp.PrimaryKey, exp.UniqueColumnConstraint, exp.ForeignKey)
"""What may stand between columns."""


@dataclass(frozen=True)
class KeyDef:
    """PRIMARY KEY or UNIQUE."""

    columns: tuple[str, ...]
    primary: bool
    name: str = ""


@dataclass(frozen=True)
class ReferenceDef:
    """FOREIGN KEY … REFERENCES; without columns of the table it means its primary key."""

    columns: tuple[str, ...]
    table: str
    theirs: tuple[str, ...]
    name: str = ""


ConstraintDef = KeyDef | ReferenceDef


def constraint_defs(nodes: Sequence[exp.Expr]) -> tuple[ConstraintDef, ...]:
    """The constraints among the items of a column list."""
    return tuple(_all(nodes))


def _all(nodes: Sequence[exp.Expr], name: str = "") -> Iterator[ConstraintDef]:
    for node in nodes:
        if isinstance(node, exp.ColumnDef):
            for constraint in node.args.get("constraints") or []:
                if is_constraint(constraint.kind):
                    yield _constraint(constraint.kind, (node.name,), constraint.name)
        elif isinstance(node, exp.Constraint):
            yield from _all(node.expressions, node.name)
        elif isinstance(node, NODES):
            yield _constraint(node, _names(node), name)
        elif name:
            raise unsupported(node, f"Constraint '{node.sql(dialect='spark')}' is not supported.")


def is_constraint(node: exp.Expr) -> bool:
    """Is what stands beside a column a key or a reference?"""
    return isinstance(
        node, exp.PrimaryKeyColumnConstraint | exp.UniqueColumnConstraint | exp.Reference
    )


def _names(node: exp.Expr) -> tuple[str, ...]:
    listed = node.this if isinstance(node, exp.UniqueColumnConstraint) else node
    return tuple(column.name for column in listed.expressions)


def _constraint(node: exp.Expr, columns: tuple[str, ...], name: str) -> ConstraintDef:
    reference = node.args.get("reference") if isinstance(node, exp.ForeignKey) else node
    assert reference is not None
    options = [str(o).upper() for o in reference.args.get("options") or []]
    if isinstance(node.this, exp.Identifier):  # UNIQUE RELY beside a column
        options.append(node.name.upper())
    _require_promise(node, options)
    if not isinstance(reference, exp.Reference):
        primary = isinstance(node, exp.PrimaryKey | exp.PrimaryKeyColumnConstraint)
        return KeyDef(columns, primary, name)
    target = reference.this
    theirs = target.expressions if isinstance(target, exp.Schema) else []
    table = target.this if isinstance(target, exp.Schema) else target
    return ReferenceDef(columns, table_name(table), tuple(c.name for c in theirs), name)


def _require_promise(node: exp.Expr, options: list[str]) -> None:
    if "RELY" in options and set(options) <= {"RELY", "NOT ENFORCED"}:
        return
    raise unsupported(
        node,
        f"'{node.sql(dialect='spark')}' would have to be checked at every change, which is not "
        "supported.",
        "Write NOT ENFORCED RELY after it to promise that it holds at all times: views are then "
        "maintained with less work, and wrong if it does not hold.",
    )


def unsupported(node: exp.Expr, message: str, hint: str = "") -> SqlError:
    """What is wrong with a declaration."""
    start, end = span(node)
    return SqlError(
        message,
        code="UNSUPPORTED_STATEMENT",
        hint=hint
        or "NOT NULL, DEFAULT, keys and references are kept; others must be checked outside.",
        start=start,
        end=end,
    )
