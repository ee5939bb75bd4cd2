"""Types and nullability of every portable function, asked of Spark's analyzer."""

from __future__ import annotations

import itertools
import logging
from collections.abc import Iterator
from typing import Any

import pytest
from conftest import PROOF

from slackwater.algebra.expr import Column, Expr
from slackwater.algebra.functions import aggregate, call, cast, common_type, literal
from slackwater.algebra.functions.aggregates import AGGREGATES
from slackwater.algebra.functions.operators import OPERATORS
from slackwater.algebra.functions.scalars import SIGNATURES, Signature
from slackwater.engine import spark_sql
from slackwater.errors import SqlError
from slackwater.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    SMALLINT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    TINYINT,
    DataType,
    Decimal,
    schema_from_json,
)

COLUMN_TYPES: tuple[DataType, ...] = (
    BOOLEAN,
    TINYINT,
    SMALLINT,
    INT,
    BIGINT,
    FLOAT,
    DOUBLE,
    Decimal(5, 2),
    Decimal(12, 2),
    Decimal(20, 0),
    Decimal(38, 10),
    STRING,
    DATE,
    TIMESTAMP,
    TIMESTAMP_NTZ,
)
COLUMNS: tuple[Column, ...] = tuple(
    Column(t, nullable, 2 * i + nullable)
    for i, t in enumerate(COLUMN_TYPES)
    for nullable in (False, True)
)
NAMES = [f"c{c.index}" for c in COLUMNS]
LITERALS: tuple[Expr, ...] = (literal(7), literal(3_000_000_000), literal(None), literal("12"))
VALUES: tuple[Expr, ...] = (*COLUMNS, *LITERALS)
_TABLE = "typing_columns"


@pytest.fixture(scope="module")
def analyzer(spark: Any) -> Any:
    """Spark with an empty view of all column types."""
    from pyspark.sql.types import StructType

    fields = [
        {"name": n, "type": c.type.json, "nullable": c.nullable, "metadata": {}}
        for n, c in zip(NAMES, COLUMNS, strict=True)
    ]
    schema = StructType.fromJson({"type": "struct", "fields": fields})
    logging.getLogger("SQLQueryContextLogger").disabled = True  # refusals are expected here
    spark.createDataFrame([], schema).createOrReplaceTempView(_TABLE)
    return spark


def _analyze(spark: Any, texts: list[str]) -> list[tuple[DataType, bool] | None]:
    """Type and nullability of each text; None where Spark refuses. Halves what fails."""
    from pyspark.errors import PySparkException

    try:
        items = ", ".join(f"{t} AS x{i}" for i, t in enumerate(texts))
        schema = spark.sql(f"SELECT {items} FROM {_TABLE}").schema
        return [(f.type, f.nullable) for f in schema_from_json(schema.jsonValue())]
    except PySparkException:
        if len(texts) == 1:
            return [None]
        half = len(texts) // 2
        return _analyze(spark, texts[:half]) + _analyze(spark, texts[half:])


def _plain(args: tuple[Expr, ...]) -> list[str]:
    return [spark_sql.render(a, NAMES) for a in args]


def _as_written(name: str, args: tuple[Expr, ...]) -> str:
    """The SQL a user would write, without our casts."""
    from slackwater.algebra.expr import Call

    return spark_sql.render(Call(BOOLEAN, True, name, args), NAMES)


def _check(spark: Any, cases: list[tuple[str, Expr | None]]) -> list[str]:
    """Differences between our typing and Spark's. A None expression: we refused."""
    cases = _sampled(cases)
    accepted = [text for text, mine in cases if mine is not None]
    refused = [text for text, mine in cases if mine is None]
    known = dict(zip(accepted, _analyze(spark, accepted), strict=True))
    known |= {text: _analyze(spark, [text])[0] for text in refused}
    wanted = [known[text] for text, _ in cases]
    told = [
        (text, mine, spark_says) for (text, mine), spark_says in zip(cases, wanted, strict=True)
    ]
    wrong = []
    for text, mine, says in told:
        if mine is None or says is None:
            if (mine is None) != (says is None):
                wrong.append(
                    f"{text}: {'refused' if mine is None else mine.type.sql}, Spark {says}"
                )
        elif (mine.type, mine.nullable) != says:
            wrong.append(f"{text}: {mine.type.sql} {mine.nullable}, Spark {says[0].sql} {says[1]}")
    rendered = [(text, mine) for text, mine, says in told if mine is not None and says is not None]
    again = _analyze(spark, [spark_sql.render(mine, NAMES) for _, mine in rendered])
    for (text, mine), says in zip(rendered, again, strict=True):
        if says is None or says[0] != mine.type:
            wrong.append(f"{text} rendered {spark_sql.render(mine, NAMES)}: Spark {says}")
    return wrong


def _sampled(cases: list[tuple[str, Expr | None]]) -> list[tuple[str, Expr | None]]:
    """All that we accept, and some of what we refuse (Spark's refusals are slow)."""
    refused = [c for c in cases if c[1] is None]
    step = max(1, len(refused) // (50 if PROOF else 12))
    return [c for c in cases if c[1] is not None] + refused[::step]


def _typed(name: str, args: tuple[Expr, ...]) -> Iterator[tuple[str, Expr | None]]:
    """The case, unless it is Spark's alone."""
    try:
        mine = call(name, args)
    except SqlError:
        yield _as_written(name, args), None
    else:
        if mine is not None:
            yield _as_written(name, args), mine


BINARY = sorted(n for n, (least, most, _) in OPERATORS.items() if least <= 2 <= (most or 2))
UNARY = sorted(n for n, (least, most, _) in OPERATORS.items() if least == 1)


@pytest.mark.parametrize("name", BINARY)
def test_binary_operator(analyzer: Any, name: str) -> None:
    cases = [c for args in itertools.product(_values(), repeat=2) for c in _typed(name, args)]
    assert _check(analyzer, cases) == []


def _values() -> list[Expr]:
    """Each type once, nullable for every other, and the literals."""
    return [c for i, c in enumerate(COLUMNS) if i % 4 in (0, 3)] + list(LITERALS)


@pytest.mark.parametrize("name", [*UNARY, "round", "bround", "ceil", "floor", "isnan", "to_date"])
def test_unary_operator(analyzer: Any, name: str) -> None:
    cases = [c for arg in VALUES for c in _typed(name, (arg,))]
    assert _check(analyzer, cases) == []


@pytest.mark.parametrize("name", sorted(SIGNATURES))
def test_function(analyzer: Any, name: str) -> None:
    """Declared types, nullable or not, and every other type in the place of each."""
    wanted = SIGNATURES[name]
    cases: list[tuple[str, Expr | None]] = []
    for nullable in (0, 1):
        usual = [_argument(wanted, i, t, nullable) for i, t in enumerate(wanted.args)]
        cases += _typed(name, tuple(usual))
        for i, arg in itertools.product(range(len(usual)), VALUES):
            if i != wanted.constant:
                cases += _typed(name, (*usual[:i], arg, *usual[i + 1 :]))
    assert _check(analyzer, cases) == []


def _argument(wanted: Signature, place: int, t: DataType, nullable: int) -> Expr:
    if place == wanted.constant:
        return literal(wanted.values[0] if wanted.values else "ab")
    return next(c for c in COLUMNS if c.type == t and c.nullable == bool(nullable))


@pytest.mark.parametrize("name", sorted(AGGREGATES))
def test_aggregate(analyzer: Any, name: str) -> None:
    cases: list[tuple[str, Expr | None]] = []
    for arg in VALUES:
        written = f"{name}({spark_sql.render(arg, NAMES)})"
        try:
            mine = aggregate(name, [arg])
        except SqlError:
            cases.append((written, None))
        else:
            cases += [(written, mine)] if mine is not None else []
    assert _check(analyzer, cases) == []


def test_casts(analyzer: Any) -> None:
    cases: list[tuple[str, Expr | None]] = []
    for arg, target, safe in itertools.product(VALUES, COLUMN_TYPES, (False, True)):
        verb = "TRY_CAST" if safe else "CAST"
        written = f"{verb}({spark_sql.render(arg, NAMES)} AS {target.sql})"
        try:
            mine = cast(arg, target, safe)
        except SqlError:
            cases.append((written, None))
        else:
            cases += [(written, mine)] if mine is not None else []
    assert _check(analyzer, cases) == []


def test_common_type_is_the_type_of_a_union(analyzer: Any) -> None:
    wrong = []
    for a, b in itertools.combinations(_values(), 2):
        x, y = spark_sql.render(a, NAMES), spark_sql.render(b, NAMES)
        mine = common_type([a.type, b.type])
        says = _analyze(analyzer, [f"coalesce({x}, {y})"])[0] if mine is not None else None
        if says is not None and says[0] != mine:
            wrong.append(f"{x}, {y}: {mine}, Spark {says[0]}")
    assert wrong == []


@pytest.mark.parametrize("args", [3, 4, 5])
def test_conditionals_of_many_types(analyzer: Any, args: int) -> None:
    condition = next(c for c in COLUMNS if c.type == BOOLEAN)
    cases: list[tuple[str, Expr | None]] = []
    for start in range(len(VALUES) - args):
        values = VALUES[start : start + args]
        cases += _typed("coalesce", values)
        cases += _typed("case", (condition, values[0], condition, values[1], values[2]))
    assert _check(analyzer, cases) == []
