"""Segments, and rows in them, that a step cannot use are not read."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from pathlib import Path

import pyarrow as pa
import pytest

import slackwater
from slackwater import Warehouse
from slackwater.algebra.expr import Call, Column, Expr, Literal, columns
from slackwater.algebra.relation import Aggregate, Filter, Join, Project, Relation, Scan, Union
from slackwater.catalog.model import Segment
from slackwater.engine.skipping import narrowed
from slackwater.engine.sources import Log, Made, Source, Stored
from slackwater.planner.steps import Output
from slackwater.types import BIGINT, BOOLEAN, Field, Schema

FIELDS: Schema = (Field("k", BIGINT, True), Field("x", BIGINT, True))


def segment(name: str, low: int, high: int, *, known: bool = True) -> Segment:
    stats = {"k": [low, high]} if known else {}
    return Segment(name, rows=10, bytes=100, min_weight=1, max_weight=1, stats=stats)


STORED = Log((segment("a", 0, 9), segment("b", 10, 19), segment("c", 20, 29)), FIELDS)
CHANGE = Log((segment("d", 12, 14),), FIELDS)
BIG, SMALL = Scan("big", "big", FIELDS), Scan("small", "small", FIELDS)


def same(a: int = 0, b: int = 2, name: str = "=") -> Expr:
    row = columns((*FIELDS, *FIELDS))
    return Call(BOOLEAN, True, name, (row[a], row[b]))


def left_of(
    relation: Relation, sources: Mapping[str, Source] | None = None, source: str = "big"
) -> tuple[list[str], dict[str, tuple[int, int]]]:
    """The segments that are left of a source, and the ranges its rows are wanted in."""
    given = sources or {"big": STORED, "small": CHANGE}
    found = narrowed([Output("t", relation)], given)[source]
    assert isinstance(found, Log | Stored)
    return [s.path for s in found.segments], dict(found.within)


ONE_LEFT = ["b"], {"k": (12, 14)}
ALL_LEFT = ["a", "b", "c"], dict[str, tuple[int, int]]()


@pytest.mark.parametrize(
    ("relation", "expected"),
    [
        (Join(BIG, SMALL, "inner", same()), ONE_LEFT),
        (Join(BIG, SMALL, "semi", same(name="<=>")), ONE_LEFT),
        (Join(SMALL, BIG, "left", same()), ONE_LEFT),
        (Join(SMALL, BIG, "anti", same()), ONE_LEFT),
        (Join(BIG, SMALL, "right", same()), ONE_LEFT),
        (Join(BIG, SMALL, "left", same()), ALL_LEFT),  # rows without a partner stay
        (Join(BIG, SMALL, "anti", same()), ALL_LEFT),
        (Join(BIG, SMALL, "full", same()), ALL_LEFT),
        (Join(BIG, SMALL, "inner", same(name="<")), ALL_LEFT),
        (Join(BIG, SMALL, "inner", same(a=1)), (["a", "b", "c"], {"x": (12, 14)})),
    ],
)
def test_a_side_matters_where_the_other_one_reaches(
    relation: Relation, expected: tuple[list[str], dict[str, tuple[int, int]]]
) -> None:
    assert left_of(relation) == expected


def test_ranges_are_followed_through_operators() -> None:
    swapped = Project(BIG, columns(FIELDS)[::-1], ("x", "k"))
    summed = Aggregate(Union((swapped, swapped)), columns(FIELDS)[::-1], (), ("k", "x"))
    nobody = Filter(SMALL, Literal(BOOLEAN, False, False))
    assert left_of(Join(summed, nobody, "semi", same())) == ONE_LEFT


def test_a_key_made_by_an_expression_says_nothing() -> None:
    key = Column(BIGINT, True, 0)
    doubled = Project(BIG, (Call(BIGINT, True, "+", (key, key)), key), ("k", "x"))
    assert left_of(Join(doubled, SMALL, "semi", same())) == ALL_LEFT


def test_all_uses_of_a_source_count() -> None:
    other = Scan("other", "other", FIELDS)
    uses = Union((Join(BIG, SMALL, "semi", same()), Join(BIG, other, "semi", same())))
    sources = {"big": STORED, "small": CHANGE, "other": Log((segment("e", 25, 25),), FIELDS)}
    assert left_of(uses, sources) == (["b", "c"], {"k": (12, 25)})
    assert left_of(Union((Join(BIG, SMALL, "semi", same()), BIG))) == ALL_LEFT


def test_ranges_go_on_over_several_joins() -> None:
    """small ⋈ big on k, big ⋈ third on k: what small reaches limits the third, too."""
    third = Scan("third", "third", FIELDS)
    row = columns((*FIELDS, *FIELDS, *FIELDS))
    link = Call(BOOLEAN, True, "=", (row[2], row[4]))
    relation = Join(Join(SMALL, BIG, "inner", same()), third, "inner", link)
    sources = {"big": STORED, "small": CHANGE, "third": STORED}
    assert left_of(relation, sources, "third") == ONE_LEFT


def test_a_segment_without_a_range_is_read() -> None:
    """It may be older than ranges are, or hold NULLs."""
    sources = {"big": Log((segment("a", 0, 9, known=False),), FIELDS), "small": CHANGE}
    relation = Join(BIG, SMALL, "semi", same())
    assert left_of(relation, sources) == (["a"], {"k": (12, 14)})
    unknown = {"big": STORED, "small": Log((segment("d", 0, 0, known=False),), FIELDS)}
    assert left_of(relation, unknown) == ALL_LEFT


@pytest.mark.parametrize(
    ("keys", "within"),
    [
        ((12, 27), {"k": (12, 27)}),  # few values: as they are
        ((300_001, 699_999), {"k": (294_912, 704_511)}),
        ((310_000, 700_123), {"k": (294_912, 704_511)}),  # much the same, so exactly the same
        ((17, 999_983), {}),  # nothing is outside
        ((17, 500_000), {"k": (0, 507_903)}),
    ],
)
def test_wide_ranges_are_rounded(keys: tuple[int, int], within: dict[str, tuple[int, int]]) -> None:
    """Statements that differ in a number have to be compiled anew by Spark."""
    sources = {
        "big": Log((segment("a", 0, 999_999),), FIELDS),
        "small": Log((segment("d", *keys),), FIELDS),
    }
    relation = Join(BIG, SMALL, "semi", same())
    assert left_of(relation, sources) == (["a"], within)


def test_ranges_are_not_rounded_beyond_what_a_type_can_hold() -> None:
    least, most = -(2**63), 2**63 - 1
    sources = {
        "big": Log((segment("a", least, most),), FIELDS),
        "small": Log((segment("d", least + 5, 5),), FIELDS),
    }
    _, within = left_of(Join(BIG, SMALL, "semi", same()), sources)
    low, high = within["k"]
    assert low == least
    assert 5 <= high <= most


def test_what_the_step_itself_makes_reaches_as_far_as_its_inputs() -> None:
    made = Scan("made", "made", FIELDS)
    outputs = [Output("s", SMALL), Output("v", Join(BIG, made, "semi", same()))]
    sources = {"big": STORED, "small": CHANGE, "made": Made("s", FIELDS)}
    found = narrowed(outputs, sources)["big"]
    assert isinstance(found, Log)
    assert [s.path for s in found.segments] == ["b"]


def test_nothing_is_joined_with_no_change() -> None:
    relation = Join(BIG, Union((SMALL, SMALL)), "semi", same())
    assert left_of(relation, {"big": STORED, "small": Log((), FIELDS)}) == ([], {})


# -- in a warehouse

VIEWS = {
    "joined": "SELECT o.day, l.x FROM orders o JOIN lines l ON o.k = l.k",
    "sums": "SELECT o.day, o.k, sum(l.x) AS s FROM orders o LEFT JOIN lines l ON o.k = l.k "
    "GROUP BY o.day, o.k",
    "best": "SELECT k, max(x) AS m FROM lines GROUP BY k",
}
ROWS, PARTS = 20_000, 8


def filled(db: Warehouse, refresher: Warehouse) -> None:
    """Keys that grow with time, as they mostly do."""
    db.sql("CREATE TABLE orders (k BIGINT, day DATE); CREATE TABLE lines (k BIGINT, x BIGINT)")
    for part in range(PARTS):
        keys = range(part * ROWS, (part + 1) * ROWS)
        days = [date(2020, 1, 1 + part)] * ROWS
        db.append("orders", pa.table({"k": pa.array(keys, pa.int64()), "day": days}))
        db.append("lines", pa.table({"k": pa.array(keys, pa.int64()), "x": keys}))
    for name, query in VIEWS.items():
        db.sql(f"CREATE MATERIALIZED VIEW {name} AS {query}")
    refresher.refresh()


@pytest.mark.parametrize(
    "placement", ["local", pytest.param("spark", marks=[pytest.mark.spark, pytest.mark.proof])]
)
def test_a_change_of_the_newest_keys_leaves_older_segments_alone(
    placement: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    spark = request.getfixturevalue("spark") if placement == "spark" else None
    settings = {"compact": False, "spark": spark, "refresh": "incremental"}
    with (
        slackwater.connect(tmp_path / "w", placement="local", **settings) as db,
        slackwater.connect(tmp_path / "w", placement=placement, **settings) as refresher,
    ):
        filled(db, refresher)
        snapshot = db.catalog.snapshot()
        stored = [s for t in ("orders", "lines") for s in snapshot.segments(snapshot.find(t).id)]
        oldest = [s for s in stored if s.stats["k"][1] < (PARTS - 1) * ROWS]
        assert len(oldest) >= 2 * (PARTS - 1)
        for i, one in enumerate(oldest):
            (tmp_path / "w" / one.path).rename(tmp_path / f"away-{i}")
        newest = PARTS * ROWS
        db.append("orders", [{"k": newest, "day": date(2020, 2, 1)}])
        db.append("lines", [{"k": newest, "x": 1}, {"k": newest - 1, "x": 2}])
        reports = refresher.refresh()
        assert {r.mode for r in reports} == {"incremental"}  # nobody missed the files
        assert {r.engine for r in reports} == {placement}
        for i, one in enumerate(oldest):
            target = tmp_path / "w" / one.path
            target.parent.mkdir(parents=True, exist_ok=True)  # empty folders may be collected
            (tmp_path / f"away-{i}").rename(target)
        assert all(db.verify(view) for view in VIEWS)


def test_nulls_and_rows_taken_away_are_found(any_db: Warehouse) -> None:
    db = any_db
    db.sql("CREATE TABLE a (k BIGINT, x INT); CREATE TABLE b (k BIGINT, y INT)")
    db.sql("INSERT INTO a VALUES (1, 1), (NULL, 2)")
    db.sql("INSERT INTO a VALUES (50, 3)")
    db.sql("INSERT INTO a VALUES (100, 4)")
    db.sql("INSERT INTO b VALUES (1, 1), (50, 2), (NULL, 3)")
    db.sql("CREATE MATERIALIZED VIEW v AS SELECT a.k, x, y FROM a JOIN b ON a.k <=> b.k")
    db.sql("CREATE MATERIALIZED VIEW w AS SELECT k, x FROM a WHERE k NOT IN (SELECT k FROM b)")
    db.refresh()
    for change in (
        "INSERT INTO b VALUES (50, 9), (NULL, 8)",
        "DELETE FROM a WHERE k = 50",
        "DELETE FROM b WHERE k IS NULL",
        "INSERT INTO b VALUES (50, 7); INSERT INTO a VALUES (50, 5)",
    ):
        db.sql(change)
        db.refresh()
        assert all(db.verify(view) for view in ("v", "w"))
