"""Keys and references that users promise: what they name, and where a refresh may rely on them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from slackwater.catalog.model import Key, Reference, Segment, Table
from slackwater.errors import UserError, nearest
from slackwater.sql.constraints import ConstraintDef, KeyDef, ReferenceDef
from slackwater.tvr import references
from slackwater.tvr.time import CHANGE
from slackwater.types import WEIGHT, quote
from slackwater.work.house import House
from slackwater.work.interval import UNEVEN, Interval
from slackwater.work.world import World

MOST_ROWS = 2_000_000
"""In a larger change nobody looks for keys that both come and go."""


def promising(world: World, table: Table, constraints: Sequence[ConstraintDef]) -> Table:
    """A table with more keys and references."""
    for found in constraints:
        if isinstance(found, KeyDef):
            table = replace(table, keys=(*table.keys, _key(table, found)))
        else:
            table = replace(table, references=(*table.references, _reference(world, table, found)))
    names = [name.lower() for name in table.constraints]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None or sum(key.primary for key in table.keys) > 1:
        what = f"two constraints named '{twice}'" if twice is not None else "two primary keys"
        raise UserError(
            f"'{table.name}' would have {what}.",
            code="BAD_CONSTRAINT",
            hint="Write CONSTRAINT name to name one; keys beside the primary one are UNIQUE.",
        )
    return table


def primary_columns(constraints: Sequence[ConstraintDef]) -> set[str]:
    """What a primary key names, in lower case: it is never NULL."""
    keys = (c for c in constraints if isinstance(c, KeyDef) and c.primary)
    return {name.lower() for key in keys for name in key.columns}


def _key(table: Table, found: KeyDef) -> Key:
    columns = _columns(table, found.columns)
    nullable = [f.name for f in table.schema if f.nullable and f.name in columns]
    if found.primary and nullable:
        raise UserError(
            f"'{nullable[0]}' of '{table.name}' may be NULL, which no part of a primary key is.",
            code="BAD_CONSTRAINT",
            hint="Declare the key as UNIQUE.",
        )
    name = found.name or f"{table.name}_{'pk' if found.primary else '_'.join((*columns, 'key'))}"
    return Key(name, columns, found.primary)


def _columns(table: Table, names: Sequence[str]) -> tuple[str, ...]:
    """Columns of a table, as it spells them."""
    known = {f.name.lower(): f.name for f in table.schema}
    for name in names:
        if name.lower() not in known:
            raise UserError(
                f"'{table.name}' has no column '{name}'.",
                code="UNKNOWN_COLUMN",
                hint=nearest(name, known.values()),
            )
    return tuple(known[name.lower()] for name in names)


def _reference(world: World, table: Table, found: ReferenceDef) -> Reference:
    itself = found.table.lower() == table.name.lower()
    other = table if itself else world.table(found.table)
    primary = next((key.columns for key in other.keys if key.primary), ())
    theirs = _columns(other, found.theirs) or primary
    if set(theirs) not in [set(key.columns) for key in other.keys]:
        raise UserError(
            f"'{', '.join(theirs) or other.name}' is not a key of '{other.name}'.",
            code="BAD_CONSTRAINT",
            hint=f"ALTER TABLE {quote(other.name)} ADD PRIMARY KEY (…) NOT ENFORCED RELY makes it "
            "one.",
        )
    ours = _columns(table, found.columns)
    if len(ours) != len(theirs):
        raise UserError(
            f"A reference from {len(ours)} columns to {len(theirs)} of '{other.name}'.",
            code="BAD_CONSTRAINT",
            hint="Name as many columns as the key has.",
        )
    name = found.name or f"{table.name}_{'_'.join(ours)}_fk"
    return Reference(name, ours, other.id, theirs)


def promised(world: World, sources: Iterable[str]) -> references.Promises:
    """The keys of some tables, and references from one to another."""
    tables = [t for id in sources if isinstance(t := world.snapshot.get(id), Table)]
    keys = frozenset((table.id, key.columns) for table in tables for key in table.keys)
    told = frozenset(
        references.Reference(table.id, r.columns, r.table, r.theirs)
        for table in tables
        for r in table.references
        if r.table != table.id
    )
    return references.Promises(keys, told)


def relied_on(interval: Interval) -> frozenset[references.Reference]:
    """The references from a source of a view to another that changed, but in which no key both
    came and went. They hold between sources that were read at one moment."""
    if interval.held or UNEVEN in interval.view.as_of:
        return frozenset()
    return frozenset(_relied_on(interval))


def _relied_on(interval: Interval) -> Iterator[references.Reference]:
    for id in interval.view.depends:
        table = interval.world.snapshot.get(id)
        for r in table.references if isinstance(table, Table) else ():
            if r.table in interval.changed - {id}:
                keys = _changed_keys(interval, r.table, r.theirs)
                if keys is not None and not come_and_go(keys):
                    own = _changed_keys(interval, id, r.columns)
                    whole = own is not None and _are_among(own, r.columns, keys, r.theirs)
                    yield references.Reference(id, r.columns, r.table, r.theirs, whole)


def _changed_keys(interval: Interval, id: str, names: Sequence[str]) -> pa.Table | None:
    """Some columns of a source's change, and its weights; None where it is large."""
    segments = interval.segments(id, CHANGE)
    if interval.external(id) is not None or sum(s.rows for s in segments) > MOST_ROWS:
        return None
    return changed_keys(interval.world.house, segments, names)


def changed_keys(house: House, segments: Iterable[Segment], names: Sequence[str]) -> pa.Table:
    """Some columns of rows that come and go, and their weights."""
    segments = tuple(s for s in segments if s.path)  # rows to come have no file, and keep promises
    if not segments:
        return pa.table({name: pa.array([], pa.int64()) for name in (*names, WEIGHT)})
    parts = (house.columns(s, (*names, WEIGHT)) for s in segments)
    return pa.concat_tables(parts, promote_options="permissive")


def come_and_go(keys: pa.Table) -> bool:
    """Does any key both come and go?"""
    weights = keys.column(WEIGHT)
    ends = pc.min_max(weights).as_py()
    if ends["min"] is None or ends["min"] > 0 or ends["max"] < 0:
        return False
    names = [name for name in keys.column_names if name != WEIGHT]
    by_key = keys.group_by(names).aggregate([(WEIGHT, "min"), (WEIGHT, "max")])
    goes = pc.less(by_key.column(f"{WEIGHT}_min"), 0)
    return bool(pc.any(pc.and_(goes, pc.greater(by_key.column(f"{WEIGHT}_max"), 0))).as_py())


def differs(rows: pa.Table) -> bool:
    """Is anything left of rows that come and go, those that do both left out?"""
    names = [name for name in rows.column_names if name != WEIGHT]
    totals = rows.group_by(names).aggregate([(WEIGHT, "sum")]).column(f"{WEIGHT}_sum")
    return bool(pc.any(pc.not_equal(totals, 0)).as_py())


def _are_among(own: pa.Table, names: Sequence[str], keys: pa.Table, theirs: Sequence[str]) -> bool:
    """Are keys, NULL or of one column, all among others?"""
    if len(names) > 1:
        return False
    found = own.column(names[0]).drop_null()
    return bool(
        pc.all(pc.is_in(found, keys.column(theirs[0]).combine_chunks())).as_py() is not False
    )
