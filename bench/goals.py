"""`slackwater bench goals`: each query alone under a constraint on its last run (000, 3.4).

All rows come evenly until the result is due. The constraint is the share that the last run may
take of one run at the due time. Three approaches find paces by the same costs: one pace for each
path (InQP), one for the query, one for each source. What counts is the CPU time in addition to that
of the one run, and the latency as a share of its latency. Where costs say that a constraint is out
of reach, all get the nearest one that a pace for each path reaches, and an approach that does not
reach that either gets its own nearest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from bench import corpus, goals_thesis
from bench.arrivals import Arrivals, even, load
from bench.pacing import MARGIN, Pacing, relations, setting, tables_of
from bench.progress import BATCH, Course, Progress
from bench.warming import Learned, Opening, warm
from slackwater.planner.pace import Found, Goal

CONSTRAINTS = (1.0, 0.2, 0.05, 0.02)
APPROACHES = ("paths", "uniform", "leaves")
OURS = "subplans"
OWN = {
    "qaggjoin": """SELECT AVG(avg_price) AS avg_avg FROM customer c,
        (SELECT o_custkey, AVG(o_totalprice) AS avg_price FROM orders GROUP BY o_custkey) agg_o
        WHERE c.c_custkey = agg_o.o_custkey""",
    "qouter": """SELECT COUNT(*) AS n FROM part LEFT JOIN partsupp ON p_partkey = ps_partkey
        JOIN lineitem ON p_partkey = l_partkey JOIN orders ON l_orderkey = o_orderkey""",
}
"""The two queries of 3.4.2."""
OnStage = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Settings:
    """What to measure."""

    scale: float = 0.1
    queries: tuple[str, ...] = ()
    constraints: tuple[float, ...] = CONSTRAINTS
    paces: tuple[str, ...] = APPROACHES
    what: tuple[str, ...] = ("main",)
    most: int = 20
    engine: str = "auto"
    repeat: int = 10
    """Of each bias, so many draws."""
    seed: int = 7
    data: Path | None = None
    spark: Any = None
    spark_master: str = "local[*]"

    def texts(self) -> dict[str, str]:
        """The chosen queries."""
        every = corpus.queries("tpch") | OWN
        return {n: text for n, text in every.items() if not self.queries or n in self.queries}

    def opening(self) -> Opening:
        """Where warehouses are."""
        folder = self.data or corpus.data_folder()
        return Opening(self.engine, folder, self.spark, self.spark_master)


def run(settings: Settings, on_stage: OnStage | None = None) -> dict[str, Any]:
    """Warm up, then plan, run and compare each query."""
    say = on_stage or (lambda what, done, total: None)
    texts = settings.texts()
    files = corpus.generate("tpch", settings.scale, settings.data)
    say("warming up", 0, len(texts) + 1)
    learned = warm(settings.opening(), files, texts)
    lines: list[dict[str, Any]] = []
    for i, (name, text) in enumerate(texts.items() if "main" in settings.what else (), 1):
        say(name, i, len(texts) + 1)
        lines += measured(settings, files, learned, name, text)
    from bench import goals_noise as noise  # it builds on what is above

    more = {"bias": noise.bias, "bursts": noise.bursts, "cardinality": noise.cardinality}
    parts = {w: f(settings, files, learned, say) for w, f in more.items() if w in settings.what}
    return report(settings, lines, parts, learned)


def measured(
    settings: Settings, files: dict[str, Path], learned: Learned, name: str, text: str
) -> list[dict[str, Any]]:
    """A query under all constraints by all approaches."""

    def planning(pacing: Pacing) -> Iterator[tuple[str, Plan]]:
        return (("", plan) for plan in planned(pacing, settings.constraints, settings.paces))

    return played(settings, files, learned, (name, text), even(settings.most), planning)


def played(
    settings: Settings,
    files: dict[str, Path],
    learned: Learned,
    query: tuple[str, str],
    shares: tuple[float, ...],
    planning: Callable[[Pacing], Iterable[tuple[str, Plan]]],
) -> list[dict[str, Any]]:
    """The plans for a query, each in some case, side by side in one warehouse. Plans with the same
    paces are run once."""
    name, text = query
    with settings.opening().opened() as db:
        load(db, files, tuple(files))
        queries = relations(db, {name: text})
        arrivals = Arrivals(files, tables_of(db, queries), shares)
        pacing = Pacing(name, queries[name], setting(db, arrivals, learned), settings.most)
        batch, courses, own = Course(BATCH), dict[object, Course](), []
        for case, plan in planning(pacing):
            key = tuple(sorted(plan.found.paces.items()))
            if set(plan.found.paces.values()) <= {1}:
                courses[key] = batch
            else:
                pieces = [pacing.piece(plan.found)]
                courses.setdefault(key, Course(f"c{len(courses)}", pieces))
            own.append((case, plan, courses[key]))
        learned.teach(db)
        different = {c.name: c for c in (batch, *courses.values())}
        Progress(db, {name: text}, list(different.values())).run(arrivals)
        tables = {table.id: table.name for table in db.catalog.snapshot().tables()}
    return [line(name, plan, course, batch, tables) | {"case": case} for case, plan, course in own]


@dataclass(frozen=True)
class Plan:
    """Paces for a query by an approach under a constraint."""

    approach: str
    mode: str
    constraint: float
    reached: float
    """The share that is asked for: the constraint, or the nearest that can be met."""
    expected_batch: float
    found: Found


def planned(pacing: Pacing, constraints: Sequence[float], approaches: Sequence[str]) -> list[Plan]:
    """All of them. Each approach is asked for what it can reach."""
    modes = {approach: pacing.resolved(approach) for approach in approaches}
    batch = pacing.batch()
    nearest = {mode: MARGIN * pacing.nearest(mode) for mode in (*modes.values(), OURS)}
    found = []
    for constraint in constraints:
        asked = max(constraint * batch, nearest[modes.get("paths", OURS)])
        for approach, mode in modes.items():
            goal = min(batch, max(asked, nearest[mode]))
            own = pacing.found(mode, Goal(goal))
            found.append(Plan(approach, mode, constraint, goal / batch, batch, own))
    return found


def line(
    name: str, plan: Plan, course: Course, batch: Course, tables: Mapping[str, str]
) -> dict[str, Any]:
    """What a plan took, beside what was expected. Paces are by subplan and by what it reads: tables
    by their names, other subplans by number."""
    paces = {
        f"{number}:{tables.get(source, source)}": pace
        for (number, source), pace in plan.found.paces.items()
    }
    return {
        "query": name,
        "partly": name in goals_thesis.PARTLY,
        "approach": plan.approach,
        "mode": plan.mode,
        "constraint": plan.constraint,
        "reached": plan.reached,
        "is_nearest": plan.reached > plan.constraint * 1.0001,
        "paces": paces,
        "runs": course.runs,
        "cpu_seconds": course.cpu,
        "batch_cpu_seconds": batch.cpu,
        "additional_cpu_seconds": course.cpu - batch.cpu,
        "final_cpu_ratio": course.final_cpu[name] / batch.final_cpu[name],
        "latency_seconds": course.latency[name],
        "batch_latency_seconds": batch.latency[name],
        "latency_ratio": course.latency[name] / batch.latency[name],
        "expected_ratio": plan.found.final[name] / plan.expected_batch,
        "expected_cpu_seconds": plan.found.total,
        "exact": not course.problems and not batch.problems,
        "problems": [*batch.problems, *course.problems],
        "thesis": goals_thesis.says(name),
    }


def report(
    settings: Settings,
    lines: Sequence[dict[str, Any]],
    parts: Mapping[str, Sequence[dict[str, Any]]],
    learned: Learned,
) -> dict[str, Any]:
    """Every line, and by constraint and approach the medians over the queries."""
    checked = [*lines, *(own for part in parts.values() for own in part)]
    return dict(parts) | {
        "sf": settings.scale,
        "most": settings.most,
        "engine": settings.engine,
        "run_seconds": dict(learned.run),
        "lines": list(lines),
        "summary": [
            _summary(lines, constraint, approach, partly)
            for partly in (False, True)
            for constraint in settings.constraints
            for approach in settings.paces
            if any(own["partly"] == partly for own in lines)
        ],
        "beside": goals_thesis.beside(lines),
        "met": list(goals_thesis.met(lines)),
        "thrift": list(goals_thesis.thrift(lines)),
        "exact": all(own["exact"] for own in checked),
        "problems": list(dict.fromkeys(p for own in checked for p in own["problems"])),
    }


def _summary(
    lines: Sequence[Mapping[str, Any]], constraint: float, approach: str, partly: bool
) -> dict[str, Any]:
    asked = {"constraint": constraint, "approach": approach, "partly": partly}
    own = [line for line in lines if all(line[k] == v for k, v in asked.items())]
    return asked | {
        "queries": len(own),
        "additional_cpu_seconds": sum(line["additional_cpu_seconds"] for line in own),
        "batch_cpu_seconds": sum(line["batch_cpu_seconds"] for line in own),
        "latency_ratio": median(line["latency_ratio"] for line in own),
        "final_cpu_ratio": median(line["final_cpu_ratio"] for line in own),
    }
