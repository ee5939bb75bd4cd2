"""Of files of others as much is known as of tables: rows by their footers, values and what filters
keep by a look."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import slackwater
from slackwater import StateError, Warehouse
from slackwater.planner.choice import FULL, HIGHER_ORDER, INCREMENTAL, PLAIN
from slackwater.sources import parquet
from slackwater.stats.rows import Change
from slackwater.work.arriving import LastArrivals
from slackwater.work.expecting import expected
from slackwater.work.interval import Interval
from slackwater.work.profiling import Profiling
from slackwater.work.world import World

ROWS, NEW = 20_000, 300
SUMS = "SELECT s.region, SUM(o.amount) AS total FROM {o} o JOIN {s} s ON o.shop = s.id GROUP BY 1"
ODD = "SELECT id, amount FROM {o} WHERE note LIKE '%7'"


def orders(first: int, count: int) -> pa.Table:
    """Long notes: a row has more bytes than one would guess."""
    ids = np.arange(first, first + count)
    notes = [f"{'so many words ' * 10} {i * 7919 % 100_003} {i % 10}" for i in ids]
    amounts = pa.array([None if i % 4 == 0 else i % 1000 for i in ids], pa.int64())
    return pa.table({"id": ids, "shop": ids % 500, "amount": amounts, "note": notes})


def shops() -> pa.Table:
    ids = np.arange(500)
    return pa.table({"id": ids, "region": [f"r{i % 7}" for i in ids]})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Orders in two files."""
    for name in ("orders", "shops"):
        (tmp_path / name).mkdir()
    pq.write_table(orders(0, ROWS // 2), tmp_path / "orders" / "1.parquet")
    pq.write_table(orders(ROWS // 2, ROWS // 2), tmp_path / "orders" / "2.parquet")
    pq.write_table(shops(), tmp_path / "shops" / "1.parquet")
    return tmp_path


@pytest.fixture
def db(folder: Path) -> Iterator[Warehouse]:
    with slackwater.connect(folder / "w", placement="local") as opened:
        for name in ("orders", "shops"):
            opened.sql(f"CREATE TABLE {name} USING parquet OPTIONS (path '{folder / name}')")
        yield opened


def come(folder: Path, name: str, first: int, count: int) -> None:
    pq.write_table(orders(first, count), folder / "orders" / f"{name}.parquet")


def last(db: Warehouse, view: str) -> dict[str, Any]:
    event: dict[str, Any] = next(e for e in db.events(view) if e["kind"] == "refresh")
    return event


def world(db: Warehouse) -> World:
    return World(db._house, db.catalog.snapshot(), defining=True)


# -- rows


def test_a_problem_has_the_rows_that_footers_tell(db: Warehouse) -> None:
    found = db.problem(SUMS.format(o="orders", s="shops"), {"orders": [Change(inserts=NEW)]})
    rows = {scan.name: found.arrivals[scan.source].rows for scan in found.query.scans()}
    assert rows == {"orders": ROWS, "shops": 500}


def test_refreshes_tell_how_many_rows_there_were_and_came(db: Warehouse, folder: Path) -> None:
    db.sql(f"CREATE MATERIALIZED VIEW v AS {SUMS.format(o='orders', s='shops')}")
    db.refresh("v")
    assert last(db, "v")["sources"]["orders"]["changed_rows"] == ROWS
    come(folder, "3", ROWS, NEW)
    (input,) = (i for i in json.loads(db.explain("v", "json"))["inputs"] if i["name"] == "orders")
    assert input["rows"] == ROWS + NEW
    (report,) = db.refresh("v")
    assert report.mode == "incremental"
    told = last(db, "v")
    sizes = {n: (s["rows"], s["changed_rows"]) for n, s in told["sources"].items()}
    assert sizes == {"orders": (ROWS + NEW, NEW), "shops": (500, 0)}
    id = db.catalog.snapshot().find("orders").id  # type: ignore[union-attr]
    assert told["turnover"]["sources"][id] == [ROWS, NEW, 0, 0]
    tables = {t["name"]: t["rows"] for t in db.status()["tables"]}
    assert tables == {"orders": ROWS + NEW, "shops": 500}


def test_what_came_before_is_expected_again(db: Warehouse, folder: Path) -> None:
    db.sql(f"CREATE MATERIALIZED VIEW v AS {SUMS.format(o='orders', s='shops')}")
    db.refresh("v")
    for turn in range(3):
        come(folder, f"more-{turn}", ROWS + turn * NEW, NEW)
        db.refresh("v")
    now = world(db)
    view, id = now.view("v"), now.relation("orders").id
    last = LastArrivals(Interval(now, view))
    weights = [1, 0.5, 0.25, 0.125]  # nothing waits, and three files came
    assert last.expected_changes(view)[id].inserts == NEW * sum(weights[1:]) / sum(weights)
    assert last.rows(id) == ROWS + 3 * NEW


def test_each_footer_is_read_once(
    db: Warehouse, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = Counter[str]()
    real = pq.read_metadata

    def counted(path: str) -> Any:
        if Path(path).parent == folder / "orders":
            read[Path(path).name] += 1
        return real(path)

    monkeypatch.setattr(pq, "read_metadata", counted)
    parquet._rows.cache_clear()
    db.sql("CREATE MATERIALIZED VIEW v AS SELECT shop, SUM(amount) AS s FROM orders GROUP BY shop")
    db.refresh("v")
    for name in ("3", "4"):
        come(folder, name, ROWS, NEW)
        db.explain("v", alternatives=True)
        db.refresh("v")
        db.status()
    assert read == {f"{name}.parquet": 1 for name in "1234"}


def test_more_rows_to_come_take_longer(db: Warehouse) -> None:
    db.sql("CREATE MATERIALIZED VIEW v AS SELECT shop, SUM(amount) AS s FROM orders GROUP BY shop")
    db.refresh("v")
    id = world(db).relation("orders").id
    few, many = (expected(db._house, ["v"], {id: rows}).cpu_seconds for rows in (1e2, 1e7))
    assert 0 < few < many


def test_a_file_that_is_gone_is_named(tmp_path: Path) -> None:
    with pytest.raises(StateError) as error:
        parquet.rows_of([parquet.File(str(tmp_path / "no.parquet"), 1, 2, "")])
    assert error.value.code == "SOURCE_CHANGED"
    assert "no.parquet" in str(error.value)


def test_ways_are_expected_to_take_what_they_take_of_tables(db: Warehouse, folder: Path) -> None:
    """The same rows in tables and in files: the same methods, for the same reasons, and about the
    same work. Keys and weights are unknown of both, as rows only come."""
    made = {}
    for name, rows in (("orders", orders(0, ROWS)), ("shops", shops())):
        columns = ", ".join(
            f"{f.name} {'STRING' if f.type == pa.string() else 'BIGINT'}" for f in rows.schema
        )
        db.sql(f"CREATE TABLE own_{name} ({columns})")
        db.append(f"own_{name}", rows)
    for view, prefix in (("theirs", ""), ("own", "own_")):
        query = SUMS.format(o=f"{prefix}orders", s=f"{prefix}shops")
        db.sql(f"CREATE MATERIALIZED VIEW {view} AS {query}")
        db.refresh(view)
    come(folder, "3", ROWS, NEW)
    db.append("own_orders", orders(ROWS, NEW))
    for view in ("theirs", "own"):
        told = json.loads(db.explain(view, "json", alternatives=True))
        ways = [w for w in told["candidates"] if w["engine"] == "local"]
        made[view] = {w["method"]: (w["cpu_seconds"], tuple(w["reasons"])) for w in ways}
    assert made["theirs"].keys() == made["own"].keys() >= {INCREMENTAL, HIGHER_ORDER, FULL, PLAIN}
    for method, (seconds, reasons) in made["own"].items():
        assert made["theirs"][method] == (
            seconds if seconds is None else pytest.approx(seconds, rel=0.05),
            reasons,
        )


# -- values


def test_columns_that_decide_and_filters_are_looked_at(db: Warehouse, folder: Path) -> None:
    db.sql(f"CREATE MATERIALIZED VIEW v AS {SUMS.format(o='orders', s='shops')}")
    db.sql(f"CREATE MATERIALIZED VIEW odd AS {ODD.format(o='orders')}")
    db.sql(
        "CREATE MATERIALIZED VIEW amounts AS SELECT amount, COUNT(*) AS n FROM orders GROUP BY 1"
    )
    db.refresh()
    id = world(db).relation("orders").id
    with slackwater.connect(folder / "w", placement="local") as again:
        known = again._house.profiling.known()
    shop, amount = known.values(id, "shop"), known.values(id, "amount")
    assert shop is not None
    assert amount is not None
    assert shop.distinct == pytest.approx(500, rel=0.4)  # a sketch
    assert (shop.nulls, shop.low, shop.high) == (0.0, 0.0, 499.0)
    assert amount.nulls == pytest.approx(0.25)
    assert known.values(id, "id") is None  # nothing depends on it
    assert list(known.known[id].shares.values()) == [0.1]
    assert known.known[id].rows == ROWS


def test_they_are_looked_at_again_when_there_are_many_more(db: Warehouse, folder: Path) -> None:
    db.sql("CREATE MATERIALIZED VIEW v AS SELECT shop, COUNT(*) AS n FROM orders GROUP BY shop")
    db.refresh("v")
    id, profiling = world(db).relation("orders").id, db._house.profiling
    looks = profiling.looks[id]
    come(folder, "3", ROWS, NEW)
    db.refresh("v", full=True)
    assert profiling.looks[id] == looks
    come(folder, "4", ROWS, 2 * ROWS)
    db.refresh("v", full=True)
    assert profiling.looks[id] == looks + 1
    assert profiling.known().known[id].rows == 3 * ROWS + NEW


def test_files_may_be_gone_by_the_time_of_the_look(
    db: Warehouse, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It comes after the commit: the view is there all the same."""
    look = Profiling.look

    def late(self: Profiling, *args: Any, **more: Any) -> None:
        (folder / "orders" / "2.parquet").rename(folder / "elsewhere")
        look(self, *args, **more)

    db.sql("CREATE MATERIALIZED VIEW v AS SELECT shop, COUNT(*) AS n FROM orders GROUP BY shop")
    monkeypatch.setattr(Profiling, "look", late)
    (report,) = db.refresh("v")
    assert (report.mode, report.rows) == ("full", 500)
    assert db.sql("SELECT SUM(n) FROM v").fetchall() == [(ROWS,)]
    assert not db._house.profiling.known().known


def test_an_empty_folder_has_nothing_to_look_at(db: Warehouse, folder: Path) -> None:
    (folder / "empty").mkdir()
    db.sql(f"CREATE TABLE none (shop BIGINT) USING parquet OPTIONS (path '{folder / 'empty'}')")
    db.sql(
        "CREATE MATERIALIZED VIEW v AS SELECT o.shop FROM orders o JOIN none n ON o.shop = n.shop"
    )
    (report,) = db.refresh("v")
    assert report.rows == 0
    ids = {world(db).relation(name).id for name in ("orders", "none")}
    assert db._house.profiling.known().known.keys() == ids - {world(db).relation("none").id}
