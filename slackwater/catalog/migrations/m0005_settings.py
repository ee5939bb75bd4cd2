"""Version 5: settings of the warehouse that snapshots see."""

from __future__ import annotations

from sqlalchemy import Connection

from slackwater.catalog.migrations.m0001_initial import ROWID


def upgrade(connection: Connection) -> None:
    """Add the table."""
    connection.exec_driver_sql(
        f"CREATE TABLE warehouse_settings (row_id {ROWID[connection.dialect.name]}, "
        "key TEXT NOT NULL, value TEXT NOT NULL, added_commit BIGINT NOT NULL, "
        "removed_commit BIGINT)"
    )
    connection.exec_driver_sql(
        "CREATE UNIQUE INDEX warehouse_settings_live ON warehouse_settings (key) "
        "WHERE removed_commit IS NULL"
    )
