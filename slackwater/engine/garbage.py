"""Garbage collection: deletes files that no snapshot, reader or writer can need.

Each step can be killed and done again: the catalog is told first that a run may not commit or a
snapshot may not be read, then files go, then the catalog forgets them.
"""

from __future__ import annotations

from dataclasses import dataclass

from slackwater import faults
from slackwater.catalog.collection import Collection, DeadSegment
from slackwater.catalog.model import RunRecord
from slackwater.catalog.store import Catalog
from slackwater.engine.storage import Storage

GRACE_SECONDS = 60.0


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
    swept = [_sweep(books, storage, run) for run in books.unswept_runs()]
    freed = _delete_dead(books, storage, horizon)
    books.forget_history(horizon)
    return GarbageReport(
        horizon=horizon,
        revoked_runs=tuple(run.id for run in revoked),
        deleted_directories=sum(directories for directories, _, _ in swept),
        deleted_files=len(freed) + sum(files for _, files, _ in swept),
        freed_bytes=sum(freed) + sum(size for _, _, size in swept),
    )


def _sweep(books: Collection, storage: Storage, run: RunRecord) -> tuple[int, int, int]:
    """Delete what an ended run wrote and did not commit: directories, files and bytes."""
    if run.state == "committed":
        directories, freed = 0, _delete_uncommitted(books, storage, run)
        storage.prune(run.directory)
    else:
        directories, freed = 1, [storage.delete_directory(run.directory)]
    if run.state == "committed" or not storage.files(run.directory):
        books.mark_swept(run.id)
    faults.reached("collect.between")
    return directories, len(freed) - directories, sum(freed)


def _delete_uncommitted(books: Collection, storage: Storage, run: RunRecord) -> list[int]:
    """Files in a committed run's directory that its commit did not name (given-up attempts)."""
    known = books.known_paths(run.directory)
    return [storage.delete(path) for path in storage.files(run.directory) if path not in known]


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
