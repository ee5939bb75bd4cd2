"""Planning again between runs, by what really came: the results stay those of the query, and the
rest is never dearer than what the first plan would do."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa
import pytest

from slackwater import Warehouse
from slackwater.algebra.relation import Relation
from slackwater.engine.compare import compare
from slackwater.engine.local import LocalEngine
from slackwater.errors import UserError
from slackwater.planner.costs import Seconds
from slackwater.planner.plan import METHODS, Plan, Speedups, plan, replan
from slackwater.planner.problem import Arrival, Problem
from slackwater.planner.replanning import Actual, replanned, rest
from slackwater.planner.runs import RunSteps
from slackwater.planner.temporal import Assignment, Graph, Key
from slackwater.planner.timeline import Timeline
from slackwater.stats.cost import Model
from slackwater.stats.rows import Change
from slackwater.tvr import zset
from slackwater.tvr.memo import ROWS
from slackwater.types import WEIGHT
from slackwater.work.playing import play, recompute, versions
from tests.conftest import PROOF
from tests.test_laws import QUERIES, Rows, bound, engine, evaluate, total
from tests.test_runs import ByChance, History, rows_at, table_of

__all__ = ["engine"]
MANY = 1_000_000.0
NAMES = list(QUERIES) if PROOF else list(QUERIES)[::4]
PLANS = 4 if PROOF else 2


# -- whatever is planned again, results are those of the query


@pytest.mark.parametrize("name", list(QUERIES) if PROOF else list(QUERIES)[::3])
def test_planned_again_by_chance_the_results_are_those_of_the_query(
    name: str, engine: LocalEngine, rng: random.Random
) -> None:
    query = bound(QUERIES[name])
    for _ in range(PLANS):
        points = rng.randint(2, 4)
        history = History(rng, points)
        made = _planned_by_chance(query, history, rng, points)
        playing = _Playing(engine, history)
        for run in range(points):
            if run and rng.random() < 0.7:
                made = replan(rest(made, Actual(run)), made)
            playing.play(made.runs[run])
        for point, found in playing.results.items():
            assert found == rows_at(engine, query, history, point)
        assert points - 1 in playing.results


def _planned_by_chance(query: Relation, history: History, rng: random.Random, points: int) -> Plan:
    due = frozenset({points - 1, rng.randrange(points)})
    prices = tuple(rng.random() for _ in range(points))
    problem = Problem(query, history.arrivals(), prices, due, rng.random() < 0.3)
    methods = [m for m in METHODS if rng.random() < 0.7]
    speedups = Speedups(pruned=rng.random() < 0.5, prompt=rng.random() < 0.5)
    return plan(problem, methods=methods, costs=ByChance(rng), speedups=speedups)


class _Playing:
    """Runs, one after the other, of whatever plan is in force."""

    def __init__(self, engine: LocalEngine, history: History) -> None:
        self._engine = engine
        self._history = history
        self._saved: dict[str, pa.Table] = {}
        self.results: dict[int, Rows] = {}

    def play(self, run: RunSteps) -> None:
        for saved in run.saves:
            rows = self._evaluated(saved.relation)
            flat = [row for row, n in rows.items() for _ in range(n)]
            table = table_of(flat, saved.relation)
            self._saved[saved.name] = table.drop_columns([WEIGHT]) if saved.plain else table
        if run.result is not None:
            self.results[run.point] = total(self._evaluated(zset.with_weight(run.result)))

    def _evaluated(self, relation: Relation) -> Rows:
        given = {
            scan.source: self._saved[scan.source]
            if scan.source in self._saved
            else self._history.source(scan)
            for scan in relation.scans()
        }
        return evaluate(self._engine, relation, given)


# -- what the rest costs


def _problem(name: str, last_first: bool = False) -> Problem:
    query = bound(QUERIES[name])
    changes = (Change(inserts=5000, deletes=100), Change(inserts=3000))
    arrivals = {scan.source: Arrival(MANY, changes) for scan in query.scans()}
    due = frozenset({0, 1, 2}) if last_first else frozenset[int]()
    return Problem(query, arrivals, (0.2, 0.5, 1.0), due, last_first)


def _weighted(made: Plan, since: int) -> float:
    prices = made.problem.prices
    return sum(prices[run] * made.by_run[run] for run in range(since, len(prices)))


@pytest.mark.parametrize("engines", [(), ("local", "spark")])
@pytest.mark.parametrize("done", [1, 2])
@pytest.mark.parametrize("name", NAMES)
def test_as_expected_the_rest_costs_what_it_did(
    name: str, done: int, engines: Sequence[str]
) -> None:
    made = plan(_problem(name), engines=engines)
    again = replan(rest(made, Actual(done)), made)
    assert again.by_run[:done] == (0,) * done
    assert again.cost <= _weighted(made, done) * (1 + 1e-9)
    assert again.cost >= _weighted(made, done) * 0.98


@pytest.mark.parametrize("done", [1, 2])
@pytest.mark.parametrize("last_first", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_of_ten_times_the_rows_the_rest_is_not_dearer_than_it_would_be(
    name: str, last_first: bool, done: int
) -> None:
    made = plan(_problem(name, last_first))
    more = {s: [c.times(10) for c in a.changes[:done]] for s, a in made.problem.arrivals.items()}
    left = rest(made, Actual(done, more))
    again = replan(left, made)
    assert again.solution.cost <= _OldRest(made, left).cost() * (1 + 1e-9)
    assert replanned(made, Actual(done, more)).problem == left


class _OldRest:
    """What the rest of a plan costs at other sizes, step by step."""

    def __init__(self, made: Plan, left: Problem) -> None:
        self._made = made
        self._done = left.done
        memo, old = made.memo, made.solution.graph
        timeline = Timeline(memo, left)
        result = memo.ref(left.query, ROWS)
        wanted = [timeline.timed(result, max(0, p - 1), p) for p in made.problem.results]
        self._nodes = [timeline.timed(t.ref, t.start, t.end) for t in old.nodes]
        self._timeline, self._costs = timeline, Seconds(Model())
        self._weights = Graph(timeline, [self._costs], wanted, made.problem.results).weights

    def cost(self) -> float:
        solution = self._made.solution
        targets = [*((key,) for key in solution.kept), solution.wanted]
        return sum(
            self._of(assignment, key, {})
            for assignment, keys in zip(solution.assignments, targets, strict=True)
            for key in keys
            if key[1] >= self._done
        )

    def _of(self, assignment: Assignment, key: Key, known: dict[Key, float]) -> float:
        if key not in known:
            known[key] = 0.0 if key in assignment.kept else self._made_in(assignment, key, known)
        return known[key]

    def _made_in(self, assignment: Assignment, key: Key, known: dict[Key, float]) -> float:
        (i, run), step = key, assignment.step(key)
        weight, timed = self._weights[run], self._nodes[i]
        if step.saved_at is not None:
            load = weight * self._costs.load(timed, self._timeline)
            if step.saved_at < self._done:
                return load
            save = self._weights[step.saved_at] * self._costs.save(timed, self._timeline)
            return load + save + self._of(assignment, (i, step.saved_at), known)
        if step.way is None:
            return weight * self._costs.read(timed, self._timeline)
        own = weight * self._costs.member(timed, step.way.member, self._timeline)
        return own + sum(self._of(assignment, (below, run), known) for below in step.way.inputs)


# -- when there is anything to plan


def test_while_sizes_are_as_expected_the_plan_stays() -> None:
    made = plan(_problem("left"))
    almost = {s: [Change(inserts=5200, deletes=110)] for s in made.problem.arrivals}
    assert replanned(made, Actual(1)) is made
    assert replanned(made, Actual(1, almost)) is made
    other = {s: [Change(inserts=50_000)] for s in made.problem.arrivals}
    assert replanned(made, Actual(1, other)) is not made


def test_nothing_is_explored_again_while_the_same_sources_change() -> None:
    made = plan(_problem("left"))
    more = {s: [Change(inserts=50_000)] for s in made.problem.arrivals}
    assert replanned(made, Actual(1, more)).memo is made.memo


def test_a_source_that_changes_against_expectation_is_explored() -> None:
    problem = _problem("left")
    still = Arrival(MANY, (Change(), Change()))
    made = plan(replace(problem, arrivals={**problem.arrivals, "t": still}))
    again = replanned(made, Actual(1, {"t": [Change(inserts=50_000)]}))
    assert "t" in again.problem.changed
    assert again.memo is not made.memo


def test_after_the_last_run_there_is_nothing_left() -> None:
    with pytest.raises(UserError) as refused:
        rest(plan(_problem("left")), Actual(3))
    assert refused.value.code == "BAD_PROBLEM"


# -- over a warehouse

TEXT = """
    SELECT c.region, COUNT(*) AS n, SUM(o.amount) AS total
    FROM orders o LEFT JOIN customers c ON o.customer = c.id GROUP BY c.region"""


def _filled(db: Warehouse, batches: Sequence[int]) -> list[dict[str, int]]:
    """The versions after a first load and after each batch."""
    db.sql("CREATE TABLE customers (id BIGINT, region STRING)")
    db.sql("CREATE TABLE orders (id BIGINT, customer BIGINT, amount BIGINT)")
    regions = [f"r{i % 7}" for i in range(100)]
    db.append("customers", pa.table({"id": list(range(100)), "region": regions}))
    points, first = [], 0
    for count in batches:
        ids = list(range(first, first + count))
        customers, amounts = [i % 120 for i in ids], [i * 7 % 101 for i in ids]
        db.append("orders", pa.table({"id": ids, "customer": customers, "amount": amounts}))
        points.append(dict(versions(db._house)))
        first += count
    return points


@pytest.mark.parametrize("factor", [1, 10])
def test_playing_a_plan_again_and_again_is_exact(db: Warehouse, factor: int) -> None:
    points = _filled(db, [300_000, 10_000 * factor, 10_000])
    arrivals = {"orders": Arrival(300_000, (Change(inserts=10_000), Change(inserts=10_000)))}
    made = plan(db.problem(TEXT, arrivals, (0.01, 0.1, 1.0)))
    assert made.runs[0].saves  # so that there is something to load
    played = play(db._house, made, points, planning_again=True)
    expected = recompute(db._house, made.problem.query).results[0]
    assert compare(played.results[2], expected).equal
    assert played.plan is not None
    assert (played.plan is made) == (factor == 1)
    if factor > 1:
        assert played.plan.problem.done == 1
        come = {a.changes[0].inserts for a in played.plan.problem.arrivals.values()}
        assert 100_000 in come


def test_what_was_not_expected_to_change_is_planned_for(db: Warehouse) -> None:
    points = _filled(db, [20_000, 5_000])
    db.sql("INSERT INTO customers SELECT id + 1000, region FROM customers")
    db.sql("UPDATE customers SET region = 'r1' WHERE id < 10")
    points.append(dict(versions(db._house)))
    arrivals = {"orders": Arrival(20_000, (Change(inserts=5_000), Change()))}
    made = plan(db.problem(TEXT, arrivals, (0.01, 0.1, 1.0)))
    played = play(db._house, made, points, planning_again=True)
    expected = recompute(db._house, made.problem.query).results[0]
    assert compare(played.results[2], expected).equal
