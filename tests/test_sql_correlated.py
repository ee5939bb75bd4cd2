"""Subqueries that read the enclosing row."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from slackwater.errors import UserError
from tests.conform import cases, conforms, world

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCALARS = """
select id, (select max(s) from u where u.k = t.k) as m from t
select id, (select count(*) from u where u.k = t.k) as c from t
select id, (select count(u.y) + 1 from u where u.k = t.k) as c from t
select id, (select coalesce(sum(u.w), 0) from u where u.k = t.k) as c from t
select id, (select sum(u.w) from u where u.k = t.k) as c from t
select id, (select count(*) from u where u.k < t.k) as c from t
select id, (select count(*) from u where u.k <=> t.k) as c from t
select id, (select max(u.id) from u where u.k = t.k and u.s = t.g) as m from t
select id, (select max(u.id) from u where u.k = t.k and u.id <> t.id) as m from t
select id from t where n > (select avg(b.n) from t b where b.g = t.g)
select id from t where (select count(*) from u where u.k = t.k) = 0
select id from t where 2 > (select count(*) from u where u.k = t.k) or id = 9
select id from t where (select count(*) is null from u where u.k = t.k)
select g, (select max(s) from u where u.s = t.g) as m from t group by g, 2
select g, sum(n) from t group by g having sum(n) > (select count(*) from u where u.s = t.g)
select sum((select count(*) from u where u.k = t.k)) as s from t
select max(k + (select count(*) from u where u.id = t.id)) as s, g from t group by g
select id, case when b then (select count(*) from u where u.k = t.k) else -1 end as c from t
select id, (select count(distinct s) from u where u.k = t.k) as c from t
select id, (select max(c) from (select count(*) as c from u where u.k = t.k group by s)) as m
  from t
select id, (select s from u where u.k = t.k order by s desc limit 1) as m from t
select id, (select count(*) from (select distinct s from u where u.k = t.k)) as m from t
select id, (select count(*) from u where u.k = t.k having count(*) > 1) as m from t
select id, (select count(*) from u where u.k = t.k group by u.k) as m from t
select id, (select count(*) from u where u.k = t.k or u.s = t.g) as m from t
select id, (select count(*) from u join v on u.k = v.k where u.k = t.k) as m from t
select id, (select count(v.m) from u left join v on u.k = v.k where u.k = t.k) as m from t
select id, (select max(u.id) from u where u.k = t.k and u.k = (select max(k) from v where v.s =
  u.s)) as m from t
select id, (select count(*) from u where u.k = t.k and exists (select 1 from v where v.k = u.k))
  as m from t
select t.id, (select max(id) from u where u.k = v.k) as m from t join v on t.k = v.k
select id, (select max(x) from (select id as x from u where u.k = t.k union all select k from v
  where v.k = t.k)) as m from t
select id, (select count(*) from (select k from u where u.k = t.k union select k from v where
  v.k = t.k)) as m from t
select id, (select sum(r) from (select row_number() over (order by id) as r from u where u.k =
  t.k)) as m from t
select id, (select if(count(*) = 0, 'none', max(s)) from u where u.k = t.k) as m from t
select id, (select w from u where u.id = t.id) as m from t
select id, (select w from u where u.id = t.id and u.k = t.k limit 1) as m from t
select id, (select max(w) from e join u using (k) where u.id = t.id) as m from t
select id, (select count(*) from e where e.k = t.k) + 1 as m from t
select id, (select max(k) from v where v.k = t.k) - (select min(k) from v where v.k = t.k) as z
  from t
select id, (with c as (select * from u where k = 1) select count(*) from c where c.id = t.id) as
  m from t
select id, (select count(*) from u where upper(u.s) = upper(t.g)) as m from t
select id, (select count(*) from u where u.k + 1 = t.k) as m from t
select id, (select count(*) from u where u.k = t.k and t.b) as m from t
select id, (select count(*) from u where t.b) as m from t
"""

EXISTS = """
select id from t where exists (select 1 from u where u.k = t.k)
select id from t where not exists (select 1 from u where u.k = t.k)
select id from t where exists (select 1 from u where u.k = t.k and u.id <> t.id)
select id from t where not exists (select 1 from t b where b.g = t.g and b.id <> t.id and b.n >
  t.n)
select id from t where exists (select 1 from u where u.k < t.k)
select id from t where exists (select 1 from u where u.k = t.k or u.s = t.g)
select id from t where not exists (select 1 from u where u.k = t.k or u.d < t.d)
select id from t where exists (select 1 from u where u.k = t.k) or not exists (select 1 from v
  where v.k = t.k)
select id, exists (select 1 from u where u.k = t.k) as found from t
select id, exists (select 1 from u where u.k > t.k) as found from t
select id from t where exists (select 1 from u where u.k = t.k and not exists (select 1 from v
  where v.s = u.s and exists (select 1 from t c where c.id = v.k)))
select id from t where exists (select s from u where u.k = t.k group by s having count(*) > 1)
select id from t where exists (select count(*) from u where u.k = t.k)
select id from t where exists (select 1 from u where u.k = t.k limit 1)
select id from t where exists (select 1 from u where u.k = t.k union all select 1 from v where
  v.s = t.g)
select id from t where exists (select 1 from (select * from u where u.k = t.k) d where d.s = 'a')
select id from t where not (exists (select 1 from u where u.k = t.k) and b)
select g, count(*) from t where exists (select 1 from u where u.s = t.g) group by g
select u.id from u where exists (select 1 from t where t.x = u.y)
select id from t where exists (select 1 from u natural join v where v.k = t.k)
select t.id, u.id from t join u on t.k = u.k and exists (select 1 from v where v.k = t.k)
"""

IN = """
select id from t where n in (select m - 90 from v where v.k = t.k)
select id from t where g in (select s from u where u.k = t.k)
select id from t where g not in (select s from u where u.k = t.k)
select id from t where k not in (select k from u where u.s = t.g)
select id, k in (select k from u where u.s = t.g) as a, k not in (select k from u where u.s >
  t.g) as b from t
select id from t where (k, g) in (select k, s from u where u.id >= t.id)
select id from t where (k, g) not in (select k, s from u where u.id >= t.id)
select id from t where k in (select u.k from u where u.id = t.id) or g in (select s from v where
  v.k = t.k)
select id from t where id in (select max(id) from u where u.k = t.k)
select id from t where 0 in (select count(*) from u where u.k = t.k)
select id from t where 0 not in (select count(*) from u where u.k = t.k)
select id from t where id in (select id from u where u.k = t.k order by id limit 1)
select id from t where n in (select b.n from t b where b.g = t.g and b.id < t.id)
select id, id in (select t.id from u where u.k = t.k) as found from t
"""


@pytest.mark.parametrize("text", cases(SCALARS))
def test_scalar_subqueries_that_read_the_row(text: str, spark: SparkSession) -> None:
    conforms(spark, text)


@pytest.mark.parametrize("text", cases(EXISTS))
def test_exists_that_reads_the_row(text: str, spark: SparkSession) -> None:
    conforms(spark, text)


@pytest.mark.parametrize("text", cases(IN))
def test_in_that_reads_the_row(text: str, spark: SparkSession) -> None:
    conforms(spark, text)


TOO_MANY = """
select (select k from u) as v
select id, (select id from u where u.k = t.k) as v from t
select id, (select id from u where u.k <= t.k) as v from t
""".strip().splitlines()


@pytest.mark.parametrize("text", TOO_MANY)
def test_a_value_of_two_rows_raises(text: str, spark: SparkSession) -> None:
    here = world(spark)
    relation = here.bind(text)
    with pytest.raises(Exception, match="SCALAR_SUBQUERY_TOO_MANY_ROWS"):
        here.session.sql(text).toArrow()
    with pytest.raises(Exception, match="SCALAR_SUBQUERY_TOO_MANY_ROWS"):
        here.on_spark(relation)
    with pytest.raises(UserError, match="SCALAR_SUBQUERY_TOO_MANY_ROWS"):
        here.on_driver(relation)
