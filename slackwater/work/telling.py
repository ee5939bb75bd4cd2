"""SHOW, DESCRIBE, status and history: what there is, and what happened to it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

import pyarrow as pa

from slackwater.catalog.model import Event, Segment, State, Table, View
from slackwater.errors import SlackwaterError
from slackwater.result import Result
from slackwater.types import STRING, WEIGHT, Field, quote
from slackwater.types import from_arrow as from_arrow_type
from slackwater.work.accounts import Accounts
from slackwater.work.house import House
from slackwater.work.obstacles import obstacles
from slackwater.work.parts import PACE, views_of
from slackwater.work.reasons import Why, why, whys
from slackwater.work.room import parts_of, shared_bytes, taken_by
from slackwater.work.unpaced import reason_without_pace
from slackwater.work.world import World


def is_fresh(world: World, view: View) -> bool:
    """Does the view stand at the newest version of all it reads?"""
    if view.refreshed_at is None:
        return False
    for id in view.depends:
        source = world.snapshot.get(id)
        if isinstance(source, View) and not is_fresh(world, source):
            return False
    seen = world.seen(view.depends, lambda id: world.snapshot.get(id).version)
    return seen == dict(view.as_of)


def show(house: House, what: str) -> Result:
    """SHOW TABLES and SHOW VIEWS."""
    world = World(house, house.catalog.snapshot(), defining=True)
    if what == "tables":
        rows = [
            {"name": t.name, "source": t.source, "version": t.version, "columns": len(t.schema)}
            for t in world.snapshot.tables()
        ]
        empty = ["name", "source", "version", "columns"]
    else:
        rows = [
            {
                "name": v.name,
                "version": v.version,
                "fresh": is_fresh(world, v),
                "refreshed_at": v.refreshed_at,
            }
            for v in world.snapshot.views()
        ]
        empty = ["name", "version", "fresh", "refreshed_at"]
    return from_rows(sorted(rows, key=lambda r: str(r["name"]).lower()), empty)


def describe(house: House, name: str) -> Result:
    """DESCRIBE: the columns of a table or view."""
    world = World(house, house.catalog.snapshot(), defining=True)
    found = world.relation(name)
    defaults = found.defaults if isinstance(found, Table) else {}
    rows = [
        {
            "column": f.name,
            "type": f.type.sql,
            "nullable": f.nullable,
            "default": defaults.get(f.name),
            "constraints": ", ".join(_constraints(world, found, f.name)) or None,
        }
        for f in found.schema
    ]
    return from_rows(rows, ["column", "type", "nullable", "default", "constraints"])


def _constraints(world: World, relation: Table | View, column: str) -> Iterator[str]:
    """What is promised of a column, as one would write it."""
    if not isinstance(relation, Table):
        return
    for key in relation.keys:
        if column in key.columns:
            yield f"{'PRIMARY KEY' if key.primary else 'UNIQUE'} ({', '.join(key.columns)})"
    for reference in relation.references:
        if column in reference.columns and reference.table in world.snapshot:
            other = world.snapshot.get(reference.table).name
            yield f"REFERENCES {quote(other)} ({', '.join(reference.theirs)})"


def from_rows(rows: list[dict[str, Any]], names: list[str]) -> Result:
    """A result made of Python rows."""
    if rows:
        table = pa.Table.from_pylist(rows)
        table = table.cast(pa.schema([_typed(f) for f in table.schema]))
    else:
        table = pa.table({n: pa.array([], pa.string()) for n in names})
    return from_arrow(table)


def _typed(field: pa.Field) -> pa.Field:
    return pa.field(field.name, pa.string()) if pa.types.is_null(field.type) else field


def from_arrow(table: pa.Table) -> Result:
    """A result that is an Arrow table already."""
    schema = tuple(Field(f.name, from_arrow_type(f.type), True) for f in table.schema)
    return Result(schema, lambda: table)


def text_result(name: str, text: str) -> Result:
    """A result of one column that holds lines of text."""
    table = pa.table({name: pa.array(text.splitlines(), pa.string())})
    return Result((Field(name, STRING, False),), lambda: table)


def status(house: House) -> dict[str, Any]:
    """Tables and views with their sizes and freshness."""
    world = World(house, house.catalog.snapshot(), defining=True)
    tables = [_table_status(house, world, t) for t in world.snapshot.tables()]
    accounts = Accounts.read(house)
    views = [_view_status(house, world, v, accounts) for v in world.snapshot.views()]
    return {
        "commit": world.snapshot.commit,
        "tables": sorted(tables, key=lambda r: str(r["name"]).lower()),
        "views": sorted(views, key=lambda r: str(r["name"]).lower()),
    }


def _table_status(house: House, world: World, table: Table) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "name": table.name,
        "kind": "table",
        "source": table.source,
        "columns": len(table.schema),
    }
    if table.source == "parquet":
        files = world.files(table)
        return entry | {
            "version": table.version,
            "rows": world.rows(table.id),
            "bytes": sum(f.bytes for f in files),
            "segments": len(files),
        }
    return entry | {"version": table.version} | _sums(house, world.segments(table.id))


def _sums(house: House, segments: tuple[Segment, ...]) -> dict[str, Any]:
    return {
        "rows": _row_count(house, segments),
        "bytes": sum(s.bytes for s in segments),
        "segments": len(segments),
    }


def _row_count(house: House, segments: tuple[Segment, ...]) -> int:
    """The sum of weights, read only from segments where it is not the number of rows."""
    plain = sum(s.rows for s in segments if s.min_weight == s.max_weight == 1)
    mixed = [s for s in segments if not s.min_weight == s.max_weight == 1]
    if not mixed:
        return plain
    source = house.runner.local.read(mixed, ())
    sql = f"SELECT CAST(SUM({WEIGHT}) AS BIGINT) AS n FROM {source}"
    batches = house.runner.local.batches(sql, pa.schema([("n", pa.int64())]))
    return plain + int(pa.Table.from_batches(batches).column(0)[0].as_py())


def _view_status(house: House, world: World, view: View, accounts: Accounts) -> dict[str, Any]:
    states = [_state_status(world, s) for s in world.snapshot.states(view.id)]
    sources = [world.snapshot.get(id) for id in view.depends]
    names = [s.name for s in sources if not (isinstance(s, View) and s.part)]
    return {
        "name": view.name,
        "kind": "view",
        "version": view.version,
        "fresh": is_fresh(world, view),
        "refreshed_at": view.refreshed_at,
        "reads": names,
        "options": {k: v for k, v in view.options.items() if k != "columns"},
        "as_of": {
            world.snapshot.get(id).name: (at if isinstance(at, int) else f"{len(at)} files")
            for id, at in view.as_of.items()
            if id in world.snapshot and world.snapshot.get(id).name in names
        },
        "states": states,
        "reasons": [asdict(w) for w in _obstacles(world, view)],
        "unpaced": asdict(unpaced) if (unpaced := reason_without_pace(world, view)) else None,
        "parts": [_part_status(world, p) for p in parts_of(world, view)],
        **accounts.of(world, view, round(taken_by(world, view) + shared_bytes(world, view))),
    } | _sums(house, world.segments(view.id))


def _obstacles(world: World, view: View) -> list[Why]:
    """What keeps a view from following changes; nothing is known of one that is not understood."""
    try:
        return obstacles(world, view)
    except SlackwaterError as error:
        return [why("NOT_UNDERSTOOD", str(error).partition("\n")[0])]


def _part_status(world: World, part: View) -> dict[str, Any]:
    """A piece that is brought along by itself, maybe for other views, too."""
    segments = world.segments(part.id)
    return {
        "id": part.id,
        "pace": int(part.options.get(PACE, "1")),
        "views": list(views_of(part)),
        "version": part.version,
        "rows": sum(s.rows for s in segments),
        "bytes": sum(s.bytes for s in segments),
        "segments": len(segments),
        "state_bytes": round(taken_by(world, part)),
    }


def _state_status(world: World, state: State) -> dict[str, Any]:
    """What is kept of one operator. Its rows are those that are stored: what they add up to is
    known when they are read, or compacted."""
    segments = world.segments(state.id)
    return {
        "kind": state.kind,
        "columns": len(state.schema),
        "version": state.version,
        "rows": sum(s.rows for s in segments),
        "bytes": sum(s.bytes for s in segments),
        "segments": len(segments),
    }


def history(house: House, name: str | None, limit: int) -> list[dict[str, Any]]:
    """The newest events, of everything or of one table or view."""
    relation = None
    if name is not None:
        relation = World(house, house.catalog.snapshot(), defining=True).relation(name).id
    events = house.catalog.events(relation=relation, limit=limit)
    return [_told(e) for e in events]


def _told(event: Event) -> dict[str, Any]:
    """An event; of a refresh, also what its reasons and those against other ways mean, where they
    hold, and what to do."""
    told = {"kind": event.kind, "at": event.at, **event.body}
    if event.kind == "refresh":
        own, places = told["reasons"], told.get("places", {})
        others = [r for way in told["candidates"] for r in way["reasons"] if r not in own]
        told["why"] = [asdict(w) for w in whys(own, places)]
        told["why_not"] = [asdict(w) for w in whys(others, places)]
    return told
