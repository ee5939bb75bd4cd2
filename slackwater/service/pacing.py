"""Early runs: units brought along between results, as their rows come."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from slackwater.catalog.ids import timestamp
from slackwater.catalog.model import Event, Table
from slackwater.errors import SlackwaterError
from slackwater.service.arriving import Arriving
from slackwater.service.desk import ANOTHER, Desk
from slackwater.service.early import Slot, fitting
from slackwater.service.told import EARLY, FAILED
from slackwater.service.units import Paces, Unit
from slackwater.timing import EveryRows
from slackwater.work.reports import RefreshReport
from slackwater.work.standing import Standing, moment
from slackwater.work.waiting import rows_since, waiting
from slackwater.work.world import World

EVENTS = 200
"""So many early runs are looked through for the last one of a unit."""


class Pacing:
    """The early runs of one scheduler."""

    def __init__(self, desk: Desk, paces: Paces, arriving: Arriving) -> None:
        self._desk = desk
        self._paces = paces
        self._arriving = arriving

    def run(self, standings: Sequence[Standing], now: datetime) -> datetime | None:
        """Run the units whose turn it is; when to look again at the latest."""
        prices = self._desk.prices()
        turns = [(slot, slot.when(now, prices)) for slot in self._slots(standings, now)]
        ready = [slot for slot, when in turns if when is not None and when <= now]
        if ready:
            self._advance(fitting(ready, now), now)
        return min((when for _, when in turns if when is not None and when > now), default=None)

    def _slots(self, standings: Sequence[Standing], now: datetime) -> list[Slot]:
        by_name = {s.view.name: s for s in standings}
        fast = [unit for unit in self._units(now) if unit.pace > 1]
        done = self._done() if fast else {}
        found = (self._slot(unit, by_name, done.get(unit.id, {}), now) for unit in fast)
        due = min((d for s in standings if (d := s.schedule.next_due(now))), default=None)
        return [replace(slot, due=due) for slot in found if slot is not None]

    def _units(self, now: datetime) -> Sequence[Unit]:
        """None where they cannot be told: results come without early runs, too, only later."""
        try:
            return self._paces.units(now)
        except Exception as error:  # noqa: BLE001
            if not (isinstance(error, SlackwaterError) and error.code in ANOTHER):
                self._desk.say(FAILED, f"no early runs: {error}")
            return []

    def _slot(
        self, unit: Unit, by_name: dict[str, Standing], done: dict[str, Any], now: datetime
    ) -> Slot | None:
        """Between the last result that any of its views had and the next one that is due."""
        own = [by_name[name] for name in unit.views if name in by_name]
        served = [s for s in own if s.since is not None and s.view.refreshed_at is not None]
        if not served:
            return None
        since = max(s.since for s in served if s.since is not None)
        dues = [due for s in served if (due := s.schedule.next_due(now)) is not None]
        until = min(dues, default=None)
        tables = self._tables(unit, served)
        arrived = sum(tables.values())
        expected = [self._of_rows(s, arrived) for s in served if isinstance(s.schedule, EveryRows)]
        if until is not None:
            expected.append(self._expected(tables, since, now, until))
        last = done["run"] if done.get("since") == timestamp(since.timestamp()) else 0
        slot = Slot(unit, since, until, arrived, min(expected, default=0.0), last)
        seconds = done.get("seconds", unit.seconds)
        slot = replace(slot, seconds=seconds, without=_without(done, since, until))
        if until is None or slot.run != last + 1:
            return slot
        return replace(slot, course=self._arriving.course(tables, now, until))

    def _tables(self, unit: Unit, served: Sequence[Standing]) -> dict[Table, int]:
        """What a unit reads, with the rows that have come since any of its views was served."""
        house = self._desk.house
        world = World(house, house.catalog.snapshot(), defining=True)
        marks: dict[str, int] = {}
        for id, mark in (item for s in served for item in s.marks.items()):
            marks[id] = max(mark, marks.get(id, 0))
        tables = [t for t in world.snapshot.tables() if t.id in (unit.tables or marks)]
        return {table: rows_since(table, marks.get(table.id, 0)) for table in tables}

    def _of_rows(self, served: Standing, arrived: float) -> float:
        """Of the rows after which a result is due, those that come to what a unit reads: as large
        a part of them as of those that have come."""
        assert isinstance(served.schedule, EveryRows)
        house = self._desk.house
        world = World(house, house.catalog.snapshot(), defining=True)
        here = sum(waiting(world, served.view, served.marks).values())
        return served.schedule.rows * (arrived / here if here else 1.0)

    def _expected(
        self, tables: Mapping[Table, int], since: datetime, now: datetime, until: datetime
    ) -> float:
        """Rows from one result to the next: as expected after the first or, where nobody knew
        then, what has come and what is expected now."""
        rows = self._arriving.rows
        total = sum(rows(table, since, until) for table in tables)
        return total or sum(here + rows(table, now, until) for table, here in tables.items())

    def _done(self) -> dict[str, dict[str, Any]]:
        """By unit, its newest early run."""
        events = self._desk.house.catalog.events(kind=EARLY, limit=EVENTS)
        return {event.body["unit"]: dict(event.body) for event in reversed(events)}

    def _advance(self, slots: Sequence[Slot], now: datetime) -> None:
        desk, started, begun = self._desk, time.perf_counter(), self._desk.clock.now()
        names = ", ".join(slot.unit.name for slot in slots)
        try:
            reports = self._paces.advance([slot.unit for slot in slots])
            desk.db.tidy(report.view for report in reports if report.mode != "none")
            failed = False
        except Exception as error:  # noqa: BLE001
            desk.say(FAILED, f"early run of {names}: {error}")
            reports, failed = [], True
        cpu = sum(report.cpu_seconds for report in reports)
        price = desk.price(now)
        desk.clock.skip(desk.clock.takes(reports, time.perf_counter() - started))
        passed = (desk.clock.now() - begun).total_seconds()
        desk.summary.early += len(slots)
        desk.summary.spend(cpu, price)
        for slot in slots:
            own = passed * _part_of(slot.unit, reports, len(slots))
            seconds = slot.seconds if failed else own
            desk.write(_event(slot, now, cpu / len(slots), seconds, price))
        desk.say(EARLY, f"{names}: {cpu:.2f} CPU s", body={"price": price, "cpu_seconds": cpu})


def _without(done: Mapping[str, Any], since: datetime, until: datetime | None) -> int:
    """Between how many results, as far apart as the last and the next, a unit was not run."""
    if until is None or "since" not in done or until <= since:
        return 0
    return max(0, round((since - moment(done["since"])) / (until - since)) - 1)


def _part_of(unit: Unit, reports: Sequence[RefreshReport], units: int) -> float:
    """A unit's part of the time that several took; an even one, where none is told."""
    whole = sum(report.seconds for report in reports)
    own = sum(report.seconds for report in reports if report.view == unit.id)
    return own / whole if own else 1 / units


def _event(slot: Slot, now: datetime, cpu_seconds: float, seconds: float, price: float) -> Event:
    body = {
        "unit": slot.unit.id,
        "name": slot.unit.name,
        "views": list(slot.unit.views),
        "since": timestamp(slot.since.timestamp()),
        "run": slot.run,
        "pace": slot.unit.pace,
        "arrived_rows": slot.arrived,
        "expected_rows": slot.expected,
        "cpu_seconds": cpu_seconds,
        "seconds": seconds,
        "price": price,
    }
    return Event(EARLY, None, timestamp(now.timestamp()), body)
