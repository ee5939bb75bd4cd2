"""Everything the catalog knows at one commit, unmoved by later ones."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeGuard

from sqlalchemy import (
    BindParameter,
    ColumnElement,
    Connection,
    Row,
    Select,
    and_,
    bindparam,
    or_,
    select,
)
from sqlalchemy import Table as SqlTable

from slackwater.catalog.codec import Relation, fold, relation_of, segment_of
from slackwater.catalog.database import Database
from slackwater.catalog.model import Segment, State, Table, View
from slackwater.catalog.pins import HEAD, require_whole
from slackwater.catalog.tables import (
    definitions,
    relations,
    segments,
    versions,
    warehouse_settings,
)
from slackwater.errors import InternalError

_FEW = 500


class Snapshot:
    """Relations and their segments at `commit`; segments are loaded when asked for."""

    def __init__(
        self,
        database: Database,
        commit: int,
        found: Mapping[str, Relation],
        known: Snapshot | None = None,
        rows: Mapping[str, dict[int, Segment]] | None = None,
    ) -> None:
        self._database = database
        self._relations = found
        self._rows = dict(rows or {})
        self._known = known._carried(found) if known is not None else {}
        self._by_name = {fold(r.name): r for r in found.values() if _is_seen(r)}
        self._segments: dict[str, tuple[Segment, ...]] = {}
        self.commit = commit

    def tables(self) -> tuple[Table, ...]:
        """All tables, by name."""
        return tuple(r for _, r in sorted(self._by_name.items()) if isinstance(r, Table))

    def views(self) -> tuple[View, ...]:
        """All views, by name."""
        return tuple(r for _, r in sorted(self._by_name.items()) if isinstance(r, View))

    def parts(self) -> tuple[View, ...]:
        """The pieces of views that are brought along by themselves."""
        return tuple(r for r in self._relations.values() if isinstance(r, View) and r.part)

    def stored(self) -> tuple[str, ...]:
        """The ids of everything that has segments: tables, views and states."""
        return tuple(self._relations)

    def states(self, view: str) -> tuple[State, ...]:
        """What is kept of a view's operators."""
        found = self._relations.values()
        return tuple(r for r in found if isinstance(r, State) and r.view == view)

    def find(self, name: str) -> Table | View | None:
        """The relation of that name, in whatever case it is written."""
        return self._by_name.get(fold(name))

    def get(self, id: str) -> Table | View:
        """The table or view of that id."""
        found = self._relations.get(id)
        if found is None or isinstance(found, State):
            raise InternalError(f"relation {id} is not in the snapshot of commit {self.commit}")
        return found

    def relation(self, id: str) -> Relation:
        """The table, view or state of that id."""
        if id not in self._relations:
            raise InternalError(f"relation {id} is not in the snapshot of commit {self.commit}")
        return self._relations[id]

    def __contains__(self, id: str) -> bool:
        return id in self._relations

    def dependents(self, id: str) -> tuple[View, ...]:
        """The views, by name, and parts that read the relation directly."""
        return tuple(v for v in (*self.views(), *self.parts()) if id in v.depends)

    def read_to(self, id: str) -> frozenset[int]:
        """The versions of a stored relation up to which views and parts have read it: also those
        that are computed from others by now, since they may be computed from it again."""
        found = self._relations.values()
        return frozenset(v.as_of[id] for v in found if isinstance(v, View) and id in v.as_of)

    def segments(self, id: str) -> tuple[Segment, ...]:
        """The segments whose sum is the relation, oldest first."""
        if id not in self._segments:
            if id not in self:
                raise InternalError(f"relation {id} is not in the snapshot of {self.commit}")
            if id not in self._rows:
                self._load_segments(id)
            self._segments[id] = tuple(self._rows[id].values())
        return self._segments[id]

    def tells_changes(self, id: str, since: int) -> bool:
        """Can what changed in a stored relation since a version still be told?"""
        whole = self.get(id).log_from <= since
        return whole and not any(s.straddles(since) for s in self.segments(id))

    @cached_property
    def settings(self) -> Mapping[str, str]:
        """What is set for the whole warehouse, by name."""
        with self._database.reading() as connection:
            rows = connection.execute(_SETTINGS, {"commit": self.commit}).all()
            _require_whole(connection, self.commit)
        return {row.key: row.value for row in rows}

    def _load_segments(self, id: str) -> None:
        """Only those are read that an earlier snapshot did not know: segments never change."""
        here = {"of": id, "commit": self.commit}
        known = self._known.get(id, {})
        with self._database.reading() as connection:
            ids = connection.scalars(_SEGMENT_IDS, here).all()
            new = [row_id for row_id in ids if row_id not in known]
            query, values = (_SOME_SEGMENTS, {"ids": new}) if len(new) < _FEW else (_SEGMENTS, here)
            rows = connection.execute(query, values).all() if new else ()
            _require_whole(connection, self.commit)
        found = known | {row.row_id: segment_of(row, self._relations[id]) for row in rows}
        self._rows[id] = {row_id: found[row_id] for row_id in sorted(ids)}

    def moved(self, commit: int, changes: Changes) -> Snapshot:
        """A later snapshot, from what has changed since this one."""
        changed = {row.relation_id: relation_of(row) for row in changes.relations}
        kept = {id: r for id, r in self._relations.items() if id not in changes.closed}
        found = kept | changed
        rows = {
            id: known
            for id, known in dict(self._rows).items()  # others may be loading some meanwhile
            if id in found and found[id].schema == self._relations[id].schema
        }
        rows |= {id: {} for id in changed if id not in self._relations}  # all of theirs are new
        touched = {row.relation_id for row in changes.segments}
        rows |= {id: dict(rows[id]) for id in touched & rows.keys()}
        for row in changes.segments:
            own = rows.get(row.relation_id)
            if own is None:
                continue  # loaded when somebody asks for them
            if row.removed_commit is not None and row.removed_commit <= commit:
                own.pop(row.row_id, None)
            elif row.row_id not in own:
                own[row.row_id] = segment_of(row, found[row.relation_id])
        later = Snapshot(self._database, commit, found, self, rows)
        if self.knows_settings and not changes.settings:
            later.settings = self.settings
        return later

    @property
    def knows_settings(self) -> bool:
        """Were the warehouse's settings asked for?"""
        return "settings" in vars(self)

    def supposing(
        self,
        changed: Iterable[Relation] = (),
        gone: Collection[str] = (),
        settings: Mapping[str, str] | None = None,
    ) -> Snapshot:
        """The same with some relations as they might be, others gone. Nothing is written."""
        found = {id: r for id, r in self._relations.items() if id not in gone}
        found |= {relation.id: relation for relation in changed}
        rows = {id: known for id, known in dict(self._rows).items() if id in found}
        supposed = Snapshot(self._database, self.commit, found, self, rows)
        supposed.settings = self.settings if settings is None else settings
        return supposed

    def _carried(self, found: Mapping[str, Relation]) -> dict[str, dict[int, Segment]]:
        """The segments known here of relations that are still defined as they were."""
        return {
            id: rows
            for id, rows in {**self._known, **self._rows}.items()
            if id in found and found[id].schema == self._relations[id].schema
        }


def _is_seen(relation: Relation) -> TypeGuard[Table | View]:
    """Has it a name that people use?"""
    return isinstance(relation, Table) or (isinstance(relation, View) and not relation.part)


@dataclass(frozen=True)
class Changes:
    """The rows that commits after one, up to another, have added or closed."""

    relations: Sequence[Row[Any]]  # as they are now, of which anything was added
    closed: frozenset[str]  # relations of which a definition was closed
    segments: Sequence[Row[Any]]
    settings: bool  # of the warehouse: is any other than it was? Asked for where they are known


def load(database: Database, commit: int | None, known: Snapshot | None) -> Snapshot:
    """The snapshot of a commit (the newest, if None); `known` itself when it is that one. From
    one before it, only what has changed since is read."""
    with database.reading() as connection:
        newest = connection.execute(HEAD).one()
        wanted = newest.commit_id if commit is None else commit
        if known is not None and known.commit == wanted >= newest.horizon:
            return known
        if known is not None and newest.horizon <= known.commit < wanted:
            changes = _changes(connection, known.commit, wanted, known.knows_settings)
            newest = _require_whole(connection, wanted)
            if newest.horizon <= known.commit:  # what was closed since is still there
                return known.moved(wanted, changes)
        rows = connection.execute(_RELATIONS, {"commit": wanted}).all()
        _require_whole(connection, wanted)
    found = {row.relation_id: relation_of(row) for row in rows}
    return Snapshot(database, wanted, found, known)


def _changes(connection: Connection, since: int, commit: int, settings: bool) -> Changes:
    here = {"since": since, "commit": commit}
    return Changes(
        connection.execute(_CHANGED_RELATIONS, here).all(),
        frozenset(connection.scalars(_CLOSED, here)),
        connection.execute(_CHANGED_SEGMENTS, here).all(),
        settings and connection.execute(_CHANGED_SETTINGS, here).first() is not None,
    )


def at(table: SqlTable, commit: int | BindParameter[int]) -> ColumnElement[bool]:
    """The rows of `table` that the snapshot of `commit` sees."""
    removed = table.c.removed_commit
    return and_(table.c.added_commit <= commit, or_(removed.is_(None), removed > commit))


def _relations_at(commit: BindParameter[int]) -> Select[Any]:
    own = versions.c
    state = (own.version, own.as_of, own.refreshed_at, own.log_from, own.arrived_rows)
    return (
        select(definitions, relations.c.kind, relations.c.owner, *state)
        .join(relations, relations.c.id == definitions.c.relation_id)
        .join(versions, versions.c.relation_id == definitions.c.relation_id)
        .where(at(definitions, commit), at(versions, commit))
    )


def _require_whole(connection: Connection, commit: int) -> Row[Any]:
    """Checked after the rows were read: what was whole now was whole then."""
    newest = connection.execute(HEAD).one()
    require_whole(commit, newest.horizon, newest.commit_id)
    return newest


# Statements are built once: that takes longer than running them does.
_COMMIT: BindParameter[int] = bindparam("commit")
_HERE = and_(segments.c.relation_id == bindparam("of"), at(segments, _COMMIT))
_SEGMENT_IDS = select(segments.c.row_id).where(_HERE)
_SEGMENTS = select(segments).where(_HERE)
_SOME_SEGMENTS = select(segments).where(segments.c.row_id.in_(bindparam("ids", expanding=True)))
_SETTINGS = select(warehouse_settings).where(at(warehouse_settings, _COMMIT))
_RELATIONS = _relations_at(_COMMIT)
_SINCE: BindParameter[int] = bindparam("since")
_CHANGED_RELATIONS = _RELATIONS.where(
    or_(definitions.c.added_commit > _SINCE, versions.c.added_commit > _SINCE)
)
_CLOSED = select(definitions.c.relation_id).where(
    definitions.c.removed_commit > _SINCE, definitions.c.removed_commit <= _COMMIT
)
_CHANGED_SEGMENTS = (
    select(segments)
    .where(or_(segments.c.added_commit > _SINCE, segments.c.removed_commit > _SINCE))
    .where(segments.c.added_commit <= _COMMIT)
    .order_by(segments.c.row_id)
)
_CHANGED_SETTINGS = (
    select(warehouse_settings.c.row_id)
    .where(
        or_(
            warehouse_settings.c.added_commit > _SINCE, warehouse_settings.c.removed_commit > _SINCE
        )
    )
    .where(warehouse_settings.c.added_commit <= _COMMIT)
    .limit(1)
)
