"""The scheduler on a simulated clock: what is done when, whatever happens meanwhile."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import slackwater
from slackwater import Warehouse
from slackwater.catalog.model import ChangeOptions
from slackwater.errors import StateError, UserError
from slackwater.service import risks
from slackwater.service.clock import SimulatedClock
from slackwater.service.early import Slot, fitting
from slackwater.service.told import Summary, Told
from slackwater.service.units import Unit
from slackwater.timing import parse_prices
from slackwater.work.expecting import Expectation
from slackwater.work.reports import RefreshReport
from tests.processes import Child

DAY, NEXT = "2026-01-05 00:00", "2026-01-06 00:00"
TAKES = 2.0
TOTAL = "AS SELECT kind, SUM(amount) AS total FROM sales GROUP BY kind"


def opened(path: Path, clock: SimulatedClock) -> Warehouse:
    settings: dict[str, Any] = {"placement": "local", "refresh": "incremental", "clock": clock}
    return slackwater.connect(path, **settings)


@pytest.fixture
def clock() -> SimulatedClock:
    """Midnight; every refresh takes two seconds."""
    return SimulatedClock(DAY, taking=lambda reports, measured: TAKES)


@pytest.fixture
def db(tmp_path: Path, clock: SimulatedClock) -> Iterator[Warehouse]:
    """A table of sales, to which one row has come."""
    with opened(tmp_path / "warehouse", clock) as warehouse:
        warehouse.sql("CREATE TABLE sales (id BIGINT, kind STRING, amount BIGINT)")
        sell(warehouse, 1)
        yield warehouse


def sell(db: Warehouse, rows: int) -> None:
    """More sales."""
    db.append("sales", [{"id": i, "kind": "ab"[i % 2], "amount": i} for i in range(rows)])


def view(db: Warehouse, name: str, query: str = TOTAL, **options: str) -> None:
    said = ", ".join(f"{key} = '{value}'" for key, value in options.items())
    db.sql(f"CREATE MATERIALIZED VIEW {name} WITH ({said}) {query}")


def run(db: Warehouse, until: str, **options: Any) -> list[Told]:
    """All that a scheduler does until then."""
    told: list[Told] = []
    with db.scheduler(listener=told.append, **{"poll_seconds": 300, **options}) as scheduler:
        scheduler.run(until=until)
    return told


def of(told: Sequence[Told], kind: str, view: str | None = None) -> list[str]:
    """When things of a kind were told."""
    return [f"{t.at:%H:%M:%S}" for t in told if t.kind == kind and view in (None, t.view)]


def events(db: Warehouse, kind: str, view: str) -> list[dict[str, Any]]:
    """Oldest first."""
    return [e for e in reversed(db.history(view, limit=1000)) if e["kind"] == kind]


def require_exact(db: Warehouse) -> None:
    for known in db.catalog.snapshot().views():
        verification = db.verify(known.name)
        assert verification, str(verification)


# -- a day


def test_a_day_of_several_schedules(db: Warehouse, clock: SimulatedClock) -> None:
    view(db, "report", schedule="daily 06:00", within="30 seconds")
    view(db, "hourly", schedule="every 8 hours", within="1 second")
    view(db, "noon", "AS SELECT COUNT(*) AS n FROM hourly", schedule="0 12 * * *")
    view(db, "counted", schedule="every 10 rows")
    view(db, "by_hand", schedule="manual")
    clock.every(3600, lambda: sell(db, 3), until=NEXT)
    told = run(db, NEXT)
    assert of(told, "refreshed", "report") == ["00:00:08", "06:00:02"]  # loaded at once, then due
    due = ["08:00:02", "12:00:02", "16:00:02", "00:00:02"]
    assert of(told, "refreshed", "hourly")[2:] == due  # at 12 for `noon`
    assert of(told, "refreshed", "noon")[1:] == ["12:00:02"]
    assert of(told, "refreshed", "by_hand") == []
    assert len(of(told, "refreshed", "counted")) == 1 + 24 // 4
    assert of(told, "missed") == ["08:00:02", "16:00:02", "00:00:02"]
    assert clock.now() == datetime(
        2026, 1, 6, 0, 0, 4, tzinfo=UTC
    )  # `counted` comes after `hourly`
    db.refresh("by_hand")
    require_exact(db)


def test_a_goal_is_written_down_with_the_refresh_that_keeps_or_misses_it(
    db: Warehouse, clock: SimulatedClock
) -> None:
    db.sql("ALTER WAREHOUSE SET (prices = '0.25 from 22:00 to 07:00')")
    view(db, "kept", schedule="daily 06:00", within="2 seconds")
    view(db, "missed", schedule="daily 06:00", within="1.5 seconds")
    view(db, "unasked", schedule="daily 06:00")
    clock.at("2026-01-05 05:00", lambda: sell(db, 3))
    run(db, "2026-01-05 07:00")
    found = {name: events(db, "goal", name) for name in ("kept", "missed", "unasked")}
    (goal,) = found["kept"]
    assert goal["due"] == "2026-01-05T06:00:00.000000+00:00"
    assert goal["finished"] == "2026-01-05T06:00:02.000000+00:00"
    assert (goal["latency_seconds"], goal["within_seconds"]) == (2.0, 2.0)
    assert (goal["kept"], goal["price"]) == (True, 0.25)
    assert goal["cpu_seconds"] > 0
    assert [g["kept"] for g in found["missed"]] == [False]
    assert [(g["kept"], g["within_seconds"]) for g in found["unasked"]] == [(True, None)]
    runs = {events(db, "refresh", name)[-1]["run"] for name in found}
    assert len(runs) == 1, "what is due at one moment is refreshed in one call"


def test_a_share_is_one_of_the_batch_work(
    db: Warehouse, clock: SimulatedClock, tmp_path: Path
) -> None:
    view(db, "half", schedule="every 1 hour", within="0.5x")
    view(db, "whole", schedule="every 1 hour", within="1x")
    clock.at("2026-01-05 00:30", lambda: sell(db, 3))
    run(db, "2026-01-05 01:00")
    half, whole = (events(db, "goal", name)[0]["within_seconds"] for name in ("half", "whole"))
    assert half > 0
    assert whole == pytest.approx(2 * half)
    with opened(tmp_path / "warehouse", clock) as again:  # which has learned what refreshes take
        sell(again, 3)
        run(again, "2026-01-05 02:00")
        assert [g["kept"] for g in events(again, "goal", "half")] == [False, False]


def test_status_tells_goals_costs_and_when_a_view_is_due(
    db: Warehouse, clock: SimulatedClock
) -> None:
    view(db, "hourly", schedule="every 1 hour", within="1 second", state_budget="2 MB")
    view(db, "counted", schedule="every 10 rows")
    clock.at("2026-01-05 01:30", lambda: sell(db, 3))
    run(db, "2026-01-05 02:00")
    hourly, counted = sorted(db.status()["views"], key=lambda v: v["name"] != "hourly")
    assert (hourly["goals_kept"], hourly["goals_missed"]) == (0, 2)
    assert hourly["next_due"] == "2026-01-05T03:00:00+00:00"
    assert hourly["state_budget"] == 2_000_000
    assert list(hourly["cpu_seconds"]) == ["2026-01-05"]
    assert (counted["next_due"], counted["rows_until_due"]) == (None, 7)


# -- rows that come


def test_rows_are_counted_through_views_and_in_folders_of_others(
    db: Warehouse, clock: SimulatedClock, tmp_path: Path
) -> None:
    folder = tmp_path / "files"
    folder.mkdir()

    def deliver() -> None:
        name = folder / f"{clock.now():%H%M}.parquet"
        pq.write_table(pa.table({"x": pa.array([1, 2, 3], pa.int64())}), name)

    deliver()
    db.sql(f"CREATE TABLE files USING parquet OPTIONS (path '{folder}')")
    view(db, "base", schedule="manual")
    view(db, "above", "AS SELECT SUM(total) AS t FROM base", schedule="every 4 rows")
    view(db, "outside", "AS SELECT SUM(x) AS t FROM files", schedule="every 6 rows")
    clock.every(3600, deliver, until="2026-01-05 05:00")
    clock.every(3600, lambda: sell(db, 2), until="2026-01-05 05:00")
    told = run(db, "2026-01-05 06:00", poll_seconds=600)
    assert of(told, "refreshed", "outside")[1:] == ["02:00:02", "04:00:02"]
    assert of(told, "refreshed", "above")[1:] == ["02:00:02", "04:00:02"]
    came = [e["rows"].get("arrive", 0) for e in events(db, "change", "files")]
    assert came == [0, 3, 3, 3, 3, 3]
    db.refresh()
    require_exact(db)


def test_rows_count_as_they_came_though_they_are_merged_before_they_are_read(
    db: Warehouse, clock: SimulatedClock
) -> None:
    """Each update changes two rows, and is gone with the next: of all of them, two are left."""
    sell(db, 99)
    view(db, "counted", schedule="every 40 rows")

    def update() -> None:
        db.sql("UPDATE sales SET amount = amount + 1 WHERE id = 98")
        db.compact("sales")

    clock.every(60, update, until="2026-01-05 00:30")
    told = run(db, "2026-01-05 00:45", poll_seconds=900)
    assert of(told, "refreshed") == ["00:00:02", "00:30:02"]
    (goal,) = events(db, "goal", "counted")
    assert goal["due"][11:16] == "00:20"
    require_exact(db)


def test_rows_that_are_gone_again_have_come(db: Warehouse, clock: SimulatedClock) -> None:
    view(db, "counted", schedule="every 10 rows")
    run(db, "2026-01-05 00:10")
    db.append("sales", [{"id": 7, "kind": "c", "amount": 1}])
    db.sql("DELETE FROM sales WHERE id = 7")
    left = []
    for change in (lambda: None, lambda: db.compact("sales"), lambda: db.sql("TRUNCATE sales")):
        change()
        left.append(db.status()["views"][0]["rows_until_due"])
    assert left == [8, 8, 8]
    sell(db, 8)
    assert of(run(db, "2026-01-05 00:20"), "refreshed") == ["00:10:02"]
    require_exact(db)


# -- what goes wrong


def test_what_fell_due_meanwhile_is_done_once(db: Warehouse, clock: SimulatedClock) -> None:
    view(db, "hourly", schedule="every 1 hour", within="1 minute")
    view(db, "report", schedule="daily 06:00")
    run(db, "2026-01-05 01:00")
    sell(db, 5)
    clock.wait(datetime(2026, 1, 5, 4, 30, tzinfo=UTC))  # nobody is there
    told = run(db, "2026-01-05 05:00")
    assert [t.text for t in told if t.kind == "catch up"] == [
        "hourly: due for up to 2.5 h, refreshed once each"
    ]
    assert of(told, "refreshed") == ["04:30:02", "05:00:02"]
    late = events(db, "goal", "hourly")[1]
    assert (late["due"][11:16], late["kept"], late["latency_seconds"]) == ("02:00", False, 9002.0)
    require_exact(db)


def test_a_view_that_fails_is_told_and_tried_when_it_is_due_again(
    db: Warehouse, clock: SimulatedClock
) -> None:
    view(db, "shares", "AS SELECT SUM(12 / amount) AS s FROM sales", schedule="every 1 hour")
    view(db, "hourly", schedule="every 1 hour")
    clock.at("2026-01-05 02:30", lambda: db.sql("DELETE FROM sales WHERE amount = 0"))
    clock.at("2026-01-05 02:30", lambda: sell_one(db))
    told = run(db, "2026-01-05 03:00")
    failures = [t for t in told if t.kind == "failed"]
    assert [f"{t.at:%H:%M}" for t in failures] == ["00:00", "01:00", "02:00"]
    assert "DIVIDE" in failures[0].text
    assert "tried again at 2026-01-05 01:00:00" in failures[0].text
    assert of(told, "refreshed", "shares") == ["03:00:02"]
    assert len(of(told, "refreshed", "hourly")) == 4
    assert [g["kept"] for g in events(db, "goal", "shares")] == [False] * 3 + [True]
    assert run(db, "2026-01-05 03:10")[-1].text == str(Summary()), "and not again before that"


def sell_one(db: Warehouse) -> None:
    db.sql("INSERT INTO sales VALUES (9, 'a', 3)")


def test_a_result_that_rows_decide_is_tried_again_when_as_many_have_come(
    db: Warehouse, clock: SimulatedClock
) -> None:
    view(db, "shares", "AS SELECT SUM(12 / amount) AS s FROM sales", schedule="every 2 rows")
    clock.every(3600, lambda: sell_one(db), until="2026-01-05 05:00")
    told = run(db, "2026-01-05 05:00")
    assert of(told, "failed") == ["00:00:00", "02:00:00", "04:00:00"]
    assert "as many rows" in told[1].text


def test_an_option_that_nobody_understands_stops_no_other_view(
    db: Warehouse, clock: SimulatedClock
) -> None:
    view(db, "good", schedule="every 1 hour")
    view(db, "odd", schedule="every 1 hour")
    odd = db.catalog.snapshot().find("odd")
    assert odd is not None
    db.catalog.commit([], [ChangeOptions(odd.id, {"schedule": "at times"})])
    clock.every(1800, lambda: sell(db, 1), until="2026-01-05 02:00")
    told = run(db, "2026-01-05 02:00")
    assert [t.view for t in told if t.kind == "failed"] == ["odd"], "said once"
    assert len(of(told, "refreshed", "good")) == 3
    assert [v["next_due"] for v in db.status()["views"] if v["name"] == "odd"] == [None]


def test_a_catalog_that_is_away_is_asked_again(
    db: Warehouse, clock: SimulatedClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    view(db, "hourly", schedule="every 1 hour")
    run(db, "2026-01-05 00:30")
    plain = db.catalog.snapshot

    def away() -> None:
        raise StateError("The catalog cannot be reached.", code="CATALOG_UNAVAILABLE")

    clock.at("2026-01-05 00:58", lambda: monkeypatch.setattr(db.catalog, "snapshot", away))
    clock.at("2026-01-05 01:08", lambda: monkeypatch.setattr(db.catalog, "snapshot", plain))
    told = run(db, "2026-01-05 02:00")
    assert of(told, "failed") == ["01:00:00", "01:05:00"]
    assert of(told, "refreshed") == ["01:10:02", "02:00:02"]


def test_a_second_scheduler_finds_done_what_the_first_has_done(
    db: Warehouse, clock: SimulatedClock, tmp_path: Path
) -> None:
    view(db, "hourly", schedule="every 1 hour", within="1 minute")
    other_clock = SimulatedClock(DAY)
    with opened(tmp_path / "warehouse", other_clock) as other:
        run(db, "2026-01-05 01:00")
        assert of(run(other, "2026-01-05 01:00"), "refreshed") == []
        sell(other, 3)
        assert of(run(other, "2026-01-05 02:00"), "refreshed") != []
        assert of(run(db, "2026-01-05 02:00"), "refreshed") == []
    assert len(events(db, "goal", "hourly")) == 2
    require_exact(db)


def test_of_two_at_the_same_result_one_writes_the_goal_down(
    db: Warehouse, clock: SimulatedClock, tmp_path: Path
) -> None:
    """The second has seen that the result is due, and comes to refresh it after the first."""
    view(db, "hourly", schedule="every 1 hour", within="1 minute")
    run(db, "2026-01-05 00:30")
    with opened(tmp_path / "warehouse", SimulatedClock("2026-01-05 01:00")) as other:
        plain, met = db.refresh, []

        def late(*names: str, **options: Any) -> list[RefreshReport]:
            met.append(of(run(other, "2026-01-05 01:00"), "refreshed"))
            return plain(*names, **options)

        db.refresh = late  # type: ignore[method-assign]
        told = run(db, "2026-01-05 01:00")
    assert len(met[0]) == 1
    assert len(of(told, "refreshed")) == 1
    assert len(events(db, "goal", "hourly")) == 1


def test_two_processes_may_play_the_same_day(db: Warehouse, tmp_path: Path) -> None:
    """However they get in each other's way, each result comes once and is exact."""
    view(db, "hourly", schedule="every 1 hour", within="1 minute")
    view(db, "above", "AS SELECT SUM(total) AS t FROM hourly", schedule="every 2 hours")
    run(db, "2026-01-05 00:10")
    path = tmp_path / "warehouse"
    players = [Child(play, path, number) for number in range(2)]
    for player in players:
        player.result()
    for name, most in (("hourly", 12), ("above", 6)):
        dues = [e["due"] for e in events(db, "goal", name)]
        assert len(dues) == len(set(dues)) <= most
    assert db.sql("SELECT COUNT(*) FROM sales").fetchall() == [(1 + 2 * 3 * 11,)]
    require_exact(db)


def play(path: Path, number: int) -> None:
    """Half a day, in which rows come every hour, ten minutes later for the second player."""
    clock = SimulatedClock(f"2026-01-05 00:{number + 1}0", lambda *_: TAKES)
    with opened(path, clock) as db:
        clock.every(3600, lambda: sell(db, 3), until="2026-01-05 12:00")
        run(db, "2026-01-05 12:00", poll_seconds=1800)


def test_a_view_that_somebody_else_holds_is_looked_at_again(
    tmp_path: Path, db: Warehouse, clock: SimulatedClock
) -> None:
    view(db, "hourly", schedule="every 1 hour")
    run(db, "2026-01-05 00:30")
    settings: dict[str, Any] = {"placement": "local", "clock": clock, "lease_wait_seconds": 0}
    with slackwater.connect(tmp_path / "warehouse", **settings) as waiting:
        lease = db.catalog.lease([db.catalog.snapshot().views()[0].id])
        clock.at("2026-01-05 01:07", lease.release)
        told = run(waiting, "2026-01-05 01:30")
    assert of(told, "held") == ["01:00:00", "01:05:00"]
    assert of(told, "refreshed") == ["01:10:02"]
    assert of(told, "failed") == []


def test_a_new_schedule_counts_from_when_it_was_set(db: Warehouse, clock: SimulatedClock) -> None:
    view(db, "report", schedule="manual")
    db.refresh("report")
    set_hourly = "ALTER MATERIALIZED VIEW report SET (schedule = 'every 1 hour')"
    clock.at("2026-01-05 03:30", lambda: db.sql(set_hourly))
    told = run(db, "2026-01-05 04:00")
    assert of(told, "refreshed") == ["04:00:02"]
    assert events(db, "goal", "report")[0]["latency_seconds"] == TAKES


def test_it_stops_after_what_is_under_way(db: Warehouse, clock: SimulatedClock) -> None:
    view(db, "hourly", schedule="every 1 hour")
    told: list[Told] = []
    scheduler = db.scheduler(listener=told.append, poll_seconds=300)
    clock.at("2026-01-05 02:00:01", scheduler.stop)  # while it refreshes
    scheduler.run(until=NEXT)
    assert of(told, "refreshed")[-1] == "02:00:01"
    assert [t.kind for t in told][-1] == "stop"
    assert told[-1].text.startswith("3 refreshes")


# -- warnings


def test_a_goal_that_will_be_missed_is_said_once_before(
    db: Warehouse, clock: SimulatedClock
) -> None:
    view(db, "soon", schedule="every 2 hours", within="0.001 seconds")
    view(db, "calm", schedule="every 2 hours", within="10 minutes")
    clock.every(600, lambda: sell(db, 5), until=NEXT)
    told = run(db, "2026-01-05 04:00")
    warned = [t for t in told if t.kind == "at risk"]
    assert {t.view for t in warned} == {"soon"}
    found = events(db, "goal_at_risk", "soon")
    assert [e["due"][11:16] for e in found] == ["02:00", "04:00", "06:00"]
    assert all(e["at"] < e["due"] for e in found)
    assert all(e["expected_seconds"] > e["within_seconds"] for e in found)


def test_so_is_one_of_a_result_that_rows_decide(db: Warehouse, clock: SimulatedClock) -> None:
    view(db, "counted", schedule="every 20 rows", within="0.001 seconds")
    clock.every(600, lambda: sell(db, 5), until="2026-01-05 01:00")
    run(db, "2026-01-05 01:00")
    found = events(db, "goal_at_risk", "counted")
    assert [e["at"][11:16] for e in found] == ["00:00", "00:40"]  # after each result, the next
    assert [e["due"] for e in found] == [None, None]


class Taking:
    """In place of the cost model: each row to come takes so many seconds, more or less."""

    def __init__(self, seconds: float, error: float = 0.0) -> None:
        self._seconds = seconds
        self._error = error
        self.asked = 0

    def __call__(self, house: Any, names: Sequence[str], more: Mapping[str, float]) -> Expectation:
        self.asked += 1
        takes = self._seconds * sum(more.values())
        return Expectation(takes, takes, self._error * takes)


@pytest.mark.parametrize(
    ("batches", "error", "warned"),
    [((5, 5, 5), 0.0, False), ((1, 8, 6), 0.0, True), ((5, 5, 5), 0.5, True)],
)
def test_it_is_said_sooner_by_as_much_as_expectations_were_off(
    db: Warehouse,
    clock: SimulatedClock,
    monkeypatch: pytest.MonkeyPatch,
    batches: Sequence[int],
    error: float,
    warned: bool,
) -> None:
    """As many rows come, at one rate or at another each hour, and cost what was expected or may
    cost more: 15 rows in three hours, a second each, are allowed 21.5 seconds."""
    monkeypatch.setattr(risks, "expected", Taking(1.0, error))
    view(db, "report", schedule="every 3 hours", within="21.5 seconds")
    for hour in range(9):
        clock.at(f"2026-01-05 {hour + 1:02}:00", partial(sell, db, batches[hour % 3]))
    run(db, "2026-01-05 09:00:03")
    found = [e for e in events(db, "goal_at_risk", "report") if e["due"][11:16] == "12:00"]
    assert bool(found) is warned
    for event in found:
        assert event["expected_seconds"] < 21.5 < event["at_most_seconds"]


def test_what_is_far_from_too_long_is_not_worked_out_again(
    db: Warehouse, clock: SimulatedClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Unless more rows come than before: three seconds a result, then three hundred."""
    monkeypatch.setattr(risks, "expected", taking := Taking(0.001))
    view(db, "report", schedule="every 3 hours", within="100 seconds")
    for hour in range(9):
        clock.at(f"2026-01-05 {hour + 1:02}:00", partial(sell, db, 1000))
    run(db, "2026-01-05 09:30")
    asked = taking.asked
    assert asked <= 4  # of thirteen looks
    assert events(db, "goal_at_risk", "report") == []
    for hour in range(9, 12):
        clock.at(f"2026-01-05 {hour + 1:02}:00", partial(sell, db, 100_000))
    run(db, "2026-01-05 15:30")
    assert taking.asked > asked
    found = events(db, "goal_at_risk", "report")
    assert found
    assert all(e["at_most_seconds"] > 100 for e in found)


# -- early runs


class Noting:
    """One unit at a pace; when it is advanced is noted."""

    def __init__(self, clock: SimulatedClock, pace: int, *views: str) -> None:
        self.clock = clock
        self.unit = Unit("u", "part", pace, views)
        self.runs: list[str] = []

    def units(self, now: datetime) -> Sequence[Unit]:
        return [self.unit]

    def advance(self, units: Sequence[Unit]) -> Sequence[RefreshReport]:
        assert units == [self.unit]
        self.runs.append(f"{self.clock.now():%H:%M}")
        return []


def test_units_run_early_as_their_rows_come(db: Warehouse, clock: SimulatedClock) -> None:
    view(db, "counted", schedule="every 12 rows")
    clock.every(3600, lambda: sell(db, 3), until=NEXT)
    paces = Noting(clock, 4, "counted")
    run(db, "2026-01-05 06:10", paces=paces, poll_seconds=600)
    run(db, "2026-01-05 12:00", paces=paces, poll_seconds=600)  # started again: none is repeated
    assert paces.runs == [
        "01:00",
        "02:00",
        "03:00",
        "05:00",
        "06:00",
        "07:00",
        "09:00",
        "10:00",
        "11:00",
    ]
    assert [e["run"] for e in reversed(db.history()) if e["kind"] == "early"][:4] == [1, 2, 3, 1]


def lasting(seconds: float) -> SimulatedClock:
    """A clock on which early runs take so long, and refreshes two seconds."""
    return SimulatedClock(DAY, taking=lambda reports, measured: TAKES if reports else seconds)


@pytest.mark.parametrize(
    ("takes", "known", "begun"),
    [
        (600.0, 600.0, ["08:40", "09:40", "10:40"]),
        (2000.0, 2000.0, ["09:00", "10:00", "11:00"]),
        (2000.0, 0.0, ["09:00", "10:00", "11:00"]),
        # With what it may take longer there is no room in an hour, unless that is doubted.
        (2700.0, 2700.0, ["10:00"]),
    ],
)
def test_no_result_waits_for_an_early_run(
    tmp_path: Path, takes: float, known: float, begun: Sequence[str]
) -> None:
    """A quarter of the rows is there at twenty to, and each full hour a result of another view is
    due: what does not fit before that begins after it. How long runs take is told by the plan, and
    then by the last one."""
    clock = lasting(takes)
    with opened(tmp_path / "w", clock) as db:
        db.sql("CREATE TABLE sales (id BIGINT, kind STRING, amount BIGINT)")
        sell(db, 1)
        view(db, "report", schedule="0 */4 * * *", within="5 seconds")
        view(db, "quick", schedule="every 1 hour", within="5 seconds")
        for hour in range(12):
            clock.at(f"2026-01-05 {hour:02}:40", partial(sell, db, 3))
        paces = Noting(clock, 4, "report")
        paces.unit = replace(paces.unit, seconds=known)
        run(db, "2026-01-05 12:00", paces=paces)
        goals = [e for name in ("report", "quick") for e in events(db, "goal", name)]
        missed = [e["due"][11:16] for e in goals if not e["kept"]]
        assert len(goals) == 3 + 12
        assert [due for due in missed if known or due > "08:00"] == []
        assert [early for early in paces.runs if early > "08:00"] == begun
        measured = [e["seconds"] for e in db.history(limit=500) if e["kind"] == "early"]
        assert set(measured) <= {takes}
        require_exact(db)


def test_what_falls_due_during_a_refresh_goes_before_early_runs_and_needs_no_poll(
    db: Warehouse, clock: SimulatedClock
) -> None:
    view(db, "slow", schedule="every 10 minutes")
    view(db, "next", "AS SELECT COUNT(*) AS n FROM sales", schedule="1 * * * *", within="3 minutes")
    clock._taking = lambda reports, measured: 90.0  # from 01:00:00 to 01:01:30
    told = run(db, "2026-01-05 01:05", poll_seconds=1800)
    assert of(told, "refreshed", "slow")[-1] == "01:01:30"
    assert of(told, "refreshed", "next")[-1] == "01:03:00"


def test_of_units_that_are_ready_so_many_are_run_as_there_is_room_for() -> None:
    def at(clock: str) -> datetime:
        return datetime.fromisoformat(f"2026-01-05 {clock}+00:00")

    unit, due = Unit("u", "u", 4, ("v",)), at("10:00")
    slot = Slot(unit, at("08:00"), at("12:00"), 75, 100, last=2, seconds=600.0, due=due)
    assert slot.when(at("09:30"), parse_prices("1")) == at("09:30")
    assert slot.when(at("09:50"), parse_prices("1")) == due
    assert fitting([slot, slot, slot], at("09:20")) == [slot, slot]
    assert replace(slot, last=1).when(at("09:50"), parse_prices("1")) == at("09:50")  # put off
    last = replace(slot, arrived=76, due=at("12:00"))
    assert last.when(at("09:30"), parse_prices("0.5 from 11:40 to 13:00")) == at("11:40")
    assert last.when(at("09:30"), parse_prices("0.5 from 11:46 to 13:00")) == at("09:30")


def test_one_slow_run_does_not_keep_all_later_ones_from_being_tried(tmp_path: Path) -> None:
    """Another view is due every minute. The first run took longer than that; after two results
    without any it is not believed any more."""
    durations = iter([100.0])
    clock = SimulatedClock(
        DAY, taking=lambda reports, measured: TAKES if reports else next(durations, 10.0)
    )
    with opened(tmp_path / "w", clock) as db:
        db.sql("CREATE TABLE sales (id BIGINT, kind STRING, amount BIGINT)")
        sell(db, 1)
        view(db, "report", schedule="every 1 hour")
        view(db, "ticker", schedule="every 1 minute")
        clock.every(600, lambda: sell(db, 1), until="2026-01-05 12:00")
        paces = Noting(clock, 2, "report")
        run(db, "2026-01-05 08:00", paces=paces)
        hours = [early[:2] for early in paces.runs]
        first = hours.index(min(hours))
        assert [int(hour) - int(hours[first]) for hour in hours[first:]][:4] == [0, 3, 4, 5]
        measured = [e["seconds"] for e in reversed(db.history(limit=2000)) if e["kind"] == "early"]
        assert measured[:2] == [100.0, 10.0]


def test_a_run_that_failed_does_not_tell_how_long_others_take(
    db: Warehouse, clock: SimulatedClock
) -> None:
    class Failing(Noting):
        def advance(self, units: Sequence[Unit]) -> Sequence[RefreshReport]:
            super().advance(units)
            raise ValueError("no room")

    view(db, "counted", schedule="every 4 rows")
    clock.every(3600, lambda: sell(db, 2), until="2026-01-05 04:00")
    paces = Failing(clock, 2, "counted")
    paces.unit = replace(paces.unit, seconds=7.0)
    run(db, "2026-01-05 04:00", paces=paces)
    assert paces.runs
    assert {e["seconds"] for e in db.history(limit=500) if e["kind"] == "early"} == {7.0}


def test_results_come_though_early_runs_fail(db: Warehouse, clock: SimulatedClock) -> None:
    class Failing(Noting):
        def advance(self, units: Sequence[Unit]) -> Sequence[RefreshReport]:
            raise ValueError("no room")

        def units(self, now: datetime) -> Sequence[Unit]:
            if f"{now:%H}" == "03":
                raise ValueError("no plan")
            return super().units(now)

    view(db, "counted", schedule="every 4 rows")
    clock.every(3600, lambda: sell(db, 2), until="2026-01-05 04:00")
    told = run(db, "2026-01-05 04:00", paces=Failing(clock, 2, "counted"))
    failures = {t.text: f"{t.at:%H}" for t in told if t.kind == "failed"}
    assert failures == {"early run of part: no room": "01", "no early runs: no plan": "03"}
    assert len(of(told, "refreshed")) == 3
    require_exact(db)


def test_units_run_early_by_what_is_expected_to_come(db: Warehouse, clock: SimulatedClock) -> None:
    """Of 24 rows in four hours, a quarter comes in each; at the end of the second it is dear."""
    db.sql("ALTER WAREHOUSE SET (prices = '9 from 09:55 to 10:25')")
    view(db, "report", schedule="0 */4 * * *")
    clock.every(600, lambda: sell(db, 1), until=NEXT)
    paces = Noting(clock, 4, "report")
    run(db, "2026-01-05 12:00", paces=paces)
    late = [run for run in paces.runs if run > "08:00"]
    assert late == ["09:00", "10:25", "11:00"]
    early = [e for e in db.history(limit=500) if e["kind"] == "early"]
    assert early[0]["expected_rows"] == pytest.approx(24, rel=0.1)
    assert (early[0]["pace"], early[0]["run"], early[0]["price"]) == (4, 3, 1.0)


def test_an_early_run_waits_for_a_lower_price_within_its_slot() -> None:
    def at(clock: str) -> datetime:
        return datetime.fromisoformat(f"2026-01-05 {clock}+00:00")

    prices = parse_prices("0.5 from 10:00 to 11:00")
    unit = Unit("u", "u", 4, ("v",))
    slot = Slot(unit, at("08:00"), at("12:00"), arrived=25, expected=100)
    assert slot.run == 1
    assert slot.when(at("09:00"), prices) == at("10:00")
    assert slot.when(at("08:30"), prices) == at("08:30")  # its rows' successors are there at 09:40
    assert Slot(unit, at("08:00"), at("12:00"), 25, 100, last=1).when(at("09:00"), prices) is None
    assert Slot(unit, at("08:00"), at("12:00"), 50, 100).when(at("09:00"), prices) == at("09:00")
    assert Slot(unit, at("08:00"), at("12:00"), 500, 100).run == 3
    assert Slot(unit, at("08:00"), at("12:00"), 5, 0).run == 0
    late = Slot(unit, at("08:00"), at("12:00"), 25, 100, course=(0.0, 0.0, 1.0))
    assert late.when(at("08:30"), prices) == at("10:00")  # now they come in the second half
    assert Slot(unit, at("08:00"), None, 25, 100).when(at("09:00"), prices) == at("09:00")


def test_the_last_early_run_may_wait_until_the_result_is_due_and_no_longer() -> None:
    """All rows are there long before: the night that follows is cheaper. When the result is due it
    is too late, whatever work costs then."""

    def at(hour: str) -> datetime:
        return datetime.fromisoformat(f"2026-01-05 {hour}+00:00")

    unit, came = Unit("p", "p", 2, ("v",)), (0.0, 1.0, 1.0, 1.0)
    slot = Slot(unit, at("06:00"), at("23:30"), arrived=50, expected=100, course=came)
    assert slot.when(at("09:00"), parse_prices("0.5 from 22:00 to 06:00")) == at("22:00")
    assert slot.when(at("09:00"), parse_prices("0.5 from 23:30 to 06:00")) == at("09:00")
    assert slot.when(at("23:30"), parse_prices("1")) == at("23:30")


# -- killed


def serve(path: Path, until: str) -> None:
    """A scheduler in a process of its own."""
    with opened(path, SimulatedClock("2026-01-05 00:30", lambda *_: TAKES)) as db:
        run(db, until)


@pytest.mark.parametrize("point", ["segment.written", "commit.inside", "commit.after"])
def test_a_killed_scheduler_loses_nothing(
    db: Warehouse, clock: SimulatedClock, tmp_path: Path, point: str
) -> None:
    view(db, "hourly", schedule="every 1 hour", within="1 minute")
    run(db, "2026-01-05 00:10")
    sell(db, 5)
    db.close()
    path = tmp_path / "warehouse"
    killed = Child(serve, path, "2026-01-05 02:00", env={"SLACKWATER_CRASH_AT": point})
    assert killed.exit_code() == -signal.SIGKILL
    Child(serve, path, "2026-01-05 02:00").result()
    with opened(path, clock) as again:
        dues = [e["due"][11:16] for e in events(again, "goal", "hourly")]
        assert dues == ["01:00", "02:00"]
        require_exact(again)
    assert os.environ.get("SLACKWATER_CRASH_AT") is None


# -- what it is asked


def test_wrong_requests_say_the_way_out(db: Warehouse) -> None:
    with pytest.raises(UserError, match="above zero"):
        db.scheduler(poll_seconds=0)
    with pytest.raises(UserError, match="2026-01-05 06:00"):
        db.scheduler().run(until="tomorrow")
