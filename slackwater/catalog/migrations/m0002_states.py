"""Version 2: states of views, and since when each relation's log of changes is unbroken."""

from __future__ import annotations

from sqlalchemy import Connection


def upgrade(connection: Connection) -> None:
    """Add the columns; what was replaced before is not known, so every log begins now."""
    connection.exec_driver_sql("ALTER TABLE relations ADD COLUMN owner TEXT")
    connection.exec_driver_sql("CREATE INDEX relations_owner ON relations (owner)")
    connection.exec_driver_sql("ALTER TABLE versions ADD COLUMN log_from BIGINT NOT NULL DEFAULT 0")
    connection.exec_driver_sql("UPDATE versions SET log_from = version")
