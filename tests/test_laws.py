"""Every law against recompute: old content plus the computed change equals the new content."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from slackwater.algebra.relation import Aggregate, Relation, Scan
from slackwater.engine.compile import compile_query
from slackwater.engine.dialects import LOCAL
from slackwater.engine.local import LocalEngine
from slackwater.sql.bind import bind, context
from slackwater.sql.tables import unordered
from slackwater.tvr import zset
from slackwater.tvr.delta import Deltas
from slackwater.tvr.normal import normalize
from slackwater.tvr.state import AggregateState, is_invertible
from slackwater.tvr.time import CHANGE, NEW, OLD
from slackwater.types import BIGINT, INT, STRING, WEIGHT, Field, Schema, to_arrow_schema

SCHEMAS: dict[str, Schema] = {
    "r": (Field("a", INT), Field("b", INT), Field("s", STRING)),
    "t": (Field("a", INT), Field("c", INT)),
    "u": (Field("b", INT), Field("c", INT), Field("d", INT)),
}

QUERIES = {
    "filter": "SELECT a, b FROM r WHERE b > 1 AND s IS NOT NULL",
    "project": "SELECT a + 1 AS x, upper(s) AS y FROM r",
    "union": "SELECT a, b FROM r UNION ALL SELECT a, c FROM t UNION ALL SELECT b, d FROM u",
    "join": "SELECT r.a, r.s, t.c FROM r JOIN t ON r.a = t.a",
    "theta join": "SELECT r.a, t.c FROM r JOIN t ON r.a < t.a",
    "cross join": "SELECT r.a, t.c FROM r CROSS JOIN t",
    "self join": "SELECT x.a, y.b FROM r x JOIN r y ON x.b = y.b",
    "three times the same": "SELECT x.a FROM t x JOIN t y ON x.a = y.c JOIN t z ON y.a = z.c",
    "three-way": "SELECT r.s, u.d FROM r JOIN t ON r.a = t.a JOIN u ON t.c = u.c AND u.b = r.b",
    "left": "SELECT r.a, r.s, t.c FROM r LEFT JOIN t ON r.a = t.a",
    "left with residual": "SELECT r.a, t.c FROM r LEFT JOIN t ON r.a = t.a AND r.b < t.c",
    "left theta": "SELECT r.a, t.c FROM r LEFT JOIN t ON r.a < t.a",
    "right": "SELECT r.a, t.a AS ta, t.c FROM r RIGHT JOIN t ON r.a = t.a",
    "full": "SELECT r.a, r.b, t.a AS ta, t.c FROM r FULL JOIN t ON r.a = t.a",
    "full using": "SELECT * FROM r FULL JOIN t USING (a)",
    "three-way outer": "SELECT r.a, t.c, u.d FROM r LEFT JOIN t ON r.a = t.a "
    "FULL JOIN u ON u.b = r.b",
    "outer over outer": "SELECT * FROM (SELECT r.a, t.c FROM r LEFT JOIN t ON r.a = t.a) x "
    "LEFT JOIN u ON x.c = u.c",
    "semi": "SELECT a, s FROM r WHERE EXISTS (SELECT 1 FROM t WHERE t.a = r.a)",
    "semi with residual": "SELECT a FROM r WHERE EXISTS "
    "(SELECT 1 FROM t WHERE t.a = r.a AND t.c <> r.b)",
    "anti": "SELECT a, s FROM r WHERE NOT EXISTS (SELECT 1 FROM t WHERE t.a = r.a)",
    "in": "SELECT a FROM r WHERE b IN (SELECT c FROM t)",
    "not in": "SELECT a, b FROM r WHERE b NOT IN (SELECT c FROM t)",
    "not in, correlated": "SELECT a, b FROM r WHERE b NOT IN (SELECT c FROM t WHERE t.a = r.a)",
    "exists or": "SELECT a FROM r WHERE b = 1 OR EXISTS (SELECT 1 FROM t WHERE t.a = r.a)",
    "sum": "SELECT a, SUM(b) AS n, COUNT(*) AS k, COUNT(s) AS ks FROM r GROUP BY a",
    "average": "SELECT a, AVG(b) AS m FROM r GROUP BY a",
    "minimum and maximum": "SELECT a, MIN(b) AS lo, MAX(s) AS hi FROM r GROUP BY a",
    "count distinct": "SELECT a, COUNT(DISTINCT b) AS n FROM r GROUP BY a",
    "having": "SELECT a, SUM(b) AS n FROM r GROUP BY a HAVING SUM(b) > 2",
    "global": "SELECT SUM(b) AS n, COUNT(*) AS k, MAX(a) AS m FROM r",
    "aggregate of join": "SELECT r.s, SUM(t.c * r.b) AS n FROM r JOIN t ON r.a = t.a GROUP BY r.s",
    "aggregate of outer join": "SELECT r.a, COUNT(t.c) AS n FROM r LEFT JOIN t ON r.a = t.a "
    "GROUP BY r.a",
    "aggregate of aggregate": "SELECT n, COUNT(*) AS k FROM "
    "(SELECT a, COUNT(*) AS n FROM r GROUP BY a) GROUP BY n",
    "rollup": "SELECT a, s, SUM(b) AS n, GROUPING(s) AS g FROM r GROUP BY ROLLUP (a, s)",
    "cube": "SELECT a, b, COUNT(*) AS n FROM r GROUP BY CUBE (a, b)",
    "distinct": "SELECT DISTINCT a, s FROM r",
    "union distinct": "SELECT a FROM r UNION SELECT a FROM t",
    "intersect": "SELECT a FROM r INTERSECT SELECT a FROM t",
    "intersect all": "SELECT a FROM r INTERSECT ALL SELECT a FROM t",
    "except": "SELECT a FROM r EXCEPT SELECT a FROM t",
    "except all": "SELECT a FROM r EXCEPT ALL SELECT a FROM t",
    "scalar subquery": "SELECT a, (SELECT MAX(c) FROM t) AS m FROM r",
    "correlated scalar": "SELECT a, b FROM r WHERE b >= (SELECT AVG(c) FROM t WHERE t.a = r.a)",
    "count bug": "SELECT a, (SELECT COUNT(*) FROM t WHERE t.a = r.a) AS n FROM r",
    "correlated by inequality": "SELECT a, (SELECT SUM(c) FROM t WHERE t.a < r.a) AS n FROM r",
    "rank": "SELECT a, b, RANK() OVER (PARTITION BY a ORDER BY b DESC) AS k FROM r",
    "row number": "SELECT a, b, s, ROW_NUMBER() OVER (PARTITION BY a ORDER BY b) AS k FROM r",
    "running sum": "SELECT a, b, SUM(b) OVER (PARTITION BY a ORDER BY b) AS n FROM r",
    "moving sum": "SELECT a, b, SUM(b) OVER (PARTITION BY a ORDER BY b "
    "ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) AS n FROM r",
    "window over all": "SELECT a, b, COUNT(*) OVER () AS n FROM r",
    "two partitions": "SELECT a, b, COUNT(*) OVER (PARTITION BY a) AS n, "
    "SUM(b) OVER (PARTITION BY a, b) AS m FROM r",
    "top": "SELECT a, b, s FROM r ORDER BY b DESC, a LIMIT 3",
    "top of aggregate": "SELECT a, SUM(b) AS n FROM r GROUP BY a ORDER BY n DESC LIMIT 2 OFFSET 1",
    "top per group": "SELECT a, b FROM (SELECT a, b, ROW_NUMBER() OVER "
    "(PARTITION BY a ORDER BY b) AS k FROM r) WHERE k <= 2",
    "lateral": "SELECT r.a, x.n FROM r, LATERAL (SELECT SUM(c) AS n FROM t WHERE t.a = r.a) x",
    "common table": "WITH x AS (SELECT a, SUM(b) AS n FROM r GROUP BY a) "
    "SELECT p.a, q.n FROM x p JOIN x q ON p.n = q.n",
}

Rows = Counter[tuple[Any, ...]]


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalEngine]:
    made = LocalEngine(tmp_path_factory.mktemp("laws"))
    yield made
    made.close()


def lookup(name: str) -> Relation | None:
    return Scan(name, name, SCHEMAS[name]) if name in SCHEMAS else None


def bound(text: str) -> Relation:
    oracle: Any = None  # every query here is portable
    return normalize(unordered(bind(text, context(lookup, lambda: list(SCHEMAS), oracle))))


def table(rows: Rows, schema: Schema, weights: bool = False) -> pa.Table:
    """Rows as often as they count, or once with their weight."""
    fields = (*schema, Field(WEIGHT, BIGINT)) if weights else schema
    flat = [
        [*row, count] if weights else row
        for row, count in rows.items()
        for _ in range(1 if weights else count)
    ]
    columns = list(zip(*flat, strict=True)) if flat else [()] * len(fields)
    arrow = to_arrow_schema(fields)
    return pa.table([pa.array(c, f.type) for c, f in zip(columns, arrow, strict=True)], arrow)


def evaluate(engine: LocalEngine, relation: Relation, given: dict[str, pa.Table]) -> Rows:
    names = {scan.source: f"input_{i}" for i, scan in enumerate(dict.fromkeys(relation.scans()))}
    sql = compile_query(relation, LOCAL, names)
    schema = to_arrow_schema(relation.schema)
    tables = {name: given[source] for source, name in names.items()}
    rows: Rows = Counter()
    for batch in engine.batches(sql, schema, tables):
        rows.update(zip(*(c.to_pylist() for c in batch.columns), strict=True))
    return rows


def value(rng: random.Random, field: Field) -> Any:
    if rng.random() < 0.15:
        return None
    return rng.choice("xyz") if field.type == STRING else rng.randint(0, 4)


def random_rows(rng: random.Random, schema: Schema, most: int) -> Rows:
    return Counter(tuple(value(rng, f) for f in schema) for _ in range(rng.randint(0, most)))


def random_change(rng: random.Random, old: Rows, schema: Schema) -> Rows:
    """Insertions and deletions; deletions name rows that are there."""
    change = random_rows(rng, schema, rng.choice([0, 1, 3, 8]))
    for row in rng.sample(sorted(old.elements(), key=str), min(old.total(), rng.randint(0, 4))):
        change[row] -= 1
    return Counter({row: count for row, count in change.items() if count})


def random_tables(rng: random.Random) -> tuple[dict[str, pa.Table], set[str]]:
    """Random tables at both times, and which of them changed."""
    given, changed = {}, set()
    for name, schema in SCHEMAS.items():
        old = random_rows(rng, schema, 12)
        change = random_change(rng, old, schema) if rng.random() < 0.7 else Counter()
        new = Counter(old)
        new.update(change)
        assert all(count >= 0 for count in new.values())
        given[name] = table(+new, schema)
        if change:
            changed.add(name)
            given[name + OLD] = table(+old, schema)
            given[name + NEW] = table(+new, schema)
            given[name + CHANGE] = table(change, schema, weights=True)
    return given, changed


def assert_equals_recompute(
    engine: LocalEngine, deltas: Deltas, relation: Relation, given: dict[str, pa.Table]
) -> None:
    """Old content plus change is new content, the latter computed from the tables alone."""
    total = evaluate(engine, deltas.old(relation), given)
    delta = deltas.delta(relation)
    if delta is not None:
        for row, count in evaluate(engine, zset.consolidate(delta), given).items():
            total[row[:-1]] += row[-1] * count
    expected = evaluate(engine, Deltas(deltas.changed).new(relation), given)
    assert {r: n for r, n in total.items() if n} == dict(expected)


def check(engine: LocalEngine, relation: Relation, rng: random.Random) -> None:
    """One random change of random tables."""
    given, changed = random_tables(rng)
    assert_equals_recompute(engine, Deltas(frozenset(changed)), relation, given)


@pytest.mark.parametrize("name", QUERIES)
def test_change_computed_by_laws_equals_recompute(
    name: str, engine: LocalEngine, rng: random.Random
) -> None:
    relation = bound(QUERIES[name])
    for _ in range(12):
        check(engine, relation, rng)


def states_of(relation: Relation) -> dict[Relation, AggregateState]:
    """A state for every aggregate that can be kept as partial sums, inner ones first."""
    return {
        node: AggregateState(node, f"state_{i}")
        for i, node in enumerate(relation.walk())
        if isinstance(node, Aggregate) and is_invertible(node)
    }


def check_with_states(engine: LocalEngine, relation: Relation, rng: random.Random) -> int:
    """As `check`, with the sums of aggregates kept and merged; how many states changed."""
    given, changed = random_tables(rng)
    deltas = Deltas(frozenset(changed), states_of(relation))
    merged = 0
    for node, state in deltas.states.items():
        before = evaluate(engine, state.initial(deltas.old(node.input)), given)
        given[state.id] = given[state.id + OLD] = table(before, state.schema)
        if not deltas.changes(node):
            continue
        after = Counter(before)
        change = evaluate(engine, state.change(deltas.sure(node.input)), given)
        for row, count in change.items():
            after[row[:-1]] += row[-1] * count
        assert +after == evaluate(engine, state.initial(deltas.new(node.input)), given)
        given[state.id + NEW] = table(+after, state.schema)
        weighted = Counter({row[:-1]: row[-1] * count for row, count in change.items()})
        given[state.id + CHANGE] = table(weighted, state.schema, weights=True)
        merged += 1
    assert_equals_recompute(engine, deltas, relation, given)
    return merged


@pytest.mark.parametrize("name", [n for n in QUERIES if states_of(bound(QUERIES[n]))])
def test_merged_partial_sums_equal_recompute(
    name: str, engine: LocalEngine, rng: random.Random
) -> None:
    relation = bound(QUERIES[name])
    assert sum(check_with_states(engine, relation, rng) for _ in range(12)) > 0
