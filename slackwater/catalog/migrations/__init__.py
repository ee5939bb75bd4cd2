"""Migrations of the catalog's tables: a numbered list, each applied once, in order.

A migration never changes after a release; a later change is a new one at the end of the list.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sqlalchemy import Connection, func, insert, inspect, select

from slackwater.catalog import tables
from slackwater.catalog.ids import timestamp
from slackwater.catalog.migrations import (
    m0001_initial,
    m0002_states,
    m0003_widths,
    m0004_added,
    m0005_settings,
    m0006_since,
    m0007_arrived,
)
from slackwater.errors import StateError


@dataclass(frozen=True, slots=True)
class Migration:
    """One step from a version of the catalog to the next."""

    version: int
    name: str
    upgrade: Callable[[Connection], None]


MIGRATIONS = (
    Migration(1, "initial", m0001_initial.upgrade),
    Migration(2, "states", m0002_states.upgrade),
    Migration(3, "widths", m0003_widths.upgrade),
    Migration(4, "added", m0004_added.upgrade),
    Migration(5, "settings", m0005_settings.upgrade),
    Migration(6, "since", m0006_since.upgrade),
    Migration(7, "arrived", m0007_arrived.upgrade),
)
NEWEST = MIGRATIONS[-1].version


def version(connection: Connection) -> int:
    """The catalog's version; 0 for an empty database."""
    if not inspect(connection).has_table("schema_version"):
        return 0
    return connection.scalar(select(func.max(tables.schema_version.c.version))) or 0


def refuse_newer(found: int) -> None:
    """A catalog that newer code has migrated may mean what this code does not know."""
    if found > NEWEST:
        raise StateError(
            f"The catalog has version {found}; this Slackwater knows versions up to {NEWEST}.",
            code="CATALOG_TOO_NEW",
            hint="Upgrade Slackwater here to the version that wrote the catalog.",
        )


def migrate(connection: Connection) -> None:
    """Bring the catalog to the newest version, within the caller's transaction."""
    found = version(connection)
    refuse_newer(found)
    for migration in MIGRATIONS[found:]:
        migration.upgrade(connection)
        row = {"version": migration.version, "name": migration.name, "applied_at": timestamp()}
        connection.execute(insert(tables.schema_version).values(row))
