"""Queries that have nothing in common are searched one by one, and many ways to share are tried."""

from __future__ import annotations

import random

import pytest

from slackwater.planner.decomposition import Decomposition, Shared
from slackwater.planner.families import families, parts
from slackwater.planner.pace import Goal, Search
from slackwater.planner.simulation import Setting, Simulation
from slackwater.planner.splitting import splits
from slackwater.planner.subplans import cut, united
from tests.test_decomposition import INFLOWS, any_decomposition
from tests.test_laws import bound

VALUES = ("SUM(r.b)", "COUNT(*)", "MAX(r.b)", "MIN(r.b)")
SHAPES = (
    "SELECT a, {} AS n FROM r WHERE b > 1 GROUP BY a",
    "SELECT MAX(n) AS m FROM (SELECT b, {} AS n FROM r GROUP BY b)",
    "SELECT t.c, {} AS n FROM r JOIN t ON r.a = t.a WHERE r.b > 1 GROUP BY t.c",
    "SELECT u.d, {} AS n FROM r JOIN u ON r.b = u.c WHERE r.a > 1 GROUP BY u.d",
    "SELECT s, {} AS n FROM r WHERE a > 1 GROUP BY s, b",
)


def twenty(setting: Setting, **options: float) -> Decomposition:
    """Five shapes of four queries; of each, two results are wanted soon."""
    texts = {f"q{i}{j}": s.format(v) for i, s in enumerate(SHAPES) for j, v in enumerate(VALUES)}
    goals = {name: Goal(share=0.1 if name[-1] in "02" else 1.0) for name in texts}
    queries = {name: bound(text) for name, text in texts.items()}
    return Decomposition(queries, setting, goals, most=24, **options)  # type: ignore[arg-type]


def searched_at_once(own: Decomposition, found: Shared) -> Search:
    """The same subplans, with costs and paces found anew for all of them together."""
    return Search(
        Simulation(found.dag, Setting(own.setting.inflows)),
        found.search.goals,
        own.mode,
        own.most,
    )


# -- families and parts


def test_families_have_no_piece_in_common() -> None:
    queries = twenty(Setting(INFLOWS)).ordered
    names = [sorted({name[:2] for name in family}) for family in families(queries)]
    assert names == [["q0", "q1"], ["q2"], ["q3"], ["q4"]]


def test_equal_pieces_that_cannot_be_merged_make_a_family_too() -> None:
    texts = {
        "all": "SELECT DISTINCT a, b FROM r",
        "some": "SELECT a FROM (SELECT DISTINCT a, b FROM r) WHERE b > 1",
        "other": "SELECT DISTINCT b FROM r",
    }
    queries = {name: bound(text) for name, text in texts.items()}
    assert list(map(list, families(queries))) == [["all", "some"], ["other"]]


def test_parts_put_together_are_the_whole() -> None:
    dag = cut({name: bound(SHAPES[i].format("COUNT(*)")) for i, name in enumerate("abcde")})
    own = list(parts(dag))
    whole = united(own)
    assert len(own) > 1
    assert len(whole.subplans) == len(dag.subplans)
    for name, root in dag.roots.items():
        assert whole.expanded(whole.roots[name]) == dag.expanded(root)


@pytest.mark.parametrize("draw", range(8))
def test_paces_found_part_by_part_are_those_of_the_whole(draw: int, rng: random.Random) -> None:
    """Whatever was found for other plans before: by pieces, and by sets of queries."""
    own = any_decomposition(random.Random(f"{rng.random()} {draw}"))
    own.best()
    sets = rng.choice(list(splits(list(own.queries))))
    for found in (own.together, own.apart, own.unshared, own.partitioned(sets), own.best()):
        whole = searched_at_once(own, found).greedy()
        assert found.found.total == pytest.approx(whole.total)
        assert found.found.final == pytest.approx(dict(whole.final))
        assert found.found.wanted == pytest.approx(dict(whole.wanted))
        assert found.search.total(found.found.paces) == pytest.approx(found.found.total)


def test_a_shared_piece_does_not_cost_what_one_of_a_single_query_does() -> None:
    """A single query may do without states. That it was costed first changes nothing."""
    setting = Setting(INFLOWS)
    query = bound("SELECT a, SUM(b) AS n FROM r WHERE s = 'x' GROUP BY a")
    alone, both = (dict.fromkeys(names, query) for names in (("q",), ("q", "p")))
    before = Simulation(cut(alone), setting).cost(0, [1])
    assert Simulation(cut(both), setting).cost(0, [1]) != before
    assert Simulation(cut(both), setting).cost(0, [1]) == Simulation(
        cut(both), Setting(INFLOWS)
    ).cost(0, [1])


# -- what is tried


def test_with_many_queries_many_ways_are_tried_and_better_ones_found() -> None:
    """What is best of two families is in no plan that treats all alike, nor one change away."""
    own = twenty(Setting(INFLOWS), effort=2_500.0)
    best = own.best()
    uniform = [own.together, own.apart, own.unshared]
    usual = [part.search.dag for way in uniform for part in way.parts]
    new = [set(p.search.dag.roots) for p in best.parts if p.search.dag not in usual]
    assert new == [{f"q{i}{j}" for j in range(4)} for i in (2, 3)]
    assert best.badness[0] < 0.95 * min(way.badness[0] for way in uniform)
    limited = twenty(Setting(INFLOWS)).best()
    assert limited.found.tried > 40
    assert best.badness <= limited.badness < min(way.badness for way in uniform)


def test_more_effort_finds_no_worse() -> None:
    less, usual, more = (twenty(Setting(INFLOWS), effort=e).best() for e in (0.0, 1_000.0, 1e9))
    assert less.found.tried < usual.found.tried < more.found.tried
    assert more.badness <= usual.badness <= less.badness


def test_the_plan_does_not_depend_on_what_was_costed_before() -> None:
    setting = Setting(INFLOWS)
    first, second = (twenty(setting, effort=1_000.0).best() for _ in range(2))
    assert second.badness == first.badness
    assert second.found.tried == first.found.tried
    assert second.found.paces == first.found.paces
