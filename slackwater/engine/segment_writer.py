"""Streams record batches into Parquet files of bounded row groups and bounded size."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import IO, Self

import pyarrow as pa
import pyarrow.parquet as pq

from slackwater import faults

ROW_GROUP_ROWS = 32 * 1024  # few enough that a change of some keys reads little
ROW_GROUP_BYTES = 64 * 1024 * 1024  # in memory; wide rows make shorter row groups
FILE_BYTES = 128 * 1024 * 1024
SMALL_BYTES = 16 * 1024  # in memory; compressing less takes longer than it saves, to read it, too
_PLAIN = {"compression": "none", "use_dictionary": False}
_COMPRESSED = {"compression": "zstd"}


class SegmentWriter:
    """Writes rows into files of a directory; gives each file's path when it is safe on disk.

    Leaving the block by an error closes and deletes the file that was being written.
    """

    def __init__(
        self, directory: Path, schema: pa.Schema, points: tuple[str, str] | None = None
    ) -> None:
        self._directory = directory
        self._schema = schema
        self._writing, self._written = points or ("segment.writing", "segment.written")
        self._waiting: list[pa.RecordBatch] = []
        self._file: IO[bytes] | None = None
        self._parquet: pq.ParquetWriter | None = None
        self._path = directory

    def add(self, batch: pa.RecordBatch) -> Iterator[Path]:
        """Take rows; yields a path whenever a file is full."""
        self._waiting.append(batch.cast(self._schema))
        while self._rows() >= ROW_GROUP_ROWS or self._bytes() >= ROW_GROUP_BYTES:
            self._write_group()
            if self._file is not None and self._file.tell() >= FILE_BYTES:
                yield self._close()

    def finish(self, even_if_empty: bool = False) -> Iterator[Path]:
        """Write what is left; yields the last file's path, if there is any."""
        if self._rows():
            self._write_group()
        elif even_if_empty:
            self._open()
        if self._parquet is not None:
            yield self._close()

    def _rows(self) -> int:
        return sum(batch.num_rows for batch in self._waiting)

    def _bytes(self) -> int:
        return sum(batch.nbytes for batch in self._waiting)

    def _write_group(self) -> None:
        """Write one row group of what waits."""
        table = pa.Table.from_batches(self._waiting, self._schema)
        group, rest = table.slice(0, ROW_GROUP_ROWS), table.slice(ROW_GROUP_ROWS)
        self._waiting = rest.to_batches() if rest.num_rows else []
        if group.num_rows:
            self._open(group.nbytes).write_table(group, row_group_size=ROW_GROUP_ROWS)
            faults.reached(self._writing)

    def _open(self, first_bytes: int = 0) -> pq.ParquetWriter:
        """The file's writer; how much comes first tells whether there is anything to compress."""
        if self._parquet is None:
            self._directory.mkdir(parents=True, exist_ok=True)
            self._path = self._directory / f"{secrets.token_hex(8)}.parquet"
            self._file = self._path.open("xb")
            how = _PLAIN if first_bytes < SMALL_BYTES else _COMPRESSED
            self._parquet = pq.ParquetWriter(self._file, self._schema, **how)
        return self._parquet

    def _close(self) -> Path:
        """Finish the file and sync it."""
        assert self._parquet is not None
        assert self._file is not None
        self._parquet.close()
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
        self._parquet = self._file = None
        faults.reached(self._written)
        return self._path

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._file is None:
            return
        with suppress(OSError, pa.ArrowException):  # the error that led here is the one to tell
            if self._parquet is not None:
                self._parquet.close()
            self._file.close()
        self._path.unlink(missing_ok=True)
