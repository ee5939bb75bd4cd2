"""Results that are due together: which go first, which in one call, and what is feared of that."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import slackwater
from slackwater import Warehouse
from slackwater.service import risks
from slackwater.service.clock import SimulatedClock
from slackwater.service.goals import Due
from slackwater.service.told import Told
from slackwater.service.turns import families
from slackwater.service.units import AllAtOnce
from slackwater.work.expecting import Expectation
from slackwater.work.reports import RefreshReport
from slackwater.work.standing import Newest, standing

SECONDS = {"slow": 20.0, "tight": 1.0, "calm": 3.0, "upper": 0.5}
MAX, MIN = (f"SELECT {name}(id) AS m FROM sales" for name in ("MAX", "MIN"))
KINDS = "SELECT kind, COUNT(*) AS n FROM sales GROUP BY kind"


def taking(reports: Sequence[RefreshReport], measured: float) -> float:
    """Each view takes its own time, one after the other."""
    return sum(SECONDS.get(report.view, 0.0) for report in reports)


@pytest.fixture
def clock() -> SimulatedClock:
    return SimulatedClock("2026-01-05 00:00", taking=taking)


@pytest.fixture
def db(tmp_path: Path, clock: SimulatedClock) -> Iterator[Warehouse]:
    with slackwater.connect(tmp_path / "w", placement="local", clock=clock) as db:
        db.sql("CREATE TABLE sales (id BIGINT, kind BIGINT)")
        sell(db, 3)
        clock.every(1800, partial(sell, db, 3), until="2026-01-07 00:00")
        yield db


def sell(db: Warehouse, rows: int) -> None:
    db.append("sales", [{"id": i, "kind": i % 2} for i in range(rows)])


def view(db: Warehouse, name: str, query: str = KINDS, **options: str) -> None:
    said = ", ".join(f"{key} = '{value}'" for key, value in options.items())
    db.sql(f"CREATE MATERIALIZED VIEW {name} WITH ({said}) AS {query}")


def run(db: Warehouse, until: str) -> list[Told]:
    told: list[Told] = []
    with db.scheduler(listener=told.append, poll_seconds=1800, paces=AllAtOnce()) as scheduler:
        scheduler.run(until=until)
    return told


def goals(db: Warehouse, name: str, kind: str = "goal") -> list[dict[str, Any]]:
    return [e for e in reversed(db.history(name, limit=500)) if e["kind"] == kind]


def warnings(db: Warehouse, name: str, due: str) -> list[dict[str, Any]]:
    return [e for e in goals(db, name, "goal_at_risk") if e["due"][11:16] == due]


def calls(db: Warehouse, *names: str) -> int:
    """In how many runs were views refreshed last?"""
    return len({goals(db, name, "refresh")[-1]["run"] for name in names})


# -- which first


def test_a_tight_view_waits_for_no_slow_one_that_it_has_nothing_to_do_with(db: Warehouse) -> None:
    view(db, "slow", schedule="every 6 hours", within="1 minute")
    view(db, "tight", MAX, schedule="every 6 hours", within="2 seconds")
    view(db, "calm", MIN, schedule="every 6 hours")
    run(db, "2026-01-05 18:00")
    latencies = {n: [g["latency_seconds"] for g in goals(db, n)] for n in ("tight", "slow", "calm")}
    assert latencies == {"tight": [1.0] * 3, "slow": [21.0, 24.0, 24.0], "calm": [24.0] * 3}
    assert all(g["kept"] for n in latencies for g in goals(db, n))
    assert goals(db, "slow")[0]["seconds"] == pytest.approx(20.0)
    assert calls(db, "tight", "slow", "calm") == 2  # `slow` has time enough to wait for `calm`
    for name in latencies:
        assert db.verify(name).equal


def test_what_is_there_in_time_for_the_first_is_one_call(db: Warehouse) -> None:
    """As soon as it is known what each takes; without goals it is one at once."""
    view(db, "slow", schedule="every 6 hours", within="1 minute")
    view(db, "calm", MIN, schedule="every 6 hours", within="1 hour")
    run(db, "2026-01-05 06:00")
    assert calls(db, "slow", "calm") == 2
    run(db, "2026-01-05 12:00")
    assert calls(db, "slow", "calm") == 1
    last = [goals(db, name)[-1] for name in ("slow", "calm")]
    assert [g["latency_seconds"] for g in last] == [23.0, 23.0]
    assert sum(g["seconds"] for g in last) == pytest.approx(23.0)
    for name in ("slow", "calm"):
        db.sql(f"ALTER MATERIALIZED VIEW {name} RESET (within)")
    view(db, "more", "SELECT SUM(id) AS s FROM sales", schedule="every 6 hours")
    run(db, "2026-01-05 18:00")
    assert calls(db, "slow", "calm", "more") == 1


def test_views_that_read_each_other_are_served_at_one_version(db: Warehouse) -> None:
    view(db, "slow", schedule="every 6 hours", within="1 minute")
    view(db, "upper", "SELECT MAX(n) AS m FROM slow", schedule="every 6 hours", within="1 second")
    view(db, "tight", MAX, schedule="every 6 hours", within="2 seconds")
    run(db, "2026-01-05 06:00")
    assert calls(db, "slow", "upper") == 1
    assert calls(db, "upper", "tight") == 2
    assert goals(db, "tight")[-1]["latency_seconds"] == 21.5  # `upper` has less time still
    db.refresh("slow", "tight", "upper")
    assert calls(db, "slow", "upper", "tight") == 1, "asked for together, views are one commit"


def test_one_that_fails_takes_no_other_with_it(db: Warehouse) -> None:
    view(db, "calm", "SELECT SUM(12 / id) AS s FROM sales", schedule="every 6 hours")
    view(db, "upper", "SELECT COUNT(*) AS n FROM sales", schedule="every 6 hours")
    told = run(db, "2026-01-05 06:00")
    assert [t.view for t in told if t.kind == "failed" and f"{t.at:%H}" == "06"] == ["calm"]
    assert [g["kept"] for g in goals(db, "upper")] == [True]


def test_families_are_what_reading_views_and_parts_connects(
    db: Warehouse, rng: random.Random
) -> None:
    names = [f"v{i}" for i in range(12)]
    reads: dict[str, str] = {}
    for i, name in enumerate(names):
        below = rng.choice([None, None, *names[:i]]) if i else None
        if below is not None:
            reads[name] = below
        view(db, name, f"SELECT * FROM {below or 'sales'}")
    snapshot = db.catalog.snapshot()
    shown = rng.sample(list(snapshot.views()), 8)
    stands = [standing(Newest(db.catalog), snapshot, v) for v in shown]

    def root(name: str) -> str:
        return root(reads[name]) if name in reads else name

    found = families(snapshot, [Due(s, db._house.now(), None, False) for s in stands])
    wanted: dict[str, set[str]] = {}
    for own in shown:
        wanted.setdefault(root(own.name), set()).add(own.name)
    told = [{due.view.name for due in family} for family in found]
    assert sorted(map(sorted, told)) == sorted(map(sorted, wanted.values()))


# -- what is feared


class Taking:
    """In place of the cost model."""

    def __call__(self, house: Any, names: Sequence[str], more: Mapping[str, float]) -> Expectation:
        seconds = sum(SECONDS[name] for name in names)
        return Expectation(seconds, seconds)


def test_what_is_served_first_counts_in_warnings(
    db: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(risks, "expected", Taking())
    view(db, "calm", MIN, schedule="every 6 hours", within="4 seconds")
    view(db, "tight", MAX, schedule="every 6 hours", within="2 seconds")
    view(db, "slow", schedule="every 6 hours", within="23 seconds")
    run(db, "2026-01-05 07:00")
    assert goals(db, "tight", "goal_at_risk") == []
    assert goals(db, "calm", "goal_at_risk") == []
    (warned,) = warnings(db, "slow", "12:00")
    assert warned["expected_seconds"] == 24.0


def test_what_is_due_just_before_counts_in_warnings(
    db: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The slow one, begun each full hour, takes twenty seconds, or six more than ten minutes."""
    monkeypatch.setattr(risks, "expected", Taking())
    view(db, "slow", schedule="every 1 hour")
    view(db, "tight", MAX, schedule="10 * * * *", within="5 seconds")
    run(db, "2026-01-05 03:30")
    assert goals(db, "tight", "goal_at_risk") == []
    SECONDS["slow"] = 606.0
    try:
        run(db, "2026-01-05 05:05")
    finally:
        SECONDS["slow"] = 20.0
    (warned,) = warnings(db, "tight", "05:10")
    assert warned["expected_seconds"] == pytest.approx(7.0)


def test_a_burst_after_the_last_look_is_noticed(
    db: Warehouse, clock: SimulatedClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    def by_rows(house: Any, names: Sequence[str], more: Mapping[str, float]) -> Expectation:
        snapshot = house.catalog.snapshot()
        (table,) = snapshot.tables()
        rows = sum(s.rows for s in snapshot.segments(table.id)) + sum(more.values())
        return Expectation(rows / 1000, rows / 1000)

    monkeypatch.setattr(risks, "expected", by_rows)
    view(db, "calm", MIN, schedule="every 6 hours", within="5 seconds")
    clock.at("2026-01-05 17:10", partial(sell, db, 10_000))
    told = run(db, "2026-01-05 18:00")
    (warned,) = warnings(db, "calm", "18:00")
    assert warned["at"][11:16] == "17:30"  # the next time that anything is looked at
    assert next(f"{t.at:%H:%M}" for t in told if t.kind == "at risk") == "17:30"
