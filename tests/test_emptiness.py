"""What is known to have no rows is not computed, and its absence changes no result."""

from __future__ import annotations

import pytest

from slackwater import Warehouse
from slackwater.algebra.expr import Literal
from slackwater.algebra.relation import Aggregate, Join, Relation, Scan, Union, Values
from slackwater.catalog.model import Segment
from slackwater.engine.compare import compare
from slackwater.engine.emptiness import fold, not_empty
from slackwater.engine.sources import Log, Made
from slackwater.planner.steps import Output
from slackwater.sql.bind import bind
from slackwater.types import BIGINT, BOOLEAN, Field, Schema
from slackwater.work.world import World

QUERIES = [
    "SELECT * FROM r JOIN e ON r.a = e.a",
    "SELECT * FROM r LEFT JOIN e ON r.a = e.a",
    "SELECT * FROM e LEFT JOIN r ON r.a = e.a",
    "SELECT * FROM r RIGHT JOIN e ON r.a = e.a",
    "SELECT * FROM e RIGHT JOIN r ON r.a = e.a",
    "SELECT * FROM r FULL JOIN e ON r.a = e.a",
    "SELECT * FROM e FULL JOIN r ON r.a = e.a",
    "SELECT * FROM e FULL JOIN e AS f ON f.a = e.a",
    "SELECT * FROM r LEFT SEMI JOIN e ON r.a = e.a",
    "SELECT * FROM r LEFT ANTI JOIN e ON r.a = e.a",
    "SELECT * FROM e LEFT ANTI JOIN r ON r.a = e.a",
    "SELECT * FROM r WHERE a NOT IN (SELECT a FROM e)",
    "SELECT * FROM e WHERE a NOT IN (SELECT a FROM r)",
    "SELECT * FROM r UNION ALL SELECT * FROM e",
    "SELECT a AS x, b AS y FROM e UNION ALL SELECT * FROM r UNION ALL SELECT * FROM r",
    "SELECT a AS x, b AS y FROM e UNION ALL SELECT * FROM r",
    "SELECT * FROM e UNION ALL SELECT * FROM e",
    "SELECT * FROM r EXCEPT SELECT * FROM e",
    "SELECT * FROM r EXCEPT ALL SELECT * FROM e",
    "SELECT * FROM e EXCEPT SELECT * FROM r",
    "SELECT * FROM r INTERSECT SELECT * FROM e",
    "SELECT a, count(*) AS n FROM e GROUP BY a",
    "SELECT count(*) AS n, sum(a) AS s FROM e",
    "SELECT DISTINCT a FROM e ORDER BY a LIMIT 3",
    "SELECT a, row_number() OVER (ORDER BY a) AS n FROM e WHERE a > 1",
    "SELECT a, b, count(*) AS n FROM e GROUP BY CUBE (a, b)",
    "SELECT a, (SELECT max(b) FROM e WHERE e.a = r.a) AS m FROM r",
    "SELECT a, (SELECT count(*) FROM e WHERE e.a = r.a) AS m FROM r",
]


@pytest.mark.parametrize("sql", QUERIES)
def test_results_stay_as_they_are(sql: str, db: Warehouse) -> None:
    db.sql("CREATE TABLE r (a INT, b STRING); CREATE TABLE e (a INT, b STRING)")
    db.sql("INSERT INTO r VALUES (1, 'x'), (1, 'x'), (2, NULL), (NULL, 'y')")
    world = World(db._house, db.catalog.snapshot())
    relation = bind(sql, world.context())
    (empty,) = {s.source for s in relation.scans() if s.name == "e"}
    folded = fold(relation, {empty})
    assert "e" not in {s.name for s in folded.scans()}
    assert [f.name for f in folded.schema] == [f.name for f in relation.schema]
    whole = db._house.runner.query(relation, world.sources(relation))
    assert compare(db._house.runner.query(folded, world.sources(relation)), whole).equal


FIELDS: Schema = (Field("k", BIGINT, True), Field("__w", BIGINT, False))
SEGMENT = Segment("s", rows=1, bytes=10, min_weight=1, max_weight=1)
FULL, NONE = Log((SEGMENT,), FIELDS[:1]), Log((), FIELDS[:1])


def scan(source: str) -> Relation:
    return Scan(source, source, FIELDS)


def test_an_output_that_has_no_rows_is_not_read_by_later_ones() -> None:
    later = Union((scan("made"), scan("full")))
    sources = {"none": NONE, "full": FULL, "made": Made("t", FIELDS[:1], FULL)}
    outputs, left = not_empty([Output("t", scan("none")), Output("u", later)], sources)
    assert [o.target for o in outputs] == ["u"]
    assert left["made"] is FULL

    only = {**sources, "made": Made("t", FIELDS[:1])}
    outputs, _ = not_empty([Output("t", scan("none")), Output("u", scan("made"))], only)
    assert outputs == ()


def test_one_row_is_left_of_a_total_over_nothing() -> None:
    total = Aggregate(scan("none"), (), (), ())
    joined = Join(total, total, "semi", _true())
    assert isinstance(fold(scan("none"), {"none"}), Values)
    assert isinstance(fold(joined, {"none"}), Join)


def _true() -> Literal:

    return Literal(BOOLEAN, False, True)


def test_a_change_out_of_reach_costs_no_statement(any_db: Warehouse) -> None:
    """Only one side changes, and its keys are none of the other side's."""
    any_db.sql("CREATE TABLE r (a BIGINT NOT NULL); CREATE TABLE s (a BIGINT NOT NULL)")
    any_db.sql("INSERT INTO r VALUES (1), (2); INSERT INTO s VALUES (1), (3)")
    any_db.sql("CREATE MATERIALIZED VIEW v AS SELECT r.a FROM r JOIN s ON r.a = s.a")
    any_db.refresh()
    any_db.sql("INSERT INTO r VALUES (10), (11)")
    (report,) = any_db.refresh()
    assert report.mode == "incremental"
    assert [s.reason for s in report.steps] == ["there is nothing to compute"]
    assert any_db.verify("v").equal
    assert any_db.sql("SELECT * FROM v").fetchall() == [(1,)]
