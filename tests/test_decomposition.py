"""Who shares with whom: never dearer than all together or all apart."""

from __future__ import annotations

from itertools import product

import pytest

from slackwater.planner.decomposition import Decomposition
from slackwater.planner.pace import Goal, Search
from slackwater.planner.simulation import Inflow, Setting, Simulation
from slackwater.planner.subplans import cut
from slackwater.stats.rows import Change
from tests.test_laws import bound

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
