"""Version 3: how many columns each segment has."""

from __future__ import annotations

from sqlalchemy import Connection


def upgrade(connection: Connection) -> None:
    """Add the column; until now, segments had those that their table began with (0)."""
    connection.exec_driver_sql("ALTER TABLE segments ADD COLUMN width BIGINT NOT NULL DEFAULT 0")
