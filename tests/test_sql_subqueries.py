"""Subqueries as values, EXISTS, IN, ANY and ALL, without correlation."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.conform import cases, conforms

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

VALUES = """
select id, (select max(id) from u) as top from t
select id, (select id from u where s = 'é') from t
select (select 1)
select (select k from e) as nothing, id from t
select id from t where p > (select avg(w) from u)
select id from t where k = (select min(k) from u) or b
select g, sum(n) as total from t group by g having sum(n) > (select avg(n) from t)
select g, count(*) from t group by g having count(*) >= (select count(*) from e)
select id from t order by (select max(id) from u) - id
select id, case when k = (select max(k) from u) then 'top' when k is null then 'none' else g end
  c from t
select case (select count(*) from e) when 0 then 'empty' else 'full' end as c
select sum(n + (select min(id) from u)) as s from t
select g, max((select max(k) from u) - k) as m from t group by g
select count(*) filter (where id > (select avg(id) from u)) as c from t
select t.id, u.id from t join u on t.k = u.k and t.id > (select min(k) from u)
select (select max(id) from u) + (select min(id) from u) as both
select (select max(id) from (select id from u order by id limit 3)) as m
select id from t where n between (select min(m) from v) and (select max(m) from v)
select coalesce((select s from u where id = 999), 'none') as c from t limit 2
select id from t where (select count(*) from u) > 3 and id < 3
select id, (select count(*) from u) as c, row_number() over (order by id) as r from t
select g, rank() over (order by (select max(id) from u) - sum(n)) as r from t group by g
select abs((select min(n) from t)) as a, -(select max(n) from t) as b
select id from t where d = (select max(d) from t where d < (select max(d) from u))
select (select w from u where id = 1) * p as z from t
select if((select true), id, k) as z from t
select id, x in (select y from u) as found from t
select (select max(g) from t) || (select min(s) from u) as z
select max((select 5)) as m from t
select id from t where (select b from t where id = 1)
"""

EXISTS = """
select id from t where exists (select 1 from u)
select id from t where not exists (select 1 from u)
select id from t where exists (select * from e)
select id from t where not exists (select * from e)
select id, exists (select 1 from e) as found from t
select id, not exists (select 1 from e where k = 1) or b as found from t
select id from t where exists (select 1 from u where s = 'zzz') or id = 1
select id from t where exists (select count(*) from e)
select count(*) from t where case when exists (select 1 from u) then b else false end
select g, count(*) from t group by g having exists (select 1 from v where m > 250)
"""

IN = """
select id from t where k in (select k from u)
select id from t where k not in (select k from u)
select id from t where k not in (select k from u where k is not null)
select id from t where k in (select k from e)
select id from t where k not in (select k from e)
select id from t where not k in (select k from v)
select id, k in (select k from u) as a, k not in (select k from u) as b from t
select id, k in (select k from v) as a, k not in (select k from v) as b from t
select id, k in (select k from e) as a, k not in (select k from e) as b from t
select id, null in (select k from e) as a from t where id = 1
select id from t where (k, id) in (select k, id from u)
select id from t where (k, id) not in (select k, id from u where k is not null)
select id from t where (k, id) not in (select k, id from u)
select id, (k, g) in (select k, s from u) as found from t
select id from t where k in (select k from u) or g in (select s from v)
select id from t where k in (select k from u) and g not in (select s from v where s is not null)
select id from t where (k in (select k from u)) is null
select id from t where (k in (select k from u)) = b
select id from t where coalesce(k in (select k from u), false)
select id from t where k + 1 in (select k from v)
select id from t where p in (select w from u)
select id from t where n in (select w from u)
select id from t where x in (select y from u)
select id from t where x not in (select y from u where y is not null)
select id from t where k in (select k from u intersect select k from v)
select id from t where k in (select k from u union select k from v)
select id from t where k in (select max(k) from u group by s)
select id from t where k in (select k from u order by id desc limit 2)
select id from t where k in (1, 2) and k in (select distinct k from u)
select t.id from t join u on t.id = u.id where t.k in (select k from v) and u.s not in ('a')
select case when k in (select k from u) then 'in' else 'out' end as c, count(*) from t group by 1
select sum(case when k in (select k from v) then 1 else 0 end) as c from t
select count(*) filter (where k in (select k from v)) as c from t
select g, count(*) as c from t group by g having count(*) in (select k from v)
select t.id, u.id from t join u on t.k = u.k and t.id in (select k from v)
select t.id, u.id from t left join u on t.k = u.k where u.k in (select k from v)
select id from t where 1 in (select k from u)
select id from t where id in (select id from u where k in (select k from v where m > 100))
select id from t where k not in (select k from v where k not in (select k from u where k is not
  null))
select id from t where g in (select upper(s) from u) or g in (select lower(s) from u)
"""


@pytest.mark.parametrize("text", cases(VALUES))
def test_scalar_subqueries(text: str, spark: SparkSession) -> None:
    conforms(spark, text)


@pytest.mark.parametrize("text", cases(EXISTS))
def test_exists(text: str, spark: SparkSession) -> None:
    conforms(spark, text)


@pytest.mark.parametrize("text", cases(IN))
def test_in(text: str, spark: SparkSession) -> None:
    conforms(spark, text)
