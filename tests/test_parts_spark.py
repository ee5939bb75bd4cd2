"""Parts on Spark: the same results as on the driver, and after kills."""

from __future__ import annotations

import random

import pytest

from slackwater import Warehouse
from slackwater.planner.pace import Found
from slackwater.planner.subplans import cut
from slackwater.work import parts
from slackwater.work.refreshing import advance
from tests.test_parts import NESTED, TABLES, change, queries

pytestmark = pytest.mark.spark

SHARED = "SELECT a, sum(b) AS n FROM r WHERE s = 'x' GROUP BY a"


def test_parts_run_on_spark(spark_db: Warehouse) -> None:
    db, rng = spark_db, random.Random(5)
    for name, columns in TABLES.items():
        db.sql(f"CREATE TABLE {name} ({columns})")
    change(db, rng)
    db.sql(f"CREATE MATERIALIZED VIEW v AS {NESTED}; CREATE MATERIALIZED VIEW w AS {SHARED}")
    dag = cut(queries(db))
    paces = {path: 2 for subplan in dag.subplans for path in subplan.paths}
    zero = dict.fromkeys(dag.roots, 0.0)
    parts.apply(
        db._house,
        parts.forms(dag, Found(paces, 0, zero, zero), {}, parts.Ids(db.catalog.snapshot())),
    )
    db.refresh()
    for _ in range(2):
        change(db, rng)
        reports = advance(db._house, {p.id: () for p in db.catalog.snapshot().parts()})
        assert {step.engine for report in reports for step in report.steps} <= {"spark"}
        change(db, rng)
        db.refresh()
        assert db.verify("v").equal
        assert db.verify("w").equal
