"""`append` and `apply`: rows handed in from Python, in whatever form, right or refused whole."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

from slackwater import UserError, Warehouse
from tests.engines import on_both

Row = tuple[Any, ...]
FIRST = date(2020, 1, 1)
PRICE = Decimal("1.50")


@pytest.fixture
def items(any_db: Warehouse) -> Warehouse:
    return with_items(any_db)


@pytest.fixture
def local_items(db: Warehouse) -> Warehouse:
    return with_items(db)


def with_items(db: Warehouse) -> Warehouse:
    db.sql("""
        CREATE TABLE items (
          id INT NOT NULL, name STRING, price DECIMAL(6, 2) DEFAULT 1.5,
          added DATE DEFAULT DATE'2020-01-01')""")
    return db


def rows(db: Warehouse) -> list[Row]:
    return sorted(db.sql("SELECT * FROM items").fetchall(), key=repr)


# -- append: forms of data

FORMS: dict[str, Callable[[], Any]] = {
    "arrow": lambda: pa.table({"id": [1], "name": ["a"]}),
    "arrow batch": lambda: pa.record_batch({"id": [1], "name": ["a"]}),
    "arrow batches": lambda: [pa.record_batch({"id": [1], "name": ["a"]})],
    "arrow reader": lambda: pa.table({"id": [1], "name": ["a"]}).to_reader(),
    "pandas": lambda: pd.DataFrame({"id": [1], "name": ["a"]}),
    "pandas categories": lambda: pd.DataFrame({"id": [1], "name": pd.Categorical(["a"])}),
    "dictionaries": lambda: [{"id": 1, "name": "a"}],
    "other order and case": lambda: [{"NAME": "a", "Id": 1}],
    "dictionary type": lambda: pa.table({"id": [1], "name": pa.array(["a"]).dictionary_encode()}),
    "large string": lambda: pa.table({"id": [1], "name": pa.array(["a"], pa.large_string())}),
    "string view": lambda: pa.table({"id": [1], "name": pa.array(["a"], pa.string_view())}),
    "unsigned": lambda: pa.table({"id": pa.array([1], pa.uint64()), "name": ["a"]}),
    "small": lambda: pa.table({"id": pa.array([1], pa.int8()), "name": ["a"]}),
}


@on_both("form", FORMS, sample=3)
def test_append_takes_data_in_many_forms(items: Warehouse, form: str) -> None:
    assert items.append("items", FORMS[form]()) == 1
    assert rows(items) == [(1, "a", PRICE, FIRST)]  # what is not given gets its default


def test_append_takes_a_spark_frame(spark_db: Warehouse) -> None:
    with_items(spark_db)
    frame = spark_db.spark.createDataFrame([(1, "a"), (2, None)], "id BIGINT, name STRING")
    assert spark_db.append("items", frame) == 2
    assert rows(spark_db) == [(1, "a", PRICE, FIRST), (2, None, PRICE, FIRST)]


@on_both(
    "values, stored",
    [
        ({"name": 5}, ("5", PRICE, FIRST)),
        ({"name": None}, (None, PRICE, FIRST)),
        ({"price": Decimal("2.345")}, (None, Decimal("2.35"), FIRST)),
        ({"price": 7}, (None, Decimal("7.00"), FIRST)),
        ({"price": None}, (None, None, FIRST)),
        ({"added": date(2021, 2, 3)}, (None, PRICE, date(2021, 2, 3))),
        ({"added": datetime(2021, 2, 3, 4, 5)}, (None, PRICE, date(2021, 2, 3))),
    ],
    sample=2,
)
def test_values_are_stored_as_an_insert_would(
    items: Warehouse, values: dict[str, Any], stored: Row
) -> None:
    items.append("items", [{"id": 1, **values}])
    assert rows(items) == [(1, *stored)]


@pytest.mark.parametrize(
    "nothing", [[], pa.table({}), pa.table({"id": pa.array([], pa.int64())}), pd.DataFrame()]
)
def test_no_rows_are_no_rows(local_items: Warehouse, nothing: Any) -> None:
    assert local_items.append("items", nothing) == 0
    assert rows(local_items) == []


# -- append: refusals

REFUSED: dict[str, tuple[Any, str, str]] = {
    "unknown column": ([{"id": 1, "nam": "a"}], "UNKNOWN_COLUMN", "Column 'nam' is not in 'items'"),
    "wrong type": ([{"id": "x"}], "WRONG_TYPES", "Column 'id' of 'items': .* STRING .* INT"),
    "text as date": ([{"id": 1, "added": "2020-01-01"}], "WRONG_TYPES", "Column 'added'"),
    "NULL": ([{"id": 1}, {"id": None}], "NULL_IN_NOT_NULL", "NULL in column 'id' of 'items'"),
    "no value": ([{"name": "a"}], "NULL_IN_NOT_NULL", "'id' of 'items' is NOT NULL"),
    "column twice": (pa.table([[1], [2]], names=["id", "ID"]), "COLUMN_COUNT", "given twice"),
    "same name": (pa.table([[1], [2]], names=["id", "id"]), "COLUMN_COUNT", "given twice"),
    "pandas, same name": (pd.DataFrame([[1, 2]], columns=["id", "id"]), "BAD_DATA", "Duplicate"),
    "too large": ([{"id": 2**31}], "CAST_OVERFLOW_IN_TABLE_INSERT", '"INT" .* `id`'),
    "too large for Arrow": ([{"id": 2**70}], "BAD_DATA", "too large"),
    "too many digits": (
        [{"id": 1, "price": Decimal("12345.6")}],
        "CAST_OVERFLOW_IN_TABLE_INSERT",
        r'"DECIMAL\(6,2\)" .* `price`',
    ),
    "mixed types": ([{"id": 1}, {"id": "x"}], "BAD_DATA", "'x'"),
    "nanoseconds": (
        pa.table({"id": [1], "added": pa.array([1], pa.timestamp("ns"))}),
        "BAD_DATA",
        "lose data",
    ),
    "no counterpart": (
        pa.table({"id": [1], "name": pa.array([1], pa.time64("us"))}),
        "UNSUPPORTED_TYPE",
        "time64",
    ),
    "a number": (42, "BAD_DATA", "int"),
    "tuples": ([(1, "a")], "BAD_DATA", "list"),
}


@on_both("case", REFUSED, sample=4)
def test_bad_data_is_refused_whole_and_says_why(items: Warehouse, case: str) -> None:
    data, code, message = REFUSED[case]
    items.append("items", [{"id": 7}])
    with pytest.raises(UserError, match=message) as error:
        items.append("items", data)
    assert error.value.code == code
    assert rows(items) == [(7, None, PRICE, FIRST)]


# -- apply


@pytest.fixture
def stocked(items: Warehouse) -> Warehouse:
    items.sql(
        "INSERT INTO items VALUES (1, 'a', 1, NULL), (1, 'a', 1, NULL), (2, NULL, NULL, NULL)"
    )
    return items


def change(weight: int, id: int, name: str | None, price: int | None) -> dict[str, Any]:
    """A row of a change batch; the weight stands first, as it may stand anywhere."""
    return {"w": weight, "id": id, "name": name, "price": price, "added": None}


A, B = (1, "a", Decimal("1.00"), None), (2, None, None, None)


def test_operations_insert_delete_and_update(stocked: Warehouse) -> None:
    batch = [
        {"op": "delete", "id": 1, "name": "a", "price": 1, "added": None},
        {"op": "I", "id": 3, "name": "c", "price": 3, "added": None},
        {"op": "update_preimage", "id": 2, "name": None, "price": None, "added": None},
        {"op": "UPDATE_POSTIMAGE", "id": 2, "name": "b", "price": None, "added": None},
    ]
    assert stocked.apply("items", batch, op_column="OP") == 4
    assert rows(stocked) == [A, (2, "b", None, None), (3, "c", Decimal("3.00"), None)]


WEIGHTS: dict[str, tuple[list[dict[str, Any]], list[Row]]] = {
    "weight above one": ([change(3, 1, "a", 1)], [A] * 5 + [B]),
    "all copies": ([change(-2, 1, "a", 1)], [B]),
    "NULLs are equal": ([change(-1, 2, None, None)], [A, A]),
    "twice in one batch": ([change(-1, 1, "a", 1), change(-1, 1, "a", 1)], [B]),
    "inserted and deleted": ([change(-1, 9, "z", 9), change(1, 9, "z", 9)], [A, A, B]),
    "too often, but inserted": ([change(-3, 1, "a", 1), change(1, 1, "a", 1)], [B]),
    "zero is nothing": ([change(0, 9, "z", 9)], [A, A, B]),
    "nothing": ([], [A, A, B]),
}


@on_both("case", WEIGHTS, sample=2)
def test_weights(stocked: Warehouse, case: str) -> None:
    batch, content = WEIGHTS[case]
    stocked.apply("items", batch, weight_column="w")
    assert rows(stocked) == content


MISSING: dict[str, list[dict[str, Any]]] = {
    "unknown row": [change(-1, 9, "z", 9)],
    "more often than present": [change(-3, 1, "a", 1)],
    "NULL for a value": [change(-1, 1, "a", None)],
    "NULL for a text": [change(-1, 1, None, 1)],
    "with good ones": [change(2, 5, "e", 5), change(-1, 2, "", None)],
}


@on_both("case", MISSING, sample=2)
def test_deleting_what_is_not_there_is_refused(stocked: Warehouse, case: str) -> None:
    with pytest.raises(UserError, match="deletes rows that 'items' does not have") as error:
        stocked.apply("items", MISSING[case], weight_column="w")
    assert error.value.code == "DELETE_OF_MISSING_ROW"
    assert rows(stocked) == [A, A, B]


def test_refused_batch_leaves_the_rest_of_its_transaction(stocked: Warehouse) -> None:
    with stocked.transaction():
        stocked.apply("items", [change(-1, 1, "a", 1)], weight_column="w")
        with pytest.raises(UserError, match="does not have"):
            stocked.apply("items", [change(-2, 1, "a", 1), change(1, 7, "g", 7)], weight_column="w")
        stocked.apply("items", [change(-1, 1, "a", 1)], weight_column="w")
    assert rows(stocked) == [B]


@on_both("weights, copies", [("2 3", 7), ("2 -1", 3)], sample=2)
def test_rows_that_come_again_add_to_those_stored(
    stocked: Warehouse, weights: str, copies: int
) -> None:
    """Weights above one meet stored rows of weight one, with and without deletions beside."""
    for weight in weights.split():
        stocked.apply("items", [change(int(weight), 1, "a", 1)], weight_column="w")
    assert rows(stocked) == [A] * copies + [B]


def test_the_weight_column_may_stand_anywhere(stocked: Warehouse) -> None:
    first = change(1, 4, "d", 4)
    last = {k: first[k] for k in ("added", "id", "w", "price", "name")}
    stocked.apply("items", [first], weight_column="w")
    stocked.apply("items", [last], weight_column="w")
    assert rows(stocked)[-2:] == [(4, "d", Decimal("4.00"), None)] * 2


def test_deleted_and_inserted_again_over_many_batches(stocked: Warehouse) -> None:
    for weight in (-2, 5, -4, 1):
        stocked.apply("items", [change(weight, 1, "a", 1)], weight_column="w")
    stocked.sql("CREATE MATERIALIZED VIEW n AS SELECT id, count(*) AS n FROM items GROUP BY id")
    stocked.refresh()
    assert sorted(stocked.sql("SELECT * FROM n").fetchall()) == [(1, 2), (2, 1)]
    assert stocked.verify("n")


@pytest.mark.parametrize(
    ("batch", "columns", "code"),
    [
        ([{"op": "upsert", "id": 1}], {"op_column": "op"}, "BAD_DATA"),
        ([{"op": None, "id": 1}], {"op_column": "op"}, "BAD_DATA"),
        ([{"w": 1.5, "id": 1}], {"weight_column": "w"}, "BAD_DATA"),
        ([{"w": 1, "id": 1}, {"w": None, "id": 1}], {"weight_column": "w"}, "BAD_DATA"),
        ([{"w": 1, "id": None}], {"weight_column": "w"}, "NULL_IN_NOT_NULL"),
        ([{"w": 1, "id": 1, "x": 1}], {"weight_column": "w"}, "UNKNOWN_COLUMN"),
        ([{"w": 1, "id": 1}], {"weight_column": "weight"}, "UNKNOWN_COLUMN"),
        ([{"w": 1, "id": 1}], {}, "BAD_OPTION"),
        ([{"w": 1, "id": 1}], {"weight_column": "w", "op_column": "w"}, "BAD_OPTION"),
    ],
)
def test_bad_batches_are_refused(
    local_items: Warehouse, batch: list[dict[str, Any]], columns: dict[str, str], code: str
) -> None:
    with pytest.raises(UserError) as error:
        local_items.apply("items", batch, **columns)
    assert error.value.code == code
    assert rows(local_items) == []


@pytest.mark.parametrize("name", ["none", "v", "outside"])
def test_only_managed_tables_take_changes(db: Warehouse, tmp_path: Any, name: str) -> None:
    (tmp_path / "outside").mkdir()
    db.sql("CREATE TABLE t (id INT); CREATE MATERIALIZED VIEW v AS SELECT id FROM t")
    db.sql(f"CREATE TABLE outside (id INT) USING parquet OPTIONS (path '{tmp_path / 'outside'}')")
    codes = {"none": "UNKNOWN_TABLE", "v": "NOT_A_TABLE", "outside": "EXTERNAL_TABLE"}
    with pytest.raises(UserError) as error:
        db.append(name, [{"id": 1}])
    assert error.value.code == codes[name]
