"""What a view keeps, in plans for its next runs: it is found, read where it lies, and the results
are those of the query."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import pyarrow as pa
import pytest

import slackwater
from slackwater import UserError, Warehouse
from slackwater.engine.compare import compare
from slackwater.errors import StateError
from slackwater.planner import plan as planning
from slackwater.planner.existing import Existing
from slackwater.planner.plan import plan
from slackwater.planner.problem import Arrival, Problem
from slackwater.planner.timeline import Timed, Timeline
from slackwater.stats.rows import Change
from slackwater.tvr.memo import CHANGED, SUMS, WEIGHTED
from slackwater.work.playing import play, recompute, versions
from tests.change_maker import ChangeMaker
from tests.conftest import PROOF
from tests.streams import apply_batch, scratch
from tests.test_runs import ByChance
from tests.view_maker import ViewMaker

WAREHOUSES = 20 if PROOF else 3

TOTALS = """
    CREATE MATERIALIZED VIEW totals AS
    SELECT c.region, COUNT(*) AS n, SUM(o.amount) AS total
    FROM orders o LEFT JOIN customers c ON o.customer = c.id GROUP BY c.region"""


@pytest.fixture
def shop(db: Warehouse) -> Warehouse:
    db.sql("CREATE TABLE customers (id BIGINT, region STRING)")
    db.sql("CREATE TABLE orders (id BIGINT, customer BIGINT, amount BIGINT)")
    regions = [f"r{i % 7}" for i in range(100)]
    db.append("customers", pa.table({"id": list(range(100)), "region": regions}))
    _order(db, 0, 50_000)
    db.sql(TOTALS)
    db.refresh("totals")
    return db


def _order(db: Warehouse, first: int, count: int) -> None:
    ids = list(range(first, first + count))
    customers, amounts = [i % 120 for i in ids], [i * 7 % 101 for i in ids]
    db.append("orders", pa.table({"id": ids, "customer": customers, "amount": amounts}))


def _problem(db: Warehouse, **more: object) -> Problem:
    return db.problem("totals", {"orders": [Change(inserts=500)]}, due=(1,), **more)  # type: ignore[arg-type]


def test_a_problem_of_a_view_names_what_the_view_keeps(shop: Warehouse) -> None:
    existing = _problem(shop).existing
    assert {one.kind for one in existing} == {WEIGHTED, SUMS}
    assert all(one.at == 0 and one.rows == 8 for one in existing)
    assert not shop.problem("SELECT COUNT(*) FROM orders", {}).existing


def test_a_plan_reads_what_the_view_keeps(shop: Warehouse) -> None:
    stated = _problem(shop)
    made = plan(stated)
    sums = next(one.name for one in stated.existing if one.kind == SUMS)
    assert made.loaded == {sums: (1,)}
    assert made.cost < plan(replace(stated, existing=())).cost
    points = [versions(shop._house)]
    _order(shop, 50_000, 500)
    points.append(versions(shop._house))
    expected = recompute(shop._house, stated.query).results[0]
    assert compare(play(shop._house, made, points).results[1], expected).equal


def test_what_is_behind_its_sources_is_as_of_no_point(shop: Warehouse) -> None:
    _order(shop, 50_000, 500)
    made = plan(_problem(shop))
    assert not made.loaded
    assert set(made.not_loaded.values()) == {planning.OTHER_TIME}


def test_what_is_said_to_have_other_rows_is_as_of_no_point(shop: Warehouse) -> None:
    arrival = Arrival(1e9, (Change(inserts=500),))
    made = plan(shop.problem("totals", {"orders": arrival}, due=(1,)))
    assert set(made.not_loaded.values()) == {planning.OTHER_TIME}


def test_a_view_that_was_refreshed_since_is_told(shop: Warehouse) -> None:
    made, points = plan(_problem(shop)), [versions(shop._house)]
    _order(shop, 50_000, 500)
    points.append(versions(shop._house))
    shop.refresh("totals")
    with pytest.raises(StateError) as refused:
        play(shop._house, made, points)
    assert refused.value.code == "STATE_MOVED"


def test_what_no_view_keeps_is_told(shop: Warehouse) -> None:
    stated = shop.problem("totals", {}, (1.0,))
    made = plan(replace(stated, existing=(Existing("nowhere", stated.query, rows=1.0),)))
    with pytest.raises(StateError) as refused:
        play(shop._house, made, [versions(shop._house)])
    assert refused.value.code == "UNKNOWN_STATE"


def test_a_new_view_keeps_nothing(shop: Warehouse) -> None:
    shop.sql("CREATE MATERIALIZED VIEW fresh AS SELECT COUNT(*) AS n FROM orders")
    assert not shop.problem("fresh", {}).existing


# -- random views


class TablesDear(ByChance):
    """Costs by chance, but for tables: to read them takes longer than anything else."""

    def read(self, timed: Timed, timeline: Timeline) -> float:
        return 1000.0 if timed.ref.trait.kind != CHANGED else super().read(timed, timeline)


def test_of_random_views_plans_with_what_they_keep_give_what_their_queries_give(
    rng: random.Random,
) -> None:
    loaded = 0
    for _ in range(WAREHOUSES):
        loaded += sum(_played(rng))
    assert loaded


def _played(rng: random.Random) -> Iterator[int]:
    """A warehouse with random views, some changes, and plans by chance: how many of the relations
    that exist each has read."""
    changes = ChangeMaker(rng, wild=False)
    load, *batches = changes.load(), changes.batch(), changes.batch()
    relations = {t.name: tuple((c.name, c.kind) for c in t.columns) for t in changes.tables}
    maker = ViewMaker(rng, relations, False, portable=True)
    steps = [b for b in batches if not any("TRUNCATE" in c.sql for c in b)]  # it leaves no log
    options = {"placement": "local", "compact": False}
    with scratch() as folder, slackwater.connect(folder / "w", **options) as db:
        for table in changes.tables:
            db.sql(table.ddl)
        apply_batch(db, changes.tables, load)
        queries = [_counted(rng, changes), *(maker.query(False)[0] for _ in range(6))]
        names = [name for i, query in enumerate(queries) if (name := _made(db, f"v{i}", query))]
        stated = [_stated(db, name, len(steps)) for name in names]
        points = [versions(db._house)]
        for batch in steps:
            apply_batch(db, changes.tables, batch)
            points.append(versions(db._house))
        for problem in stated:
            yield _compared(db, rng, problem, points)


def _counted(rng: random.Random, changes: ChangeMaker) -> str:
    """A query of which partial sums are kept."""
    table = rng.choice(changes.tables)
    column = rng.choice(table.columns).name
    return f"SELECT {column}, COUNT(*) AS n FROM {table.name} GROUP BY {column}"


def _made(db: Warehouse, name: str, query: str) -> str:
    """The name of a view with content, or none if its query gives none."""
    try:
        db.sql(f"CREATE MATERIALIZED VIEW {name} AS {query}")
        db.refresh(name)
    except UserError:
        return ""
    return name


def _stated(db: Warehouse, view: str, steps: int) -> Problem:
    read = {scan.name for scan in db.problem(view, {}).query.scans()}
    some = [Change(inserts=5, deletes=2)] * steps
    return db.problem(view, dict.fromkeys(read, some), (*(1.0,) * steps, 1.0))


def _compared(
    db: Warehouse, rng: random.Random, problem: Problem, points: Sequence[Mapping[str, int]]
) -> int:
    made = plan(problem, costs=TablesDear(rng))
    try:
        expected = recompute(db._house, problem.query).results[0]
        played = play(db._house, made, points, planning_again=rng.random() < 0.5)
    except UserError:
        return 0  # as its query raises, now or at an earlier point
    difference = compare(played.results[len(points) - 1], expected)
    assert difference.equal, f"{difference}\n{made.text()}"
    return len(made.loaded)
