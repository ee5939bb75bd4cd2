"""What lies there already, as a way to have a relation: results stay those of the query, and a plan
loads what is cheaper to read than to compute."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

import pyarrow as pa
import pytest

from slackwater.algebra.relation import Aggregate, Join, Relation, Scan
from slackwater.engine.local import LocalEngine
from slackwater.errors import UserError
from slackwater.planner import plan as planning
from slackwater.planner.existing import Existing
from slackwater.planner.plan import METHODS, plan, rules_of
from slackwater.planner.problem import Arrival, Problem
from slackwater.planner.runs import lacking, unfold
from slackwater.stats.rows import Change
from slackwater.tvr import zset
from slackwater.tvr.memo import CHANGED, ROWS, WEIGHTED, Memo
from slackwater.types import Field, Schema, to_arrow_schema
from tests.conftest import PROOF
from tests.test_laws import QUERIES, Rows, bound, engine, log
from tests.test_runs import MOST_RUNS, History, by_chance, check, rows_at

__all__ = ["engine"]
PLANS = 4 if PROOF else 2
MANY = 1_000_000.0


# -- whatever exists, results are those of the query


@pytest.mark.parametrize("name", list(QUERIES) if PROOF else list(QUERIES)[1::3])
def test_with_whatever_exists_the_results_are_those_of_the_query(
    name: str, engine: LocalEngine, rng: random.Random
) -> None:
    query = bound(QUERIES[name])
    for _ in range(PLANS):
        points = rng.randint(1, MOST_RUNS)
        history = History(rng, points)
        expressions = _expressions(query, history)
        existing = [_one(rng, n, rng.choice(expressions), points) for n in range(8)]
        stored = {one.name: _stored(engine, one, history) for one in existing}
        made = by_chance(query, history, rng, points, existing=existing)
        while without := lacking(unfold(made)):
            existing = [one for one in existing if one.name not in without]
            made = by_chance(query, history, rng, points, existing=existing)
        check(engine, made, query, history, stored)


def _expressions(query: Relation, history: History) -> list[Relation]:
    """All that the query may be computed from, in any form."""
    changed = frozenset(table for table in history.changing)
    memo = Memo(changed, *rules_of(METHODS))
    memo.explore([memo.ref(query, ROWS), memo.ref(query, ROWS, old=True)])
    return [form for form, _ in memo.expressions() if not isinstance(form, Scan)] or [query]


def _one(rng: random.Random, n: int, relation: Relation, points: int) -> Existing:
    """A relation as of any point, there from any run on, perhaps with columns left out."""
    at = rng.randrange(points)
    since = rng.randrange(at, points)
    names = [f"n{i}" for i in range(relation.width)]
    dropped = rng.randrange(relation.width) if rng.random() < 0.2 and len(names) > 1 else None
    columns = tuple(None if i == dropped else name for i, name in enumerate(names))
    kind = rng.choice((ROWS, WEIGHTED, CHANGED) if at else (ROWS, WEIGHTED))
    start = at - 1 if kind == CHANGED else None
    return Existing(f"e{n}", relation, at, since, None, kind, start, columns)


def _stored(engine: LocalEngine, one: Existing, history: History) -> pa.Table:
    assert one.at is not None
    rows = rows_at(engine, one.relation, history, one.at)
    if one.kind == CHANGED:
        rows = Counter(rows)
        rows.subtract(rows_at(engine, one.relation, history, one.at - 1))
    kept = [i for i, name in enumerate(one.columns) if name is not None]
    fewer: Rows = Counter()
    for row, count in rows.items():
        fewer[tuple(row[i] for i in kept)] += count
    fields = one.scan(_schema(one)).schema
    if one.kind == ROWS:
        flat = [row for row, n in fewer.items() for _ in range(n)]
        schema = to_arrow_schema(tuple(fields[i] for i in kept))
        arrays = [pa.array([r[i] for r in flat], f.type) for i, f in enumerate(schema)]
        return pa.table(arrays, schema)
    return log(Counter({r: n for r, n in fewer.items() if n}), tuple(fields[i] for i in kept))


def _schema(one: Existing) -> Schema:
    own = one.relation
    return own.schema if one.kind == ROWS else zset.with_weight(own).schema


# -- what plans do with it


def _problem(*existing: Existing, prices: tuple[float, ...] = (1.0, 1.0)) -> Problem:
    """A sum over a join of which one side grows."""
    grows = Arrival(MANY / 2, (Change(inserts=MANY / 100),) * (len(prices) - 1))
    stays = Arrival(MANY / 20, (Change(),) * (len(prices) - 1))
    query = bound(QUERIES["aggregate of join"])
    return Problem(query, {"r": grows, "t": stays}, prices, existing=existing)


def _join() -> Relation:
    return next(n for n in _problem().query.walk() if isinstance(n, Join))


def test_what_exists_is_read_and_not_computed() -> None:
    kept = Existing("kept", _join(), rows=MANY / 100)
    made, without = plan(_problem(kept)), plan(_problem())
    assert made.loaded == {"kept": (1,)}
    assert made.cost < without.cost
    assert "load kept, which exists" in made.text()
    assert "kept" in {scan.source for scan in made.runs[1].result.scans()}  # type: ignore[union-attr]
    assert not made.not_loaded


def test_the_result_itself_may_exist() -> None:
    problem = _problem(prices=(1.0,))
    made = plan(replace(problem, existing=(Existing("result", problem.query, rows=10),)))
    assert made.loaded == {"result": (0,)}
    assert not made.methods()


def test_fewer_rows_cost_less_to_read() -> None:
    few, more = (Existing("kept", _join(), rows=rows) for rows in (100.0, 10_000.0))
    assert plan(_problem(few)).cost < plan(_problem(more)).cost


def test_what_costs_more_to_read_than_to_compute_is_left() -> None:
    made = plan(_problem(Existing("kept", _join(), rows=1e12)))
    assert not made.loaded
    assert made.not_loaded == {"kept": planning.DEARER}
    assert made.cost == pytest.approx(plan(_problem()).cost)


def test_what_exists_is_found_whatever_its_columns_are_called() -> None:
    join = _join()
    named = {scan: scan.replace(fields=tuple(_renamed(scan))) for scan in join.scans()}
    renamed = join.rewrite(lambda node: named.get(node, node))
    assert renamed is not join
    assert plan(_problem(Existing("kept", renamed, rows=100.0))).loaded


def _renamed(scan: Scan) -> Iterator[Field]:
    return (Field(f.name + "_", f.type, f.nullable) for f in scan.fields)


def test_what_exists_is_there_from_its_run_on() -> None:
    later = Existing("kept", _join(), at=1, since=2, rows=100.0)
    made = plan(_problem(later, prices=(1.0, 1.0, 1.0)))
    assert made.loaded == {"kept": (2,)}


def test_columns_that_are_not_there_are_not_read() -> None:
    """What lacks none that the plan reads is loaded; what does, is not."""
    query = bound("SELECT s, COUNT(*) AS n FROM (SELECT a, b, s FROM r) GROUP BY s")
    below = query.walk()
    wide = next(n for n in below if isinstance(n, Aggregate))
    arrivals = {"r": Arrival(MANY, ())}
    lacks = Existing("lacks", wide, rows=10.0, columns=("s", None))
    made = plan(Problem(query, arrivals, (1.0,), existing=(lacks,)))
    assert made.not_loaded == {"lacks": planning.LACKS_COLUMNS}
    count = bound("SELECT COUNT(*) AS n FROM (SELECT s, COUNT(*) AS n FROM r GROUP BY s)")
    inner = next(n for n in count.walk() if isinstance(n, Aggregate) and n.keys)
    only = Existing("only", inner, rows=10.0, columns=("s", *(None,) * (inner.width - 1)))
    found = plan(Problem(count, arrivals, (1.0,), existing=(only,)))
    assert found.loaded == {"only": (0,)}
    scanned = {f.name for scan in found.runs[0].result.scans() for f in scan.fields}  # type: ignore[union-attr]
    assert scanned == {"s"}


def test_a_plan_tells_what_it_could_not_find() -> None:
    elsewhere = bound("SELECT b, MAX(a) AS m FROM r GROUP BY b")
    behind = Existing("behind", _join(), at=None)
    made = plan(_problem(Existing("other", elsewhere), behind))
    assert made.not_loaded == {"other": planning.NOT_FOUND, "behind": planning.OTHER_TIME}
    assert f"Not loaded: other, since {planning.NOT_FOUND}" in made.text()
    told = json.loads(json.dumps(made.to_json()))
    assert told["not_loaded"] == made.not_loaded
    assert told["loaded"] == {}
    assert [run["run"] for run in told["runs"]] == [0, 1]


def test_what_exists_serves_on_any_engine() -> None:
    kept = Existing("kept", _join(), rows=100.0)
    made = plan(_problem(kept), engines=("local", "spark"))
    assert made.loaded == {"kept": (1,)}
    assert made.cost < plan(_problem(), engines=("local", "spark")).cost


def test_what_exists_must_lie_on_the_timeline() -> None:
    with pytest.raises(UserError) as refused:
        _problem(Existing("kept", _join(), at=5))
    assert refused.value.code == "BAD_PROBLEM"


def test_nothing_is_done_in_runs_that_have_happened() -> None:
    problem = _problem(prices=(0.1, 0.1, 1.0))
    made = plan(replace(problem, done=2))
    assert made.by_run[:2] == (0, 0)
    assert made.by_run[2] > 0
    with pytest.raises(UserError) as refused:
        replace(problem, done=3)
    assert refused.value.code == "BAD_PROBLEM"
