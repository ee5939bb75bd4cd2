"""What a refresh is expected to take when more rows have come."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from slackwater import Warehouse
from slackwater.planner.choice import FULL, INCREMENTAL
from slackwater.stats.calibrate import Measured
from slackwater.stats.cost import Model, Work
from slackwater.stats.recall import Past
from slackwater.work.expecting import Expectation, expected

BY_KIND = "AS SELECT kind, SUM(amount) AS total FROM sales GROUP BY kind"


@pytest.fixture
def sales(db: Warehouse) -> str:
    """The id of a table with a thousand rows and two views, one upon the other."""
    db.sql("CREATE TABLE sales (kind BIGINT, amount BIGINT)")
    db.append("sales", pa.table({"kind": range(1000), "amount": range(1000)}))
    db.sql(f"CREATE MATERIALIZED VIEW totals {BY_KIND}")
    db.sql("CREATE MATERIALIZED VIEW above AS SELECT MAX(total) AS most FROM totals")
    db.refresh()
    return db.catalog.snapshot().tables()[0].id


def of(db: Warehouse, name: str, **more: float) -> Expectation:
    return expected(db._house, [name], more)


def test_more_rows_take_longer(db: Warehouse, sales: str) -> None:
    few, many = (of(db, "totals", **{sales: rows}) for rows in (1_000, 10_000_000))
    assert 0 < few.seconds < many.seconds
    assert 0 < few.cpu_seconds < many.cpu_seconds


def test_nothing_new_takes_nothing(db: Warehouse, sales: str) -> None:
    assert of(db, "above").seconds == 0
    assert of(db, "above", **{sales: 0.2}).seconds == 0  # less than a row


def test_the_views_below_count(db: Warehouse, sales: str) -> None:
    below, both = (of(db, name, **{sales: 10_000}) for name in ("totals", "above"))
    assert both.seconds > below.seconds


def test_what_waits_already_counts(db: Warehouse, sales: str) -> None:
    db.append("sales", pa.table({"kind": [1], "amount": [1]}))
    assert of(db, "totals").seconds > 0


def test_a_way_that_took_longer_may_do_so_again(db: Warehouse, sales: str) -> None:
    """`totals` was as fast as expected once, and once was not, by whatever way."""
    work = Work(steps=1, hashed=1e9)
    one = Model().seconds(work, "local", "latency")
    past = Past()
    for method, took in product((INCREMENTAL, FULL), (one, 9 * one)):
        past.add(method, Measured("local", work, took, took))
    db._house.experience._pasts["totals"] = past
    db._house.experience._model = Model()
    found = of(db, "totals", **{sales: 10_000})
    assert found.at_most_seconds == found.seconds + found.error_seconds > found.seconds


def test_rows_to_come_keep_promised_references(db: Warehouse) -> None:
    """Their keys are not known, and are not looked for in any file."""
    db.sql("CREATE TABLE kinds (kind BIGINT, PRIMARY KEY (kind) NOT ENFORCED RELY)")
    db.sql("CREATE TABLE sold (kind BIGINT, amount BIGINT)")
    db.sql("ALTER TABLE sold ADD FOREIGN KEY (kind) REFERENCES kinds NOT ENFORCED RELY")
    db.sql("INSERT INTO kinds VALUES (1)")
    db.sql("INSERT INTO sold VALUES (1, 5)")
    db.sql("CREATE MATERIALIZED VIEW v AS SELECT amount FROM sold JOIN kinds USING (kind)")
    db.refresh()
    tables = [table.id for table in db.catalog.snapshot().tables()]
    assert of(db, "v", **dict.fromkeys(tables, 100)).seconds > 0
    db.sql("INSERT INTO kinds VALUES (2)")
    assert of(db, "v", **dict.fromkeys(tables, 100)).seconds > 0


def test_nothing_is_done_or_kept_by_asking(db: Warehouse, sales: str) -> None:
    before = db.catalog.snapshot().commit
    of(db, "above", **{sales: 1e6})
    assert db.catalog.snapshot().commit == before
    assert db.refresh("above")[-1].mode == "none"


def test_views_that_are_always_computed_anew_and_files_of_others(
    db: Warehouse, tmp_path: Path
) -> None:
    folder = tmp_path / "files"
    folder.mkdir()
    pq.write_table(pa.table({"x": [1, 2]}), folder / "a.parquet")
    db.sql(f"CREATE TABLE files USING parquet OPTIONS (path '{folder}')")
    db.sql("CREATE MATERIALIZED VIEW v AS SELECT SUM(x) AS s FROM files")
    db.sql("CREATE MATERIALIZED VIEW f WITH (refresh = 'full') AS SELECT SUM(x) AS s FROM files")
    db.refresh()
    files = db.catalog.snapshot().tables()[0].id
    for name in ("v", "f"):
        few, many = (of(db, name, **{files: rows}) for rows in (10, 50_000_000))
        assert 0 < few.seconds < many.seconds
