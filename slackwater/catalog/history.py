"""What happened: events, measurements; and settings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import delete, func, insert, select

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


def news(
    database: Database, after: int | None, kinds: Sequence[str]
) -> tuple[int, tuple[Event, ...]]:
    """Events of some kinds that came after others, in their order, and the number of the last
    event there is; nothing but that for those who have read none."""
    with database.reading() as connection:
        number = connection.execute(select(func.max(events.c.row_id))).scalar() or 0
        if after is None or number == after:
            return number, ()
        query = select(events).where(events.c.row_id > after, events.c.kind.in_(kinds))
        rows = connection.execute(query.order_by(events.c.row_id)).all()
    found = tuple(Event(row.kind, row.relation_id, row.at, row.body) for row in rows)
    return max([number, *(row.row_id for row in rows)]), found


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
