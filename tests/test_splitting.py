"""Sets of members that share: by sharing benefit, and the best of all."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from slackwater.planner.splitting import best_split, clustered, splits


def drawn(rng: random.Random, members: range) -> Callable[[frozenset[int]], float]:
    """Members of some topics each: a set takes what all topics of any member take, times how often
    the most demanding of them is run."""
    cost = [rng.uniform(1, 9) for _ in range(6)]
    topics = {m: {rng.randrange(6) for _ in range(rng.randint(1, 4))} for m in members}
    pace = {m: rng.choice((1, 1, 2, 5)) for m in members}

    def work(own: frozenset[int]) -> float:
        read = {t for m in own for t in topics[m]}
        return (1 + sum(cost[t] for t in read)) * max(pace[m] for m in own) ** 0.5

    return work


@pytest.mark.parametrize("draw", range(30))
def test_the_best_split_is_the_best_of_all_and_clusters_are_near_it(
    draw: int, rng: random.Random
) -> None:
    rng = random.Random(f"{rng.random()} {draw}")
    members = range(rng.randint(1, 6))
    work = drawn(rng, members)
    totals = [sum(map(work, sets)) for sets in splits(members)]
    best, greedy = best_split(members, work), clustered(members, work)
    for sets in (best, greedy):
        assert sorted(m for own in sets for m in own) == list(members)
    assert sum(map(work, best)) == pytest.approx(min(totals))
    apart = sum(work(frozenset({m})) for m in members)
    assert min(totals) * 0.999 <= sum(map(work, greedy)) <= min(apart, min(totals) * 1.1) + 1e-9
