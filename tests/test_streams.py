"""Random views under random batches equal recompute: many on the local engine, some on Spark.

A failing seed is shrunk to a minimal script by `python -m scripts.fuzz --seed SEED`.
"""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from slackwater.work import situation
from slackwater.work.situation import STEPS
from tests.conftest import PROOF, SEED
from tests.stream_script import script
from tests.streams import Failure, Outcome, make_stream, opening, play

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

VIEWS = 8
"""Views of a stream on the local engine."""
STREAMS = 258 if PROOF else 34
LEAST_VIEWS = 2_000 if PROOF else 250
SPARK_VIEWS = 5
SPARK_STREAMS = 13 if PROOF else 3
LEAST_SPARK_VIEWS = 60 if PROOF else 12
"""Of all streams on Spark; it refuses a query now and then."""

Played = tuple[Outcome, str]
"""What came of a stream, and how it failed if it did."""


def play_seed(seed: str) -> Played:
    """One stream on the local engine. In every second one, what was planned for a refresh serves
    however many rows there are by then."""
    situation.STEPS = 0 if int(seed.rsplit("-", 1)[1]) % 2 else STEPS
    stream = make_stream(seed, VIEWS)
    try:
        return play(stream, opening()), ""
    except Failure as failure:
        told = f"seed {seed!r}: {failure}\n(python -m scripts.fuzz --seed {seed} shrinks it)"
        return Outcome(), f"{told}\n\n{script(stream)}"


def seeds(count: int) -> list[str]:
    """The seeds of this run."""
    return [f"{SEED}-{i}" for i in range(count)]


@pytest.fixture(scope="module")
def played(request: pytest.FixtureRequest) -> Iterator[dict[str, Future[Played]]]:
    """Every stream that was asked for, played in processes side by side: as many as there are
    cores for this part of the tests, while another part needs Spark."""
    wanted = _wanted(
        request.session.items, "played", seeds(STREAMS), "test_there_are_enough_streams"
    )
    parts = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(max(1, (os.cpu_count() or 1) // parts), mp_context=spawn) as pool:
        yield {seed: pool.submit(play_seed, seed) for seed in wanted}
        pool.shutdown(cancel_futures=True)


def _wanted(
    items: Sequence[pytest.Item], fixture: str, every: list[str], summing_up: str
) -> list[str]:
    """The seeds that tests ask a fixture for."""
    if any(i.name == summing_up for i in items):
        return every
    calls = [
        getattr(i, "callspec", None) for i in items if fixture in getattr(i, "fixturenames", ())
    ]
    return [c.params["seed"] for c in calls if c is not None]


@pytest.mark.parametrize("seed", seeds(STREAMS))
def test_views_equal_recompute(seed: str, played: dict[str, Future[Played]]) -> None:
    _check(played[seed])


def test_there_are_enough_streams(played: dict[str, Future[Played]]) -> None:
    """Few views are refused, and few of them raise."""
    total = _total(played)
    assert total.views >= LEAST_VIEWS, total
    assert total.compared > 3 * total.views, total


SPARK_SEEDS = [f"{SEED}-spark-{i}" for i in range(SPARK_STREAMS)]


@pytest.fixture(scope="module")
def played_on_spark(
    request: pytest.FixtureRequest, spark: SparkSession
) -> Iterator[dict[str, Future[Played]]]:
    """Every stream that was asked for, two at a time: much of what Spark does, it does alone."""

    def play_one(seed: str) -> Played:
        stream = make_stream(seed, SPARK_VIEWS, batches=2, spark=True)
        try:
            return play(stream, opening(placement="spark", spark=spark)), ""
        except Failure as failure:
            return Outcome(), f"seed {seed!r}: {failure}\n\n{script(stream, 'spark')}"

    wanted = _wanted(
        request.session.items,
        "played_on_spark",
        SPARK_SEEDS,
        "test_there_are_enough_streams_on_spark",
    )
    with ThreadPoolExecutor(2) as pool:
        yield {seed: pool.submit(play_one, seed) for seed in wanted}
        pool.shutdown(cancel_futures=True)


@pytest.mark.parametrize("seed", SPARK_SEEDS)
def test_views_equal_recompute_on_spark(
    seed: str, played_on_spark: dict[str, Future[Played]]
) -> None:
    _check(played_on_spark[seed])


def test_there_are_enough_streams_on_spark(played_on_spark: dict[str, Future[Played]]) -> None:
    total = _total(played_on_spark)
    assert total.views >= LEAST_SPARK_VIEWS, total


def _check(stream: Future[Played]) -> None:
    _, failure = stream.result()
    if failure:
        pytest.fail(failure, pytrace=False)


def _total(streams: dict[str, Future[Played]]) -> Outcome:
    total = Outcome()
    for future in streams.values():
        total.add(future.result()[0])
    print(total)
    return total
