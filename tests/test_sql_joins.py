"""Joins of all kinds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.conform import cases, conforms

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CONDITIONS = """
select * from t join u on t.k = u.k
select t.*, u.s from t inner join u on t.k = u.k and u.y > 1
select * from t left join u on t.k = u.k
select t.id, u.id from t left outer join u on t.k = u.k and t.p > u.w
select * from t right join u on t.k = u.k
select t.id, u.id, u.s from t right outer join u on t.k = u.k and t.b
select t.id, t.g, u.id, u.s from t full join u on t.k = u.k
select * from t full outer join u on t.id = u.id and t.g = u.s
select t.id, u.id from t cross join u
select t.id, u.id, v.m from t, u, v where t.k = u.k and u.k = v.k
select t.id, u.id, v.m from t, u left join v on u.k = v.k where t.id = u.id
select * from t left semi join u on t.k = u.k
select t.id from t semi join u on t.k < u.k
select * from t left anti join u on t.k = u.k
select t.id from t anti join u on t.k = u.k and u.s = 'a'
select t.id, u.id from t join u on t.k <=> u.k
select t.id, u.id from t left join u on t.k <=> u.k
select t.id, u.id from t full join u on t.k <=> u.k and t.d <=> u.d
select t.id, u.id from t join u on t.x = u.y
select t.id, u.id from t join u on t.x <=> u.y
select t.id, u.id from t join u on t.x > u.y
select t.id, u.id from t left join u on t.k < u.k
select t.id, u.id from t full join u on t.k > u.k
select t.id, u.id from t right join u on t.k between u.id - 3 and u.id
select t.id, u.id from t join u on t.k = u.k or t.id = u.id
select t.id, u.id from t left join u on t.k = u.k or t.d = u.d
select t.id, u.id from t full join u on t.id = u.id or t.g = u.s
select t.id, u.id from t left join u on true where u.id > 10
select t.id, u.id from t left join u on false
select t.id, u.id from t full join u on t.k = u.k and null
select t.id, e.s from t left join e on t.k = e.k
select t.id, e.s from t right join e on t.k = e.k
select t.id, e.s, e.z from t full join e on t.k = e.k
select t.id from t left anti join e on t.k = e.k
select t.id from t left semi join e on true
select a.id, b.id from t a join t b on a.k = b.k where a.id < b.id
select a.id, b.id, c.id from t a join t b on a.k = b.k left join t c on b.n = c.n and c.id > b.id
select x.id from t as x join (select k, max(id) as top from u group by k) as y on x.k = y.k
select t.id, u.w from t join u on t.p = u.w
select t.id, u.w from t join u on t.n = u.w
select t.id, v.m from t join v on t.p < v.m
select t.id, u.d from t join u on t.ts = u.d
select t.id from t join u on t.k = u.k join v on u.k = v.k and t.g = v.s
select * from (t join u on t.k = u.k) left join v on t.id = v.k
select t.id, s.m from t left join (u join v on u.k = v.k) s on t.id = s.m
select t.id, u.id, v.m from t left join (u join v on u.k = v.k) on t.k = u.k
select t.id, u.id, v.m from (t left join u on t.k = u.k), v where v.k = t.id
select upper(t.g), u.s || '!' from t join u on lower(t.g) = lower(u.s)
select t.id, u.id from t join u on t.k + 1 = u.k * 1
select count(*) from t, u
select t.id from t left join u on t.k = u.k where u.id is null
select t.id, u.k is null as missing from t left join u on t.k = u.k
select coalesce(u.s, 'none'), count(*) from t left join u on t.k = u.k group by u.s
"""

USING = """
select * from t join u using (k)
select * from t left join u using (k)
select * from t right join u using (k)
select * from t full join u using (k)
select * from t join u using (k, id)
select * from t full join u using (id, k)
select * from t full join v using (k)
select * from t left semi join u using (k)
select * from t left anti join u using (k, d)
select k, t.k, u.k from t join u using (k)
select k, t.k, u.k from t left join u using (k)
select k, t.k, u.k from t right join u using (k)
select k, t.k, u.k, t.id, u.id from t full join u using (k)
select t.*, u.* from t full join u using (k)
select t.* from t join u using (k)
select u.* from t right join u using (k)
select * from t join u using (k) join v using (k)
select * from u left join v using (k) left join e using (k)
select * from u full join v using (k) full join e using (k)
select k, u.k, v.k, e.k from u full join v using (k) full join e using (k)
select k, s, u.s from u join v using (k, s)
select k, count(*), sum(u.id) from t full join u using (k) group by k
select k from t full join u using (k) where k is null
select k + 1 as k1 from t full join u using (k) order by k
select * from (select k, id from t) a full join (select k, s from u) b using (k) where s is null
select a.k, b.k from t a left join t b using (id)
select * except (d) from u join v using (k)
select k, id from u natural join v
select * from u natural join v
select * from u natural left join v
select * from u natural right join v
select * from u natural full join v
select * from v natural join e
select * from (select id, x from t) natural join (select n, ts from t where id < 3)
select V.K from u natural full join v
select u.k, v.s from u natural full join v
select max(k) from t right join u using (k)
"""

LATERAL = """
select t.id, l.s from t, lateral (select s from u where u.k = t.k) l
select t.id, l.c from t, lateral (select count(*) as c from u where u.k = t.k) as l
select t.id, l.s from t left join lateral (select s from u where u.k = t.k) l on true
select t.id, l.s, l.y from t join lateral (select s, y from u where u.k > t.k) l on l.y > t.x
select t.id, top from t, lateral (select max(id) as top from u where u.k <=> t.k)
select t.id, l.id2 from t, lateral (select id as id2 from u where k = t.k order by id limit 1) l
select t.id, l.z from t, lateral (select t.id + 1 as z) l
select t.id, l.z, m.y from t, lateral (select t.id + 1 as z) l, lateral (select z * 2 as y) m
select t.id, l.c from t left join lateral (select c from (select count(*) c from u) where c >
  t.id) l
select t.id, l.s from t cross join lateral (select distinct s from u where u.d = t.d) l
"""


@pytest.mark.parametrize("text", cases(CONDITIONS))
def test_joins_on_conditions(text: str, spark: SparkSession) -> None:
    conforms(spark, text)


@pytest.mark.parametrize("text", cases(USING))
def test_joins_on_names(text: str, spark: SparkSession) -> None:
    conforms(spark, text)


@pytest.mark.parametrize("text", cases(LATERAL))
def test_lateral_joins(text: str, spark: SparkSession) -> None:
    conforms(spark, text)
