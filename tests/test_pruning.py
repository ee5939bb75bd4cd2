"""What a refresh reads depends on the change, not on the size of what it changes."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

import slackwater
from slackwater import Warehouse
from slackwater.algebra.expr import columns
from slackwater.algebra.relation import Project, Scan
from slackwater.engine.compile import compile_query
from slackwater.engine.dialects import LOCAL
from slackwater.tvr.restrict import semi_join
from slackwater.types import BIGINT, Field

VIEWS = {
    "sums": "SELECT k, sum(x) AS s, count(*) AS n FROM t GROUP BY k",
    "extremes": "SELECT k, max(x) AS m FROM t GROUP BY k",
}
SMALL, LARGE = 300_000, 1_200_000


def filled(path: Path, rows: int) -> Warehouse:
    db = slackwater.connect(path, placement="local", compact=False, refresh="incremental")
    db.sql("CREATE TABLE t (k BIGINT, x BIGINT)")
    numbers = pa.array(range(rows), pa.int64())
    db.append("t", pa.table({"k": pa.compute.divide(numbers, 4), "x": numbers}))
    for name, query in VIEWS.items():
        db.sql(f"CREATE MATERIALIZED VIEW {name} AS {query}")
    db.refresh()
    db.compact()
    change(db, 1, rows)  # a second segment everywhere
    return db


def change(db: Warehouse, keys: int, rows: int) -> int:
    """Change some neighbouring groups; the bytes that the refreshes of both views read."""
    first = rows // 8
    db.append("t", pa.table({"k": range(first, first + keys), "x": range(keys)}))
    reports = db.refresh()
    assert {r.mode for r in reports} == {"incremental"}
    return sum(step.bytes_read for r in reports for step in r.steps)


@pytest.mark.skipif(not Path("/proc/self/io").exists(), reason="the system does not count reads")
def test_bytes_read_fall_with_the_change_and_do_not_grow_with_the_table(tmp_path: Path) -> None:
    with filled(tmp_path / "small", SMALL) as small, filled(tmp_path / "large", LARGE) as large:
        few_of_small, few_of_large = change(small, 3, SMALL), change(large, 3, LARGE)
        many_of_large = change(large, 50_000, LARGE)
        whole = sum(t["bytes"] for t in large.status()["tables"])
        assert few_of_large < 2 * few_of_small  # of a table four times as large
        assert few_of_large < 0.7 * many_of_large
        assert few_of_large < 0.6 * whole  # both views together
        assert all(large.verify(view) for view in VIEWS)


KEYS: list[tuple[int | None, int | None]] = [
    (a, b) for a in (1, 2, 3, None) for b in (1, 2, None) for _ in range(2)
]
WANTED = [(1, 1), (2, None), (None, 2), (None, None)]


@pytest.mark.parametrize("nullable", [(True, True), (False, True), (True, False), (False, False)])
def test_keys_that_are_null_are_found(nullable: tuple[bool, bool]) -> None:
    """The restriction to keys, as the local engine does it, against its definition."""
    fields = tuple(Field(f"k{i}", BIGINT, n) for i, n in enumerate(nullable))
    rows = [r for r in KEYS if all(n or v is not None for v, n in zip(r, nullable, strict=True))]
    stored, keys = Scan("t", "t", fields), Scan("w", "w", fields)
    wanted = Project(keys, columns(keys.schema), ("a", "b"))
    sql = compile_query(
        semi_join(stored, columns(stored.schema), wanted), LOCAL, {"t": "t", "w": "w"}
    )
    assert '"k0" = ' in sql or '"k1" = ' in sql
    with duckdb.connect() as connection:
        connection.register("t", table(rows))
        connection.register("w", table(WANTED))
        found = connection.execute(sql).fetchall()
    assert sorted(found, key=repr) == sorted((r for r in rows if r in WANTED), key=repr)


def table(rows: list[tuple[int | None, int | None]]) -> pa.Table:
    types = [("k0", pa.int64()), ("k1", pa.int64())]
    return pa.table({n: pa.array([r[i] for r in rows], t) for i, (n, t) in enumerate(types)})
