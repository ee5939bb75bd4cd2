"""The corpora: complete, readable by Spark, and every query answered without an error."""

from __future__ import annotations

import decimal
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bench import corpus
from slackwater.engine.compare import compare
from slackwater.errors import UserError
from slackwater.types import BIGINT, INT, Decimal, from_arrow
from tests.corpus import SCALE, answer, load_empty, names, reference_text

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COUNTS = {"tpch": (8, 22, 61), "tpcds": (24, 99, 425)}


@pytest.mark.parametrize("kind", corpus.KINDS)
def test_a_corpus_is_complete(kind: str) -> None:
    tables, queries, columns = COUNTS[kind]
    assert list(corpus.queries(kind)) == [f"q{i}" for i in range(1, queries + 1)]
    assert len(corpus.schemas(kind)) == tables
    assert sum(len(schema) for schema in corpus.schemas(kind).values()) == columns


def test_schemas_say_type_and_nullability() -> None:
    lineitem = {f.name: f for f in corpus.schemas("tpch")["lineitem"]}
    assert lineitem["l_orderkey"].type == BIGINT
    assert lineitem["l_discount"].type == Decimal(15, 2)
    assert not any(f.nullable for f in lineitem.values())
    sales = {f.name: f for f in corpus.schemas("tpcds")["store_sales"]}
    assert sales["ss_sold_date_sk"].type == INT
    assert [n for n, f in sales.items() if not f.nullable] == ["ss_item_sk", "ss_ticket_number"]


@pytest.mark.parametrize("kind", corpus.KINDS)
def test_data_is_as_its_schema_says(kind: str) -> None:
    schemas = corpus.schemas(kind)
    for table, path in corpus.generate(kind, SCALE).items():
        data = pq.read_table(path)
        declared = [(f.name, f.type) for f in schemas[table]]
        assert [(f.name, from_arrow(f.type)) for f in data.schema] == declared
        for field in schemas[table]:
            assert field.nullable or data[field.name].null_count == 0, (table, field.name)


def test_unknown_corpora_and_scales_are_refused() -> None:
    with pytest.raises(UserError, match="Use tpch or tpcds"):
        corpus.queries("tpcx")
    with pytest.raises(UserError, match=r"use 0\.01 or more"):
        corpus.generate("tpcds", 0.001)


@pytest.mark.parametrize("kind", corpus.KINDS)
def test_tie_breaking_keeps_the_output_schema(kind: str, spark: SparkSession) -> None:
    session = load_empty(spark, kind)
    for text in corpus.queries(kind).values():
        assert session.sql(reference_text(session, text)).schema == session.sql(text).schema


@pytest.mark.parametrize("name", names("tpch", 6))
def test_tpch_on_spark(name: str, spark: SparkSession) -> None:
    check(spark, "tpch", name)


@pytest.mark.parametrize("name", names("tpcds", 6))
def test_tpcds_on_spark(name: str, spark: SparkSession) -> None:
    check(spark, "tpcds", name)


def check(spark: SparkSession, kind: str, name: str) -> None:
    """Spark's answer equals itself in any order, and nothing that was tampered with."""
    told = answer(spark, kind, name)
    backwards = told.take(pa.array(range(told.num_rows - 1, -1, -1), pa.int64()))
    assert compare(backwards, told).equal
    if not told.num_rows:
        return
    assert compare(told.slice(1), told).rows_missing == 1
    assert compare(pa.concat_tables([told, told.slice(0, 1)]), told).rows_unexpected == 1
    for i in range(told.num_columns):
        assert not compare(tampered(told, i), told).equal


def tampered(table: pa.Table, column: int) -> pa.Table:
    """The table with one value of its first row made NULL, or made something if it was NULL."""
    field, values = table.schema.field(column), table.column(column).combine_chunks()
    first = pa.nulls(1, field.type) if values[0].is_valid else something(field.type)
    array = pa.concat_arrays([first, values.slice(1)])
    return table.set_column(column, field.with_nullable(True), array)


def something(t: pa.DataType) -> pa.Array:
    """One value of a type that is not NULL."""
    if pa.types.is_decimal(t):
        return pa.array([decimal.Decimal(1).scaleb(-t.scale)], t)
    return pa.array([1], pa.int32()).cast(t)
