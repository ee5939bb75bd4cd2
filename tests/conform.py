"""Does the front end mean what Spark means? One question, asked of any query text.

For each text: our output schema equals that of Spark's analyzer, names and nullability included,
and the rows that either engine computes from our algebra equal Spark's own answer to the text.
"""

from __future__ import annotations

import random
import re
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from conftest import SEED

from slackwater.algebra.relation import Opaque, Relation, Scan
from slackwater.engine.compare import compare
from slackwater.engine.compile import compile_query
from slackwater.engine.dialects import LOCAL, SPARK
from slackwater.engine.local import LocalEngine, read_files
from slackwater.engine.spark import SparkEngine
from slackwater.errors import NeedsSpark
from slackwater.planner.placement import not_local
from slackwater.sql.bind import bind, context
from slackwater.sql.reference import tie_broken
from slackwater.types import quote, schema_from_json, to_arrow_schema
from tests.conform_data import TABLES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NOW = datetime(2026, 4, 1, 12, 30, 15, tzinfo=UTC)
QUICK = {
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.adaptive.enabled": "false",
}
"""Settings that spare tiny queries what only large ones repay; none changes an answer."""
SAMPLE = 0.28
"""The share of the statement tables that runs in every test run; the rest is proof."""


def cases(table: str, share: float = SAMPLE) -> list[Any]:
    """The texts of a table as parameters; a seeded share of them stands for all in short runs.

    A text is a line; an indented line continues the one before.
    """
    return sampled(re.sub(r"\n +", " ", table.strip()).splitlines(), share)


def sampled(texts: Iterable[str], share: float = SAMPLE) -> list[Any]:
    """The texts as parameters, all but a seeded share of them marked as proof."""
    found = list(texts)
    assert len(set(found)) == len(found), "a text stands twice in the table"
    chosen = set(random.Random(f"{SEED}/{found[0]}").sample(found, round(len(found) * share) or 1))
    return [
        pytest.param(text, id=_name(text), marks=() if text in chosen else pytest.mark.proof)
        for text in found
    ]


def _name(text: str) -> str:
    flat = " ".join(text.split())
    return flat.encode("ascii", "replace").decode().replace("[", "(").replace("]", ")")


@dataclass
class World:
    """The tables of `conform_data`, on Spark and as files for the local engine."""

    session: SparkSession
    oracle: SparkEngine
    local: LocalEngine
    files: dict[str, str]

    def bind(self, text: str) -> Relation:
        """A query as algebra over the tables."""
        surroundings = context(_lookup, lambda: list(TABLES), self.oracle, NOW)
        return bind(text, surroundings)

    def reference(self, text: str) -> pa.Table:
        """Spark's own answer, no tie left to chance, under the names of the text as written."""
        broken = tie_broken(text, lambda table: self.session.table(table).columns)
        answer = self.session.sql(broken).toArrow()
        if broken == text:
            return answer
        return answer.rename_columns(self.session.sql(text).columns)

    def on_spark(self, relation: Relation) -> pa.Table:
        """The rows of our compiled statement on Spark."""
        inputs = {scan.source: quote(scan.source) for scan in relation.scans()}
        names = [f.name for f in relation.schema]
        return self.session.sql(compile_query(relation, SPARK, inputs, names)).toArrow()

    def on_driver(self, relation: Relation) -> pa.Table:
        """The rows of our compiled statement in this process."""
        inputs = {s.source: read_files([self.files[s.source]]) for s in relation.scans()}
        schema = to_arrow_schema(relation.schema)
        statement = compile_query(relation, LOCAL, inputs)
        return pa.Table.from_batches(self.local.batches(statement, schema), schema)


def _lookup(name: str) -> Relation | None:
    key = name.lower()
    return Scan(key, key, TABLES[key].schema) if key in TABLES else None


@cache
def world(spark: SparkSession) -> World:
    """The one world of all conformance tests."""
    from pyspark.sql.types import StructType

    session = spark.newSession()
    folder = Path(tempfile.mkdtemp(prefix="conform"))
    oracle = SparkEngine(folder, session=session)
    assert oracle.session is session  # and its settings are pinned
    for setting, value in QUICK.items():
        session.conf.set(setting, value)
    files = {}
    for name, table in TABLES.items():
        schema = StructType.fromJson(table.schema_json)
        session.createDataFrame(table.arrow, schema).createOrReplaceTempView(name)
        files[name] = str(folder / f"{name}.parquet")
        pq.write_table(table.arrow, files[name])
    return World(session, oracle, LocalEngine(folder), files)


def conforms(spark: SparkSession, text: str, opaque: str | None = None, as_: str = "") -> None:
    """Assert that a text means to us what it means to Spark.

    `opaque` is the reason code with which a part is left to Spark's own planner, if any; `as_` is
    a text of the same meaning, where Spark lacks the syntax.
    """
    here = world(spark)
    relation = here.bind(text)
    reasons = {n.reason for n in relation.walk() if isinstance(n, Opaque)}
    assert reasons == ({opaque} if opaque else set()), f"opaque because of {reasons}"
    expected = schema_from_json(here.session.sql(as_ or text).schema.jsonValue())
    ours, theirs = _shown(relation.schema), _shown(expected)
    assert ours == theirs, f"columns:\n  ours   {ours}\n  Spark's {theirs}"
    answer = here.reference(as_ or text)
    difference = compare(here.on_spark(relation), answer)
    assert difference.equal, f"on Spark: {difference}"
    if not_local(relation) is None:
        try:
            difference = compare(here.on_driver(relation), answer)
        except NeedsSpark:
            return
        assert difference.equal, f"on the driver: {difference}"


def _shown(schema: Any) -> list[str]:
    return [f"{f.name} {f.type.sql}{'' if f.nullable else ' NOT NULL'}" for f in schema]
