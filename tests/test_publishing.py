"""What is published of a small view is what its segments add up to, however it was remembered."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from math import nan
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import slackwater
from slackwater import Warehouse
from slackwater.catalog.model import Segment
from slackwater.engine.publish import current, published_folder
from slackwater.engine.storage import Storage
from slackwater.work import contents

TOTALS = "SELECT k, SUM(x) AS total, MAX(at) AS latest, AVG(d) AS mean FROM t GROUP BY k"


@pytest.fixture
def db(tmp_path: Path) -> Iterator[Warehouse]:
    with slackwater.connect(tmp_path / "w", placement="local", compact=False) as db:
        db.sql("CREATE TABLE t (k STRING, x DECIMAL(10,2), at TIMESTAMP, d DOUBLE)")
        db.sql("INSERT INTO t VALUES ('a', 1.5, TIMESTAMP '2024-01-01 10:00:00', 0.1)")
        db.sql(f"CREATE MATERIALIZED VIEW totals AS {TOTALS}")
        db.sql("CREATE MATERIALIZED VIEW rows AS SELECT k, x FROM t")
        db.refresh()
        yield db


def change(db: Warehouse, i: int) -> None:
    db.sql(f"INSERT INTO t VALUES ('k{i % 3}', {i}, TIMESTAMP '2024-01-02 10:00:00', {i}e0)")
    db.sql(f"INSERT INTO t VALUES (NULL, {i}, NULL, NULL)")
    db.append("t", [{"k": "b", "x": Decimal(i), "at": None, "d": nan}])
    if i % 2:
        db.sql("INSERT INTO t VALUES ('b', 1, NULL, 2e0), ('b', 1, NULL, 2e0)")


def published(db: Warehouse, view: str) -> list[str]:
    folder = published_folder(db._house.storage, view)
    pointer = current(folder)
    assert pointer is not None
    found = [row for name in pointer.files for row in pq.read_table(folder / name).to_pylist()]
    assert len(found) == pointer.rows
    return sorted(map(repr, found))


def stored(db: Warehouse, view: str) -> list[str]:
    return sorted(map(repr, db.sql(f"SELECT * FROM {view}").to_arrow().to_pylist()))


def test_published_rows_are_the_stored_ones(db: Warehouse) -> None:
    for i in range(6):
        change(db, i)
        if i == 3:
            db.compact()  # what was remembered is not part of what there is any more
        if i == 4:
            db.sql("DELETE FROM t WHERE k = 'a' OR x = 3")  # the rows that are kept lose some
        db.refresh()
        for view in ("totals", "rows"):
            assert published(db, view) == stored(db, view)
    db.refresh("totals", full=True)
    assert published(db, "totals") == stored(db, "totals")


def test_a_view_defined_anew_is_read_anew(db: Warehouse) -> None:
    change(db, 0)
    db.refresh()
    db.sql("CREATE OR REPLACE MATERIALIZED VIEW rows AS SELECT x, k FROM t")
    db.refresh()
    assert published(db, "rows") == stored(db, "rows")


def test_only_new_segments_are_read(db: Warehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    db.sql("INSERT INTO t VALUES ('a', 2, NULL, NULL)")
    db.refresh()
    known = {s.path for v in db.catalog.snapshot().views() for s in segments(db, v.id)}
    db.sql("INSERT INTO t VALUES ('a', 3, NULL, NULL)")
    read: list[str] = []
    check = Storage.check
    publish = contents.Contents.rows_of

    def checked(storage: Storage, segment: Segment) -> None:
        read.append(segment.path)
        check(storage, segment)

    def counted(self: contents.Contents, *args: object) -> object:
        monkeypatch.setattr(Storage, "check", checked)
        found = list(publish(self, *args))  # type: ignore[arg-type]
        monkeypatch.setattr(Storage, "check", check)
        return found

    monkeypatch.setattr(contents.Contents, "rows_of", counted)
    db.refresh()
    assert len(read) == 2
    assert not set(read) & known
    assert published(db, "totals") == stored(db, "totals")


def segments(db: Warehouse, id: str) -> tuple[Segment, ...]:
    return db.catalog.snapshot().segments(id)


def test_large_views_are_not_remembered(db: Warehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contents, "MOST_BYTES", 1)
    change(db, 1)
    db.refresh()
    assert not db._house.contents._known
    monkeypatch.setattr(contents, "SMALL_BYTES", 1)
    change(db, 2)
    db.refresh()
    for view in ("totals", "rows"):
        assert published(db, view) == stored(db, view)


def test_the_views_published_last_are_remembered(
    db: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(contents, "MOST_VIEWS", 1)
    change(db, 1)
    db.refresh("totals")
    db.refresh("rows")
    found = db.catalog.snapshot().find("rows")
    assert found is not None
    assert list(db._house.contents._known) == [found.id]
