"""The sets of function names in sql/names.py are Spark's own."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from slackwater.engine.spark import SparkEngine
from slackwater.sql import names

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WITH_SYNTAX_OF_THEIR_OWN = {"grouping", "grouping_id"}
"""Aggregates to Spark; grouping sets to us."""


def test_kinds_of_functions_are_as_spark_lists_them(spark: SparkSession, tmp_path: Path) -> None:
    kinds = SparkEngine(tmp_path, session=spark).function_kinds()
    assert kinds["agg_funcs"] - WITH_SYNTAX_OF_THEIR_OWN == names.AGGREGATES
    assert kinds["window_funcs"] == names.WINDOW_FUNCTIONS
    assert kinds["generator_funcs"] == names.GENERATORS


def test_named_functions_exist(spark: SparkSession, tmp_path: Path) -> None:
    kinds = SparkEngine(tmp_path, session=spark).function_kinds()
    known = frozenset().union(*kinds.values())
    assert names.ORDER_SENSITIVE_AGGREGATES <= names.AGGREGATES
    assert names.ORDER_SENSITIVE_WINDOWS <= names.WINDOW_FUNCTIONS
    assert known >= names.NOT_DETERMINISTIC
    assert known >= names.CLOCKS
