"""UNION, INTERSECT, EXCEPT."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.conform import cases, conforms

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

OPERATIONS = """
select k from t union select k from u
select k from t union all select k from u
select k from t union distinct select k from v
select k from t intersect select k from u
select k from t intersect all select k from u
select k from t except select k from u
select k from t except all select k from u
select k from t minus select k from v
select k from t minus all select k from v
select k, g from t intersect select k, s from u
select x from t intersect select y from u
select x from t except select y from u
select x from t union select y from u
select k from t union select m from v
select k from t union all select w from u
select n from t union select p from t
select p from t union all select w from u
select p from t union all select x from t
select d from t union select ts from t
select k as a from t union all select id as b from u
select 1 as one union all select null
select null as a union all select 'x'
select null union all select null
select 1 union all select 2.5 union all select 3
select 1 union select 1L union select cast(1 as tinyint)
select k from t union select k from u union all select k from v
select k from t union all select k from u intersect select k from v
select k from t except select k from u union select k from v
(select k from t except select k from u) union all select k from v
select k from t except (select k from u union select k from v)
(select k from t order by k limit 2) union all (select k from u order by k desc limit 2)
select k from t union all (select k from u order by id limit 1)
select k from t union select k from u order by k desc nulls last
select k from t union all select k from u order by 1 limit 5
select k from t union all select k from u order by k limit 3 offset 2
select k as a, g from t union all select k, s from u order by a + 1, g limit 4
(select k from t) union (select k from u) order by k
((select k from t))
((select k from t limit 3)) limit 1
select * from (select k from t union all select k from u) as x where k > 1
select k, count(*) from (select k from t union all select k from u union all select k from v)
  group by k
select * from t union select * from t
select * from e union all select k, s, null from v
select k from e union select k from v
select k from e intersect all select k from v
select k from v except all select k from e
select k from t where id in (1, 2, 3) except all select k from u
select b from t intersect select true
select 'a' as s union select s from v union select g from t
select sum(n) from t union all select count(*) from u
select struct(1 as a) union all select struct(2 as a)
select k from (values (1), (null), (null)) as a(k) intersect all select k from u
with c as (select k from t) select k from c union all select k from c except select 1
"""


@pytest.mark.parametrize("text", cases(OPERATIONS))
def test_set_operations(text: str, spark: SparkSession) -> None:
    conforms(spark, text)
