"""What happened: events, measurements; and settings."""

from __future__ import annotations

from typing import Any

from sqlalchemy import delete, insert, select

from slackwater.catalog.database import Database
from slackwater.catalog.model import Event, Measurement
from slackwater.catalog.tables import events, measurements, settings


def recent_events(
    database: Database, relation: str | None, kind: str | None, limit: int, since: str | None = None
) -> tuple[Event, ...]:
    """The newest events, newest first."""
    query = select(events).order_by(events.c.row_id.desc()).limit(limit)
    if relation is not None:
        query = query.where(events.c.relation_id == relation)
    if kind is not None:
        query = query.where(events.c.kind == kind)
    if since is not None:
        query = query.where(events.c.at >= since)  # texts of one form sort as their moments do
    with database.reading() as connection:
        rows = connection.execute(query).all()
    return tuple(Event(row.kind, row.relation_id, row.at, row.body) for row in rows)


def measurements_of(database: Database, run_id: str) -> tuple[Measurement, ...]:
    """What the steps of a run cost, in their order."""
    query = select(measurements).where(measurements.c.run_id == run_id)
    with database.reading() as connection:
        rows = connection.execute(query.order_by(measurements.c.row_id)).all()
    return tuple(
        Measurement(row.step, row.engine, row.seconds, row.cpu_seconds, row.rows, row.bytes)
        for row in rows
    )


def all_settings(database: Database) -> dict[str, Any]:
    """Every setting of the warehouse."""
    with database.reading() as connection:
        return {row.key: row.value for row in connection.execute(select(settings))}


def set_setting(database: Database, key: str, value: Any) -> None:
    """Keep a setting; None removes it."""
    with database.writing(durable=True) as connection:
        connection.execute(delete(settings).where(settings.c.key == key))
        if value is not None:
            connection.execute(insert(settings).values(key=key, value=value))
