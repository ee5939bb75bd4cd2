"""Whatever way the memo offers to compute a relation: it is the same relation."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator

import pytest

from slackwater.engine.local import LocalEngine
from slackwater.planner.plan import METHODS, rules_of
from slackwater.tvr import zset
from slackwater.tvr.extract import Extraction
from slackwater.tvr.memo import CHANGED, ROWS, Member, Memo
from tests.conftest import PROOF
from tests.test_laws import QUERIES, bound, evaluate, random_tables, total

PLANS = 12 if PROOF else 3
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
    node = bound(QUERIES[name])
    given, changed = random_tables(rng)
    memo = Memo(changed, *rules_of(METHODS), pruned=rng.random() < 0.5)
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
