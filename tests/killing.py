"""A stream of changes, early runs, refreshes, compactions that is killed and started again.

The stream knows what each of its batches does, so after any number of them it can say which rows
every table must hold. A batch is one transaction that also notes its number; whoever takes over
goes on after the last one noted.
"""

from __future__ import annotations

import os
import random
import signal
import time
from collections import Counter
from pathlib import Path

import slackwater
from slackwater import Warehouse, faults
from slackwater.planner.pace import Found
from slackwater.planner.subplans import cut
from slackwater.tvr.normal import normalize
from slackwater.work import parts
from slackwater.work.meaning import as_written
from slackwater.work.refreshing import advance
from slackwater.work.world import World
from tests.processes import Child
from tests.works import require_no_garbage, require_published, rows

SCHEMA = """
CREATE TABLE done (batch BIGINT NOT NULL);
CREATE TABLE kinds (kind BIGINT, name STRING);
CREATE TABLE sales (id BIGINT, kind BIGINT, amount BIGINT);
INSERT INTO kinds VALUES (0, 'zero'), (1, 'one'), (2, 'two'), (3, 'three');
CREATE MATERIALIZED VIEW totals AS
  SELECT kind, sum(amount) AS total, avg(amount) AS mean, count(*) AS n FROM sales GROUP BY kind;
CREATE MATERIALIZED VIEW sizes AS SELECT n, count(*) AS kinds FROM totals GROUP BY n;
CREATE MATERIALIZED VIEW named AS
  SELECT s.id, s.amount, k.name FROM sales s LEFT JOIN kinds k ON s.kind = k.kind;
CREATE MATERIALIZED VIEW best AS
  SELECT kind, max(amount) AS most, count(DISTINCT amount) AS amounts FROM sales GROUP BY kind;
CREATE MATERIALIZED VIEW top AS SELECT id, amount FROM sales ORDER BY amount DESC LIMIT 5;
"""
VIEWS = ("totals", "sizes", "named", "best", "top")
EARLY = ("named", "best")
KINDS = 6
SLOWEST_SECONDS = 20.0  # a life that does not meet its point is ended by then

Sales = dict[int, tuple[int, int]]


def build(path: Path) -> None:
    """The warehouse that the stream runs on."""
    with slackwater.connect(path, placement="local") as db:
        db.sql(SCHEMA)
        with_parts(db)
        db.refresh()


def with_parts(db: Warehouse) -> None:
    """Let two views be computed early, in parts: all of one, and what the other reads."""
    world = World(db._house, db.catalog.snapshot(), defining=True)
    early = {name: normalize(as_written(world, world.view(name))[0]) for name in EARLY}
    dag = cut(early)
    paces = {path: 2 for subplan in dag.subplans for path in subplan.paths}
    none = dict.fromkeys(early, 0.0)
    found = Found(paces, 0.0, none, none)
    parts.apply(db._house, parts.forms(dag, found, {}, parts.Ids(world.snapshot)))
    assert db.catalog.snapshot().parts()


def batch(seed: int, number: int, sales: Sales) -> list[str]:
    """The statements of a batch; `sales` becomes what they make of it."""
    rng = random.Random(f"{seed}/{number}")
    new = {number * 100 + i: (rng.randrange(KINDS), rng.randrange(50)) for i in range(8)}
    values = ", ".join(f"({id}, {kind}, {amount})" for id, (kind, amount) in new.items())
    kind, rest = rng.randrange(KINDS), rng.randrange(9)
    sales |= new
    for id, (own, amount) in list(sales.items()):
        if own == kind:
            sales[id] = (own, amount + 1)
        if id % 9 == rest:
            del sales[id]
    return [
        f"INSERT INTO sales VALUES {values}",
        f"UPDATE sales SET amount = amount + 1 WHERE kind = {kind}",
        f"DELETE FROM sales WHERE id % 9 = {rest}",
        f"UPDATE kinds SET name = concat(name, '.') WHERE kind = {kind % 4}",
        f"INSERT INTO done VALUES ({number})",
    ]


def live(path: Path, seed: int, batches: int | None = None) -> int:
    """Open the warehouse, check all it holds, and go on with the stream; how far it came.

    Without `batches` it ends only when it is killed.
    """
    with slackwater.connect(path, placement="local", lease_wait_seconds=5) as db:
        number, sales = check(db, seed)
        end = None if batches is None else number + batches
        while end is None or number < end:
            statements = batch(seed, number, sales)
            with db.transaction():
                for statement in statements:
                    db.sql(statement)
            number += 1
            if number % 2:
                own = db.catalog.snapshot().parts()
                advance(db._house, {part.id: part.depends[:1] for part in own})
            db.refresh(*random.Random(f"{seed}/views/{number}").sample(VIEWS, 3))
            if number % 3 == 0:
                db.compact()
        return number


def check(db: Warehouse, seed: int) -> tuple[int, Sales]:
    """Every table holds what its batches made of it and every view what a recompute gives."""
    noted = sorted(n for (n,) in db.sql("SELECT batch FROM done").fetchall())
    assert noted == list(range(len(noted))), f"batches lost or doubled: {noted}"
    sales: Sales = {}
    for number in noted:
        batch(seed, number, sales)
    found = rows(db.sql("SELECT id, kind, amount FROM sales").fetchall())
    assert found == rows([(id, *rest) for id, rest in sales.items()])
    require_published(db)
    db.refresh()
    for view in VIEWS:
        verification = db.verify(view)
        assert verification, str(verification)
    return len(noted), sales


def kill_one(path: Path, seed: int, rng: random.Random) -> str:
    """Start a life of the stream and kill it, at a named point or at any moment; which."""
    point = f"{rng.choice(faults.POINTS)}:{rng.randint(1, 12)}" if rng.random() < 0.6 else ""
    child = Child(live, path, seed, env={"SLACKWATER_CRASH_AT": point})
    end = time.monotonic() + (SLOWEST_SECONDS if point else rng.uniform(0.05, 3.0))
    while child.running and time.monotonic() < end:
        time.sleep(0.005)
    if child.running:
        os.kill(child.pid, signal.SIGKILL)
    if child.exit_code() != -signal.SIGKILL:
        child.result()  # tells what went wrong
        raise AssertionError("the stream ended by itself")
    return point or "any moment"


def finish(path: Path, seed: int) -> Counter[tuple[str, str]]:
    """Let the stream go on undisturbed, check everything; which runs ended how."""
    with slackwater.connect(path, placement="local") as db:
        runs = Counter((run.kind, run.state) for run in db.catalog.runs(limit=100_000))
    live(path, seed, batches=3)
    with slackwater.connect(path, placement="local") as db:
        check(db, seed)
        db.compact()
        check(db, seed)
        require_published(db)
        require_no_garbage(db)
    return runs
