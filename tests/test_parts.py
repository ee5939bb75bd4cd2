"""Parts of views at paces of their own: whatever ran when, results are those of the query."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

import slackwater
from slackwater import Warehouse
from slackwater.algebra.relation import Relation
from slackwater.catalog.model import View
from slackwater.cli import store_checks
from slackwater.planner.alike import Group, Member, in_one_order, shared
from slackwater.planner.pace import Found
from slackwater.planner.subplans import cut, is_subplan, number_of
from slackwater.tvr.normal import normalize
from slackwater.work import parts
from slackwater.work.meaning import as_written
from slackwater.work.refreshing import advance
from slackwater.work.world import World
from tests.conftest import PROOF
from tests.test_alike import SETS
from tests.test_laws import QUERIES, bound

TABLES = {"r": "a INT, b INT, s STRING", "t": "a INT, c INT", "u": "b INT, c INT, d INT"}
WIDTHS = {"r": 3, "t": 2, "u": 3}


@pytest.fixture
def db(tmp_path: Path) -> Iterator[Warehouse]:
    with slackwater.connect(tmp_path / "w", placement="local", refresh="incremental") as db:
        for name, columns in TABLES.items():
            db.sql(f"CREATE TABLE {name} ({columns})")
        yield db


def change(db: Warehouse, rng: random.Random) -> None:
    """A few rows come, change and go."""
    for name in rng.sample(list(TABLES), rng.randint(1, 3)):
        rows = [
            ", ".join(
                f"'{rng.choice('xyz')}'" if name == "r" and i == 2 else str(rng.randint(0, 4))
                for i in range(WIDTHS[name])
            )
            for _ in range(rng.randint(1, 5))
        ]
        db.sql(f"INSERT INTO {name} VALUES {', '.join(f'({row})' for row in rows)}")
        column = {"r": "b", "t": "c", "u": "d"}[name]
        if rng.random() < 0.4:
            db.sql(f"DELETE FROM {name} WHERE {column} = {rng.randint(0, 4)}")
        elif rng.random() < 0.3:
            db.sql(f"UPDATE {name} SET {column} = 1 WHERE {column} = {rng.randint(2, 4)}")


def queries(db: Warehouse) -> dict[str, Relation]:
    world = World(db._house, db.catalog.snapshot(), defining=True)
    return {v.name: normalize(as_written(world, v)[0]) for v in world.snapshot.views()}


def split(group: Group, rng: random.Random) -> list[list[Member]]:
    """Who shares, by chance."""
    sides: tuple[list[Member], list[Member]] = ([], [])
    for member in group.members:
        sides[rng.random() < 0.3].append(member)
    return [side for side in sides if side]


def paced(db: Warehouse, rng: random.Random) -> parts.Forms:
    """Forms by chance."""
    own, at = queries(db), frozenset[Relation]()
    sharing = rng.random() < 0.7
    if sharing and rng.random() < 0.7:
        found = shared(in_one_order(own), lambda group: split(group, rng))
        own, at = dict(found.queries), found.pieces
    dag = cut(own, blocking=rng.random() < 0.8, sharing=sharing, at=at)
    paces: dict[tuple[int, str], int] = {}
    made: dict[int, int] = {}
    for subplan in dag.subplans:
        one = rng.choice((None, None, 1, 2, 4))
        for name in subplan.inputs:
            most = made[number_of(name)] if is_subplan(name) else 4
            pace = rng.choice((1, 2, 4)) if one is None else one
            paces[subplan.number, name] = min(pace, most)
        made[subplan.number] = max((paces[p] for p in subplan.paths), default=1)
    zero = dict.fromkeys(dag.roots, 0.0)
    return parts.forms(dag, Found(paces, 0.0, zero, zero), {}, parts.Ids(db.catalog.snapshot()))


def early(db: Warehouse, rng: random.Random) -> None:
    """Some parts run, some of their inputs being left as they were."""
    own = db.catalog.snapshot().parts()
    some = [part for part in own if rng.random() < 0.6]
    advance(
        db._house,
        {part.id: [id for id in part.depends if rng.random() < 0.4] for part in some},
    )


SEEDS = range(30 if PROOF else 8)
NAMES = [n for n, q in QUERIES.items() if len({f.name for f in bound(q).schema}) == bound(q).width]


@pytest.mark.parametrize("seed", SEEDS)
def test_results_are_exact_whatever_ran_when(db: Warehouse, seed: int) -> None:
    rng = random.Random(seed)
    texts = rng.choice([*SETS.values()]) if seed % 2 else [QUERIES[n] for n in rng.sample(NAMES, 3)]
    change(db, rng)
    for i, text in enumerate(texts):
        db.sql(f"CREATE MATERIALIZED VIEW v{i} AS {text}")
    if rng.random() < 0.5:
        db.refresh()
    for _ in range(3):
        if rng.random() < 0.6:
            parts.apply(db._house, paced(db, rng))
        for _ in range(rng.randint(0, 3)):
            change(db, rng)
            early(db, rng)
        change(db, rng)
        db.refresh()
        for i, text in enumerate(texts):
            checked = db.verify(f"v{i}")
            assert checked.equal, (text, str(checked))


def views_of(db: Warehouse, text: str) -> View:
    db.sql(f"CREATE MATERIALIZED VIEW v AS {text}")
    found = db.catalog.snapshot().find("v")
    assert isinstance(found, View)
    return found


NESTED = "SELECT n, count(*) AS k FROM (SELECT a, count(*) AS n FROM r GROUP BY a) GROUP BY n"


def at_paces(db: Warehouse, below: int, above: int) -> parts.Forms:
    dag = cut(queries(db))
    (leaf,) = dag.subplans[0].paths
    zero = dict.fromkeys(dag.roots, 0.0)
    paces = {leaf: below, (1, "#0"): above}
    return parts.forms(dag, Found(paces, 0.0, zero, zero), {}, parts.Ids(db.catalog.snapshot()))


def test_a_piece_that_runs_more_often_is_a_part(db: Warehouse) -> None:
    views_of(db, NESTED)
    assert parts.apply(db._house, at_paces(db, 4, 1)) == ["v"]
    (part,) = db.catalog.snapshot().parts()
    assert part.options[parts.PACE] == "4"
    db.sql("INSERT INTO r VALUES (1, 1, 'x'), (1, 2, 'y'), (2, 1, 'x')")
    db.refresh("v")
    assert sorted(db.sql("SELECT * FROM v").fetchall()) == [(1, 1), (2, 1)]
    assert parts.apply(db._house, at_paces(db, 4, 1)) == []  # as it is already


def test_what_runs_early_is_not_seen_before_the_result_is_due(db: Warehouse) -> None:
    views_of(db, "SELECT a, count(*) AS n FROM r GROUP BY a")
    dag = cut(queries(db))
    zero = dict.fromkeys(dag.roots, 0.0)
    found = Found({dag.subplans[0].paths[0]: 2}, 0.0, zero, zero)
    parts.apply(db._house, parts.forms(dag, found, {}, parts.Ids(db.catalog.snapshot())))
    db.sql("INSERT INTO r VALUES (1, 1, 'x')")
    db.refresh("v")
    db.sql("INSERT INTO r VALUES (1, 2, 'y')")
    (part,) = db.catalog.snapshot().parts()
    (report,) = advance(db._house, {part.id: ()})
    assert report.mode == "incremental"
    assert db.sql("SELECT n FROM v").fetchall() == [(1,)]
    assert [r.mode for r in db.refresh("v")] == ["none", "incremental"]
    assert db.sql("SELECT n FROM v").fetchall() == [(2,)]


def test_nobody_sees_parts(db: Warehouse) -> None:
    views_of(db, NESTED)
    parts.apply(db._house, at_paces(db, 4, 1))
    (part,) = db.catalog.snapshot().parts()
    assert [row[0] for row in db.sql("SHOW VIEWS").fetchall()] == ["v"]
    with pytest.raises(slackwater.errors.UserError):
        db.sql(f"SELECT * FROM `{part.id}`")


def test_parts_go_with_the_last_view_that_needs_them(db: Warehouse) -> None:
    views_of(db, NESTED)
    parts.apply(db._house, at_paces(db, 4, 1))
    db.refresh()
    db.sql("CREATE OR REPLACE MATERIALIZED VIEW v AS SELECT a FROM r")
    assert db.catalog.snapshot().parts() == ()
    db.refresh()
    db.sql("DROP MATERIALIZED VIEW v")
    db.sql("DROP TABLE r")


def test_a_part_whose_file_is_gone_is_made_anew_with_its_view(db: Warehouse) -> None:
    views_of(db, NESTED)
    parts.apply(db._house, at_paces(db, 4, 1))
    db.sql("INSERT INTO r VALUES (1, 1, 'x'), (2, 1, 'x')")
    db.refresh()
    (part,) = db.catalog.snapshot().parts()
    for segment in db.catalog.snapshot().segments(part.id):
        (db.path / segment.path).unlink()
    found = store_checks._files(db.path, db.catalog.snapshot())
    assert "refresh --full': v." in found.advice
    db.sql("REFRESH MATERIALIZED VIEW v FULL")
    assert db.verify("v").equal
    db.sql("INSERT INTO r VALUES (2, 2, 'y')")
    assert [r.mode for r in db.refresh("v")] == ["incremental", "incremental"]
    assert db.verify("v").equal


def test_equal_parts_that_nobody_shares_are_two(db: Warehouse) -> None:
    """Of equal views without sharing; and they stay so when they are planned again."""
    for name in ("v", "w"):
        db.sql(f"CREATE MATERIALIZED VIEW {name} AS {NESTED}")
    dag = cut(queries(db), sharing=False)
    zero = dict.fromkeys(dag.roots, 0.0)
    found = Found({p: 2 for s in dag.subplans for p in s.paths}, 0.0, zero, zero)
    for _ in range(2):
        ids = parts.Ids(db.catalog.snapshot())
        forms = parts.forms(dag, found, {}, ids)
        parts.apply(db._house, forms)
        assert len({part.id for part in forms.parts}) == 2
    assert len(db.catalog.snapshot().parts()) == 2
    db.sql("INSERT INTO r VALUES (1, 1, 'x'), (2, 1, 'x')")
    db.refresh()
    assert db.verify("v").equal
    assert db.verify("w").equal


def test_status_tells_the_parts_of_a_view(db: Warehouse) -> None:
    views_of(db, NESTED)
    parts.apply(db._house, at_paces(db, 4, 1))
    db.refresh()
    (view,) = db.status()["views"]
    (part,) = view["parts"]
    assert part["pace"] == 4
    assert part["views"] == ["v"]
    assert view["reads"] == ["r"]


def test_states_of_parts_are_merged_beside_early_runs(tmp_path: Path) -> None:
    with slackwater.connect(tmp_path / "tidy", placement="local", refresh="incremental") as db:
        db.sql("CREATE TABLE r (a INT, b INT, s STRING)")
        views_of(db, NESTED)
        parts.apply(db._house, at_paces(db, 4, 1))
        db.refresh()
        (part,) = db.catalog.snapshot().parts()
        for i in range(20):
            db.sql(f"INSERT INTO r VALUES ({i % 3}, {i}, 'x')")
            db.tidy(report.view for report in advance(db._house, {part.id: ()}))
    with slackwater.connect(tmp_path / "tidy", placement="local") as db:
        snapshot = db.catalog.snapshot()
        (sums,) = snapshot.states(part.id)
        assert len(snapshot.segments(sums.id)) < 20
        db.refresh()
        assert db.verify("v").equal


def test_without_early_runs_there_are_no_parts(db: Warehouse) -> None:
    views_of(db, NESTED)
    parts.apply(db._house, at_paces(db, 4, 1))
    assert parts.apply(db._house, at_paces(db, 1, 1)) == ["v"]
    assert db.catalog.snapshot().parts() == ()
    db.sql("INSERT INTO r VALUES (1, 1, 'x')")
    db.refresh("v")
    assert db.verify("v").equal
