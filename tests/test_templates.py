"""A statement is written once for all refreshes, and reads what each of them says."""

from __future__ import annotations

import pytest

from slackwater.algebra.expr import Call, Literal, columns
from slackwater.algebra.relation import Filter, Project, Scan
from slackwater.engine import compile as compiling
from slackwater.engine.compile import compile_program
from slackwater.engine.dialects import LOCAL, SPARK
from slackwater.errors import InternalError
from slackwater.types import BOOLEAN, STRING, Field

ROWS = Scan("t", "t", (Field("a", STRING, True),))
ODD = Literal(STRING, False, "\0 it's {} %s")
"""A text that could be taken for what stands around it."""


def test_inputs_are_filled_in() -> None:
    equal = Call(BOOLEAN, True, "=", (columns(ROWS.schema)[0], ODD))
    relation = Project(Filter(ROWS, equal), columns(ROWS.schema), ("a",))
    first = compile_program(relation, LOCAL, {"t": "one"}, ["a"], "o0_")
    before = compiling._template.cache_info()
    second = compile_program(relation, LOCAL, {"t": "two"}, ["a"], "o0_")
    after = compiling._template.cache_info()
    assert (after.hits, after.misses) == (before.hits + 1, before.misses)
    assert "FROM one AS s" in first.sql
    assert second.sql == first.sql.replace("FROM one AS s", "FROM two AS s")
    assert "\0 it''s {} %s" in second.sql


def test_a_missing_input_is_told() -> None:
    with pytest.raises(InternalError, match="no input"):
        compile_program(ROWS, LOCAL, {})


def test_statements_with_fresh_names_are_not_remembered() -> None:
    before = compiling._template.cache_info()
    compile_program(ROWS, SPARK, {"t": "one"}, ["a"], "fresh_")
    assert compiling._template.cache_info() == before
