"""Corpus queries through our own front end and engines, without a warehouse around them."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from threading import Timer
from typing import TYPE_CHECKING

import pyarrow as pa

from bench import corpus
from slackwater.algebra.relation import Opaque, Relation, Scan
from slackwater.engine.compile import compile_query
from slackwater.engine.dialects import LOCAL, SPARK
from slackwater.engine.local import LocalEngine, LocalSession, read_files
from slackwater.engine.spark import SparkEngine
from slackwater.planner.placement import not_local
from slackwater.sql.bind import bind, context
from slackwater.types import quote, to_arrow_schema
from tests.corpus import SCALE

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DRIVER_SECONDS = 20
"""A query of a corpus at the tests' scale takes well under a second in process."""


@cache
def bound(spark: SparkSession, kind: str, name: str) -> Relation:
    """A corpus query as algebra, bound against the corpus's schemas."""
    schemas = corpus.schemas(kind)

    def lookup(table: str) -> Relation | None:
        key = table.lower()
        return Scan(key, key, schemas[key]) if key in schemas else None

    oracle = SparkEngine(Path(tempfile.gettempdir()), session=spark)
    return bind(corpus.queries(kind)[name], context(lookup, lambda: list(schemas), oracle))


def opaque_reasons(relation: Relation) -> list[str]:
    """Why parts of a query are left to Spark's own planner."""
    return [node.reason for node in relation.walk() if isinstance(node, Opaque)]


def runs_on_driver(relation: Relation) -> bool:
    """Is every operator, type and expression one that both engines compute?"""
    return not_local(relation) is None


def on_spark(session: SparkSession, relation: Relation) -> pa.Table:
    """The relation's rows, computed by Spark from its one compiled statement."""
    inputs = {scan.source: quote(scan.source) for scan in relation.scans()}
    text = compile_query(relation, SPARK, inputs, [f.name for f in relation.schema])
    return session.sql(text).toArrow()


def on_driver(kind: str, relation: Relation, scale: float = SCALE) -> pa.Table:
    """The relation's rows, computed in this process."""
    files = corpus.generate(kind, scale)
    inputs = {scan.source: read_files([str(files[scan.source])]) for scan in relation.scans()}
    statement = compile_query(relation, LOCAL, inputs)
    schema = to_arrow_schema(relation.schema)
    engine = LimitedEngine(Path(tempfile.gettempdir()))
    try:
        return pa.Table.from_batches(engine.batches(statement, schema), schema)
    finally:
        engine.close()


class LimitedEngine(LocalEngine):
    """Gives up after `DRIVER_SECONDS`: a plan that went astray fails its own test only."""

    @contextmanager
    def session(self, reads: int) -> Iterator[LocalSession]:
        with super().session(reads) as session:
            timer = Timer(DRIVER_SECONDS, session._cursor.interrupt)
            timer.daemon = True
            timer.start()
            try:
                yield session
            finally:
                timer.cancel()
