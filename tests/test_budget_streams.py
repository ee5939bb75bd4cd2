"""Views equal recompute at every budget, and never keep more bytes than it allows.

The views of random streams are given random budgets, and others between batches. In half of the
streams any states that fit are kept, whatever they would bring: every subset is exact.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from slackwater import Warehouse
from slackwater.planner.budget import Kept, Point
from slackwater.timing import parse_size
from slackwater.work.keeping import Keeping
from slackwater.work.reports import RefreshReport
from tests.conftest import PROOF, SEED
from tests.stream_script import script
from tests.streams import Failure, Opening, make_stream, opening, play

STREAMS = 60 if PROOF else 10
BUDGETS = ("0 MB", "2 KB", "4 KB", "8 KB", "16 KB", "64 KB", "1 GB")


class Budgeted:
    """A warehouse whose views have budgets, which change before every refresh."""

    def __init__(self, db: Warehouse, rng: random.Random) -> None:
        self._db = db
        self._rng = rng
        self._budgets: dict[str, int] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._db, name)

    def sql(self, text: str) -> Any:
        begin = "CREATE MATERIALIZED VIEW "
        if not text.startswith(begin):
            return self._db.sql(text)
        name, query = text.removeprefix(begin).split(" AS ", 1)
        budget = self._rng.choice(BUDGETS)
        made = self._db.sql(f"{begin}{name} WITH (state_budget = '{budget}') AS {query}")
        self._budgets[name] = parse_size(budget)
        return made

    def refresh(self, *names: str) -> list[RefreshReport]:
        for name in self._budgets:
            if self._rng.random() < 0.5:
                budget = self._rng.choice(BUDGETS)
                self._db.sql(f"ALTER MATERIALIZED VIEW {name} SET (state_budget = '{budget}')")
                self._budgets[name] = parse_size(budget)
        reports = self._db.refresh(*names)
        self._check([report.view for report in reports])
        return reports

    def _check(self, names: list[str]) -> None:
        snapshot = self._db._house.catalog.snapshot()
        for view in (v for v in snapshot.views() if v.name in names):
            states = snapshot.states(view.id)
            kept = sum(s.bytes for state in states for s in snapshot.segments(state.id))
            assert kept <= self._budgets[view.name], view.name


def _opening(rng: random.Random, **settings: Any) -> Opening:
    opened = opening(**settings)

    @contextmanager
    def budgeted() -> Iterator[tuple[Any, Any]]:
        with opened() as (db, refresher):
            yield db, Budgeted(refresher, rng)

    return budgeted


def any_that_fit(rng: random.Random) -> Any:
    """In place of the best choice."""

    def chosen(self: Keeping, sizes: dict[str, Kept], there: Any = None) -> Point:
        known = {s: k.bytes for s, k in (sizes if there is None else there).items()}
        states: set[str] = set()
        for signature in rng.sample(sorted(known), len(known)):
            if sum(known[s] for s in {*states, signature}) <= self.budget and rng.random() < 0.7:
                states.add(signature)
        return Point(sum(known[s] for s in states), (0.0, 0.0, 0.0), frozenset(states))

    return chosen


def _play(seed: str, rng: random.Random, **settings: Any) -> None:
    stream = make_stream(seed, views=5, batches=3)
    try:
        play(stream, _opening(rng, **settings))
    except (Failure, AssertionError) as failure:
        pytest.fail(f"seed {seed!r}: {failure}\n\n{script(stream)}")


SEEDS = [f"{SEED}-budget-{i}" for i in range(STREAMS)]


@pytest.mark.parametrize("seed", SEEDS)
def test_views_equal_recompute_with_any_states(
    seed: str, rng: random.Random, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Keeping, "_chosen", any_that_fit(rng))
    _play(seed, rng)


@pytest.mark.parametrize("seed", SEEDS[: STREAMS // 2])
def test_views_equal_recompute_with_the_states_that_pay(seed: str, rng: random.Random) -> None:
    _play(f"{seed}-pay", rng, placement="local", refresh="auto")
