"""Version 6: the first version whose changes a segment holds."""

from __future__ import annotations

from sqlalchemy import Connection


def upgrade(connection: Connection) -> None:
    """Add the column; what was merged until now had been read by all."""
    connection.exec_driver_sql("ALTER TABLE segments ADD COLUMN since BIGINT NOT NULL DEFAULT 0")
    connection.exec_driver_sql("UPDATE segments SET since = version")
