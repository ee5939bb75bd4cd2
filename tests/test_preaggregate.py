"""Changes that are summed up before they are joined: the same sums, from fewer rows."""

from __future__ import annotations

import random
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import slackwater
from slackwater import UserError, Warehouse
from slackwater.algebra.relation import Aggregate, Join, Relation
from slackwater.engine.local import LocalEngine
from slackwater.tvr import preaggregate
from slackwater.tvr.delta import Deltas
from slackwater.tvr.preaggregate import Pays, always, is_worthwhile, never
from slackwater.tvr.states import buffer
from slackwater.tvr.states.sums import SumState
from slackwater.work import preaggregation
from tests import test_laws as laws
from tests.conftest import PROOF, SEED
from tests.stream_script import script
from tests.streams import Failure, NoSpark, make_stream, opening, play

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SUMMED_FIRST = "merge_preaggregated_sums"
STREAMS = 16 if PROOF else 3

JOINS = {
    "values of either side": "SELECT r.s, SUM(r.b) AS n, SUM(t.c) AS m, COUNT(*) AS k "
    "FROM r JOIN t ON r.a = t.a GROUP BY r.s",
    "counts of either side": "SELECT t.c, COUNT(r.b) AS n, COUNT(t.a) AS m, COUNT(r.s, t.c) AS k "
    "FROM r JOIN t ON r.a = t.a GROUP BY t.c",
    "values of both sides": "SELECT r.s, SUM(t.c * r.b) AS n FROM r JOIN t ON r.a = t.a "
    "GROUP BY r.s",
    "averages": "SELECT t.c, AVG(r.b) AS n, AVG(CAST(r.b AS DECIMAL(7, 2))) AS m "
    "FROM r JOIN t ON r.a = t.a GROUP BY t.c",
    "exact products": "SELECT t.c, SUM(CAST(r.b AS DECIMAL(7, 2)) * (1 - CAST(r.a AS DECIMAL(5))))"
    " AS n FROM r JOIN t ON r.a = t.a GROUP BY t.c",
    "many decimal places": "SELECT t.c, SUM(CAST(r.b AS DECIMAL(12, 9)) + 0.000000001) AS n "
    "FROM r JOIN t ON r.a = t.a GROUP BY t.c",
    "products that may raise": "SELECT t.c, SUM(r.b * r.b) AS n FROM r JOIN t ON r.a = t.a "
    "GROUP BY t.c",
    "conditions": "SELECT t.c, SUM(r.b) FILTER (WHERE r.s = 'x') AS n, "
    "COUNT(*) FILTER (WHERE t.c > r.b) AS k, SUM(t.c) FILTER (WHERE r.s IS NULL) AS m "
    "FROM r JOIN t ON r.a = t.a GROUP BY t.c",
    "a key that is computed": "SELECT CASE WHEN r.b > 2 THEN 'high' ELSE r.s END AS g, "
    "SUM(t.c) AS n FROM r JOIN t ON r.a = t.a GROUP BY 1",
    "no groups": "SELECT SUM(r.b) AS n, COUNT(*) AS k FROM r JOIN t ON r.a = t.a",
    "a filter over both": "SELECT r.s, SUM(r.b) AS n FROM r JOIN t ON r.a = t.a "
    "WHERE r.b + t.c > 3 GROUP BY r.s",
    "a filter over one": "SELECT t.c, SUM(r.b) AS n FROM r JOIN t ON r.a = t.a "
    "WHERE r.s <> 'x' AND t.c < 3 GROUP BY t.c",
    "three inputs": "SELECT u.d, SUM(r.b) AS n, SUM(t.c) AS m FROM r JOIN t ON r.a = t.a "
    "JOIN u ON t.c = u.c AND u.b = r.b GROUP BY u.d",
    "the same twice": "SELECT x.s, SUM(y.b) AS n, SUM(x.a) AS m FROM r x JOIN r y ON x.b = y.b "
    "GROUP BY x.s",
    "the same three times": "SELECT x.a, SUM(z.c) AS n FROM t x JOIN t y ON x.a = y.c "
    "JOIN t z ON y.a = z.c GROUP BY x.a",
    "an inequality": "SELECT r.s, SUM(t.c) AS n, SUM(r.b) AS m FROM r JOIN t ON r.a < t.a "
    "GROUP BY r.s",
    "all with all": "SELECT SUM(r.b) AS n, SUM(t.c) AS m FROM r CROSS JOIN t",
    "a left join": "SELECT r.s, SUM(r.b) AS n, SUM(t.c) AS m, COUNT(t.c) AS k "
    "FROM r LEFT JOIN t ON r.a = t.a GROUP BY r.s",
    "a semi join": "SELECT s, SUM(b) AS n FROM r WHERE EXISTS "
    "(SELECT 1 FROM t WHERE t.a = r.a AND t.c <> r.b) GROUP BY s",
    "an anti join": "SELECT s, SUM(b) AS n FROM r WHERE NOT EXISTS "
    "(SELECT 1 FROM t WHERE t.a = r.a) GROUP BY s",
    "not in": "SELECT s, SUM(a) AS n FROM r WHERE b NOT IN (SELECT c FROM t) GROUP BY s",
    "a join of a join": "SELECT u.d, SUM(x.b) AS n FROM (SELECT r.b, t.c + 1 AS c FROM r "
    "JOIN t ON r.a = t.a) x JOIN u ON u.c = x.c GROUP BY u.d",
    "a join of sums": "SELECT t.c, SUM(x.n) AS n FROM t JOIN "
    "(SELECT a, SUM(b) AS n FROM r GROUP BY a) x ON x.a = t.a GROUP BY t.c",
    "a union of joins": "SELECT g, SUM(v) AS n FROM (SELECT r.s AS g, t.c AS v FROM r JOIN t "
    "ON r.a = t.a UNION ALL SELECT r.s, r.b FROM r JOIN u ON r.b = u.b) GROUP BY g",
    "sums of sums": "SELECT n, COUNT(*) AS k FROM (SELECT r.s, SUM(r.b) AS n FROM r JOIN t "
    "ON r.a = t.a GROUP BY r.s) GROUP BY n",
    "rollup": "SELECT r.s, t.c, SUM(r.b) AS n FROM r JOIN t ON r.a = t.a "
    "GROUP BY ROLLUP (r.s, t.c)",
    "a join of a union": "SELECT t.c, SUM(x.b) AS n FROM (SELECT a, b FROM r UNION ALL "
    "SELECT b, d FROM u) x JOIN t ON x.a = t.a GROUP BY t.c",
}
"""Aggregates of joins, over the tables of `test_laws`."""
NEVER_SUMMED_FIRST = {"rollup"}
"""Each row is repeated between the join and the sums."""


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalEngine]:
    made = LocalEngine(tmp_path_factory.mktemp("preaggregate"))
    yield made
    made.close()


def assert_laws(
    engine: LocalEngine, rng: random.Random, text: str, pays: Pays, rounds: int
) -> set[str]:
    """The query under random changes equals recompute; the laws that its operators went by."""
    relation, found = laws.bound(text), set()
    for _ in range(rounds):
        given, changed = laws.random_tables(rng)
        deltas = Deltas(changed, frozenset(laws.SCHEMAS), laws.chosen(relation), pays)
        laws.change_states(engine, deltas, given)
        laws.assert_equals_recompute(engine, deltas, relation, given)
        found |= {note.law for note in deltas.notes.values()}
    return found


@pytest.mark.parametrize("name", JOINS)
def test_sums_of_a_join_equal_recompute(name: str, engine: LocalEngine, rng: random.Random) -> None:
    found = assert_laws(engine, rng, JOINS[name], always, 12)
    assert (SUMMED_FIRST in found) == (name not in NEVER_SUMMED_FIRST)


@pytest.mark.parametrize("name", JOINS)
def test_terms_that_are_summed_first_and_others_add_up(
    name: str, engine: LocalEngine, rng: random.Random
) -> None:
    assert_laws(engine, rng, JOINS[name], lambda *_: rng.random() < 0.5, 8 if PROOF else 3)


@pytest.mark.parametrize(
    "name", [n for n in laws.QUERIES if laws.chosen(laws.bound(laws.QUERIES[n]))]
)
def test_every_other_law_holds_with_it(
    name: str, engine: LocalEngine, rng: random.Random, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(buffer, "SPARE", 0)
    assert_laws(engine, rng, laws.QUERIES[name], always, 6)


def test_left_alone_where_it_does_not_pay(engine: LocalEngine, rng: random.Random) -> None:
    for text in JOINS.values():
        assert SUMMED_FIRST not in assert_laws(engine, rng, text, never, 1)


# -- what is summed below the join


def changed_sums(text: str, *changed: str) -> tuple[Relation, list[tuple[Relation, Any]]]:
    """How the sums of a query change, and what was asked about the changes of tables."""
    relation, asked = laws.bound(text), []

    def pays(state: str, change: Relation, keys: Any) -> bool:
        asked.append((change, keys))
        return True

    states = laws.chosen(relation)
    deltas = Deltas(frozenset(changed), frozenset(laws.SCHEMAS), states, pays)
    (state,) = (s for s in states.values() if isinstance(s, SumState))
    return state.change(deltas), asked


def below_joins(relation: Relation) -> list[Aggregate]:
    """The aggregates that are joined."""
    joins = [node for node in relation.walk() if isinstance(node, Join)]
    return [n for join in joins for n in join.left.walk() if isinstance(n, Aggregate)]


def test_a_value_of_the_change_alone_is_summed_below() -> None:
    change, _ = changed_sums(
        "SELECT t.c, SUM(r.b) AS n FROM r JOIN t ON r.a = t.a GROUP BY t.c", "r"
    )
    (below,) = below_joins(change)
    assert len(below.keys) == 1  # r.a
    assert len(below.aggs) == 3  # Σ b, how many b, how many rows


def test_a_value_of_both_sides_is_summed_above() -> None:
    text = "SELECT t.c, SUM(r.b * t.c) AS n FROM r JOIN t ON r.a = t.a GROUP BY t.c"
    (below,) = below_joins(changed_sums(text, "r")[0])
    assert len(below.keys) == 2  # r.a, r.b
    assert len(below.aggs) == 1  # how many rows


def test_what_may_raise_stays_above() -> None:
    text = "SELECT t.c, SUM(r.b * r.b) AS n FROM r JOIN t ON r.a = t.a GROUP BY t.c"
    (below,) = below_joins(changed_sums(text, "r")[0])
    assert len(below.keys) == 2  # r.a, r.b


def test_what_may_raise_between_joins_keeps_its_place() -> None:
    text = (
        "SELECT u.d, SUM(x.v) AS n FROM (SELECT r.b * r.b AS v, t.c FROM r JOIN t ON r.a = t.a) x "
        "JOIN u ON u.c = x.c GROUP BY u.d"
    )
    change, asked = changed_sums(text, "r")
    assert not asked
    assert not below_joins(change)


def test_doubles_are_no_keys() -> None:
    """0.0 and -0.0 are one group and two values."""
    text = (
        "SELECT r.s, SUM(t.c) AS n FROM (SELECT s, CAST(b AS DOUBLE) AS b FROM r) r "
        "JOIN t ON r.b < t.a GROUP BY r.s"
    )
    change, asked = changed_sums(text, "r")
    assert not asked
    assert not below_joins(change)


def test_each_change_is_asked_about_by_the_columns_that_are_read_later() -> None:
    text = (
        "SELECT u.d, SUM(r.b) AS n FROM r JOIN t ON r.a = t.a JOIN u ON u.c = t.c "
        "WHERE r.s = 'x' GROUP BY u.d"
    )
    _, asked = changed_sums(text, "r", "t", "u")
    assert [len(keys) for _, keys in asked] == [1, 2, 2]  # r.a; t.a, t.c; u.c, u.d


# -- when


@pytest.mark.parametrize(
    ("rows", "groups", "matches", "worthwhile"),
    [
        (0, 0, 0, False),
        (100_000, 100, 80, True),
        (100_000, 100, 1, False),  # joined by a key of the other side
        (100_000, 95_000, 80, False),  # hardly anything equal
        (100_000, 50_000, 80, True),
        (1_000, 10, 80, False),  # too few to look at
        (1_000, 10, 1_000, True),
    ],
)
def test_it_is_worthwhile_for_many_rows_in_few_groups_with_many_matches(
    rows: int, groups: int, matches: float, worthwhile: bool
) -> None:
    fixed = preaggregation.FIXED_ROWS["local"]
    assert is_worthwhile(rows, groups, matches, fixed) == worthwhile


def sold(shops: int, rows: int, odd: int = 1) -> pa.Table:
    """Sales in so many shops; one row of `odd` is odd."""
    return pa.table(
        {
            "shop": pa.array([i % shops for i in range(rows)], pa.int64()),
            "price": pa.array([Decimal(i % 500) / 100 for i in range(rows)], pa.decimal128(9, 2)),
            "kind": ["even" if i % odd else "odd" for i in range(rows)],
        }
    )


CLERKS = "SELECT c.town, SUM(x.price) AS n FROM sales x JOIN clerks c ON x.shop = c.shop"


@pytest.fixture
def shops(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Warehouse]:
    """Sales in shops with twenty clerks each; there is always time to look."""
    monkeypatch.setattr(preaggregation, "FIXED_ROWS", {"local": 0})
    with slackwater.connect(
        tmp_path / "w", placement="local", spark=NoSpark(), refresh="incremental"
    ) as db:
        db.sql("CREATE TABLE shops (shop BIGINT, town STRING)")
        db.sql("CREATE TABLE clerks (shop BIGINT, town STRING)")
        db.sql("CREATE TABLE sales (shop BIGINT, price DECIMAL(9,2), kind STRING)")
        db.append("shops", pa.table({"shop": range(100), "town": ["here"] * 100}))
        towns = [f"town {i % 7}" for i in range(2000)]
        db.append("clerks", pa.table({"shop": [i % 100 for i in range(2000)], "town": towns}))
        db.append("sales", sold(100, 3000))
        yield db


def laws_of(db: Warehouse, view: str = "v") -> set[str]:
    """The laws that a refresh went by; the view then equals its query."""
    (report,) = db.refresh(view)
    assert report.mode == "incremental"
    assert db.verify(view).equal, str(db.verify(view))
    return {operator["law"] for operator in report.operators}


def created(db: Warehouse, query: str) -> None:
    db.sql(f"CREATE MATERIALIZED VIEW v AS {query} GROUP BY 1")
    db.refresh()


def unasked(*_: Any) -> Any:
    raise AssertionError("this need not be looked at")


@pytest.mark.parametrize(("keys", "summed"), [(10, True), (900, False)])
def test_the_change_itself_tells_whether_it_shrinks(
    shops: Warehouse, keys: int, summed: bool
) -> None:
    created(shops, CLERKS)
    shops.append("sales", sold(keys, 1000))
    assert (SUMMED_FIRST in laws_of(shops)) == summed


def test_a_join_with_a_key_is_not_looked_at(
    shops: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(preaggregation.Preaggregation, "_counted", unasked)
    created(shops, CLERKS.replace("clerks", "shops"))
    shops.append("sales", sold(10, 1000))
    assert SUMMED_FIRST not in laws_of(shops)


def test_a_small_change_is_not_looked_at(shops: Warehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preaggregation, "FIXED_ROWS", {"local": 100_000})
    monkeypatch.setattr(preaggregation.Preaggregation, "_counted", unasked)
    created(shops, CLERKS)
    shops.append("sales", sold(1, 1000))
    assert SUMMED_FIRST not in laws_of(shops)


def test_rows_that_a_filter_drops_do_not_count(shops: Warehouse) -> None:
    created(shops, f"{CLERKS} WHERE x.kind = 'odd'")
    shops.append("sales", sold(100, 1000, odd=10))
    assert SUMMED_FIRST in laws_of(shops)
    shops.append("sales", sold(100, 1000, odd=100))
    assert SUMMED_FIRST in laws_of(shops)
    shops.append("sales", sold(101, 1000, odd=100))
    assert SUMMED_FIRST not in laws_of(shops)


def test_only_the_first_rows_are_counted(shops: Warehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preaggregation, "SAMPLE_ROWS", 20)
    created(shops, CLERKS)
    shops.append("sales", sold(50, 1000))
    assert SUMMED_FIRST not in laws_of(shops)


def test_how_many_rows_a_join_gives_is_remembered(
    shops: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    created(shops, CLERKS)
    shops.append("sales", sold(10, 1000))
    assert SUMMED_FIRST in laws_of(shops)
    monkeypatch.setattr(preaggregation.Preaggregation, "_joined", unasked)
    shops.append("sales", sold(10, 1000))
    assert SUMMED_FIRST in laws_of(shops)


def test_rows_of_other_peoples_files_are_known_by_their_footers(
    shops: Warehouse, tmp_path: Path
) -> None:
    folder = tmp_path / "landing"
    folder.mkdir()
    pq.write_table(sold(100, 3000), folder / "a.parquet")
    shops.sql(f"CREATE TABLE landed USING parquet OPTIONS (path '{folder}')")
    created(shops, CLERKS.replace("sales", "landed"))
    pq.write_table(sold(10, 1000), folder / "b.parquet")
    assert SUMMED_FIRST in laws_of(shops)
    pq.write_table(sold(1000, 1000), folder / "c.parquet")
    assert SUMMED_FIRST not in laws_of(shops)


def test_a_row_that_the_join_drops_cannot_raise(shops: Warehouse, tmp_path: Path) -> None:
    shops.sql("TRUNCATE TABLE sales")
    shops.append("sales", [{"shop": 1, "price": Decimal(1), "kind": "7"}])
    created(shops, CLERKS.replace("x.price", "CAST(x.kind AS INT)"))
    rows = [{"shop": i % 3, "price": Decimal(1), "kind": str(i % 3)} for i in range(200)]
    rows += [{"shop": -1, "price": Decimal(1), "kind": "none"}] * 200
    shops.append("sales", rows)
    settings = {
        "placement": "local",
        "spark": NoSpark(),
        "preaggregation": "on",
        "refresh": "incremental",
    }
    with slackwater.connect(tmp_path / "w", **settings) as db:
        assert SUMMED_FIRST in laws_of(db)


def test_the_setting_is_checked(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="preaggregation = 'maybe' is not known"):
        slackwater.connect(tmp_path, preaggregation="maybe")


# -- streams


def play_with(seed: str, **settings: Any) -> None:
    stream = make_stream(seed)
    try:
        outcome = play(stream, opening(placement="local", spark=NoSpark(), **settings))
    except Failure as failure:
        pytest.fail(f"seed {seed!r}: {failure}\n\n{script(stream)}", pytrace=False)
    assert outcome.compared


@pytest.mark.parametrize("seed", [f"{SEED}-preaggregated-{i}" for i in range(STREAMS)])
def test_views_equal_recompute(seed: str) -> None:
    play_with(seed, preaggregation="on")


@pytest.mark.parametrize("seed", [f"{SEED}-auto-{i}" for i in range(STREAMS // 3)])
def test_views_equal_recompute_where_it_is_chosen(
    seed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(preaggregate, "SUMMING_A_ROW", 0.1)
    monkeypatch.setattr(preaggregation, "FIXED_ROWS", {"local": 0})
    play_with(seed)


@pytest.mark.proof
@pytest.mark.parametrize(
    "seed", [f"{SEED}-preaggregated-spark-{i}" for i in range(max(1, STREAMS // 8))]
)
def test_views_equal_recompute_on_spark(seed: str, spark: SparkSession) -> None:
    stream = make_stream(seed, 4, batches=2, spark=True)
    try:
        play(stream, opening(placement="spark", spark=spark, preaggregation="on"))
    except Failure as failure:
        pytest.fail(f"seed {seed!r}: {failure}\n\n{script(stream, 'spark')}", pytrace=False)
