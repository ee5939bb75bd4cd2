"""Rows that have come to a view's tables, those of the views it reads included, since a moment
that is remembered as a mark per table."""

from __future__ import annotations

from collections.abc import Mapping

from slackwater.catalog.model import Table, View
from slackwater.sources import parquet
from slackwater.work.world import World

Marks = Mapping[str, int]
"""By the id of a table, the rows that had come to it: all that were ever written, as they came, or
those in files that are not ours."""


def base_tables(world: World, *views: View) -> list[Table]:
    """The tables that views read, themselves or through other views and parts, as far as they are
    still there."""
    found: dict[str, Table] = {}
    queue = [id for view in views for id in view.depends]
    while queue:
        if (id := queue.pop(0)) not in world.snapshot:
            continue
        relation = world.snapshot.get(id)
        if isinstance(relation, View):
            queue += relation.depends
        else:
            found[relation.id] = relation
    return list(found.values())


def marks(world: World, view: View) -> dict[str, int]:
    """How far the tables of a view are read in this world."""
    return {
        table.id: parquet.rows_of(world.files(table)) if is_external(table) else table.arrived_rows
        for table in base_tables(world, view)
    }


def is_external(table: Table) -> bool:
    """Are its rows in files of others?"""
    return table.source == "parquet"


def rows_since(table: Table, since: int) -> int:
    """Changed rows of a table after a mark: an update counts twice, and so it costs. Segments do
    not tell, since what is changed again before it is read is merged with that."""
    return max(0, _arrived_rows(table) - since)


def waiting(world: World, view: View, since: Marks) -> dict[str, int]:
    """By table, the rows that have come to a view's tables since; all of them where no mark is."""
    tables = base_tables(world, view)
    return {table.id: rows_since(table, since.get(table.id, 0)) for table in tables}


def present(world: World, view: View) -> dict[str, int]:
    """How far the tables of a view could be read now."""
    return {table.id: _arrived_rows(table) for table in base_tables(world, view)}


def _arrived_rows(table: Table) -> int:
    """By a look at the names of files alone."""
    return parquet.row_count(table.options["path"]) if is_external(table) else table.arrived_rows
