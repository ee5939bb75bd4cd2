"""Syntax that Spark's analyzer lacks: compared with a text of the same meaning."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.conform import conforms

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SAME: dict[str, str] = {
    # ANY and ALL
    "select id from t where k = any (select k from u)": (
        "select id from t where k in (select k from u)"
    ),
    "select id from t where k <> all (select k from v)": (
        "select id from t where k not in (select k from v)"
    ),
    "select id from t where k <> all (select k from u)": (
        "select id from t where k not in (select k from u)"
    ),
    "select id from t where k > all (select k from e)": "select id from t",
    "select id from t where k > any (select k from e)": "select id from t where false",
    "select id from t where id > all (select k from v where k < 5)": (
        "select id from t where id > (select max(k) from v where k < 5)"
    ),
    "select id from t where id >= some (select k from v)": (
        "select id from t where id >= (select min(k) from v)"
    ),
    "select id from t where id < all (select k from u)": "select id from t where false",
    "select id from t where id > any (select u.id from u where u.k = t.k)": (
        "select id from t where exists (select 1 from u where u.k = t.k and t.id > u.id)"
    ),
    "select id, k > all (select k from v where k < 3) as a from t": (
        "select id, k > (select max(k) from v where k < 3) as a from t"
    ),
    # references two queries further out
    """select id from t where exists (select 1 from u where u.k = t.k
         and exists (select 1 from v where v.k = u.k and v.s = t.g))""": (
        """select distinct t.id from t join u on u.k = t.k join v on v.k = u.k and v.s = t.g"""
    ),
    """select id from t where exists (select 1 from u where exists
         (select 1 from v where v.k = t.k and v.k = u.k))""": (
        "select id from t where exists (select 1 from u join v using (k) where v.k = t.k)"
    ),
    """select id, (select count(*) from u where u.id = t.id
         and exists (select 1 from v where v.k = t.k)) as c from t""": (
        """select id, case when k in (select k from v)
             then (select count(*) from u where u.id = t.id) else 0L end as c from t"""
    ),
    """select id from t where not exists (select 1 from u where u.k = t.k and u.id >
         (select count(*) from v where v.k = t.k
           and v.m > (select max(n) from t c where c.g = t.g)))""": (
        """select id from t where k is null or k not in (select k from u where k is not null)"""
    ),
    # outer values outside WHERE
    "select id, (select t.n + max(u.id) from u) as m from t": (
        "select id, n + (select max(u.id) from u) as m from t"
    ),
    "select id, (select max(u.id + t.id) from u where u.k = t.k) as m from t": (
        "select id, (select max(u.id) from u where u.k = t.k) + id as m from t"
    ),
    # subqueries in ORDER BY
    "select id from t order by k in (select k from v), id limit 3": (
        "select id from (select id, k in (select k from v) as f from t order by f, id limit 3)"
    ),
    "select id from t order by (select max(s) from u where u.k = t.k), id limit 4": (
        """select id from (select id, (select max(s) from u where u.k = t.k) as m from t
           order by m, id limit 4)"""
    ),
    "select g, (select max(s) from u where u.s = t.g) as m from t group by g": (
        "select g, (select max(s) from u where u.s = x.g) as m from (select distinct g from t) x"
    ),
    # windows over aggregates in QUALIFY
    "select k, sum(n) as s from t group by k qualify rank() over (order by sum(n) desc) = 1": (
        "select k, sum(n) as s from t group by k qualify rank() over (order by s desc) = 1"
    ),
}


@pytest.mark.parametrize("text", SAME)
def test_equal_to_the_text_that_spark_reads(text: str, spark: SparkSession) -> None:
    conforms(spark, text, as_=SAME[text])
