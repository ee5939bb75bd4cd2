"""ORDER BY, LIMIT, OFFSET. Ties are broken alike, so cut results are equal too."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.conform import cases, conforms

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ORDERS = """
select id from t order by id limit 3
select id, k from t order by k limit 4
select id, k from t order by k desc limit 4
select id, k from t order by k nulls last limit 4
select id, k from t order by k desc nulls first limit 4
select id, g from t order by 2, 1 limit 5
select id from t order by n limit 3
select id from t order by n * -1, id limit 3
select id as z from t order by z desc limit 2
select id as k from t order by k limit 2
select -id as id from t order by id limit 2
select -id as id from t order by t.id limit 2
select id + 1 from t order by id + 1 limit 2
select id from t order by upper(g), id limit 4
select x from t order by x
select x from t order by x desc limit 4
select id from t limit 0
select id from t order by id limit 1 + 1
select id from t order by id limit 2 * 2 offset 3 - 1
select id from t limit all
select id from t order by id limit all offset 7
select id from t order by id offset 3
select id from t order by id limit 2 offset 3
select id from t limit 3
select * from t order by id limit 20 offset 9
select * from t limit 2
select t.* from t join u using (k) order by u.id limit 3
select k, count(*) as c from t group by k order by c desc, k limit 2
select k from t group by k order by max(n) desc limit 2
select g from (select g from t order by id limit 3) order by g
select id from (select id, k from t order by k desc limit 5) where k = 3
select distinct k from t order by k desc limit 2
select distinct k, g from t order by g limit 3
select id from t order by b, d desc, id limit 6
select id from t order by case when k = 3 then 0 else 1 end, id limit 4
select id, rank() over (order by n) as r from t order by r, id limit 3
select * from (values (2, 'b'), (1, 'a'), (3, null)) order by col2 desc limit 2
select id from t sort by id
select id from t distribute by k
select id from t cluster by id
select id, n from t order by n + k, id limit 3
select a.id from t a order by a.n desc, a.id limit 3
select id from t order by all
select k, id from t order by all desc limit 4
select id from t order by 'x', id limit 3
select id from t order by null limit 2
select id from t order by (select 1), id limit 2
select g, sum(n) from t group by g order by sum(n) / count(*) desc nulls last limit 2
select id from t where id > 3 order by id desc limit 2
"""


@pytest.mark.parametrize("text", cases(ORDERS))
def test_order_and_limit(text: str, spark: SparkSession) -> None:
    conforms(spark, text)
