"""Version 7: how many rows have come to a relation, counted as they came."""

from __future__ import annotations

from sqlalchemy import Connection


def upgrade(connection: Connection) -> None:
    """Add the column. What is stored has come; how much of it came since a view was refreshed was
    not written down, so what is due by rows is due once for all of them."""
    connection.exec_driver_sql(
        "ALTER TABLE versions ADD COLUMN arrived_rows BIGINT NOT NULL DEFAULT 0"
    )
    connection.exec_driver_sql(
        "UPDATE versions SET arrived_rows = (SELECT COALESCE(SUM(segments.rows), 0) FROM segments "
        "WHERE segments.relation_id = versions.relation_id AND segments.removed_commit IS NULL)"
    )
