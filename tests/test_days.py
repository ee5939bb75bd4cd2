"""Results are exact at every due time, whatever the paces, goals, budgets and shared views."""

from __future__ import annotations

import random

import pytest

from slackwater.planner import simulation
from tests.conftest import PROOF, SEED
from tests.days import Outcome, make_day, play

DAYS = 15 if PROOF else 4


def _seeds() -> list[str]:
    return [f"{SEED}-day-{i}" for i in range(DAYS)]


@pytest.fixture(scope="module")
def total() -> Outcome:
    return Outcome()


@pytest.mark.parametrize("seed", _seeds())
def test_results_are_exact_whenever_they_are_due(
    seed: str, total: Outcome, monkeypatch: pytest.MonkeyPatch
) -> None:
    for measure in simulation.RUN:  # so that a few rows are worth early runs
        monkeypatch.setitem(simulation.RUN, measure, 0.0)
    rng = random.Random(seed)
    outcome, wrong = play(make_day(rng), rng)
    assert not wrong, f"seed {seed!r}:\n" + "\n".join(wrong)
    assert outcome.compared >= outcome.views
    total.add(outcome)


def test_there_are_enough_of_all(total: Outcome) -> None:
    """Where all days were played: results, and runs before they were due."""
    if total.kinds["stop"] == 2 * DAYS:
        assert total.compared > 10 * DAYS
        assert total.early > DAYS
