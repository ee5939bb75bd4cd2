"""Events added up where they are: views that are refreshed each minute write more of them in a week
than anyone should read."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Double, Text, case, cast, func, select
from sqlalchemy.dialects.postgresql import JSONB

from slackwater.catalog.database import Database
from slackwater.catalog.tables import events


@dataclass(frozen=True)
class Spent:
    """What refreshes of one view, or of a part for several, took on one day; what it costs is CPU
    seconds, each times the price when it began."""

    day: str
    views: tuple[str, ...]
    cpu_seconds: float
    cost: float


def spent(database: Database, since: str) -> Iterator[Spent]:
    """What all refreshes took since a moment. Where an event names no price, it was 1."""
    day = func.substr(events.c.at, 1, 10)
    view, views = _in_body(database, "view"), _in_body(database, "views")
    cpu = cast(_in_body(database, "measured", "cpu_seconds"), Double)
    price = func.coalesce(cast(_in_body(database, "price"), Double), 1.0)
    query = (
        select(day, view, views, func.sum(cpu), func.sum(cpu * price))
        .where(events.c.kind == "refresh", events.c.at >= since)
        .group_by(day, view, views)
    )
    with database.reading() as connection:
        rows = connection.execute(query).all()
    for at, one, several, seconds, cost in rows:
        names = (one,) if several is None else tuple(json.loads(several))
        yield Spent(at, names, seconds or 0.0, cost or 0.0)


@dataclass(frozen=True)
class Goals:
    """How often results of a view came in time where that was asked for, and how often not."""

    view: str  # its id
    kept: int
    missed: int


def goals(database: Database, since: str) -> list[Goals]:
    """Of all views, since a moment."""
    in_time = cast(_in_body(database, "kept"), Text).in_(("1", "true"))
    asked = _in_body(database, "within_seconds").is_not(None)
    kept, missed = (func.sum(case((c, 1), else_=0)) for c in (in_time & asked, ~in_time))
    query = (
        select(events.c.relation_id, kept, missed)
        .where(events.c.kind == "goal", events.c.at >= since, events.c.relation_id.is_not(None))
        .group_by(events.c.relation_id)
    )
    with database.reading() as connection:
        rows = connection.execute(query).all()
    return [Goals(*row) for row in rows]


def _in_body(database: Database, *path: str) -> ColumnElement[Any]:
    """A value in the body of an event; what is no single value, as JSON."""
    if database.sqlite:
        return func.json_extract(events.c.body, ".".join(("$", *path)))
    return func.jsonb_extract_path_text(cast(events.c.body, JSONB), *path)
