"""Garbage collection: deletes files that no snapshot, reader or writer can need.

Each step can be killed and done again: the catalog is told first that a run may not commit or a
snapshot may not be read, then files go, then the catalog forgets them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from slackwater import faults
from slackwater.catalog.collection import Collection, DeadSegment
from slackwater.catalog.model import RunRecord
from slackwater.catalog.store import Catalog
from slackwater.engine.storage import Storage

GRACE_SECONDS = 60.0
_RUNS_AT_ONCE = 100


@dataclass(frozen=True, slots=True)
class GarbageReport:
    """What a collection did."""

    horizon: int  # the oldest commit that can still be read
    revoked_runs: tuple[str, ...]
    deleted_directories: int
    deleted_files: int
    freed_bytes: int


def collect_garbage(
    catalog: Catalog, storage: Storage, grace_seconds: float = GRACE_SECONDS
) -> GarbageReport:
    """Delete what abandoned runs wrote, and segments that were removed before every pin.

    Snapshots of the last `grace_seconds` stay whole even when nobody has pinned them.
    """
    books = catalog.collection
    revoked = books.revoke_abandoned_runs()
    horizon = books.advance_horizon(grace_seconds)
    faults.reached("collect.before")
    swept = list(_sweep(books, storage))
    freed = _delete_dead(books, storage, horizon)
    books.forget_history(horizon)
    return GarbageReport(
        horizon=horizon,
        revoked_runs=tuple(run.id for run in revoked),
        deleted_directories=sum(directories for directories, _, _ in swept),
        deleted_files=len(freed) + sum(files for _, files, _ in swept),
        freed_bytes=sum(freed) + sum(size for _, _, size in swept),
    )


def _sweep(books: Collection, storage: Storage) -> Iterator[tuple[int, int, int]]:
    """Delete what ended runs wrote and did not commit: of each, directories, files and bytes. The
    catalog is told of many at a time; until then they are swept again."""
    ended = books.unswept_runs()
    for start in range(0, len(ended), _RUNS_AT_ONCE):
        some = ended[start : start + _RUNS_AT_ONCE]
        written = {r.id: storage.files(r.directory) for r in some if r.state == "committed"}
        known = books.known_paths([path for paths in written.values() for path in paths])
        for run in some:
            given_up = [path for path in written.get(run.id, ()) if path not in known]
            yield _sweep_one(storage, run, given_up)
            faults.reached("collect.between")
        books.mark_swept([r.id for r in some if r.id in written or not storage.files(r.directory)])


def _sweep_one(storage: Storage, run: RunRecord, given_up: Sequence[str]) -> tuple[int, int, int]:
    """All that a run wrote, or, where it has committed, what its commit did not name."""
    if run.state != "committed":
        return 1, 0, storage.delete_directory(run.directory)
    freed = [storage.delete(path) for path in given_up]
    storage.prune(run.directory)
    return 0, len(freed), sum(freed)


def _delete_dead(books: Collection, storage: Storage, horizon: int) -> list[int]:
    """Delete removed segments, then forget them, some at a time; the bytes of each file."""
    freed: list[int] = []
    while dead := books.dead_segments(horizon):
        freed += [_delete(storage, segment) for segment in dead]
        faults.reached("collect.between")
        books.forget_segments(dead)
    return freed


def _delete(storage: Storage, segment: DeadSegment) -> int:
    return 0 if segment.shared else storage.delete(segment.path)
