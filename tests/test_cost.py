"""What work costs: prices fitted to what was measured, and the choice that follows from them."""

from __future__ import annotations

import random
from dataclasses import replace
from math import exp, inf
from statistics import median

import pytest

from slackwater.planner.choice import FULL, HIGHER_ORDER, INCREMENTAL, PLAIN, TIE, Candidate, choose
from slackwater.stats.calibrate import WIDEST, Measured, fitted
from slackwater.stats.cost import KINDS, PRIOR, Model, Work, step_work
from tests.test_laws import bound

LOCAL = ("local", "cpu")


def _steps(rng: random.Random, prices: tuple[float, ...], kinds: set[str]) -> list[Measured]:
    """Random steps that take what their work costs at some prices, give or take a tenth."""
    steps = []
    for _ in range(200):
        amounts = {"steps": 1.0, "operators": rng.randint(3, 80)}
        amounts |= {k: 10 ** rng.uniform(2, 7.5) for k in sorted(kinds)}
        work = Work(**amounts)
        took = sum(p * a for p, a in zip(prices, work.amounts, strict=True))
        steps.append(Measured("local", work, took * rng.uniform(0.9, 1.1), took))
    return steps


def test_prices_are_found_from_what_steps_took(rng: random.Random) -> None:
    true = tuple(p * f for p, f in zip(PRIOR[LOCAL], (3, 0.5, 4, 0.3, 2, 1, 1, 5), strict=True))
    seen = {"scanned", "hashed", "written"}
    model = fitted(_steps(rng, true, seen))
    off = [model.seconds(s.work, "local") / s.latency - 1 for s in _steps(rng, true, seen)]
    assert median(map(abs, off)) < 0.1
    assert max(map(abs, off)) < 0.5  # what was seldom seen is held to the prior


def test_kinds_of_work_that_no_step_had_keep_their_price(rng: random.Random) -> None:
    true = tuple(p * 2 for p in PRIOR[LOCAL])
    model = fitted(_steps(rng, true, {"scanned"}))
    place = KINDS.index("paired")
    assert model.prices[LOCAL][place] == pytest.approx(PRIOR[LOCAL][place])
    assert model.prices["spark", "cpu"] == PRIOR["spark", "cpu"]


def test_no_price_is_zero_or_less(rng: random.Random) -> None:
    """Steps that got faster the more they had to do: nonsense, and no reason for a free lunch."""
    steps = [
        Measured("local", Work(steps=1, scanned=10.0**n, hashed=10.0**n), 10.0 ** (2 - n), 1.0)
        for n in range(9)
    ]
    for price, prior in zip(fitted(steps).prices[LOCAL], PRIOR[LOCAL], strict=True):
        assert price >= exp(WIDEST[0]) * prior * 0.999


def test_nothing_measured_is_the_prior() -> None:
    assert fitted([]).prices == Model().prices


def _ways(by_changes: float, full: float, plain: float, *why: str) -> list[Candidate]:
    return [
        Candidate(INCREMENTAL, "local", by_changes, by_changes, reasons=tuple(why)),
        Candidate(FULL, "local", full, full),
        Candidate(PLAIN, "local", plain, plain),
    ]


@pytest.mark.parametrize(
    ("ways", "method"),
    [
        (_ways(0.1, 2.0, 1.0), INCREMENTAL),
        (_ways(1.5, 2.0, 1.0), PLAIN),
        (_ways(1.0 + TIE / 2, 2.0, 1.0), INCREMENTAL),
        # states that are not there are worth building if changes cost less from then on
        (_ways(0.1, 2.0, 1.0, "STATE_MISSING"), FULL),
        (_ways(0.98, 2.0, 1.0, "STATE_MISSING"), PLAIN),
    ],
)
def test_the_cheapest_way_over_this_refresh_and_those_to_come(
    ways: list[Candidate], method: str
) -> None:
    chosen = choose(ways)
    assert chosen is not None
    assert chosen.method == method


@pytest.mark.parametrize(("engine", "method"), [("local", PLAIN), ("spark", INCREMENTAL)])
def test_on_spark_changes_are_followed_for_a_little_more(engine: str, method: str) -> None:
    """What they take there is known once they have been."""
    ways = [replace(way, engine=engine) for way in _ways(1.1, 2.0, 1.0)]
    chosen = choose(ways)
    assert chosen is not None
    assert chosen.method == method
    dearer = choose([replace(way, engine=engine) for way in _ways(1.2, 2.0, 1.0)])
    assert dearer is not None
    assert dearer.method == PLAIN


def test_on_spark_changes_are_followed_where_that_leads_to_as_cheap_refreshes() -> None:
    """Now they cost half as much again; with states built beside, later ones are hardly dearer than
    computing anew. On the driver, where expectations are closer, that is not enough."""
    for engine, method in (("spark", INCREMENTAL), ("local", PLAIN)):
        ways = [
            Candidate(INCREMENTAL, engine, 1.95, 1.5),
            Candidate(HIGHER_ORDER, engine, 0.95, 0.7, reasons=("STATE_MISSING",)),
            Candidate(PLAIN, engine, 1.3, 1.0),
        ]
        chosen = choose(ways, to_build=1.0)
        assert chosen is not None
        assert chosen.method == method


def test_of_two_engines_the_cheaper_one() -> None:
    chosen = choose([Candidate(FULL, "local", 3.0, 3.0), Candidate(FULL, "spark", 2.0, 1.0)])
    assert chosen is not None
    assert chosen.engine == "spark"


def test_an_engine_that_is_out_of_the_question_is_so_later_too() -> None:
    """A view that Spark refreshes was refreshed in the dearer way, as that is cheap elsewhere."""
    elsewhere = [
        Candidate(method, "local", cpu, cpu, reasons=("NOT_PLACED_THERE",))
        for method, cpu in ((INCREMENTAL, 0.2), (PLAIN, 0.5))
    ]
    here = [Candidate(INCREMENTAL, "spark", 5.0, 3.0), Candidate(PLAIN, "spark", 4.0, 2.0)]
    chosen = choose([*elsewhere, *here])
    assert chosen is not None
    assert (chosen.method, chosen.engine) == (PLAIN, "spark")


def test_no_way_at_all() -> None:
    assert choose([Candidate(FULL, "spark", 1.0, 1.0, reasons=("NO_JAVA",))]) is None
    assert Candidate(FULL, "spark").to_json()["cpu_seconds"] is None
    assert Candidate(FULL, "spark").cpu == inf


@pytest.mark.parametrize(
    ("condition", "searched"),
    [
        ("s LIKE '%special%requests%'", True),
        ("s LIKE 'a_b'", True),
        ("NOT s LIKE 'a%b'", True),
        ("s LIKE 'forest%'", False),
        ("s LIKE '%green%'", False),
        ("s LIKE '%BRASS'", False),
        ("a > 1", False),
    ],
)
def test_searching_texts_for_patterns_takes_longer(condition: str, searched: bool) -> None:
    relation = bound(f"SELECT a FROM r WHERE {condition}")
    plain = bound("SELECT a FROM r WHERE b > 1")
    work, least = (step_work([r], lambda node: 1000.0) for r in (relation, plain))
    assert (work.streamed > 5 * least.streamed) == searched
