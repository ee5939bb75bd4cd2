"""Views whose pieces are run at their paces while rows come: what early runs and results take.

Several courses, each with views and parts of its own over the same tables, go side by side through
one stream of batches, so that all of them meet the same machine. After each batch each course runs
the parts whose turn it is, and merges their segments where these have become many; after the last
one, results are due, each of all courses in turn. Tables are filled outside of the clocks. Every
result is compared with a recompute.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import slackwater
from bench.arrivals import Arrivals
from bench.warming import Timer, append
from slackwater.collecting import held_off
from slackwater.planner.compaction import due
from slackwater.planner.pace import Found
from slackwater.planner.subplans import Dag, name_of
from slackwater.work import parts
from slackwater.work.compacting import compact_one, related
from slackwater.work.refreshing import advance

BATCH = "batch"
"""The course where everything waits for the due time."""


@dataclass(frozen=True)
class Piece:
    """Queries that were planned together: their subplans, and the paces of these."""

    dag: Dag
    found: Found


@dataclass
class Course:
    """Queries in one way: what was planned, and what it took. No pieces: nothing runs early."""

    name: str
    pieces: Sequence[Piece] = ()
    cpu: float = 0.0
    early_cpu: float = 0.0
    runs: int = 0
    latency: dict[str, float] = field(default_factory=dict)
    """By query, the seconds of its last run, of what it shares, too."""
    final_cpu: dict[str, float] = field(default_factory=dict)
    turns: dict[str, dict[str, int]] = field(default_factory=dict)
    """By part, the paces of its inputs."""
    brought: dict[str, float] = field(default_factory=dict)
    """By part, the seconds that it took to bring it along when results were due."""
    problems: list[str] = field(default_factory=list)
    early: set[str] = field(default_factory=set)
    """Queries of which anything is run early, or shared."""
    roots: dict[str, str] = field(default_factory=dict)
    """By query, the part that has its rows, if one has."""
    changed: list[dict[str, int]] = field(default_factory=list)
    """By early run, the rows that each part gave."""

    def view(self, query: str) -> str:
        """What a query's view is called here."""
        return f"{query}__{self.name}"


@dataclass
class Progress:
    """Courses over one warehouse, whose tables begin empty."""

    db: slackwater.Warehouse
    texts: Mapping[str, str]
    courses: Sequence[Course]

    def run(self, arrivals: Arrivals) -> None:
        """Let all rows come, and results be due."""
        for course in self.courses:
            self._define(course)
        self.db.refresh()
        warming = Course("warming")
        self._define(warming)
        count = len(arrivals.shares)
        for number, batch in enumerate(arrivals.batches(), 1):
            append(self.db, batch)
            if number < count:
                for course in self._in_turn(number):
                    self._early(course, number, count)
        for query in self.texts:
            self._due(warming, query)  # whoever comes first opens the files
        for number, query in enumerate(self.texts):
            for course in self._in_turn(number):
                self._due(course, query)
        for course in self.courses:
            self._check(course)

    def _in_turn(self, number: int) -> Iterator[Course]:
        """Another one begins each time."""
        start = number % len(self.courses)
        yield from (*self.courses[start:], *self.courses[:start])

    def _define(self, course: Course) -> None:
        for query, text in self.texts.items():
            self.db.sql(f"CREATE MATERIALIZED VIEW {course.view(query)} AS {text}")
        for piece in course.pieces:
            snapshot = self.db.catalog.snapshot()
            alone = snapshot.supposing(gone=[part.id for part in snapshot.parts()])
            made = parts.forms(piece.dag, piece.found, {}, parts.Ids(alone))
            views = {course.view(query): form for query, form in made.views.items()}
            parts.apply(self.db._house, replace(made, views=views))
            for number, id in made.places.items():
                part = next(p for p in made.parts if p.id == id)
                course.turns[id] = dict(_paces(piece, made, number, part))
            course.roots |= {
                query: made.places[n] for query, n in piece.dag.roots.items() if n in made.places
            }

    # -- while rows come

    def _early(self, course: Course, number: int, count: int) -> None:
        held = {}
        for id, paces in course.turns.items():
            resting = [source for source, pace in paces.items() if not _turn(pace, number, count)]
            if len(resting) < len(paces):
                held[id] = resting
        if held:
            timer = Timer(self.db)
            reports = advance(self.db._house, held)
            self._tidy(held)
            cpu = timer.read()[1]
            course.cpu, course.early_cpu = course.cpu + cpu, course.early_cpu + cpu
            course.runs += len(held)
            course.changed.append({report.view: report.rows for report in reports})

    def _tidy(self, ids: Iterable[str]) -> None:
        """Merge what has become many segments, as is done beside the work."""
        house = self.db._house
        snapshot = house.catalog.snapshot()
        for id in (found for part in ids for found in related(snapshot, part)):
            compact_one(house, id, due, wait_seconds=0)

    # -- when results are due

    def _due(self, course: Course, query: str) -> None:
        """One result. What an earlier one has brought along for it counts for it, too."""
        needed = self._parts(course.view(query))
        if needed or query in course.roots:
            course.early.add(query)
        before = sum(seconds for id, seconds in course.brought.items() if id in needed)
        with held_off():  # as the scheduler does
            timer = Timer(self.db)
            reports = self.db.refresh(course.view(query))
            wall, cpu = timer.read()
        done = (r for r in reports if r.mode != "none" and r.view in needed)
        course.brought |= {report.view: report.seconds for report in done}
        course.latency[query] = before + wall
        course.final_cpu[query] = cpu
        course.cpu += cpu

    def _parts(self, view: str) -> set[str]:
        snapshot = self.db.catalog.snapshot()
        found: set[str] = set()
        queue = [snapshot.find(view)]
        while queue:
            for id in getattr(queue.pop(), "depends", ()):
                if id not in found and getattr(snapshot.get(id), "part", False):
                    found.add(id)
                    queue.append(snapshot.get(id))
        return found

    def _check(self, course: Course) -> None:
        for query in self.texts:
            checked = self.db.verify(course.view(query))
            if not checked.equal:
                course.problems.append(f"{query}, {course.name}: {checked.difference}")


def _paces(
    piece: Piece, made: parts.Forms, number: int, part: parts.Part
) -> Iterator[tuple[str, int]]:
    """How often each input of a part is read: a source, or another part by its id."""
    names = {id: name_of(n) for n, id in made.places.items()}
    for source in dict.fromkeys(scan.source for scan in part.relation.scans()):
        path = (number, names.get(source, source))
        yield source, piece.found.paces.get(path, part.pace)


def _turn(pace: int, number: int, count: int) -> bool:
    """Is another `pace`-th of all rows there after this batch?

    >>> [_turn(3, number, 9) for number in range(1, 10)].count(True)
    3
    """
    return number * pace // count > (number - 1) * pace // count
