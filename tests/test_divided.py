"""Joins divided: one side kept, the other, both or none; the same rows, and the cheapest choice."""

from __future__ import annotations

import random
from functools import partial

import pytest

from bench import corpus
from slackwater.algebra.relation import Relation, Scan
from slackwater.engine.local import LocalEngine
from slackwater.planner.budget import Kept, choose, frontier
from slackwater.planner.cutting import Scene
from slackwater.planner.outline import Outline
from slackwater.sql.bind import bind, context
from slackwater.stats.cost import Model
from slackwater.stats.rows import Change, Rows
from slackwater.stats.values import Ignorance
from slackwater.tvr.delta import Deltas
from slackwater.tvr.maintenance import Maintenance, keeping, maintenance
from slackwater.tvr.methods.divided import Injected, divisions, every_division
from slackwater.tvr.methods.higher_order import Part, parts, spread, whole_joins
from tests.budget_reference import by_all_subsets
from tests.conftest import PROOF, SEED
from tests.test_higher_order import QUERIES as JOINS
from tests.test_laws import (
    SCHEMAS,
    assert_equals_recompute,
    bound,
    change_states,
    chosen,
    engine,
    random_tables,
)

__all__ = ["engine"]
SIDES = {
    "two sides": "SELECT r.s, t.c FROM r JOIN t ON r.a = t.a WHERE r.b > 0 AND t.c > 0",
    "one side": "SELECT r.s, t.c FROM r JOIN t ON r.a = t.a WHERE t.c > 0",
    "the same side twice": "SELECT x.a FROM t x JOIN t y ON x.a = y.a WHERE x.c > 0 AND y.c > 0",
    "three sides": "SELECT r.s, u.d FROM r JOIN t ON r.a = t.a JOIN u ON t.c = u.c "
    "WHERE r.b > 0 AND t.a > 0 AND u.d > 0",
    "sums of sides": "SELECT r.a, SUM(u.d) AS n FROM r JOIN t ON r.a = t.a JOIN u ON t.c = u.c "
    "WHERE r.b > 0 AND u.d > 0 GROUP BY r.a",
    "a side and what is joined": "SELECT x.c, r.s FROM "
    "(SELECT t.a, u.c FROM t LEFT JOIN u ON t.c = u.c) x JOIN r ON x.a = r.a WHERE r.b > 0",
    "sides with a sum": "SELECT r.s, x.n, u.d FROM r JOIN (SELECT a, SUM(c) AS n FROM t "
    "WHERE c > 0 GROUP BY a) x ON r.a = x.a JOIN u ON u.b = x.a WHERE u.d > 0 AND r.b > 0",
    "below another join": "SELECT x.s, u.d FROM (SELECT r.b, r.s FROM r JOIN t ON r.a = t.a "
    "WHERE r.b > 0 AND t.c > 0) x LEFT JOIN u ON x.b = u.b",
}
ALL = {**SIDES, **JOINS}
TPCH = corpus.schemas("tpch")
SIZES = {
    "region": 5,
    "nation": 25,
    "supplier": 1e4,
    "customer": 1.5e5,
    "part": 2e5,
    "partsupp": 8e5,
    "orders": 1.5e6,
    "lineitem": 6e6,
}


def _id(node: Relation) -> str:
    return f"state_{node.digest()}"


def _plan(text: str) -> Maintenance:
    relation = bound(text)
    return Maintenance(relation, chosen(relation))


def _of_tpch(query: str) -> Maintenance:
    def lookup(table: str) -> Relation | None:
        return Scan(table, table, TPCH[table]) if table in TPCH else None

    text = corpus.queries("tpch")[query]
    relation = bind(text, context(lookup, lambda: list(TPCH), None))  # type: ignore[arg-type]
    return maintenance(relation, "view", relation.schema, _id)


def _every_part(root: Relation) -> set[Relation]:
    """Of all forms of its joins, and of those of their parts."""
    found: set[Relation] = set()
    for join in whole_joins(root):
        new = {part for form in every_division(join) for part in parts(form)} - found
        found |= new.union(*map(_every_part, new))
    return found


def _tables(part: Relation) -> str:
    return "".join(sorted(scan.source for scan in part.scans()))


def _forms(text: str, *middles: int, injected: Injected = Injected.ALL) -> list[list[str]]:
    """The tables of the parts of each form."""
    join = next(iter(whole_joins(bound(text))))
    return [sorted(map(_tables, parts(form))) for form in divisions(join, middles, injected)]


# -- forms


def test_a_side_is_a_part_where_a_condition_leaves_out_rows_of_it() -> None:
    assert _forms(SIDES["two sides"], 0, 1) == [["r", "t"]]  # around either, the same
    assert _forms(SIDES["one side"], 0, 1) == [["t"]]
    assert _forms("SELECT r.s, t.c FROM r JOIN t ON r.a = t.a", 0, 1) == []


def test_what_the_middle_holds_together_is_joined_or_stays_apart() -> None:
    assert _forms(SIDES["three sides"], 0) == [["r", "tu"], ["r", "t", "u"]]
    assert _forms(SIDES["three sides"], 1) == [["r", "t", "u"]]
    assert _forms(JOINS["chain"], 0, 2) == [["tu"], ["rt"]]  # the tables are stored


def test_what_operators_give_is_in_the_order_of_the_query() -> None:
    three = SIDES["three sides"]
    given = partial(_forms, injected=Injected.GIVEN)
    assert given(three, 0, 1, 2) == [["r", "t", "u"], ["rt", "u"]]
    assert _forms(three, 0, 1, 2) == [["r", "tu"], ["r", "t", "u"], ["rt", "u"]]
    assert _forms(three, 0, 1, 2, injected=Injected.NOTHING) == []


@pytest.mark.parametrize("name", ALL)
def test_a_form_has_the_columns_of_the_join(name: str) -> None:
    for join in whole_joins(bound(ALL[name])):
        for form in every_division(join):
            assert [(f.name, f.type) for f in form.schema] == [
                (f.name, f.type) for f in join.schema
            ]
            assert all(isinstance(part, Part) for part in parts(form))


# -- the same rows


@pytest.mark.parametrize("name", ALL)
def test_any_parts_give_the_same_change(name: str, engine: LocalEngine, rng: random.Random) -> None:
    plan = _plan(ALL[name])
    found = sorted(p.digest() for p in _every_part(plan.root))
    every = sorted({*found, *(n.digest() for n in plan.states)})
    kept = 0
    for turn in range(12 if PROOF else 6):
        wanted = every if turn == 0 else rng.sample(every, rng.randint(0, len(every)))
        few = keeping(plan, wanted, _id)
        assert {n.digest() for n in few.states} <= set(wanted)
        given, changed = random_tables(rng)
        deltas = Deltas(changed, frozenset(SCHEMAS), few.states, forms=few.forms)
        change_states(engine, deltas, given)
        assert_equals_recompute(engine, deltas, plan.root, given)
        kept += sum(isinstance(n, Part) for n in few.states)
    assert kept > 0 or not found


def test_both_sides_are_kept_where_both_are_wanted() -> None:
    plan = _plan(SIDES["two sides"])
    (join,) = whole_joins(plan.root)
    both = {p.digest() for form in every_division(join) for p in parts(form)}
    assert len(both) == 2
    for wanted in (set(), *({s} for s in both), both):
        few = keeping(plan, wanted, _id)
        assert {n.digest() for n in few.states} == wanted
        assert (join in few.forms) is bool(wanted)


# -- the choice


def _outline(
    plan: Maintenance, rows: dict[str, Rows], injected: Injected = Injected.ALL
) -> Outline:
    seconds = partial(Model().seconds, engine="local")
    return Outline(plan, Scene(rows, Ignorance(), seconds), injected=injected, least_seconds=0.0)


def _some_rows(rng: random.Random) -> dict[str, Rows]:
    def some(name: str) -> Rows:
        change = Change(inserts=rng.choice([0.0, 10.0, 1e4]), deletes=rng.choice([0.0, 10.0]))
        return Rows(rng.choice([1e4, 1e6, 1e7]), change)

    return {name: some(name) for name in SCHEMAS}


@pytest.mark.parametrize("name", SIDES)
def test_the_choice_is_the_best_of_all_subsets(name: str) -> None:
    rng = random.Random(f"{SEED}/{name}")
    for _ in range(6):
        outline = _outline(_plan(SIDES[name]), _some_rows(rng))
        root = outline.operator()
        sizes = {s: Kept(rng.randint(1, 9), rng.random() / 9) for s in outline.candidates}
        exact = frontier(root, sizes, most_points=None)
        for budget in (0, 4, 8, 12, 40):
            found = choose(exact, budget)
            assert found is not None
            assert found.cost == pytest.approx(by_all_subsets(root, sizes, budget))


@pytest.mark.parametrize("name", [*ALL, "q2", "q3", "q8", "q10"])
def test_what_is_chosen_is_what_is_kept(name: str) -> None:
    """Every set of states that has a price can be kept by a plan, parts within parts, too."""
    rng = random.Random(f"{SEED}/{name}")
    plan = _plan(ALL[name]) if name in ALL else _of_tpch(name)
    for _ in range(4):
        rows = _some_rows(rng)
        rows |= {n: Rows(s, Change(inserts=s * rng.choice([0, 0.01]))) for n, s in SIZES.items()}
        outline = _outline(plan, rows)
        root = outline.operator()
        sizes = {s: Kept(rng.random(), 0.0) for s in outline.candidates}
        for point in frontier(root, sizes):
            few = keeping(plan, point.states, _id)
            assert point.states <= {n.digest() for n in few.states}


@pytest.mark.parametrize(
    ("changing", "expected"), [("rt", ["r", "t"]), ("r", ["t"]), ("t", ["r"]), ("", [])]
)
def test_the_sides_are_kept_that_others_changes_meet(changing: str, expected: list[str]) -> None:
    """Where few rows are left of each: to read those of both tables is what the rest costs."""
    plan = _plan("SELECT r.s, t.c FROM r JOIN t ON r.a = t.a WHERE r.b = 1 AND t.c = 0")
    rows = {n: Rows(1e7, Change(inserts=10.0 * (n in changing))) for n in SCHEMAS}
    outline = _outline(plan, rows)
    root = outline.operator()
    sizes = {s: Kept(1.0) for s in outline.candidates}
    following = [p for p in frontier(root, sizes) if p.seconds[0] < float("inf")]
    best = min(following, key=lambda p: (p.seconds[0], p.bytes))
    kept = (outline.candidates[s].state.node for s in best.states)
    assert sorted(map(_tables, kept)) == expected


def _injected(changing: str) -> dict[Injected, set[str]]:
    """The tables of the parts of q3 to choose from where one changes."""
    plan, found = _of_tpch("q3"), {}
    rows = {n: Rows(s, Change(inserts=s / 100 * (n == changing))) for n, s in SIZES.items()}
    for injected in Injected:
        outline = _outline(plan, rows, injected)
        outline.operator()
        nodes = (c.state.node for c in outline.candidates.values())
        found[injected] = {_tables(node) for node in nodes if isinstance(node, Part)}
    return found


def test_what_may_be_injected_is_what_there_is_to_choose_from() -> None:
    """q3 joins customers with orders, and these with their lines."""
    single = {"customer", "orders", "lineitem"}
    assert _injected("lineitem") == {
        Injected.NOTHING: set(),
        Injected.GIVEN: {*single, "customerorders"},
        Injected.ALL: {*single, "customerorders"},
    }
    assert _injected("customer") == {
        Injected.NOTHING: set(),
        Injected.GIVEN: single,
        Injected.ALL: {*single, "lineitemorders"},
    }


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("u JOIN (SELECT r.s, t.c FROM r JOIN t ON r.a = t.a) x ON x.c = u.c", [(0, 1, 2), (1, 2)]),
        ("r JOIN t ON r.a = t.a JOIN u ON t.c = u.c", [(0, 1), (0, 1, 2)]),
        (
            "(SELECT t.c FROM r JOIN t ON r.a = t.a) x "
            "JOIN (SELECT t.c FROM r JOIN t ON r.a = t.a) u ON x.c = u.c",
            [(0, 1), (0, 1, 2, 3), (2, 3)],
        ),
    ],
)
def test_the_inputs_of_each_join_are_known(text: str, expected: list[tuple[int, ...]]) -> None:
    join = next(iter(whole_joins(bound(f"SELECT u.c FROM {text}"))))
    assert sorted(spread(join).joined) == expected
