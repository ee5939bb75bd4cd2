"""Window functions, frames, QUALIFY."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.conform import cases, conforms

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FUNCTIONS = """
select id, row_number() over (order by id, n) from t
select id, row_number() over (partition by k order by n desc) as r from t
select id, rank() over (partition by k order by n), dense_rank() over (order by k) from t
select id, percent_rank() over (order by k), cume_dist() over (order by k) from t
select id, ntile(3) over (order by id) as q from t
select id, lag(n) over (order by id) as a, lead(n) over (order by id) as b from t
select id, lag(n, 2) over (order by id) as a, lead(n, 2, -1) over (order by id) as b, lag(id, 1,
  0) over (order by id) as c from t
select id, lag(id) over (partition by k order by id), lead(g, 1, 'none') over (partition by k
  order by id) from t
select id, first_value(n) over (partition by k order by id), last_value(n) over (partition by k
  order by id) from t
select id, first_value(n) ignore nulls over (partition by k order by id desc) as f from t
select id, last_value(n) ignore nulls over (order by id) as f, lag(n) ignore nulls over (order
  by id) as l from t
select id, nth_value(n, 2) over (order by id) as f, nth_value(n, 1) ignore nulls over (order by
  id) as m from t
select id, first(n, true) over (order by id) as f from t
select id, sum(n) over (), count(*) over (), avg(n) over (partition by k) from t
select id, sum(n) over (partition by k order by id) as s, max(x) over (partition by g) as m from t
select id, sum(p) over (order by d) as s, avg(p) over (order by d) as a from t
select id, count(*) over (partition by k) as c, count(n) over (partition by k order by n) as d
  from t
select id, min(g) over (order by id), max(d) over (partition by b order by id) from t
select id, sum(n) filter (where b) over (partition by k) as s from t
select id, stddev(n) over (partition by k) as s, collect_list(id) over (partition by k order by
  id, n) as l from t
select id, n - lag(n, 1, 0) over (order by id) as delta from t
select id, sum(n) over w as a, avg(n) over w as b from t window w as (partition by k)
select id, sum(n) over (w) as s from t window w as (partition by k order by id), z as (order by g)
select id, rank() over (order by k desc nulls last) as r from t
select id, rank() over (order by k nulls last, g desc nulls first) as r from t
select id, rank() over (order by x) as r from t
select k, sum(n) as s, rank() over (order by sum(n) desc) as r from t group by k
select k, sum(sum(n)) over (order by k) as running, sum(n) * 100 / sum(sum(n)) over () as share
  from t group by k
select k, count(*) over () as groups from t group by k
select g, avg(count(*)) over (partition by substring(g, 1, 1)) as a from t group by g
select id, case when row_number() over (order by id, n) = 1 then 'first' else g end as c from t
select row_number() over (order by id, n) + 1 as r, max(id) over () - id as d from t
select * from (select id, row_number() over (partition by k order by id, n) as r from t) where r
  = 1
select distinct k, count(*) over (partition by k) as c from t
select id, max(b) over (order by id) as m from t
select id, sum(k) over (partition by g, b order by d, id) as s from t
"""

FRAMES = """
select id, sum(n) over (order by id rows between unbounded preceding and current row) as s from t
select id, sum(n) over (order by id rows between 1 preceding and 1 following) as s from t
select id, sum(n) over (order by id rows between 2 preceding and 1 preceding) as s from t
select id, sum(n) over (order by id rows between 1 following and unbounded following) as s from t
select id, sum(n) over (order by id rows between current row and unbounded following) as s from t
select id, sum(n) over (order by id rows 2 preceding) as s from t
select id, count(*) over (order by id rows unbounded preceding) as s from t
select id, sum(n) over (order by id range between unbounded preceding and current row) as s from t
select id, sum(n) over (order by id range between 2 preceding and current row) as s from t
select id, sum(n) over (order by id range between 1 preceding and 3 following) as s from t
select id, sum(n) over (order by id range between current row and unbounded following) as s from t
select id, sum(n) over (order by id desc range between 2 preceding and current row) as s from t
select id, sum(n) over (order by k range between current row and current row) as s from t
select id, sum(n) over (order by k range between 1 preceding and 1 following) as s from t
select id, count(*) over (order by d range between interval 31 days preceding and current row)
  as c from t
select id, count(*) over (order by ts range between interval 1 hour preceding and interval 2
  hours following) as c from t
select id, first_value(n) over (order by id rows between 1 preceding and current row) as f from t
select id, last_value(n) over (order by id rows between current row and 1 following) as f from t
select id, max(x) over (partition by k order by id rows between unbounded preceding and
  unbounded following) as m from t
select id, avg(p) over (partition by k order by id rows between 1 preceding and current row) as
  a from t
select id, min(d) over (order by id rows between 3 following and 5 following) as m from t
select id, sum(n) over (partition by k rows between unbounded preceding and unbounded following)
  as s from t
select id, sum(n) over w as s from t window w as (order by id rows between 1 preceding and
  current row)
select id, sum(n) over (order by p range between 10.5 preceding and current row) as s from t
"""

QUALIFY = """
select id, k from t qualify row_number() over (partition by k order by id, n) = 1
select id, k, rank() over (order by n desc) as r from t qualify r <= 3
select k, sum(n) as s from t group by k qualify rank() over (order by s desc) = 1
select k, sum(n) as s from t group by k having count(*) > 1 qualify max(s) over () = s
select id from t where k is not null qualify count(*) over (partition by k) > 1 order by id limit 3
select * from t qualify max(id) over () = id
select id from t qualify row_number() over (order by id) in (select k from v)
select distinct k from t qualify sum(n) over (partition by k) > 10
"""


@pytest.mark.parametrize("text", cases(FUNCTIONS))
def test_window_functions(text: str, spark: SparkSession) -> None:
    conforms(spark, text)


@pytest.mark.parametrize("text", cases(FRAMES))
def test_frames(text: str, spark: SparkSession) -> None:
    conforms(spark, text)


@pytest.mark.parametrize("text", cases(QUALIFY))
def test_qualify(text: str, spark: SparkSession) -> None:
    conforms(spark, text)
