"""The rows that a table's segments add up to, with and without keys, however compacted."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

import slackwater
from slackwater import Warehouse
from slackwater.catalog.model import Segment
from slackwater.engine import inputs
from slackwater.planner import compaction
from slackwater.planner.compaction import FANOUT, due, one_after_the_other
from slackwater.work.compacting import compact_one
from tests.works import rows

KEYS = ("", ", PRIMARY KEY (a, b) NOT ENFORCED RELY", ", UNIQUE (b, a) NOT ENFORCED RELY")


@pytest.fixture(autouse=True)
def _no_table_is_small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inputs, "SUMMED_BYTES", 0)


def create(db: Warehouse, key: str) -> None:
    db.sql(f"CREATE TABLE t (a INT NOT NULL, b INT NOT NULL, x BIGINT, y STRING{key})")


class Held:
    """What the table should hold, and statements that change it."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.rows: dict[tuple[int, int], tuple[int | None, str]] = {}

    def change(self) -> str:
        """A statement, and the table after it."""
        rng, key = self.rng, (self.rng.randrange(4), self.rng.randrange(2))
        kind = rng.choice(("insert", "insert", "update", "delete", "delete"))
        if kind == "insert":
            new = {(rng.randrange(4), rng.randrange(2)): self._values() for _ in range(4)}
            new = {k: v for k, v in new.items() if k not in self.rows}
            self.rows |= new
            texts = [f"({a}, {b}, {_sql(x)}, '{y}')" for (a, b), (x, y) in new.items()]
            return f"INSERT INTO t VALUES {', '.join(texts)}" if texts else "SELECT 1"
        touched = [k for k in self.rows if k[0] == key[0]]
        if kind == "delete":
            for k in touched:
                del self.rows[k]
            return f"DELETE FROM t WHERE a = {key[0]}"
        x, y = self._values()
        self.rows |= dict.fromkeys(touched, (x, y))
        return f"UPDATE t SET x = {_sql(x)}, y = '{y}' WHERE a = {key[0]}"

    def _values(self) -> tuple[int | None, str]:
        return self.rng.choice((1, 1, None)), self.rng.choice("ppq")


def _sql(value: int | None) -> str:
    return "NULL" if value is None else str(value)


def require_content(db: Warehouse, held: Held) -> None:
    every = Counter((*key, *values) for key, values in held.rows.items())
    assert Counter(map(tuple, db.sql("SELECT * FROM t").fetchall())) == every
    some = Counter((x,) for x, _ in held.rows.values())
    assert Counter(map(tuple, db.sql("SELECT x FROM t").fetchall())) == some
    assert db.sql("SELECT count(*) FROM t").fetchall() == [(len(held.rows),)]
    mine = Counter((x, b) for (a, b), (x, y) in held.rows.items() if y == "p" and a > 1)
    found = db.sql("SELECT x, b FROM t WHERE y = 'p' AND a > 1").fetchall()
    assert Counter(map(tuple, found)) == mine


@pytest.mark.parametrize("seed", range(12))
def test_content_is_the_sum_of_all_changes(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    held = Held(rng)
    with slackwater.connect(tmp_path / "w", placement="local", compact=False) as db:
        create(db, KEYS[seed % len(KEYS)])
        for _ in range(20):
            with db.transaction():
                for _ in range(rng.choice((1, 1, 1, 1, 3))):
                    db.sql(held.change())
                require_content(db, held)  # with changes that are not committed
            if rng.random() < 0.4:
                compact_some(db, rng)
            require_content(db, held)


def compact_some(db: Warehouse, rng: random.Random) -> None:
    """Merge what levels may choose, whatever the sizes."""

    def choose(segments: Sequence[Segment], adds_up: bool) -> tuple[Segment, ...]:
        some = tuple(s for s in segments if rng.random() < 0.5)
        return one_after_the_other(some, segments) if adds_up else some

    table = db.catalog.snapshot().find("t")
    assert table is not None
    compact_one(db._house, table.id, choose, 1.0)


def test_a_key_that_comes_back_between_deletions_is_held_once(tmp_path: Path) -> None:
    with slackwater.connect(tmp_path / "w", placement="local", compact=False) as db:
        create(db, KEYS[1])
        db.sql("INSERT INTO t VALUES (1, 1, 1, 'p'), (2, 1, 1, 'p')")
        db.sql("DELETE FROM t WHERE a = 1")
        db.sql("INSERT INTO t VALUES (1, 1, 1, 'p')")
        db.sql("DELETE FROM t WHERE a = 2")
        assert db.sql("SELECT * FROM t").fetchall() == [(1, 1, 1, "p")]
        db.sql("UPDATE t SET x = 2; UPDATE t SET x = 1")
        assert db.sql("SELECT x, y FROM t").fetchall() == [(1, "p")]


def test_content_on_spark(spark_db: Warehouse) -> None:
    held = Held(random.Random(3))
    create(spark_db, KEYS[1])
    for _ in range(12):
        spark_db.sql(held.change())
    require_content(spark_db, held)
    with spark_db.transaction():
        for _ in range(3):
            spark_db.sql(held.change())
    require_content(spark_db, held)


def test_keys_of_whole_numbers_are_put_together_where_there_is_room(spark_db: Warehouse) -> None:
    low, high = -(2**31), 2**31 - 1
    create(spark_db, KEYS[1])
    spark_db.sql(f"INSERT INTO t VALUES ({low}, {low}, 1, 'p'), ({high}, {low}, 2, 'p')")
    spark_db.sql(f"INSERT INTO t VALUES ({low}, {high}, 3, 'p'), (0, -1, 4, 'p'), (-1, 0, 5, 'p')")
    spark_db.sql("DELETE FROM t WHERE x IN (2, 3, 4)")  # 64 bits are needed, and not there
    assert sorted(spark_db.sql("SELECT x FROM t").fetchall()) == [(1,), (5,)]
    spark_db.sql("TRUNCATE TABLE t")
    spark_db.sql("INSERT INTO t VALUES (-7, -7, 1, 'p'), (-7, 9, 2, 'p'), (9, -7, 3, 'p')")
    spark_db.sql("DELETE FROM t WHERE x = 2; UPDATE t SET b = 9 WHERE x = 1")
    assert sorted(spark_db.sql("SELECT a, b, x FROM t").fetchall()) == [(-7, 9, 1), (9, -7, 3)]


def test_only_whole_versions_that_follow_each_other_are_merged() -> None:
    def segment(version: int, size: int = 1) -> Segment:
        return Segment(f"{version}-{size}", 1, size, -1, 1, version)

    large = compaction.LARGEST_BYTES + 1
    early = [Segment("first", 100, 1, 1, 1, 1), segment(2), segment(3)]
    late = [segment(v) for v in range(5, 5 + FANOUT)]
    assert due([*early, segment(4, large), *late], adds_up=True) == tuple(late)
    assert due([*early, segment(4, large), *late], adds_up=False) == (*early, *late)
    half = [*early, *late, segment(late[-1].version, large)]
    assert due(half, adds_up=True) == (*early, *late[:-1])


def test_columns_that_nobody_reads_are_not_read(spark_db: Warehouse) -> None:
    create(spark_db, KEYS[1])
    spark_db.sql("INSERT INTO t VALUES (1, 1, 1, 'p'), (2, 1, 1, 'p')")
    spark_db.sql("DELETE FROM t WHERE a = 1")
    frame = spark_db.sql("SELECT x FROM t").to_spark()
    plan = frame._jdf.queryExecution().optimizedPlan().toString()
    assert rows(frame.collect()) == rows([(1,)])
    assert "y#" not in plan
