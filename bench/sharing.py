"""`slackwater bench sharing`: many queries with goals of their own, shared or not (003; 000, 4.4).

All rows come evenly until all results are due. Several approaches find out who shares what, and at
which paces, by the same costs. What counts is the CPU time of everything, and by how much results
miss their goal: the query's constraint times the latency of one run of it alone at the due time.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from bench import corpus, missing, sharing_tuned
from bench.arrivals import Arrivals, even, load
from bench.pacing import relations, setting, tables_of
from bench.progress import BATCH, Course, Piece, Progress
from bench.sharing_approaches import (
    APPROACHES,
    AT_ONCE,
    OURS,
    PACES,
    SHARED_AT_ONCE,
    Approach,
    Asked,
    Plans,
    chosen,
    plans,
)
from bench.sharing_sets import SETS, Case
from bench.sharing_tuned import Shares, Wanted
from bench.warming import Learned, Opening, warm
from slackwater.errors import UserError, nearest
from slackwater.planner.decomposition import Decomposition
from slackwater.planner.pace import Goal

PAPER = {
    "random": {"unshared, one pace": 0.605, "unshared": 0.801, "shared, one pace": 0.341},
    "twenty": {
        "unshared, one pace": 0.523,
        "unshared": 0.718,
        "shared, one pace": 0.318,
        "shared, never split": 0.586,
    },
}
"""By set, iShare's CPU seconds as a share of each baseline's: with random constraints (003, figure
9), and of the twenty queries where all have 0.1 (figure 14)."""
SEARCH_SECONDS, PAPER_SEARCH_SECONDS = 3.0, 25.6
"""For 22 queries at maximum pace 100 with constraint 0.01: what is wanted, and the paper's."""
OnStage = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Settings:
    """What to measure."""

    scale: float = 0.1
    sets: tuple[str, ...] = tuple(SETS)
    sharing: str = ""
    """'on' or 'off': only approaches that share, or do not."""
    paces: str = ""
    """'none', 'uniform' or 'subplans': only approaches that run nothing early, have one pace, or
    have one for each subplan."""
    most: int = 20
    seeds: int = 3
    constraints: tuple[float, ...] = (1.0, 0.5, 0.2, 0.1)
    tries: int = 1
    """So often a set is planned and measured until what was measured meets its goals."""
    searching: bool = True
    engine: str = "auto"
    seed: int = 7
    data: Path | None = None
    spark: Any = None
    spark_master: str = "local[*]"

    def __post_init__(self) -> None:
        asked = (self.sets, SETS), ((self.sharing,), ("on", "off")), ((self.paces,), PACES)
        for given, known in asked:
            if unknown := [name for name in given if name and name not in known]:
                raise UserError(
                    f"'{unknown[0]}' is not known.",
                    code="BAD_OPTION",
                    hint=nearest(unknown[0], known),
                )

    def opening(self) -> Opening:
        """Where warehouses are."""
        folder = self.data or corpus.data_folder()
        return Opening(self.engine, folder, self.spark, self.spark_master)

    def cases(self) -> Iterator[Case]:
        """The sets of queries with their constraints."""
        for name in self.sets:
            yield from SETS[name](self.constraints, self.seeds, random.Random(self.seed))

    def approaches(self) -> dict[str, Approach]:
        """Those that the switches leave."""
        return chosen(self.sharing, self.paces)


# -- measuring


def run(settings: Settings, on_stage: OnStage | None = None) -> dict[str, Any]:
    """Warm up, then plan and run every set."""
    say = on_stage or (lambda what, done, total: None)
    files = corpus.generate("tpch", settings.scale, settings.data)
    cases = list(settings.cases())
    texts = {name: text for case in cases for name, text in case.texts.items()}
    say("warming up", 0, len(cases) + 1)
    learned = warm(settings.opening(), files, texts)
    lines: list[dict[str, Any]] = []
    tuned: list[dict[str, Any]] = []
    for i, case in enumerate(cases, 1):
        say(case.name, i, len(cases) + 1)
        found = measured(settings, files, learned, case)
        lines += found
        if settings.tries > 1:
            again = partial(measured, settings, files, learned, case)
            tuned += sharing_tuned.tuned(found, again, settings.tries)
    told = {"sf": settings.scale, "most": settings.most, "engine": settings.engine}
    told |= {"lines": lines, "ratios": list(ratios(lines)), "at_once": list(at_once(lines))}
    told |= {"by_constraint": list(missing.by_constraint(lines)), "noise": missing.noise(lines)}
    if tuned:
        told |= {"tuned": tuned, "tuned_ratios": list(sharing_tuned.ratios(tuned))}
    if settings.searching:
        told["search"] = searched(settings, files, learned)
    problems = list(dict.fromkeys(p for line in (*lines, *tuned) for p in line["problems"]))
    return told | {"exact": not problems, "problems": problems}


def measured(
    settings: Settings,
    files: dict[str, Path],
    learned: Learned,
    case: Case,
    wanted: Wanted | None = None,
) -> list[dict[str, Any]]:
    """All approaches on one set, in one warehouse; of some that are asked for other shares than
    before, those alone that find other plans for it."""
    with settings.opening().opened() as db:
        load(db, files, tuple(files))
        queries = relations(db, case.texts)
        arrivals = Arrivals(files, tables_of(db, queries), even(settings.most))
        asked = Asked(queries, setting(db, arrivals, learned), {}, settings.most)
        batch, seconds = Course(BATCH), {}
        courses: dict[Plans, Course] = {}
        own: dict[str, Course] = {}
        for name, before, shares in _asked(settings, case, wanted):
            begun = time.perf_counter()
            pieces = _pieces(name, asked, shares)
            seconds[name] = time.perf_counter() - begun
            if before is None or plans(pieces) != plans(_pieces(name, asked, before)):
                made = Course(f"c{len(courses)}", pieces)
                own[name] = courses.setdefault(plans(pieces), made)
        if not own:
            return []
        learned.teach(db)
        Progress(db, case.texts, [batch, *courses.values()]).run(arrivals)
    first = {course.name: name for name, course in reversed(own.items())}
    return [
        line(case, name, course, batch)
        | {"planning_seconds": seconds[name], "measured_as": first[course.name]}
        for name, course in own.items()
    ]


def _asked(
    settings: Settings, case: Case, wanted: Wanted | None
) -> Iterator[tuple[str, Shares | None, Shares]]:
    """Approaches that the set is not too large for, what was asked for before, and what is now."""
    for name, way in settings.approaches().items():
        if wanted is None and len(case.texts) <= way.most_queries:
            yield name, None, case.constraints
        elif wanted is not None and name in wanted:
            yield name, *wanted[name]


def _pieces(name: str, asked: Asked, shares: Shares) -> Sequence[Piece]:
    goals = {query: Goal(share=share) for query, share in shares.items()}
    return APPROACHES[name].plan(replace(asked, goals=goals))


def line(case: Case, name: str, course: Course, batch: Course) -> dict[str, Any]:
    """Total CPU and missed latencies of an approach."""
    found = missing.results(case.constraints, course, batch)
    return {
        "case": case.name,
        "set": case.kind,
        "approach": name,
        "cpu_seconds": course.cpu,
        "early_cpu_seconds": course.early_cpu,
        "batch_cpu_seconds": batch.cpu,
        "runs": course.runs,
        "parts": len(course.turns),
        **missing.figures(found, batch),
        "constraints": dict(case.constraints),
        "latency_seconds": course.latency,
        "batch_latency_seconds": batch.latency,
        "expected_cpu_seconds": sum(piece.found.total for piece in course.pieces),
        "expected_missed": sum(len(piece.found.missed) for piece in course.pieces),
        "exact": not course.problems and not batch.problems,
        "problems": [*batch.problems, *course.problems],
    }


def ratios(lines: Sequence[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """By set, our CPU as a share of each baseline's, and the misses of both."""
    for kind in dict.fromkeys(line["set"] for line in lines):
        own = [line for line in lines if line["set"] == kind]
        by_name = {name: [line for line in own if line["approach"] == name] for name in APPROACHES}
        ours = by_name[OURS]
        for name, theirs in by_name.items():
            if not ours or not theirs or name in (OURS, AT_ONCE, SHARED_AT_ONCE):
                continue
            yield {
                "set": kind,
                "against": name,
                "cpu_ratio": _sum(ours, "cpu_seconds") / _sum(theirs, "cpu_seconds"),
                "paper": PAPER.get(kind, {}).get(name),
                "missed": (_sum(ours, "missed"), _sum(theirs, "missed")),
                "missed_beyond_noise": tuple(
                    _sum(own, "missed_beyond_noise") for own in (ours, theirs)
                ),
                "queries": _sum(ours, "queries"),
            }


def at_once(lines: Sequence[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Figure 10, by set: the CPU of everything in one batch at the due time, shared and not."""
    for kind in dict.fromkeys(line["set"] for line in lines):
        own = [line for line in lines if line["set"] == kind]
        shared, unshared = (
            _sum([line for line in own if line["approach"] == name], "cpu_seconds")
            for name in (SHARED_AT_ONCE, AT_ONCE)
        )
        if shared and unshared:
            told = {"set": kind, "shared": shared, "unshared": unshared}
            yield told | {"cpu_ratio": shared / unshared}


def _sum(lines: Sequence[dict[str, Any]], what: str) -> float:
    return float(sum(line[what] for line in lines))


def searched(settings: Settings, files: dict[str, Path], learned: Learned) -> dict[str, Any]:
    """How long the search with decomposition takes for 22 queries at maximum pace 100."""
    texts = corpus.queries("tpch")
    with settings.opening().opened() as db:
        load(db, files, tuple(files))
        queries = relations(db, texts)
        own = setting(db, Arrivals(files, tables_of(db, queries), even(1)), learned)
        goals = {name: Goal(share=0.01) for name in queries}
        begun = time.perf_counter()
        cpu = time.process_time()
        best = Decomposition(queries, own, goals, most=100).best()
        seconds, cpu = time.perf_counter() - begun, time.process_time() - cpu
    return {
        "seconds": seconds,
        "cpu_seconds": cpu,
        "wanted": SEARCH_SECONDS,
        "paper": PAPER_SEARCH_SECONDS,
        "subplans": len(best.dag.subplans),
        "tried": best.tried,
    }
