"""Kinds of work on one small warehouse, for tests that kill or repeat them.

Each takes an open warehouse; all may be done again after any of them was killed anywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import slackwater
from slackwater import Warehouse
from slackwater.engine.garbage import collect_garbage
from slackwater.engine.publish import current, published_folder
from slackwater.types import quote
from slackwater.work import house

State = dict[str, list[tuple[Any, ...]]]

SCHEMA = """
CREATE TABLE accounts (id BIGINT NOT NULL, balance BIGINT NOT NULL);
CREATE TABLE transfers (source BIGINT, target BIGINT, amount BIGINT);
INSERT INTO accounts VALUES (1, 100), (2, 100), (3, 100);
INSERT INTO transfers VALUES (1, 2, 0), (1, 2, 0);
CREATE MATERIALIZED VIEW rich AS
  SELECT balance, count(*) AS accounts FROM accounts GROUP BY balance;
CREATE MATERIALIZED VIEW total AS
  SELECT sum(balance * accounts) AS money, count(*) AS groups FROM rich;
CREATE MATERIALIZED VIEW sent AS
  SELECT source, sum(amount) AS amount FROM transfers GROUP BY source;
"""


def build(path: Path) -> None:
    """The warehouse that the work is done on, with garbage of every kind in it."""
    with slackwater.connect(path, placement="local") as db:
        db.sql(SCHEMA)
        db.refresh()
        db.sql("INSERT INTO accounts VALUES (4, 7), (5, 7)")
        db.refresh()  # the views' first segments are garbage
        db.sql("DELETE FROM accounts WHERE id = 5")  # the views are behind
        db.sql("CREATE TABLE dropped AS SELECT * FROM accounts; DROP TABLE dropped")
        _give_up_a_change(db)


def _give_up_a_change(db: Warehouse) -> None:
    try:
        with db.transaction():
            db.sql("INSERT INTO accounts VALUES (666, 666)")
            raise InterruptedError
    except InterruptedError:
        return


def insert(db: Warehouse) -> None:
    db.sql("INSERT INTO accounts VALUES (10, 1), (11, NULLIF(2, 3))")


def update(db: Warehouse) -> None:
    db.sql("UPDATE accounts SET balance = balance + 1 WHERE id <= 2")


def append(db: Warehouse) -> None:
    db.append("accounts", pa.table({"id": range(20, 30), "balance": [1] * 10}))


def apply(db: Warehouse) -> None:
    rows = [(1, 2, 0, -1), (9, 9, 9, 3)]
    names = ("source", "target", "amount", "n")
    db.apply("transfers", [dict(zip(names, r, strict=True)) for r in rows], weight_column="n")
    db.sql("INSERT INTO transfers VALUES (1, 2, 0)")  # so that the batch can be applied again


def transaction(db: Warehouse) -> None:
    """A transfer: two tables change together, or neither."""
    with db.transaction():
        db.sql("UPDATE accounts SET balance = balance - 5 WHERE id = 1")
        db.sql("UPDATE accounts SET balance = balance + 5 WHERE id = 2")
        db.sql("INSERT INTO transfers VALUES (1, 2, 5)")


def load(db: Warehouse) -> None:
    db.sql("CREATE TABLE IF NOT EXISTS copied AS SELECT * FROM accounts")


def create(db: Warehouse) -> None:
    db.sql("CREATE TABLE IF NOT EXISTS made (x INT)")


def alter(db: Warehouse) -> None:
    if "note" not in db.sql("SELECT * FROM transfers").columns:
        db.sql("ALTER TABLE transfers ADD COLUMN note STRING DEFAULT 'old'")


def create_view(db: Warehouse) -> None:
    db.sql("CREATE OR REPLACE MATERIALIZED VIEW sent AS SELECT source, 1 AS one FROM transfers")


def drop(db: Warehouse) -> None:
    db.sql("DROP VIEW IF EXISTS sent")


def refresh(db: Warehouse) -> None:
    db.sql("REFRESH MATERIALIZED VIEW rich FULL")


def refresh_both(db: Warehouse) -> None:
    db.refresh("rich", "total", full=True)


def refresh_changes(db: Warehouse) -> None:
    """By their changes: states and rows of three views, one of them on another."""
    assert {r.mode for r in db.refresh()} <= {"incremental", "none"}


def compact(db: Warehouse) -> None:
    db.compact()


def collect(db: Warehouse) -> None:
    collect_garbage(db.catalog, db._house.storage, grace_seconds=0)


def reopen(db: Warehouse) -> None:
    """Nothing more than what opening does: garbage collected, results published."""


WORKS: dict[str, Callable[[Warehouse], None]] = {
    work.__name__: work
    for work in (
        insert,
        update,
        append,
        apply,
        transaction,
        load,
        create,
        alter,
        create_view,
        drop,
        refresh,
        refresh_both,
        refresh_changes,
        compact,
        collect,
        reopen,
    )
}


def do(path: Path, name: str, placement: str = "local") -> None:
    """Open the warehouse and do one work, as a process of its own does; garbage is collected
    after every refresh, however soon it follows."""
    house.COLLECT_SECONDS = 0.0
    with slackwater.connect(path, placement=placement, refresh="incremental") as db:
        WORKS[name](db)


def state(db: Warehouse) -> State:
    """The rows of every table and view that has content, as SELECT gives them."""
    snapshot = db.catalog.snapshot()
    names = [t.name for t in snapshot.tables()]
    names += [v.name for v in snapshot.views() if v.refreshed_at is not None]
    found: State = {name: rows(db.sql(f"SELECT * FROM {quote(name)}").fetchall()) for name in names}
    return found | {"views": [(v.name, v.sql) for v in snapshot.views()]}


def rows(found: Sequence[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Rows in an order that does not depend on their engine."""
    return sorted(found, key=repr)


def require_published(db: Warehouse) -> None:
    """Every view's folder holds, in plain files, what the catalog says; no others are there.

    What a view held before its definition was replaced stays until its next refresh.
    """
    views = {published_folder(db._house.storage, v.name): v for v in db.catalog.snapshot().views()}
    for folder in _folders(db.path / "published"):
        assert folder in views, f"{folder} belongs to no view"
    for folder, view in views.items():
        pointer = current(folder)
        if view.refreshed_at is None:
            assert pointer is None or pointer.version < view.version
            continue
        assert pointer is not None, f"{view.name} is not published"
        assert (pointer.view, pointer.version) == (view.id, view.version)
        published = pa.concat_tables(pq.read_table(folder / f) for f in pointer.files)
        assert published.num_rows == pointer.rows
        content = db.sql(f"SELECT * FROM {quote(view.name)}").to_arrow()
        assert rows(_tuples(published)) == rows(_tuples(content))


def _tuples(table: pa.Table) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in table.to_pylist()]


def _folders(path: Path) -> list[Path]:
    return [p for p in path.glob("*") if not p.name.startswith(".")] if path.exists() else []


def require_no_garbage(db: Warehouse) -> None:
    """After a collection, the files below `data/` are those that the newest snapshot names.

    A compaction beside has files that no snapshot names yet, so it is waited for.
    """
    db._tidier.close()
    collect(db)
    snapshot = db.catalog.snapshot()
    named = {segment.path for id in snapshot.stored() for segment in snapshot.segments(id)}
    there = {p.relative_to(db.path).as_posix() for p in (db.path / "data").rglob("*")}
    assert {p for p in there if not (db.path / p).is_dir()} == named
    folders = {Path(p).parent.as_posix() for p in named}
    assert all(any(f.startswith(p) for f in folders) for p in there - named), "empty folders"
