"""The driver's own engine: embedded DuckDB over the same Parquet segments."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import duckdb
import pyarrow as pa

from slackwater.catalog.model import Segment
from slackwater.engine.dialects import LOCAL
from slackwater.engine.local_errors import NEEDS_SPARK, error_class
from slackwater.errors import InternalError, NeedsSpark, StateError, UserError
from slackwater.planner.steps import Spread
from slackwater.types import Schema

BATCH_ROWS = 128 * 1024


STREAMED = "8GB"
"""So much of a result may wait to be fetched."""
SERVED = 1_000
"""Sessions after which a database is replaced."""
FEW_BYTES = 2_000_000
"""One thread reads less than this sooner than two, which wait for each other."""


class _Database:
    """One database in memory, a cursor per session; replaced when it has served long."""

    def __init__(self, settings: Mapping[str, str | int]) -> None:
        self._settings = settings
        self._connection: duckdb.DuckDBPyConnection | None = None
        self._lock = threading.Lock()
        self._open = 0
        self._served = 0

    @contextmanager
    def cursor(self) -> Iterator[duckdb.DuckDBPyConnection]:
        try:
            with self._new_cursor() as cursor:
                yield cursor
        finally:
            self._leave()

    def _new_cursor(self) -> duckdb.DuckDBPyConnection:
        with self._lock:
            self._open += 1
            self._served += 1
            if self._connection is None:
                self._connection = duckdb.connect(":memory:", config=dict(self._settings))
                self._connection.execute("SET TimeZone = 'UTC'")
                self._connection.execute("SET enable_progress_bar = false")
            cursor = self._connection.cursor()
        # when it is full, a statement of several pipelines (UNION ALL) waits for ever:
        # duckdb/duckdb#22215; the setting is one of the cursor
        cursor.execute(f"SET streaming_buffer_size = '{STREAMED}'")
        return cursor

    def _leave(self) -> None:
        """Start afresh when a database has served long and nobody uses it: a statement that reads
        files leaves about a kilobyte behind in it."""
        with self._lock:
            self._open -= 1
            if self._open == 0 and self._served >= SERVED:
                self._end()

    def close(self) -> None:
        with self._lock:
            self._end()

    def _end(self) -> None:
        if self._connection is not None:
            self._connection.close()
        self._connection, self._served = None, 0


class LocalEngine:
    """Runs statements in this process: over few bytes by one thread, over many by all."""

    dialect = LOCAL
    name = "local"

    def __init__(self, root: Path, memory_limit: str = "") -> None:
        self._root = root
        settings: dict[str, str | int] = {
            # segments come and go, and the system caches files anyway
            "enable_external_file_cache": "false",
            "arrow_large_buffer_size": "false",
            "temp_directory": str(root / "spill"),
        }
        if memory_limit:
            settings["memory_limit"] = memory_limit
        self._brief = _Database(settings | {"threads": 1})
        self._parallel = _Database(settings)

    def read(
        self, segments: Sequence[Segment], schema: Schema, spread: Spread | None = None
    ) -> str:
        """FROM text for plain Parquet files, spread by columns or not. The first tells DuckDB their
        columns, so it is one without any that others lack."""
        ordered = sorted(segments, key=lambda s: s.width)
        return read_files([os.path.join(self._root, s.path) for s in ordered])

    def read_paths(self, paths: Sequence[str], schema: Schema, weights: bool) -> str:
        """FROM text for files of others; DuckDB finds the columns by their names."""
        return read_files(paths)

    @contextmanager
    def session(self, reads: int) -> Iterator[LocalSession]:
        """Statements one after the other that read so many bytes; what they keep is gone
        afterwards."""
        with (self._brief if reads < FEW_BYTES else self._parallel).cursor() as cursor:
            yield LocalSession(cursor)

    def batches(self, sql: str, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """The rows of a statement, in batches of the given schema."""
        with self.session(FEW_BYTES) as session:
            yield from session.batches(sql, schema)

    def close(self) -> None:
        """Let go of the databases."""
        self._brief.close()
        self._parallel.close()


class LocalSession:
    """Statements that may read what those before them have kept."""

    def __init__(self, cursor: duckdb.DuckDBPyConnection) -> None:
        self._cursor = cursor
        self._given = 0

    def give(self, table: pa.Table) -> str:
        """FROM text for an Arrow table."""
        name = f"given_{self._given}"
        self._given += 1
        self._cursor.register(name, table)
        return name

    def keep(self, name: str, sql: str) -> None:
        """Compute rows that later statements read under a name."""
        try:
            self._cursor.execute(f"CREATE TEMP TABLE {name} AS {sql}")
        except duckdb.Error as error:
            raise translate(error) from error

    def batches(self, sql: str, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """The rows of a statement, in batches of the given schema."""
        try:
            for batch in self._cursor.execute(sql).to_arrow_reader(BATCH_ROWS):
                yield from conform(pa.Table.from_batches([batch]), schema).to_batches()
        except duckdb.Error as error:
            raise translate(error) from error


def read_files(paths: Sequence[str]) -> str:
    """DuckDB's reader of Parquet files."""
    quoted = ", ".join("'" + p.replace("'", "''") + "'" for p in paths)
    return f"read_parquet([{quoted}], hive_partitioning = false)"


def conform(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """The rows under the schema's names and types."""
    renamed = table.rename_columns(schema.names)
    columns = [_column(renamed.column(i), field) for i, field in enumerate(schema)]
    return pa.Table.from_arrays(columns, schema=schema)


def _column(column: pa.ChunkedArray, field: pa.Field) -> pa.ChunkedArray:
    if column.type == field.type:
        return column
    if pa.types.is_null(field.type):
        return pa.chunked_array([pa.nulls(len(column))])
    if pa.types.is_timestamp(field.type) and pa.types.is_timestamp(column.type):
        naive = column.cast(pa.timestamp("us"))
        return naive.cast(pa.timestamp("us", tz=field.type.tz)) if field.type.tz else naive
    return column.cast(field.type)


_OURS = (duckdb.BinderException, duckdb.CatalogException, duckdb.ParserException)
"""Errors in a statement itself, whatever the data."""


def translate(error: duckdb.Error) -> Exception:
    """An error of DuckDB in Spark's terms, or the request to run the step on Spark."""
    message = str(error)
    if isinstance(error, duckdb.IOException):
        return StateError(
            f"A data file cannot be read: {message.splitlines()[0]}",
            code="FILE_UNREADABLE",
            hint="Run 'slackwater doctor' to see which files are missing or damaged.",
        )
    if isinstance(error, _OURS):
        return InternalError(f"the local engine does not understand a statement: {message}")
    name = error_class(message)
    if name == NEEDS_SPARK:
        return NeedsSpark(message)
    text = message.split(f"[{name}] ", 1)[-1].split("\n")[0]
    return UserError(text, code=name)
