"""Every law against recompute: old content plus the computed change equals the new content."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from slackwater.algebra.relation import Relation, Scan
from slackwater.engine.compile import compile_query
from slackwater.engine.dialects import LOCAL
from slackwater.engine.local import LocalEngine
from slackwater.sql.bind import bind, context
from slackwater.sql.tables import unordered
from slackwater.tvr import zset
from slackwater.tvr.delta import Deltas
from slackwater.tvr.normal import normalize
from slackwater.tvr.states import State, buffer, choose_states
from slackwater.tvr.states.buffer import BufferState
from slackwater.tvr.time import CHANGE, NEW, NOW, OLD
from slackwater.types import BIGINT, INT, STRING, WEIGHT, Field, Schema, to_arrow_schema
from tests.conftest import PROOF

ROUNDS = 10 if PROOF else 4
"""Random tables and changes for each query."""

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
    "extremum of a cross join": (
        "SELECT t.c, MAX(r.b) AS m, COUNT(*) AS n FROM t CROSS JOIN r WHERE r.b > 2 GROUP BY t.c"
    ),
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

# forms that the normal form takes apart in another order
QUERIES |= {
    "outer join that is none": "SELECT r.a, t.c FROM r LEFT JOIN t ON r.a = t.a WHERE t.c > 1",
    "full join that is none": "SELECT r.b, t.c FROM r FULL JOIN t ON r.a = t.a "
    "WHERE r.b + 1 > 1 AND t.c IN (1, 2)",
    "full join that is a left one": "SELECT r.b, t.c FROM r FULL JOIN t ON r.a = t.a WHERE r.b > 1",
    "groups of chosen keys": "SELECT r.a, r.b FROM r JOIN u ON r.a = u.b WHERE u.d = 2 "
    "AND r.b >= (SELECT AVG(c) FROM t WHERE t.a = u.b)",
    "groups of keys in a list": "SELECT a, b FROM r WHERE b IN (SELECT d FROM u WHERE c IN (1, 2)) "
    "AND a > (SELECT MIN(c) FROM t WHERE t.a = r.b)",
    "chosen groups of a join": "SELECT x.a, y.n FROM (SELECT * FROM r WHERE s = 'x') x JOIN "
    "(SELECT t.a, SUM(d) AS n FROM t JOIN u ON t.c = u.c GROUP BY t.a) y ON x.a = y.a",
    "chosen keys of a self join": "WITH y AS (SELECT t.a, u.b FROM t JOIN u ON t.c < u.c "
    "WHERE u.d = 2) SELECT p.b, z.n FROM y p JOIN y q ON p.a = q.b "
    "JOIN (SELECT a, SUM(b) AS n FROM r GROUP BY a) z ON z.a = q.a",
    "groups of partners": "SELECT r.a, r.s, COUNT(t.c) AS n, SUM(t.c) AS m, COUNT(*) AS k, "
    "COUNT(*) FILTER (WHERE t.c > 1) AS f, MIN(t.c) AS lo, AVG(t.c) AS g "
    "FROM r LEFT JOIN t ON r.a = t.a AND t.c < 4 GROUP BY r.a, r.s",
    "in of a join": "SELECT a, s FROM r WHERE b IN (SELECT t.c FROM t JOIN u ON t.a = u.b)",
    "in of a join, and of itself": "SELECT c FROM t WHERE a IN "
    "(SELECT x.c FROM t x JOIN r ON x.a = r.b)",
    "in of groups": "SELECT a, s FROM r WHERE b IN (SELECT a FROM t GROUP BY a HAVING SUM(c) > 2)",
    "in of distinct rows": "SELECT a, s FROM r WHERE (a, b) IN (SELECT DISTINCT a, c FROM t)",
    "in of groups, joined": "SELECT x.s FROM (SELECT r.s, t.c FROM r JOIN t ON r.a = t.a) x "
    "WHERE x.c IN (SELECT b FROM u GROUP BY b HAVING COUNT(*) > 1)",
    "in of a set": "SELECT a FROM r WHERE b IN (SELECT c FROM t UNION ALL SELECT d FROM u)",
    "not among those joined": "SELECT a, s FROM r WHERE NOT EXISTS "
    "(SELECT 1 FROM t JOIN u ON t.c = u.c WHERE t.a = r.a AND u.b = r.b)",
    "not among groups": "SELECT a, s FROM r WHERE NOT EXISTS (SELECT 1 FROM "
    "(SELECT a, SUM(c) AS n FROM t GROUP BY a) x WHERE x.a = r.a AND x.n > 1)",
    "largest partners": "SELECT r.a, MAX(t.c) AS hi FROM r LEFT JOIN t ON t.a = r.a GROUP BY r.a",
}

# sums over joins, of one side or of several
QUERIES |= {
    "sums of one side": "SELECT r.s, SUM(t.c) AS n, COUNT(*) AS k, AVG(t.c) AS m, "
    "COUNT(t.c) FILTER (WHERE t.c > 1) AS f FROM r JOIN t ON r.a = t.a GROUP BY r.s",
    "sums of both sides": "SELECT t.c, SUM(r.b) AS n, COUNT(r.s) AS k, SUM(t.c) AS m, "
    "SUM(CAST(t.a AS DECIMAL(9, 2))) AS d FROM r JOIN t ON r.a = t.a AND r.b <> t.c GROUP BY t.c",
    "sums of three sides": "SELECT t.a, SUM(u.d) AS n, COUNT(r.b) AS k, AVG(t.c) AS m FROM r "
    "JOIN t ON r.a = t.a JOIN u ON t.c = u.c GROUP BY t.a",
    "sums of both and one": "SELECT u.b, SUM(CAST(r.b AS DECIMAL(5, 1)) * u.d) AS n, "
    "SUM(t.c) AS m FROM r JOIN t ON r.a = t.a JOIN u ON r.b = u.c WHERE u.d > 0 GROUP BY u.b",
    "sums by what is computed": "SELECT CASE WHEN t.c > 2 THEN r.a ELSE 0 END AS x, "
    "COALESCE(r.s, 'none') AS y, SUM(r.b) AS n, SUM(t.c) AS m FROM r JOIN t ON r.a = t.a "
    "GROUP BY ALL",
    "sums of a self join": "SELECT SUM(x.b) AS n, SUM(y.b) AS m, COUNT(*) AS k FROM r x "
    "JOIN r y ON x.a = y.a",
    "sums of all with all": "SELECT SUM(r.b) AS n, SUM(t.c) AS m, COUNT(*) AS k FROM r, t",
    "extrema of both sides": "SELECT r.s, MIN(t.c) AS lo, MAX(r.b) AS hi, MAX(r.a + t.c) AS both "
    "FROM r JOIN t ON r.a = t.a GROUP BY r.s",
    "extrema and sums": "SELECT t.c, MIN(r.s) AS lo, MAX(t.a) FILTER (WHERE t.a > 1) AS hi, "
    "SUM(r.b) AS n, COUNT(*) AS k, COUNT(r.s) AS ks, AVG(u.d) AS m FROM r JOIN t ON r.a = t.a "
    "JOIN u ON u.b = r.b GROUP BY t.c",
    "sums over a group's partners": "SELECT x.n, SUM(t.c) AS m, COUNT(*) AS k FROM "
    "(SELECT a, COUNT(*) AS n FROM r GROUP BY a) x JOIN t ON x.a = t.a GROUP BY x.n",
}

Rows = Counter[tuple[Any, ...]]


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalEngine]:
    made = LocalEngine(tmp_path_factory.mktemp("laws"))
    yield made
    made.close()


def lookup(name: str) -> Relation | None:
    return Scan(name, name, SCHEMAS[name]) if name in SCHEMAS else None


def as_written(text: str) -> Relation:
    oracle: Any = None  # every query here is portable
    return unordered(bind(text, context(lookup, lambda: list(SCHEMAS), oracle)))


def bound(text: str) -> Relation:
    return normalize(as_written(text))


def log(rows: Rows, schema: Schema) -> pa.Table:
    """Rows with weights, each of them split in two now and then, as changes leave them."""
    fields = (*schema, Field(WEIGHT, BIGINT))
    flat = [[*row, part] for row, n in rows.items() for part in ((n + 1, -1) if n > 1 else (n,))]
    columns = list(zip(*flat, strict=True)) if flat else [()] * len(fields)
    arrow = to_arrow_schema(fields)
    return pa.table([pa.array(c, f.type) for c, f in zip(columns, arrow, strict=True)], arrow)


def evaluate(engine: LocalEngine, relation: Relation, given: dict[str, pa.Table]) -> Rows:
    rows: Rows = Counter()
    with engine.session(reads=0) as session:
        names = {}
        for source in {s.source for s in relation.scans()}:  # some filters do not reach into Arrow
            names[source] = f"input_{len(names)}"
            session.keep(names[source], f"SELECT * FROM {session.give(given[source])}")
        sql = compile_query(relation, LOCAL, names)
        for batch in session.batches(sql, to_arrow_schema(relation.schema)):
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


def random_tables(rng: random.Random) -> tuple[dict[str, pa.Table], frozenset[str]]:
    """Random tables at both times, as rows with weights, and which of them changed."""
    given, changed = {}, set()
    for name, schema in SCHEMAS.items():
        old = random_rows(rng, schema, 12)
        change = random_change(rng, old, schema) if rng.random() < 0.7 else Counter()
        new = Counter(old)
        new.update(change)
        assert all(count >= 0 for count in new.values())
        given[name + NOW] = log(new, schema)
        if change:
            changed.add(name)
            given[name + OLD] = log(old, schema)
            given[name + NEW] = log(new, schema)
            given[name + CHANGE] = log(change, schema)
    return given, frozenset(changed)


def total(*logs: Rows) -> Rows:
    """What rows with weights add up to."""
    result: Rows = Counter()
    for rows in logs:
        for row, count in rows.items():
            result[row[:-1]] += row[-1] * count
    return Counter({row: count for row, count in result.items() if count})


def assert_equals_recompute(
    engine: LocalEngine, deltas: Deltas, relation: Relation, given: dict[str, pa.Table]
) -> None:
    """Old content plus change is new content, the latter computed from the tables alone."""
    before = evaluate(engine, zset.with_weight(deltas.rows(relation, old=True)), given)
    delta = deltas.delta(relation)
    change = Counter() if delta is None else evaluate(engine, zset.consolidate(delta), given)
    fresh = Deltas(deltas.changed, deltas.weighted)
    expected = evaluate(engine, zset.with_weight(fresh.rows(relation)), given)
    assert total(before, change) == total(expected)
    assert total(evaluate(engine, deltas.z(relation), given)) == total(expected)


@pytest.mark.parametrize("name", QUERIES)
def test_change_computed_by_laws_equals_recompute(
    name: str, engine: LocalEngine, rng: random.Random
) -> None:
    relation = bound(QUERIES[name])
    for _ in range(ROUNDS):
        given, changed = random_tables(rng)
        deltas = Deltas(changed, frozenset(SCHEMAS))
        assert_equals_recompute(engine, deltas, relation, given)


def chosen(relation: Relation) -> dict[Relation, State]:
    numbers = {node: i for i, node in enumerate(relation.walk())}
    return choose_states(relation, lambda node: f"state_{numbers[node]}")


def change_states(engine: LocalEngine, deltas: Deltas, given: dict[str, pa.Table]) -> int:
    """Compute every state at the old time and its change; how many changed."""
    old = Deltas(frozenset(), deltas.weighted, deltas.states)
    now = {k: v for k, v in given.items() if k.endswith(NOW)}
    for source in deltas.changed:
        now[source + NOW] = given[source + OLD]
    merged = 0
    for node, state in deltas.states.items():
        before = evaluate(engine, state.initial(old), now)
        given[state.id + NOW] = given[state.id + OLD] = now[state.id + NOW] = stored(before, state)
        if not deltas.changes(node):
            continue
        change = evaluate(engine, state.change(deltas), given)
        keep(given, state, before, change)
        if isinstance(state, BufferState) and not is_enough(state, given[state.id + NEW]):
            keep(given, state, before, evaluate(engine, state.refill(deltas), given))
        merged += 1
    return merged


def is_enough(state: BufferState, rows: pa.Table) -> bool:
    return state.is_enough(rows.column(buffer.END).to_pylist(), rows.column(WEIGHT).to_pylist())


def stored(rows: Rows, state: State) -> pa.Table:
    """Rows of a state; the weights of partial sums are not to be touched."""
    flat = [row for row, count in rows.items() for _ in range(count)]
    arrow = to_arrow_schema((*state.schema, Field(WEIGHT, BIGINT)))
    columns = list(zip(*flat, strict=True)) if flat else [()] * len(arrow)
    return pa.table([pa.array(c, f.type) for c, f in zip(columns, arrow, strict=True)], arrow)


def keep(given: dict[str, pa.Table], state: State, before: Rows, change: Rows) -> None:
    given[state.id + CHANGE] = stored(change, state)
    given[state.id + NEW] = stored(before + change, state)


@pytest.mark.parametrize("name", [n for n in QUERIES if chosen(bound(QUERIES[n]))])
def test_change_computed_from_states_equals_recompute(
    name: str, engine: LocalEngine, rng: random.Random, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(buffer, "SPARE", 0)
    relation = bound(QUERIES[name])
    merged = 0
    for _ in range(ROUNDS):
        given, changed = random_tables(rng)
        deltas = Deltas(changed, frozenset(SCHEMAS), chosen(relation))
        merged += change_states(engine, deltas, given)
        assert_equals_recompute(engine, deltas, relation, given)
    assert merged > 0
