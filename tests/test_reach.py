"""The nearest goal that can be met: it can, and less cannot."""

from __future__ import annotations

import random
from itertools import combinations

import pytest

from slackwater.planner.decomposition import Decomposition
from slackwater.planner.pace import MODES, Goal, Search
from slackwater.planner.reach import at_least, nearest_goal
from slackwater.planner.simulation import Inflow, Setting, Simulation
from slackwater.planner.subplans import cut
from slackwater.stats.rows import Change
from tests.test_laws import bound

SUMS = "SELECT a, SUM(b) AS n, COUNT(*) AS k FROM r WHERE b > 2 GROUP BY a"
TEXTS = {
    "sums": SUMS,
    "largest": f"SELECT MAX(n) AS m FROM ({SUMS})",
    "above": f"SELECT r.a, r.b FROM r JOIN ({SUMS}) s ON r.a = s.a WHERE r.b * s.k > s.n",
    "often": f"SELECT k, COUNT(*) AS c FROM ({SUMS}) GROUP BY k",
    "joined": "SELECT r.s, t.c FROM r JOIN t ON r.a = t.a WHERE r.b < 3",
    "chain": "SELECT u.d, SUM(r.b) AS n FROM r, t, u WHERE r.a = t.a AND t.c = u.c GROUP BY u.d",
}


def setting(rng: random.Random) -> Setting:
    inflows = {"r": Inflow(rng.choice((0.0, 1e6)), Change(inserts=rng.choice((1e6, 1e7))))}
    for name in ("t", "u"):
        coming = rng.choice((0.0, 1e5))
        inflows[name] = Inflow(rng.choice((1e4, 1e6)), Change(inserts=coming))
    return Setting(inflows)


def drawn(rng: random.Random, most: int) -> list[str]:
    return rng.sample(sorted(TEXTS), rng.randint(1, most))


@pytest.mark.parametrize("draw", range(12))
@pytest.mark.parametrize("mode", MODES)
def test_the_nearest_goal_can_be_met_and_less_cannot(
    draw: int, mode: str, rng: random.Random
) -> None:
    rng = random.Random(f"{rng.random()} {draw}")
    names, own = drawn(rng, 3), setting(rng)
    played = Simulation(cut({n: bound(TEXTS[n]) for n in names}), own)
    for name in names:
        nearest = nearest_goal(Search(played, {}, mode, 24), name)
        met = Search(played, {name: Goal(nearest)}, mode, 24).greedy()
        assert not met.missed
        assert Search(played, {name: Goal(0.97 * nearest)}, mode, 24).greedy().missed


@pytest.mark.parametrize("draw", range(8))
def test_the_nearest_goal_is_the_shortest_of_all_paces(draw: int, rng: random.Random) -> None:
    rng = random.Random(f"{rng.random()} {draw}")
    (name,), own = drawn(rng, 1), setting(rng)
    search = Search(Simulation(cut({name: bound(TEXTS[name])}), own), {name: Goal(0.0)}, most=12)
    best = search.brute_force(search.ladder).final[name]
    assert 0.999 * best <= nearest_goal(search, name) <= 1.001 * best
    even = Search(search.simulation, {name: Goal(0.0)}, "subplans", most=12)
    least, nearest = at_least(even, name), nearest_goal(even, name)
    assert least * 0.999 <= even.brute_force(even.ladder).final[name] <= nearest * 1.001


@pytest.mark.parametrize("names", list(combinations(sorted(TEXTS), 2)))
def test_with_shared_pieces_the_nearest_goal_can_be_met_too(
    names: tuple[str, str], rng: random.Random
) -> None:
    """Whoever shares in the end, with another one's goal as it was."""
    queries, own = {n: bound(TEXTS[n]) for n in names}, setting(rng)
    name, other = names
    easy = {other: Goal(share=1.0)}

    def best(seconds: float) -> Decomposition:
        return Decomposition(queries, own, {**easy, name: Goal(seconds)}, most=24)

    hard = best(0.0).best()
    nearest = nearest_goal(hard.search, name)
    assert nearest <= hard.found.final[name] * 1.001
    met = best(nearest).best().found
    assert name not in met.missed
    assert name in best(0.95 * nearest).best().found.missed
