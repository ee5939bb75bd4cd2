"""A planning problem stated in Python, and the plan for it; nothing is run."""

from __future__ import annotations

import pytest

from slackwater.errors import UserError
from slackwater.planner.plan import METHODS, Plan, plan
from slackwater.planner.problem import Arrival, Problem
from slackwater.stats.rows import Change
from tests.test_laws import QUERIES, bound

MANY = 1_000_000.0


def _problem(prices: tuple[float, ...] = (0.3, 1.0), **more: object) -> Problem:
    """A sum over a join of which one side grows: half of it before the first run, the rest before
    the runs that follow."""
    points = len(prices)
    grows = Arrival(MANY / 2, (Change(inserts=MANY / 2 / (points - 1)),) * (points - 1))
    stays = Arrival(MANY / 20, (Change(),) * (points - 1))
    query = bound(QUERIES["aggregate of join"])
    return Problem(query, {"r": grows, "t": stays}, prices, **more)  # type: ignore[arg-type]


def test_a_plan_says_what_each_run_does() -> None:
    made = plan(_problem())
    told = made.text().splitlines()
    assert told[0].startswith("Expected: ")
    assert [line for line in told if line.startswith("Run ")] == [
        "Run 0, price 0.3:",
        "Run 1, price 1:",
    ]
    assert made.cost > 0
    assert {run for run, _, _ in made.steps()} == {0, 1}


def test_early_runs_at_a_lower_price_make_the_whole_cheaper() -> None:
    early, late = plan(_problem((0.3, 1.0))), plan(_problem((1.0, 1.0)))
    assert early.cost < late.cost


def test_where_early_runs_cost_more_everything_waits() -> None:
    made = plan(_problem((5.0, 1.0)))
    assert {run for run, _, step in made.steps() if step.way is not None} == {1}


def test_the_last_run_may_come_first() -> None:
    """Compared from the last run back, whatever can be done earlier is."""
    by_price, last_first = plan(_problem((1.0, 1.0))), plan(_problem((1.0, 1.0), last_first=True))
    assert last_first.cost <= by_price.cost


@pytest.mark.parametrize("points", [2, 3, 4])
def test_any_number_of_runs(points: int) -> None:
    made = plan(_problem((*(0.3,) * (points - 1), 1.0)))
    assert len(made.problem.points) == points


@pytest.mark.parametrize("name", ["left", "three-way", "aggregate of outer join", "semi", "having"])
def test_all_methods_together_are_never_dearer_than_one(name: str) -> None:
    node = bound(QUERIES[name])
    change = (Change(inserts=1000, deletes=100),)
    arrivals = {scan.source: Arrival(MANY, change) for scan in node.scans()}

    def cost(*methods: str) -> float:
        return plan(Problem(node, arrivals, (0.3, 1.0)), methods=methods).cost

    mixed = cost(*METHODS)
    assert all(mixed <= cost(method) * 1.000001 for method in METHODS)


def test_a_method_that_is_not_known() -> None:
    with pytest.raises(UserError) as refused:
        plan(_problem(), methods=("im3",))
    assert refused.value.code == "BAD_METHOD"


def test_plans_are_values() -> None:
    assert isinstance(plan(_problem()), Plan)
