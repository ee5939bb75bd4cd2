"""What a result takes of a view without a pace: it is refreshed when it is due, and never before.

The views that it reads are brought along in the same run, each from its own last result on: what
changes of them is expected over their own period, if that is shorter. What one view changes is what
the next one reads. Nothing needs to have been computed yet.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from functools import cached_property

from slackwater.algebra.relation import Relation
from slackwater.catalog.model import View
from slackwater.planner.simulation import RUN, Inflow
from slackwater.stats.outlook import outlook
from slackwater.stats.rows import Change, Estimates, Rows
from slackwater.timing import EveryRows, Manual, parse_schedule, period_seconds
from slackwater.tvr.normal import normalize
from slackwater.work.allowed import one_run
from slackwater.work.arrivals import history
from slackwater.work.goals import effective_options
from slackwater.work.meaning import as_written
from slackwater.work.refreshing import order
from slackwater.work.waiting import base_tables
from slackwater.work.world import World


class WithoutPace:
    """One view, when its next result is due."""

    def __init__(self, world: World, view: View) -> None:
        self._world = world
        self._view = view
        self._now = world.house.now()
        self._tables = {table.id: table for table in base_tables(world, view)}

    def seconds(self) -> float:
        """Of the refresh: one run, in which the views that it reads come first. None where
        nothing comes."""
        besides, views = RUN["latency"], order(self._world, [self._view.name])
        own = [seconds for v in views if not v.part and (seconds := self._own_seconds(v))]
        return besides + sum(seconds - besides for seconds in own) if own else 0.0

    @property
    def rows(self) -> dict[str, float]:
        """Of tables, when it is due."""
        return {id: self._of_table(id, self._period(self._view)).after for id in self._tables}

    def _own_seconds(self, view: View) -> float:
        """Of one view alone."""
        query = self._query(view)
        flows = self._flows(query, self._period(view))
        if self._said(view, "refresh", "auto") == "full":
            flows = {id: Rows(0.0, Change(inserts=rows.after)) for id, rows in flows.items()}
        inflows = {id: Inflow(rows.before, rows.change) for id, rows in flows.items()}
        return one_run(self._world, query, inflows)

    def _query(self, view: View) -> Relation:
        return normalize(as_written(self._world, view)[0])

    def _flows(self, query: Relation, period: timedelta | None) -> dict[str, Rows]:
        return {scan.source: self._rows(scan.source, period) for scan in query.scans()}

    def _rows(self, id: str, period: timedelta | None) -> Rows:
        """Of a table or view, and what changes of it in some time."""
        source = self._world.snapshot.get(id)
        if not isinstance(source, View):
            return self._of_table(id, period)
        query = self._query(source)
        known = self._world.house.profiling.known()
        return Estimates(self._flows(query, period), known).of(query).sound

    def _of_table(self, id: str, period: timedelta | None) -> Rows:
        """Where nothing is known of any table, all that is there is taken for what comes."""
        rows = self._world.rows(id)
        by_rows = self._coming_by_rows.get(id)
        if by_rows is not None:
            return Rows(rows, Change(inserts=by_rows))
        if not self._is_known:
            return Rows(0.0, Change(inserts=rows))
        return Rows(rows, self._expected(id, period))

    def _expected(self, id: str, period: timedelta | None) -> Change:
        if period is None:
            return Change()
        return outlook(history(self._world, self._tables[id]), self._now, period).at_most()

    @cached_property
    def _is_known(self) -> bool:
        longest = self._period(self._view)
        return any(self._expected(id, longest).rows for id in self._tables)

    @cached_property
    def _coming_by_rows(self) -> Mapping[str, float]:
        """Where a result is due after so many rows, these, of each table as its part of all."""
        schedule = parse_schedule(self._said(self._view, "schedule"))
        if not isinstance(schedule, EveryRows):
            return {}
        here = {id: float(self._world.rows(id)) for id in self._tables}
        whole = sum(here.values())
        return {id: schedule.rows * rows / whole for id, rows in here.items()} if whole else {}

    def _period(self, view: View) -> timedelta | None:
        """From one result to the next, of a view or the one that it is refreshed for."""
        found = (self._own_period(v) for v in (view, self._view))
        return min((p for p in found if p is not None), default=None)

    def _own_period(self, view: View) -> timedelta | None:
        seconds = period_seconds(parse_schedule(self._said(view, "schedule")), self._now)
        return None if seconds is None else timedelta(seconds=seconds)

    def _said(self, view: View, option: str, unsaid: str = Manual.text) -> str:
        return effective_options(view, self._world.snapshot.settings).get(option, unsaid)
