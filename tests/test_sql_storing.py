"""Values into columns: what is stored, what overflows and what is refused, as Spark's INSERT
into a Parquet table has it, by every way that rows come into a table."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import date
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import PySparkException

from slackwater.algebra.coercion import literal
from slackwater.algebra.expr import Cast, Column
from slackwater.algebra.functions import store_assign
from slackwater.engine.spark_errors import translate
from slackwater.errors import SlackwaterError, UserError
from slackwater.types import BIGINT, DOUBLE, FLOAT, INT, STRING, DataType, parse_type
from tests.conform import sampled
from tests.engines import on_both

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from slackwater import Warehouse

OVERFLOW = "CAST_OVERFLOW_IN_TABLE_INSERT"


@pytest.fixture
def parquet(spark: SparkSession) -> Iterator[Callable[[str, str], SlackwaterError | Any]]:
    """Spark's own INSERT of a value into a column: the value stored, or the error as ours."""

    def store(target: str, value: str) -> SlackwaterError | Any:
        spark.sql(f"CREATE TABLE stored (x {target}) USING parquet")
        try:
            spark.sql(f"INSERT INTO stored SELECT {value} AS x")
        except PySparkException as error:
            return translate(error)
        return spark.table("stored").toArrow().column("x").to_pylist()[0]

    yield store
    spark.sql("DROP TABLE IF EXISTS stored")


# -- overflow

WAYS: dict[str, Callable[[Warehouse], Any]] = {
    "INSERT": lambda db: db.sql("INSERT INTO b SELECT x FROM a"),
    "INSERT BY NAME": lambda db: db.sql("INSERT INTO b BY NAME SELECT x FROM a"),
    "UPDATE": lambda db: db.sql("UPDATE b SET x = (SELECT x FROM a)"),
    "MERGE, update": lambda db: db.sql(
        "MERGE INTO b USING a ON true WHEN MATCHED THEN UPDATE SET x = a.x"
    ),
    "MERGE, insert": lambda db: db.sql(
        "MERGE INTO b USING a ON b.x = a.x WHEN NOT MATCHED THEN INSERT *"
    ),
    "append": lambda db: db.append("b", db.sql("SELECT x FROM a").to_arrow()),
    "apply": lambda db: db.apply(
        "b", db.sql("SELECT x, 1 AS w FROM a").to_arrow(), weight_column="w"
    ),
}
TOO_LARGE = {
    "SMALLINT into TINYINT": "200S",
    "INT into TINYINT": "300",
    "INT into SMALLINT": "-40000",
    "BIGINT into TINYINT": "3000000000L",
    "BIGINT into INT": "3000000000L",
    "FLOAT into INT": "1e20F",
    "DOUBLE into TINYINT": "300D",
    "DOUBLE into INT": "1e20D",
    "DOUBLE into BIGINT": "1e30D",
    "DECIMAL(4,1) into TINYINT": "300.5BD",
    "DECIMAL(11,0) into INT": "99999999999BD",
    "DECIMAL(19,0) into BIGINT": "9999999999999999999BD",  # Spark takes it for a widening cast
    "DECIMAL(20,0) into BIGINT": "99999999999999999999BD",
    "DECIMAL(6,2) into DECIMAL(4,2)": "1234.56BD",
    "DECIMAL(6,2) into DECIMAL(5,1)": "9999.95BD",
    "TINYINT into DECIMAL(3,2)": "100Y",
    "INT into DECIMAL(3,2)": "100",
    "BIGINT into DECIMAL(12,2)": "10000000000L",
}
TOO_LARGE_ON_SPARK = {
    "DOUBLE into SMALLINT": "double('NaN')",
    "DOUBLE into DECIMAL(4,2)": "1e10D",
    "FLOAT into DECIMAL(4,2)": "1e10F",
    "ARRAY<BIGINT> into ARRAY<INT>": "array(3000000000L)",
    "ARRAY<ARRAY<BIGINT>> into ARRAY<ARRAY<INT>>": "array(array(3000000000L))",
    "ARRAY<DOUBLE> into ARRAY<DECIMAL(4,2)>": "array(1e10D)",
    "MAP<STRING,BIGINT> into MAP<STRING,INT>": "map('a', 3000000000L)",
    "MAP<BIGINT,STRING> into MAP<INT,STRING>": "map(3000000000L, 'a')",
    "STRUCT<a: BIGINT, b: STRING> into STRUCT<a: INT, b: STRING>": (
        "named_struct('a', 3000000000L, 'b', 'x')"
    ),
    "STRUCT<a: STRUCT<`b c`: INT>> into STRUCT<a: STRUCT<`b c`: DECIMAL(3,2)>>": (
        "named_struct('a', named_struct('b c', 100))"
    ),
    "ARRAY<STRUCT<a: BIGINT>> into ARRAY<STRUCT<a: INT>>": "array(named_struct('a', 3000000000L))",
}


def tables(db: Warehouse, types: str, value: str) -> None:
    """Table `a` with the value, table `b` with a row that is NULL."""
    source, target = types.split(" into ")
    db.sql(f"CREATE TABLE a (x {source}); CREATE TABLE b (x {target})")
    db.sql(f"INSERT INTO a SELECT {value}; INSERT INTO b VALUES (NULL)")


def raised(act: Callable[[], Any]) -> tuple[str, str]:
    with pytest.raises(UserError) as caught:
        act()
    return caught.value.code, caught.value.message


@on_both("types", TOO_LARGE, sample=4)
def test_overflow_raises_what_spark_raises(
    types: str, any_db: Warehouse, parquet: Callable[[str, str], Any]
) -> None:
    value = TOO_LARGE[types]
    theirs = parquet(types.split(" into ")[1], value)
    tables(any_db, types, value)
    code, message = raised(lambda: any_db.sql(f"INSERT INTO b SELECT {value}"))
    assert code == theirs.code
    for way in WAYS.values():
        assert raised(lambda way=way: way(any_db))[0] == code
    if code == OVERFLOW:
        assert message == theirs.message
    assert any_db.sql("SELECT * FROM b").fetchall() == [(None,)]


@pytest.mark.parametrize("types", sampled(TOO_LARGE_ON_SPARK, 0.3))
def test_overflow_of_what_spark_alone_computes(
    types: str, spark_db: Warehouse, parquet: Callable[[str, str], Any]
) -> None:
    value = TOO_LARGE_ON_SPARK[types]
    theirs = parquet(types.split(" into ")[1], value)
    tables(spark_db, types, value)
    assert theirs.code == OVERFLOW
    expected = (theirs.code, theirs.message)
    assert raised(lambda: WAYS["INSERT"](spark_db)) == expected
    assert raised(lambda: WAYS["append"](spark_db)) == expected
    assert raised(lambda: spark_db.sql(f"UPDATE b SET x = {value}")) == expected


CASTS = {
    "INSERT INTO b SELECT CAST(x AS INT) FROM a": "CAST_OVERFLOW",
    "INSERT INTO b SELECT CAST(3000000000L AS INT)": "CAST_OVERFLOW",
    "INSERT INTO b SELECT CAST(x AS SMALLINT) FROM a": "CAST_OVERFLOW",
    "UPDATE b SET x = CAST(3000000000L AS INT)": "CAST_OVERFLOW",
    "INSERT INTO b SELECT CAST(x AS DECIMAL(3,0)) FROM a": "NUMERIC_VALUE_OUT_OF_RANGE",
    "INSERT INTO b SELECT CAST(x AS SMALLINT) + 0L FROM a": "CAST_OVERFLOW",
    "INSERT INTO b SELECT x + 9223372036854775807L FROM a": "ARITHMETIC_OVERFLOW",
    "INSERT INTO b SELECT 9223372036854775807L + 9L": "ARITHMETIC_OVERFLOW",
    "UPDATE b SET x = (SELECT x DIV 0L FROM a)": "DIVIDE_BY_ZERO",
}


@on_both("statement", CASTS, sample=3)
def test_what_fails_before_it_is_stored_keeps_its_class(statement: str, any_db: Warehouse) -> None:
    tables(any_db, "BIGINT into INT", "3000000000L")
    code, _ = raised(lambda: any_db.sql(statement))
    assert code.split(".")[0] == CASTS[statement]  # Spark says more behind a dot


def test_odd_names_are_told_as_they_are(any_db: Warehouse) -> None:
    any_db.sql("CREATE TABLE b (`it's {0} a``b \\` INT)")
    code, message = raised(lambda: any_db.sql("INSERT INTO b SELECT 3000000000L"))
    assert code == OVERFLOW
    assert "variable `it's {0} a``b \\` due" in message


UNCHECKED: list[tuple[DataType, DataType]] = [
    (INT, BIGINT),
    (INT, DOUBLE),
    (DOUBLE, FLOAT),
    (BIGINT, STRING),
    (INT, parse_type("decimal(12, 2)")),
    (parse_type("decimal(4, 0)"), INT),
    (parse_type("decimal(5, 2)"), parse_type("decimal(5, 1)")),
]


@pytest.mark.parametrize(("source", "target"), UNCHECKED)
def test_what_cannot_overflow_is_a_plain_cast(source: DataType, target: DataType) -> None:
    found = store_assign(Column(source, True, 0), target, "x")
    assert isinstance(found, Cast)
    assert found.column is None


def test_a_checked_cast_is_not_the_plain_one() -> None:
    found = store_assign(literal(5, BIGINT), INT, "x")
    assert isinstance(found, Cast)
    assert found.column == "`x`"
    assert found is not Cast(INT, False, literal(5, BIGINT))


# -- values that fit, and values that are refused


def test_values_are_coerced_as_spark_stores_them(any_db: Warehouse) -> None:
    any_db.sql("CREATE TABLE c (a BIGINT, b DOUBLE, d DECIMAL(5,1), e STRING, f DATE)")
    any_db.sql("INSERT INTO c VALUES (1.9, 2, 1.25, 5, TIMESTAMP '2024-01-02 03:04:05')")
    found = any_db.sql("SELECT * FROM c").fetchall()
    assert found == [(1, 2.0, Decimal("1.3"), "5", date(2024, 1, 2))]


NESTED = """
array(1, 2) into ARRAY<INT>
array(1L, NULL) into ARRAY<INT>
array() into ARRAY<INT>
array(NULL) into ARRAY<INT>
CAST(NULL AS ARRAY<BIGINT>) into ARRAY<INT>
array(3) into ARRAY<BIGINT>
array(3) into ARRAY<STRING>
array(TIMESTAMP'2024-01-01 01:02:03') into ARRAY<DATE>
array(double('NaN'), double('-Infinity'), 1.255D) into ARRAY<DECIMAL(4,2)>
double('NaN') into DECIMAL(4,2)
array(array(1L), NULL, array(NULL, 2L)) into ARRAY<ARRAY<INT>>
map(3L, 4L, 5L, NULL) into MAP<INT,STRING>
map('a', 1, 'b', NULL) into MAP<STRING,TINYINT>
map() into MAP<STRING,INT>
map(1.2D, 'a', 1.7D, 'b') into MAP<INT,STRING>
named_struct('a', 3L, 'b', 4) into STRUCT<a: INT, b: STRING>
named_struct('p', 3L, 'q', 'x') into STRUCT<a: INT, b: STRING>
CAST(NULL AS STRUCT<a: BIGINT, b: STRING>) into STRUCT<a: INT, b: STRING>
named_struct('b', 3, 'a', 4) into STRUCT<a: INT, b: INT>
named_struct('b', 3L, 'a', NULL) into STRUCT<a: TINYINT, b: INT>
array(named_struct('a', array(1L)), NULL) into ARRAY<STRUCT<a: ARRAY<INT>>>
named_struct('b', 'y', 'a', 3) into STRUCT<a: INT, b: STRING>
named_struct('a', 3) into STRUCT<a: INT, b: STRING>
named_struct('a', 3, 'b', 'x', 'c', 4) into STRUCT<a: INT, b: STRING>
array('a') into ARRAY<INT>
3 into ARRAY<INT>
array(1) into STRING
named_struct('a', 1) into STRING
map('a', 1) into STRING
"""


@pytest.mark.parametrize("text", sampled(NESTED.strip().splitlines(), 0.3))
def test_nested_values_are_stored_as_spark_stores_them(
    text: str, spark_db: Warehouse, parquet: Callable[[str, str], Any]
) -> None:
    value, target = text.split(" into ")
    theirs = parquet(target, value)
    spark_db.sql(f"CREATE TABLE b (x {target})")
    if isinstance(theirs, SlackwaterError):
        code, _ = raised(lambda: spark_db.sql(f"INSERT INTO b SELECT {value}"))
        refused = theirs.code.startswith("INCOMPATIBLE_DATA_FOR_TABLE")
        assert code == ("WRONG_TYPES" if refused else theirs.code)
    else:
        spark_db.sql(f"INSERT INTO b SELECT {value}")
        assert spark_db.sql("SELECT x FROM b").to_arrow().column("x").to_pylist() == [theirs]


def test_fields_go_by_name_where_columns_do(spark_db: Warehouse) -> None:
    spark_db.sql("CREATE TABLE b (x STRUCT<a: INT, b: BIGINT>)")
    value = "named_struct('b', 2L, 'A', 3L)"
    spark_db.sql(f"INSERT INTO b BY NAME SELECT {value} AS x")
    spark_db.sql(f"UPDATE b SET x = {value}")
    spark_db.append("b", spark_db.sql(f"SELECT {value} AS x").to_arrow())
    assert spark_db.sql("SELECT x FROM b").fetchall() == [({"a": 3, "b": 2},)] * 2
    bad = "named_struct('p', 2L, 'q', 3L)"
    assert raised(lambda: spark_db.sql(f"UPDATE b SET x = {bad}"))[0] == "WRONG_TYPES"


def test_no_null_inside_where_none_may_be(spark_db: Warehouse) -> None:
    spark_db.sql("CREATE TABLE b (x STRUCT<a: INT NOT NULL>)")
    spark_db.sql("INSERT INTO b SELECT named_struct('a', 3L)")
    code, message = raised(
        lambda: spark_db.sql("INSERT INTO b SELECT named_struct('a', CAST(NULL AS INT))")
    )
    assert code == "WRONG_TYPES"
    assert "`x`.`a` takes no NULL" in message
