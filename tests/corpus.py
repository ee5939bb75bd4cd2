"""Spark's own answers to the corpora: the truth that tests compare with.

TPC-H and TPC-DS both have a table `customer`, so each corpus lives in a Spark session of its
own (they share one context, and temporary views belong to a session).
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pyarrow as pa
from conftest import PROOF, SEED

from bench import corpus
from slackwater.engine.spark_settings import SHORT, set_all
from slackwater.sql.reference import tie_broken
from slackwater.types import Schema, schema_to_json

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SCALE = 0.01
"""The scale factor of tests: the least that TPC-DS data can be generated at."""

_sessions: dict[tuple[object, ...], SparkSession] = {}
_answers: dict[tuple[str, str], pa.Table] = {}


def names(kind: str, sample: int | None = None) -> list[str]:
    """The names of a corpus's queries: all of them, or a seeded sample unless in proof."""
    found = list(corpus.queries(kind))
    if sample is None or PROOF:
        return found
    return sorted(random.Random(f"{SEED}/{kind}").sample(found, sample), key=found.index)


def load_reference(spark: SparkSession, kind: str, scale: float = SCALE) -> SparkSession:
    """A session in which the corpus's tables are views on its data."""
    key = (id(spark), kind, scale)
    if key not in _sessions:
        session = new_session(spark)
        for table, path in corpus.generate(kind, scale).items():
            session.read.parquet(str(path)).createOrReplaceTempView(table)
        _sessions[key] = session
    return _sessions[key]


def load_empty(spark: SparkSession, kind: str) -> SparkSession:
    """A session in which the corpus's tables are empty, and NOT NULL where they are declared so.

    Parquet files lose that on the way into Spark; the analyzer needs no data, though.
    """
    key = (id(spark), kind)
    if key not in _sessions:
        session = new_session(spark)
        for table, schema in corpus.schemas(kind).items():
            empty(session, schema).createOrReplaceTempView(table)
        _sessions[key] = session
    return _sessions[key]


def empty(session: SparkSession, schema: Schema) -> DataFrame:
    """No rows of a schema, nullability included."""
    from pyspark.sql.types import StructType

    return session.createDataFrame([], StructType.fromJson(schema_to_json(schema)))


def answer(spark: SparkSession, kind: str, name: str) -> pa.Table:
    """Spark's answer to a query of a corpus over its data as generated, asked for once."""
    key = (kind, name)
    if key not in _answers:
        _answers[key] = reference(load_reference(spark, kind), corpus.queries(kind)[name])
    return _answers[key]


def reference(session: SparkSession, sql: str) -> pa.Table:
    """Spark's answer to a query in which no tie is left to chance.

    A column without an alias is named after its expression, ORDER BY included, so the names are
    those of the text as written.
    """
    answer = session.sql(reference_text(session, sql)).toArrow()
    return answer.rename_columns(session.sql(sql).columns)


def reference_text(session: SparkSession, sql: str) -> str:
    """The tie-broken text over the tables that the session knows."""
    return tie_broken(sql, lambda table: session.table(table).columns)


def new_session(spark: SparkSession) -> SparkSession:
    """A session with names of its own and the settings of another, for little data."""
    session = spark.newSession()
    for setting in ("spark.sql.ansi.enabled", "spark.sql.session.timeZone"):
        session.conf.set(setting, spark.conf.get(setting) or "")
    set_all(session, SHORT)
    return session
