"""Paces and kept states in turn: no pace rests on a state for which there is no room."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

import slackwater
from slackwater import Warehouse
from slackwater.planner import rounds, simulation
from slackwater.planner.decomposition import Decomposition
from slackwater.planner.pace import Goal, Search
from slackwater.planner.rounds import Budgets, Sought, within_budgets
from slackwater.planner.simulation import Setting, Simulation
from slackwater.planner.subplans import cut
from slackwater.service.clock import SimulatedClock
from slackwater.service.paced import ByGoals
from slackwater.work.pacing import Paced, planned
from tests.test_pace import ABOVE_AVERAGE, BY_REGION, LARGEST, inflows, query

BYTES = 10.0


def bytes_of(rows: float, columns: int) -> float:
    return rows * columns * BYTES


def sought(texts: Mapping[str, str], goal: float = 0.2) -> tuple[Setting, object]:
    goals = {name: Goal(share=goal) for name in texts}

    def seek(setting: Setting) -> Sought:
        dag = cut({name: query(text) for name, text in texts.items()})
        search = Search(Simulation(dag, setting), goals)
        return search, search.greedy()

    return Setting(inflows()), seek


def found_within(texts: Mapping[str, str], **budgets: float) -> Sought:
    setting, seek = sought(texts)
    return within_budgets(seek, setting, Budgets(budgets, bytes_of))  # type: ignore[arg-type]


def kept_bytes(search: Search, name: str) -> float:
    """By what is kept of each subplan that is of a query, at its share."""
    own = (s for s in search.dag.subplans if name in s.queries)
    return sum(
        bytes_of(rows, width) / len(s.queries)
        for s in own
        for rows, width in search.simulation.states(s.number).values()
    )


def test_without_budgets_nothing_is_different() -> None:
    setting, seek = sought({"q": LARGEST})
    _, plain = seek(setting)  # type: ignore[operator]
    search, found = found_within({"q": LARGEST})
    assert found == plain
    assert search.simulation.setting.dropped == frozenset()


def test_with_room_for_all_what_pays_is_kept() -> None:
    _, plain = found_within({"q": LARGEST})
    search, found = found_within({"q": LARGEST}, q=1e15)
    assert kept_bytes(search, "q") > 0
    assert found.total <= plain.total
    assert found.final["q"] <= plain.final["q"]


@pytest.mark.parametrize("text", [LARGEST, ABOVE_AVERAGE, BY_REGION])
def test_paces_do_not_rest_on_states_for_which_there_is_no_room(text: str) -> None:
    """Sums that cannot be kept are computed again by each run: early runs are of less use."""
    _, plain = found_within({"q": text})
    search, found = found_within({"q": text}, q=0.0)
    assert search.simulation.setting.dropped
    assert kept_bytes(search, "q") == 0.0
    assert search.total(plain.paces) > plain.total  # what those paces really cost
    assert found.wanted == pytest.approx(plain.wanted)


@pytest.mark.parametrize("share", [0.05, 0.3, 0.6, 0.9])
def test_the_states_that_are_kept_have_room(share: float) -> None:
    texts = {"a": LARGEST, "b": ABOVE_AVERAGE, "c": BY_REGION}
    whole, _ = found_within(texts)
    budgets = {name: share * kept_bytes(whole, name) for name in ("a", "b")}
    search, found = found_within(texts, **budgets)
    for name, budget in budgets.items():
        assert kept_bytes(search, name) <= budget
    assert found.paces.keys() == dict.fromkeys(search.paths).keys()


def test_the_states_chosen_at_some_paces_are_the_best_that_fit() -> None:
    """Against all subsets of what may be kept."""
    whole, found = found_within({"q": ABOVE_AVERAGE})
    units = whole.units(found.paces)
    sizes = {
        state: bytes_of(*size)
        for unit in units.items()
        for state, size in whole.simulation.states(*unit).items()
    }

    def total(kept: frozenset[str]) -> float:
        own = replace(whole.simulation.setting, dropped=frozenset(sizes) - kept, _costs={})
        simulation = Simulation(whole.dag, own)
        return Search(simulation, {}).total(found.paces)

    subsets = [
        frozenset(chosen)
        for k in range(len(sizes) + 1)
        for chosen in itertools.combinations(sorted(sizes), k)
    ]
    for share in (0.0, 0.2, 0.5, 0.8, 1.0):
        budget = share * sum(sizes.values())
        dropped = rounds._dropped(whole, found, Budgets({"q": budget}, bytes_of))
        kept = frozenset(sizes) - dropped
        assert sum(sizes[s] for s in kept) <= budget
        best = min(total(own) for own in subsets if sum(sizes[s] for s in own) <= budget)
        assert total(kept) == pytest.approx(best)


def test_what_is_shared_counts_for_each_with_its_share() -> None:
    """The sums that both read fit where each has half the room; not where one has none."""
    texts = {"a": ABOVE_AVERAGE, "b": ABOVE_AVERAGE + " AND s.id > 3"}
    whole, _ = found_within(texts)
    (shared,) = (s for s in whole.dag.subplans if len(s.queries) == 2 and not s.children)
    ((state, size),) = (
        (state, bytes_of(*size)) for state, size in whole.simulation.states(shared.number).items()
    )
    for budgets, is_kept in (
        ({"a": 0.51 * size, "b": 0.51 * size}, True),
        ({"a": 0.51 * size}, True),
        ({"a": 0.51 * size, "b": 0.4 * size}, False),
    ):
        search, _ = found_within(texts, **budgets)
        kept = search.simulation.states(shared.number)
        assert (state in kept) == is_kept
        for name, budget in budgets.items():
            assert kept_bytes(search, name) <= budget


def test_who_shares_what_is_found_with_the_states_that_there_is_room_for() -> None:
    queries = {"a": query(LARGEST), "b": query(LARGEST + " WHERE n > 5"), "c": query(BY_REGION)}
    goals = {name: Goal(share=0.2) for name in queries}

    def seek(setting: Setting) -> Sought:
        best = Decomposition(queries, setting, goals).best()
        return best.search, best.found

    search, found = within_budgets(seek, Setting(inflows()), Budgets({"a": 0.0}, bytes_of))
    assert kept_bytes(search, "a") == 0.0
    assert set(found.final) == set(queries)


def test_rounds_end_when_they_gain_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    setting, seek = sought({"q": ABOVE_AVERAGE})
    asked: list[Setting] = []

    def counting(own: Setting) -> Sought:
        asked.append(own)
        return seek(own)  # type: ignore[no-any-return, operator]

    within_budgets(counting, setting, Budgets({"q": 1e3}, bytes_of))
    assert 1 < len(asked) <= rounds.ROUNDS + 1
    monkeypatch.setattr(rounds, "GAIN", 1.0)
    asked.clear()
    within_budgets(counting, setting, Budgets({"q": 1e3}, bytes_of))
    assert len(asked) == 2


# -- of a warehouse


@pytest.fixture
def db(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Warehouse]:
    """Where only rows cost anything, and many have come."""
    for measure in simulation.RUN:
        monkeypatch.setitem(simulation.RUN, measure, 0.0)
    clock = SimulatedClock("2026-01-05 00:00", taking=lambda reports, measured: 1.0)
    with slackwater.connect(tmp_path / "w", placement="local", clock=clock) as db:
        db.sql("CREATE TABLE sales (customer BIGINT, amount BIGINT)")
        for hour in range(5):
            clock.wait(clock.now().replace(hour=hour, minute=30))
            ids = range(60_000)
            rows = {"customer": [i % 20_000 for i in ids], "amount": [i % 7 for i in ids]}
            db.append("sales", pa.table(rows))
        yield db


def plan_of(db: Warehouse, budget: str) -> Paced:
    db.sql(f"ALTER MATERIALIZED VIEW v SET (state_budget = '{budget}')")
    (paced,) = planned(db._house, db._house.now())
    return paced


def test_a_goal_is_not_said_to_be_met_by_states_that_are_not_kept(db: Warehouse) -> None:
    db.sql(
        """
        CREATE MATERIALIZED VIEW v WITH (schedule = 'every 6 hours', within = '0.75x') AS
        SELECT n % 10 AS bucket, COUNT(*) AS k FROM
          (SELECT customer, SUM(amount) AS n FROM sales GROUP BY customer) GROUP BY n % 10
        """
    )
    rich, poor = plan_of(db, "1 GB"), plan_of(db, "1 KB")
    (met,), (missed,) = rich.expectations(), poor.expectations()
    assert met.is_met
    assert met.final < missed.final
    assert rich.search.simulation.setting.dropped < poor.search.simulation.setting.dropped


def test_another_budget_is_planned_for(db: Warehouse) -> None:
    """With less room the sums of early runs are not kept, and other parts run early."""
    db.sql(
        """
        CREATE MATERIALIZED VIEW v WITH (schedule = 'every 6 hours', within = '0.75x') AS
        SELECT n % 10 AS bucket, COUNT(*) AS k FROM
          (SELECT customer, SUM(amount) AS n FROM sales GROUP BY customer) GROUP BY n % 10
        """
    )
    db.refresh()
    paces = ByGoals(db._house)
    now = db._house.now()
    before = {unit.id: unit.pace for unit in paces.units(now)}
    assert before
    assert {unit.id: unit.pace for unit in paces.units(now)} == before
    db.sql("ALTER MATERIALIZED VIEW v SET (state_budget = '1 KB')")
    assert {unit.id: unit.pace for unit in paces.units(now)} != before
    db.sql("ALTER MATERIALIZED VIEW v RESET (state_budget)")
    assert sorted(u.pace for u in paces.units(now)) == sorted(before.values())
    db.refresh()
    assert db.verify("v").equal
