"""Variance and standard deviation of exact numbers, kept as sums."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import slackwater
from slackwater.algebra.relation import Aggregate, Relation, Scan
from slackwater.engine.compare import compare
from slackwater.engine.local import LocalEngine
from slackwater.sql.bind import bind, context
from slackwater.tvr.delta import Deltas
from slackwater.tvr.normal import normalize
from slackwater.tvr.states.sums import SumState, is_invertible
from slackwater.tvr.time import CHANGE, NEW, NOW, OLD
from slackwater.types import INT, Field, parse_type
from tests import test_laws as laws
from tests.conftest import PROOF
from tests.traps import ENGINES, Trap, opened

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NAMES = ("var_pop", "var_samp", "stddev_pop", "stddev_samp")
ALL = ", ".join(f"{name}(x) AS {name}" for name in NAMES)


def aggregate(type_name: str, select: str = ALL) -> Aggregate:
    """The spreads of a column of some type, by group."""
    schema = (Field("g", INT), Field("x", parse_type(type_name)))

    def lookup(name: str) -> Relation | None:
        return Scan("t", "t", schema) if name == "t" else None

    oracle: Any = None  # portable
    query = bind(f"SELECT g, {select} FROM t GROUP BY g", context(lookup, lambda: ["t"], oracle))
    (found,) = (n for n in normalize(query).walk() if isinstance(n, Aggregate))
    return found


@pytest.mark.parametrize(
    ("type_name", "kept"),
    [
        ("TINYINT", True),
        ("SMALLINT", True),
        ("INT", True),
        ("BIGINT", False),  # squares of more than 38 digits
        ("DECIMAL(12,2)", True),
        ("DECIMAL(14,3)", True),
        ("DECIMAL(15,2)", False),  # too many digits for many rows
        ("DECIMAL(10,4)", False),  # products are rounded
        ("DOUBLE", False),
        ("FLOAT", False),
    ],
)
def test_spreads_are_kept_as_sums_where_38_digits_suffice(type_name: str, kept: bool) -> None:
    assert is_invertible(aggregate(type_name)) == kept


def test_a_sum_of_the_same_numbers_is_kept_once() -> None:
    alone, beside = (
        SumState(aggregate("DECIMAL(12,2)", select), "s").partials
        for select in ("var_pop(x) AS a", "var_pop(x) AS a, stddev(x) AS b, avg(x) AS c")
    )
    assert beside == alone


# -- against fractions


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalEngine]:
    made = LocalEngine(tmp_path_factory.mktemp("spread"))
    yield made
    made.close()


def expected(values: list[Fraction], name: str) -> float | None:
    """The spread, computed exactly."""
    n = len(values)
    degrees = n - 1 if name.endswith("samp") else n
    if degrees < 1:
        return None
    mean = sum(values, Fraction()) / n
    variance = sum(((v - mean) ** 2 for v in values), Fraction()) / degrees
    return float(variance) if name.startswith("var") else math.sqrt(variance)


def numbers(rng: random.Random, type_name: str, scale: int, largest: int) -> list[Any]:
    """Numbers that lie near each other or not, small or near the limits of their type."""
    middle = rng.choice([0, largest // 3, largest - 50, -largest + 50])
    spread = rng.choice([0, 1, 40, largest // 2])
    found: list[Any] = [None] * rng.randint(0, 2)
    for _ in range(rng.randint(0, 12)):
        unscaled = max(-largest, min(largest, middle + rng.randint(-spread, spread)))
        found.append(Decimal(unscaled).scaleb(-scale) if scale else unscaled)
    return found


TYPES = [
    ("TINYINT", 0, 2**7 - 1),
    ("INT", 0, 2**31 - 1),
    ("DECIMAL(12,2)", 2, 10**12 - 1),
    ("DECIMAL(14,3)", 3, 10**14 - 1),
    ("DECIMAL(14,0)", 0, 10**14 - 1),
]


@pytest.mark.parametrize(("type_name", "scale", "largest"), TYPES)
def test_spreads_from_sums_are_exact(
    type_name: str, scale: int, largest: int, engine: LocalEngine, rng: random.Random
) -> None:
    """After rows have come and gone, as close to the truth as a double can be."""
    state = SumState(aggregate(type_name), "s")
    for _ in range(100 if PROOF else 25):
        before = {g: numbers(rng, type_name, scale, largest) for g in range(3)}
        after = {g: numbers(rng, type_name, scale, largest) + before[g][2:] for g in range(3)}
        found = spreads(engine, state, before, after)
        assert found.keys() == {g for g in after if after[g]}
        for g, values in found.items():
            exact = [Fraction(v) for v in after[g] if v is not None]
            for name, value in zip(NAMES, values, strict=True):
                wanted = expected(exact, name)
                if wanted is None:
                    assert value is None
                else:
                    assert math.isclose(value, wanted, rel_tol=1e-12), (g, name, exact)


def spreads(
    engine: LocalEngine, state: SumState, before: dict[int, list[Any]], after: dict[int, list[Any]]
) -> dict[int, tuple[Any, ...]]:
    """The spreads of each group, from sums that were changed from some numbers to others."""
    fields = state.node.input.schema
    old = Counter((g, v) for g, values in before.items() for v in values)
    new = Counter((g, v) for g, values in after.items() for v in values)
    change = Counter(new)
    change.subtract(old)
    given = {
        "t" + NOW: laws.log(old, fields),
        "t" + CHANGE: laws.log(Counter({k: n for k, n in change.items() if n}), fields),
    }
    sums = laws.evaluate(engine, state.initial(Deltas(frozenset(), frozenset("t"))), given)
    more = laws.evaluate(engine, state.change(Deltas(frozenset("t"), frozenset("t"))), given)
    laws.keep(given, state, sums, more)
    given[state.id + OLD] = laws.stored(sums, state)
    rows = laws.evaluate(engine, state.rows(NEW), given)
    assert rows == total_rows(engine, state, given)
    return {row[0]: row[1:] for row in rows}


def total_rows(engine: LocalEngine, state: SumState, given: dict[str, pa.Table]) -> laws.Rows:
    """The same from the old rows and their change."""
    before = laws.evaluate(engine, state.rows(OLD), given)
    weighted: laws.Rows = Counter({(*row, 1): n for row, n in before.items()})
    return laws.total(weighted, laws.evaluate(engine, state.delta(Deltas()), given))


# -- traps


@pytest.fixture(params=ENGINES)
def trap(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Trap]:
    for trap in opened(request, tmp_path):
        trap.db.sql("CREATE TABLE t (g INT, x INT, d DECIMAL(12,2))")
        yield trap


def test_spreads_of_one_row_of_none_and_of_nulls(trap: Trap) -> None:
    trap.view(f"SELECT g, {ALL} FROM t GROUP BY g")
    assert trap.after("INSERT INTO t VALUES (1, 7, 0), (2, NULL, 0)") == [
        (1, 0.0, None, 0.0, None),
        (2, None, None, None, None),
    ]
    assert trap.reports[0].mode == "incremental"
    assert trap.after("INSERT INTO t VALUES (1, 9, 0)")[0][1:3] == (1.0, 2.0)
    assert trap.after("DELETE FROM t WHERE x = 7") == [
        (1, 0.0, None, 0.0, None),
        (2, None, None, None, None),
    ]
    assert trap.after("DELETE FROM t") == []


def test_spread_of_an_empty_table(trap: Trap) -> None:
    assert trap.view(f"SELECT {ALL} FROM t") == [(None, None, None, None)]
    assert trap.after("INSERT INTO t VALUES (1, 3, 0), (1, 5, 0)")[0][:2] == (1.0, 2.0)
    assert trap.after("DELETE FROM t") == [(None, None, None, None)]


def test_spread_far_from_zero(trap: Trap) -> None:
    """n·Σx² and (Σx)² agree in all digits that a double has."""
    trap.view("SELECT g, var_pop(x) AS x, stddev_samp(d) AS d FROM t GROUP BY g")
    found = trap.after(
        "INSERT INTO t VALUES (1, 1000000001, 999.01), (1, 1000000002, 999.02), "
        "(1, 1000000003, 999.03)"
    )
    assert math.isclose(found[0][1], 2 / 3, rel_tol=1e-9)
    assert math.isclose(found[0][2], 0.01, rel_tol=1e-9)


def test_spread_with_conditions_weights_and_other_sums(trap: Trap) -> None:
    trap.view(
        "SELECT g, stddev(d) FILTER (WHERE x > 1) AS s, avg(d) AS m, sum(d) AS n, count(x) AS k "
        "FROM t GROUP BY g HAVING variance(x) IS NULL OR variance(x) < 100"
    )
    trap.after_rows("t", [(1, 1, Decimal("2.50"), 3), (1, 2, Decimal("7.25"), 2)])
    trap.after_rows("t", [(1, 1, Decimal("2.50"), -2), (1, 50, Decimal("-1.75"), 1)])
    trap.after("DELETE FROM t WHERE x = 50")
    trap.after("UPDATE t SET d = d * 3 WHERE x = 2")
    assert [r.mode for r in trap.reports] == ["incremental"]


# -- against Spark

MANY = [(i % 3, 1_000_000 + i % 17, Decimal(5_000_000 + i * i % 29) / 100) for i in range(500)]
"""A mean that is far greater than the spread, as far as Spark itself computes it to 1e-9."""


@pytest.mark.proof
def test_spreads_agree_with_spark(spark: SparkSession, tmp_path: Path) -> None:
    query = f"SELECT g, {ALL}, {ALL.replace('x', 'd').replace('AS ', 'AS d_')} FROM t GROUP BY g"
    names = ("g", "x", "d")
    with slackwater.connect(tmp_path / "w", placement="local", refresh="incremental") as db:
        db.sql("CREATE TABLE t (g INT, x INT, d DECIMAL(12,2))")
        db.sql(f"CREATE MATERIALIZED VIEW v AS {query}")
        db.append("t", [dict(zip(names, row, strict=True)) for row in MANY[:300]])
        db.refresh()
        db.append("t", [dict(zip(names, row, strict=True)) for row in MANY[300:]])
        db.sql("DELETE FROM t WHERE x = 1000003")
        assert [r.mode for r in db.refresh()] == ["incremental"]
        left = [row for row in MANY if row[1] != 1_000_003]
        frame = spark.createDataFrame(left, "g INT, x INT, d DECIMAL(12,2)")
        answer = spark.sql(query.replace("FROM t", "FROM {t}"), t=frame).toArrow()
        difference = compare(db.sql("SELECT * FROM v").to_arrow(), answer)
        assert difference.equal, str(difference)
