"""Queries that share pieces which differ in filters and columns: the same rows."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

from slackwater.engine.local import LocalEngine
from slackwater.planner.alike import groups, in_one_order, shared
from slackwater.planner.subplans import cut
from slackwater.types import to_arrow_schema
from tests.test_laws import QUERIES, SCHEMAS, bound, engine, evaluate, random_rows

__all__ = ["engine"]


def some_tables(rng: random.Random) -> dict[str, pa.Table]:
    found = {}
    for name, schema in SCHEMAS.items():
        rows = list(random_rows(rng, schema, 12).elements())
        arrow = to_arrow_schema(schema)
        found[name] = pa.table(list(zip(*rows, strict=True)) or [[]] * len(schema), arrow)
    return found


SETS = {
    "filters": [
        "SELECT r.a, t.c FROM r JOIN t ON r.a = t.a WHERE r.b > 1",
        "SELECT r.s, t.c FROM r JOIN t ON r.a = t.a WHERE t.c < 3",
        "SELECT t.c FROM r JOIN t ON r.a = t.a",
    ],
    "aggregates": [
        "SELECT a, SUM(b) AS n FROM r WHERE s = 'x' GROUP BY a",
        "SELECT a, SUM(b) AS n, COUNT(*) AS k FROM r WHERE b > 1 GROUP BY a",
        "SELECT a, MAX(b) AS m FROM r GROUP BY a HAVING MAX(b) > 1",
    ],
    "aggregates of joins": [
        "SELECT t.c, SUM(r.b) AS n FROM r JOIN t ON r.a = t.a WHERE r.b < 3 GROUP BY t.c",
        "SELECT t.c, COUNT(*) AS n FROM t JOIN r ON r.a = t.a WHERE r.s = 'y' GROUP BY t.c",
    ],
    "whole tables": [
        "SELECT COUNT(*) AS n FROM r WHERE a = 1",
        "SELECT SUM(b) AS n FROM r WHERE a = 2",
    ],
    "three-way": [
        "SELECT r.s, u.d FROM r JOIN t ON r.a = t.a JOIN u ON t.c = u.c WHERE r.b = 1",
        "SELECT u.d, r.a FROM u JOIN t ON t.c = u.c JOIN r ON r.a = t.a WHERE u.d > 1",
        "SELECT r.a FROM r JOIN t ON r.a = t.a WHERE t.c = 2",
    ],
    "what may raise": [
        "SELECT r.a, 10 / r.b AS x FROM r JOIN t ON r.a = t.a WHERE r.b <> 0",
        "SELECT r.a FROM r JOIN t ON r.a = t.a WHERE r.b = 0",
        "SELECT r.a FROM r JOIN t ON r.a = t.a WHERE CASE WHEN r.b = 0 THEN 0 ELSE 6 / r.b END > 1",
    ],
    "nested": [
        "SELECT n, COUNT(*) AS k FROM (SELECT a, COUNT(*) AS n FROM r WHERE b > 1 GROUP BY a) "
        "GROUP BY n",
        "SELECT n, COUNT(*) AS k FROM (SELECT a, COUNT(*) AS n FROM r WHERE s = 'x' GROUP BY a) "
        "GROUP BY n",
    ],
}


@pytest.mark.parametrize("name", SETS)
def test_shared_pieces_give_the_same_rows(
    name: str, engine: LocalEngine, rng: random.Random
) -> None:
    queries = {f"q{i}": bound(text) for i, text in enumerate(SETS[name])}
    ordered = in_one_order(queries)
    found = shared(ordered)
    assert found.pieces
    for _ in range(5):
        given = some_tables(rng)
        for own, query in queries.items():
            expected = evaluate(engine, query, given)
            assert evaluate(engine, ordered[own], given) == expected
            assert evaluate(engine, found.queries[own], given) == expected


def test_every_query_of_the_laws_may_share_with_another(
    engine: LocalEngine, rng: random.Random
) -> None:
    queries = {name: bound(text) for name, text in QUERIES.items()}
    found = shared(in_one_order(queries))
    assert len(found.merged) > 2
    given = some_tables(rng)
    for name, query in queries.items():
        assert evaluate(engine, found.queries[name], given) == evaluate(engine, query, given), name


def test_who_does_not_share_reads_for_himself() -> None:
    queries = {f"q{i}": bound(text) for i, text in enumerate(SETS["filters"])}
    apart = shared(queries, lambda group: [[member] for member in group.members])
    assert apart.pieces == frozenset()
    assert apart.queries == queries


def test_a_shared_piece_is_a_subplan_of_those_who_share_it() -> None:
    queries = {f"q{i}": bound(text) for i, text in enumerate(SETS["aggregates"])}
    found = shared(queries)
    dag = cut(found.queries, at=found.pieces)
    assert dag.subplans[0].queries == {"q0", "q1", "q2"}
    assert len(dag.subplans) == 4


def test_large_pieces_come_first() -> None:
    queries = {f"q{i}": bound(text) for i, text in enumerate(SETS["three-way"])}
    sizes = [group.size for group in groups(in_one_order(queries))]
    assert sizes == sorted(sizes, reverse=True)
