"""Segments on disk: immutable Parquet files, written into a run's own directory.

A file counts only when a commit names it; nothing is ever found by listing the warehouse. Files
and the directories that name them are synced before their segment is handed out, so a commit
never refers to what a power cut could take away.
"""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from slackwater import faults
from slackwater.catalog.model import Run, Segment
from slackwater.catalog.transaction import run_revoked
from slackwater.engine.files import (
    disk_errors,
    remove_empty_below,
    remove_file,
    remove_tree,
    sync,
    sync_upwards,
)
from slackwater.engine.segment_writer import SegmentWriter
from slackwater.errors import InternalError, StateError
from slackwater.types import WEIGHT

MOST_NAMED = 1_000
"""So many directories are remembered as synced."""
FIRST_DAY, LAST_DAY = -719_162, 2_932_896
"""The years 1 to 9999, in days since 1970."""


class Storage:
    """The files below a warehouse folder."""

    def __init__(self, root: Path) -> None:
        self.root = Path(root).absolute()
        self._place = str(self.root)
        self._named: set[Path] = set()  # directories whose own names survive a power cut
        with disk_errors(self.root):
            self.root.mkdir(parents=True, exist_ok=True)

    def write(
        self, run: Run, relation_id: str, batches: Iterable[pa.RecordBatch], schema: pa.Schema
    ) -> tuple[Segment, ...]:
        """Stream rows with weights into new segments; no rows make no segment. Where that fails,
        what was written goes at once: nobody was told of it, and a full disk needs the room."""
        if WEIGHT not in schema.names:
            raise InternalError(f"rows for {relation_id} have no {WEIGHT} column")
        with disk_errors(self.root), _own_files(run):
            directory = self.fresh_directory(run, relation_id)
            try:
                segments = tuple(self._write(directory, batches, schema))
                if segments:
                    self._sync_names(directory)
            except BaseException:
                shutil.rmtree(directory, ignore_errors=True)
                raise
        return segments

    def _write(
        self, directory: Path, batches: Iterable[pa.RecordBatch], schema: pa.Schema
    ) -> Iterator[Segment]:
        with SegmentWriter(directory, schema) as writer:
            for batch in batches:
                for written in writer.add(batch):
                    yield self._segment(written)
            for written in writer.finish():
                yield self._segment(written)

    def columns(self, segment: Segment, names: Sequence[str]) -> pa.Table:
        """Some columns of a small segment, in memory."""
        self.check(segment)
        return pq.read_table(self.path(segment), columns=list(names))

    def adopt(self, run: Run, relation_id: str, directory: str | Path) -> tuple[Segment, ...]:
        """Make segments of the Parquet files that Spark wrote below a directory of the run."""
        place = self.root / directory
        if not place.resolve().is_relative_to(self.run_directory(run).resolve()):
            raise InternalError(f"{directory} is not in the directory of run {run.id}")
        with disk_errors(self.root), _own_files(run):
            files = [self._adopt(path, relation_id) for path in _data_files(place)]
            for parent in {path.parent for path in _data_files(place)} | {place}:
                if parent.exists():
                    self._sync_names(parent)
        return tuple(segment for segment in files if segment is not None)

    def _adopt(self, path: Path, relation_id: str) -> Segment | None:
        faults.reached("segment.writing")
        try:
            footer = pq.read_metadata(path)
        except pa.ArrowInvalid as error:
            raise _truncated(path, f"its footer cannot be read ({error})") from error
        if footer.num_rows == 0:
            return None
        if WEIGHT not in footer.schema.to_arrow_schema().names:
            raise InternalError(f"{path} for {relation_id} has no {WEIGHT} column")
        sync(path)
        faults.reached("segment.written")
        return self._segment(path)

    def _sync_names(self, directory: Path) -> None:
        """Sync a directory and those above it, each naming the next, up to one whose own name was
        synced before: of a run's directories, most are."""
        synced = sync_upwards(directory, self.root, self._named)
        if len(self._named) > MOST_NAMED:
            self._named.clear()
        self._named.update(synced)

    def _segment(self, path: Path) -> Segment:
        footer = pq.read_metadata(path)
        schema = footer.schema.to_arrow_schema()
        places = {footer.schema.column(i).path: i for i in reversed(range(len(footer.schema)))}
        low, high = _weights(path, footer, places[WEIGHT])
        return Segment(
            path=path.relative_to(self.root).as_posix(),
            rows=footer.num_rows,
            bytes=path.stat().st_size,
            min_weight=low,
            max_weight=high,
            stats=_ranges(footer, schema, places),
            width=len(schema) - 1,
        )

    def run_directory(self, run: Run) -> Path:
        """Where the run, and only the run, writes."""
        return self.root / run.directory

    def fresh_directory(self, run: Run, relation_id: str) -> Path:
        """A place in the run's directory that nothing was written to; Spark may create it."""
        return self.run_directory(run) / relation_id / secrets.token_hex(4)

    def path(self, segment: Segment) -> Path:
        """Where the segment's file is."""
        return self.root / segment.path  # an absolute path stays as it is

    def text(self, segment: Segment) -> str:
        """The same, for where there are many."""
        return os.path.join(self._place, segment.path)

    def check(self, segment: Segment) -> None:
        """Raise unless the segment's file is there, in full length."""
        path = self.text(segment)
        try:
            found = os.stat(path).st_size
        except FileNotFoundError as error:
            raise StateError(
                f"Data file {path} is missing.",
                code="SEGMENT_MISSING",
                hint="Files of a warehouse must not be removed by hand. Restore it from a backup; "
                "if it belongs to a view, refresh the view in full.",
            ) from error
        if found != segment.bytes:
            raise _truncated(path, f"it has {found} bytes and should have {segment.bytes}")

    def delete(self, path: str) -> int:
        """Delete a segment's file by its relative path; the bytes freed (0: it was gone).

        Files outside the warehouse's data folder are not ours and are left alone.
        """
        data, place = self._data(), (self.root / path).resolve()
        return remove_file(place, data) if place.is_relative_to(data) else 0

    def files(self, directory: str) -> list[str]:
        """Relative paths of everything in an ended run's directory."""
        found = os.walk(self.root / directory)
        paths = (os.path.join(place, name) for place, _, names in found for name in names)
        return sorted(Path(os.path.relpath(path, self.root)).as_posix() for path in paths)

    def delete_directory(self, directory: str) -> int:
        """Delete a run's directory; the bytes freed."""
        place = (self.root / directory).resolve()
        if place.parent != self._data():
            raise InternalError(f"{directory} is not the directory of a run")
        return remove_tree(place)

    def prune(self, directory: str) -> None:
        """Delete the empty directories that given-up attempts left in an ended run's directory."""
        remove_empty_below(self.root / directory)

    def _data(self) -> Path:
        return (self.root / "data").resolve()

    @property
    def free_bytes(self) -> int:
        """How much the disk can still take."""
        return shutil.disk_usage(self.root).free


@contextmanager
def _own_files(run: Run) -> Iterator[None]:
    """Only a collector that has revoked the run deletes what the run has just written."""
    try:
        yield
    except FileNotFoundError as error:
        raise run_revoked(run.id, "revoked, and its files were collected") from error


def _data_files(directory: Path) -> list[Path]:
    """The Parquet files below, without what Spark hides (`_temporary`, `.crc`)."""
    return sorted(
        path
        for path in directory.rglob("*.parquet")
        if not any(part[0] in "_." for part in path.relative_to(directory).parts)
    )


def _weights(path: Path, footer: pq.FileMetaData, column: int) -> tuple[int, int]:
    """Smallest and largest weight, from the footer's statistics if all row groups have them."""
    groups = [footer.row_group(i).column(column) for i in range(footer.num_row_groups)]
    if all(g.is_stats_set and g.statistics.has_min_max for g in groups):
        bounds = [(g.statistics.min, g.statistics.max) for g in groups]
        return min(low for low, _ in bounds), max(high for _, high in bounds)
    weights = pq.read_table(path, columns=[WEIGHT]).column(WEIGHT)
    found = pc.min_max(weights).as_py()
    return found["min"], found["max"]


def _ranges(
    footer: pq.FileMetaData, schema: pa.Schema, places: Mapping[str, int]
) -> dict[str, list[int]]:
    """Smallest and largest value of each column of whole numbers or dates (days since 1970, of
    four-digit years) that holds no NULL."""
    found = {}
    row_groups = [footer.row_group(i) for i in range(footer.num_row_groups)]
    for f in schema:
        if f.name == WEIGHT or not (pa.types.is_integer(f.type) or pa.types.is_date32(f.type)):
            continue
        known = [_statistics(group.column(places[f.name])) for group in row_groups]
        ranged = [s for s in known if s is not None and s.has_min_max and s.null_count == 0]
        if ranged and len(ranged) == len(known):
            low = min(s.min_raw for s in ranged)
            high = max(s.max_raw for s in ranged)
            if pa.types.is_integer(f.type) or (low >= FIRST_DAY and high <= LAST_DAY):
                found[f.name] = [low, high]
    return found


def _statistics(chunk: pq.ColumnChunkMetaData) -> pq.Statistics | None:
    return chunk.statistics if chunk.is_stats_set else None


def _truncated(path: Path | str, why: str) -> StateError:
    return StateError(
        f"Data file {path} is damaged: {why}.",
        code="SEGMENT_TRUNCATED",
        hint="Restore it from a backup; if it belongs to a view, refresh the view in full.",
    )
