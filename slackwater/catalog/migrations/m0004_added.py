"""Version 4: segments are found by the commit that added them."""

from __future__ import annotations

from sqlalchemy import Connection


def upgrade(connection: Connection) -> None:
    """Add the index."""
    connection.exec_driver_sql("CREATE INDEX segments_added ON segments (added_commit)")
