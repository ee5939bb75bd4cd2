"""Which runs there are and on which engine each goes: decided over all runs together."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

import slackwater
from slackwater.engine.compare import compare
from slackwater.errors import UserError
from slackwater.planner.choice import ENGINES
from slackwater.planner.costs import Seconds
from slackwater.planner.engines import _Placing, possible
from slackwater.planner.plan import Plan, plan
from slackwater.planner.problem import Arrival, Problem
from slackwater.planner.temporal import IDLE
from slackwater.stats.cost import Model
from slackwater.stats.rows import Change
from slackwater.work.playing import play, recompute, versions
from tests.conftest import PROOF
from tests.test_laws import QUERIES, bound

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

JOINS = ("aggregate of join", "left", "three-way", "aggregate of outer join", "semi", "having")
SLOW_START = {
    # steps, operators, scanned, streamed, hashed, paired, sorted, written
    ("local", "cpu"): (0.01, 0.0003, 4e-8, 7e-8, 6e-7, 4e-8, 1e-7, 1e-6),
    ("spark", "cpu"): (0.4, 0.02, 4e-9, 7e-9, 6e-8, 4e-9, 1e-8, 1e-7),
}
"""One engine for little, and one that is ten times as fast once it runs, as many workers are."""


def growing(
    name: str, rows: float, change: float, prices: tuple[float, ...], last_first: bool = False
) -> Problem:
    """Tables of so many rows, of which each later run has some more."""
    query = bound(QUERIES[name])
    changes = (Change(inserts=change, deletes=change / 10),) * (len(prices) - 1)
    arrivals = {scan.source: Arrival(rows, changes) for scan in query.scans()}
    return Problem(query, arrivals, prices, last_first=last_first)


def planned(problem: Problem, *engines: str) -> Plan:
    return plan(problem, Model(SLOW_START), engines=engines or ENGINES)


def test_few_rows_go_nowhere_but_to_the_driver() -> None:
    made = planned(growing("aggregate of join", 1000, 10, (0.3, 1.0)))
    assert set(made.engines) <= {"", "local"}
    assert made.engines[-1] == "local"


def test_a_large_first_run_and_a_small_last_one_go_to_different_engines() -> None:
    query = bound(QUERIES["aggregate of join"])
    arrivals = {"r": Arrival(1e7, (Change(inserts=100),)), "t": Arrival(1000, (Change(),))}
    made = planned(Problem(query, arrivals, (0.3, 1.0)))
    assert made.engines == ("spark", "local")
    told = made.text()
    assert "Run 0 on spark, price 0.3:" in told
    assert "Run 1 on local, price 1:" in told


def test_runs_that_save_less_than_a_statement_costs_are_left_out() -> None:
    """Without statements, some little work would be done early, for it is cheaper then."""
    problem = growing("aggregate of join", 5000, 50, (0.5, 0.5, 1.0))
    free = plan(problem, Model(SLOW_START))
    assert {run for run, _, step in free.steps() if step.way is not None} > {2}
    made = planned(problem)
    assert made.engines == ("", "", "local")
    assert {run for run, _, _ in made.steps()} == {2}


@pytest.mark.parametrize("last_first", [False, True])
@pytest.mark.parametrize("rows", [1e3, 1e5, 1e7] if PROOF else [1e5])
@pytest.mark.parametrize("name", JOINS if PROOF else JOINS[::3])
def test_together_is_never_dearer_than_one_engine_for_all(
    name: str, rows: float, last_first: bool
) -> None:
    problem = growing(name, rows, rows / 100, (0.3, 0.5, 1.0), last_first)
    both = planned(problem)
    assert all(both.cost <= planned(problem, one).cost * 1.000001 for one in ENGINES)


@pytest.mark.parametrize("rows", [1e4, 1e6])
@pytest.mark.parametrize("name", JOINS if PROOF else JOINS[1::3])
def test_all_engines_of_all_runs_tried_are_hardly_better(name: str, rows: float) -> None:
    problem = growing(name, rows, rows / 50, (0.3, 0.5, 1.0))
    made = planned(problem)
    engines = possible(ENGINES, Model(SLOW_START), problem.query)
    placing = _Placing(made.solution.graph, made.solution.wanted, engines)
    every = [placing._at(where).cost for where in product((0, 1, IDLE), (0, 1, IDLE), (0, 1))]
    assert min(every) <= made.cost * (1 + 1e-9)
    assert made.cost <= min(every) * 1.02


def test_an_engine_that_is_not_known() -> None:
    with pytest.raises(UserError) as refused:
        planned(growing("semi", 10, 1, (1.0, 1.0)), "flink")
    assert refused.value.code == "BAD_ENGINE"


def test_costs_are_those_of_the_engines_or_given() -> None:
    with pytest.raises(UserError) as refused:
        plan(growing("semi", 10, 1, (1.0, 1.0)), costs=Seconds(Model()), engines=("local",))
    assert refused.value.code == "BAD_PROBLEM"


@pytest.mark.spark
def test_runs_on_different_engines_give_what_the_query_gives(
    tmp_path: Path, spark: SparkSession
) -> None:
    text = """
        SELECT c.region, COUNT(*) AS n, SUM(o.amount) AS total
        FROM orders o LEFT JOIN customers c ON o.customer = c.id GROUP BY c.region"""
    with slackwater.connect(tmp_path / "w", placement="auto", spark=spark) as db:
        db.sql("CREATE TABLE customers (id BIGINT, region STRING)")
        db.sql("CREATE TABLE orders (id BIGINT, customer BIGINT, amount BIGINT)")
        points = []
        for start in (0, 300, 400):
            ids = list(range(start, start + 100))
            regions = [f"r{i % 5}" for i in ids]
            db.append("customers", pa.table({"id": ids[:20], "region": regions[:20]}))
            places = [(i * 7) % 440 for i in ids]
            db.append("orders", pa.table({"id": ids, "customer": places, "amount": ids}))
            points.append(versions(db._house))
        arrived = Change(inserts=100)
        problem = db.problem(
            text,
            {
                "customers": Arrival(20, (Change(inserts=20),) * 2),
                "orders": Arrival(1e6, (arrived, arrived)),
            },
            (0.1, 0.1, 1.0),
        )
        made = plan(problem)
        expected = recompute(db._house, problem.query).results[0]
        for engines in (("spark", "local", "local"), ("local", "spark", "local")):
            played = play(db._house, replace(made, engines=engines), points)
            assert len(played.runs) > 1
            assert all(played.runs[p].engine == engines[p] for p in played.runs)
            assert compare(played.results[2], expected).equal
