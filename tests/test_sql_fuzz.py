"""Random nested queries mean to us what they mean to Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from conftest import PROOF, SEED
from pyspark.errors import AnalysisException

from tests.conform import conforms, world
from tests.query_maker import QueryMaker

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COUNT = 150 if PROOF else 12


@pytest.mark.parametrize("number", range(COUNT))
def test_random_queries(number: int, spark: SparkSession) -> None:
    conforms(spark, readable(spark, number))


def readable(spark: SparkSession, number: int) -> str:
    """The first text of a series that Spark's analyzer accepts: it refuses some correlations."""
    for attempt in range(20):
        text = QueryMaker((SEED, number, attempt)).query()
        try:
            world(spark).session.sql(text)
        except AnalysisException:
            continue
        return text
    raise AssertionError("Spark refused twenty texts in a row")
