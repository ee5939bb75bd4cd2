"""Planning problems of a warehouse know what its refreshes have shown: what work takes, and how
many rows change."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import slackwater
from slackwater import Warehouse
from slackwater.planner.choice import ENGINES
from slackwater.planner.costs import Seconds
from slackwater.planner.plan import Plan, plan, replan
from slackwater.planner.problem import Arrival, Problem
from slackwater.stats.cost import PRIOR, Model
from slackwater.stats.rows import Change
from slackwater.stats.turnover import Turnover
from tests.test_plan_engines import SLOW_START, growing

ROWS, CHANGED = 20_000, 200
LARGE = "SELECT customer, SUM(amount) AS s FROM sales GROUP BY customer HAVING SUM(amount) > 3000"
EARLIER = 4


def _sell(db: Warehouse, seed: int, rows: int) -> None:
    """Few customers buy most: what the model expects of them is far off."""
    rng = np.random.default_rng(seed)
    told = {
        "customer": rng.zipf(1.5, rows) % 5000,
        "amount": rng.integers(0, 100, rows),
    }
    db.append("sales", pa.table(told))


@pytest.fixture
def new(tmp_path: Path) -> Iterator[Warehouse]:
    """Nothing was refreshed in it."""
    with slackwater.connect(tmp_path / "w", placement="local") as db:
        db.sql("CREATE TABLE sales (customer BIGINT, amount BIGINT)")
        _sell(db, 0, ROWS)
        yield db


@pytest.fixture
def known(new: Warehouse, tmp_path: Path) -> Iterator[tuple[Warehouse, float]]:
    """Opened again after some refreshes, the last of which changed so many rows."""
    new.sql(f"CREATE MATERIALIZED VIEW large WITH (refresh = 'incremental') AS {LARGE}")
    new.refresh("large")
    for seed in range(1, 1 + EARLIER):
        _sell(new, seed, CHANGED)
        (report,) = new.refresh("large")
        assert report.mode == "incremental"
    new.close()
    with slackwater.connect(tmp_path / "w", placement="local") as again:
        yield again, report.rows


def _problem(db: Warehouse, prices: tuple[float, ...] = (0.5, 1.0)) -> Problem:
    stays = ROWS + EARLIER * CHANGED
    changes = (Change(inserts=float(CHANGED)),) * (len(prices) - 1)
    return db.problem(LARGE, {"sales": Arrival(stays, changes)}, prices)


def _costs(problem: Problem) -> tuple[float, float, float]:
    """By what the problem knows, by what the warehouse has fitted, and by the prior."""
    found: tuple[Plan, ...] = plan(problem), plan(problem, problem.model), plan(problem, Model())
    return found[0].cost, found[1].cost, found[2].cost


def test_fitted_prices_are_planned_by(known: tuple[Warehouse, float]) -> None:
    problem = _problem(known[0])
    assert problem.model == known[0]._house.experience.of("").model
    assert problem.model.prices != PRIOR
    by_itself, fitted, prior = _costs(problem)
    assert by_itself == fitted
    assert by_itself != prior


def test_where_nothing_was_measured_the_prior_holds(new: Warehouse) -> None:
    problem = _problem(new)
    assert (problem.model, problem.turnover) == (Model(), Turnover())
    by_itself, _, prior = _costs(problem)
    assert by_itself == prior
    stated = growing("left", 1e6, 1e4, (0.3, 1.0))
    assert plan(stated).cost == plan(stated, Model()).cost


@pytest.mark.parametrize("engines", [("local",), ("spark",), ENGINES])
def test_each_engine_has_its_prices(engines: tuple[str, ...]) -> None:
    stated = growing("aggregate of join", 1e6, 1e4, (0.3, 1.0))
    own = plan(replace(stated, model=Model(SLOW_START)), engines=engines)
    told = plan(stated, Model(SLOW_START), engines=engines)
    assert (own.cost, own.engines) == (told.cost, told.engines)
    assert own.cost != plan(stated, engines=engines).cost


def test_what_is_told_goes_before_what_is_known() -> None:
    stated = replace(growing("left", 1e6, 1e4, (0.3, 1.0)), model=Model(SLOW_START))
    prior = plan(stated, Model())
    assert plan(stated, costs=Seconds(Model())).cost == prior.cost < plan(stated).cost
    assert replan(stated, prior).cost == prior.cost  # as it was told then


def test_planned_again_by_prices_that_are_known_by_now() -> None:
    stated = growing("left", 1e6, 1e4, (0.3, 1.0))
    dearer = replace(stated, model=Model(SLOW_START))
    assert replan(dearer, plan(stated)).cost == pytest.approx(plan(dearer).cost)


# -- rows


def _foretold(problem: Problem) -> float:
    """The changed rows of the result in the last interval."""
    last = problem.points[-1]
    found = problem.span((last - 1, last)).estimates.of(problem.query)
    return float(found.change.rows)


def test_rows_are_foretold_as_refreshes_have_shown(known: tuple[Warehouse, float]) -> None:
    db, counted = known
    problem = _problem(db)
    unaware = replace(problem, turnover=Turnover())
    assert 0.5 < _foretold(problem) / counted < 2
    assert _foretold(unaware) < counted / 20
    assert plan(problem).cost != plan(unaware).cost


def test_many_intervals_know_it_in_one_pass(known: tuple[Warehouse, float]) -> None:
    db, counted = known
    problem = _problem(db, (0.5,) * 6 + (1.0,))
    (span,) = set(problem.spans.values())
    rows = np.broadcast_to(span.estimates.of(problem.query).change.rows, 6)
    assert all(0.5 < each / counted < 2 for each in rows)


def test_an_operator_is_known_in_any_query_that_has_it(known: tuple[Warehouse, float]) -> None:
    """By the sums that the view keeps; the other query itself was never seen."""
    db, _ = known
    arrival = Arrival(ROWS, (Change(inserts=CHANGED),))
    problem = db.problem(
        "SELECT customer, SUM(amount) FROM sales GROUP BY customer", {"sales": arrival}
    )
    estimates = problem.span((0, 1)).estimates
    plain = replace(problem, turnover=Turnover()).span((0, 1)).estimates
    (node,) = [n for n in problem.query.walk() if n.digest() in problem.turnover.seen]
    factor = estimates.of(node).change.rows / plain.of(node).change.rows
    assert abs(factor - 1) > 0.01
    assert estimates.of(problem.query).change.rows == pytest.approx(
        plain.of(problem.query).change.rows * factor
    )


def test_what_refreshes_have_shown_of_other_tables_says_nothing(
    known: tuple[Warehouse, float],
) -> None:
    db, _ = known
    db.sql("CREATE TABLE other (customer BIGINT, amount BIGINT)")
    arrival = Arrival(ROWS, (Change(inserts=CHANGED),))
    problem = db.problem(LARGE.replace("sales", "other"), {"other": arrival})
    assert problem.turnover.seen
    assert _foretold(problem) == _foretold(replace(problem, turnover=Turnover()))
