"""VALUES, WITH, derived tables, stars, aliases of columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.conform import cases, conforms

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CTES = """
with c as (select k, n from t) select * from c
with c as (select k from t), d as (select k from c where k > 1) select * from d
with c (a, b) as (select k, n from t) select a, b from c where a is not null
with c as (select k from t) select a.k, b.k from c a join c b on a.k = b.k
with c as (select k from t) select * from c where k in (select k from c where k > 2)
with t as (select 1 as one) select * from t
with c as (select 1 as a) select * from (with c as (select 2 as a) select * from c) x, c
with c as (with d as (select k from v) select k from d where k < 3) select * from c
with c as (select 1 as a), d as (with c as (select 2 as a) select a from c) select * from c, d
with c as (select k, count(*) as n from t group by k) select c.n, t.id from t left join c using (k)
with c as (select * from t order by id limit 3) select count(*) from c
with a as (select 1 as x), b as (select x + 1 as x from a), c as (select x + 1 as x from b)
  select * from a, b, c
select * from (with c as (select 5 as five) select five from c)
with unused as (select 1), c as (select 2 as b) select * from c
with C as (select K from T) select c.k from c
with c as (select k from t) (select k from c) union all select k from c
with c as (values (1, 'a'), (2, 'b')) select * from c
with c (x, y) as (values (1, 'a'), (2, 'b')) select y, x from c
select id, (with c as (select max(id) as m from u) select m from c) as m from t
"""

TABLES = """
values (1, 'a'), (2, null)
values 1, 2, 3
values (1, 2.5), (2.25, 3)
values (null), (1)
values (null)
values (1 + 1, upper('x'))
values (1, 'b'), (2, 'a') order by 2
values (array(1, 2)), (null)
select * from values (1, 'a'), (2, 'b') as v(id, name)
select * from values (1, 'a'), (2, 'b')
select col1 + 1 from values (1), (2)
select x.col1 from (values (1), (2)) x
select * from (select k, g from t) as a (key, name)
select a.key from (select k from t) a (key) where a.key > 1
select * from t as z (a, b, c, d, e, f, g, h, i) where a = 1
select z.a from u as z (a, b, c, d, e, f)
select * from (select * from (select id from t) where id > 3) where id < 6
select a.id from (select id from t) a, (select id from u) b where a.id = b.id
select *, id + 1 as next from t
select t.*, u.s from t, u where t.id = u.id
select t.id, u.* from t join u on t.id = u.id
select *, * from v
select * except (x, ts) from t
select t.* except (id, x) from t
select id as a, a + 1 as bb, bb * 2 as cc from t
select id as k, k + 1 as z from t
select n * 2 as twice, twice + 1 as more from t
select k as a, sum(n) as s, s / count(*) as avg from t group by k
select T.ID, `t`.`k` from T
select `id` as `odd name`, 1 as `a.b`, 2 as `c``d` from t
select 1, 'x', null, true, 1.5, 1e3
select 1 where 1 = 2
select id from t as `T 1` where `T 1`.id = 1
from v select k
select 1 as a, 2 as a
select a.x + 1 from (select 1 as x, 2 as x2) a
"""


@pytest.mark.parametrize("text", cases(CTES))
def test_ctes(text: str, spark: SparkSession) -> None:
    conforms(spark, text)


@pytest.mark.parametrize("text", cases(TABLES))
def test_derived_tables_and_values(text: str, spark: SparkSession) -> None:
    conforms(spark, text)
