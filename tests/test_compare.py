"""The one comparer: multisets, exact columns exactly, floats at relative 1e-9."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from itertools import permutations
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slackwater.engine.compare import Difference, compare
from slackwater.engine.pairing import RELATIVE

HALF = 1 + RELATIVE / 2  # near
MORE = 1 + RELATIVE * 1.5  # no longer near


def table(*columns: Any, types: tuple[pa.DataType, ...]) -> pa.Table:
    arrays = [pa.array(c, t) for c, t in zip(columns, types, strict=True)]
    return pa.table(arrays, names=[f"c{i}" for i in range(len(arrays))])


def doubles(*rows: tuple[float | None, ...]) -> pa.Table:
    columns = list(zip(*rows, strict=True))
    return table(*columns, types=(pa.float64(),) * len(columns))


VALUES = [
    (pa.bool_(), True, False),
    (pa.int8(), 1, 2),
    (pa.int64(), 2**63 - 1, 2**63 - 2),
    (pa.decimal128(38, 2), Decimal("1.10"), Decimal("1.11")),
    (pa.string(), "a", "a "),
    (pa.string(), "", None),
    (pa.binary(), b"\x00", b""),
    (pa.date32(), dt.date(1, 1, 1), dt.date(9999, 12, 31)),
    (pa.timestamp("us"), dt.datetime(2000, 1, 1), dt.datetime(2000, 1, 1, 0, 0, 0, 1)),
    (pa.timestamp("us", "UTC"), dt.datetime(2000, 1, 1, tzinfo=dt.UTC), None),
    (pa.duration("us"), dt.timedelta(1), dt.timedelta(1, 0, 1)),
    (pa.float64(), 1.0, MORE),
    (pa.float64(), math.nan, None),
    (pa.float64(), math.inf, -math.inf),
    (pa.float64(), math.inf, 1.7e308),
    (pa.float64(), 1.7e308, -1.7e308),
    (pa.float64(), 0.0, 5e-324),
    (pa.float32(), 1.0, 1.0 + 2**-23),
    (pa.list_(pa.int32()), [1, None], [1]),
    (pa.list_(pa.float64()), [1.0, 2.0], [1.0, 2.0 * MORE]),
    (pa.list_(pa.float64()), [math.nan], [None]),
    (pa.struct([("a", pa.int32()), ("b", pa.string())]), {"a": 1, "b": None}, {"a": 1, "b": ""}),
    (pa.map_(pa.string(), pa.int32()), [("a", 1), ("b", 2)], [("a", 2), ("b", 1)]),
    (pa.list_(pa.struct([("a", pa.list_(pa.binary()))])), [{"a": [b"x"]}], [{"a": None}]),
]


@pytest.mark.parametrize(("arrow_type", "value", "other"), VALUES)
def test_every_type_equals_itself_and_nothing_else(
    arrow_type: pa.DataType, value: Any, other: Any
) -> None:
    a = table([value, None, value], types=(arrow_type,))
    assert compare(a, table([None, value, value], types=(arrow_type,))).equal
    found = compare(a, table([None, value, other], types=(arrow_type,)))
    assert (found.equal, found.rows_missing, found.rows_unexpected) == (False, 1, 1)


def test_duplicates_count() -> None:
    once, twice = (table([1] * n, types=(pa.int32(),)) for n in (1, 2))
    assert compare(once, twice) == Difference(False, 1, 2, ("c0",), missing=((1,),), rows_missing=1)
    assert compare(twice, once).unexpected == ((1,),)


def test_empty_tables_and_tables_without_columns() -> None:
    nothing = table([], types=(pa.float64(),))
    assert compare(nothing, nothing).equal
    assert compare(nothing, doubles((1.0,))).rows_missing == 1
    assert compare(pa.table({}), pa.table({})).equal
    untyped = table([None, None], types=(pa.null(),))
    assert compare(untyped, untyped).equal


def test_names_and_types_must_agree() -> None:
    a = table([1], types=(pa.int32(),))
    wide = compare(a, table([1], types=(pa.int64(),)))
    assert wide.schema == ("column 'c0' is INT, expected BIGINT",)
    scale = compare(
        table([Decimal(1)], types=(pa.decimal128(9, 1),)),
        table([Decimal(1)], types=(pa.decimal128(9, 2),)),
    )
    assert "DECIMAL(9,1), expected DECIMAL(9,2)" in str(scale)
    assert compare(a.rename_columns(["x"]), a).schema == ("columns are (x), expected (c0)",)
    assert not compare(a, pa.table({})).equal


def test_physical_forms_of_one_type_are_equal() -> None:
    text = pa.array(["a", "b", "a"])
    plain = pa.table({"s": text})
    for form in (text.dictionary_encode(), text.cast(pa.large_string())):
        assert compare(pa.table({"s": form}), plain).equal
    chunked = pa.table({"s": pa.chunked_array([["a"], ["a", "b"]])})
    assert compare(chunked, plain).equal
    required = pa.schema([pa.field("s", pa.string(), nullable=False)])
    assert compare(plain.cast(required), plain).equal


def test_columns_of_one_name_are_told_apart() -> None:
    a = pa.table([pa.array([1]), pa.array([2])], names=["x", "x"])
    b = pa.table([pa.array([2]), pa.array([1])], names=["x", "x"])
    assert compare(a, a).equal
    assert compare(a, b).missing == ((2, 1),)


def test_floats_are_near() -> None:
    assert compare(doubles((1.0,), (-1e300,), (-0.0,)), doubles((0.0,), (HALF,), (-1e300,))).equal
    assert not compare(doubles((1e-300,)), doubles((0.0,))).equal
    single = pa.float32()
    near = table([np.float32(0.1)], types=(single,))
    assert compare(near, near).equal


def test_rows_pair_on_exact_columns() -> None:
    types = (pa.string(), pa.float64())
    a = table(["x", "y"], [1.0, 2.0], types=types)
    assert compare(a, table(["y", "x"], [2.0 * HALF, HALF], types=types)).equal
    assert compare(a, table(["y", "x"], [1.0, 2.0], types=types)).rows_missing == 2


def test_sorting_is_not_enough() -> None:
    """By the first column the order of the two rows flips; the second column decides."""
    a = doubles((1.0, 5.0), (HALF, 7.0))
    assert compare(a, doubles((HALF, 5.0), (1.0, 7.0))).equal
    crossed = compare(a, doubles((1.0, 5.0), (1.0, 5.0)))
    assert (crossed.rows_missing, crossed.rows_unexpected) == (1, 1)


def test_nearness_is_not_transitive() -> None:
    """A greedy choice pairs 1.0 with HALF and leaves the other two alone."""
    step = 1 + RELATIVE * 0.9
    a, b = doubles((1.0, 0.0), (step**2, 0.0)), doubles((step, 0.0), (step**3, 0.0))
    assert compare(a, b).equal
    assert compare(a, doubles((step, 0.0), (step**4, 0.0))).rows_missing == 1


def test_map_entries_have_no_order() -> None:
    kind = pa.map_(pa.float64(), pa.float64())
    a = table([[(1.0, 2.0), (10.0, 3.0)]], types=(kind,))
    assert compare(a, table([[(10.0, 3.0 * HALF), (1.0, 2.0)]], types=(kind,))).equal


def test_differences_read_as_a_table() -> None:
    types = (pa.int32(), pa.string())
    a = table([1, 2, 4], ["a", "b", "d" * 40], types=types)
    b = table([1, 2, 3], ["a", None, "c"], types=types)
    assert str(compare(a, b)).splitlines() == [
        "different: 3 rows, 3 expected; 2 missing (-), 2 unexpected (+)",
        "     c0  c1",
        "  -  2   NULL",
        "  -  3   c",
        "  +  2   b",
        f"  +  4   {'d' * 31}…",
    ]
    assert str(compare(a, b, most=1)).endswith("… and 2 more")
    assert str(compare(a, a)) == "equal (3 rows)"


@pytest.mark.proof
def test_a_million_rows_are_paired() -> None:  # pair by pair, they would take days
    rng = np.random.default_rng(7)
    count = 1_000_000
    rows = pa.table({"k": rng.integers(0, 1000, count), "x": rng.random(count)})
    rows = rows.append_column("y", pa.array(rng.random(count)))
    shuffled = rows.take(pa.array(rng.permutation(count)))
    assert compare(shuffled.slice(3), rows).rows_missing == 3


def test_many_equal_floats_and_one_too_many() -> None:
    count = 200_000
    found = compare(doubles(*[(1.0, 2.0)] * count), doubles(*[(HALF, 2.0)] * (count + 1)))
    assert (found.rows_missing, found.rows_unexpected) == (1, 0)


# -- properties -----------------------------------------------------------------------------------

NEAR_ONE = st.sampled_from([1.0, HALF, MORE, HALF * MORE, MORE * MORE, 2.0])
FLOATS = NEAR_ONE | st.sampled_from([0.0, -0.0, math.nan, math.inf, -math.inf, None])
SMALL_ROWS = st.lists(st.tuples(st.sampled_from("ab"), FLOATS, FLOATS), max_size=5)
TYPES = (pa.string(), pa.float64(), pa.float64())


def rows(data: list[tuple[Any, ...]]) -> pa.Table:
    return table(*([row[i] for row in data] for i in range(3)), types=TYPES)


def same(a: Any, b: Any) -> bool:
    if not isinstance(a, float) or not isinstance(b, float):
        return bool(a == b)
    if not (math.isfinite(a) and math.isfinite(b)):
        return a == b or (math.isnan(a) and math.isnan(b))
    return abs(a - b) <= RELATIVE * max(abs(a), abs(b))


def most_pairs(a: list[tuple[Any, ...]], b: list[tuple[Any, ...]]) -> int:
    """By definition: the best of all ways to pair the rows."""
    small, large = sorted((a, b), key=len)
    return max(
        sum(all(map(same, x, y)) for x, y in zip(small, chosen, strict=True))
        for chosen in permutations(large, len(small))
    )


@given(SMALL_ROWS, SMALL_ROWS)
def test_compare_finds_a_largest_pairing(a: list[Any], b: list[Any]) -> None:
    found, pairs = compare(rows(a), rows(b)), most_pairs(a, b)
    assert found.rows_unexpected == len(a) - pairs
    assert found.rows_missing == len(b) - pairs
    assert found.equal == (len(a) == len(b) == pairs)


@given(st.lists(st.tuples(st.sampled_from("ab"), FLOATS, FLOATS), max_size=40), st.randoms())
def test_order_and_rounding_mean_nothing(data: list[Any], random: Any) -> None:
    other = [tuple(v * HALF if isinstance(v, float) else v for v in row) for row in data]
    random.shuffle(other)
    assert compare(rows(data), rows(other)).equal
    assert not compare(rows(data), rows([*other, ("c", 0.0, 0.0)])).equal
