"""Predictions of what arrives, on histories made by each model: right within a known error."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from math import inf, pi

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slackwater.stats.arrival import NOTHING, Arrived, Expected, batches, curve, predict
from slackwater.stats.rows import Change

BEGIN = datetime(2026, 3, 2, tzinfo=UTC)
MINUTE, HOUR, DAY = 60.0, 3600.0, 86_400.0
SEEDS = range(8)


def moment(seconds: float) -> datetime:
    return BEGIN + timedelta(seconds=float(seconds))


def inserted(times: Iterable[float], rows: Iterable[float]) -> list[Arrived]:
    pairs = zip(times, rows, strict=True)
    return [Arrived(moment(t), Change(inserts=float(n))) for t, n in pairs]


def ahead(history: list[Arrived], start: float, seconds: float) -> Expected:
    return predict(history, moment(start), moment(start + seconds))


def off(expected: Expected, truth: float) -> float:
    return abs(expected.change.inserts - truth) / truth


def share(history: list[Arrived], start: float, seconds: float, parts: int) -> np.ndarray:
    return curve(history, moment(start), moment(start + seconds), parts)


def test_batches_are_counted_whatever_their_size() -> None:
    """Rows peter out, batches do not; and one a week is a seventh of one a day."""
    late = inserted(np.arange(6) * HOUR, [9e5, 9e4, 9e3, 900, 90, 9])
    assert batches(late, moment(5 * HOUR), moment(6 * HOUR)).change.rows == pytest.approx(1)
    assert ahead(late, 5 * HOUR, HOUR).change.rows < 9
    weekly = inserted(np.arange(6) * 7 * DAY, [100] * 6)
    assert batches(weekly, moment(35 * DAY), moment(36 * DAY)).change.rows == pytest.approx(1 / 7)
    assert batches([], moment(0), moment(DAY)) == NOTHING


# -- steady


@pytest.mark.parametrize("seed", SEEDS)
def test_a_steady_rate_goes_on(seed: int) -> None:
    rng = np.random.default_rng(seed)
    times = np.arange(300) * MINUTE + rng.uniform(0, 20, 300)
    history = inserted(times, [1e6, *rng.poisson(100, 299)])  # the first is the initial load
    expected = ahead(history, 300 * MINUTE, HOUR)
    assert expected.model == "steady"
    assert off(expected, 6000) < 0.05
    assert expected.error < 0.15
    assert share(history, 300 * MINUTE, HOUR, 4) == pytest.approx([0, 0.25, 0.5, 0.75, 1])


def test_a_rate_that_has_changed_is_the_new_one() -> None:
    times = np.arange(400) * MINUTE
    history = inserted(times, [100] * 300 + [1000] * 100)
    assert off(ahead(history, 400 * MINUTE, 5 * MINUTE), 5000) < 0.05


def test_a_batch_right_after_the_load_is_no_rate() -> None:
    """Predictions from these few seconds would have been off by thousands of times."""
    times = [0, *(1 + i * HOUR for i in range(12))]
    expected = ahead(inserted(times, [1e6] + [100] * 12), 12 * HOUR, 3 * HOUR)
    assert off(expected, 300) < 0.01
    assert expected.error < 0.6


def test_kinds_of_change_keep_their_shares() -> None:
    history = [Arrived(moment(0), Change(inserts=1e6))]
    history += [Arrived(moment(i * MINUTE), Change(60, 30, 10)) for i in range(1, 101)]
    expected = ahead(history, 100 * MINUTE, 10 * MINUTE)
    assert expected.change.inserts == pytest.approx(600)
    assert expected.change.updates == pytest.approx(300)
    assert expected.change.deletes == pytest.approx(100)


# -- daily


def by_day(rng: np.random.Generator, days: int) -> list[Arrived]:
    """A batch every 15 minutes, most at 06:00, hardly any at 18:00."""
    times = np.arange(0, days * DAY, 900.0)
    return inserted(times, rng.poisson(_at(times)))


def _at(times: np.ndarray) -> np.ndarray:
    return 200 * (1.05 + np.sin(times / DAY * 2 * pi))


def due(start: float, seconds: float) -> float:
    return float(_at(np.arange(start, start + seconds, 900.0) + 900).sum())


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("hour", [0, 6, 12, 20])
def test_a_daily_pattern_comes_again(seed: int, hour: int) -> None:
    history = by_day(np.random.default_rng(seed), 6)
    start = 5 * DAY + hour * HOUR
    expected = ahead(history, start, 6 * HOUR)
    assert expected.model == "daily"
    assert off(expected, due(start, 6 * HOUR)) < 0.12
    assert expected.error < 0.2


@pytest.mark.parametrize("seed", SEEDS)
def test_days_and_hours_add_up(seed: int) -> None:
    history = by_day(np.random.default_rng(seed), 5)
    assert off(ahead(history, 5 * DAY, 2.5 * DAY), due(5 * DAY, 2.5 * DAY)) < 0.05


def test_the_curve_of_a_day_has_its_shape() -> None:
    history = by_day(np.random.default_rng(1), 5)
    found = share(history, 5 * DAY, DAY, 24)
    edges = np.arange(25) * HOUR
    truth = np.array([due(5 * DAY, e) for e in edges]) / due(5 * DAY, DAY)
    assert np.abs(found - truth).max() < 0.03
    assert found[12] > 0.75, "most comes in the first half"


def test_one_day_is_no_pattern_yet() -> None:
    history = by_day(np.random.default_rng(1), 5)
    assert ahead(history, 1.5 * DAY, HOUR).model != "daily"


def test_a_load_every_night_is_expected_at_night_only() -> None:
    history = inserted(np.arange(6) * DAY, [1e6, *[5e4] * 5])
    evening, night = 5 * DAY + 18 * HOUR, 5 * DAY + 23 * HOUR
    assert ahead(history, evening, 4 * HOUR).change == Change()
    assert off(ahead(history, night, 2 * HOUR), 5e4) < 0.01


# -- bursts


@pytest.mark.parametrize("seed", SEEDS)
def test_rare_large_batches_widen_the_error(seed: int) -> None:
    rng = np.random.default_rng(seed)
    times = np.sort(rng.uniform(0, 5 * DAY, 200))
    large = np.zeros(200, bool)
    large[rng.choice(np.arange(1, 200), 6, replace=False)] = True
    rows = np.where(large, 1e5, 100.0)
    expected = ahead(inserted(times, rows), 5 * DAY, 6 * HOUR)
    assert expected.model == "bursts"
    assert off(expected, rows[1:].sum() / 20) < 0.05, "as many as ever, in the long run"
    assert expected.error > 1, "and any single stretch may be far off"
    assert expected.at_most(2).inserts > 1e5, "with room for a large one"
    few = ahead(inserted(times, np.full(200, 100.0)), 5 * DAY, 6 * HOUR)
    assert few.error < expected.error / 2


def test_a_longer_stretch_of_bursts_is_surer() -> None:
    rng = np.random.default_rng(5)
    history = inserted(np.sort(rng.uniform(0, 30 * DAY, 40)), rng.pareto(2, 40) * 1000 + 1)
    short, long = (ahead(history, 30 * DAY, days * DAY) for days in (1, 5))
    assert short.model == long.model == "bursts"
    assert short.error > long.error


# -- the long tail of late data


def test_late_data_as_in_the_thesis() -> None:
    history = inserted([0, 60, 120, 180], [900_000, 90_000, 9_000, 900])
    for known, left in ((2, 1_000.0), (3, 100.0)):
        soon = ahead(history, known * MINUTE, MINUTE)
        assert soon.model == "tail"
        assert off(soon, 0.9 * left) < 0.01
        assert off(ahead(history, known * MINUTE, HOUR), left) < 0.01


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("p", [0.9, 0.7, 0.5, 0.3])
def test_the_share_of_each_interval_is_found(seed: int, p: float) -> None:
    rng = np.random.default_rng(seed)
    left, rows = 1_000_000, []
    for _ in range(5):
        rows.append(int(rng.binomial(left, p)))
        left -= rows[-1]
    expected = ahead(inserted(np.arange(5) * MINUTE, rows), 4 * MINUTE, MINUTE)
    assert expected.model == "tail"
    assert abs(expected.change.inserts - p * left) < 0.1 * p * left + 3 * (p * left) ** 0.5


@pytest.mark.parametrize("seed", SEEDS)
def test_a_tail_of_many_batches(seed: int) -> None:
    rng = np.random.default_rng(seed)
    times = np.arange(0, 1200, 10.0)
    history = inserted(times, rng.poisson(1e4 * np.exp(-times / 300)))
    expected = ahead(history, 1190, 300)
    truth = 1e4 * np.exp(-np.arange(1200, 1491, 10) / 300).sum()
    assert expected.model == "tail"
    assert off(expected, truth) < 0.2
    found = share(history, 1190, 1200, 4)
    assert found == pytest.approx([0, 0.644, 0.881, 0.969, 1], abs=0.03)


# -- little and nothing known


def test_nothing_is_known_of_a_source_without_a_past() -> None:
    for history in ([], inserted([0], [1000])):
        assert ahead(history, HOUR, HOUR) == NOTHING
    assert NOTHING.error == inf
    assert NOTHING.at_most() == Change()
    assert share([], 0, HOUR, 2) == pytest.approx([0, 0.5, 1])


def test_two_batches_are_a_guess() -> None:
    expected = ahead(inserted([0, 60], [5, 7]), 60, 120)
    assert expected.change.inserts == pytest.approx(14)
    assert expected.error == 1.0, "which nothing could be tried on"
    assert expected.at_most().inserts == pytest.approx(28)


def test_what_comes_later_is_not_known() -> None:
    history = inserted(np.arange(200) * MINUTE, [100] * 100 + [10_000] * 100)
    known = [a for a in history if a.at <= moment(99 * MINUTE)]
    assert ahead(history, 99 * MINUTE, HOUR) == ahead(known, 99 * MINUTE, HOUR)


def test_no_time_brings_nothing() -> None:
    history = inserted(np.arange(10) * MINUTE, [100] * 10)
    assert ahead(history, 9 * MINUTE, 0).change == Change()


BATCH = st.tuples(st.floats(0, 10 * DAY), st.integers(0, 10**6))


@given(st.lists(BATCH, max_size=40), st.floats(0, 10 * DAY), st.floats(1, 20 * DAY))
def test_whatever_came_a_prediction_is_sane(
    batches: list[tuple[float, int]], start: float, seconds: float
) -> None:
    history = inserted(*zip(*batches, strict=True)) if batches else []
    expected = ahead(history, start, seconds)
    assert 0 <= expected.change.inserts < inf
    assert expected.change.updates == expected.change.deletes == 0
    assert expected.error >= 0
    assert expected.change.inserts <= expected.at_most().inserts < inf
    found = share(history, start, seconds, 7)
    assert found[0] == 0
    assert found[-1] == pytest.approx(1)
    assert (np.diff(found) >= -1e-9).all()
