"""Ways that are tried on the same state do the same, also where their states were built for it."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pytest

import slackwater
from slackwater.planner.choice import HIGHER_ORDER, INCREMENTAL
from slackwater.types import WEIGHT
from slackwater.work.trying import _Trial, try_ways
from slackwater.work.upkeep import Upkeep
from slackwater.work.world import Pending, World

VIEW = """
    SELECT r.name, count(*) AS n, sum(s.amount) AS total
    FROM sales s JOIN customers c ON s.customer = c.id JOIN regions r ON c.region = r.id
    WHERE c.kind < 3 GROUP BY r.name
"""


def _filled(db: slackwater.Warehouse, rng: random.Random) -> None:
    db.sql("CREATE TABLE sales (customer BIGINT, amount BIGINT)")
    db.sql("CREATE TABLE customers (id BIGINT, region BIGINT, kind BIGINT)")
    db.sql("CREATE TABLE regions (id BIGINT, name STRING)")
    regions = ", ".join(f"({i}, 'r{i % 3}')" for i in range(5))
    people = ", ".join(f"({i}, {rng.randrange(6)}, {rng.randrange(5)})" for i in range(60))
    db.sql(f"INSERT INTO regions VALUES {regions}")
    db.sql(f"INSERT INTO customers VALUES {people}")
    _sell(db, rng, 400)


def _sell(db: slackwater.Warehouse, rng: random.Random, rows: int) -> None:
    sold = ", ".join(f"({rng.randrange(70)}, {rng.randrange(50)})" for _ in range(rows))
    db.sql(f"INSERT INTO sales VALUES {sold}")


def _change(upkeep: Upkeep) -> Counter[object]:
    """The rows of the view's change, with their weights."""
    found: Counter[object] = Counter()
    names = [f.name for f in upkeep.view.schema]
    for segment in upkeep.world.pending.added.get(upkeep.view.id, ()):
        for row in upkeep.world.house.storage.columns(segment, [*names, WEIGHT]).to_pylist():
            found[tuple(row[n] for n in names)] += row[WEIGHT]
    return Counter({row: weight for row, weight in found.items() if weight})


@pytest.mark.parametrize("also", ["", "customers", "regions"])
def test_what_is_joined_is_kept_as_it_was_at_the_last_refresh(
    tmp_path: Path, rng: random.Random, also: str
) -> None:
    with slackwater.connect(tmp_path / "w", placement="local") as db:
        _filled(db, rng)
        db.sql(f"CREATE MATERIALIZED VIEW v AS {VIEW}")
        db.refresh("v")
        _sell(db, rng, 40)
        db.sql("DELETE FROM sales WHERE amount = 7")
        if also:
            db.sql(f"DELETE FROM {also} WHERE id = 2")
        house = db._house
        with house.lease("t") as lease, house.catalog.running("try", lease) as run:
            world = World(house, house.catalog.snapshot(), Pending(), defining=True)
            trial = _Trial(world, run, world.view("v"))
            choice = trial.choice()
            ways = {c.method: c for c in choice.candidates if c.engine == "local"}
            assert ways[HIGHER_ORDER].reasons == ("STATE_MISSING",)
            found = {}
            for method in (INCREMENTAL, HIGHER_ORDER):
                way = ways[method]
                built = trial._built(way, choice.parts) if way.reasons else None
                upkeep = trial._upkeep(built)
                upkeep.engine = "local"
                trial._done(upkeep, way, choice.parts)
                found[method] = _change(upkeep)
        assert found[INCREMENTAL]
        assert found[HIGHER_ORDER] == found[INCREMENTAL]


def test_nothing_is_kept_of_what_was_tried(tmp_path: Path, rng: random.Random) -> None:
    with slackwater.connect(tmp_path / "w", placement="local") as db:
        _filled(db, rng)
        db.sql(f"CREATE MATERIALIZED VIEW v AS {VIEW}")
        db.refresh("v")
        _sell(db, rng, 40)
        view = db._house.catalog.snapshot().find("v")
        assert view is not None
        before = db._house.catalog.snapshot().states(view.id)
        _, tried = try_ways(db._house, "v", 1)
        assert [t.is_possible for t in tried if t.candidate.method == HIGHER_ORDER] == [False]
        assert db._house.catalog.snapshot().states(view.id) == before
        db.refresh("v")
        assert db.verify("v").equal
