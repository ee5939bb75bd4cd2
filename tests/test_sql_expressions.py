"""Scalar expressions: operators, CASE, casts, functions, intervals."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.conform import cases, conforms

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

OPERATORS = """
select k + 1, k - 1, k * 2, k / 2, k % 2, k div 2, -k, +k from t
select p + 1, p - w, p * w, p / w, p % w from t join u using (k)
select n + p, n * x, p + x, p / 3, 2 / p as r from t where p <> 0
select id & 1, id | 8, id ^ 3, ~id, id << 2, id >> 1, shiftleft(id, 1) from t
select k = 1, k <> 1, k != 1, k < 1, k <= 1, k > 1, k >= 1, k <=> null from t
select x = x, x > 0, x <=> x, x < double('NaN'), x = 0.0 from t
select b and k > 1, b or k > 1, not b, not (b and b) from t
select k is null, k is not null, b is true, b is not true, b is false, b is not false from t
select k between 1 and 2, k not between 1 and 2, g between 'a' and 'b' from t
select k in (1, 2), k not in (1, 2), k in (1, null), g in ('a', 'b'), k in (1, 2.5) from t
select g like 'a%', g like '%a%', g not like '_', g ilike 'A%', g like 'a!%' escape '!' from t
select g like any ('a%', 'b%'), g like all ('%a', 'a%'), g like some ('x', ''), g not like any
  ('a%', 'b%') from t
select g rlike '^a', g regexp 'b$', rlike(g, 'Z.*') from t
select case k when 1 then 'one' when 2 then 'two' else 'many' end from t
select case when k > 1 then n when b then 0 end from t
select case when b then 1 when not b then 2.5 else null end as c from t
select if(k > 1, 'x', 'y'), ifnull(k, 0), nvl(k, 0), nullif(k, 1), nvl2(k, 1, 2), coalesce(k, n,
  0) from t
select g || '-' || k, 'a' 'b', concat(g, k), concat_ws(',', g, k) from t
select 1 + 1, 1.5 * 2, 'x' || 'y', 10 / 4, 7 div 2, -5 % 3, 2 * (3 + 4) from v
select (k), ((k + 1)), - (k), -1, - 1.5, -(-1) from t
select date '2024-01-01', timestamp '2024-01-01 10:00:00', x'1F', 1L, 1S, 1Y, 1.5BD, 1.5D, 1.5F,
  1e2 from v
select true, false, null, 'it''s', "double", r'raw', '' from v
select current_date = current_date(), now() = current_timestamp() from v
select k::bigint, cast(k as string), try_cast(g as int), int(p), string(k), double(k), bigint(k)
  from t
select id = (select max(id) from t), id + (select 1) from t
select t.k, t.k + t.id, count(*) over (partition by t.k) from t
select sum(n) filter (where b), count(distinct k), count(distinct k, g), sum(distinct n) from t
select rank() over (partition by k order by n desc), sum(n) over (order by id rows between 1
  preceding and current row) from t
select lag(n, 1) over (order by id, n), max(n) over () from t
select exists (select 1 from u), k in (select k from v) from t
"""

FUNCTIONS = """
select abs(n), ceil(p), floor(p), round(p, 1), bround(p), sign(n), sqrt(abs(n)), power(k, 2),
  exp(k), ln(id), log10(id) from t
select ceil(x), floor(x), round(x, 1) from t where x between -10 and 10
select greatest(k, n, 1), least(k, n), mod(n, 3), pmod(n, 3), negative(k), positive(k) from t
select length(g), upper(g), lower(g), trim(g), ltrim(g), rtrim(g), initcap(g), reverse(g) from t
select substring(g, 1, 2), substr(g, 2), substring(g from 2 for 1), left(g, 1), right(g, 2),
  replace(g, 'a', 'b') from t
select trim(both 'a' from g), trim(leading ' ' from g), trim(trailing 'h' from g), btrim(g) from t
select lpad(g, 4, '*'), rpad(g, 4, '*'), repeat(g, 2), locate('a', g), position('a' in g),
  instr(g, 'c') from t
select year(d), month(d), day(d), dayofmonth(d), dayofweek(d), dayofyear(d), quarter(d),
  weekofyear(d) from t
select hour(ts), minute(ts), second(ts), extract(year from d), extract(HOUR from ts),
  date_part('month', d) from t
select d + 1, d - 1, date_add(d, 30), date_sub(d, 1), datediff(d, date '2024-01-01'), d - date
  '2024-01-01' from t
select d + interval 1 day, d - interval 2 months, ts + interval 1 hour, d + interval 1 year from t
select ts - interval '1 2:03:04' day to second as a, d + interval '1-2' year to month, interval
  1 day * 2 from t
select add_months(d, 1), last_day(d), trunc(d, 'MM'), date_trunc('month', ts), next_day(d,
  'MON') from t
select months_between(d, date '2024-01-01'), to_date('2024-05-06'), to_timestamp('2024-05-06
  07:08:09') from t
select date_format(d, 'yyyy-MM'), unix_timestamp(ts), from_unixtime(0), make_date(2024, 1, 2)
  from t
select ts - ts, d - d, ts > d, d = '2024-01-31', ts < '2024-02-01' from t
select date(ts), cast(ts as date), cast(d as timestamp), cast(d as string), cast('2024-01-02' as
  date) from t
select cast(p as int), cast(p as double), cast(p as decimal(10, 1)), cast(k as decimal(5, 2)),
  cast(b as int), cast(1 as boolean) from t
select cast(k as tinyint), cast(n as smallint), cast(x as float), cast(p as string), cast(b as
  string), cast('1.5' as double) from t
select cast(' 12 ' as int), cast('true' as boolean), cast('abc' as binary), cast(null as int),
  cast('1' as decimal(3, 1)) from v
select try_cast('x' as int), try_cast('2024-13-01' as date), try_divide(k, 0), try_add(k, 1) from t
select md5(g), sha2(g, 256), crc32(g), hash(k, g), xxhash64(k), base64(cast(g as binary)),
  hex(id) from t
select split(g, 'a'), regexp_replace(g, 'a', 'b'), regexp_extract(g, '(.)', 1), translate(g,
  'ab', 'xy'), ascii(g) from t
select isnull(k), isnotnull(k), isnan(x), nanvl(x, 0D), nullif(g, ''), zeroifnull(k),
  nullifzero(k) from t
select format_number(p, 1), bin(id), conv('10', 10, 2), e(), pi(), degrees(0), radians(180) from t
select typeof(t.k), typeof(p + 1), typeof(n / 2) from v join t on v.k = t.id
select decode(k, 1, 'one', 2, 'two', 'other') from t
select width_bucket(k, 0, 10, 5), factorial(id), cbrt(8) from t
select timestampadd(day, 1, ts), timestampdiff(hour, ts, ts), dateadd(month, 1, d), dateadd(d,
  1) from t
select make_interval(0, 1) is null as i, interval '3' day + interval '1' hour from v
select k + cast(1 as bigint), k + 1.5, p + cast(1 as float), g + 1 from t where g is null
select '5' + 3, '5' * 2.0, '10' > 9, concat(1, 2.5, true), 1 = '1', 'a' = 1 is null from v where
  false
select char_length(g), octet_length(g), bit_length(g), startswith(g, 'a'), endswith(g, 'a'),
  contains(g, 'ü') from t
select space(2) || 'x', chr(65), elt(1, 'a', 'b'), find_in_set('b', 'a,b'), soundex('x'),
  levenshtein(g, 'a') from t
select struct(k, g).k, array(1, 2)[0], map('a', 1)['a'], named_struct('x', k).x from t
select floor(p, 1), ceil(p, 1), round(k, -1), round(x) from t where x between -1 and 3
"""


@pytest.mark.parametrize("text", cases(OPERATORS))
def test_operators_and_names(text: str, spark: SparkSession) -> None:
    conforms(spark, text)


@pytest.mark.parametrize("text", cases(FUNCTIONS))
def test_functions(text: str, spark: SparkSession) -> None:
    conforms(spark, text)
