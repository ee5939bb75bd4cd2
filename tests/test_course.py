"""What early runs cost by the time of day: prices are mapped to rows by when these are expected."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from math import inf

import numpy as np
import pytest

from slackwater.planner.course import Course, Interval
from slackwater.planner.pace import LADDER, Goal, Search
from slackwater.planner.simulation import Inflow, Setting, Simulation
from slackwater.planner.subplans import cut
from slackwater.stats.arrival import Arrived
from slackwater.stats.rows import Change
from slackwater.timing import parse_prices
from slackwater.work.course import course
from tests.test_pace import ABOVE_AVERAGE, BY_REGION, LARGEST, query

BEGIN = datetime(2026, 3, 2, tzinfo=UTC)
HOUR, DAY = timedelta(hours=1), timedelta(days=1)
NIGHT = parse_prices("0.2 from 22:00 to 06:00")
NOW = BEGIN + 7 * DAY + HOUR / 2
SIX = BEGIN + 8 * DAY + 6 * HOUR


def by_the_hour(rows: dict[int, float], days: int = 7) -> list[Arrived]:
    """Rows in some hours of the day."""
    found = [(BEGIN + i * HOUR, rows.get(i % 24, 0.0)) for i in range(24 * days)]
    return [Arrived(at, Change(inserts=n)) for at, n in found if n]


EVEN = by_the_hour(dict.fromkeys(range(24), 100.0))
EVENING = by_the_hour(dict.fromkeys((18, 19, 20), 1000.0))
MORNING = by_the_hour(dict.fromkeys((7, 8, 9), 1000.0))


def paid(made: Course | None, pace: int, *sources: str) -> list[float]:
    assert made is not None
    return made.paid(sources, np.arange(1, pace + 1) / pace).round(3).tolist()


def daily(prices: str = NIGHT.text, **histories: list[Arrived]) -> Course | None:
    return course(parse_prices(prices), NOW, SIX, DAY, histories)


def test_where_all_work_costs_one_nothing_is_looked_at() -> None:
    assert daily("1", t=EVEN) is None
    double = daily("2", t=EVEN)
    assert paid(double, 3, "t") == [2, 2, 2]
    assert double is not None
    assert not double.varies


def test_the_result_costs_what_its_due_moment_does() -> None:
    assert paid(daily(t=EVEN), 1, "t") == [1.0]  # the night is over
    at_five = course(NIGHT, NOW, SIX - HOUR, DAY, {"t": EVEN})
    assert paid(at_five, 1, "t") == [0.2]


def test_an_early_run_waits_for_the_night_if_its_rows_can() -> None:
    """From six to six: half of the rows are there at six in the evening, all by six."""
    assert paid(daily(t=EVEN), 2, "t") == [0.2, 1.0]
    assert paid(daily(t=EVEN), 4, "t") == [1.0, 0.2, 0.2, 1.0]


@pytest.mark.parametrize(
    ("history", "prices"),
    [(MORNING, [1.0, 1.0, 0.2, 1.0]), (EVENING, [1.0, 1.0, 0.2, 1.0])],
    ids=["morning", "evening"],
)
def test_shares_of_rows_are_mapped_to_hours_as_rows_come(
    history: list[Arrived], prices: list[float]
) -> None:
    """All but the last early run are over before the night, whenever in the day rows come."""
    made = daily(t=history)
    assert paid(made, 4, "t") == prices
    assert paid(daily("3 from 10:00 to 17:00", t=MORNING), 2, "t") == [1.0, 1.0]


def test_a_high_price_when_rows_come_is_paid_only_where_runs_cannot_wait() -> None:
    noon = "3 from 12:00 to 20:00"
    at_noon = by_the_hour(dict.fromkeys(range(12, 20), 1000.0))
    assert paid(daily(noon, t=at_noon), 4, "t") == [3.0, 3.0, 1.0, 1.0]
    assert paid(daily(noon, t=MORNING), 4, "t") == [1.0, 1.0, 1.0, 1.0]


def test_sources_count_by_their_rows() -> None:
    few = by_the_hour({7: 1.0, 21: 1.0})
    made = daily(few=few, many=EVENING)
    assert paid(made, 4, "few", "many") == paid(made, 4, "many")
    assert paid(made, 2, "few") == [0.2, 1.0]
    assert paid(made, 2, "unknown") == [0.2, 1.0]  # evenly


def test_results_of_every_hour_are_paid_at_the_prices_of_all_hours() -> None:
    hourly = course(NIGHT, NOW, BEGIN + 7 * DAY + HOUR, HOUR, {"t": EVEN})
    assert paid(hourly, 1, "t") == [pytest.approx((8 * 0.2 + 16) / 24, abs=1e-3)]
    by_day = course(NIGHT, NOW, BEGIN + 7 * DAY + HOUR, HOUR, {"t": MORNING})
    assert paid(by_day, 1, "t") == [pytest.approx(1.0, abs=0.05)]  # nothing comes by night


def test_late_data_peters_out_after_each_result() -> None:
    late = [Arrived(BEGIN + i * HOUR, Change(inserts=n)) for i, n in enumerate((9e5, 9e4, 9e3))]
    now = BEGIN + 2 * HOUR
    made = course(NIGHT, now, BEGIN + 6 * HOUR, DAY, {"t": late})
    assert paid(made, 4, "t") == [1.0, 1.0, 0.2, 1.0]  # most of it within an hour


# -- the search


TEXTS = {"above": ABOVE_AVERAGE, "region": BY_REGION, "largest": LARGEST}
CHEAP_BEFORE = Interval(np.array([1.0, 1.0, 0.1, 0.1, 1.0]))


def search(texts: dict[str, str], prices: Interval | None, goal: float = inf) -> Search:
    flows = {
        "sales": Inflow(1e6, Change(inserts=1e7)),
        "customers": Inflow(1e5, Change()),
    }
    setting = Setting(flows, course=None if prices is None else Course([prices]))
    dag = cut({name: query(text) for name, text in texts.items()})
    goals = dict.fromkeys(texts, Goal(share=goal))
    return Search(Simulation(dag, setting), goals, "subplans")


def test_a_cheap_night_attracts_early_runs_without_any_goal() -> None:
    for name in ("region", "largest"):
        night = search({name: TEXTS[name]}, CHEAP_BEFORE)
        found = night.greedy()
        assert max(found.paces.values()) > 1, name
        assert found.total < 0.9 * night.batch().total, name
        same = search({name: TEXTS[name]}, Interval(np.full(5, 1.0))).greedy()
        assert set(same.paces.values()) == {1}, name


def test_a_cheap_due_moment_keeps_everything_for_it() -> None:
    late = search(TEXTS, Interval(np.array([1.0, 1.0, 1.0, 1.0, 0.1])))
    assert set(late.greedy().paces.values()) == {1}


def test_early_runs_that_cost_more_than_the_night_saves_are_not_made() -> None:
    """What is joined with an average is taken back with it."""
    almost = Interval(np.array([1.0, 1.0, 0.98, 0.98, 1.0]))
    assert set(search(TEXTS, almost).greedy().paces.values()) == {1}


@pytest.mark.parametrize("goal", [inf, 0.8, 0.5, 0.2])
@pytest.mark.parametrize("name", TEXTS)
def test_the_search_finds_nearly_the_cheapest(name: str, goal: float) -> None:
    rungs = [k for k in LADDER if k <= 16]
    night = search({name: TEXTS[name]}, CHEAP_BEFORE, goal)
    best, found = night.brute_force(rungs), night.greedy()
    if not best.missed:
        assert not found.missed
        assert found.total <= 1.1 * best.total


def test_goals_are_kept_when_early_runs_move_to_cheaper_times() -> None:
    for goal in (0.9, 0.5, 0.3):
        plain, night = (search(TEXTS, prices, goal).greedy() for prices in (None, CHEAP_BEFORE))
        assert sum(night.missed.values()) <= sum(plain.missed.values()) * 1.001
