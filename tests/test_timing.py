"""Schedules, goals, sizes and prices: what their texts mean, and that they read back."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slackwater.errors import InternalError, UserError
from slackwater.timing import (
    Cron,
    Daily,
    Every,
    EveryRows,
    Manual,
    Prices,
    Schedule,
    Tariff,
    Within,
    parse_prices,
    parse_schedule,
    parse_size,
    parse_within,
    period_seconds,
)

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
SECOND = timedelta(seconds=1)
MOMENTS = st.datetimes(datetime(1971, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC))
LINES = ("*/5 * * * *", "0 6 * * 1-5", "30 4 1,15 * *", "0 0 29 2 *", "15 */3 * JAN-MAR *")
EVERY = st.builds(Every, st.integers(1, 10**9).map(lambda ms: ms / 1000))
DAILY = st.builds(Daily, st.integers(0, 23), st.integers(0, 59))
CLOCKED: st.SearchStrategy[Schedule] = EVERY | DAILY | st.builds(Cron, st.sampled_from(LINES))
ANY = CLOCKED | st.just(Manual()) | st.builds(EveryRows, st.integers(1, 10**9))
PRICE = st.integers(1, 400).map(lambda cents: cents / 100)
MINUTE = st.integers(0, 24 * 60 - 1)
TARIFF = st.tuples(PRICE, MINUTE, MINUTE).filter(lambda t: t[1] != t[2]).map(lambda t: Tariff(*t))
PRICES = st.builds(Prices, st.lists(TARIFF, max_size=4).map(tuple), PRICE)


@pytest.mark.parametrize(
    ("text", "schedule"),
    {
        "manual": Manual(),
        " MANUAL ": Manual(),
        "every 10 minutes": Every(600),
        "every minute": Every(60),
        "Every  2 Hours": Every(7200),
        "every 1.5 days": Every(129_600),
        "every 2 weeks": Every(1_209_600),
        "every 100000 rows": EveryRows(100_000),
        "every row": EveryRows(1),
        "daily 6:05": Daily(6, 5),
        "*/5 * * * *": Cron("*/5 * * * *"),
        "0 6  * * MON-FRI": Cron("0 6 * * MON-FRI"),
    }.items(),
)
def test_a_schedule_is_read(text: str, schedule: Schedule) -> None:
    assert parse_schedule(text) == schedule


@given(ANY)
def test_a_schedule_reads_back(schedule: Schedule) -> None:
    assert parse_schedule(schedule.text) == schedule


@given(CLOCKED, MOMENTS)
def test_the_next_due_time_is_the_first_after_a_moment(schedule: Schedule, at: datetime) -> None:
    due = schedule.next_due(at)
    assert due is not None
    assert due > at
    assert due.utcoffset() == timedelta(0)
    just_before = due - timedelta(microseconds=1)
    assert schedule.next_due(max(at, just_before)) == due, "nothing is due between"
    following = schedule.next_due(due)
    assert following is not None
    assert following > due
    assert period_seconds(schedule, at) == (following - due).total_seconds()


@given(CLOCKED, MOMENTS, st.integers(-12, 14))
def test_the_zone_a_moment_is_told_in_does_not_matter(
    schedule: Schedule, at: datetime, hours: int
) -> None:
    elsewhere = at.astimezone(timezone(timedelta(hours=hours)))
    assert schedule.next_due(elsewhere) == schedule.next_due(at)


@given(st.integers(1, 10**6), MOMENTS)
def test_due_times_of_a_duration_are_its_multiples(seconds: int, at: datetime) -> None:
    due = Every(float(seconds)).next_due(at)
    assert due is not None
    assert (due - EPOCH) % timedelta(seconds=seconds) == timedelta(0)
    assert due - at <= timedelta(seconds=seconds)


def test_rows_and_people_have_no_clock() -> None:
    for schedule in (Manual(), EveryRows(10)):
        assert schedule.next_due(EPOCH) is None
        assert period_seconds(schedule, EPOCH) is None


def test_the_period_of_a_cron_line_depends_on_the_day() -> None:
    weekdays = Cron("0 6 * * 1-5")
    thursday = datetime(2026, 1, 1, tzinfo=UTC)
    assert weekdays.next_due(thursday) == thursday + 6 * 3600 * SECOND
    assert period_seconds(weekdays, thursday) == 86_400
    assert period_seconds(weekdays, thursday + timedelta(days=1)) == 3 * 86_400


def test_a_moment_without_a_zone_is_our_mistake() -> None:
    with pytest.raises(InternalError):
        Daily(6, 0).next_due(datetime(2026, 1, 1))


@pytest.mark.parametrize(
    ("text", "problem"),
    {
        "": "cannot be understood",
        "sometimes": "cannot be understood",
        "every 5 parsecs": "cannot be understood",
        "every 1.5 rows": "cannot be understood",
        "every 0 minutes": "too often",
        "every 9999 weeks": "too rarely",
        "every 0 rows": "always due",
        "daily 24:00": "no time of day",
        "daily 06:60": "no time of day",
        "61 * * * *": "bad minute",
        "0 0 30 2 *": "bad day-of-month",
        "* * * * * *": "cannot be understood",
    }.items(),
)
def test_a_wrong_schedule_is_refused(text: str, problem: str) -> None:
    with pytest.raises(UserError) as error:
        parse_schedule(text)
    assert error.value.code == "BAD_OPTION"
    assert problem in error.value.message
    assert error.value.hint.startswith("Write ")


@pytest.mark.parametrize(
    ("text", "goal"),
    {
        "30 seconds": Within(seconds=30),
        "1.5min": Within(seconds=90),
        "500 ms": Within(seconds=0.5),
        "20 milliseconds": Within(seconds=0.02),
        "2 h": Within(seconds=7200),
        "0.1x": Within(share=0.1),
        ".05 X": Within(share=0.05),
    }.items(),
)
def test_a_goal_is_read(text: str, goal: Within) -> None:
    assert parse_within(text) == goal


@given(st.floats(1e-3, 1e7), st.booleans())
def test_a_goal_reads_back(amount: float, relative: bool) -> None:
    goal = Within(share=amount) if relative else Within(seconds=amount)
    read = parse_within(goal.text)
    assert (read.seconds or read.share) == pytest.approx(amount)
    assert (read.share is None) == (goal.share is None)


@pytest.mark.parametrize("text", ["", "soon", "30", "5 rows", "0 seconds", "0x", "-1 seconds"])
def test_a_wrong_goal_is_refused(text: str) -> None:
    with pytest.raises(UserError, match="within = ") as error:
        parse_within(text)
    assert "'30 seconds'" in error.value.hint


def test_sizes() -> None:
    sizes = {"2 GB": 2 * 10**9, "1.5kb": 1500, "0 b": 0, "3 TB": 3 * 10**12, "7 bytes": 7}
    assert {text: parse_size(text) for text in sizes} == sizes


@pytest.mark.parametrize("text", ["", "much", "2", "GB", "2 GiB", "-1 GB"])
def test_a_wrong_size_is_refused(text: str) -> None:
    with pytest.raises(UserError, match="state_budget = ") as error:
        parse_size(text)
    assert "'2 GB'" in error.value.hint


def at(day: int, hour: int, minute: int = 0) -> datetime:
    return datetime(2026, 3, day, hour, minute, tzinfo=UTC)


def test_prices_by_time_of_day() -> None:
    prices = parse_prices("0.25 from 22:00 to 06:00, 0.5 from 12:00 to 13:00")
    found = {hour: prices.at(at(29, hour)) for hour in (0, 5, 6, 11, 12, 13, 21, 22, 23)}
    assert found == {0: 0.25, 5: 0.25, 6: 1, 11: 1, 12: 0.5, 13: 1, 21: 1, 22: 0.25, 23: 0.25}
    assert prices.cheapest(at(29, 8), at(29, 21)) == at(29, 12)
    assert prices.cheapest(at(29, 8), at(30, 8)) == at(29, 22)
    assert prices.cheapest(at(29, 8), at(29, 11)) == at(29, 8), "nothing is cheaper than now"
    assert prices.cheapest(at(29, 12, 30), at(29, 20)) == at(29, 12, 30)


def test_other_forms_of_prices() -> None:
    assert parse_prices("0.5").at(at(1, 12)) == 0.5
    dear = parse_prices("2, 1 from 0:00 to 06:00, 3 from 18:00 to 24:00")
    assert [dear.at(at(1, h)) for h in (0, 6, 18, 23)] == [1, 2, 3, 3]
    first = parse_prices("5 from 11:00 to 12:00, 0.5 from 10:00 to 14:00")
    assert [first.at(at(1, h)) for h in (10, 11, 12)] == [0.5, 5, 0.5]


@given(PRICES)
def test_prices_read_back(prices: Prices) -> None:
    assert parse_prices(prices.text) == prices


@given(PRICES, MOMENTS, st.integers(0, 3 * 24 * 60))
def test_nothing_before_or_cheaper_than_the_cheapest(
    prices: Prices, start: datetime, minutes: int
) -> None:
    end = start + timedelta(minutes=minutes)
    best = prices.cheapest(start, end)
    assert start <= best <= end
    tried = [start + timedelta(minutes=m) for m in range(0, minutes + 1, 17)]
    assert prices.at(best) == min([prices.at(best), *map(prices.at, tried)])
    assert all(prices.at(moment) > prices.at(best) for moment in tried if moment < best)


@pytest.mark.parametrize(
    "text",
    ["", "cheap", "0", "-1", "1, 2", "0.5 from 25:00 to 06:00", "0.5 from 6:00 to 6:00", "1,"],
)
def test_wrong_prices_are_refused(text: str) -> None:
    with pytest.raises(UserError, match="prices = ") as error:
        parse_prices(text)
    assert error.value.code == "BAD_OPTION"
    assert error.value.hint
