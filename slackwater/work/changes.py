"""Changing tables: DML, append, apply, and transactions around them.

A transaction leases each table before it first changes it, writes segments into one run, reads
what it has written, and makes all of it visible in one commit.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from slackwater.algebra.expr import Call, columns, conjunction
from slackwater.algebra.relation import Filter, Join, Project, Relation, Scan
from slackwater.catalog.leases import Lease
from slackwater.catalog.model import (
    AddSegments,
    Event,
    Exists,
    FinishRun,
    ReplaceSegments,
    Requirement,
    Run,
    Segment,
    Table,
    Update,
    WriteEvent,
)
from slackwater.catalog.pins import Pin
from slackwater.engine.not_null import require_not_null
from slackwater.engine.runner import measurements
from slackwater.engine.sources import Given, Log, Sources
from slackwater.engine.telling import telling_columns
from slackwater.errors import SqlError, UserError, nearest
from slackwater.planner.steps import Output, StepReport, WriteSegments
from slackwater.sql import build
from slackwater.sql.assign import Target
from slackwater.sql.dml import Check, Delta, bind_change, stored
from slackwater.sql.statements import Change, Truncate
from slackwater.stats.rows import Change as Rows
from slackwater.tvr import zset
from slackwater.tvr.time import CHANGE
from slackwater.types import BIGINT, BOOLEAN, WEIGHT, Field, Schema
from slackwater.work.arrivals import tally, told
from slackwater.work.house import House
from slackwater.work.incoming import incoming, weighted
from slackwater.work.world import Pending, World


class Transaction:
    """Changes of one or several tables that become visible together."""

    def __init__(self, house: House) -> None:
        self.house = house
        self.pending = Pending()
        self.leases: dict[str, Lease] = {}
        self.tables: dict[str, Table] = {}
        self.run: Run | None = None
        self.pin: Pin | None = None  # of what was there when the first table was leased
        self.reports: list[StepReport] = []
        self.counts: dict[str, dict[str, int]] = {}
        self.tallies: dict[str, Rows] = {}

    # -- what may be done inside

    def world(self) -> World:
        """The newest commit with this transaction's own changes on top."""
        return World(self.house, self.house.catalog.snapshot(), self.pending)

    @contextmanager
    def _reading(self) -> Iterator[World]:
        """The same, pinned while its rows are read: where nobody has committed since the first
        table was leased, by what was pinned then."""
        world, pin = self.world(), self.pin
        if pin is not None and not pin.lost and pin.commit == world.snapshot.commit:
            yield world
            return
        with self.house.catalog.reading() as snapshot:
            yield World(self.house, snapshot, self.pending)

    def change(self, statement: Change) -> int:
        """INSERT, UPDATE, DELETE or MERGE; how many rows it touched."""
        table = self._take(statement.table)
        kind = type(statement.tree).__name__.lower()
        with self._reading() as world:
            try:
                delta = bind_change(world.context(), _target(table), statement.tree)
            except SqlError as error:
                raise error.located(statement.text) from None
            return self._write(world, table, delta, kind)

    def truncate(self, statement: Truncate) -> None:
        """All rows go."""
        table = self._take(statement.table)
        self.pending.replace(table.id, ())
        self._count(table, "truncate", 0)

    def append(self, name: str, data: Any) -> int:
        """Rows handed in, as new rows of a table."""
        table = self._take(name)
        given = incoming(data)
        if not given.schema:  # an empty list has no columns either
            return self._count(table, "append", 0)
        positions = _positions(table, given.schema)
        with self._reading() as world:
            scan = world.give("incoming", given)
            relation = stored(world.context(), _target(table), scan, positions)
            return self._write(world, table, Delta(relation), "append")

    def apply(
        self, name: str, data: Any, op_column: str | None = None, weight_column: str | None = None
    ) -> int:
        """A change batch: rows with an operation or a weight. What it deletes must be there."""
        table = self._take(name)
        given = incoming(data)
        if not given.schema:
            return self._count(table, "apply", 0)
        given = weighted(given, op_column, weight_column)
        with self._reading() as world:
            return self._write(world, table, Delta(_batch(world, table, given)), "apply")

    # -- how it ends

    def commit(self) -> int | None:
        """Make everything visible; the commit's number, or None if nothing changed."""
        if self.run is None:
            return None
        catalog = self.house.catalog
        requires: list[Requirement] = [self.run.requirement]
        requires += [r for lease in self.leases.values() for r in lease.requirements]
        requires += [Exists(id) for id in self.tables]
        try:
            done = catalog.commit(requires, self._updates(self.run), self._held)
        except BaseException as error:
            self.rollback(error)
            raise
        self._release()
        return done

    def _updates(self, run: Run) -> list[Update]:
        updates: list[Update] = []
        for id, table in self.tables.items():
            segments = tuple(self.pending.added.get(id, ()))
            if id in self.pending.replaced:
                updates.append(ReplaceSegments(id, segments))
            elif segments:
                updates.append(AddSegments(id, segments))
            body = {"run": run.id, "table": table.name, "rows": self.counts.get(id, {})}
            body["change"] = told(self.tallies.get(id, Rows()))
            updates.append(WriteEvent(Event("change", id, self.house.timestamp(), body)))
        updates.append(FinishRun(run.id, measurements(self.reports)))
        return updates

    def rollback(self, error: BaseException | None = None) -> None:
        """Forget everything; what was written is garbage."""
        if self.run is not None:
            told = f"{type(error).__name__}: {error}" if error else "rolled back"
            self.house.catalog.abort_run(self.run, told)
        self._release()

    def _release(self) -> None:
        self.run = None
        for held in self._held:
            held.release()
        self.leases.clear()
        self.pin = None

    @property
    def _held(self) -> list[Lease | Pin]:
        """What is given back at the end."""
        return [*self.leases.values(), *((self.pin,) if self.pin is not None else ())]

    # -- pieces

    def _take(self, name: str) -> Table:
        """Lease a table, if this transaction has not yet."""
        table = self.world().table(name)
        if table.source != "managed":
            raise UserError(
                f"'{table.name}' is an external table and cannot be changed here.",
                code="EXTERNAL_TABLE",
                hint="Add files to its folder instead.",
            )
        if table.id not in self.leases:
            self.leases[table.id] = self._start(table) if self.run is None else self._lease(table)
            return self._take(name)  # as it is now that nobody else changes it
        self.tables[table.id] = table
        return table

    def _start(self, table: Table) -> Lease:
        start = self.house.start("change", table.id)
        self.run, self.pin = start.run, start.pin
        return start.lease

    def _lease(self, table: Table) -> Lease:
        return self.house.lease(table.id)

    def _write(self, world: World, table: Table, delta: Delta, kind: str) -> int:
        assert self.run is not None
        step = WriteSegments(f"{kind} {table.name}", (Output(table.id, delta.relation),))
        with world.steady_files():
            for check in delta.checks:
                self._check(world, check)
            written = self.house.runner.run(step, self.run, world.sources(delta.relation))
        segments = written.only
        if kind == "apply":
            self._require_present(world, table, segments)
        require_not_null(segments, table.schema, self.house.storage, table.name)
        self.pending.add(table.id, segments)
        self.reports.append(written.report)
        self.tallies[table.id] = self.tallies.get(table.id, Rows()) + tally(kind, segments)
        return self._count(table, kind, sum(s.rows for s in segments))

    def _count(self, table: Table, kind: str, written: int) -> int:
        """Rows as people count them: an update writes two."""
        rows = written // 2 if kind == "update" else written
        counts = self.counts.setdefault(table.id, {})
        counts[kind] = counts.get(kind, 0) + rows
        return rows

    def _require_present(self, world: World, table: Table, batch: Sequence[Segment]) -> None:
        """What a written batch deletes is there; a batch that deletes nothing is not looked at."""
        deleting = tuple(s for s in batch if s.min_weight < 0)
        if not deleting:
            return
        kept = (*world.segments(table.id), *batch)
        check = Check(
            _missing_rows(table, telling_columns(table.schema, kept)),
            f"The batch deletes rows that '{table.name}' does not have",
            "DELETE_OF_MISSING_ROW",
            "Deletions must name rows exactly as they are stored, each as often as it is there.",
        )
        sources = {_KEPT: Log(kept, table.schema), _DELETING: Log(deleting, table.schema)}
        self._require_empty(check, sources)

    def _check(self, world: World, check: Check) -> None:
        self._require_empty(check, world.sources(check.relation))

    def _require_empty(self, check: Check, sources: Sources) -> None:
        found = self.house.runner.query(check.relation, sources)
        if found.num_rows:
            row = ", ".join(f"{k}={v!r}" for k, v in found.slice(0, 1).to_pylist()[0].items())
            raise UserError(
                f"{check.message} (for example {row}).", code=check.code, hint=check.hint
            )


def _target(table: Table) -> Target:
    return Target(table.name, Scan(table.id, table.name, table.schema), table.defaults)


def _positions(table: Table, given: Schema) -> list[int]:
    """Which table column each column handed in is for; all must be known, missing ones get
    their default."""
    places = {f.name.lower(): i for i, f in enumerate(table.schema)}
    found = []
    for f in given:
        if f.name.lower() not in places:
            raise UserError(
                f"Column '{f.name}' is not in '{table.name}'.",
                code="UNKNOWN_COLUMN",
                hint=nearest(f.name, [c.name for c in table.schema]),
            )
        found.append(places[f.name.lower()])
    if len(set(found)) < len(found):
        raise UserError(f"A column of '{table.name}' is given twice.", code="COLUMN_COUNT")
    return found


def _batch(world: World, table: Table, given: Given) -> Relation:
    """Rows handed in, whose last column is the weight, as a change of the table."""
    positions = _positions(table, given.schema[:-1])
    scan = world.give("incoming", given)
    plus = stored(world.context(), _target(table), scan, positions)
    assert isinstance(plus, Project)
    exprs = (*plus.exprs[:-1], columns(given.schema)[-1])
    return zset.consolidate(Project(scan, exprs, plus.names))


_KEPT, _DELETING = "kept", f"deleting{CHANGE}"


def _missing_rows(table: Table, telling: Sequence[int]) -> Relation:
    """Rows that a batch deletes and whose weight is below zero with the batch.

    Only rows that are like deleted ones in some columns are added up, over all segments at once
    and in one scan: the table's content as such is not computed. Which columns does not matter to
    what is found, since no other row has a weight below zero.
    """
    width = len(table.schema)
    logged = (*table.schema, Field(WEIGHT, BIGINT, False))
    kept, deleting = Scan(_KEPT, table.name, logged), Scan(_DELETING, table.name, logged)
    telling = telling or range(width)
    negative = build.pick(_below_zero(deleting), telling)
    same = zip(telling, columns(negative.schema, width + 1), strict=True)
    row = columns(kept.schema)
    equal = conjunction([build.null_safe_equal(row[i], other) for i, other in same])
    total = zset.consolidate(Join(kept, negative, "semi", equal))
    return build.first_columns(_below_zero(total), width)


def _below_zero(z: Relation) -> Relation:
    """The rows of a Z-relation with a weight below zero."""
    weight = columns(z.schema)[-1]
    return Filter(z, Call(BOOLEAN, weight.nullable, "<", (weight, zset.ZERO)))
