"""Watching views and sources: what has changed since the last look."""

from __future__ import annotations

from collections.abc import Sequence

from slackwater.catalog.model import Event, Table
from slackwater.errors import SlackwaterError
from slackwater.service.desk import Desk
from slackwater.service.told import FAILED
from slackwater.sources import parquet
from slackwater.work.standing import Standing, standing
from slackwater.work.waiting import base_tables, is_external
from slackwater.work.world import World


class Watching:
    """The eyes of one scheduler."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._commit = -1
        self._standings: list[Standing] = []
        self._wrong: set[tuple[str, str]] = set()  # told of already
        self._totals: dict[str, int] = {}

    def standings(self) -> Sequence[Standing]:
        """Where every view stands that has a schedule; events are read only after a commit."""
        snapshot = self._desk.house.catalog.snapshot()
        if snapshot.commit != self._commit:
            self._commit = snapshot.commit
            self._desk.newest.catch_up()
            found = []
            for view in snapshot.views():
                try:
                    found.append(standing(self._desk.newest, snapshot, view))
                except SlackwaterError as error:
                    self._complain(view.name, error)
            self._standings = found
        return self._standings

    def _complain(self, view: str, error: SlackwaterError) -> None:
        if (view, str(error)) not in self._wrong:
            self._wrong.add((view, str(error)))
            self._desk.say(FAILED, f"{view}: {error}", view)

    def look_outside(self) -> None:
        """Write down what has come to folders of others, where no change of ours tells it."""
        world = World(self._desk.house, self._desk.house.catalog.snapshot(), defining=True)
        views = [s.view for s in self._standings if s.schedule.text != "manual"]
        for table in filter(is_external, base_tables(world, *views)):
            self._note(table, parquet.row_count(table.options["path"]))

    def _note(self, table: Table, total: int) -> None:
        if self._totals.get(table.id) == total:
            return
        known = self._known(table)
        self._totals[table.id] = total
        if known is None or total > known:
            rows = {} if known is None else {"arrive": total - known}
            body = {"table": table.name, "rows": rows, "total": total}
            at = self._desk.house.timestamp()
            self._desk.write(Event("change", table.id, at, body))

    def _known(self, table: Table) -> int | None:
        """The rows that were there when it was looked at last, by whomever."""
        events = self._desk.house.catalog.events(relation=table.id, kind="change", limit=1)
        return next((int(event.body["total"]) for event in events if "total" in event.body), None)
