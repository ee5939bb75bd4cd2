"""Whatever way the memo offers to compute a relation: it is the same relation."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Sequence

import pytest

from slackwater.algebra.expr import columns, used_columns
from slackwater.algebra.relation import Aggregate, Join, Project, Relation, Scan, Union
from slackwater.engine.local import LocalEngine
from slackwater.planner.plan import METHODS, plan, rules_of
from slackwater.planner.problem import Arrival, Problem
from slackwater.planner.runs import unfold
from slackwater.stats.rows import Change
from slackwater.tvr import zset
from slackwater.tvr.eager import equal
from slackwater.tvr.extract import Extraction
from slackwater.tvr.memo import CHANGED, ROWS, SUMS, Member, Memo, Rewrite
from slackwater.tvr.rules import Operators
from tests.conftest import PROOF
from tests.equal_forms import BESIDE_ONE, NOT_BESIDE, ONCE, REWRITES, beside, twice
from tests.test_laws import QUERIES, SCHEMAS, bound, evaluate, random_tables, total

PLANS = 8 if PROOF else 3
"""Random plans of each query."""


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalEngine]:
    made = LocalEngine(tmp_path_factory.mktemp("memo"))
    yield made
    made.close()


def by_chance(memo: Memo, rng: random.Random) -> dict[int, Member]:
    """A member of every group such that none is computed from itself."""
    chosen: dict[int, Member] = {}
    done = {group.id for group in memo.groups() if group.stored}
    waiting = [group for group in memo.groups() if not group.stored]
    while waiting:
        rng.shuffle(waiting)
        left = []
        for group in waiting:
            ready = [m for m in group.members if all(memo.group(r).id in done for r in m.refs)]
            if ready and rng.random() < 0.6:
                chosen[group.id] = rng.choice(ready)
                done.add(group.id)
            else:
                left.append(group)
        waiting = left
    return chosen


@pytest.mark.parametrize("name", QUERIES)
def test_every_way_gives_the_same(name: str, engine: LocalEngine, rng: random.Random) -> None:
    check(bound(QUERIES[name]), (), engine, rng)


@pytest.mark.parametrize("name", list(QUERIES) if PROOF else list(QUERIES)[::3])
def test_every_way_gives_the_same_where_expressions_turn_out_to_be_one(
    name: str, engine: LocalEngine, rng: random.Random
) -> None:
    """Some expressions of a query are written in two ways, and what is above them is one, too."""
    node = twice(rng, bound(QUERIES[name]))
    memo = check(node, REWRITES, engine, rng)
    assert isinstance(node, Union)
    assert len({memo.known(part) for part in node.parts}) == 1


def check(node: Relation, more: Sequence[Rewrite], engine: LocalEngine, rng: random.Random) -> Memo:
    """Random plans give the same rows, and changes that lead from those before to those after."""
    given, changed = random_tables(rng)
    rules, rewrites = rules_of(METHODS)
    memo = Memo(changed, rules, [*rewrites, *more], pruned=rng.random() < 0.5)
    after, before = memo.ref(node, ROWS), memo.ref(node, ROWS, old=True)
    wanted = [after, before]
    if memo.changes(node):
        wanted.append(memo.ref(node, CHANGED))
    memo.explore(wanted)
    memo.check()
    new = old = None
    for _ in range(PLANS):
        plan = Extraction(memo, by_chance(memo, rng))
        found = total(evaluate(engine, zset.with_weight(plan.of(after)), given))
        held = total(evaluate(engine, zset.with_weight(plan.of(before)), given))
        new, old = (found, held) if new is None else (new, old)
        assert found == new
        assert held == old
        if memo.changes(node):
            followed = Counter(held)
            followed.update(total(evaluate(engine, plan.of(memo.ref(node, CHANGED)), given)))
            assert {row: n for row, n in followed.items() if n} == dict(found)
    return memo


# -- expressions that turn out to be one


def without_lookup(memo: Memo, form: Relation) -> Iterator[Relation]:
    """π(L ⟕ R) = π(L), where R has one row for each key and π reads nothing of it"""
    if not isinstance(form, Project) or not isinstance(form.input, Join):
        return
    join = form.input
    looked_up = {scan.source for scan in join.right.scans()} <= {"u"}
    if join.how == "left" and looked_up and max(used_columns(*form.exprs)) < join.left.width:
        yield form.replace(input=join.left)


LOOKUP = Rewrite("without_lookup", "", without_lookup, Operators((Project,)))


def stated(query: Relation) -> Problem:
    change = Change(inserts=1e5, deletes=1e3)
    arrivals = {table: Arrival(1e7, (change, change)) for table in SCHEMAS}
    return Problem(query, arrivals, (0.25, 0.5, 1.0))


def test_the_order_of_two_expressions_that_are_one_makes_no_difference() -> None:
    """The rule fired only where the one that it is about had come up first."""
    left = bound("SELECT r.a, t.c FROM r JOIN t ON r.a = t.a")
    right = Scan("u", "u", SCHEMAS["u"])
    row, other = columns(left.schema), columns(right.schema, left.width)
    plain = Project(left, row[:1], ("n",))
    looked_up = plain.replace(input=Join(left, right, "left", equal(row[0], other[0])))
    first, second = (
        plan(stated(Union(parts)), more=[LOOKUP])
        for parts in ((plain, looked_up), (looked_up, plain))
    )
    assert first.cost == pytest.approx(second.cost, rel=1e-12)
    assert first.cost < 0.9 * plan(stated(Union((plain, looked_up)))).cost
    for made in (first, second):
        made.memo.check()
        assert made.memo.fired[LOOKUP.name] > 0
        assert made.memo.known(plain) is made.memo.known(looked_up) is not None
        assert "Scan u" not in made.text()


def explored(node: Relation, changed: str, *rewrites: Rewrite) -> Memo:
    rules, known = rules_of(METHODS)
    memo = Memo(frozenset(changed), rules, [*known, *rewrites])
    memo.explore([memo.ref(node, ROWS), memo.ref(node, ROWS, old=True)])
    memo.check()
    return memo


def test_two_expressions_that_a_third_is_equal_to_are_one() -> None:
    """Both have groups by the time it comes up."""
    scan = Scan("r", "r", SCHEMAS["r"])
    one, other = beside(scan, "t"), beside(scan, "u")
    both = beside(one, "u")
    memo = explored(Union((one, other, both)), "rtu", BESIDE_ONE)
    assert memo.known(one) is memo.known(other) is memo.known(both)
    assert memo.known(one) is not memo.known(scan)


def test_what_is_above_expressions_that_are_one_is_one() -> None:
    query = bound("SELECT a, SUM(b) AS n FROM r WHERE s = 'x' GROUP BY a")
    below = query.inputs[0]
    other = query.replace(input=beside(below, "u"))
    unaware = explored(Union((query, other)), "r")
    assert unaware.known(query) is not unaware.known(other)
    memo = explored(Union((query, other)), "r", NOT_BESIDE)
    assert memo.known(query) is memo.known(other)


def test_what_is_equal_to_a_table_is_that_table() -> None:
    scan = Scan("r", "r", SCHEMAS["r"])
    memo = explored(beside(scan, "u"), "ru", NOT_BESIDE)
    found = memo.known(beside(scan, "u"))
    assert found is not None
    assert found.node is scan
    made = plan(stated(beside(scan, "u")), more=[NOT_BESIDE])
    assert "Scan u" not in made.text()


def test_what_does_not_change_in_one_form_does_not_change() -> None:
    """A table comes beside it, and changes; so no change is followed."""
    query = beside(bound("SELECT a, MAX(b) AS m FROM r GROUP BY a"), "u")
    memo = explored(query, "u", NOT_BESIDE)
    assert memo.ref(query, ROWS, old=True) is memo.ref(query, ROWS)
    own = {g.ref.trait.kind for g in memo.groups() if g.ref.tvr is memo.known(query)}
    assert ROWS in own
    assert CHANGED not in own


def test_sums_are_those_of_one_aggregate() -> None:
    """Two aggregates with the same rows may have counted others for them."""
    query = bound("SELECT a FROM r GROUP BY a").inputs[0]
    assert isinstance(query, Aggregate)
    double = query.replace(input=Union((query.input, query.input)))
    memo = explored(Union((query, double)), "r", ONCE)
    assert memo.known(query) is memo.known(double)
    sums = {group.ref.tvr.node for group in memo.groups() if group.ref.trait.kind == SUMS}
    assert sums == {query, double}


def test_a_result_has_the_names_of_the_query_whatever_form_it_is_computed_by() -> None:
    query = bound("SELECT r.a AS x, r.b AS y FROM r LEFT JOIN u ON r.a = u.b")
    other = bound("SELECT a, b FROM r")

    def apply(memo: Memo, form: Relation) -> Iterator[Relation]:
        """π(L ⟕ R) = π(L)"""
        if form is query:
            yield other

    made = plan(stated(query), more=[Rewrite("other", "", apply)])
    assert made.memo.known(query) is made.memo.known(other)
    results = [run.result for run in unfold(made.solution) if run.result is not None]
    assert [zset.names(result) for result in results] == [("x", "y")]
    assert {scan.name for scan in results[0].scans()}.isdisjoint({"u"})


@pytest.mark.parametrize("damage", ["columns", "unknown group", "no way"])
def test_a_memo_that_is_not_whole_is_told(damage: str) -> None:
    memo = explored(bound("SELECT r.a, t.c FROM r JOIN t ON r.a = t.a"), "r")
    group = next(g for g in memo.groups() if not g.stored and g.ref.trait.kind == ROWS)
    if damage == "columns":
        group.add(Member("narrow", "", Project(group.ref, columns(group.ref.schema)[:1], ("n",))))
    elif damage == "unknown group":
        elsewhere = Memo(frozenset(), []).ref(bound("SELECT a, c FROM t WHERE c = 77"), ROWS)
        group.add(Member("elsewhere", "", elsewhere))
    else:
        group.ways.clear()
    with pytest.raises(AssertionError):
        memo.check()
