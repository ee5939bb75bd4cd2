"""Publication: a view's rows as plain Parquet that any tool can read.

    published/<safe name>/v=7/…parquet     complete before the pointer names it
    published/<safe name>/CURRENT          JSON: view, version, commit, files, rows

It happens after the commit and can be repeated: when the process dies in between, opening the
warehouse publishes what is missing. The pointer never goes back to an older version.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import logging
import os
import re
import secrets
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

import pyarrow as pa

from slackwater import faults
from slackwater.catalog.codec import fold
from slackwater.catalog.model import Segment, View
from slackwater.catalog.snapshot import Snapshot
from slackwater.engine.files import disk_errors, remove_tree, replace_text, sync, sync_upwards
from slackwater.engine.segment_reader import plain_rows, read_segments
from slackwater.engine.segment_writer import SegmentWriter
from slackwater.engine.storage import Storage
from slackwater.errors import StateError
from slackwater.types import to_arrow_schema

logger = logging.getLogger(__name__)
KEPT_VERSIONS = 2
_POINTS = ("publish.writing", "publish.writing")

Reader = Callable[[Storage, View, Sequence[Segment]], Iterable[pa.RecordBatch]]
"""Gives a view's rows with weights, all above zero."""


@dataclass(frozen=True, slots=True)
class Pointer:
    """What is published of a view."""

    view: str  # the view's id
    name: str
    version: int
    commit: int
    files: tuple[str, ...]  # relative to the pointer's folder
    rows: int


def safe_name(name: str) -> str:
    """A folder name for any view name, however odd or long, and different for different ones.

    >>> safe_name("Daily Sales")
    'daily_sales-99738ac1'
    >>> safe_name("../x") != safe_name(".._x")
    True
    """
    slug = re.sub(r"[^a-z0-9_-]+", "_", name.lower()).strip("_-")[:40] or "view"
    digest = hashlib.sha256(fold(name).encode("utf-8", "surrogatepass")).hexdigest()
    return f"{slug}-{digest[:8]}"


def published_folder(storage: Storage, name: str) -> Path:
    """Where a view of that name is published."""
    return storage.root / "published" / safe_name(name)


def current(folder: Path) -> Pointer | None:
    """What the folder's pointer names; None when nothing is published there."""
    try:
        value = json.loads((folder / "CURRENT").read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    return Pointer(**value | {"files": tuple(value["files"])})


def is_published(storage: Storage, view: View, commit: int) -> bool:
    """Is there nothing to publish of the view as it is at the commit?"""
    known = current(published_folder(storage, view.name))
    return known is not None and _covers(known, view, commit)


def publish_view(
    storage: Storage,
    view: View,
    segments: Sequence[Segment],
    commit: int,
    read: Reader = read_segments,
) -> Pointer:
    """Publish the view's content at its version, unless that or a newer one is published."""
    folder = published_folder(storage, view.name)
    with disk_errors(storage.root), _locked(folder):
        known = current(folder)
        if known is not None and _covers(known, view, commit):
            return known
        pointer = _write_version(folder, view, commit, read(storage, view, segments))
        faults.reached("publish.before_pointer")
        replace_text(folder / "CURRENT", json.dumps(asdict(pointer), indent=2))
        faults.reached("publish.after")
        _remove_old(folder, pointer)
    return pointer


def publish_missing(storage: Storage, snapshot: Snapshot, read: Reader = read_segments) -> int:
    """Publish every refreshed view whose pointer is behind the snapshot, and remove what
    dropped views left; how many folders changed.

    A view that cannot be published (a damaged segment, a full disk) does not keep the others, or
    the warehouse, from being used.
    """
    views = [view for view in snapshot.views() if view.refreshed_at is not None]
    behind = [view for view in views if not is_published(storage, view, snapshot.commit)]
    published = [_try_publish(storage, view, snapshot, read) for view in behind]
    return sum(published) + _remove_dropped(storage, snapshot)


def _try_publish(storage: Storage, view: View, snapshot: Snapshot, read: Reader) -> bool:
    try:
        publish_view(storage, view, snapshot.segments(view.id), snapshot.commit, read)
    except StateError as error:
        logger.warning("View '%s' is not published: %s", view.name, error)
        return False
    return True


def unpublish(storage: Storage, view: View) -> None:
    """Remove what was published of a dropped view."""
    folder = published_folder(storage, view.name)
    if folder.exists():
        _remove_if(folder, lambda pointer: pointer.view == view.id)


def _covers(known: Pointer, view: View, commit: int) -> bool:
    """Whether the pointer is at the view's version, or at a commit after ours."""
    return (known.view, known.version) == (view.id, view.version) or known.commit > commit


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """One publisher at a time per view; the lock ends with its process.

    The lock lies beside the folder, which may be removed while others wait for it.
    """
    locks = folder.parent / ".locks"
    locks.mkdir(parents=True, exist_ok=True)
    with (locks / folder.name).open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        folder.mkdir(exist_ok=True)
        yield


def _write_version(
    folder: Path, view: View, commit: int, batches: Iterable[pa.RecordBatch]
) -> Pointer:
    """Write all files beside their final place, then move them there in one step."""
    _remove_unfinished(folder)
    fresh, final = folder / f".writing-{secrets.token_hex(4)}", folder / f"v={view.version}"
    fresh.mkdir()
    names, rows = _write_files(fresh, view, batches)
    sync(fresh)
    remove_tree(final)  # of an attempt that died before its pointer, or of a dropped namesake
    fresh.rename(final)
    sync_upwards(folder, folder.parent.parent)
    files = tuple(f"{final.name}/{name}" for name in names)
    return Pointer(view.id, view.name, view.version, commit, files, rows)


def _write_files(
    directory: Path, view: View, batches: Iterable[pa.RecordBatch]
) -> tuple[list[str], int]:
    """Names of the files written and how many rows they hold. There is always a file, so that
    an empty view has a schema, too."""
    schema, rows, names = to_arrow_schema(view.schema), 0, []
    with SegmentWriter(directory, schema, _POINTS) as writer:
        for batch in batches:
            plain = plain_rows(batch, schema)
            rows += plain.num_rows
            names += [path.name for path in writer.add(plain)]
        names += [path.name for path in writer.finish(even_if_empty=not names)]
    return names, rows


def _remove_unfinished(folder: Path) -> None:
    for name in os.listdir(folder):
        if name.startswith(".writing-"):
            remove_tree(folder / name)


def _remove_old(folder: Path, pointer: Pointer) -> None:
    """Keep the newest versions: somebody may still read the one before the pointer's."""
    names = (name for name in os.listdir(folder) if name.startswith("v=") and name[2:].isdigit())
    found = {int(name[2:]): name for name in names}
    older = sorted((v for v in found if v < pointer.version), reverse=True)
    kept = {pointer.version, *older[: KEPT_VERSIONS - 1]}
    for version, name in found.items():
        if version not in kept:
            remove_tree(folder / name)


def _remove_dropped(storage: Storage, snapshot: Snapshot) -> int:
    """Remove folders whose view is gone; how many."""
    folders = sorted((storage.root / "published").glob("*/CURRENT"))
    return sum(
        _remove_if(path.parent, lambda p: p.view not in snapshot and p.commit <= snapshot.commit)
        for path in folders
    )


def _remove_if(folder: Path, gone: Callable[[Pointer], bool]) -> bool:
    """Remove the folder, pointer first, if what it names is gone."""
    with _locked(folder):
        pointer = current(folder)
        if pointer is None or not gone(pointer):
            return False
        (folder / "CURRENT").unlink()
        remove_tree(folder)
    return True
