"""GROUPING SETS, ROLLUP, CUBE."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.conform import cases, conforms

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SETS = """
select k, g, sum(n) from t group by rollup (k, g)
select k, g, sum(n) from t group by cube (k, g)
select k, g, sum(n) from t group by k, g with rollup
select k, g, count(*) from t group by k, g with cube
select k, g, sum(n) from t group by grouping sets ((k, g), (k), ())
select k, g, sum(n) from t group by grouping sets (k, g)
select k, g, sum(n), grouping(k), grouping(g) from t group by rollup (k, g)
select k, g, grouping_id(), grouping_id(k, g) from t group by cube (k, g)
select k, g, b, grouping_id(k, g, b) as i, sum(n) from t group by cube (k, g, b)
select k, count(*) from t group by grouping sets ((k), (k), ())
select k, g, count(*) from t group by grouping sets ((k, g), (g, k), (k))
select k, g, b, count(*) from t group by k, rollup (g, b)
select k, g, b, count(*) from t group by k, grouping sets ((g), (b))
select k, g, b, count(*) from t group by rollup (k), rollup (g, b)
select k, g, count(*) from t group by cube (k), rollup (g)
select k, g, b, count(*) from t group by rollup ((k, g), b)
select k, g, b, count(*) from t group by cube ((k, g), b)
select k, g, count(*) from t group by grouping sets (rollup (k, g), cube (k))
select k, g, count(*) from t group by grouping sets ((k), grouping sets ((g), ()))
select k + 1 as k1, upper(g), sum(n) from t group by rollup (k + 1, upper(g))
select k as key, sum(k) from t group by rollup (k)
select k, sum(k), count(k) from t group by cube (k)
select count(*) from t group by grouping sets (())
select k, count(*) from e group by rollup (k)
select k, count(*) from e group by grouping sets ((), (k))
select count(*) from e group by grouping sets ((), ())
select k, g, sum(n) from t group by rollup (k, g) having grouping(g) = 1
select k, g, sum(n) from t group by rollup (k, g) having grouping_id() > 0 order by k, g
select k, g, sum(n) as s from t group by rollup (k, g) order by grouping(k) desc, k, g
select case when grouping(k) = 1 then 'all' else cast(k as string) end as name, sum(n) from t
  group by rollup (k)
select k, count(distinct g), sum(distinct n) from t group by rollup (k)
select k, g, rank() over (partition by grouping(k) + grouping(g) order by sum(n) desc) as r from
  t group by rollup (k, g)
select k, g, sum(n) filter (where b) from t group by cube (k, g)
select distinct k, sum(n) from t group by rollup (k, g)
select 1, k, g, sum(n) from t group by rollup (2, 3)
select id, k from t group by rollup (id, k) having k is not null
select coalesce(g, 'all'), coalesce(k, -1), sum(p), avg(p) from t group by cube (g, k)
select k, k + 1, sum(n) from t group by rollup (k)
select a.k, b.s, count(*) from t a join u b on a.k = b.k group by rollup (a.k, b.s)
select * from (select k, g, sum(n) as s, grouping(k) as gr from t group by cube (k, g)) where gr
  = 0 and s > 10
"""


@pytest.mark.parametrize("text", cases(SETS))
def test_grouping_sets(text: str, spark: SparkSession) -> None:
    conforms(spark, text)
