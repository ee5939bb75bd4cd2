"""Running a plan over the past of a warehouse, to see what each of its runs takes.

The points of the timeline are versions that the tables have had. What a run saves is written as a
refresh writes it and read again by later runs; nothing of it is committed. What a view keeps is
read as it lies there.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise

import pyarrow as pa

from slackwater.algebra.relation import Relation, Scan
from slackwater.catalog.model import Run, Segment, State, View
from slackwater.catalog.snapshot import Snapshot
from slackwater.engine.sources import Log, Made, Source, Stored
from slackwater.errors import StateError
from slackwater.planner.existing import Existing
from slackwater.planner.plan import Plan
from slackwater.planner.problem import Arrival, Problem
from slackwater.planner.replanning import Actual, replanned
from slackwater.planner.runs import RunSteps, Saved, read_at, rows_at
from slackwater.planner.steps import Output, Spread, StepReport, WriteSegments
from slackwater.stats.reading import read_columns
from slackwater.stats.rows import Change
from slackwater.tvr import zset
from slackwater.tvr.memo import ROWS
from slackwater.tvr.prune import prune
from slackwater.tvr.references import Reference
from slackwater.types import Schema
from slackwater.work.arrivals import tally
from slackwater.work.house import House
from slackwater.work.promises import changed_keys, come_and_go, differs

Versions = Mapping[str, int]
"""The version of each table at a point, by its id."""
RESULT = "result"


@dataclass(frozen=True)
class Played:
    """What each run took, the rows of the results that were due, and the plan that was in force
    last: another than the first where it was planned again."""

    runs: Mapping[int, StepReport]
    results: Mapping[int, pa.Table]
    plan: Plan | None = None


def versions(house: House) -> Versions:
    """Of all tables, as they are now."""
    return {table.id: table.version for table in house.catalog.snapshot().tables()}


def play(
    house: House, plan: Plan, points: Sequence[Versions], planning_again: bool = False
) -> Played:
    """Run a plan, each of its points being a version of the tables, on the engines that it names,
    or by the size of what is read. What it relies on is looked at first. With `planning_again`,
    the rest is planned again before a run where sizes are others than was expected."""
    if not planning_again:
        _require_expected(house, plan.problem, points)
    with _playing(house, points) as player:
        for point in plan.problem.points:
            if planning_again and point:
                plan = replanned(plan, player.actual(plan.problem, point))
            if planning_again:
                _require_expected(house, plan.problem, points[: point + 1])
            player.play(plan.runs[point], plan.engines[point], plan.problem)
        return Played(player.reports, player.results, plan)


def _require_expected(house: House, problem: Problem, points: Sequence[Versions]) -> None:
    """What a plan takes for unchanged must be, in the columns that it reads."""
    snapshot, read = house.catalog.snapshot(), read_columns([problem.query])
    for scan in problem.query.scans():
        id = scan.source
        if id not in problem.changed:
            first, last = points[0][id], points[-1][id]
            new = [s for s in snapshot.segments(id) if first < s.version <= last]
            if differs(changed_keys(house, new, sorted(read[id]))):
                raise StateError(
                    f"'{scan.name}' has changed, which the plan did not expect.",
                    code="UNEXPECTED_CHANGE",
                    hint="State the problem with its changes, and plan anew.",
                )


def recompute(house: House, query: Relation, engine: str = "") -> Played:
    """Compute a query as it is now, from nothing but the tables; its point is 0."""

    def at_point(node: Relation) -> Relation:
        if isinstance(node, Scan):
            return rows_at(node.source, node.name, node.fields, 0)
        return node

    query = query.rewrite(at_point)
    with _playing(house, [versions(house)]) as player:
        player.play(RunSteps(0, (), query), engine)
        return Played(player.reports, player.results)


@contextmanager
def _playing(house: House, points: Sequence[Versions]) -> Iterator[_Player]:
    with (
        house.lease("plan") as lease,
        house.catalog.running("play", lease) as run,
        house.catalog.reading() as snapshot,
    ):
        yield _Player(house, snapshot, run, points)


@dataclass
class _Player:
    house: House
    snapshot: Snapshot
    run: Run
    points: Sequence[Versions]
    reports: dict[int, StepReport] = field(default_factory=dict)
    results: dict[int, pa.Table] = field(default_factory=dict)
    _saved: dict[str, Source] = field(default_factory=dict)
    _told: Collection[Reference] = ()
    _existing: Mapping[str, Existing] = field(default_factory=dict)

    def play(self, steps: RunSteps, engine: str, problem: Problem | None = None) -> None:
        """One run of a plan for a problem."""
        if problem is not None:
            self._told = problem.relied_on.references
            self._existing = {one.name: one for one in problem.existing}
        outputs = [Output(saved.name, saved.relation, _spread(saved)) for saved in steps.saves]
        if steps.result is not None:
            outputs.append(Output(RESULT, prune(zset.with_weight(steps.result))))
        if not outputs:
            return
        making = {saved.name: saved.relation.schema[:-1] for saved in steps.saves}
        scans = {scan.source: scan for o in outputs for scan in o.relation.scans()}
        sources = {name: self._source(scan, making) for name, scan in scans.items()}
        step = WriteSegments(f"run {steps.point}", tuple(outputs), False, engine)
        written = self.house.runner.run(step, self.run, sources)
        self.reports[steps.point] = written.report
        for saved in steps.saves:
            kind = Stored if saved.plain else Log
            found = written.segments[saved.name]
            spread = _spread(saved) if written.report.engine == "spark" else None
            self._saved[saved.name] = kind(found, making[saved.name], spread=spread)
        if steps.result is not None:
            schema = steps.result.schema
            self.results[steps.point] = self._rows(written.segments[RESULT], schema)

    def actual(self, problem: Problem, point: int) -> Actual:
        """What is known before the run at a point."""
        rows = {id: self._came(id, 0, self.points[0][id]).net for id in problem.arrivals}
        changes = {id: self._changes(id, a, point) for id, a in problem.arrivals.items()}
        saved = {
            name: float(sum(s.rows for s in source.segments))
            for name, source in self._saved.items()
            if isinstance(source, Stored | Log)
        }
        return Actual(point, changes, rows, saved)

    def _changes(self, id: str, expected: Arrival, point: int) -> list[Change]:
        steps = pairwise(self.points[: point + 1])
        came = [self._came(id, first[id], last[id]) for first, last in steps]
        return [as_told(was, is_now) for was, is_now in zip(expected.changes, came, strict=False)]

    def _came(self, id: str, first: int, last: int) -> Change:
        return tally("", (s for s in self.snapshot.segments(id) if first < s.version <= last))

    def _source(self, scan: Scan, making: Mapping[str, Schema]) -> Source:
        if scan.source in making:
            return Made(scan.source, making[scan.source])
        if scan.source in self._saved:
            return self._saved[scan.source]
        if scan.source in self._existing:
            return self._lying(self._existing[scan.source])
        at = read_at(scan)
        segments = self.snapshot.segments(at.id)
        last = self.points[at.end][at.id]
        first = self.points[at.start][at.id] if at.change else 0
        _require_told(scan, segments, (first, last))
        found = tuple(s for s in segments if first < s.version <= last)
        if at.change:
            self._check(scan, at.id, found)
        if at.weighted:
            return Log(found, scan.fields[:-1])
        return Stored(found, scan.fields)

    def _lying(self, existing: Existing) -> Source:
        """What a view keeps, if it is as of the point that it is said to be."""
        found = self.snapshot.relation(existing.name) if existing.name in self.snapshot else None
        if not isinstance(found, State | View) or existing.at is None:
            raise StateError(
                f"'{existing.name}' is nothing that a view of this warehouse keeps.",
                code="UNKNOWN_STATE",
                hint="State the problem by the view's name: it then names what the view keeps.",
            )
        view = self.snapshot.get(found.view) if isinstance(found, State) else found
        there, wanted = view.as_of if isinstance(view, View) else {}, self.points[existing.at]
        read = {scan.source for scan in existing.relation.scans()}
        if any(there.get(id) != wanted.get(id) for id in read):
            raise StateError(
                f"What '{view.name}' keeps is not as of point {existing.at} of the plan.",
                code="STATE_MOVED",
                hint="State the problem again: the view was refreshed since, or its sources had "
                "changed before.",
            )
        kind = Stored if existing.kind == ROWS else Log
        return kind(self.snapshot.segments(existing.name), found.schema)

    def _check(self, scan: Scan, id: str, change: Sequence[Segment]) -> None:
        """References hold for what changes between two points if no key there comes and goes."""
        for reference in self._told:
            if reference.target == id:
                keys = changed_keys(self.house, change, reference.theirs)
                if come_and_go(keys):
                    raise StateError(
                        f"Between two runs a key of '{scan.name}' both came and went.",
                        code="PROMISE_NOT_KEPT",
                        hint=f"Expect updates of '{scan.name}' where the problem is stated: its "
                        "plan then does not rely on references to that key.",
                    )

    def _rows(self, segments: tuple[Segment, ...], schema: Schema) -> pa.Table:
        scan = Scan(RESULT, RESULT, schema)
        return self.house.runner.query(scan, {RESULT: Stored(segments, schema)})


def as_told(expected: Change, came: Change) -> Change:
    """What came: its kinds, where files hold rows of several, as they were expected."""
    mixed = came.updates > 0 and expected.rows > 0
    return expected.times(came.rows / expected.rows) if mixed else came


def _require_told(scan: Scan, segments: Sequence[Segment], versions: Sequence[int]) -> None:
    """What a table held at a version is known until later changes are merged with it."""
    merged = [v for v in versions if any(s.straddles(v) for s in segments)]
    if merged:
        raise StateError(
            f"What '{scan.name}' held at version {merged[0]} was merged with later changes.",
            code="VERSION_MERGED",
            hint="Play plans over a warehouse that was opened with compact=False.",
        )


def _spread(saved: Saved) -> Spread | None:
    return Spread(saved.by, saved.pieces) if saved.by else None
