"""What a refresh is measured against: the query computed anew, from plain compacted Parquet.

Both baselines write their result as Parquet, as a refresh does. They get what helps them: files
are listed and their columns known beforehand, and the local statement is bound and compiled
before its clock starts.
"""

from __future__ import annotations

import secrets
import time
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from bench import corpus
from slackwater.algebra.relation import Relation, Scan
from slackwater.engine.compile import compile_query
from slackwater.engine.local import LocalEngine, read_files
from slackwater.engine.segment_writer import SegmentWriter
from slackwater.engine.spark import SparkEngine
from slackwater.planner.placement import not_local
from slackwater.sql.bind import bind, context
from slackwater.sql.reference import tie_broken
from slackwater.sql.tables import unordered
from slackwater.types import to_arrow_schema

KIND = "tpch"


@dataclass(frozen=True)
class Statement:
    """A query as the local engine computes it."""

    sql: str
    schema: pa.Schema
    prepare_seconds: float
    """Binding and compiling, which the baseline's own time leaves out."""


class Baselines:
    """Both engines over plain files, apart from any warehouse."""

    def __init__(self, spark: SparkEngine, local: LocalEngine, folder: Path) -> None:
        self._spark = spark
        self._local = local
        self._folder = folder
        self._files: dict[str, Path] = {}
        self._schemas = corpus.schemas(KIND)

    def read_from(self, files: dict[str, Path]) -> None:
        """The files that hold the current content."""
        for table, path in files.items():
            if self._files.get(table) != path:
                frame = self._spark.session.read.parquet(str(path))
                frame.createOrReplaceTempView(table)
        self._files = dict(files)

    def on_spark(self, text: str) -> Path:
        """Spark's answer to the text as written; the directory it is in."""
        target = self._fresh()
        self._spark.write(text, target)
        return target

    def statement(self, text: str) -> Statement | str:
        """What the local engine runs for a query, or why it cannot."""
        begun = time.perf_counter()
        relation = unordered(bind(text, context(self._lookup, self._names, self._spark)))
        if (blocker := not_local(relation)) is not None:
            return blocker
        inputs = {s.source: read_files([str(self._files[s.source])]) for s in relation.scans()}
        sql = compile_query(relation, self._local.dialect, inputs)
        return Statement(sql, to_arrow_schema(relation.schema), time.perf_counter() - begun)

    def on_local(self, statement: Statement) -> Path:
        """The local engine's answer; the directory it is in."""
        target = self._fresh()
        with SegmentWriter(target, statement.schema) as writer:
            for batch in self._local.batches(statement.sql, statement.schema):
                list(writer.add(batch))
            list(writer.finish(even_if_empty=True))
        return target

    def expected(self, text: str, answer: Path) -> pa.Table:
        """What Spark says the content is. Where LIMIT leaves ties to chance, it is asked again
        with every tie broken, as in the view."""
        found = rows_in(answer)
        exact = tie_broken(text, lambda table: [f.name for f in self._schemas[table.lower()]])
        if exact == text:
            return found
        return self._spark.table(exact).rename_columns(found.column_names)

    def _lookup(self, table: str) -> Relation | None:
        key = table.lower()
        return Scan(key, key, self._schemas[key]) if key in self._schemas else None

    def _names(self) -> list[str]:
        return list(self._schemas)

    def _fresh(self) -> Path:
        return self._folder / secrets.token_hex(8)


def rows_in(directory: Path) -> pa.Table:
    """The rows of the Parquet files in a directory."""
    return pa.concat_tables(pq.read_table(path) for path in sorted(directory.glob("*.parquet")))
