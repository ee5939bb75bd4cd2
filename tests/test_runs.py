"""Plans over several runs, whatever they compute when and keep for later: the results are those
of the query."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace

import pyarrow as pa
import pytest

from slackwater.algebra.expr import Expr
from slackwater.algebra.relation import Relation, Scan
from slackwater.engine.local import LocalEngine
from slackwater.planner.existing import Existing
from slackwater.planner.plan import METHODS, Speedups, explored, rules_of
from slackwater.planner.problem import Arrival, Problem
from slackwater.planner.runs import RunSteps, read_at, unfold
from slackwater.planner.states import Solution, solve
from slackwater.planner.temporal import Graph
from slackwater.planner.timeline import Timed, Timeline
from slackwater.stats.rows import Change
from slackwater.tvr import zset
from slackwater.tvr.memo import CHANGED, ROWS, Member, Rewrite
from slackwater.tvr.references import NO_PROMISES, Promises
from slackwater.types import WEIGHT, to_arrow_schema
from tests.conftest import PROOF
from tests.equal_forms import REWRITES, twice
from tests.test_laws import QUERIES, SCHEMAS, Rows, bound, engine, evaluate, log, total

__all__ = ["engine"]
PLANS = 6 if PROOF else 2
"""Random plans of each query."""
MOST_RUNS = 4


class ByChance:
    """Costs that have nothing to do with work."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._saving = rng.choice((0.0, 0.1, 1.0))
        self._tables = rng.choice((1, 1, 100))

    def member(self, timed: Timed, member: Member, timeline: Timeline) -> float:
        return self._rng.random() ** 3

    def read(self, timed: Timed, timeline: Timeline) -> float:
        many = 1 if timed.ref.trait.kind == CHANGED else self._tables
        return many * self._rng.random()

    def save(self, timed: Timed, timeline: Timeline) -> float:
        return self._saving * self._rng.random()

    def load(self, timed: Timed, timeline: Timeline) -> float:
        return self._saving * self._rng.random()


def random_row(rng: random.Random, table: str) -> tuple[object, ...]:
    values = [rng.choice((None, 0, 1, 2, 3)) for _ in SCHEMAS[table]]
    return tuple(
        rng.choice((None, "x", "y")) if f.type.name == "string" else v
        for f, v in zip(SCHEMAS[table], values, strict=True)
    )


def random_change(rng: random.Random, table: str, rows: Rows) -> Rows:
    """Some rows come, some of those there are go, some do both."""
    change: Rows = Counter(random_row(rng, table) for _ in range(rng.randrange(5)))
    for row in rng.sample(sorted(rows, key=repr), min(len(rows), rng.randrange(4))):
        change[row] -= rng.randint(1, rows[row])
    return Counter({row: n for row, n in change.items() if n})


class History:
    """Tables at every point of a timeline."""

    schemas = SCHEMAS

    def __init__(self, rng: random.Random, points: int) -> None:
        self.changing = {t for t in SCHEMAS if rng.random() < 0.8}
        self.rows: dict[str, list[Rows]] = {}
        self.changes: dict[str, list[Rows]] = {}
        for table in SCHEMAS:
            now: Rows = Counter(random_row(rng, table) for _ in range(rng.randrange(9)))
            self.rows[table], self.changes[table] = [now], []
            for _ in range(points - 1):
                change = random_change(rng, table, now) if table in self.changing else Counter()
                now = _plus(now, change)
                self.rows[table].append(now)
                self.changes[table].append(change)

    def arrivals(self) -> dict[str, Arrival]:
        return {
            table: Arrival(
                sum(self.rows[table][0].values()),
                tuple(
                    Change(
                        inserts=sum(n for n in change.values() if n > 0),
                        deletes=-sum(n for n in change.values() if n < 0),
                    )
                    for change in changes
                ),
            )
            for table, changes in self.changes.items()
        }

    def source(self, scan: Scan) -> pa.Table:
        """What a scan reads."""
        at, (table, *_) = read_at(scan), scan.source.split("@")
        if at.change:
            found: Rows = Counter()
            for change in self.changes[table][at.start : at.end]:
                found = _plus(found, change)
            return log(found, self.schemas[table])
        rows = log(self.rows[table][at.end], self.schemas[table])
        return rows if at.weighted else _repeated(rows)


def _plus(rows: Rows, change: Rows) -> Rows:
    both: Rows = Counter(rows)
    both.update(change)
    return Counter({row: n for row, n in both.items() if n})


def _repeated(weighted: pa.Table) -> pa.Table:
    """Rows as often as their weights add up to."""
    counts: Rows = Counter()
    for *row, n in zip(*(c.to_pylist() for c in weighted.columns), strict=True):
        counts[tuple(row)] += n
    flat = [row for row, n in counts.items() for _ in range(n)]
    schema = pa.schema(list(weighted.schema)[:-1])
    arrays = [pa.array([r[i] for r in flat], f.type) for i, f in enumerate(schema)]
    return pa.table(arrays, schema)


def play(
    engine: LocalEngine,
    runs: list[RunSteps],
    history: History,
    existing: Mapping[str, pa.Table] | None = None,
) -> dict[int, Rows]:
    """The results of all runs."""
    kept = dict(existing or {})

    def given(relation: Relation) -> dict[str, pa.Table]:
        return {
            scan.source: kept[scan.source] if scan.source in kept else history.source(scan)
            for scan in relation.scans()
        }

    results = {}
    for run in runs:
        for saved in run.saves:
            rows = evaluate(engine, saved.relation, given(saved.relation))
            flat = [row for row, n in rows.items() for _ in range(n)]
            table = table_of(flat, saved.relation)
            kept[saved.name] = table.drop_columns([WEIGHT]) if saved.plain else table
        if run.result is not None:
            result = zset.with_weight(run.result)
            results[run.point] = total(evaluate(engine, result, given(result)))
    return results


def table_of(rows: list[tuple[object, ...]], relation: Relation) -> pa.Table:
    schema = to_arrow_schema(relation.schema)
    arrays = [pa.array([r[i] for r in rows], f.type) for i, f in enumerate(schema)]
    return pa.table(arrays, schema)


class Daring(Problem):
    """Where few rows promise nothing, it is tried all the same."""

    def shrinks(self, relation: Relation, keys: tuple[Expr, ...]) -> bool:
        return True


def by_chance(
    query: Relation,
    history: History,
    rng: random.Random,
    points: int,
    promises: Promises = NO_PROMISES,
    existing: Sequence[Existing] = (),
    speedups: Speedups | None = None,
    more: Sequence[Rewrite] = (),
) -> Solution:
    """Any methods, costs that have nothing to do with work, and anything kept; what makes
    exploration faster in use or not."""
    due = frozenset(rng.sample(range(points), rng.randint(1, points)))
    prices = tuple(rng.random() for _ in range(points))
    last_first = rng.random() < 0.3
    kind = rng.choice((Problem, Daring))
    problem = kind(query, history.arrivals(), prices, due, last_first, existing=tuple(existing))
    problem = replace(problem, promises=promises)
    methods = [m for m in METHODS if rng.random() < 0.7]
    speedups = speedups or any_speedups(rng)
    rules, rewrites = rules_of(methods)
    memo, memos = explored(problem, rules, [*rewrites, *more], speedups)
    timeline = Timeline(memo, problem, speedups.left_deep, speedups.prompt, memos)
    costs = ByChance(rng)
    wanted = {p: timeline.timed(memo.ref(query, ROWS), max(0, p - 1), p) for p in problem.results}
    graph = Graph(timeline, [costs], wanted.values(), wanted)
    nodes = [t for i, t in enumerate(graph.nodes) if graph.groups[i] in graph.ranks]
    if rng.random() < 0.5:  # more of those with keys, of which some must be kept apart from others
        nodes = [t for t in nodes if t.ref.trait.wanted is not None] or nodes
    kept = rng.sample(nodes, min(len(nodes), rng.randrange(6)))
    return solve(timeline, costs, wanted, [(t, rng.randrange(t.point, points)) for t in kept])


def any_speedups(rng: random.Random) -> Speedups:
    """Pruning, one memo for all intervals, left-deep merges, prompt work: each or not."""
    return Speedups(*(rng.random() < 0.5 for _ in fields(Speedups)))


@pytest.mark.parametrize("name", list(QUERIES) if PROOF else list(QUERIES)[::3])
def test_whatever_is_computed_when_gives_the_query_at_that_time(
    name: str, engine: LocalEngine, rng: random.Random
) -> None:
    query = bound(QUERIES[name])
    for _ in range(PLANS):
        points = rng.randint(1, MOST_RUNS)
        history = History(rng, points)
        made = by_chance(query, history, rng, points)
        check(engine, made, query, history)


@pytest.mark.parametrize("name", list(QUERIES) if PROOF else list(QUERIES)[::4])
def test_expressions_that_are_one_give_the_same_whichever_is_computed(
    name: str, engine: LocalEngine, rng: random.Random
) -> None:
    query, points = twice(rng, bound(QUERIES[name])), rng.randint(1, MOST_RUNS)
    history = History(rng, points)
    made = by_chance(query, history, rng, points, more=REWRITES)
    check(engine, made, query, history)


MOST_ROUNDS = 30
"""So often is tried whether chance takes all kinds of ways."""
OVER_TWO = ("three-way", "aggregate of join", "left", "semi", "union", "distinct")


@pytest.mark.parametrize("symmetric", [True, False])
def test_changes_of_several_runs_taken_at_once_give_the_same(
    symmetric: bool, engine: LocalEngine, rng: random.Random
) -> None:
    """Merges need not be left-deep, from one memo for all intervals or from one for each."""
    speedups = Speedups(pruned=False, symmetric=symmetric, left_deep=False, prompt=False)
    at_once = put_together = 0
    for n in range(MOST_ROUNDS):
        if n >= PLANS and at_once and put_together:
            break
        for name in OVER_TWO:
            query, history = bound(QUERIES[name]), History(rng, MOST_RUNS)
            made = by_chance(query, history, rng, MOST_RUNS, speedups=speedups)
            check(engine, made, query, history)
            for (i, _run), step in made.steps().items():
                timed = made.graph.nodes[i]
                at_once += timed.end - timed.start > 1
                put_together += step.way is not None and step.way.member.rule == "put_together"
    assert at_once > 0
    assert put_together > 0


def check(
    engine: LocalEngine,
    made: Solution,
    query: Relation,
    history: History,
    existing: Mapping[str, pa.Table] | None = None,
) -> None:
    """Its results are those of the query at their times."""
    results = play(engine, unfold(made), history, existing)
    assert set(results) == set(made.graph.problem.results)
    for point, found in results.items():
        assert found == rows_at(engine, query, history, point)


def rows_at(engine: LocalEngine, query: Relation, history: History, point: int) -> Rows:
    """What a query gives at a point."""
    plain = query.rewrite(
        lambda n: Scan(f"{n.source}@{point}", n.name, n.fields) if isinstance(n, Scan) else n
    )
    given = {s.source: history.source(s) for s in plain.scans()}
    return total(evaluate(engine, zset.with_weight(plain), given))
