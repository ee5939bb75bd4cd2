"""Due results: refreshed, told, and written down with whether they came in time."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from slackwater.catalog.model import Event, View
from slackwater.collecting import held_off
from slackwater.errors import SlackwaterError
from slackwater.service.desk import ANOTHER, Desk
from slackwater.service.goals import Due, failed, kept_or_missed, within_seconds
from slackwater.service.told import FAILED, HELD, MISSED, REFRESHED
from slackwater.service.words import seconds
from slackwater.timing import EveryRows
from slackwater.work.arrivals import arrivals
from slackwater.work.reports import RefreshReport
from slackwater.work.standing import Standing, standing
from slackwater.work.waiting import base_tables, waiting
from slackwater.work.world import World

AFTER_ROWS = " It is tried again when as many rows have come once more."
CHANGES = 500
"""So many changes of a table are looked through for the one that completed a result's rows."""


class Serving:
    """The refreshes of one scheduler."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    def due(self, found: Standing, by: datetime) -> Due | None:
        """The result of a view that is due by a moment, if one is."""
        at = self._due_at(found, by)
        if at is None:
            return None
        within = None if found.is_empty else within_seconds(self._desk.house, found)
        return Due(found, at, within, found.is_empty)

    def _due_at(self, found: Standing, by: datetime) -> datetime | None:
        if found.is_empty or not isinstance(found.schedule, EveryRows):
            at = found.due(by)
            return at if at is not None and at <= by else None
        rows, arrived = found.schedule.rows, self.arrived(found)
        return min(by, self._complete(found, rows, arrived) or by) if arrived >= rows else None

    def arrived(self, found: Standing) -> int:
        """Rows that have come to a view's tables since it was served."""
        world = World(self._desk.house, self._desk.house.catalog.snapshot(), defining=True)
        return sum(waiting(world, found.view, found.marks).values())

    def _complete(self, found: Standing, rows: int, arrived: int) -> datetime | None:
        """When the last of so many rows came: the changes of the tables, newest first, without
        which there would be too few."""
        house = self._desk.house
        world = World(house, house.catalog.snapshot(), defining=True)
        tables = base_tables(world, found.view)
        came = [a for table in tables for a in arrivals(house.catalog, table.id, CHANGES)]
        left = float(arrived)
        for batch in sorted(came, key=lambda a: a.at, reverse=True):
            left -= batch.rows.rows
            if left < rows:
                return batch.at
        return None

    def serve(self, group: Sequence[Due], by: datetime) -> None:
        """Refresh what is due, in one call; where that fails, one by one, so that one failure is
        not the failure of all."""
        group = [due for due in group if self._is_still_due(due, by)]
        if not group:
            return
        try:
            self._refresh(group, by)
        except Exception as error:  # noqa: BLE001
            if isinstance(error, SlackwaterError) and error.code in ANOTHER:
                names = ", ".join(due.view.name for due in group)
                self._desk.say(HELD, f"{names}: {error}", body={"code": error.code})
            elif len(group) > 1:
                for due in group:
                    self.serve([due], by)
            else:
                self._failed(group[0], error)

    def _is_still_due(self, due: Due, by: datetime) -> bool:
        """Has nobody served it meanwhile, and is it still there?"""
        snapshot = self._desk.house.catalog.snapshot()
        view = snapshot.get(due.view.id) if due.view.id in snapshot else None
        if not isinstance(view, View):
            return False
        self._desk.newest.catch_up()
        now = standing(self._desk.newest, snapshot, view)
        return self._due_at(now, by) is not None

    def _refresh(self, group: Sequence[Due], by: datetime) -> None:
        desk = self._desk
        started, begun = time.perf_counter(), desk.clock.now()
        price = desk.price(begun)
        goals: list[Event] = []
        passed = 0.0

        def telling(reports: Sequence[RefreshReport]) -> list[Event]:
            nonlocal passed
            passed = desk.clock.takes(reports, time.perf_counter() - started)
            finished = desk.clock.now() + timedelta(seconds=passed)
            took = _apart(group, reports, (finished - begun).total_seconds())
            goals.extend(self._goals(group, by, reports, finished, took, price))
            return goals

        with held_off():
            reports = desk.db.refresh(*(due.view.name for due in group), telling=telling)
        desk.clock.skip(passed)
        self._tell(reports, goals, begun, price)

    def _goals(
        self,
        group: Sequence[Due],
        by: datetime,
        reports: Sequence[RefreshReport],
        finished: datetime,
        took: Mapping[str, float],
        price: float,
    ) -> Iterator[Event]:
        """Under the lease, so that of two schedulers only one writes it down."""
        own = {report.view: report for report in reports}
        for due in group:
            if not due.is_load and self._is_still_due(due, by):
                name = due.view.name
                yield kept_or_missed(due, own[name], finished, took[name], price)

    def _tell(
        self,
        reports: Sequence[RefreshReport],
        goals: Sequence[Event],
        begun: datetime,
        price: float,
    ) -> None:
        desk = self._desk
        found = {event.body["view"]: event.body for event in goals}
        snapshot = desk.house.catalog.snapshot()
        for report in reports:
            desk.summary.spend(report.cpu_seconds, price)
            if snapshot.find(report.view) is None:  # a part, which nobody sees
                continue
            desk.summary.refreshed += 1
            goal = found.get(report.view, {})
            desk.say(REFRESHED, _told(report, goal), report.view, goal)
            if goal and goal["kept"] and goal["within_seconds"] is not None:
                desk.summary.kept += 1
            elif goal and not goal["kept"]:
                desk.summary.missed += 1
                desk.say(MISSED, _missed(goal), report.view, goal)

    def _failed(self, due: Due, error: Exception) -> None:
        desk, now = self._desk, self._desk.clock.now()
        event = failed(desk.house, due, error, now, desk.price(now))
        desk.write(event)
        desk.summary.failed += 1
        again = due.standing.schedule.next_due(now)
        when = f" It is tried again at {again:%Y-%m-%d %H:%M:%S}." if again else AFTER_ROWS
        desk.say(FAILED, f"{due.view.name}: {event.body['error']}{when}", due.view.name, event.body)


def _apart(
    group: Sequence[Due], reports: Sequence[RefreshReport], seconds: float
) -> dict[str, float]:
    """The seconds of a call, by view that was due: as long as each took beside the others, and an
    even part of what was done for them."""
    own = {due.view.name: 0.0 for due in group}
    own |= {report.view: report.seconds for report in reports if report.view in own}
    whole = sum(report.seconds for report in reports)
    besides = (whole - sum(own.values())) / len(own)
    if not whole:
        return dict.fromkeys(own, seconds / len(own))
    return {name: seconds * (took + besides) / whole for name, took in own.items()}


def _told(report: RefreshReport, goal: Mapping[str, Any]) -> str:
    done = "is fresh" if report.mode == "none" else f"{report.mode}, {report.rows:,} rows"
    latency = goal.get("latency_seconds")
    after = f", {seconds(latency)} after it was due" if isinstance(latency, float) else ""
    return f"{report.view}: {done}{after}"


def _missed(goal: Mapping[str, Any]) -> str:
    latency, within = goal["latency_seconds"], goal["within_seconds"]
    return f"{goal['view']}: {seconds(latency)} after it was due, {seconds(within)} were allowed"
