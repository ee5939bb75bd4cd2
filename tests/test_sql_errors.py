"""Mistakes in SQL: each names the thing, the place and the way out."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from slackwater.errors import SqlError
from tests.conform import world

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MESSAGES = """
select *
from tt
---
[UNKNOWN_TABLE] Table or view 'tt' does not exist. (line 2)
  from tt
       ^^
Existing: t, u, v, e, nest.
===
select id,
  kk from t
---
[UNKNOWN_COLUMN] Column 'kk' is not known here. (line 2)
    kk from t
    ^^
Existing: k, id, g, n, x, ….
===
select z.k from t
---
[UNKNOWN_COLUMN] Column 'z.k': no table or alias 'z' in this query. (line 1)
  select z.k from t
         ^^^
Existing: t.
===
select k from t, u
---
[AMBIGUOUS_COLUMN] Column 'k' is ambiguous. (line 1)
  select k from t, u
         ^
Write one of: t.k, u.k.
===
select st.c from nest
---
[UNKNOWN_COLUMN] Field 'c' is not in the struct. (line 1)
  select st.c from nest
         ^^^^
Existing: a, b.
===
select k from t where n
---
[WRONG_TYPES] WHERE must be BOOLEAN, not BIGINT. (line 1)
  select k from t where n
                        ^
Compare the value with something, as in 'x <> 0'.
===
select k + b from t
---
[WRONG_TYPES] '+' cannot be applied to INT, BOOLEAN. (line 1)
  select k + b from t
         ^^^^^
It takes two numbers. Cast the arguments where they differ.
===
select id from t where sum(n) > 1
---
[AGGREGATE_MISUSE] Aggregate sum() cannot stand in WHERE. (line 1)
  select id from t where sum(n) > 1
                         ^^^^^
Filter on aggregates with HAVING.
===
select sum(max(n)) from t
---
[AGGREGATE_MISUSE] Aggregate max() cannot stand in an aggregate's argument. (line 1)
  select sum(max(n)) from t
             ^^^^^
Aggregates do not nest; compute the inner one in a subquery.
===
select g,
       k, sum(n) from t group by g
---
[AGGREGATE_MISUSE] Column 'k' is neither in GROUP BY nor inside an aggregate. (line 2)
         k, sum(n) from t group by g
         ^
Add it to GROUP BY, or wrap it, as in any_value(k) or max(k).
===
select row_number() from t
---
[WINDOW_MISUSE] Window function row_number() needs an OVER clause. (line 1)
  select row_number() from t
         ^^^^^^^^^^
Write row_number(…) OVER (PARTITION BY … ORDER BY …).
===
select id from t where row_number() over (order by id) = 1
---
[WINDOW_MISUSE] A window function cannot stand in WHERE. (line 1)
  select id from t where row_number() over (order by id) = 1
                         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
Filter on window functions with QUALIFY, or compute them in a subquery.
===
select (1 from t
---
[SYNTAX_ERROR] Syntax error near 'from': Expecting ). (line 1)
  select (1 from t
            ^^^^
Check the spelling of keywords, commas and parentheses before this place.
===
select 1 +
---
[SYNTAX_ERROR] Syntax error near '+': something is missing after it. (line 1)
  select 1 +
           ^
Check the spelling of keywords, commas and parentheses before this place.
===
select k from t union select k, g from t
---
[COLUMN_COUNT] UNION needs as many columns on both sides: 1 and 2. (line 1)
  select k from t union select k, g from t
                               ^^^^^^^^^^^
Select the same columns on both sides.
===
select k from t order by 3
---
[BAD_ORDINAL] ORDER BY position 3 is not in the select list, which has 1 columns. (line 1)
  select k from t order by 3
                           ^
===
select uper(k) from t
---
[UNKNOWN_FUNCTION] Function 'uper' does not exist. (line 1)
  select uper(k) from t
         ^^^^^^
"""

CODES = {
    "select t.kk from t": "UNKNOWN_COLUMN",
    "select k from t join u using (g)": "UNKNOWN_COLUMN",
    "select * except (zz) from t": "UNKNOWN_COLUMN",
    "select x.* from t": "UNKNOWN_TABLE",
    "select id from a.b.t": "UNKNOWN_TABLE",
    "select case when b then 1 else d end from t": "WRONG_TYPES",
    "values (1), (true)": "WRONG_TYPES",
    "select k from t union select b from t": "WRONG_TYPES",
    "select k from t limit k": "WRONG_TYPES",
    "select g, sum(n) from t group by g order by k": "AGGREGATE_MISUSE",
    "select * from t group by g": "AGGREGATE_MISUSE",
    "select k from t group by sum(n)": "AGGREGATE_MISUSE",
    "select grouping(k) from t group by k": "AGGREGATE_MISUSE",
    "select id from t having id > 1": "AGGREGATE_MISUSE",
    "select t.id from t join u on sum(t.id) = 1": "AGGREGATE_MISUSE",
    "select sum(n) over nowhere from t": "UNKNOWN_WINDOW",
    "select upper(g) over () from t": "WINDOW_MISUSE",
    "select sum(rank() over (order by id)) from t": "WINDOW_MISUSE",
    "selec 1": "SYNTAX_ERROR",
    "select 'abc from t": "SYNTAX_ERROR",
    "select cast('a' as nosuchtype)": "SYNTAX_ERROR",
    "delete from t": "SYNTAX_ERROR",
    "values (1), (2, 3)": "COLUMN_COUNT",
    "select k from t except select k, g from t": "COLUMN_COUNT",
    "select * from (select k, g from t) as x (a)": "COLUMN_COUNT",
    "with c (a, b) as (select 1) select * from c": "COLUMN_COUNT",
    "select k from t group by 2": "BAD_ORDINAL",
    "select k from t order by 0": "BAD_ORDINAL",
    "select (select k, g from t) from t": "SUBQUERY_COLUMNS",
    "select k in (select k, g from t) from t": "SUBQUERY_COLUMNS",
    "select distinct k from t order by id": "ORDER_BY_NOT_IN_SELECT",
    "select date '2024-13-01'": "BAD_LITERAL",
    "select 1234567890123456789012345678901234567890": "NUMBER_OUT_OF_RANGE",
    "select explode(arr), explode(arr) from nest": "GENERATOR_MISUSE",
    "select upper(k, g) from t": "WRONG_NUM_ARGS.WITHOUT_SUGGESTION",
    "select upper(arr) from nest": "DATATYPE_MISMATCH.UNEXPECTED_INPUT_TYPE",
}


def _cases() -> list[tuple[str, str]]:
    found = [case.split("\n---\n") for case in MESSAGES.strip().split("\n===\n")]
    return [(text, message) for text, message in found]


@pytest.mark.parametrize(("text", "message"), _cases())
def test_messages(text: str, message: str, spark: SparkSession) -> None:
    with pytest.raises(SqlError) as caught:
        world(spark).bind(text)
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize(("text", "code"), CODES.items())
def test_codes(text: str, code: str, spark: SparkSession) -> None:
    with pytest.raises(SqlError) as caught:
        world(spark).bind(text)
    assert caught.value.code == code


def test_arguments_are_not_called_by_names_the_user_never_wrote(spark: SparkSession) -> None:
    with pytest.raises(SqlError, match='"argument 1" has the type "ARRAY<INT>"'):
        world(spark).bind("select upper(arr) from nest")
