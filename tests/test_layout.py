"""How rows meet on Spark and what is spread by what, decided over all runs together (001, 2.3)."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

import slackwater
from slackwater.algebra.expr import Call, Expr, columns, shift
from slackwater.algebra.relation import Join, Project, Relation, Scan
from slackwater.engine.compare import compare
from slackwater.engine.compile import compile_query
from slackwater.engine.dialects import LOCAL, SPARK
from slackwater.engine.meetings import bearable
from slackwater.engine.spark import SparkEngine
from slackwater.engine.spark_settings import Overlay
from slackwater.errors import InternalError
from slackwater.planner.choice import ENGINES
from slackwater.planner.layout import _Layout, _met_by
from slackwater.planner.places import COPY_RIGHT, HASH_LEFT, HASH_RIGHT, MERGE, Meeting
from slackwater.planner.plan import Plan, plan
from slackwater.planner.problem import Arrival, Problem
from slackwater.planner.runs import RunSteps, Saved, unfold
from slackwater.planner.steps import Spread
from slackwater.stats.cost import Model
from slackwater.stats.rows import Change
from slackwater.tvr import zset
from slackwater.types import BIGINT, BOOLEAN, Field
from slackwater.work.playing import play, recompute, versions
from tests.conftest import PROOF, in_pieces
from tests.test_laws import QUERIES, bound
from tests.test_plan_engines import growing

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

JOINS = ("aggregate of join", "left", "three-way", "aggregate of outer join", "semi", "self join")
TEXT = """
    SELECT c.region, COUNT(*) AS n, SUM(o.amount) AS total
    FROM orders o LEFT JOIN customers c ON o.customer = c.id GROUP BY c.region"""


def relations(run: RunSteps) -> list[Relation]:
    return [s.relation for s in run.saves] + ([] if run.result is None else [run.result])


def meetings(run: RunSteps) -> list[str]:
    return [n.meets for r in relations(run) for n in r.walk() if isinstance(n, Meeting)]


def joined(left: float, right: float) -> Plan:
    """A join of two tables of so many rows, in one run on Spark."""
    arrivals = {"r": Arrival(left, ()), "t": Arrival(right, ())}
    return plan(Problem(bound(QUERIES["join"]), arrivals, (1.0,)), engines=("spark",))


def test_a_small_side_is_copied_and_of_two_large_ones_the_smaller_is_hashed() -> None:
    assert meetings(joined(1e8, 1e4).runs[0]) == [COPY_RIGHT]
    assert meetings(joined(1e7, 1e8).runs[0]) == [HASH_LEFT]
    assert meetings(joined(1e8, 1e7).runs[0]) == [HASH_RIGHT]
    assert meetings(joined(1e12, 1e11).runs[0]) == [MERGE]


def test_how_sides_meet_differs_from_run_to_run() -> None:
    """As in the paper: a copy while a table is small, an exchange when it has grown."""
    query = bound(QUERIES["join"])
    growing_up = {
        "r": Arrival(1e8, (Change(), Change())),
        "t": Arrival(1e4, (Change(inserts=1e4), Change(inserts=1e8))),
    }
    problem = Problem(query, growing_up, (1.0, 1.0, 1.0), due=frozenset({0, 2}))
    made = plan(problem, engines=("spark",))
    first, last = made.runs[0], made.runs[2]
    assert COPY_RIGHT in meetings(first)
    assert {HASH_LEFT, HASH_RIGHT, MERGE} & set(meetings(last))


def test_without_layout_spark_is_told_nothing() -> None:
    problem = growing("aggregate of join", 1e8, 1e6, (0.3, 1.0))
    made = plan(problem, engines=("spark",), layout=False)
    assert not any(meetings(run) for run in made.runs)
    assert not any(saved.by for run in made.runs for saved in run.saves)


def test_other_engines_are_told_nothing() -> None:
    made = plan(growing("aggregate of join", 1e8, 1e6, (0.3, 1.0)), engines=("local",))
    assert not any(meetings(run) for run in made.runs)


def spread_problem(due: tuple[int, ...] = (0, 1, 2)) -> Problem:
    """What is kept of a large table is joined by the same columns in two later runs, each time with
    more than can be copied."""
    arrived = Change(inserts=5e7)
    arrivals = {
        "r": Arrival(1e9, (Change(), Change())),
        "t": Arrival(1e8, (arrived, arrived)),
    }
    return Problem(bound(QUERIES["aggregate of join"]), arrivals, (0.1, 1.0, 1.0), frozenset(due))


def equal(left: Relation, right: Relation, ours: int, theirs: int) -> Expr:
    """A condition: one column of each side."""
    sides = columns(left.schema)[ours], shift(columns(right.schema)[theirs], left.width)
    return Call(BOOLEAN, True, "=", sides)


def by_hand() -> list[RunSteps]:
    """The first run keeps a table; the two later ones join it with changes of another."""
    fields = {scan.name: scan.fields for scan in bound(QUERIES["join"]).scans()}
    kept = Saved("s0r0", zset.with_weight(Scan("r@0", "r", fields["r"])), plain=True)
    runs = [RunSteps(0, (kept,), None)]
    for run in (1, 2):
        change = Scan(f"t@{run - 1}-{run}@change", "t", fields["t"])
        condition = equal(kept.scan, change, 0, 0)
        runs.append(RunSteps(run, (), Join(kept.scan, change, "inner", condition)))
    return runs


def test_what_two_later_runs_exchange_is_spread_once() -> None:
    """The run that saves it pays more, all together less."""
    runs, problem = by_hand(), spread_problem()
    layout = _Layout(runs, problem, ("spark",) * 3)
    spreads = layout._chosen()
    assert spreads == {"s0r0": (0,)}
    assert layout._moves(runs[0], spreads) > layout._moves(runs[0], {})
    assert layout._cost(spreads) < layout._cost({})
    told = layout.best()
    assert told[0].saves[0].by == ("a",)


def test_what_is_joined_with_few_rows_is_not_spread() -> None:
    """They are copied to it, wherever it is."""
    few = Change(inserts=100)
    problem = spread_problem()
    problem = replace(problem, arrivals={**problem.arrivals, "t": Arrival(100, (few, few))})
    assert _Layout(by_hand(), problem, ("spark",) * 3)._chosen() == {"s0r0": ()}


def test_what_is_spread_is_of_use_on_spark_alone() -> None:
    layout = _Layout(by_hand(), spread_problem(), ("spark", "local", "local"))
    assert not any(layout._chosen().values())


def test_engines_are_chosen_with_what_spreads_spare() -> None:
    """Another engine is a little cheaper for all runs, until rows are spread for the later ones."""
    problem, prices = spread_problem(), Model().prices["spark", "cpu"]
    alone = [plan(problem, engines=("spark",), layout=layout).cost for layout in (True, False)]
    assert alone[0] < alone[1]
    nearly = (1 + alone[0] / alone[1]) / 2
    cheaper = tuple(price * nearly for price in prices)
    model = Model({("spark", "cpu"): prices, ("local", "cpu"): cheaper})
    untold, told = (plan(problem, model, engines=ENGINES, layout=on) for on in (False, True))
    assert set(untold.engines) == {"local"}
    assert set(told.engines) == {"spark"}
    assert told.cost < untold.cost
    assert told.cost == pytest.approx(alone[0])


@pytest.mark.parametrize("last_first", [False, True])
@pytest.mark.parametrize("rows", [1e6, 1e9] if PROOF else [1e9])
@pytest.mark.parametrize("name", JOINS if PROOF else JOINS[::2])
def test_all_spreads_tried_are_hardly_better(name: str, rows: float, last_first: bool) -> None:
    problem = growing(name, rows, rows / 10, (0.1, 0.5, 1.0), last_first)
    made = plan(problem, engines=("spark",))
    layout = _Layout(unfold(made.solution), problem, made.engines)
    candidates = layout._candidates()
    every = product(*([(), *own] for own in candidates.values()))
    best = min(layout._cost(dict(zip(candidates, one, strict=True))) for one in every)
    assert layout._cost(layout._one_by_one(candidates)) <= best * 1.02 + 1e-9
    assert layout._cost(layout._chosen()) <= best * 1.02 + 1e-9


def test_a_meeting_that_is_not_known() -> None:
    join = next(n for n in bound(QUERIES["join"]).walk() if isinstance(n, Join))
    with pytest.raises(InternalError, match="by chance"):
        Meeting(join.left, join.right, join.how, join.condition, "by chance")


def test_only_spark_reads_how_sides_meet() -> None:
    join = next(n for n in bound(QUERIES["join"]).walk() if isinstance(n, Join))
    told = Meeting(join.left, join.right, join.how, join.condition, COPY_RIGHT)
    inputs = {scan.source: scan.name for scan in join.scans()}
    assert "/*+ BROADCAST(t1) */" in compile_query(told, SPARK, inputs)
    assert compile_query(told, LOCAL, inputs) == compile_query(join, LOCAL, inputs)


def test_what_is_larger_than_expected_is_left_to_spark() -> None:
    join = next(n for n in bound(QUERIES["join"]).walk() if isinstance(n, Join))
    small, large = {"r": 10**6, "t": 10**6}, {"r": 10**6, "t": 10**10}
    for meets, one_piece in ((COPY_RIGHT, False), (HASH_RIGHT, True)):
        told = Meeting(join.left, join.right, join.how, join.condition, meets)
        assert bearable(told, small, one_piece) is told
        assert bearable(told, large, one_piece) is join
    told = Meeting(join.left, join.right, join.how, join.condition, HASH_RIGHT)
    assert bearable(told, large, one_piece=False) is told
    assert bearable(join, large, one_piece=True) is join


def test_rows_are_not_spread_by_one_column_twice() -> None:
    text = "SELECT x.b FROM r x JOIN t z ON x.a = z.a AND x.a = z.c"
    spreads = {spread for _, spread in _met_by(bound(text))}
    assert spreads
    assert all(len(set(spread)) == len(spread) for spread in spreads)


# -- on Spark


@pytest.mark.spark
def test_pieces_hold_their_rows_however_these_were_exchanged_before(
    tmp_path: Path, spark: SparkSession
) -> None:
    """Groups are exchanged by their keys already, in as many pieces, which adaptive planning puts
    together: by the numbers of its tasks, rows were in other pieces than they are looked for in."""
    pieces, keys = 8, 50
    engine = SparkEngine(tmp_path, spark)
    adaptive = {
        "spark.sql.adaptive.enabled": "true",
        "spark.sql.shuffle.partitions": str(pieces),
        "spark.sql.adaptive.coalescePartitions.initialPartitionNum": str(pieces),
    }
    spread = Spread(("k",), pieces)
    with engine.statement([Overlay(adaptive)]):
        query = (
            f"SELECT k, count(*) AS n FROM (SELECT id % {keys} AS k FROM range(1000)) GROUP BY k"
        )
        engine.write(query, tmp_path / "written", spread=spread)
        found = {}
        for path in (tmp_path / "written").glob("*.parquet"):
            number = int(path.name.split("_")[1].split(".")[0])
            places = spark.read.parquet(str(path)).selectExpr(f"pmod(hash(k), {pieces}) AS p")
            found[number] = {row.p for row in places.collect()}
        assert len(found) > 2
        assert all(own == {number} for number, own in found.items())
        files = [str(path) for path in (tmp_path / "written").glob("*.parquet")]
        schema = (Field("k", BIGINT), Field("n", BIGINT))
        again = engine.read_paths(files, schema, weights=False, spread=spread)
        joined = (
            f"SELECT /*+ SHUFFLE_HASH(b) */ a.k FROM {again} a JOIN range({keys}) b ON a.k = b.id"
        )
        assert engine.table(joined).num_rows == keys


def history(db: slackwater.Warehouse) -> list[dict[str, int]]:
    """Three points at which rows have come."""
    db.sql("CREATE TABLE customers (id BIGINT, region STRING)")
    db.sql("CREATE TABLE orders (id BIGINT, customer BIGINT, amount BIGINT)")
    points = []
    for start in (0, 300, 400):
        ids = list(range(start, start + 100))
        regions = [f"r{i % 5}" for i in ids]
        db.append("customers", pa.table({"id": ids[:20], "region": regions[:20]}))
        places = [None if i % 13 == 0 else (i * 7) % 440 for i in ids]
        db.append("orders", pa.table({"id": ids, "customer": places, "amount": ids}))
        points.append(dict(versions(db._house)))
    return points


def stated(db: slackwater.Warehouse, text: str = TEXT) -> Problem:
    """As if there were a billion."""
    many = Change(inserts=1e8)
    return db.problem(
        text,
        {"customers": Arrival(1e8, (many, many)), "orders": Arrival(1e9, (many, many))},
        (0.1, 0.1, 1.0),
    )


def spread_by_chance(made: Plan, rng: random.Random) -> Plan:
    """All that it saves is spread by some column, in few pieces."""
    runs = []
    for run in made.runs:
        saves = []
        for saved in run.saves:
            names = [f.name for f in saved.relation.schema[:-1]]
            by = tuple(rng.sample(names, min(len(names), rng.randint(1, 2))))
            saves.append(replace(saved, by=by, pieces=rng.choice((2, 3, 8))))
        runs.append(replace(run, saves=tuple(saves)))
    other = replace(made)
    other.__dict__["runs"] = tuple(runs)
    return other


@pytest.mark.spark
def test_runs_that_are_told_how_rows_meet_give_what_the_query_gives(
    tmp_path: Path, spark: SparkSession
) -> None:
    with slackwater.connect(tmp_path / "w", placement="spark", spark=spark) as db:
        points = history(db)
        made = plan(stated(db), engines=("spark",))
        assert any(meetings(run) for run in made.runs)
        assert any(run.saves for run in made.runs)
        expected = recompute(db._house, made.problem.query).results[0]
        rng = random.Random(3)
        for one in (made, *(spread_by_chance(made, rng) for _ in range(4 if PROOF else 1))):
            played = play(db._house, one, points)
            assert compare(played.results[2], expected).equal


@pytest.mark.spark
def test_what_is_spread_is_not_exchanged_again(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    plans: list[str] = []
    real = SparkEngine.frame

    def watched(self: SparkEngine, sql: str) -> object:
        frame = real(self, sql)
        plans.append(frame._jdf.queryExecution().executedPlan().toString())
        return frame

    text = "SELECT o.id, o.amount, c.region FROM orders o JOIN customers c ON o.customer = c.id"
    with slackwater.connect(tmp_path / "w", placement="spark", spark=spark) as db:
        points = history(db)
        made = plan(stated(db, text), engines=("spark",))
        tables = {scan.name: scan for scan in made.problem.query.scans()}
        orders, customers = (
            Scan(f"{tables[name].source}@2", name, tables[name].fields)
            for name in ("orders", "customers")
        )
        at = [f.name for f in orders.fields].index("customer")
        kept = Saved("s0r2", zset.with_weight(orders), True, ("customer",), 4)
        condition = equal(kept.scan, customers, at, 0)
        later = Meeting(kept.scan, customers, "inner", condition, HASH_RIGHT)
        named = Project(later, columns(later.schema), tuple(f"x{i}" for i in range(later.width)))
        other = replace(made)
        steps = (RunSteps(0, (kept,), None), RunSteps(1, (), None), RunSteps(2, (), named))
        other.__dict__["runs"] = steps
        monkeypatch.setattr(SparkEngine, "frame", watched)
        monkeypatch.setattr("slackwater.engine.runner.suited", in_pieces)
        played = play(db._house, other, points)
        monkeypatch.undo()
        expected = db.sql("SELECT count(*) FROM orders o JOIN customers c ON o.customer = c.id")
        assert played.results[2].num_rows == expected.fetchall()[0][0]
    (last,) = [p for p in plans if "ShuffledHashJoin" in p]
    assert last.count("Exchange hashpartitioning") == 1  # of the customers
    assert "Bucketed: true" in last
