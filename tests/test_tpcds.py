"""TPC-DS through the front end and both engines: Spark's types, and Spark's answers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from bench import corpus
from slackwater.engine.compare import compare
from slackwater.types import schema_from_json
from tests.bound import bound, on_driver, on_spark, opaque_reasons, runs_on_driver
from tests.corpus import answer, load_empty, load_reference, names

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

KIND = "tpcds"
MOST_OPAQUE = 4


@pytest.mark.parametrize("name", names(KIND))
def test_the_schema_is_sparks(name: str, spark: SparkSession) -> None:
    expected = load_empty(spark, KIND).sql(corpus.queries(KIND)[name]).schema.jsonValue()
    assert bound(spark, KIND, name).schema == schema_from_json(expected)


def test_at_least_95_bind_without_opaque(spark: SparkSession) -> None:
    reasons = {name: opaque_reasons(bound(spark, KIND, name)) for name in names(KIND)}
    left = {name: why for name, why in reasons.items() if why}
    assert len(left) <= MOST_OPAQUE, left


@pytest.mark.parametrize("name", names(KIND, 12))
def test_the_answer_on_spark_is_sparks(name: str, spark: SparkSession) -> None:
    found = on_spark(load_reference(spark, KIND), bound(spark, KIND, name))
    difference = compare(found, answer(spark, KIND, name))
    assert difference.equal, str(difference)


@pytest.mark.parametrize("name", names(KIND, 12))
def test_the_answer_on_the_driver_is_sparks(name: str, spark: SparkSession) -> None:
    relation = bound(spark, KIND, name)
    if not runs_on_driver(relation):
        pytest.skip("has an expression that only Spark computes")
    difference = compare(on_driver(KIND, relation), answer(spark, KIND, name))
    assert difference.equal, str(difference)
