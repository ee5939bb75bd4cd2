"""What the ways of a view took before corrects what is expected of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import slackwater
from slackwater.engine.runner import Runner
from slackwater.planner.choice import INCREMENTAL, PLAIN
from slackwater.stats.calibrate import Measured
from slackwater.stats.cost import Model, Work
from slackwater.stats.recall import BELIEF, FADING, Expected, Past, is_missed
from tests.test_choosing import ROWS, VIEW, _fill, _last, _orders

WORK = Work(steps=1, hashed=1e9)
MODEL = Model()
ONE = MODEL.seconds(WORK, "local")


def _expected(*took: float, work: Work = WORK) -> Expected:
    past = Past()
    for seconds in took:
        past.add(INCREMENTAL, Measured("local", work, seconds, seconds))
    return Expected(MODEL, past)


def _seconds(expected: Expected, method: str = INCREMENTAL, engine: str = "local") -> float:
    return expected.seconds(WORK, method, engine)


def test_without_a_past_the_model_is_believed() -> None:
    assert _seconds(_expected()) == ONE


def test_a_model_that_was_right_stays_as_it_is() -> None:
    assert _seconds(_expected(ONE, ONE, ONE)) == pytest.approx(ONE)


def test_what_was_dearer_is_expected_to_be_and_the_more_often_the_more() -> None:
    once, often = _seconds(_expected(5 * ONE)), _seconds(_expected(*[5 * ONE] * 8))
    assert once == pytest.approx(ONE * 5 ** (1 / (1 + BELIEF)), rel=0.01)
    assert once < often < 5 * ONE


def test_what_took_ten_times_as_long_is_believed_at_once() -> None:
    assert 8 * ONE < _seconds(_expected(10 * ONE)) < 10 * ONE
    assert 80 * ONE < _seconds(_expected(100 * ONE)) < 100 * ONE


def test_a_miss_that_was_one_is_outweighed_by_what_follows() -> None:
    assert _seconds(_expected(10 * ONE, *[ONE] * 7)) < 1.5 * ONE


def test_a_miss_is_ten_times_what_was_expected_and_no_noise() -> None:
    assert is_missed(0.02, 0.2)
    assert is_missed(3.0, 30.0)
    assert not is_missed(0.02, 0.19)
    assert not is_missed(0.001, 0.09)
    assert not is_missed(3.0, 29.0)


def test_a_fraction_of_a_second_says_little() -> None:
    """The first refresh of a small view, which loads what the next one finds."""
    few = Work(steps=2)
    slow = _expected(3.5 * MODEL.seconds(few, "local"), work=few)
    assert slow.seconds(few, INCREMENTAL, "local") < 1.5 * MODEL.seconds(few, "local")


def test_what_took_longer_than_is_expected_is_a_margin() -> None:
    def error(*took: float) -> float:
        return _expected(*took).error(INCREMENTAL, "local", "cpu")

    assert error() == 0
    assert error(ONE, ONE, ONE) == pytest.approx(0, abs=1e-9)
    assert error(0.1 * ONE) == 0  # nobody is late by what took less
    assert 0 < error(2 * ONE, ONE) < error(4 * ONE, ONE)
    assert error(4 * ONE, *[ONE] * 7) < error(*[ONE] * 7, 4 * ONE)  # not long ago counts more
    assert _expected(4 * ONE).error(PLAIN, "local", "cpu") == 0


def test_other_ways_are_not_concerned() -> None:
    dear = _expected(10 * ONE)
    assert _seconds(dear, PLAIN) == ONE
    assert _seconds(dear, engine="spark") == MODEL.seconds(WORK, "spark")


def test_a_refresh_of_another_size_says_little() -> None:
    few = Work(steps=1, hashed=1e8)
    small = _expected(5 * MODEL.seconds(few, "local"), work=few)
    assert ONE < _seconds(small) < 1.5 * ONE < _seconds(_expected(5 * ONE))


def test_what_is_long_ago_fades() -> None:
    past = _expected(5 * ONE).past
    for _ in range(20):
        past.add(PLAIN, Measured("local", WORK, ONE, ONE))
    weight = FADING**20
    assert _seconds(Expected(MODEL, past)) == pytest.approx(
        ONE * 5 ** (weight / (weight + BELIEF)), rel=0.01
    )


@pytest.fixture
def behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[slackwater.Warehouse]:
    """A view that followed a change, and what costs less by a little is taken."""
    monkeypatch.setattr("slackwater.planner.choice.TIE", 0.0)
    with slackwater.connect(tmp_path / "w", placement="local") as db:
        _fill(db)
        db.sql(f"CREATE MATERIALIZED VIEW v AS {VIEW}")
        db.refresh("v")
        db.append("orders", _orders(ROWS, 10))
        assert db.refresh("v")[0].mode == "incremental"
        yield db


@contextmanager
def _taking(db: slackwater.Warehouse, seconds: float) -> Iterator[None]:
    """Steps that are measured to take so many CPU seconds."""
    run = type(db._house.runner).run

    def measured(self: Runner, *args: Any) -> Any:
        written = run(self, *args)
        return replace(written, report=replace(written.report, cpu_seconds=seconds))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Runner, "run", measured)
        yield


def _planned_anew(db: slackwater.Warehouse, rows: int) -> bool:
    """Are the ways planned again at the next refresh?"""
    known = {id(p) for p in db._house.plans._known.values()}
    db.append("orders", _orders(rows, 10))
    db.refresh("v")
    return any(id(p) not in known for p in db._house.plans._known.values())


def test_one_refresh_that_took_ten_times_as_long_leads_to_another_plan(
    behind: slackwater.Warehouse,
) -> None:
    full = min(c["cpu_seconds"] for c in _last(behind)["candidates"] if c["method"] == PLAIN)
    behind.append("orders", _orders(2 * ROWS, 10))
    with _taking(behind, max(1.0, 20 * full)):
        assert behind.refresh("v")[0].mode == "incremental"
    missed = _last(behind)
    assert missed["steps"][0]["cpu_seconds"] >= 10 * missed["chosen"]["cpu_seconds"]
    assert behind._house.experience.misses("v") == 1
    assert _planned_anew(behind, 3 * ROWS)
    assert _last(behind)["reasons"] == ["CHANGE_TOO_LARGE"]
    assert behind.verify("v").equal


def test_a_refresh_that_took_five_times_as_long_does_not(behind: slackwater.Warehouse) -> None:
    behind.append("orders", _orders(2 * ROWS, 10))
    with _taking(behind, 5 * _last(behind)["chosen"]["cpu_seconds"]):
        behind.refresh("v")
    assert behind._house.experience.misses("v") == 0
    assert not _planned_anew(behind, 3 * ROWS)


def test_what_is_read_is_looked_at_again_after_a_miss_if_it_has_changed(
    behind: slackwater.Warehouse,
) -> None:
    orders = behind._house.catalog.snapshot().find("orders")
    assert orders is not None
    for took, rows in ((0.01, ROWS), (1000.0, ROWS + 30)):
        behind.append("orders", _orders(2 * ROWS, 10))
        with _taking(behind, took):
            behind.refresh("v")
        assert behind._house.profiling.known().known[orders.id].rows == rows


def test_a_way_that_turned_out_ten_times_dearer_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And taken again when that was long ago."""
    monkeypatch.setattr("slackwater.planner.choice.TIE", 0.0)
    with slackwater.connect(tmp_path / "w", placement="local") as db:
        _fill(db)
        db.sql(f"CREATE MATERIALIZED VIEW v AS {VIEW}")
        db.refresh("v")
        db.append("orders", _orders(ROWS, 10))
        assert db.refresh("v")[0].mode == "incremental"
        event, past = _last(db), db._house.experience._pasts["v"]
        full = min(c["cpu_seconds"] for c in event["candidates"] if c["method"] == PLAIN)
        work = Work(*event["chosen"]["work"])
        for _ in range(8):
            past.add(INCREMENTAL, Measured("local", work, 20 * full, 20 * full))
        db.append("orders", _orders(2 * ROWS, 10))
        assert db.refresh("v")[0].reasons == ["CHANGE_TOO_LARGE"]
        assert db.verify("v").equal
        assert _last(db)["chosen"]["method"] == PLAIN
        rows = 3 * ROWS
        for _ in range(100):
            db.append("orders", _orders(rows, 10))
            rows += 10
            if db.refresh("v")[0].mode == "incremental":
                break
        else:
            pytest.fail("what was dear once was never tried again")
        assert db.verify("v").equal


def test_how_far_a_way_was_off_by_the_last_refresh() -> None:
    assert _expected().factor(INCREMENTAL, "local") == 1.0
    dear = _expected(ONE, 10 * ONE)
    assert dear.factor(INCREMENTAL, "local") == pytest.approx(_seconds(dear) / ONE)
    assert dear.factor(PLAIN, "local") == 1.0
