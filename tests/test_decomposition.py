"""Who shares with whom: never dearer than all together or all apart."""

from __future__ import annotations

import random
from itertools import product

import pytest

from slackwater.engine.local import LocalEngine
from slackwater.planner.alike import groups
from slackwater.planner.decomposition import Decomposition, Shared, Splits
from slackwater.planner.pace import Goal, Search
from slackwater.planner.simulation import Inflow, Setting, Simulation
from slackwater.planner.splitting import splits
from slackwater.planner.subplans import cut
from slackwater.stats.rows import Change
from tests.test_alike import some_tables
from tests.test_laws import bound, engine, evaluate

__all__ = ["engine"]

QUERIES = {
    "some": "SELECT a, SUM(b) AS n FROM r WHERE s = 'x' GROUP BY a",
    "more": "SELECT a, SUM(b) AS n, COUNT(*) AS k FROM r WHERE b > 1 GROUP BY a",
    "largest": "SELECT MAX(n) AS m FROM (SELECT a, SUM(b) AS n FROM r WHERE b > 2 GROUP BY a)",
}
INFLOWS = {
    "r": Inflow(0.0, Change(inserts=2e7)),
    "t": Inflow(1e5, Change()),
    "u": Inflow(1e5, Change()),
}


def decomposition(**shares: float) -> Decomposition:
    queries = {name: bound(text) for name, text in QUERIES.items()}
    goals = {name: Goal(share=share) for name, share in shares.items()}
    return Decomposition(queries, Setting(INFLOWS), goals)


@pytest.mark.parametrize("shares", list(product((1.0, 0.1), repeat=3)))
def test_never_worse_than_with_any_sharing_or_none(shares: tuple[float, ...]) -> None:
    found = decomposition(**dict(zip(QUERIES, shares, strict=True)))
    best = found.best()
    assert best.badness <= found.together.badness
    assert best.badness <= found.apart.badness
    assert best.badness <= found.unshared.badness
    for name, text in QUERIES.items():  # unshared, each is searched as if it were the only one
        goal = Goal(best.found.wanted[name])
        alone = Simulation(cut({name: bound(text)}, sharing=False), found.setting)
        final = Search(alone, {name: goal}, "subplans").greedy().final[name]
        assert found.unshared.found.final[name] == pytest.approx(final)


def test_queries_that_read_the_same_rows_share_them() -> None:
    best = decomposition().best()
    ((_, members, _),) = best.sharing.merged
    assert len(members) > 1
    assert best.found.total < decomposition().apart.found.total


def test_sets_of_members_are_all_members_once() -> None:
    found = decomposition(some=0.1, more=1.0)
    for _, members, _ in found.together.sharing.merged:
        clusters = found.clusters(members)
        assert sorted(m[0] for c in clusters for m in c) == sorted(m[0] for m in members)


def test_a_share_is_one_of_the_query_alone() -> None:
    found = decomposition(some=0.5)
    alone = Simulation(cut({"q": bound(QUERIES["some"])}), Setting(INFLOWS)).cost(0, (1,))
    assert found.together.found.wanted["some"] == pytest.approx(0.5 * alone.final)


def test_a_query_that_reads_a_piece_twice_may_take_as_long_as_it_does_alone() -> None:
    """What is read twice is run by itself, which its one run at the due time takes, too. A goal of
    as much asks for nothing early (TPC-H's q15 had seven runs)."""
    text = """
        WITH sums AS (SELECT a, SUM(b) AS n FROM r WHERE s = 'x' GROUP BY a)
        SELECT a, n FROM sums WHERE n = (SELECT MAX(n) FROM sums)
    """
    found = Decomposition({"top": bound(text)}, Setting(INFLOWS), {"top": Goal(share=1.0)})
    best = found.best()
    assert set(best.found.paces.values()) == {1}
    assert not any(best.found.missed.values())


# -- against all that there is


def any_query(rng: random.Random) -> str:
    """Over one table, or two or three joined; sums, or sums of sums."""
    where = rng.choice(("b > 1", "b < 3", "s = 'x'", "a = 2", "b < 9"))
    value = rng.choice(("SUM(r.b)", "COUNT(*)", "MAX(r.b)", "MIN(r.b)"))
    sums = f"SELECT r.a, {value} AS n FROM r WHERE r.{where} GROUP BY r.a"
    return rng.choice(
        (
            sums,
            f"SELECT MAX(n) AS m FROM ({sums})",
            f"SELECT n, COUNT(*) AS k FROM ({sums}) GROUP BY n",
            f"SELECT t.c, {value} AS n FROM r JOIN t ON r.a = t.a WHERE r.{where} GROUP BY t.c",
            f"SELECT u.d, {value} AS n FROM r JOIN t ON r.a = t.a JOIN u ON t.c = u.c "
            f"WHERE r.{where} GROUP BY u.d",
            f"SELECT r.a, r.b FROM r JOIN ({sums}) g ON r.a = g.a WHERE r.b > g.n",
        )
    )


def any_decomposition(rng: random.Random) -> Decomposition:
    texts = {f"q{i}": any_query(rng) for i in range(rng.randint(2, 4))}
    goals = {name: Goal(share=rng.choice((1.0, 0.5, 0.2, 0.1))) for name in texts}
    inflows = {
        "r": Inflow(rng.choice((0.0, 1e6)), Change(inserts=rng.choice((1e6, 2e7)))),
        "t": Inflow(1e5, Change(inserts=rng.choice((0.0, 1e4)))),
        "u": Inflow(1e5, Change()),
    }
    queries = {name: bound(text) for name, text in texts.items()}
    return Decomposition(queries, Setting(inflows), goals, most=24)


def is_near(found: Shared, other: Shared, times: float) -> bool:
    """Is what is missed, with what it costs, or else the cost, at most so much more?"""
    missed, least = found.badness[0], other.badness[0]
    if missed or least:
        return missed <= least * times
    return found.found.total <= other.found.total * times


@pytest.mark.parametrize("draw", range(12))
def test_near_the_best_of_all_sets_of_queries_that_may_share(draw: int, rng: random.Random) -> None:
    """And no worse than without any sharing, or with all of it."""
    own = any_decomposition(random.Random(f"{rng.random()} {draw}"))
    best = own.best()
    every = [own.partitioned(sets) for sets in splits(list(own.queries))]
    least = min(every, key=lambda shared: shared.badness)
    assert is_near(best, least, 1.03)
    assert best.badness <= min(own.together.badness, own.unshared.badness)


@pytest.mark.parametrize("draw", range(4))
def test_no_worse_than_chance(draw: int, rng: random.Random) -> None:
    rng = random.Random(f"{rng.random()} {draw}")
    own = any_decomposition(rng)
    best = own.best()
    for _ in range(10):
        kinds = {g.likeness: rng.choice(list(splits(g.members))) for g in groups(own.ordered)}
        first = [kind for kind in kinds if rng.random() < 0.3]
        drawn = own.split_as(Splits(kinds, frozenset(first)))
        assert is_near(best, drawn, 1.05)


@pytest.mark.parametrize("draw", range(12))
def test_however_pieces_are_split_the_rows_are_the_same(
    draw: int, engine: LocalEngine, rng: random.Random
) -> None:
    """Whole or in part, larger pieces over smaller ones that others read, too."""
    rng = random.Random(f"{rng.random()} {draw}")
    own = any_decomposition(rng)
    kinds = {g.likeness: rng.choice(list(splits(g.members))) for g in groups(own.ordered)}
    first = frozenset(kind for kind in kinds if rng.random() < 0.5)
    found = own.split_as(Splits({k: c for k, c in kinds.items() if k not in first}, first))
    given = some_tables(rng)
    for name, query in own.queries.items():
        expected = evaluate(engine, query, given)
        assert evaluate(engine, found.sharing.queries[name], given) == expected
        assert evaluate(engine, found.dag.expanded(found.dag.roots[name]), given) == expected


def test_what_is_below_is_shared_though_what_is_above_is_split() -> None:
    """q0 and q1 share sums of joins, q2 their join with another table: the larger piece is merged
    over the smaller one, which all of them read."""
    texts = {
        "q0": "SELECT t.c, SUM(r.b) AS n FROM r JOIN t ON r.a = t.a WHERE r.b > 1 GROUP BY t.c",
        "q1": "SELECT t.c, COUNT(*) AS n FROM r JOIN t ON r.a = t.a WHERE r.b > 1 GROUP BY t.c",
        "q2": "SELECT u.d, COUNT(*) AS n FROM r, t, u WHERE r.a = t.a AND t.c = u.c GROUP BY u.d",
    }
    own = Decomposition({n: bound(text) for n, text in texts.items()}, Setting(INFLOWS), {})
    upper, lower = groups(own.ordered)
    assert {name for name, _ in upper.members} == {"q0", "q1"}
    assert {name for name, _ in lower.members} == set(texts)
    below_first = own.split_as(Splits(first=frozenset({lower.likeness})))
    sizes = sorted(len(s.queries) for s in below_first.dag.subplans)
    assert sizes == [1, 1, 1, 2, 3]
    usual = own.split_as(Splits())
    assert sorted(len(s.queries) for s in usual.dag.subplans) == [1, 1, 1, 2]


NESTED = (
    "SELECT k, SUM(n) AS m FROM (SELECT a, b % 7 AS k, SUM(b) AS n FROM r WHERE b > {} "
    "GROUP BY a, b % 7) GROUP BY k"
)


@pytest.mark.parametrize("below", [False, True])
def test_what_reads_a_piece_that_is_split_is_split_with_it_and_merged_with_what_is_its_own(
    below: bool,
) -> None:
    """Sums of sums, of three queries (003, figure 8). Of the piece that is split, q3 goes apart:
    what reads it is that of q1 and q2 alone then, and q3's pieces that only it reads are one."""
    queries = {f"q{i}": bound(NESTED.format(i)) for i in (1, 2, 3)}
    own = Decomposition(queries, Setting(INFLOWS), {})
    together = [set(s.queries) for s in own.together.dag.subplans]
    assert together.count(set(queries)) == 2  # what is read, and what is summed up twice
    by_size = sorted(groups(own.ordered), key=lambda g: sum(1 for _ in g.members[0][1].walk()))
    assert len(by_size) == 2
    split = by_size[0 if below else 1]
    members = {query: (query, node) for query, node in split.members}
    sets = (frozenset({members["q1"], members["q2"]}), frozenset({members["q3"]}))
    first = frozenset({split.likeness}) if below else frozenset()
    dag = own.split_as(Splits({split.likeness: sets}, first)).dag
    alone = [s for s in dag.subplans if set(s.queries) == {"q3"}]
    assert [len(s.inputs) for s in alone] == [1, 1]  # its rows as groups, and the sums of these
    assert not [s for s in dag.subplans if {"q1", "q3"} <= set(s.queries)]
    shared = [s for s in dag.subplans if set(s.queries) == {"q1", "q2"}]
    assert len(shared) == 2
    assert shared[1].inputs == (f"#{shared[0].number}",)
