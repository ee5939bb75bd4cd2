"""Bad or missing statistics never break a plan: it may be dearer, and is there."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from math import inf, isfinite, nan
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import slackwater
from slackwater import Warehouse
from slackwater.algebra.relation import Relation
from slackwater.catalog.model import Event, WriteEvent
from slackwater.errors import UserError
from slackwater.planner.budget import Kept, choose, frontier
from slackwater.planner.cutting import Scene
from slackwater.planner.outline import Outline
from slackwater.planner.pace import Goal, Search
from slackwater.planner.plan import plan
from slackwater.planner.problem import Arrival, Problem
from slackwater.planner.simulation import Inflow, Setting, Simulation
from slackwater.planner.subplans import cut
from slackwater.stats.arrival import Arrived, predict
from slackwater.stats.calibrate import Measured, fitted
from slackwater.stats.cost import PRIOR, Model, Work, step_work
from slackwater.stats.profile import Profile, Profiles
from slackwater.stats.recall import Expected, Past
from slackwater.stats.rows import Change, Estimates, Rows
from slackwater.stats.values import Known, Values
from slackwater.tvr.maintenance import maintenance
from tests.conftest import PROOF
from tests.test_choosing import VIEW, _fill, _last, _orders
from tests.test_pace import ABOVE_AVERAGE, BY_REGION, query

BAD: list[Any] = [nan, inf, -inf, -5.0, 0, 1e300, None]
TEXTS = {
    "above": ABOVE_AVERAGE,
    "region": BY_REGION + " HAVING sum(s.price) > 10",
    "many": "SELECT DISTINCT s.customer, c.region FROM sales s LEFT JOIN customers c "
    "ON s.customer = c.id WHERE s.price < 10 AND s.id IN (1, 2) OR c.region IS NULL",
    "window": "SELECT id, rank() OVER (PARTITION BY customer ORDER BY price) AS r FROM sales",
    "apart": "SELECT id FROM sales EXCEPT SELECT id FROM customers",
}
DEFAULT = {
    "rows": 1e5,
    "inserts": 1e3,
    "updates": 10.0,
    "deletes": 10.0,
    "distinct": 100.0,
    "nulls": 0.1,
    "low": 0.0,
    "high": 100.0,
    "selectivity": 0.1,
    "price": 1e-7,
}
CASES = [(entry, bad) for entry in DEFAULT for bad in BAD]
every_case = pytest.mark.parametrize(("entry", "bad"), CASES if PROOF else CASES[::3])


class Told(dict[str, Any]):
    """Statistics, one of them bad."""

    def values(self, source: str, column: str) -> Values | None:
        return Values(self["distinct"], self["nulls"], self["low"], self["high"])

    def selectivity(self, node: Relation) -> float | None:
        share: float = self["selectivity"]
        return share

    @property
    def change(self) -> Change:
        return Change(self["inserts"], self["updates"], self["deletes"])

    @property
    def sources(self) -> dict[str, Rows]:
        return dict.fromkeys(("sales", "customers"), Rows(self["rows"], self.change))

    @property
    def model(self) -> Model:
        return Model({key: (self["price"],) * len(prices) for key, prices in PRIOR.items()})


def told(entry: str, bad: Any) -> Told:
    return Told(DEFAULT | {entry: bad})


def _is_sane(*amounts: Any) -> bool:
    return all(isfinite(a) and a >= 0 for a in amounts)


@every_case
@pytest.mark.parametrize("text", TEXTS)
def test_rows_are_numbers(text: str, entry: str, bad: Any) -> None:
    own, relation = told(entry, bad), query(TEXTS[text])
    estimates = Estimates(own.sources, own)
    for node in relation.walk():
        rows = estimates.of(node)
        change = rows.change
        assert _is_sane(rows.before, rows.after, change.inserts, change.updates, change.deletes)
    work = step_work([relation], lambda node: estimates.of(node).before)
    assert _is_sane(*work.amounts, *(own.model.seconds(work, engine) for engine, _ in PRIOR))


@every_case
def test_many_rows_at_once_are_numbers(entry: str, bad: Any) -> None:
    own = told(entry, bad)
    numbers = [np.array([1e3, nan if own[k] is None else own[k]]) for k in list(DEFAULT)[:4]]
    rows = Rows(numbers[0], Change(*numbers[1:]))  # type: ignore[arg-type]
    estimates = Estimates(dict.fromkeys(("sales", "customers"), rows), own)
    for text in TEXTS.values():
        found = estimates.of(query(text))
        assert all(map(isfinite, np.ravel([found.before + 0 * found.change.rows])))


@every_case
def test_there_is_a_plan(entry: str, bad: Any) -> None:
    own = told(entry, bad)
    arrivals = dict.fromkeys(("sales", "customers"), Arrival(own["rows"], (own.change,) * 2))
    problem = Problem(query(BY_REGION), arrivals, (0.3, 0.3, 1.0), known=own)
    made = plan(problem, own.model, engines=("local", "spark"))
    assert _is_sane(made.cost)
    assert made.text()


@every_case
def test_paces_are_found(entry: str, bad: Any) -> None:
    own = told(entry, bad)
    inflows = dict.fromkeys(("sales", "customers"), Inflow(own["rows"], own.change))
    setting = Setting(inflows, own.model, ("local", "spark"), own)
    queries = {name: query(TEXTS[name]) for name in ("above", "region")}
    search = Search(Simulation(cut(queries), setting), {"above": Goal(share=0.5)}, most=8)
    found = search.greedy()
    assert _is_sane(found.total, *found.final.values())


@every_case
def test_states_are_chosen_under_a_budget(entry: str, bad: Any) -> None:
    own, relation = told(entry, bad), query(BY_REGION)
    ids = itertools.count()
    view = maintenance(relation, "v", relation.schema, lambda node: f"s{next(ids)}")
    outline = Outline(view, Scene(own.sources, own, lambda work: own.model.seconds(work, "local")))
    root = outline.operator()
    sizes = {s: Kept(bad, c.build_seconds) for s, c in outline.candidates.items()}
    found = choose(frontier(root, sizes, 1e6), 1e6)
    assert found is not None
    assert _is_sane(found.cost, found.bytes)


@pytest.mark.parametrize("bad", BAD)
def test_what_was_measured_wrongly_teaches_nothing(bad: Any) -> None:
    good = Work(steps=1, hashed=1e8)
    cases = [("local", good, bad, 1.0), ("local", good, 1.0, bad), ("local", Work(bad), 1.0, 1.0)]
    past = Past()
    for case in [*cases, ("elsewhere", good, 1.0, 1.0)]:
        past.add("incremental", Measured(*case))
    model = fitted([measured for _, measured in past.by(("incremental", "local"))])
    for engine in ("local", "spark"):
        expected = Expected(model, past)
        assert _is_sane(
            expected.seconds(good, "incremental", engine),
            expected.factor("incremental", engine),
            expected.error("incremental", engine),
        )


@pytest.mark.parametrize("bad", BAD)
def test_arrivals_are_predicted(bad: Any) -> None:
    start = datetime(2026, 1, 1, tzinfo=UTC)
    history = [
        Arrived(start + timedelta(hours=n), Change(bad if n == 3 else 10.0, bad if n == 5 else 0.0))
        for n in range(12)
    ]
    now = start + timedelta(hours=12)
    found = predict(history, now, now + timedelta(hours=5)).at_most()
    assert _is_sane(found.inserts, found.updates, found.deletes)


def test_prices_of_time_are_the_users_and_are_refused() -> None:
    arrivals = dict.fromkeys(("sales", "customers"), Arrival(10.0, (Change(),)))
    for bad in (nan, inf, -1.0):
        with pytest.raises(UserError, match="price"):
            Problem(query(BY_REGION), arrivals, (1.0, bad))


# -- in a warehouse


@pytest.fixture
def db(tmp_path: Path) -> Iterator[Warehouse]:
    with slackwater.connect(tmp_path / "w", placement="local") as opened:
        _fill(opened, 20_000)
        opened.sql(
            "CREATE MATERIALIZED VIEW v WITH (schedule = 'every 1 hour', within = '0.5x') "
            f"AS {VIEW}"
        )
        opened.sql(f"CREATE MATERIALIZED VIEW kept WITH (state_budget = '1 MB') AS {VIEW}")
        opened.refresh("v")
        opened.refresh("kept")
        yield opened


def _goes_on(db: Warehouse, start: int) -> None:
    """Refresh, plan and tell."""
    for name in ("v", "kept"):
        db.append("orders", _orders(start, 10))
        start += 10
        assert db.explain(name)
        assert json.loads(db.explain(name, format="json"))
        db.refresh(name)
        assert db.verify(name).equal
        for candidate in _last(db, name)["candidates"]:
            if candidate["cpu_seconds"] is not None:
                assert _is_sane(candidate["cpu_seconds"])
        assert plan(db.problem(name, {"orders": [Change(100.0)]}, (0.3, 1.0))).cost >= 0
    assert str(db.plan(max_pace=4, simulate=True))
    db.history()


@pytest.mark.parametrize("bad", BAD)
def test_bad_counts_of_values_break_no_refresh(
    db: Warehouse, monkeypatch: pytest.MonkeyPatch, bad: Any
) -> None:
    known = db._house.profiling.known()
    columns = {name: Values(bad, bad, bad, bad) for p in known.known.values() for name in p.columns}
    shares = {text: bad for p in known.known.values() for text in p.shares}
    wrong: Known = Profiles({id: Profile(p.rows, columns, shares) for id, p in known.known.items()})
    monkeypatch.setattr(db._house.profiling, "known", lambda: wrong)
    _goes_on(db, 10**6)


@pytest.mark.parametrize(
    "stored",
    [
        {},
        {"rows": None, "columns": None, "shares": None},
        {"rows": "?", "columns": {"id": [], "amount": [None]}, "shares": {"": None}},
        {"rows": -3, "columns": {"id": [0, 7, 9, 3, 1], "customer": [-1, -1, 9, 3]}},
    ],
)
def test_profiles_that_were_stored_wrongly_break_no_refresh(
    db: Warehouse, stored: Mapping[str, Any]
) -> None:
    profiling = db._house.profiling
    for id in profiling.known().known:
        db._house.catalog.set_setting(f"profile:{id}", dict(stored))
    profiling._kept = None
    _goes_on(db, 10**6)


@pytest.mark.parametrize("bad", BAD)
def test_bad_events_break_no_refresh(db: Warehouse, bad: Any) -> None:
    house = db._house
    is_stored = bad is None or isfinite(bad)  # the catalog keeps no other numbers
    last, at = _last(db), house.timestamp()
    view = house.catalog.snapshot().find("v")
    orders = house.catalog.snapshot().find("orders")
    assert view is not None
    assert orders is not None
    steps = [step | {"cpu_seconds": bad, "seconds": bad} for step in last["steps"]]
    for chosen in ({"work": bad}, {"work": [bad] * 8}, {"cpu_seconds": bad}):
        body = last | {"chosen": (last["chosen"] or {}) | chosen | {"alone": True}, "steps": steps}
        if is_stored:
            house.catalog.commit([], [WriteEvent(Event("refresh", view.id, at, body))])
        house.experience.learn(body)
    for body in ({"change": {"inserts": bad}}, {"change": None}, {"rows": {"insert": bad}}):
        if is_stored:
            house.catalog.commit([], [WriteEvent(Event("change", orders.id, at, body))])
    _goes_on(db, 10**6)
    house.experience._measured = None  # as if the warehouse had just been opened
    _goes_on(db, 10**7)


def test_a_column_with_values_that_are_no_numbers_is_looked_at(tmp_path: Path) -> None:
    values = np.arange(20_000) % 50.0
    values[:2] = nan, inf
    with slackwater.connect(tmp_path / "w", placement="local") as db:
        db.sql("CREATE TABLE t (k BIGINT, x DOUBLE)")
        db.append("t", pa.table({"k": np.arange(20_000) % 7, "x": values}))
        db.sql(
            "CREATE MATERIALIZED VIEW v AS SELECT k, count(*) AS n FROM t WHERE x < 9 GROUP BY k"
        )
        db.refresh("v")
        (profile,) = db._house.profiling.known().known.values()
        assert profile.columns["x"].high is None
        assert profile.columns["x"].distinct > 10
        db.sql("INSERT INTO t VALUES (1, 2.0)")
        db.refresh("v")
        assert db.verify("v").equal
