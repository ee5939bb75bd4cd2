"""States under a budget: the frontier answers as the table of the thesis and all subsets do."""

from __future__ import annotations

import random
from math import inf

import pytest

from slackwater.planner.budget import (
    CHANGE,
    ROWS,
    Action,
    Kept,
    Operator,
    Point,
    Way,
    best,
    choose,
    frontier,
    thinned,
)
from tests.budget_reference import Grid, by_all_subsets, random_tree
from tests.conftest import SEED

BUDGET = 12


def _least(root: Operator, kept: dict[str, Kept], budget: float, most: int | None = None) -> float:
    found = choose(frontier(root, kept, budget, most), budget)
    return inf if found is None else found.cost


@pytest.mark.parametrize("number", range(60))
def test_the_frontier_answers_as_the_table_and_as_all_subsets(number: int) -> None:
    root, kept = random_tree(f"{SEED}-{number}")
    grid = Grid(kept)
    exact = frontier(root, kept, most_points=None)
    for budget in range(BUDGET + 1):
        expected = by_all_subsets(root, kept, budget)
        chosen = choose(exact, budget)
        assert chosen is not None  # nothing kept always fits
        assert chosen.cost == pytest.approx(expected)
        assert grid.cost(root, budget) == pytest.approx(expected)
        assert sum(kept[s].bytes for s in chosen.states) == pytest.approx(chosen.bytes)
        assert chosen.bytes <= budget


@pytest.mark.parametrize("number", range(60))
def test_a_thinned_frontier_is_near(number: int) -> None:
    """It never costs more than keeping nothing, nor less than the best."""
    root, kept = random_tree(f"{SEED}-{number}")
    nothing = by_all_subsets(root, kept, 0)
    for budget in (0, 3, 6, BUDGET, inf):
        found, least = _least(root, kept, budget, 16), by_all_subsets(root, kept, budget)
        assert least <= found + 1e-9
        assert found <= nothing + 1e-9
        assert found <= 1.25 * least + 1e-9


@pytest.mark.parametrize("number", range(30))
def test_costs_never_grow_with_the_budget(number: int) -> None:
    """On which the search by halves relies; it computes no more than the whole table."""
    root, kept = random_tree(f"{SEED}-{number}")
    for ask in (CHANGE, ROWS):
        halves, plain = Grid(kept), Grid(kept)
        found = halves.whole(root, ask, BUDGET)
        assert found == sorted(found, reverse=True)
        assert found == [plain.of(root, ask, m) for m in range(BUDGET + 1)]
        assert halves.computed <= plain.computed


def _aggregate_of_join() -> tuple[Operator, dict[str, Kept]]:
    """Sums over a large table joined with another, as two operators."""
    large = Operator("large", (Action((), (), Way(0.01), Way(5.0)),))
    small = Operator("small", (Action((), (), None, Way(0.5)),))  # does not change
    joined = Operator(
        "join",
        (
            Action((), (large, small), Way(0.1, (CHANGE, ROWS)), Way(4.0, (ROWS, ROWS))),
            Action(("small side",), (large, small), Way(0.1, (CHANGE, 0)), Way(4.0, (ROWS, 0))),
        ),
    )
    root = Operator(
        "sums",
        (
            Action((), (joined,), Way(2.0, (ROWS,)), Way(2.0, (ROWS,))),
            Action(("sums",), (joined,), Way(0.02, (CHANGE,)), Way(0.03, (CHANGE,))),
        ),
    )
    return root, {"sums": Kept(10), "small side": Kept(100)}


def test_what_helps_most_is_kept_first() -> None:
    root, kept = _aggregate_of_join()
    points = frontier(root, kept)
    assert [sorted(p.states) for p in points if p.cost < 11] == [["sums"], ["small side", "sums"]]
    kept_by_budget = {b: choose(points, b) for b in (0, 9, 10, 109, 110)}
    assert {b: sorted(p.states) for b, p in kept_by_budget.items() if p} == {
        0: [],
        9: [],
        10: ["sums"],
        109: ["sums"],
        110: ["small side", "sums"],
    }


def test_a_state_that_costs_more_to_have_than_it_saves_is_not_kept() -> None:
    root, kept = _aggregate_of_join()
    dear = kept | {"small side": Kept(100, seconds=0.6)}
    chosen = choose(frontier(root, dear), inf)
    assert chosen is not None
    assert chosen.states == {"sums"}


def test_what_two_operators_keep_takes_its_room_once() -> None:
    table = Operator("table", (Action((), (), Way(1.0), Way(9.0)),))
    once = Operator("once", (Action(("s",), (table,), Way(0.1, (CHANGE,)), Way(0.2, (CHANGE,))),))
    both = Operator("both", (Action((), (once, once), Way(0.0, (CHANGE, ROWS)), None),))
    (point,) = frontier(both, {"s": Kept(7)})
    assert point.bytes == 7


def test_what_cannot_follow_changes_is_computed_anew_where_nothing_fits() -> None:
    table = Operator("table", (Action((), (), Way(0.1), Way(3.0)),))
    root = Operator(
        "sum of doubles",
        (
            Action((), (table,), None, Way(1.0, (ROWS,))),
            Action(("rows",), (table,), Way(0.1, (ROWS,)), Way(0.2, (ROWS,))),
        ),
    )
    points = frontier(root, {"rows": Kept(5)})
    chosen = choose(points, 4)
    assert chosen is not None
    assert (chosen.seconds[0], chosen.cost) == (inf, 4.0)


def test_thinning_keeps_the_smallest_and_the_best_of_each() -> None:
    rng = random.Random(SEED)
    many = best(Point(rng.random(), (rng.random(), rng.random(), rng.random())) for _ in range(500))
    few = thinned(many, 8)
    assert len(many) > 16
    assert len(few) <= 8
    assert few[0] is many[0]
    for ask in (CHANGE, ROWS, CHANGE | ROWS):
        assert min(p.of(ask) for p in few) == min(p.of(ask) for p in many)
    assert list(few) == sorted(few, key=lambda p: p.bytes)
