"""Which results are due together, and what lies between results of several."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from slackwater.timing import Rhythm, longest_gap, parse_schedule, rhythm_of

NOW = datetime(2026, 1, 5, 7, 12, tzinfo=UTC)  # a Monday


def rhythm(text: str, now: datetime = NOW) -> Rhythm:
    found = rhythm_of(parse_schedule(text), now)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("one", "other", "together"),
    [
        ("daily 06:00", "0 6 * * *", True),
        ("every 1 day", "daily 00:00", True),
        ("every 60 minutes", "0 * * * *", True),
        ("daily 06:00", "daily 18:00", False),
        ("daily 06:00", "0 6 * * mon-fri", False),
        ("every 1 hour", "30 * * * *", False),
        ("every 1 day", "every 12 hours", False),
    ],
)
@pytest.mark.parametrize("days", range(7))
def test_due_together_is_due_at_the_same_moments(
    one: str, other: str, together: bool, days: int
) -> None:
    now = NOW + timedelta(days=days)
    assert (rhythm(one, now) == rhythm(other, now)) is together


@pytest.mark.parametrize("text", ["manual", "every 100 rows"])
def test_where_the_clock_does_not_say_there_is_no_rhythm(text: str) -> None:
    assert rhythm_of(parse_schedule(text), NOW) is None


def test_the_next_due_moment_is_the_first() -> None:
    assert rhythm("daily 06:00").next_due == datetime(2026, 1, 6, 6, tzinfo=UTC)
    assert rhythm("every 10 minutes").next_due == datetime(2026, 1, 5, 7, 20, tzinfo=UTC)


@pytest.mark.parametrize(
    ("texts", "hours"),
    [
        (("daily 06:00",), 24),
        (("daily 06:00", "daily 18:00"), 12),
        (("daily 06:00", "daily 07:00"), 23),  # no longer than that, and often less
        (("daily 06:30", "every 1 hour"), 1),
        (("0 6 * * mon", "0 6 * * thu"), 96),
    ],
)
def test_the_longest_gap_between_results(texts: tuple[str, ...], hours: float) -> None:
    assert longest_gap([rhythm(text) for text in texts]) == hours * 3600


def test_results_that_are_due_by_rows_come_as_fast_as_rows_do() -> None:
    often = Rhythm(600.0, rows=100, tables=("t",))
    assert longest_gap([often]) == longest_gap([often, rhythm("every 1 hour")]) == 600
    assert longest_gap([Rhythm(86_400.0, rows=9, tables=("t",)), rhythm("every 1 hour")]) == 3600
    assert (often.next_due, often.next_text) == (None, "after 100 rows")
