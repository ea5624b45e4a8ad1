"""What Spark answers through binding, against a real PostgreSQL's answers to the same text.

Expressions run over a small table of ships: an ordinary row, a negative one, one of zeros and empties, one of NULLs.
Most stand in the files of `answers/`, one on a line; those with a `=>` are of functions that this PostgreSQL lacks.
Answers are compared as PostgreSQL prints them. Three kinds of difference are by design and taken out first: a numeric
of no declared precision prints without trailing zeros and keeps 18 digits, timestamptz shows its offset in full, and
fractions of a second have three digits or six. Floating-point numbers get an exponent later than PostgreSQL's: those
that it would have written with one stand in `answers/beyond.txt`.
"""

# ruff: noqa: E501 -- a query stands on one line

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import psycopg
import pytest
import sqlglot
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from seiche.errors import SeicheError, UndefinedTable
from seiche.model import Column
from seiche.sql.bind import BoundQuery, BoundRelation, Settings, bind_insert, bind_query
from seiche.sql.dialect import Seiche
from seiche.sql.failures import failure_of, translate_spark_error
from seiche.sql.text import format_value
from seiche.stream import attempts
from seiche.types import (
    BIGINT,
    BOOLEAN,
    BYTEA,
    DATE,
    DOUBLE,
    INTEGER,
    INTERVAL,
    JSONB,
    NUMERIC,
    REAL,
    SMALLINT,
    TIME,
    TIMESTAMP,
    TIMESTAMPTZ,
    VARCHAR,
    Kind,
    SqlType,
    array_of,
    numeric,
)  # fmt: skip
from tests.integration.postgres import temporary_server

pytestmark = pytest.mark.spark

SHIPS = BoundRelation(
    1,
    "ships",
    (
        Column("id", INTEGER), Column("s", SMALLINT), Column("i", INTEGER), Column("b", BIGINT),
        Column("n", numeric(10, 2, declared=True)), Column("f", NUMERIC), Column("r", REAL), Column("d", DOUBLE),
        Column("t", VARCHAR), Column("u", VARCHAR), Column("flag", BOOLEAN), Column("day", DATE),
        Column("ts", TIMESTAMP), Column("tz", TIMESTAMPTZ), Column("iv", INTERVAL), Column("tm", TIME),
        Column("j", JSONB), Column("ia", array_of(INTEGER)), Column("ta", array_of(VARCHAR)), Column("bin", BYTEA),
    ),
    None,
    "ships",
)  # fmt: skip
BERTHS = BoundRelation(
    2,
    "berths",
    (
        Column("id", INTEGER),
        Column("ship", INTEGER),
        Column("quay", VARCHAR),
        Column("depth", numeric(6, 2, declared=True)),
    ),
    None,
    "berths",
)
DDL = """
CREATE TABLE ships (id integer, s smallint, i integer, b bigint, n numeric(10,2), f numeric, r real, d double precision,
  t text, u text, flag boolean, day date, ts timestamp, tz timestamptz, iv interval, tm time, j jsonb, ia integer[],
  ta text[], bin bytea);
CREATE TABLE berths (id integer, ship integer, quay text, depth numeric(6,2));
"""
SHIP_ROWS = r"""VALUES
 (1, 7, 42, 5000000000, 12.50, 3.14159, 1.5, 2.5, 'Hello World', 'o', true, '2024-02-29', '2024-02-29 13:45:06.789',
  '2024-02-29 13:45:06.789+02', '1 year 2 mons 3 days 04:05:06.5', '13:45:06.5',
  '{"a": 1, "b": {"c": [1, 2, "x"]}, "n": null, "s": "txt"}', '{1,2,3,NULL,2}', '{a,"b c",NULL,""}', '\xdeadbeef'),
 (2, -3, -7, -17, -0.75, -2.5, -0.25, -3.5, 'abc,def,,g', 'c', false, '1999-12-31', '1999-12-31 23:59:59.999999',
  '1999-12-31 23:59:59-05', '-1 mons -5 days +02:03:04', '00:00:01', '[1, "two", {"k": true}]', '{-1,0}', '{z}', '\x00ff'),
 (3, 0, 0, 0, 0.00, 0, 0, 0, '', '', false, '2000-01-01', '2000-01-01 00:00:00', '2000-01-01 00:00:00+00', '00:00:00',
  '00:00:00', '{}', '{}', '{}', '\x'),
 (4, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)"""
BERTH_ROWS = """VALUES (1, 1, 'north', 9.50), (2, 1, 'south', 7.25), (3, 2, 'north', 12.00), (4, 9, 'east', 3.10),
 (5, NULL, 'west', NULL)"""

ARITHMETIC = """
i + 1 | i - b | i * 2 | i / 2 | i / -5 | b / 3 | i % 5 | b % 7 | -i | s + s | s / 2::smallint | i + n | n * n
n / 3 | n - f | f * f | f / 7 | f + 0.1 | i / 2.0 | 10 / 4 | 10 / 4.0 | -7 / 2 | -7 % 3 | 7 % -3 | n % 3 | d + 1
d * i | d / 4 | r + 1.5 | r * 2 | i * 1.5 | n + d | '5' + 3 | i + '7' | 2 ^ 10 | 2.0 ^ 3 | d ^ 2 | abs(i) | abs(n)
abs(d) | abs(-2.5) | @ i | ceil(n) | ceil(d) | ceil(-1.5) | floor(n) | floor(d) | floor(f) | round(n) | round(d)
round(2.5) | round(-2.5) | round(3.5::float8) | round(2.5::float8) | round(f, 2) | round(n, 1) | round(1234.567, -2)
trunc(n) | trunc(d) | trunc(f, 3) | trunc(-1.999, 1) | sign(n) | sign(d) | sign(i) | mod(i, 5) | mod(n, 0.5)
power(i, 2) | power(2, 0.5) | sqrt(16) | sqrt(2.0) | cbrt(27) | exp(1) | ln(10) | log(100) | log(2, 8) | pi()
degrees(pi()) | radians(180) | sin(d) | cos(d) | atan2(1, d) | i & 6 | i | 8 | i # 3 | ~i | i << 2 | i >> 1 | b << 3
greatest(i, 5) | least(i, NULL, 3) | greatest(n, 1) | least(d, i) | i::bigint * 3000000000 | div(i, 4) | div(n, 2)
gcd(i, 12) | 9223372036854775807 | -9223372036854775808 | 2147483648 | 1.50 | 1e3 | 0.1 + 0.2
0.1::float8 + 0.2::float8 | 1.0 / 3 | 2.0 / 3 | 100.0 / 7 | n * 1.10 | (n + 1) * (n - 1) | i * n / 3 | b * n | f * n
f * f * f | factorial(5) | width_bucket(5.35, 0.024, 10.06, 5)
"""
COMPARISONS = """
i > 5 | i = b | n >= 12.5 | n = '12.50' | d < i | t = 'abc,def,,g' | t <> '' | t < 'b' | day > '2000-01-01'
ts >= '2000-01-01 00:00' | tz = '2024-02-29 11:45:06.789+00' | day = ts | ts < tz | flag | not flag | flag = true
flag and i > 0 | flag or i < 0 | flag is true | flag is not true | flag is false | flag is unknown
flag is not unknown | i is null | i is not null | i isnull | i notnull | i is distinct from 42
i is not distinct from NULL | t is distinct from u | i between 0 and 50 | i not between 0 and 50
i between symmetric 50 and 0 | i in (42, 0) | i not in (1, 2) | i in (1, NULL) | t in ('', 'x') | i = any(ia)
2 = any(ia) | 1 <> all(ia) | i > all(ia) | 3 = any(array[1,2,3]) | t = any('{a,b}') | (i, s) = (42, 7)
(i, s) < (42, 8) | (i, t) in ((42, 'Hello World'), (0, '')) | iv > interval '1 day' | iv = interval '0'
interval '1 month' = interval '30 days' | tm > '12:00' | ia = array[-1,0] | ia < array[2] | nullif(i, 0)
nullif(t, '') | coalesce(i, -1) | coalesce(t, u, 'none') | coalesce(n, 0) | coalesce(NULL, i, 1.5)
case when i > 0 then 'plus' when i < 0 then 'minus' else 'zero' end | case i when 42 then 'x' when 0 then 'y' end
case when flag then 1 else 2.5 end | case when i > 0 then n end | true and NULL | false and NULL | true or NULL
not NULL::boolean | row(1, 2) = row(1, 2) | i != 0 | 'a' < 'B' | t collate "C" = 'x' | s = i | b > n | r = 1.5
r = 0.1::real | d = 2.5 | n in (12.5, 0)
"""
STRINGS = """
length(t) | char_length(t) | octet_length('é') | lower(t) | upper(t) | t || '!' | t || i | i || t
'a' || 'b' || NULL | t || u | substring(t, 2, 3) | substring(t from 2 for 3) | substring(t, 3) | substring(t, -1, 4)
substring(t, 0) | substr(t, 2, 3) | substring(t from 'o.*') | substring('foobar', 'o(.)b') | substring(t, i, 3)
position('o' in t) | strpos(t, u) | split_part(t, ',', 2) | split_part(t, ',', -1) | split_part(t, 'x', 1)
replace(t, 'l', 'L') | translate(t, 'abc', 'xy') | trim('  x ') | trim(both 'H' from t) | trim(leading 'a' from t)
trim(trailing 'g' from t) | ltrim('  x ') | rtrim('xyx', 'x') | btrim('xxyxx', 'x') | ltrim(t, 'abc') | lpad(t, 5)
lpad('7', 3, '0') | rpad('7', 3, '*') | rpad(t, 3) | left(t, 3) | left(t, -2) | right(t, 3) | right(t, -2)
left(t, 0) | right(t, 0) | left(t, -100) | right(t, -100) | repeat('ab', 3) | repeat(t, 0) | repeat('a', -1)
reverse(t) | initcap('hello wORLD foo-bar x1y') | initcap(t) | concat(t, '-', i, NULL, flag)
concat_ws('/', t, NULL, i) | concat_ws(NULL, 'a') | md5(t) | ascii(t) | ascii('é') | chr(65) | chr(8364)
starts_with(t, 'He') | to_hex(255) | to_hex(i) | to_hex(b) | encode(bin, 'hex') | encode(bin, 'base64')
decode('ff00', 'hex') | encode('abc'::bytea, 'escape') | quote_ident('a b') | quote_ident('ab') | quote_literal(t)
quote_literal('it''s') | quote_nullable(NULL) | format('%s is %s', t, i) | format('%I=%L', 'a b', 'x''y')
format('100%%') | t like 'H%' | t like '%,%' | t not like 'a%' | t ilike 'h%' | t like '_bc%' | 'a_b' like 'a\\_b'
'a%b' like 'a#%b' escape '#' | t ~ '^H' | t ~* '^h' | t !~ 'x' | t !~* 'HELLO' | t similar to '(Hello|abc)%'
'abc' similar to 'a(b|c)' | 'abc' similar to '%(b|d)%' | regexp_replace(t, 'l+', 'L')
regexp_replace(t, 'l', 'L', 'g') | regexp_replace('foobarbaz', 'b(..)', 'X\\1Y', 'g')
regexp_replace('foobarbaz', 'b(..)', 'X\\1Y') | regexp_replace(t, '[aeiou]', '<\\&>', 'g')
regexp_replace('Hello', 'L', 'x', 'i') | regexp_match(t, '(l+)(o)') | regexp_match(t, 'o') | regexp_count(t, 'l')
regexp_split_to_array('a1b2c', '[0-9]') | overlay('Txxxxas' placing 'hom' from 2 for 4) | string_to_array(t, ',')
string_to_array('a,b,,c', ',', '') | string_to_array('', ',') | bit_length('abc')
encode(sha256('abc'::bytea), 'hex') | 'x' || ARRAY[1]::text | length(bin) | bin || '\\x01' | e'a\\nb' | 'it''s'
$$dollar$$ | t = 'Hello' || ' ' || 'World'
"""
CASTS = r"""
i::text | b::text | n::text | f::text | r::text | d::text | flag::text | day::text | ts::text | iv::text | tm::text
ia::text | ta::text | bin::text | i::numeric | n::integer | f::integer | d::integer | (-2.5)::integer | 2.5::integer
2.5::float8::integer | 3.5::float8::int | n::bigint | n::real | n::double precision | i::real | i::boolean
flag::integer | '12'::integer | ' 12 '::int | '1.50'::numeric | '1.5e3'::numeric | '1e20'::float8 | 'true'::boolean
'off'::boolean | 'y'::boolean | 't'::bool | '2024-01-02'::date | '20240102'::date | '2024-01-02 03:04:05'::timestamp
'2024-01-02T03:04:05.123Z'::timestamptz | '2024-01-02 03:04:05+05:30'::timestamptz | '12:34'::time
'1 day'::interval | '{1,2}'::int[] | '{"a b",c,NULL}'::text[] | substring('12345', 2)::integer
(i::text || '0')::int | (t || '')::text | ('2024-0' || 3 || '-01')::date
('2024-03-01 0' || 5 || ':00:00')::timestamp | ('t' || 'rue')::boolean | ('12.' || 5)::numeric(5,1)
('1.' || 5)::float8 | n::numeric(5,1) | f::numeric(10,3) | 1234.5678::numeric(8,2) | ts::date | ts::time | tz::date
day::timestamp | day::timestamptz | ts::timestamptz | tz::timestamp | iv::time | tm::interval | 1e20::float8::text
123456789012345::float8::text | 0.0001::float8::text
1e-10::float8::text | 100::float8::text | 'NaN'::float8::text | '-Infinity'::float8
0.1::real::text | 123456.7::real::text | cast(i as varchar) | cast('5' as smallint)
cast(n as text) | i::smallint | text '5' | date '2024-01-01' | timestamp '2024-01-01 10:00' | '{"b":1,"a":2}'::jsonb
'[1,  2]'::jsonb | 'null'::jsonb | NULL::int
"""
TIMES = """
extract(year from ts) | extract(month from day) | extract(day from ts) | extract(hour from ts)
extract(minute from ts) | extract(second from ts) | extract(epoch from ts) | extract(epoch from tz)
extract(dow from day) | extract(isodow from day) | extract(doy from day) | extract(week from day)
extract(quarter from ts) | extract(century from ts) | extract(decade from ts) | extract(millennium from ts)
extract(milliseconds from ts) | extract(microseconds from ts) | extract(isoyear from day) | extract(julian from day)
extract(hour from tm) | extract(second from tm) | extract(epoch from tm) | extract(year from iv)
extract(month from iv) | extract(day from iv) | extract(hour from iv) | extract(minute from iv)
extract(second from iv) | extract(epoch from iv) | date_part('year', ts) | date_part('epoch', tz)
date_part('dow', day) | date_trunc('year', ts) | date_trunc('quarter', ts) | date_trunc('month', ts)
date_trunc('week', ts) | date_trunc('day', ts) | date_trunc('hour', tz) | date_trunc('minute', ts)
date_trunc('second', ts) | date_trunc('milliseconds', ts) | date_trunc('decade', ts) | date_trunc('century', ts)
date_trunc('day', day) | date_trunc('hour', iv) | date_trunc('month', iv) | day + 1 | day - 1
day - '2000-01-01'::date | day - date '1999-01-01' | 7 + day | day + interval '1 month'
ts + interval '1 day 02:30' | ts - interval '1 year 2 mons' | ts + iv | tz + iv | tz - interval '36 hours'
ts - timestamp '2000-01-01' | tz - timestamptz '2000-01-01 00:00+00' | ts - day | iv + iv | iv - interval '1 day'
-iv | iv * 2 | iv * 1.5 | iv / 2 | interval '1 day' * i | tm + interval '1 hour' | tm - interval '14 hours'
tm - time '01:00' | day + tm | '2024-01-31'::date + interval '1 month' | interval '1 year 2 months'
interval '1 day 02:03:04.5' | interval '-1 day' | interval '1.5 days' | interval '90 minutes' | interval '1' day
interval '2' month | interval '1-2' year to month | interval '2 weeks' | interval '1 day ago'
interval 'P1Y2M3DT4H5M6S' | '1 mon -1 day'::interval | age(timestamp '2024-03-15', timestamp '2023-01-10')
age(timestamp '2023-01-10', timestamp '2024-03-15') | age(ts, timestamp '1990-05-20 12:00') | make_date(2024, 2, 29)
make_time(8, 15, 23.5) | make_timestamp(2024, 1, 2, 3, 4, 5.5) | make_interval(days => 10, hours => 2)
make_interval(1, 2, 3) | to_timestamp(1700000000) | to_timestamp(1700000000.25)
to_timestamp('2024-01-02 03:04', 'YYYY-MM-DD HH24:MI') | to_date('02/01/2024', 'DD/MM/YYYY')
to_char(ts, 'YYYY-MM-DD HH24:MI:SS') | to_char(ts, 'Mon DD, YYYY') | to_char(ts, 'FMDay, FMMonth DD')
to_char(ts, 'Day') | to_char(ts, 'HH12:MI AM') | to_char(ts, 'MS US') | to_char(day, 'YY Q DDD')
to_char(ts, 'MONTH mon DY') | to_char(ts, 'YYYY"year"MM') | to_char(n, '999.99') | to_char(n, 'FM999.99')
to_char(i, '9999') | to_char(i, '0000') | to_char(1234567.891, '9,999,999.99') | to_char(i, 'FM999')
to_char(0.5, '0.99') | to_char(12, 'S99') | ts at time zone 'Europe/Paris' | tz at time zone 'Asia/Tokyo'
tz at time zone 'UTC' | timezone('America/New_York', tz) | justify_hours(interval '27 hours')
justify_days(interval '35 days') | isfinite(ts) | date_bin('15 minutes', ts, timestamp '2001-01-01') | ts > now()
now() is not null | current_date is not null | date '2024-03-31' - interval '1 month'
timestamp '2024-03-31 10:00' + interval '1 mon 1 day' | date(ts)
"""
ARRAYS = """
array[1,2,3] | array[i, 2] | array['a', t] | ia[1] | ia[2] | ia[10] | ia[0] | ia[-1] | ia[2:3] | ia[:2] | ia[3:]
ia[i:5] | array_length(ia, 1) | array_length(ia, 2) | cardinality(ia) | array_upper(ia, 1) | array_lower(ia, 1)
array_ndims(ia) | array_append(ia, 9) | array_prepend(9, ia) | array_cat(ia, array[7]) | ia || 5 | 5 || ia
ia || array[6] | array_position(ia, 2) | array_positions(ia, 2) | array_remove(ia, 2) | array_remove(ia, NULL)
array_replace(ia, 2, 20) | array_to_string(ia, ',') | array_to_string(ia, ',', '*') | array_to_string(ta, '|')
ia @> array[2] | array[2] <@ ia | ia && array[3, 9] | array[1,2] = array[1,2] | array[[1,2],[3,4]]
(array[[1,2],[3,4]])[2][1] | array[1, 2.5] | array[]::int[] | array(select 1) | trim_array(array[1,2,3], 1)
"""
JSON = """
j | j->'a' | j->'b' | j->'b'->'c' | j->>'a' | j->>'s' | j->'n' | j->>'n' | j->'zz' | j->0 | j->1 | j->>1 | j->-1
j->2->'k' | j#>'{b,c}' | j#>>'{b,c,0}' | j#>>'{b,c,2}' | j->'b'->>'c' | jsonb_typeof(j) | jsonb_typeof(j->'a')
jsonb_array_length('[1,2,3]'::jsonb) | j ? 'a' | j ? 'two' | j ?| array['a','q'] | j ?& array['a','b']
j @> '{"a": 1}' | j @> '{"b": {"c": [1]}}' | '[1,2,3]'::jsonb @> '[2]' | (j->>'a')::int + 1 | to_jsonb(i)
to_jsonb(t) | to_jsonb(ia) | to_jsonb(flag) | jsonb_build_object('x', i, 'y', t)
jsonb_build_array(i, t, NULL, flag) | '{"a":1}'::jsonb = '{"a": 1}'::jsonb | j || '{"zz": 5}'
'[1]'::jsonb || '[2]'::jsonb | jsonb_extract_path_text(j, 'b', 'c')
"""
# Expressions whose answer differs by design, with the reason.
KNOWN = {
    "j->'b'->>'c'": "a json array taken as text has no spaces",
    "jsonb_extract_path_text(j, 'b', 'c')": "a json array taken as text has no spaces",
}

QUERIES = """
select * from berths order by id
select id, i from ships order by i
select id, i from ships order by i desc
select id, i from ships order by i nulls first, id
select s.id, b.quay from ships s join berths b on b.ship = s.id order by 1, 2
select s.id, b.quay from ships s left join berths b on b.ship = s.id order by 1, 2
select s.id, b.quay from ships s right join berths b on b.ship = s.id order by b.id
select s.id, b.id from ships s full join berths b on b.ship = s.id order by 1, 2
select * from (select id, i from ships) a join (select id, quay from berths) b using (id) order by id
select * from (select id, i from ships) a natural join (select id, quay from berths) b order by id
select id, a.i, b.quay from (select id, i from ships) a full join (select id + 2 as id, quay from berths) b using (id) order by id
select count(*), count(i), sum(i), avg(i), min(i), max(i) from ships
select sum(s), sum(b), sum(n), sum(f), sum(d), sum(r) from ships
select avg(s), avg(b), avg(n), avg(f), avg(d), avg(r) from ships
select variance(i), var_pop(i), stddev(i), stddev_pop(i), stddev(d), var_samp(n) from ships
select bool_and(flag), bool_or(flag), every(i > -100) from ships
select count(*) filter (where i > 0), sum(i) filter (where flag), count(distinct flag), sum(distinct s) from ships
select min(t), max(t), min(day), max(ts), min(tm), max(iv), min(n) from ships
select count(*), sum(i), avg(i), min(t), bool_and(flag) from ships where false
select ship, count(*), sum(depth), avg(depth) from berths group by ship order by ship
select quay, count(*) from berths group by quay having count(*) > 1
select ship is null as lost, count(*) from berths group by 1 order by 1
select coalesce(ship, 0) as s, max(depth) from berths group by s order by s
select upper(quay) as q, count(*) + 1 from berths group by upper(quay) order by count(*) desc, q
select quay, ship, count(*), grouping(quay), grouping(quay, ship) from berths group by rollup(quay, ship) order by 1, 2, 5
select quay, ship, sum(depth) from berths group by grouping sets ((quay), (ship), ()) order by 1, 2, 3
select quay, count(*) from berths group by cube(quay) order by 1
select distinct quay from berths order by quay
select distinct on (quay) quay, depth from berths order by quay, depth desc
select distinct on (ship) ship, quay from berths order by ship, id desc limit 2
select quay from berths union select t from ships order by 1
select id from ships union all select ship from berths order by 1
select id from ships intersect select ship from berths order by 1
select id from ships except select ship from berths order by 1
select 1 union select 2.5 order by 1
select 'a' as x union all select NULL order by x
select 1 union select 2 intersect select 2 order by 1
select * from (values (1, 'a'), (2, NULL), (NULL, 'c')) v(x, y) order by x
values (1, 'x'), (2.5, 'y') order by 1
select id from ships order by id limit 2 offset 1
select id from ships order by id fetch first 2 rows only
select id from ships order by id limit all
select (select max(depth) from berths) as m
select id, (select count(*) from berths b where b.ship = s.id) from ships s order by id
select id from ships s where exists (select 1 from berths b where b.ship = s.id) order by id
select id from ships s where not exists (select 1 from berths b where b.ship = s.id) order by id
select id from ships where id in (select ship from berths) order by id
select id from ships where id not in (select ship from berths where ship is not null) order by id
select id from ships where i > any (select ship from berths where ship is not null) order by id
select id from ships where i >= all (select ship from berths where ship is not null) order by id
select s.id, l.quay from ships s, lateral (select quay from berths b where b.ship = s.id order by b.id limit 1) l order by 1
select s.id, l.n from ships s left join lateral (select count(*) as n from berths b where b.ship = s.id) l on true order by 1
select * from generate_series(1, 3) g
select * from generate_series(3, 1)
select * from generate_series(5, 1, -2) as g(x)
select * from generate_series(timestamp '2024-01-01', timestamp '2024-01-02', interval '8 hours') g
select s.id, x from ships s, unnest(s.ia) x order by 1, 2
select * from unnest(array['a','b']) with ordinality as u(v, n)
select * from unnest(array[1,2], array['a','b','c']) as u(a, b)
select s.id, e from ships s cross join lateral jsonb_array_elements(s.j) e where s.id = 2 order by 2
select value from jsonb_array_elements_text('["x","y"]'::jsonb)
select key, value from jsonb_each('{"a":1,"b":"x"}'::jsonb) order by key
with q as (select quay, count(*) as n from berths group by quay), r as (select * from q where n > 1) select r.quay, q.n from r join q using (quay)
with q(a, b) as (select id, quay from berths) select b, a from q order by a
select id, row_number() over (order by depth) from berths order by id
select id, rank() over (partition by quay order by depth desc), dense_rank() over (order by quay) from berths order by id
select id, sum(depth) over (partition by quay order by id), count(*) over () from berths order by id
select id, lag(quay) over (order by id), lead(id, 2, -1) over (order by id), first_value(quay) over w, last_value(quay) over w from berths window w as (partition by ship order by id) order by id
select id, avg(depth) over (order by id rows between 1 preceding and 1 following) from berths order by id
select id, ntile(2) over (order by id), percent_rank() over (order by id), cume_dist() over (order by id), nth_value(id, 2) over (order by id) from berths order by id
select quay, sum(count(*)) over (order by quay) from berths group by quay order by quay
select string_agg(quay, ',' order by quay), string_agg(distinct quay, '/' order by quay) from berths
select array_agg(ship order by ship desc), array_agg(quay order by depth nulls first) from berths
select array_agg(id order by id) filter (where depth > 5) from berths
select jsonb_agg(id order by id) from berths
select percentile_cont(0.5) within group (order by depth), percentile_disc(0.5) within group (order by id), mode() within group (order by quay) from berths
select bit_and(id), bit_or(id), corr(id, depth), regr_slope(depth, id) from berths
select array(select quay from berths order by quay)
select case when count(*) > 2 then 'many' else 'few' end from berths
select (row(1, 'a')).f1
select a.id as "Id", a.quay "QUAY" from berths a order by "Id" limit 1
select b.* from ships s join berths b on s.id = b.ship order by b.id
select id, id from berths order by 1 limit 2
select t1.id from berths t1, berths t2, berths t3 where t1.id = t2.id and t2.id = t3.id order by 1
select sum(iv), avg(i::float8) from ships
select * from (select 1 as one) x, (select 2 as two) y
select max(x) from (select i as x from ships union all select id from berths) u
select id from ships where t like '%o%' or u = 'c' order by id
select count(*) from ships where now() > ts
select quay || '-' || count(*) from berths group by quay order by 1
select id from berths order by depth desc nulls last, id limit 3
select date_trunc('month', ts) as m, count(*) from ships group by m order by m
select id, sum(depth) from berths group by id, quay order by sum(depth) desc, id
select extract(year from ts)::int y, count(*) from ships group by extract(year from ts) order by 1
"""

# Fallible expressions over the ships: strict raises for some rows, tolerant gives NULL exactly there.
FALLIBLE = """
42 / i | 42 % i | 42.0 / n | 1 / d | b / s | i * 2000000000 | (b * 10000000000) | i + 2147483640
s * 20000::smallint | t::integer | t::date | (t || '1')::numeric | case when i <> 0 then 42 / i end
coalesce(nullif(i, 0), 1) / i | i <> 0 and 42 / i > 1 | i = 0 or 42 / i > 1 | t::boolean | b::integer
(d * 1e300)::integer | sqrt(d) | ln(i::float8) | (i / s) + (10 / i) | f * 1e15 * 1e15 | n::numeric(3,2)
split_part(t, ',', 1)::int | to_date(t, 'YYYY-MM-DD') | decode(t, 'hex') | t::jsonb | make_date(2000, i, 1)
i / s::numeric | -(b - 9223372036854775807 - 1) | case i when 42 then 1 / s else 1 / i end
trunc(trunc(f * 7 / 3, 4) / trunc(f * f / 3 + f * 2, 3) * i, 2) | sqrt(trunc(ln(abs(d) * 7 + d / 3) * 3) + d)
"""


ANSWERS = Path(__file__).parent / "answers"
EXPRESSION_FILES = ("maths", "strings", "times", "arrays", "json", "others")
QUERY_FILES = ("rows", "aggregates", "windows")


def lines_of(name: str) -> list[str]:
    text = (ANSWERS / f"{name}.txt").read_text()
    return [line for line in text.splitlines() if line.strip() and not line.startswith("#")]


# Where we raise and PostgreSQL does not, with the reason.
LIMITS = {
    "f * 1e15 * 1e15": "a numeric holds 38 digits here",
    "to_date(t, 'YYYY-MM-DD')": "an empty text is no date here; PostgreSQL reads it as year 1 BC",
}


def listed(block: str) -> list[str]:
    out: list[str] = []
    for line in block.strip().split("\n"):
        parts = line.split(" | ")
        out += [part.strip().replace("\\\\", "\\") for part in parts if part.strip()]
    # A bitwise OR has the separator in it.
    return ["i | 8" if part == "8" else part for part in out if part]


class Harbour:
    def relation(self, parts: tuple[str, ...]) -> BoundRelation:
        for relation in (SHIPS, BERTHS):
            if relation.name == parts[-1]:
                return relation
        raise UndefinedTable(f'relation "{parts[-1]}" does not exist')


STRICT = Settings(now_ms=1_800_000_000_000, strict=True)
TOLERANT = Settings(now_ms=1_800_000_000_000, strict=False)


def parsed(text: str) -> Any:
    return sqlglot.parse_one(text, dialect=Seiche)


@pytest.fixture(scope="module")
def postgres() -> Iterator[psycopg.Connection[Any]]:
    with temporary_server() as server, psycopg.connect(server.create_database(), autocommit=True) as connection:
        connection.execute(DDL)
        connection.execute("INSERT INTO ships " + SHIP_ROWS)
        connection.execute("INSERT INTO berths " + BERTH_ROWS)
        yield connection


@pytest.fixture(scope="module")
def spark(spark: SparkSession) -> SparkSession:
    session = spark.newSession()
    for name, value in {
        "spark.sql.ansi.enabled": "true",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.caseSensitive": "true",
        "spark.sql.shuffle.partitions": "1",
        "spark.sql.adaptive.enabled": "false",
    }.items():
        session.conf.set(name, value)
    attempts.register(session)
    for relation, rows in ((SHIPS, SHIP_ROWS), (BERTHS, BERTH_ROWS)):
        bound = bind_insert(relation, None, parsed(rows), Harbour(), STRICT)
        table = session.sql(bound.sql).toDF(*[column.name for column in relation.columns]).toArrow()
        session.createDataFrame(table).createOrReplaceTempView(relation.source)
    return session


def interpreted(spark: Any, on: bool) -> None:
    """Without generated code a query of many expressions takes a tenth of the time; one half of the tests has it."""
    spark.conf.set("spark.sql.codegen.wholeStage", str(not on).lower())
    spark.conf.set("spark.sql.codegen.factoryMode", "NO_CODEGEN" if on else "FALLBACK")


def run(spark: Any, bound: BoundQuery) -> list[list[str | None]]:
    return shown(spark.sql(bound.sql).toArrow(), bound)


def shown(table: Any, bound: BoundQuery) -> list[list[str | None]]:
    columns = [
        [None if value is None else format_value(value, column.type) for value in table.column(index).to_pylist()]
        for index, column in enumerate(bound.columns)
    ]
    return [list(row) for row in zip(*columns, strict=True)]


def ask(postgres: psycopg.Connection[Any], query: str) -> list[list[str | None]]:
    with postgres.cursor(binary=False) as cursor:
        cursor.execute(query.encode())
        result = cursor.pgresult
        assert result is not None
        cells = [[result.get_value(row, column) for column in range(result.nfields)] for row in range(result.ntuples)]
    return [[None if cell is None else cell.decode() for cell in row] for row in cells]


def agrees(mine: str | None, theirs: str | None, type_: SqlType) -> bool:
    if mine is None or theirs is None:
        return mine is theirs
    ours, answer = _FRACTION.sub(r"\1", mine), _FRACTION.sub(r"\1", theirs)
    match type_.kind:
        case Kind.NUMERIC:
            a, b = Decimal(mine), Decimal(theirs)
            if type_.declared:
                return a == b
            return abs(a - b) <= Decimal("1e-15") * max(Decimal(1), abs(b))
        case Kind.DOUBLE | Kind.REAL:
            a, b = float(mine), float(theirs)
            return mine == theirs or math.isclose(a, b, rel_tol=1e-14 if type_.kind is Kind.DOUBLE else 1e-6)
        case Kind.TIMESTAMPTZ:
            return _FRACTION.sub(r"\1", mine.removesuffix(":00")) == theirs
        case Kind.JSONB:  # ours lists the keys by their letters, PostgreSQL by their lengths
            return sorted(ours) == sorted(answer) and json.loads(ours) == json.loads(answer)
        case _:
            return ours == answer


# The zeros at the end of a fraction of a second.
_FRACTION = re.compile(r"(:\d\d\.\d*?[1-9])0+(?!\d)")


def differences(
    what: str, mine: Sequence[Sequence[str | None]], theirs: Sequence[Sequence[str | None]], bound: BoundQuery
) -> list[str]:
    if len(mine) != len(theirs):
        return [f"{what}: {len(mine)} rows, PostgreSQL gives {len(theirs)}: {mine} / {theirs}"]
    found = []
    for row, (left, right) in enumerate(zip(mine, theirs, strict=True)):
        for column, a, b in zip(bound.columns, left, right, strict=True):
            if not agrees(a, b, column.type):
                found.append(f"{what} [row {row + 1}, {column.name}, {column.type}]: {a!r}, PostgreSQL gives {b!r}")
    return found


@pytest.mark.parametrize(
    "block",
    [ARITHMETIC, COMPARISONS, STRINGS, CASTS, TIMES, ARRAYS, JSON],
    ids=["arithmetic", "comparisons", "strings", "casts", "times", "arrays", "json"],
)
@pytest.mark.parametrize("settings", [STRICT, TOLERANT], ids=["strict", "tolerant"])
def test_expressions_give_the_answers_of_postgres(block: str, settings: Settings, spark: Any, postgres: Any) -> None:
    problems: list[str] = []
    interpreted(spark, settings.strict)
    asked: list[tuple[str, list[list[str | None]]]] = []
    for expression in listed(block):
        if expression in KNOWN:
            continue
        asked.append((expression, ask(postgres, f"SELECT {expression} FROM ships ORDER BY id")))
    bound: list[tuple[str, list[list[str | None]]]] = []
    for expression, theirs in asked:
        try:
            bind_query(parsed(f"SELECT {expression} FROM ships ORDER BY ships.id"), Harbour(), settings)
        except (
            SeicheError,
            AssertionError,
            AttributeError,
            KeyError,
            TypeError,
            ValueError,
            sqlglot.ParseError,
        ) as error:
            problems.append(f"{expression}: does not bind: {type(error).__name__} {error}")
        else:
            bound.append((expression, theirs))
    for start in range(0, len(bound), 60):
        problems += _compared(bound[start : start + 60], settings, spark)
    assert not problems, "\n" + "\n".join(problems)


def _compared(batch: list[tuple[str, list[list[str | None]]]], settings: Settings, spark: Any) -> list[str]:
    """One query for the batch; halves of it where Spark refuses, down to the one that it refuses."""
    text = ", ".join(f"{expression} AS x{index}" for index, (expression, _) in enumerate(batch))
    query = bind_query(parsed(f"SELECT {text} FROM ships ORDER BY ships.id"), Harbour(), settings)
    try:
        mine = run(spark, query)
    except (PySparkException, Py4JJavaError) as error:
        if len(batch) == 1:
            return [f"{batch[0][0]}: Spark refuses: {str(error).splitlines()[0][:300]}"]
        half = len(batch) // 2
        return _compared(batch[:half], settings, spark) + _compared(batch[half:], settings, spark)
    problems = []
    for index, (expression, theirs) in enumerate(batch):
        column = query.columns[index]
        for row, (a, b) in enumerate(zip(mine, theirs, strict=True)):
            if not agrees(a[index], b[0], column.type):
                problems.append(f"{expression} [row {row + 1}, {column.type}]: {a[index]!r}, PostgreSQL gives {b[0]!r}")
    return problems


@pytest.mark.parametrize("name", EXPRESSION_FILES)
def test_listed_functions_give_the_answers_of_postgres(name: str, spark: Any, postgres: Any) -> None:
    problems: list[str] = []
    interpreted(spark, True)
    asked: dict[str, list[list[str | None]]] = {}
    differing: list[str] = []  # only these are worth a second run
    for expression in lines_of(name):
        text = f"SELECT {expression} FROM ships ORDER BY ships.id"
        asked[expression] = ask(postgres, text)
        strict, tolerant = (bind_query(parsed(text), Harbour(), settings).sql for settings in (STRICT, TOLERANT))
        if strict != tolerant:
            differing.append(expression)
    for settings, expressions in ((STRICT, list(asked)), (TOLERANT, differing)):
        for start in range(0, len(expressions), 80):
            batch = [(expression, asked[expression]) for expression in expressions[start : start + 80]]
            problems += _compared(batch, settings, spark)
    assert not problems, "\n" + "\n".join(problems)


def test_functions_that_this_postgres_lacks_give_the_answers_of_their_documents(spark: Any) -> None:
    interpreted(spark, True)
    pairs = [line.rsplit(" => ", 1) for line in lines_of("beyond")]
    text = ", ".join(f"{expression} AS x{index}" for index, (expression, _) in enumerate(pairs))
    query = bind_query(parsed(f"SELECT {text}"), Harbour(), STRICT)
    (row,) = run(spark, query)
    wrong = [
        f"{expression}: {mine!r}, not {answer!r}"
        for (expression, answer), mine in zip(pairs, row, strict=True)
        if (mine if mine is not None else "NULL") != answer
    ]
    assert not wrong, "\n" + "\n".join(wrong)


@pytest.mark.parametrize("name", ["", *QUERY_FILES])
def test_queries_give_the_answers_of_postgres(name: str, spark: Any, postgres: Any) -> None:
    problems: list[str] = []
    interpreted(spark, True)
    for text in lines_of(name) if name else QUERIES.strip().split("\n"):
        theirs = ask(postgres, text)
        try:
            bound = bind_query(parsed(text), Harbour(), TOLERANT)
        except (
            SeicheError,
            AssertionError,
            AttributeError,
            KeyError,
            TypeError,
            ValueError,
            sqlglot.ParseError,
        ) as error:
            problems.append(f"{text}: does not bind: {type(error).__name__} {error}")
            continue
        try:
            problems += differences(text, run(spark, bound), theirs, bound)
        except (PySparkException, Py4JJavaError) as error:
            problems.append(f"{text}: Spark refuses: {str(error).splitlines()[0][:300]}\n      {bound.sql[:400]}")
    assert not problems, "\n" + "\n".join(problems)


def test_failures_are_exactly_where_strict_raises(spark: Any, postgres: Any) -> None:
    problems: list[str] = []
    interpreted(spark, True)
    for expression in listed(FALLIBLE):
        tolerant = bind_query(parsed(f"SELECT id, {expression} AS x FROM ships"), Harbour(), TOLERANT)
        select = tolerant.ast
        failure = failure_of(select.expressions[1].this)
        if failure is None:
            problems.append(f"{expression}: nothing in it is said to fail")
            continue
        select.set("expressions", [*select.expressions, sqlglot.exp.alias_(failure, "failed")])
        rows = {row[0]: (row[1], row[2]) for row in spark.sql(select.sql("spark")).collect()}
        for ship in range(1, 5):
            query = f"SELECT {expression} AS x FROM ships WHERE id = {ship}"
            strict = bind_query(parsed(query), Harbour(), STRICT)
            try:
                value, raised = spark.sql(strict.sql).collect()[0][0], None
            except (PySparkException, Py4JJavaError) as error:
                value, raised = None, translate_spark_error(error)
            try:
                ask(postgres, query)
                refused = None
            except psycopg.Error as error:
                refused = error
            mine, failed = rows[ship]
            if bool(failed) != (raised is not None):
                problems.append(f"{expression} [ship {ship}]: failed is {failed}, strict says {raised!r}")
            elif (raised is None) != (refused is None) and expression not in LIMITS:
                problems.append(f"{expression} [ship {ship}]: strict says {raised!r}, PostgreSQL {refused!r}")
            elif raised is not None and refused is not None and raised.sqlstate[:2] != (refused.sqlstate or "")[:2]:
                problems.append(
                    f"{expression} [ship {ship}]: {raised.sqlstate} {raised}, PostgreSQL {refused.sqlstate} {refused}"
                )
            elif raised is None and mine != value and not (mine != mine and value != value):
                problems.append(f"{expression} [ship {ship}]: tolerant gives {mine!r}, strict {value!r}")
            elif raised is not None and mine is not None:
                problems.append(f"{expression} [ship {ship}]: failed but gives {mine!r}")
    assert not problems, "\n" + "\n".join(problems)
