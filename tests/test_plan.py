"""A planning problem stated in Python, and the plan for it; nothing is run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import inf

import pytest

from slackwater import Warehouse
from slackwater.algebra.relation import Join, Project, Relation, Scan
from slackwater.engine.compare import compare
from slackwater.errors import StateError, UserError
from slackwater.planner.costs import Seconds
from slackwater.planner.plan import METHODS, Plan, Speedups, plan
from slackwater.planner.problem import Arrival, Problem
from slackwater.planner.states import solve
from slackwater.planner.timeline import Timeline
from slackwater.stats.cost import Model
from slackwater.stats.rows import Change
from slackwater.tvr import explore
from slackwater.tvr.explore import FOLLOWING
from slackwater.tvr.memo import CHANGED, ROWS, WEIGHTED, Memo, Ref, Rule
from slackwater.tvr.rules import Operators
from slackwater.work.playing import play, recompute, versions
from tests.conftest import PROOF
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


@pytest.mark.parametrize("name", ["left", "three-way", "aggregate of outer join", "semi", "having"])
def test_without_any_method_no_change_is_followed(name: str) -> None:
    """Everything is computed in full, and that is open to every method."""
    node = bound(QUERIES[name])
    arrivals = {scan.source: Arrival(MANY, (Change(inserts=1000),)) for scan in node.scans()}
    problem = Problem(node, arrivals, (1.0, 1.0), due=frozenset({0, 1}), last_first=True)
    in_full = plan(problem, methods=())
    assert not in_full.methods() & {*METHODS, FOLLOWING}
    fired = set(in_full.memo.fired)
    assert fired
    assert not fired & {r.name for r in explore.RULES if r.method == FOLLOWING}
    for method in METHODS:
        alone = plan(problem, methods=(method,))
        assert alone.cost <= in_full.cost
        assert (FOLLOWING in alone.methods()) >= (alone.cost < in_full.cost)


@pytest.mark.parametrize("name", list(QUERIES) if PROOF else list(QUERIES)[1::3])
def test_pruning_loses_no_plan(name: str) -> None:
    """Ways that are left out are no better than others that are there, but for a little that
    keeping one relation after the other may miss."""
    node = bound(QUERIES[name])
    change = (Change(inserts=1000, deletes=100),)
    arrivals = {scan.source: Arrival(MANY, change) for scan in node.scans()}
    for prices in ((0.3, 1.0), (1.0, 1.0)):
        problem = Problem(node, arrivals, prices)
        pruned, every = plan(problem), plan(problem, speedups=Speedups(pruned=False))
        assert len(pruned.memo.groups()) <= len(every.memo.groups())
        assert pruned.cost <= every.cost * 1.01


def test_rows_of_changed_keys_of_a_projection_serve_with_weights_and_without() -> None:
    """What is left of an outer join's columns is computed once for both."""
    node = bound(
        "SELECT x.b, SUM(x.c) AS n FROM (SELECT r.b, t.c FROM r LEFT JOIN t ON r.a = t.a) x "
        "JOIN u ON x.b = u.b GROUP BY x.b"
    )
    arrivals = {s.source: Arrival(MANY, (Change(inserts=1000),)) for s in node.scans()}
    groups = plan(Problem(node, arrivals, (0.3, 1.0))).memo.groups()
    found = [
        {member.rule for member in group.members}
        for group in groups
        if group.ref.trait.kind == WEIGHTED
        and group.ref.trait.wanted is not None
        and isinstance(outer := group.ref.tvr.node, Project)
        and isinstance(outer.input, Join)
        and outer.input.how == "left"
    ]
    assert found
    assert all("with_weights" in rules for rules in found)


SMALL = ("left", "three-way", "aggregate of join", "aggregate of outer join", "semi", "having")


def _three_points(name: str, last_first: bool) -> Problem:
    node = bound(QUERIES[name])
    changes = (Change(inserts=3000, deletes=300), Change(inserts=1000, updates=100))
    arrivals = {scan.source: Arrival(MANY, changes) for scan in node.scans()}
    due = frozenset({0, 1, 2}) if last_first else frozenset[int]()
    return Problem(node, arrivals, (0.2, 0.3, 1.0), due, last_first)


@pytest.mark.parametrize("last_first", [False, True])
@pytest.mark.parametrize("name", SMALL)
def test_symmetry_loses_no_plan(name: str, last_first: bool) -> None:
    """What holds between two points holds between all."""
    problem = _three_points(name, last_first)
    fast, full = plan(problem), plan(problem, speedups=Speedups(symmetric=False))
    assert fast.cost == pytest.approx(full.cost, rel=1e-9)


@pytest.mark.parametrize("last_first", [False, True])
@pytest.mark.parametrize("name", SMALL)
def test_left_deep_merges_lose_little(name: str, last_first: bool) -> None:
    """Where changes are small, a run that is left out, and its change taken with the next, saves
    reading again what both are joined with. Left-deep merges take each change by itself."""
    problem = _three_points(name, last_first)
    fast, full = plan(problem), plan(problem, speedups=Speedups(left_deep=False))
    assert full.cost <= fast.cost * (1 + 1e-9)
    assert fast.cost <= full.cost * 1.12


@pytest.mark.parametrize("prices", [(0.3,) * 5 + (1.0,), (1.0, 0.9, 0.5, 0.5, 0.4, 1.0)])
@pytest.mark.parametrize("name", SMALL)
def test_work_that_does_not_wait_loses_little(name: str, prices: tuple[float, ...]) -> None:
    """Changes wait for the next run, for a cheaper one and for the result; for a run after the
    next of the same price they may wait when they are so small that the state costs more."""
    node = bound(QUERIES[name])
    changes = tuple(Change(inserts=1000, deletes=100) for _ in prices[1:])
    arrivals = {scan.source: Arrival(MANY, changes) for scan in node.scans()}
    problem = Problem(node, arrivals, prices)
    fast, full = plan(problem), plan(problem, speedups=Speedups(prompt=False))
    assert full.cost * (1 - 1e-9) <= fast.cost <= full.cost * 1.02


def test_work_waits_for_a_run_that_costs_less() -> None:
    """Whatever comes first is worked on where that is cheapest before the result is due."""
    made = plan(_problem((1.0, 1.0, 1.0, 0.1, 1.0)))
    assert made.by_run[3] > 0
    assert made.by_run[:3] == (0, 0, 0)


def test_without_symmetry_rules_fire_for_each_interval() -> None:
    problem = _problem((0.3, 0.3, 1.0))
    once, each = plan(problem), plan(problem, speedups=Speedups(symmetric=False))
    assert len(each.memos) == 2
    assert sum(memo.fired.total() for memo in each.memos) == 2 * once.memo.fired.total()


def test_changes_may_be_put_together() -> None:
    """Without left-deep merges, the change over two intervals is one of the relations."""
    made = plan(_problem((0.3, 0.3, 1.0)), speedups=Speedups(left_deep=False))
    spans = {(t.start, t.end) for t in made.solution.graph.nodes}
    assert (0, 2) in spans
    rules = {way.member.rule for ways in made.solution.graph.ways for way in ways}
    assert "put_together" in rules


def test_an_input_of_which_no_column_is_read_is_joined_as_it_is() -> None:
    node = bound("SELECT r.b, COUNT(*) AS n FROM r CROSS JOIN t GROUP BY r.b")
    arrivals = {s.source: Arrival(MANY, (Change(inserts=1000),)) for s in node.scans()}
    assert plan(Problem(node, arrivals, (0.3, 1.0))).cost > 0


# -- where rules apply


def test_a_rule_is_asked_only_where_its_pattern_fits() -> None:
    asked = set()

    def watching(memo: Memo, ref: Ref, form: Relation) -> Iterator[Relation]:
        """Gives nothing"""
        asked.add((type(form), ref.trait.kind, ref.trait.wanted is None))
        return iter(())

    joins = Operators((Join,), joins=("inner",))
    plan(_problem(), more=[Rule("watching", "ours", (CHANGED,), watching, joins, False)])
    assert asked == {(Join, CHANGED, True)}
    asked.clear()
    plan(_problem(), more=[Rule("watching", "ours", (ROWS, CHANGED), watching)])
    assert {kind for kind, _, _ in asked} > {Join, Scan}
    asked.clear()
    left = Operators((Join,), joins=("left",))
    plan(_problem(), more=[Rule("watching", "ours", (ROWS, CHANGED), watching, left)])
    assert not asked


def test_what_each_rule_gave_is_counted() -> None:
    fired = plan(_problem()).memo.fired
    assert fired["merge"] > 0
    assert fired["laws_of_outer_joins"] == 0


def test_a_method_that_is_not_known() -> None:
    with pytest.raises(UserError) as refused:
        plan(_problem(), methods=("im3",))
    assert refused.value.code == "BAD_METHOD"


def test_plans_are_values() -> None:
    assert isinstance(plan(_problem()), Plan)


# -- problems over a warehouse


def test_a_problem_over_a_warehouse_has_its_rows(db: Warehouse) -> None:
    db.sql("CREATE TABLE r (k BIGINT, a BIGINT); CREATE TABLE s (k BIGINT, b BIGINT)")
    db.sql("INSERT INTO r VALUES (1, 10), (2, 20), (3, 30); INSERT INTO s VALUES (1, 5)")
    db.sql("CREATE MATERIALIZED VIEW v AS SELECT r.a, s.b FROM r JOIN s ON r.k = s.k")
    found = db.problem("v", {"r": [Change(inserts=7)]})
    by_name = {scan.name: found.arrivals[scan.source] for scan in found.query.scans()}
    assert by_name == {"r": Arrival(3, (Change(inserts=7),)), "s": Arrival(1, (Change(),))}
    assert plan(found).cost > 0


def test_rows_may_be_others_than_there_are(db: Warehouse) -> None:
    db.sql("CREATE TABLE r (k BIGINT)")
    arrival = Arrival(MANY, (Change(inserts=1),))
    found = db.problem("SELECT k, COUNT(*) FROM r GROUP BY k", {"r": arrival})
    assert list(found.arrivals.values()) == [arrival]


NOTED = "SELECT c.seg, SUM(o.amount) AS total FROM o JOIN c ON o.cust = c.id GROUP BY c.seg"


@pytest.fixture
def noted(db: Warehouse) -> Warehouse:
    db.sql("CREATE TABLE c (id BIGINT, seg STRING, note STRING)")
    db.sql("CREATE TABLE o (cust BIGINT, amount BIGINT)")
    db.sql("INSERT INTO c VALUES (1, 'a', 'x'), (2, 'b', 'x'); INSERT INTO o VALUES (1, 5), (2, 7)")
    return db


def noted_problem(db: Warehouse, *updated: str) -> Problem:
    """Customers of whom some columns are updated, and new orders."""
    changes = {
        "c": Arrival(MANY, (Change(updates=MANY / 2),), frozenset(updated)),
        "o": Arrival(MANY, (Change(inserts=MANY / 100),)),
    }
    return db.problem(NOTED, changes, due=(0, 1), last_first=True)


def test_updates_of_columns_that_nobody_reads_change_nothing(noted: Warehouse) -> None:
    unread, read = noted_problem(noted, "note"), noted_problem(noted, "note", "seg")
    assert len(unread.changed) == 1
    assert len(read.changed) == 2
    assert plan(unread).cost < plan(read).cost / 1.5


def test_columns_to_update_are_known(noted: Warehouse) -> None:
    with pytest.raises(UserError) as refused:
        noted_problem(noted, "nite")
    assert refused.value.code == "UNKNOWN_COLUMN"
    assert "note" in str(refused.value.hint)


def test_what_a_plan_takes_for_unchanged_is_looked_at(noted: Warehouse) -> None:
    made, points = plan(noted_problem(noted, "note")), [versions(noted._house)]
    noted.sql("UPDATE c SET note = 'y'; INSERT INTO o VALUES (2, 9), (3, 1)")
    points.append(versions(noted._house))
    expected = recompute(noted._house, made.problem.query).results[0]
    assert compare(play(noted._house, made, points).results[1], expected).equal
    noted.sql("UPDATE c SET seg = 'z' WHERE id = 1")
    points[-1] = versions(noted._house)
    with pytest.raises(StateError) as refused:
        play(noted._house, made, points)
    assert refused.value.code == "UNEXPECTED_CHANGE"


@pytest.mark.parametrize(
    ("query", "changes", "code"),
    [
        ("SELECT k FROM r", {"nowhere": [Change()]}, "UNKNOWN_TABLE"),
        ("SELECT k FROM r", {"s": [Change()]}, "BAD_PROBLEM"),
        ("SELECT k FROM r", {"r": []}, "BAD_PROBLEM"),
        ("SELECT x FROM r", {}, "UNKNOWN_COLUMN"),
        ("r", {}, "UNKNOWN_VIEW"),
    ],
)
def test_a_problem_that_cannot_be_stated(
    query: str, changes: dict[str, list[Change]], code: str, db: Warehouse
) -> None:
    db.sql("CREATE TABLE r (k BIGINT); CREATE TABLE s (k BIGINT)")
    with pytest.raises(UserError) as refused:
        db.problem(query, changes)
    assert refused.value.code == code


def test_a_rule_of_ones_own_takes_part() -> None:
    """Somebody else keeps the join, so its rows need not be computed."""

    def kept_elsewhere(memo: Memo, ref: Ref, form: Relation) -> Iterator[Relation]:
        """R ⋈ T is what table `joined` holds"""
        if isinstance(form, Join) and ref.trait.wanted is None:
            yield memo.ref(Scan("joined", "joined", form.schema), ROWS, ref.trait.old)

    joined = Arrival(MANY / 2, (Change(inserts=MANY / 2),))
    problem = _problem()
    problem = replace(problem, arrivals={**problem.arrivals, "joined": joined})
    made = plan(problem, more=[Rule("kept_elsewhere", "ours", (ROWS,), kept_elsewhere)])
    made.memo.check()
    assert "ours" in made.methods()
    assert "Scan joined" in made.text()
    assert made.cost < plan(problem).cost


def test_what_is_kept_always_can_be_computed_in_its_run_however_late() -> None:
    """Work that does not wait left a relation without any way that was to be kept later."""
    problem = _problem((0.3, 0.3, 0.3, 0.3, 1.0))
    memo = plan(problem).memo
    timeline = Timeline(memo, problem)
    result = memo.ref(problem.query, ROWS)
    first, last = timeline.timed(result, 0, 1), timeline.timed(result, 3, 4)
    made = solve(timeline, Seconds(Model()), {4: last}, [(first, 3)])
    assert made.cost < inf
    assert made.steps()[made.graph.numbers[first], 3].way is not None
