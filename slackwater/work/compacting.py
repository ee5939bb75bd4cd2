"""Compaction: many small segments written anew as few that add up to the same.

It is a run of its own under a lease of its own: changes and refreshes of the same relation go on
meanwhile. They add segments, which disturbs nobody, or replace all of them; then the merged
segments are gone when the run wants to commit, and it gives up.

Who reads a relation's changes remembers how far. So what is merged lies between two versions up to
which somebody has read, or is reading now: to each of them it is all old or all new.
"""

from __future__ import annotations

import time
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from slackwater.catalog.codec import Relation
from slackwater.catalog.leases import Lease
from slackwater.catalog.model import (
    CompactSegments,
    Event,
    FinishRun,
    Run,
    Segment,
    State,
    Table,
    Update,
    WriteEvent,
)
from slackwater.catalog.snapshot import Snapshot
from slackwater.engine.runner import Written, measurements
from slackwater.engine.sources import Log
from slackwater.planner.compaction import most_files, worthwhile
from slackwater.planner.steps import Output, WriteSegments
from slackwater.tvr.merging import merged
from slackwater.tvr.time import NOW, weighted_scan
from slackwater.work.house import House
from slackwater.work.world import World

Chooser = Callable[[Sequence[Segment], bool], tuple[Segment, ...]]


@dataclass(frozen=True)
class CompactReport:
    """What a compaction of one relation did."""

    name: str  # of the table or view
    state: str  # the kind of the view's state that it was, or empty
    segments: int  # how many were merged
    into: int  # into how many
    rows: int
    bytes_before: int
    bytes: int
    engine: str
    seconds: float
    version: int  # the newest among them


def compact(house: House, name: str | None) -> list[CompactReport]:
    """Bring a table or view (all, if None), with its states, to as few segments as can be."""
    snapshot = house.catalog.snapshot()
    if name is not None:
        name = World(house, snapshot).relation(name).name
    ids = snapshot.stored() if name is None else related(snapshot, name)
    return [r for id in ids for r in _compact_all(house, id, snapshot.relation(id).version)]


def _compact_all(house: House, id: str, newest: int) -> Iterator[CompactReport]:
    """One stretch of versions after the other, each once: what is merged may be several files
    again, and others write meanwhile."""
    done, wait = -1, house.settings.lease_wait_seconds
    while report := compact_one(house, id, partial(_after, done, newest), wait):
        yield report
        done = report.version


def _after(
    done: int, newest: int, segments: Sequence[Segment], adds_up: bool
) -> tuple[Segment, ...]:
    """The segments to merge of the versions after one, up to another."""
    return worthwhile([s for s in segments if done < s.version <= newest], adds_up)


def related(snapshot: Snapshot, name: str) -> Iterator[str]:
    """The ids of a table, view or part and of its states; nothing where there is none of that
    name. A part's name is its id."""
    found = snapshot.find(name)
    id = name if found is None else found.id
    if id in snapshot:
        yield id
        yield from (s.id for s in snapshot.states(id))


def chosen(
    snapshot: Snapshot, id: str, choose: Chooser, read_to: Collection[int] = ()
) -> tuple[Segment, ...]:
    """The segments of a relation that are to be merged: of the first stretch that has any."""
    relation = snapshot.relation(id)
    found = (choose(own, _adds_up(relation, own)) for own in stretches(snapshot, id, read_to))
    return next(filter(None, found), ())


def stretches(
    snapshot: Snapshot, id: str, read_to: Collection[int] = ()
) -> tuple[tuple[Segment, ...], ...]:
    """The segments between one version up to which somebody has read and the next, `read_to` among
    those. A view that was never refreshed reads everything."""
    relation = snapshot.relation(id)
    if isinstance(relation, Table) and relation.source != "managed":
        return ()
    bounds, found = sorted({*snapshot.read_to(id), *read_to}), dict[int, list[Segment]]()
    for segment in snapshot.segments(id):
        found.setdefault(bisect_left(bounds, segment.version), []).append(segment)
    return tuple(tuple(own) for _, own in sorted(found.items()))


def _adds_up(relation: Relation, segments: Sequence[Segment]) -> bool:
    return _kind(relation) == "sums" or any(s.min_weight < 0 for s in segments)


def _kind(relation: Relation) -> str:
    return relation.kind if isinstance(relation, State) else "rows"


def compact_one(
    house: House, id: str, choose: Chooser, wait_seconds: float
) -> CompactReport | None:
    """Merge segments of one relation; None if there is nothing to merge."""
    snapshot = house.catalog.snapshot()
    if id not in snapshot or not chosen(snapshot, id, choose):
        return None
    lease = house.catalog.lease([f"{id}/segments"], wait_seconds, house.settings.lease_seconds)
    with lease, house.catalog.reading() as pinned:
        old = _unparted(house, pinned, id, choose) if id in pinned else ()
        return _Compaction(house, pinned, pinned.relation(id), old).run(lease) if old else None


def _unparted(house: House, pinned: Snapshot, id: str, choose: Chooser) -> tuple[Segment, ...]:
    """The segments to merge, between whatever versions a refresh that is under way may end at.

    One that began after `pinned` ends at its versions or at later ones. One that began before it
    still pins its commit when pins are looked at, or its end is in the newest snapshot after that.
    """
    read_to = house.catalog.pinned_versions(id)
    newest = house.catalog.snapshot()
    return chosen(pinned, id, choose, read_to | newest.read_to(id))


class _Compaction:
    """One relation in one run."""

    def __init__(
        self, house: House, snapshot: Snapshot, relation: Relation, old: tuple[Segment, ...]
    ) -> None:
        self.house = house
        self.relation = relation
        self.old = old
        state = relation if isinstance(relation, State) else None
        self.owner = snapshot.get(state.view if state else relation.id)
        self.state = state.kind if state else ""
        self.runner = replace(house.runner, on_step=None)  # nobody waits for it

    def run(self, lease: Lease) -> CompactReport:
        """Write and commit."""
        started, catalog = time.perf_counter(), self.house.catalog
        with catalog.running("compact", lease) as run:
            written = self._write(run)
            report = self._report(written, time.perf_counter() - started)
            updates: list[Update] = [
                CompactSegments(self.relation.id, self.old, written.only),
                WriteEvent(
                    Event(
                        "compact",
                        self.owner.id,
                        self.house.timestamp(),
                        self._body(run, report, written),
                    )
                ),
                FinishRun(run.id, measurements([written.report])),
            ]
            catalog.commit([run.requirement, *lease.requirements], updates)
        return report

    def _write(self, run: Run) -> Written:
        id, schema = self.relation.id, self.relation.schema
        stored = weighted_scan(id, self.relation.name, schema, NOW)
        cancels = any(s.min_weight < 0 for s in self.old)
        rows = merged(stored, _kind(self.relation), cancels)
        # nobody waits for it, so Spark is not started for what the driver can do
        load = self.runner.spark.started
        output = Output(id, rows, most_files=most_files(self.old))
        step = WriteSegments(f"compact {self.owner.name}", (output,), load=load)
        return self.runner.run(step, run, {stored.source: Log(self.old, schema)})

    def _report(self, written: Written, seconds: float) -> CompactReport:
        new = written.only
        return CompactReport(
            name=self.owner.name,
            state=self.state,
            segments=len(self.old),
            into=len(new),
            rows=sum(s.rows for s in new),
            bytes_before=sum(s.bytes for s in self.old),
            bytes=sum(s.bytes for s in new),
            engine=written.report.engine,
            seconds=seconds,
            version=max(s.version for s in self.old),
        )

    def _body(self, run: Run, report: CompactReport, written: Written) -> dict[str, Any]:
        what = "table" if isinstance(self.owner, Table) else "view"
        return {
            "run": run.id,
            what: self.owner.name,
            "state": report.state or None,
            "segments": report.segments,
            "into": report.into,
            "rows": report.rows,
            "bytes_before": report.bytes_before,
            "bytes": report.bytes,
            "seconds": report.seconds,
            "steps": [written.report.to_json()],
        }
