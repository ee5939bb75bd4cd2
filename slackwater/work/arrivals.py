"""What has come to a table, and when: the history that predictions go by.

The event of a change says how many rows came, changed and went. Events stay when segments are
compacted and old commits are forgotten.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, fields
from datetime import UTC, datetime
from typing import Any

from slackwater.catalog.model import Segment, Table
from slackwater.catalog.store import Catalog
from slackwater.sources import parquet
from slackwater.stats.arrival import MOST, Arrived
from slackwater.stats.rows import Change
from slackwater.stats.sound import sound
from slackwater.work.world import World

KINDS = {"update": "updates", "delete": "deletes"}
"""What the rows of a statement are; of any other, they are inserts."""


def tally(kind: str, segments: Iterable[Segment]) -> Change:
    """How many rows a statement's segments insert, update and delete. Where both signs are in one
    segment, its rows are taken for updates, of which each is two."""
    inserts = updates = deletes = 0.0
    for segment in segments:
        if kind == "update" or segment.min_weight < 0 < segment.max_weight:
            updates += segment.rows / 2
        elif segment.max_weight < 0:
            deletes += segment.rows
        else:
            inserts += segment.rows
    return Change(inserts, updates, deletes)


def told(change: Change) -> dict[str, float]:
    """As an event says it."""
    return asdict(change)


def arrivals(catalog: Catalog, table: str, limit: int = MOST) -> list[Arrived]:
    """The newest changes of a table, by its id, oldest first. What TRUNCATE takes away is not
    counted: it says nothing about what comes."""
    events = catalog.events(relation=table, kind="change", limit=limit)
    return [Arrived(datetime.fromisoformat(e.at), _change(e.body)) for e in reversed(events)]


def _change(body: Mapping[str, Any]) -> Change:
    if "change" in body:
        return Change(*(sound((body["change"] or {}).get(f.name), 0.0) for f in fields(Change)))
    change = Change()
    for kind, rows in body.get("rows", {}).items():
        change += Change(**{KINDS.get(kind, "inserts"): sound(rows, 0.0)})
    return change


def history(world: World, table: Table, limit: int = MOST) -> list[Arrived]:
    """The same; of files of others that nobody has watched, by when they were written."""
    found = arrivals(world.house.catalog, table.id, limit)
    if found or table.source != "parquet":
        return found
    files = sorted(world.files(table), key=lambda f: f.modified_ns)
    return [
        Arrived(datetime.fromtimestamp(f.modified_ns / 1e9, UTC), Change(parquet.rows_of([f])))
        for f in files[-limit:]
    ]
