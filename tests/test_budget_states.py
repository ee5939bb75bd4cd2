"""Every subset of a view's states, joined parts included, gives the same change."""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import partial

import pytest

from slackwater.algebra.relation import Join, Relation
from slackwater.engine.local import LocalEngine
from slackwater.planner.budget import Kept, frontier
from slackwater.planner.cutting import Scene
from slackwater.planner.outline import Outline
from slackwater.stats.cost import Model
from slackwater.stats.rows import Change, Rows
from slackwater.stats.values import Ignorance
from slackwater.tvr.delta import Deltas
from slackwater.tvr.maintenance import Maintenance, is_repeatable, keeping
from slackwater.tvr.methods.higher_order import Part, around, parts, spread, whole_joins
from slackwater.tvr.states.rows import RowState
from tests.test_higher_order import QUERIES as JOINS
from tests.test_laws import (
    QUERIES,
    SCHEMAS,
    assert_equals_recompute,
    bound,
    change_states,
    chosen,
    random_tables,
)

FEW = ("aggregate of aggregate", "top of aggregate", "rollup", "count distinct", "window over all")
ALL = {**JOINS, **{name: QUERIES[name] for name in FEW}}
ROWS = {name: Rows(1e5, Change(inserts=1e3)) for name in SCHEMAS}


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalEngine]:
    made = LocalEngine(tmp_path_factory.mktemp("budget"))
    yield made
    made.close()


def _parts(join: Join) -> Iterator[Relation]:
    """The parts around every input, and those within them."""
    for pivot in range(len(spread(join).inner.inputs)):
        form = around(join, pivot)
        for part in parts(form) if form is not None else ():
            yield part
            for below in whole_joins(part):
                yield from _parts(below)


def _id(node: Relation) -> str:
    return f"state_{node.digest()}"


def _plan(text: str) -> Maintenance:
    relation = bound(text)
    return Maintenance(relation, chosen(relation))


@pytest.mark.parametrize("name", ALL)
def test_any_states_give_the_same_change(
    name: str, engine: LocalEngine, rng: random.Random
) -> None:
    plan = _plan(ALL[name])
    found = [p for join in whole_joins(plan.root) for p in _parts(join)]
    every = sorted({n.digest() for n in (*plan.states, *found)})
    nested = 0
    for _ in range(12):
        wanted = rng.sample(every, rng.randint(0, len(every)))
        few = keeping(plan, wanted, _id)
        assert {n.digest() for n in few.states} <= set(wanted)
        given, changed = random_tables(rng)
        deltas = Deltas(changed, frozenset(SCHEMAS), few.states, forms=few.forms)
        change_states(engine, deltas, given)
        assert_equals_recompute(engine, deltas, plan.root, given)
        nested += sum(isinstance(n, Part) for n in few.states)
    assert nested > 0 or not found


@pytest.mark.parametrize("name", [*JOINS, *QUERIES])
def test_every_query_has_an_outline_of_costs(name: str) -> None:
    """With all states there is a way to follow changes; without any, to compute anew."""
    plan = _plan({**QUERIES, **JOINS}[name])
    model = Model()
    seconds = partial(model.seconds, engine="local")
    outline = Outline(plan, Scene(ROWS, Ignorance(), seconds), least_seconds=0.0)
    root = outline.operator()
    sizes = {s: Kept(c.rows, c.build_seconds) for s, c in outline.candidates.items()}
    points = frontier(root, sizes)
    assert points[0].states == frozenset() or points[0].bytes == 0
    assert points[0].seconds[1] > 0
    assert min(p.seconds[0] for p in points) < float("inf")
    kept = keeping(plan, outline.candidates, _id)
    assert {n.digest() for n in plan.states} <= outline.candidates.keys()
    assert {n.digest() for n in kept.states if not isinstance(n, Part)} == {
        n.digest() for n in plan.states
    }


def test_what_cannot_be_computed_again_is_not_dropped() -> None:
    repeatable = {
        "SELECT a, SUM(b) AS n FROM r GROUP BY a": True,
        "SELECT a, AVG(b) AS n FROM r GROUP BY a": False,  # a double
        "SELECT a, MAX(s) AS n FROM r GROUP BY a": True,
        "SELECT a, STDDEV(b) AS n FROM r GROUP BY a": False,
        "SELECT a, COUNT(*) OVER () AS n FROM r": True,
        "SELECT a FROM r ORDER BY a LIMIT 3": True,
    }
    for text, expected in repeatable.items():
        plan = _plan(text)
        (node,) = plan.states
        assert is_repeatable(node) is expected, text


def test_the_views_own_rows_serve_its_topmost_operator() -> None:
    relation = bound("SELECT a, SUM(b) AS n FROM r GROUP BY a")
    own = RowState(relation, "view", ("a", "n"))
    plan = keeping(Maintenance(relation, chosen(relation), own=own), (), _id)
    assert plan.states == {relation: own}
    assert plan.kept == ()
    assert plan.root_is_kept
