"""What plans expect to come: the same at any hour, and other only where more than noise says it."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from slackwater.stats.arrival import NOTHING, Arrived, Expected, predict
from slackwater.stats.outlook import has_changed, outlook, seconds_until
from slackwater.stats.rows import Change

BEGIN = datetime(2026, 3, 2, tzinfo=UTC)
HOUR, DAY = timedelta(hours=1), timedelta(days=1)


def by_the_hour(days: int) -> list[Arrived]:
    """A hundred rows by night, ten times as many from noon on."""
    rows = [1000.0 if 12 <= hour % 24 < 18 else 100.0 for hour in range(24 * days)]
    return [Arrived(BEGIN + i * HOUR, Change(inserts=n)) for i, n in enumerate(rows)]


def told(rows: float, error: float = 0.1) -> Expected:
    return Expected(Change(inserts=rows), error, "steady")


@pytest.mark.parametrize("hour", range(0, 24, 3))
def test_a_plan_for_hourly_results_is_for_the_busiest_hour(hour: int) -> None:
    history, now = by_the_hour(7), BEGIN + 6 * DAY + hour * HOUR + HOUR / 2
    expected = outlook([a for a in history if a.at <= now], now, HOUR)
    assert expected.change.rows == pytest.approx(1000, rel=0.2)


def test_of_daily_results_all_of_a_day_is_expected() -> None:
    history, now = by_the_hour(5), BEGIN + 5 * DAY
    assert outlook(history, now, DAY) == predict(history, now, now + DAY)
    assert outlook(history, now, DAY).change.rows == pytest.approx(7800, rel=0.1)


def test_where_hours_are_alike_each_is_the_busiest() -> None:
    history = [Arrived(BEGIN + i * HOUR, Change(inserts=50)) for i in range(72)]
    now = BEGIN + 3 * DAY
    assert outlook(history, now, HOUR).change.rows == pytest.approx(50, rel=0.1)
    second = BEGIN + 30 * HOUR  # of a day and a bit nobody knows what differs
    assert outlook(history, second, HOUR) == predict(history, second, second + HOUR)


@pytest.mark.parametrize(
    ("before", "now", "is_other"),
    [
        (told(100), told(120), False),  # a tenth is what it may be off, and less than noise
        (told(100), told(130), True),
        (told(100), told(70), True),
        (told(100), told(140, error=0.5), False),
        (told(100), told(160, error=0.5), True),
        (told(100), told(190, error=9.0), False),
        (told(100), told(210, error=9.0), True),  # twice as much, however uncertain
        (told(100), told(45, error=9.0), True),
        (NOTHING, told(100), True),
        (told(100), NOTHING, True),
        (NOTHING, NOTHING, False),
        (told(0.1), told(0.4), False),  # less than a row
    ],
)
def test_what_is_another_prediction(before: Expected, now: Expected, is_other: bool) -> None:
    assert has_changed(before, now) is is_other


@pytest.mark.parametrize("rows", [10, 1_000, 50_000])
def test_how_long_until_so_many_rows_have_come(rows: int) -> None:
    """Fifty an hour of one, and as many of another."""
    one = [Arrived(BEGIN + i * HOUR, Change(inserts=50)) for i in range(30)]
    seconds = seconds_until([one, one], BEGIN + 29 * HOUR, rows)
    assert seconds == pytest.approx(rows / 100 * 3600, rel=0.1)


def test_rows_of_which_nobody_knows_or_that_never_come_are_not_waited_for() -> None:
    now = BEGIN + 2 * HOUR
    assert seconds_until([[Arrived(BEGIN, Change(inserts=50))]], now, 100) is None
    late = [Arrived(BEGIN + i * HOUR, Change(inserts=n)) for i, n in enumerate((9e5, 9e4, 9e3))]
    assert seconds_until([late], now, 1e9) is None


def test_chance_alone_is_no_other_prediction() -> None:
    """Batches come at random, at one rate: of a hundred looks few would plan again."""
    rng = np.random.default_rng(7)
    times = np.cumsum(rng.exponential(300, 2000))
    history = [Arrived(BEGIN + timedelta(seconds=float(t)), Change(inserts=10)) for t in times]
    looks = [BEGIN + timedelta(seconds=float(times[500 + 15 * i])) for i in range(100)]
    made = [outlook([a for a in history if a.at <= at], at, 6 * HOUR) for at in looks]
    plan, again = made[0], 0
    for now in made[1:]:
        if has_changed(plan, now):
            plan, again = now, again + 1
    assert again <= 3
    assert has_changed(plan, replace(plan, change=plan.change.times(3)))
