"""Parts under budgets: what they keep counts for the views that they are for."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

import slackwater
from slackwater import Warehouse
from slackwater.catalog.model import View
from slackwater.planner.pace import Found
from slackwater.planner.subplans import cut
from slackwater.tvr.normal import normalize
from slackwater.work import parts
from slackwater.work.meaning import as_written
from slackwater.work.refreshing import advance
from slackwater.work.world import World

BY_CUSTOMER = "SELECT customer, SUM(amount) AS n FROM sales GROUP BY customer"
BY_DAY = "SELECT day, SUM(amount) AS n FROM sales GROUP BY day"
LARGEST = f"SELECT n % 10 AS bucket, COUNT(*) AS k FROM ({BY_CUSTOMER}) GROUP BY n % 10"
SMALLEST = f"SELECT n % 7 AS bucket, MIN(n) AS k FROM ({BY_CUSTOMER}) GROUP BY n % 7"
ROWS = 3_000


@pytest.fixture
def db(tmp_path: Path) -> Iterator[Warehouse]:
    settings = {"placement": "local", "refresh": "incremental", "compact": False}
    with slackwater.connect(tmp_path / "w", **settings) as db:  # type: ignore[arg-type]
        db.sql("CREATE TABLE sales (customer BIGINT, day BIGINT, amount BIGINT)")
        sell(db)
        yield db


def sell(db: Warehouse, rows: int = ROWS) -> None:
    ids = list(range(rows))
    columns = {"customer": ids, "day": [-i for i in ids], "amount": [i % 7 for i in ids]}
    db.append("sales", pa.table(columns))


def run_early(db: Warehouse, expected: float = 0.0) -> None:
    """Every view, and what it has in common with others, is a part of its own; run whenever a
    quarter has come of what is expected."""
    world = World(db._house, db.catalog.snapshot(), defining=True)
    dag = cut({v.name: normalize(as_written(world, v)[0]) for v in world.snapshot.views()})
    zero = dict.fromkeys(dag.roots, 0.0)
    leaves = {p: 4 for s in dag.subplans for p in s.paths if not p[1].startswith("#")}
    above = {p: 1 for s in dag.subplans for p in s.paths if p[1].startswith("#")}
    found = Found(leaves | above, 0.0, zero, zero)
    coming = {table.id: expected for table in world.snapshot.tables()}
    parts.apply(db._house, parts.forms(dag, found, coming, parts.Ids(world.snapshot)))


def all_parts(db: Warehouse) -> tuple[View, ...]:
    return db.catalog.snapshot().parts()


def kept(db: Warehouse, view: View) -> int:
    snapshot = db.catalog.snapshot()
    return sum(x.bytes for s in snapshot.states(view.id) for x in snapshot.segments(s.id))


def told(db: Warehouse, name: str) -> dict[str, object]:
    return next(v for v in db.status()["views"] if v["name"] == name)


def set_budget(db: Warehouse, name: str, budget: float) -> None:
    text = f"{budget:g} KB"
    db.sql(f"ALTER MATERIALIZED VIEW {name} SET (state_budget = '{text}')")


def test_the_states_of_a_part_count_for_its_view(db: Warehouse) -> None:
    db.sql(f"CREATE MATERIALIZED VIEW v AS {LARGEST}")
    run_early(db)
    db.refresh()
    (part,) = all_parts(db)
    own = next(iter(db.catalog.snapshot().views()))
    size = kept(db, part)
    assert size > 5_000
    assert told(db, "v")["state_bytes"] == size + kept(db, own)
    set_budget(db, "v", 3)
    db.refresh()
    assert kept(db, part) == 0
    assert told(db, "v")["state_bytes"] == kept(db, own) <= 3_000
    sell(db, 10)
    db.refresh()
    assert db.verify("v").equal
    set_budget(db, "v", 200)
    sell(db, 10)
    db.refresh()
    assert kept(db, part) > 5_000
    lines = db.explain("v").splitlines()
    assert f"Parts:  {kept(db, part):,} bytes of states" in lines


def test_a_part_counts_for_each_view_with_its_share(db: Warehouse) -> None:
    """While two share it each has half of it; when one of them goes, it is too large."""
    db.sql(f"CREATE MATERIALIZED VIEW v AS {LARGEST}")
    db.sql(f"CREATE MATERIALIZED VIEW w AS {SMALLEST}")
    run_early(db)
    db.refresh()
    (part,) = all_parts(db)
    size = kept(db, part)
    v = db.catalog.snapshot().find("v")
    assert isinstance(v, View)
    budget = kept(db, v) + 0.75 * size
    set_budget(db, "v", budget / 1000)
    sell(db, 10)
    db.refresh()
    assert kept(db, part) > 0
    assert told(db, "v")["state_bytes"] == kept(db, v) + round(kept(db, part) / 2) <= budget
    db.sql("DROP VIEW w")
    sell(db, 10)
    db.refresh()
    assert kept(db, v) + kept(db, part) <= budget
    assert db.verify("v").equal


def test_the_smallest_budget_of_those_who_share_counts(db: Warehouse) -> None:
    db.sql(f"CREATE MATERIALIZED VIEW v WITH (state_budget = '0 MB') AS {LARGEST}")
    db.sql(f"CREATE MATERIALIZED VIEW w WITH (state_budget = '1 GB') AS {SMALLEST}")
    run_early(db)
    db.refresh()
    (part,) = all_parts(db)
    assert kept(db, part) == 0
    assert db.verify("v").equal
    assert db.verify("w").equal


def test_parts_that_are_refreshed_side_by_side_have_one_budget(db: Warehouse) -> None:
    """There is room for the sums of one of them, whoever comes first."""
    both = f"SELECT a.n, b.n AS m FROM ({BY_CUSTOMER}) a JOIN ({BY_DAY}) b ON a.customer = b.day"
    db.sql(f"CREATE MATERIALIZED VIEW v AS {both}")
    run_early(db)
    db.refresh()
    sizes = [kept(db, part) for part in all_parts(db)]
    assert min(sizes) > 5_000
    assert len(sizes) == 2
    budget = told(db, "v")["state_bytes"] - 0.5 * min(sizes)  # type: ignore[operator]
    set_budget(db, "v", budget / 1000)
    db._house.keeper.everything = True  # each would keep its sums
    for _ in range(3):
        db.sql("REFRESH MATERIALIZED VIEW v FULL")
        assert told(db, "v")["state_bytes"] <= budget  # type: ignore[operator]
        sell(db, 10)
        advance(db._house, {part.id: () for part in all_parts(db)})
        db.refresh()
        assert told(db, "v")["state_bytes"] <= budget  # type: ignore[operator]
        assert db.verify("v").equal


def test_a_budget_for_all_views_is_not_one_more_for_each_part(db: Warehouse) -> None:
    db.sql(f"CREATE MATERIALIZED VIEW v AS {LARGEST}")
    run_early(db)
    db.refresh()
    (part,) = all_parts(db)
    db.sql(f"ALTER WAREHOUSE SET (state_budget = '{1.01 * kept(db, part) / 1000:g} KB')")
    sell(db, 1000)
    db.refresh()
    assert told(db, "v")["state_bytes"] <= told(db, "v")["state_budget"]  # type: ignore[operator]


def expected_of(db: Warehouse, part: View) -> float:
    event = next(e for e in db.catalog.events(relation=part.id, kind="refresh", limit=1))
    return float(event.body["states"]["expected"]["sales"])


def test_a_part_keeps_what_pays_for_the_change_of_its_next_run(db: Warehouse) -> None:
    """Not for that of the whole time until a result is due; and it is planned again when other is
    expected to come, or at another pace."""
    db.sql(f"CREATE MATERIALIZED VIEW v WITH (state_budget = '1 GB') AS {LARGEST}")
    run_early(db, expected=4_000)
    db.refresh()
    (part,) = all_parts(db)
    assert expected_of(db, part) == 1_000
    for _ in range(2):  # what came lately does not count
        sell(db, 10)
        db.refresh()
        assert expected_of(db, part) == 1_000
    decided = db._house.keeper.decided
    before = decided[part.id, False]
    run_early(db, expected=3_000)  # nearly the same
    sell(db, 10)
    advance(db._house, {part.id: ()})
    assert decided[part.id, False] is before
    run_early(db, expected=400_000)
    (again,) = all_parts(db)
    assert again.id == part.id
    sell(db, 10)
    advance(db._house, {part.id: ()})
    assert expected_of(db, part) == 100_000
    assert decided[part.id, False] is not before
    db.refresh()
    assert db.verify("v").equal
