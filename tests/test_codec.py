"""Relations as text and back: the same object."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pytest

from bench.problems import bound_queries
from slackwater.algebra.codec import from_text, to_text
from slackwater.algebra.expr import Literal
from slackwater.algebra.relation import Values
from slackwater.errors import StateError
from slackwater.tvr.normal import normalize
from slackwater.types import STRING, Field
from tests.test_laws import QUERIES, bound


@pytest.mark.parametrize("name", QUERIES)
def test_a_query_of_every_kind_comes_back_as_it_was(name: str) -> None:
    query = bound(QUERIES[name])
    assert from_text(to_text(query)) is query
    assert from_text(to_text(normalize(query))) is normalize(query)


CONSTANTS = (
    Decimal("1.50"),
    2.0,
    float("inf"),
    dt.date(2020, 1, 31),
    dt.datetime(2020, 1, 31, 1, 2, 3, 4, tzinfo=dt.UTC),
    dt.datetime(2020, 1, 31, 1, 2, 3),
    dt.timedelta(days=-1, seconds=3, microseconds=7),
    b"\x0f",
    "ü",
    True,
    None,
)


def test_constants_of_every_type_come_back() -> None:
    row = tuple(Literal(STRING, value is None, value) for value in CONSTANTS)
    names = tuple(f"c{i}" for i in range(len(row)))
    query = Values((row,), tuple(Field(name, STRING) for name in names))
    assert from_text(to_text(query)) is query


def test_large_queries_come_back_as_they_were() -> None:
    with bound_queries() as queries:
        assert len(queries) > 90
        for name, bound in queries.items():
            assert from_text(to_text(bound.query)) is bound.query, name


def test_a_text_of_another_version_is_refused() -> None:
    with pytest.raises(StateError) as caught:
        from_text('[["Teleport", {"node": 3}]]')
    assert caught.value.code == "BAD_DEFINITION"
