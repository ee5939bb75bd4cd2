"""Sums below inner joins: when a plan takes them, what it keeps of them, and what is not moved."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from slackwater import Warehouse
from slackwater.algebra.relation import Aggregate, Relation
from slackwater.engine.compare import compare
from slackwater.engine.local import LocalEngine
from slackwater.errors import UserError
from slackwater.planner.plan import METHODS, Plan, plan, rules_of
from slackwater.planner.problem import Arrival, Problem
from slackwater.planner.runs import unfold
from slackwater.stats.rows import Change
from slackwater.stats.values import Ignorance, Values
from slackwater.tvr.extract import Extraction
from slackwater.tvr.memo import ROWS, SUMS, SUMS_CHANGED, Memo, Ref
from slackwater.tvr.time import NOW
from slackwater.work.playing import play, recompute, versions
from tests.test_laws import SCHEMAS, bound, engine, evaluate, log, random_tables
from tests.test_memo import by_chance

__all__ = ["engine"]
RULE = "sums_below_joins"
EXTREMA = "extrema_below_joins"
LINES = 1_000_000.0

# lines of orders (r), orders (t), and what is known of orders (u)
BY_ORDER = "SELECT t.c, SUM(r.b) AS n, COUNT(*) AS k FROM r JOIN t ON r.a = t.a GROUP BY t.c"
LARGEST = "SELECT t.c, MAX(r.b) AS n, COUNT(*) AS k FROM r JOIN t ON r.a = t.a GROUP BY t.c"
BY_NATION = """
    SELECT u.d, SUM(r.b) AS n FROM r JOIN t ON r.a = t.a JOIN u ON t.c = u.c GROUP BY u.d
"""


class Some(Ignorance):
    """Of some columns it is known how many values they take."""

    def __init__(self, **values: float) -> None:
        self._values = values

    def values(self, source: str, column: str) -> Values | None:
        found = self._values.get(f"{source}_{column}")
        return None if found is None else Values(found)


def stated(query: str, lines_per_order: float, **more: object) -> Problem:
    """Lines arrive, for orders that are there."""
    orders = LINES / lines_per_order
    grows = Arrival(LINES / 2, (Change(inserts=LINES / 2),))
    arrivals = {
        "r": grows,
        "t": Arrival(orders, (Change(),)),
        "u": Arrival(1000.0, (Change(),)),
    }
    known = Some(r_a=orders, t_a=orders, t_c=1000.0, u_c=1000.0, u_d=25.0)
    return Problem(bound(query), arrivals, (0.5, 1.0), known=known, **more)  # type: ignore[arg-type]


def taken(made: Plan) -> list[int]:
    """The runs in which sums are taken below a join."""
    ways = ((run, step.way) for run, _, step in made.steps())
    return [run for run, way in ways if way is not None and way.member.rule == RULE]


@pytest.mark.parametrize("query", [BY_ORDER, BY_NATION])
def test_what_has_many_rows_for_each_key_is_summed_up_before_it_is_joined(query: str) -> None:
    asked = stated(query, lines_per_order=50)
    made, without = plan(asked), plan(asked, without=[RULE])
    assert taken(made)
    assert not taken(without)
    assert made.cost < without.cost
    made.memo.check()


def grouped_lines(made: Plan) -> bool:
    """Does the plan group lines by their order alone?"""
    nodes = (step.way.member.relation for _, _, step in made.steps() if step.way is not None)
    by = [r.tvr.node for n in nodes for r in n.walk() if isinstance(r, Ref)]
    return any(isinstance(n, Aggregate) and {s.source for s in n.scans()} == {"r"} for n in by)


def test_extrema_of_many_rows_for_each_key_are_found_before_they_are_joined() -> None:
    many, one = stated(LARGEST, lines_per_order=50), stated(LARGEST, lines_per_order=1)
    assert grouped_lines(plan(many))
    assert plan(many).cost < plan(many, without=[EXTREMA]).cost
    assert not plan(one).memo.fired[EXTREMA]
    plan(many).memo.check()


@pytest.mark.parametrize("query", [BY_ORDER, BY_NATION])
def test_what_has_one_row_for_each_key_is_joined_as_it_is(query: str) -> None:
    asked = stated(query, lines_per_order=1)
    made = plan(asked)
    assert not taken(made)
    assert made.cost == plan(asked, without=[RULE]).cost


def summed(memo: Memo, kind: str) -> set[frozenset[str]]:
    """The sources of relations of which partial sums are used below joins."""
    refs = {
        ref
        for group in memo.groups()
        for member in group.members
        if member.rule == RULE
        for ref in member.refs
        if ref.trait.kind == kind
    }
    return {frozenset(scan.source for scan in ref.tvr.node.scans()) for ref in refs}


def explored(query: str, changed: str) -> Memo:
    memo = Memo(frozenset(changed), *rules_of(METHODS))
    memo.explore([memo.ref(bound(query), ROWS), memo.ref(bound(query), ROWS, old=True)])
    memo.check()
    return memo


def test_one_side_or_both_are_summed_up_and_their_changes() -> None:
    memo = explored(BY_ORDER, "rt")
    assert summed(memo, SUMS) == summed(memo, SUMS_CHANGED) == {frozenset("r"), frozenset("t")}


def test_what_a_change_is_joined_with_is_summed_up_joined_already() -> None:
    """The products of partial sums that higher-order maintenance keeps."""
    memo = explored(BY_NATION, "r")
    assert frozenset("tu") in summed(memo, SUMS)
    assert summed(memo, SUMS_CHANGED) == {frozenset("r")}


def test_partial_sums_are_kept_for_what_they_are_joined_with_later() -> None:
    """Lines are there before their orders: they are summed up while that is cheap."""
    asked = stated(BY_ORDER, lines_per_order=50)
    late = {
        "r": Arrival(LINES, (Change(),)),
        "t": Arrival(0.0, (Change(inserts=LINES / 50),)),
    }
    asked = Problem(asked.query, late, (0.1, 1.0), known=asked.known)
    made = plan(asked)
    assert 1 in taken(made)
    (first, last) = unfold(made.solution)
    assert [r.name for saved in first.saves for r in saved.relation.scans()] == ["r"]
    (saved,) = first.saves
    assert any(isinstance(node, Aggregate) for node in saved.relation.walk())
    assert last.result is not None
    assert {scan.name for scan in last.result.scans()} == {saved.name, "t"}


def sums_of(memo: Memo, source: str) -> list[Aggregate]:
    """The aggregates of a source alone that are put below joins."""
    nodes = {g.ref.tvr.node for g in memo.groups() if g.ref.trait.kind == SUMS}
    return [
        node
        for node in nodes
        if isinstance(node, Aggregate) and {s.source for s in node.scans()} == {source}
    ]


@pytest.mark.parametrize(
    "value", ["CAST(r.s AS INT)", "r.a * r.b", "CAST(r.b AS DECIMAL(35, 2))"], ids=str
)
def test_what_may_raise_or_has_no_room_is_not_summed_up_below(value: str) -> None:
    memo = explored(f"SELECT t.c, SUM({value}) AS n FROM r JOIN t ON r.a = t.a GROUP BY t.c", "rt")
    assert all(not node.aggs for node in sums_of(memo, "r"))


@pytest.mark.parametrize(
    ("aggregate", "fired"),
    [
        ("MAX(r.b)", 3),
        ("MIN(r.s)", 3),
        ("MAX(CAST(r.b AS DOUBLE))", 3),
        ("MAX(r.b), SUM(CAST(r.b AS DOUBLE))", 0),
        ("MAX(r.b), STDDEV_POP(r.b)", 0),
        ("SUM(r.b)", 0),
    ],
)
def test_extrema_go_below_where_all_that_is_asked_can(aggregate: str, fired: int) -> None:
    """Of one side, of the other, of both."""
    query = f"SELECT t.c, {aggregate} AS n FROM r JOIN t ON r.a = t.a GROUP BY t.c"
    query = query.replace(", S", " AS m, S")
    assert explored(query, "rt").fired[EXTREMA] == fired


def test_sums_of_doubles_stay_where_they_are() -> None:
    memo = explored(
        "SELECT t.c, SUM(CAST(r.b AS DOUBLE)) AS n FROM r JOIN t USING (a) GROUP BY t.c", "rt"
    )
    assert not memo.fired[RULE]


def test_values_without_a_partner_are_not_looked_at(
    engine: LocalEngine, rng: random.Random
) -> None:
    """A text that is no number stands in a row that the join drops."""
    query = bound("SELECT t.c, SUM(CAST(r.s AS INT)) AS n FROM r JOIN t ON r.a = t.a GROUP BY t.c")
    given, _ = random_tables(rng)
    given["r" + NOW] = log(Counter({(1, 1, "7"): 3, (2, 1, "none"): 1}), SCHEMAS["r"])
    given["t" + NOW] = log(Counter({(1, 5): 2, (3, 5): 1}), SCHEMAS["t"])
    for changed in ("r", "t"):
        for time in ("@old", "@new"):
            given[changed + time] = given[changed + NOW]
        given[changed + "@change"] = log(Counter(), SCHEMAS[changed])
    memo = Memo(frozenset("rt"), *rules_of(METHODS))
    wanted: Ref = memo.ref(query, ROWS)
    memo.explore([wanted])
    for _ in range(6):
        found: Relation = Extraction(memo, by_chance(memo, rng)).of(wanted)
        assert evaluate(engine, found, given) == Counter({(5, 42): 1})


@pytest.mark.parametrize("aggregates", ["MAX(r.b) AS m", "MAX(r.b) AS m, COUNT(*) AS n"])
def test_without_keys_there_is_no_group_of_no_rows(
    aggregates: str, engine: LocalEngine, rng: random.Random
) -> None:
    """A cross join with nothing is nothing, though the largest of nothing is a row."""
    query = bound(f"SELECT t.c, {aggregates} FROM t CROSS JOIN r GROUP BY t.c")
    given, _ = random_tables(rng)
    for changed, rows in (("r", Counter()), ("t", Counter({(1, 5): 2, (3, 6): 1}))):
        for time in (NOW, "@old", "@new", "@change"):
            given[changed + time] = log(rows if time != "@change" else Counter(), SCHEMAS[changed])
    memo = Memo(frozenset("rt"), *rules_of(()))
    wanted: Ref = memo.ref(query, ROWS)
    memo.explore([wanted])
    for _ in range(60):
        found: Relation = Extraction(memo, by_chance(memo, rng)).of(wanted)
        assert evaluate(engine, found, given) == Counter()


def test_plans_with_early_sums_give_what_the_query_does(any_db: Warehouse) -> None:
    """Through the warehouse: what is saved is written, and read by the next run."""
    db = any_db
    db.sql("CREATE TABLE o (k BIGINT, seg STRING); CREATE TABLE l (k BIGINT, v DECIMAL(7, 2))")
    db.sql("INSERT INTO o VALUES (1, 'a'), (2, 'b'), (3, NULL), (NULL, 'c')")
    db.sql("INSERT INTO l VALUES (1, 1.5), (1, 2.5), (2, NULL), (2, 4), (9, 7), (NULL, 8)")
    text = """
        SELECT o.seg, SUM(l.v) AS n, AVG(l.v) AS m, COUNT(l.v) AS k, {} AS x
        FROM l JOIN o ON l.k = o.k GROUP BY o.seg
    """
    for last, rule in (("COUNT(*)", RULE), ("MAX(l.v)", EXTREMA)):
        arrivals = {
            "o": Arrival(LINES / 10, (Change(updates=LINES / 20),)),
            "l": Arrival(LINES, (Change(inserts=100.0),)),
        }
        asked = db.problem(text.format(last), arrivals, due=(0, 1), last_first=True)
        made, points = plan(asked), [versions(db._house)]
        assert made.memo.fired[rule]
        assert made.cost < plan(asked, without=[RULE, EXTREMA]).cost
        first = recompute(db._house, asked.query).results[0]
        db.sql("UPDATE o SET seg = 'z' WHERE k < 3; INSERT INTO l VALUES (3, 5), (2, -4), (1, 9)")
        points.append(versions(db._house))
        results = play(db._house, made, points).results
        assert compare(results[0], first).equal
        assert compare(results[1], recompute(db._house, asked.query).results[0]).equal


def test_a_rule_to_leave_out_is_one_of_those_there_are() -> None:
    with pytest.raises(UserError, match="sums_above"):
        plan(stated(BY_ORDER, 50), without=["sums_above"])
