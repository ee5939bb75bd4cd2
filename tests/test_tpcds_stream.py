"""Every query of TPC-DS as a maintained view, under inserts, updates and deletes on every table."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from tests.conftest import LONG
from tests.corpus import names
from tests.corpus_views import INCREMENTAL, Outcome, expected_modes, play

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

KIND = "tpcds"
SLICE, SLICES = map(int, os.environ.get("SLACKWATER_SLICE", "1/1").split("/"))
"""`make long` plays all of them, some at a time."""
LOCAL = names(KIND, 6)[SLICE - 1 :: SLICES] if LONG else names(KIND, 6)[::3]
"""Every third one: Spark's own answers to all 99 after each batch take too long."""
SPARK = LOCAL if LONG else LOCAL[::6]
"""A refresh on Spark takes seconds: of these, every sixth."""
BATCHES = 2
# all views are played before the first test
pytestmark = pytest.mark.timeout(7200 if LONG else 2400)
LEAST_INCREMENTAL = 85


@pytest.fixture(scope="module")
def outcome(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    views = {"local": LOCAL, "spark": SPARK}
    return play(KIND, views, BATCHES, spark, tmp_path_factory.mktemp(KIND))


@pytest.mark.parametrize("name", LOCAL)
def test_the_view_is_sparks_answer_after_every_batch(name: str, outcome: Outcome) -> None:
    assert not outcome.problems.get(("local", name)), "\n".join(outcome.problems["local", name])


@pytest.mark.parametrize("name", SPARK)
def test_so_it_is_when_spark_refreshes(name: str, outcome: Outcome) -> None:
    assert not outcome.problems.get(("spark", name)), "\n".join(outcome.problems["spark", name])


@pytest.mark.parametrize("name", LOCAL)
def test_the_mode_is_the_one_written_down(name: str, outcome: Outcome) -> None:
    measured = "\n".join(map(str, outcome.readings.get(name, [])))
    assert outcome.modes[name] == expected_modes(KIND)[name], measured


def test_most_are_incremental_and_the_others_say_why() -> None:
    modes = expected_modes(KIND)
    assert list(modes) == names(KIND)
    full = {name: mode for name, mode in modes.items() if mode != INCREMENTAL}
    assert len(modes) - len(full) >= LEAST_INCREMENTAL, full
    assert all(mode.startswith("full: ") for mode in full.values()), full
