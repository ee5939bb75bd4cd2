"""What the algebra cannot express runs as written, and says why."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.conform import cases, conforms

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PIVOT = """
select * from (select k, g, n from t) pivot (sum(n) for g in ('a', 'b'))
select * from v unpivot (val for name in (k, m))
select count(*) from t tablesample (100 percent)
select * from (select * from (select k, g, n from t) pivot (max(n) as m, count(*) as c for g in
  ('a' as x, 'b' as y))) where k is not null
with c as (select k, n, b from t) select * from c pivot (sum(n) for b in (true as yes, false as
  no))
select u.s, p.a from u join (select * from (select k, g, n from t) pivot (sum(n) for g in
  ('a'))) p on u.k = p.k
"""

RECURSIVE = """
with recursive r (n) as (select 1 union all select n + 1 from r where n < 5) select * from r
with recursive r (n, k) as (select 1, k from v union all select n + 1, k from r where n < 3)
  select k, sum(n) as s from r group by k
"""


@pytest.mark.parametrize("text", cases(PIVOT))
def test_pivots_and_samples(text: str, spark: SparkSession) -> None:
    conforms(spark, text, opaque="UNSUPPORTED_OPERATOR")


@pytest.mark.parametrize("text", cases(RECURSIVE))
def test_recursive_ctes(text: str, spark: SparkSession) -> None:
    conforms(spark, text, opaque="RECURSIVE_QUERY")
