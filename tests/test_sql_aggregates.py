"""GROUP BY, HAVING, DISTINCT, FILTER, and every aggregate worth its name."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.conform import cases, conforms

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

GROUPS = """
select k, count(*), count(n), sum(n), min(n), max(n), avg(n) from t group by k
select g, sum(p), avg(p), min(p), max(p) from t group by g
select x, count(*) from t group by x
select count(*), count(1), count(k), sum(k) from e
select k, count(*) from e group by k
select sum(x), avg(x), min(x), max(x) from t where x < 1e10
select min(x), max(x) from t
select min(d), max(d), min(ts), max(ts), min(g), max(g), min(b), max(b) from t
select k + 1 as k1, count(*) from t group by k + 1
select k % 2, sum(n) from t group by 1
select k as key, g as name, count(*) from t group by key, name
select year(d), month(d), count(*) from t group by year(d), month(d)
select k, g, count(*) from t group by all
select upper(g) as u, sum(n) from t group by all
select sum(n) as s from t group by all
select k from t group by k
select k + 1, k * 2, count(*) + 1 from t group by k
select k + sum(n) as z from t group by k
select case when k > 1 then 'big' else 'small' end as size, count(*) from t group by 1
select case when k > 1 then 'big' else 'small' end, count(*) from t group by case when k > 1
  then 'big' else 'small' end
select g from t group by g having count(*) > 1
select g, count(*) as c from t group by g having c > 1
select k, sum(n) as n from t group by k having n > 0
select sum(n) as k, k as z from t group by k having k > 2
select sum(id) as n, k from t group by k having sum(n) > 20
select g, max(n) from t group by g having max(n) is null or g = 'a'
select count(*) from t having count(*) > 100
select 1 as one from t having count(*) > 1
select 1 from t having max(id) > 3
select sum(n) from t where false having sum(n) is null
select sum(n) + sum(k) * 2 - count(*) as z from t
select g, count(*) from t group by g order by count(*) desc, g
select g from t group by g order by sum(n) nulls last, g
select k, count(*) from t group by t.k
select t.k, count(*) from t group by k
select max(k) as k from t group by k
select sum(n) as k from t group by k
select a.g, sum(b.m) from t a join v b on a.k = b.k group by a.g
select g, k, sum(n) from (select g, k, n from t where n > 0) group by g, k
select d, ts, b, count(*) from t group by d, ts, b
select coalesce(k, 0) as k0, count(*) from t group by coalesce(k, 0) having coalesce(k, 0) < 5
select 'x' as c, count(*) from t group by 'x'
select 'x' as c, 5 as f, count(*) from t group by 1, 2
select count(*) c from t group by null
"""

CALLS = """
select count(distinct k), count(distinct k, g), count(distinct x) from t
select g, count(distinct k), sum(distinct n), avg(distinct p) from t group by g
select sum(distinct k), sum(k) from t
select count(distinct k) filter (where b) as c from t
select count(*) filter (where b), sum(n) filter (where k > 1), max(g) filter (where false) from t
select g, sum(n) filter (where k = 1) as a, sum(n) filter (where k <> 1) as b from t group by g
select count_if(b), count_if(k > 1) from t
select bool_and(b), bool_or(b), every(b), some(b), any(b) from t
select stddev(k), stddev_samp(k), stddev_pop(k), variance(k), var_samp(k), var_pop(n), std(k)
  from t
select k, stddev(id), variance(id), var_pop(id) from t group by k
select corr(k, n), covar_pop(k, n), covar_samp(k, n) from t
select skewness(n), kurtosis(n) from t
select median(n), percentile(n, 0.25), percentile(n, array(0.1, 0.9)) from t
select percentile_cont(0.5) within group (order by n) as m, percentile_disc(0.5) within group
  (order by n desc) as q from t
select mean(n), avg(k), avg(p), avg(x) from t where x < 10
select max_by(id, n), min_by(id, n) from t where id in (1, 5, 7)
select sort_array(collect_list(k)), sort_array(collect_set(g)) from t
select g, array_sort(collect_list(n)) as l from t group by g
select bit_and(k), bit_or(k), bit_xor(k) from t
select approx_count_distinct(k) from t
select regr_count(k, n), regr_avgx(k, n), regr_slope(k, n) from t
select try_sum(n), try_avg(p) from t
select first(k) from t where id = 1
select any_value(g) from t where id = 3
select max(struct(k, id)) as m from t
select histogram_numeric(k, 2) is not null as h from t
select listagg(s, ',') within group (order by s) as l from v where s is not null
select string_agg(s, '-') within group (order by s desc) as l from v
select mode(k) from t where k = 1
select count(k, g), count(id, k, n) from t
select count(*) - count(k) as nulls from t
select sum(cast(k as tinyint)), sum(cast(p as float)), sum(p + 1), sum(p * p) from t
select avg(cast(k as tinyint)), avg(cast(p as decimal(20, 10))), sum(cast(p as decimal(38, 2)))
  from t
select sum(1), sum(1.5), avg(1), max(null), min('a'), count(null) from t
select sum(id) / count(*), sum(p) / count(p) as r from t
select max(length(g)), min(abs(n)), sum(if(b, 1, 0)) from t
"""

DISTINCT = """
select distinct k from t
select distinct * from t
select distinct x from t
select distinct k, g from t order by g, k
select distinct k + 1 as z from t order by z desc
select distinct k from t order by k + 1
select distinct g, count(*) from t group by g
select count(*) from (select distinct k, g from t)
select distinct 1 from t
select distinct k from t limit 2
select all k from t
"""


@pytest.mark.parametrize("text", cases(GROUPS))
def test_group_by(text: str, spark: SparkSession) -> None:
    conforms(spark, text)


@pytest.mark.parametrize("text", cases(CALLS))
def test_aggregates(text: str, spark: SparkSession) -> None:
    conforms(spark, text)


@pytest.mark.parametrize("text", cases(DISTINCT))
def test_distinct(text: str, spark: SparkSession) -> None:
    conforms(spark, text)
