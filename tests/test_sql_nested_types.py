"""Arrays, maps, structs, generators, lambdas: Spark computes them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.conform import cases, conforms

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TYPES = """
select st.a, st.b, nest.st.a as c from nest
select st from nest where st.a > 0
select arr[0], element_at(arr, 1), size(arr), array_contains(arr, 5) from nest where size(arr) > 0
select try_element_at(arr, 2), m['q'], map_keys(m), map_values(m) from nest
select docs[0].a as a, docs.a as all from nest where id in (1, 4)
select transform(arr, x -> x + 1) from nest
select filter(arr, x -> x > id) as f from nest
select aggregate(arr, 0, (s, x) -> s + coalesce(x, 0)) as s from nest
select exists(arr, x -> x = 5) as e, forall(arr, x -> x > 0) as f from nest
select transform(arr, (x, i) -> x * i) as z, zip_with(arr, arr, (a, b) -> a + b) as y from nest
select transform_values(m, (k, v) -> v + id) as z from nest
select transform(docs, d -> d.a) as z from nest
select array_sort(arr, (a, b) -> case when a > b then -1 when a < b then 1 else 0 end) as s from
  nest where id = 4
select transform(arr, x -> transform(arr, y -> x + y)) as z from nest
select array(1, 2, id) as a, map('a', id) as m, struct(id, 'x' as name) as s, named_struct('a',
  1) as n from nest
select id, count(*) from nest group by id, arr
select distinct st from nest
select max(st) from nest
select id from nest where arr = array(5, 3, 5)
select concat(arr, array(9)) as c, arr || array(9) as d, reverse(arr) as r from nest
select cast(arr as array<string>) as a, cast(st as struct<a: bigint, b: string>) as s from nest
select to_json(st), from_json('{"a":1}', 'a INT') as j from nest
select a.id, b.id from nest a join nest b on a.st = b.st
select arr from nest order by arr, id limit 2
select st.a + 1, st.b || 'x' as z from nest order by st.a nulls last, id
select arr from nest union all select array(1)
"""

GENERATORS = """
select id, explode(arr) from nest
select id, explode(arr) as e from nest
select id, explode_outer(arr) as e from nest
select id, posexplode(arr) from nest
select id, posexplode(arr) as (p, e) from nest
select explode(m) from nest
select explode(m) as (key1, val1) from nest
select inline(docs) from nest where id = 1
select id, e from nest lateral view explode(arr) x as e
select id, e from nest lateral view outer explode(arr) x as e
select id, x.p, x.e from nest lateral view posexplode(arr) x as p, e
select id, a, b from nest lateral view explode(arr) x as a lateral view explode(arr) y as b
select id, key, value from nest lateral view explode(m) x
select e, count(*) from nest lateral view explode(arr) as e group by e
select * from nest lateral view explode(arr) x as e where e > 2
select stack(2, 1, 'a', 2, 'b')
select id, stack(2, id, 'a', 0, 'b') as (n, s) from nest
select explode(array(1, 2, 3)) as e
select id, d.a from nest lateral view explode(docs) x as d
select t.id, e from t join nest on t.id = nest.id lateral view explode(arr) x as e
select id, explode(sequence(1, id)) as i from nest
"""

OPAQUE = """
select * from range(3)
select id, e.col from nest, lateral explode(arr) as e
"""


@pytest.mark.parametrize("text", cases(TYPES))
def test_nested_types(text: str, spark: SparkSession) -> None:
    conforms(spark, text)


@pytest.mark.parametrize("text", cases(GENERATORS))
def test_generators(text: str, spark: SparkSession) -> None:
    conforms(spark, text)


@pytest.mark.parametrize("text", cases(OPAQUE))
def test_table_functions_are_left_to_spark(text: str, spark: SparkSession) -> None:
    conforms(spark, text, opaque="TABLE_FUNCTION")
