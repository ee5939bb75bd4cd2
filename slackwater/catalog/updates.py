"""What a commit changes: one answer per update, within the commit's transaction."""

from __future__ import annotations

from functools import singledispatch
from typing import Any

from sqlalchemy import insert, select, update

from slackwater.catalog import constants
from slackwater.catalog.codec import Relation, body_of, fold, kind_of, promises_of, segment_row
from slackwater.catalog.model import (
    AddColumns,
    AddSegments,
    AlterRelation,
    ChangeOptions,
    CompactSegments,
    CreateState,
    CreateTable,
    CreateView,
    Drop,
    FinishRun,
    NameIsFree,
    ReplaceSegments,
    ReplaceView,
    Segment,
    SetAsOf,
    SetForm,
    SetPromises,
    SetSettings,
    State,
    Update,
    View,
    WriteEvent,
)
from slackwater.catalog.requirements import check
from slackwater.catalog.runs import end
from slackwater.catalog.tables import (
    definitions,
    events,
    measurements,
    relations,
    segments,
    versions,
    warehouse_settings,
)
from slackwater.catalog.transaction import Transaction, name_of, run_revoked
from slackwater.errors import InternalError, StateError

_NEW_RELATION = insert(relations)
_NEW_SEGMENTS = insert(segments)
_NEW_MEASUREMENTS = insert(measurements)
_NEW_EVENT = insert(events)


@singledispatch
def apply(change: Update, tx: Transaction) -> None:
    """Do the update."""
    raise InternalError(f"update {change!r} is not known")


@apply.register
def _(change: CreateTable, tx: Transaction) -> None:
    _create(tx, change.table)


@apply.register
def _(change: CreateView, tx: Transaction) -> None:
    _require_sources(tx, change.view)
    _create(tx, change.view)


@apply.register
def _(change: CreateState, tx: Transaction) -> None:
    tx.live(definitions, change.state.view)
    _create(tx, change.state)


@apply.register
def _(change: ReplaceView, tx: Transaction) -> None:
    view = change.view
    _drop_states(tx, view.id)
    old = tx.live(definitions, view.id)
    if fold(view.name) != old.folded_name:
        check(NameIsFree(view.name), tx)
    _require_sources(tx, view)
    tx.put(definitions, view.id, **_definition(view))
    tx.put(versions, view.id, as_of=dict(view.as_of), refreshed_at=view.refreshed_at)


@apply.register
def _(change: SetForm, tx: Transaction) -> None:
    body = tx.live(definitions, change.id).body
    for source in change.depends:
        tx.live(definitions, source)
    changed = {"form": change.form, "depends": list(change.depends)}
    tx.put(definitions, change.id, body=body | changed)


@apply.register
def _(change: AlterRelation, tx: Transaction) -> None:
    old = tx.live(definitions, change.id)
    tx.put(definitions, change.id, body=old.body | {"options": dict(change.options)})


@apply.register
def _(change: ChangeOptions, tx: Transaction) -> None:
    body = tx.live(definitions, change.id).body
    changed = body["options"] | dict(change.changes)
    options = {name: value for name, value in changed.items() if value is not None}
    tx.put(definitions, change.id, body=body | {"options": options})


@apply.register
def _(change: SetSettings, tx: Transaction) -> None:
    live = warehouse_settings.c.removed_commit.is_(None)
    named = warehouse_settings.c.key.in_(list(change.changes))
    closed = update(warehouse_settings).where(live, named).values(removed_commit=tx.commit)
    tx.connection.execute(closed)
    rows = [
        {"key": key, "value": value, "added_commit": tx.commit}
        for key, value in change.changes.items()
        if value is not None
    ]
    if rows:
        tx.connection.execute(insert(warehouse_settings), rows)


@apply.register
def _(change: AddColumns, tx: Transaction) -> None:
    body = tx.live(definitions, change.id).body
    known = body["schema"]["fields"]
    taken = {f["name"].lower() for f in known} & {f.name.lower() for f in change.columns}
    if taken or change.fills.keys() != {f.name for f in change.columns}:
        raise InternalError(f"columns {change.columns} cannot be added to {change.id}")
    fills = {name: constants.to_json(fill) for name, fill in change.fills.items()}
    added = {
        "schema": body["schema"] | {"fields": [*known, *(f.json for f in change.columns)]},
        "fills": body.get("fills", {}) | fills,
        "defaults": body["defaults"] | dict(change.defaults),
    }
    tx.put(definitions, change.id, body=body | added)


@apply.register
def _(change: SetPromises, tx: Transaction) -> None:
    body = tx.live(definitions, change.id).body
    tx.put(definitions, change.id, body=body | promises_of(change))


@apply.register
def _(change: Drop, tx: Transaction) -> None:
    tx.live(definitions, change.id)
    _drop_states(tx, change.id)
    _drop(tx, change.id)


@apply.register
def _(change: AddSegments, tx: Transaction) -> None:
    _add(tx, change.id, change.segments)


@apply.register
def _(change: ReplaceSegments, tx: Transaction) -> None:
    live = select(segments.c.path, segments.c.row_id).where(
        segments.c.relation_id == change.id, segments.c.removed_commit.is_(None)
    )
    old = {row.path: row.row_id for row in tx.connection.execute(live)}
    wanted = {segment.path for segment in change.segments}
    tx.close_segments([row_id for path, row_id in old.items() if path not in wanted])
    _add(tx, change.id, tuple(s for s in change.segments if s.path not in old))
    tx.put(versions, change.id, log_from=tx.live(versions, change.id).version)


@apply.register
def _(change: CompactSegments, tx: Transaction) -> None:
    live = tx.connection.execute(
        select(segments.c.path, segments.c.row_id).where(
            segments.c.relation_id == change.id, segments.c.removed_commit.is_(None)
        )
    )
    rows = {row.path: row.row_id for row in live}
    gone = [s.path for s in change.removed if s.path not in rows]
    if gone:
        raise StateError(
            f"{len(gone)} segments of '{name_of(tx.connection, change.id)}' were replaced while "
            "they were compacted.",
            code="COMPACTION_OVERTAKEN",
            hint="Nothing is lost; compact again.",
        )
    newest = max((s.version for s in change.removed), default=0)
    oldest = min((s.since for s in change.removed), default=0)
    tx.close_segments([rows[s.path] for s in change.removed])
    _insert_segments(tx, change.id, change.added, newest, oldest)
    if not change.added and _was_read_between(tx, change.id, oldest, newest):
        log_from = max(newest, int(tx.live(versions, change.id).log_from))
        tx.put(versions, change.id, log_from=log_from)  # no segment is left to tell them


@apply.register
def _(change: SetAsOf, tx: Transaction) -> None:
    tx.put(versions, change.id, as_of=dict(change.as_of), refreshed_at=change.at)


@apply.register
def _(change: FinishRun, tx: Transaction) -> None:
    if not end(tx.connection, change.run_id, "committed", tx.now, commit_id=tx.commit):
        raise run_revoked(change.run_id, "not open")
    rows = [
        {
            "run_id": change.run_id,
            "step": item.step,
            "engine": item.engine,
            "seconds": item.seconds,
            "cpu_seconds": item.cpu_seconds,
            "rows": item.rows,
            "bytes": item.bytes,
        }
        for item in change.measurements
    ]
    if rows:
        tx.connection.execute(_NEW_MEASUREMENTS, rows)


@apply.register
def _(change: WriteEvent, tx: Transaction) -> None:
    event = change.event
    row = {
        "commit_id": tx.commit,
        "kind": event.kind,
        "relation_id": event.relation,
        "at": event.at,
        "body": dict(event.body),
    }
    tx.connection.execute(_NEW_EVENT, row)


def _create(tx: Transaction, relation: Relation) -> None:
    check(NameIsFree(relation.name), tx)
    owner = relation.view if isinstance(relation, State) else None
    row = {"id": relation.id, "kind": kind_of(relation), "owner": owner}
    tx.connection.execute(_NEW_RELATION, row)
    as_of, at = (
        (relation.as_of, relation.refreshed_at) if isinstance(relation, View) else ({}, None)
    )
    tx.add(definitions, relation.id, **_definition(relation))
    tx.add(
        versions,
        relation.id,
        version=relation.version,
        as_of=dict(as_of),
        refreshed_at=at,
        log_from=relation.version,
        arrived_rows=0,
    )


def _definition(relation: Relation) -> dict[str, Any]:
    name = relation.name
    return {"name": name, "folded_name": fold(name), "body": body_of(relation)}


def _require_sources(tx: Transaction, view: View) -> None:
    """A view cannot come to be while what it reads is being dropped."""
    for id in view.depends:
        tx.live(definitions, id)


def _drop_states(tx: Transaction, view: str) -> None:
    for id in tx.connection.scalars(select(relations.c.id).where(relations.c.owner == view)):
        _drop(tx, id)


def _drop(tx: Transaction, id: str) -> None:
    for table in (definitions, versions, segments):
        tx.close(table, id)


def _was_read_between(tx: Transaction, id: str, oldest: int, newest: int) -> bool:
    """Has anybody read some of these versions of a relation, but not all?"""
    tx.flush(versions)
    read = tx.connection.scalars(
        select(versions.c.as_of).where(versions.c.removed_commit.is_(None))
    )
    return any(id in as_of and oldest <= as_of[id] < newest for as_of in read)


def _add(tx: Transaction, id: str, new: tuple[Segment, ...]) -> None:
    version = _next_version(tx, id)
    arrived_rows = tx.live(versions, id).arrived_rows + sum(s.rows for s in new)
    tx.put(versions, id, arrived_rows=arrived_rows)
    _insert_segments(tx, id, new, version, version)


def _insert_segments(
    tx: Transaction, id: str, new: tuple[Segment, ...], version: int, since: int
) -> None:
    _require_writable(tx, {segment.path for segment in new})
    versions = {"version": version, "since": since, "added_commit": tx.commit}
    rows = [segment_row(segment) | {"relation_id": id} | versions for segment in new]
    if rows:
        tx.connection.execute(_NEW_SEGMENTS, rows)


def _require_writable(tx: Transaction, paths: set[str]) -> None:
    """Refuse files of a run that has ended before this commit: they may be collected already.

    Files that a live segment names are safe, whoever wrote them.
    """
    by_run: dict[str, set[str]] = {}
    for path in paths:
        if path.startswith("data/"):
            by_run.setdefault(path.split("/")[1], set()).add(path)
    for run_id, written in by_run.items():
        run = tx.run(run_id)
        if run is None or run.state == "open" or run.commit_id == tx.commit:
            continue
        if not written <= _live_paths(tx, written):
            raise run_revoked(run_id, run.state)


def _live_paths(tx: Transaction, paths: set[str]) -> set[str]:
    query = select(segments.c.path).where(
        segments.c.path.in_(paths), segments.c.removed_commit.is_(None)
    )
    return set(tx.connection.scalars(query))


def _next_version(tx: Transaction, id: str) -> int:
    """The version this commit gives the relation: one more than before, once per commit."""
    version = int(tx.live(versions, id).version)
    if id in tx.bumped:
        return version
    tx.bumped.add(id)
    tx.put(versions, id, version=version + 1)
    return version + 1
