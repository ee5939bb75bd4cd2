"""ALTER TABLE: the catalog changes, and no file.

Rows that are there get in an added column the value that the default has now, whatever becomes of
the default later; it is kept with the column and filled in where older segments are read. Views go
on reading the columns that they were defined with.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from slackwater.algebra.coercion import literal
from slackwater.algebra.expr import Call, Cast, Expr, Literal, SparkCall, is_deterministic
from slackwater.algebra.fold import folded
from slackwater.algebra.relation import Scan, Values
from slackwater.catalog.constants import is_kept
from slackwater.catalog.model import (
    AddColumns,
    Event,
    SetPromises,
    Table,
    Update,
    VersionIs,
    WriteEvent,
)
from slackwater.errors import SqlError, StateError, UserError, nearest
from slackwater.sql import statements
from slackwater.sql.assign import Target, default_value
from slackwater.types import Field
from slackwater.work.definitions import check_columns
from slackwater.work.house import House
from slackwater.work.promises import promising
from slackwater.work.world import World


def add_columns(house: House, statement: statements.AddColumns) -> str:
    """ALTER TABLE … ADD COLUMN[S]."""
    _require_managed(World(house, house.catalog.snapshot()).table(statement.table))

    def change(world: World, table: Table) -> tuple[AddColumns, list[str]]:
        added = _change(world, table, statement)
        return added, [f.name for f in added.columns]

    return _alter(house, statement.table, "columns", change, "added")


def add_constraints(house: House, statement: statements.AddConstraints) -> str:
    """ALTER TABLE … ADD CONSTRAINT."""

    def change(world: World, table: Table) -> tuple[SetPromises, list[str]]:
        made = promising(world, table, statement.constraints)
        names = [name for name in made.constraints if name not in table.constraints]
        return SetPromises(table.id, made.keys, made.references), names

    return _alter(house, statement.table, "constraints", change, "added")


def drop_constraint(house: House, statement: statements.DropConstraint) -> str:
    """ALTER TABLE … DROP CONSTRAINT."""

    def change(world: World, table: Table) -> tuple[SetPromises, list[str]]:
        dropped = [n for n in table.constraints if n.lower() == statement.name.lower()]
        if not dropped and not statement.if_exists:
            raise UserError(
                f"'{table.name}' has no constraint '{statement.name}'.",
                code="UNKNOWN_CONSTRAINT",
                hint=nearest(statement.name, table.constraints),
            )
        keys = tuple(k for k in table.keys if k.name not in dropped)
        references = tuple(r for r in table.references if r.name not in dropped)
        return SetPromises(table.id, keys, references), dropped

    return _alter(house, statement.table, "constraints", change, "dropped")


def _alter(
    house: House,
    name: str,
    what: str,
    change: Callable[[World, Table], tuple[Update, list[str]]],
    done: str,
) -> str:
    """Change a table's definition while nobody else changes the table."""
    found = World(house, house.catalog.snapshot()).table(name)
    with house.lease(found.id) as lease:
        world = World(house, house.catalog.snapshot())
        table = world.table(name)
        if table.id != found.id:
            raise _replaced(table)
        update, names = change(world, table)
        body = {"table": table.name, what: names}
        house.catalog.commit(
            [*lease.requirements, VersionIs(table.id, table.version)],
            [update, WriteEvent(Event("alter", table.id, house.timestamp(), body))],
        )
    return f"table '{table.name}' altered: {', '.join(names) or 'nothing'} {done}"


def _require_managed(table: Table) -> None:
    if table.source != "managed":
        raise UserError(
            f"'{table.name}' is an external table; its columns are those of its files.",
            code="EXTERNAL_TABLE",
            hint="CREATE another TABLE … USING parquet over the same folder: it finds the columns "
            "that the files have now.",
        )


def _replaced(table: Table) -> StateError:
    return StateError(
        f"'{table.name}' was dropped and created again meanwhile.",
        code="RELATION_GONE",
        hint="Nothing was changed. Look at the new table, and try again.",
    )


def _change(world: World, table: Table, statement: statements.AddColumns) -> AddColumns:
    columns = tuple(Field(c.name, c.type, c.nullable) for c in statement.columns)
    defaults = {c.name: c.default for c in statement.columns if c.default is not None}
    _require_new(table, columns)
    wider = replace(table, schema=(*table.schema, *columns), defaults=defaults)
    check_columns(wider.schema, f"Table '{table.name}'")
    try:
        fills = {f.name: _fill(world, wider, f) for f in columns}
    except SqlError as error:
        raise error.located(statement.text) from None
    return AddColumns(table.id, columns, fills, defaults)


def _require_new(table: Table, columns: tuple[Field, ...]) -> None:
    known = {f.name.lower(): f.name for f in table.schema}
    for f in columns:
        if f.name.lower() in known:
            raise UserError(
                f"Column '{known[f.name.lower()]}' is in '{table.name}' already.",
                code="COLUMN_EXISTS",
                hint="Choose another name. Names do not differ by case.",
            )


def _fill(world: World, table: Table, column: Field) -> Literal:
    """What the rows that are there hold in a new column."""
    if column.name not in table.defaults:
        value = literal(None, column.type)
    else:
        target = Target(table.name, Scan(table.id, table.name, table.schema), table.defaults)
        bound = default_value(world.context(), target, table.schema.index(column))
        value = _value(world, column, folded(bound))
    if value.value is None and not column.nullable:
        raise UserError(
            f"Column '{column.name}' is NOT NULL, and the rows of '{table.name}' would be NULL "
            "there.",
            code="NULL_IN_NOT_NULL",
            hint="Give it a DEFAULT, or leave NOT NULL out.",
        )
    return value


def _value(world: World, column: Field, default: Expr) -> Literal:
    """A default, computed now."""
    plain = all(isinstance(n, Literal | Call | Cast | SparkCall) for n in default.walk())
    if not plain or not is_deterministic(default):
        raise UserError(
            f"The default of column '{column.name}' is not a constant.",
            code="DEFAULT_NOT_CONSTANT",
            hint="Write a value, or add the column without DEFAULT and UPDATE it.",
        )
    if isinstance(default, Literal):
        value = default.value
    else:
        row = Values(((default,),), (Field("value", column.type, True),))
        value = world.house.runner.query(row, {}).column(0)[0].as_py()
    if value is not None and not is_kept(column.type):
        raise UserError(
            f"A column of type {column.type.sql} cannot be added with a default.",
            code="UNSUPPORTED_TYPE",
            hint="Add it without DEFAULT and UPDATE it.",
        )
    return literal(value, column.type)
