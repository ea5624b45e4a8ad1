"""Sums of doubles through the engine: large values come and go, and the small ones stay what they are."""

from __future__ import annotations

import json
import math
import random
from decimal import Context, Decimal, localcontext
from pathlib import Path

import pytest

import seiche
from seiche.plan.words import bigint_sum, float_sum, with_columns
from tests.integration.conftest import Open

pytestmark = [pytest.mark.spark]


def test_sums_of_doubles_do_not_drift_as_rows_come_and_go(db: seiche.Engine) -> None:
    rng = random.Random(7)
    db.execute("CREATE TABLE tides (id int PRIMARY KEY, gauge varchar, level double precision)")
    db.execute("CREATE MATERIALIZED VIEW levels AS SELECT gauge, sum(level) AS level FROM tides GROUP BY gauge")
    present: dict[int, tuple[str, float]] = {}
    for epoch in range(12):
        for id_ in [each for each, (_, level) in present.items() if abs(level) > 100]:
            present.pop(id_)
        db.execute("DELETE FROM tides WHERE abs(level) > 100")
        rows = []
        for number in range(6):
            level = rng.uniform(-1, 1) * 10.0 ** (rng.randint(-2, 1) if number % 2 else 15)
            rows.append((epoch * 10 + number, rng.choice(["north", "south"]), level))
        present |= {id_: (gauge, level) for id_, gauge, level in rows}
        db.insert("tides", rows)
        if epoch == 5:
            for each in db.database.catalog.objects():
                db.database.maintenance.fold_now(each.id)  # type: ignore[arg-type]
    db.execute("DELETE FROM tides WHERE abs(level) > 100")
    expected = {
        gauge: float(sum(Decimal(repr(level)) for g, level in present.values() if g == gauge and abs(level) <= 100))
        for gauge in ("north", "south")
    }
    found = dict(db.sql("SELECT gauge, level FROM levels").rows or [])
    assert found == pytest.approx(expected, rel=1e-12)


TRICKY = [0.1, -0.1, -0.0, 0.5, 1e-6, 1.5e-7, 123456789.123456, 999999999.999999, -999999999.999999, 1e9, 4294967296.5]
TRICKY += [1e17, -9.9e16, 0.12345678901234567, -0.7654321098765432, 1e-20, 2.5e-15, 3.3333333333333335, 1e15 + 0.125]
UNFIT = [float("nan"), float("inf"), 1e18, -1e30, 1e-21, 1.2345678901234567e-10]


def test_executors_sum_words_to_what_decimals_sum_to(db: seiche.Engine) -> None:
    rng = random.Random(11)
    exact = [each for each in TRICKY for _ in range(3)]
    exact += [rng.randrange(-(10**15), 10**15) / 10 ** rng.randrange(0, 7) for _ in range(3000)]
    drawn = [rng.uniform(-1, 1) * 10.0 ** rng.randint(-2, 5) for _ in range(500)]
    exact += [each for each in drawn if Decimal(repr(each)) == Decimal(repr(each)).quantize(Decimal("1e-20"))]
    rows = [(str(number % 3), value, rng.choice([1, 1, -1])) for number, value in enumerate(exact)]
    rows += [("unfit", value, 1) for value in UNFIT] + [("none", None, 1), ("3", 1e17, 1)] * 2
    rows += [("grown", 9e17, 1), ("grown", 9e17, 1), ("gone", 0.3, 1), ("gone", 0.3, -1)]
    rows += [("quick", 0.1, 1), ("quick", 0.2, 1)]
    made = float_sum("x", "double", "total", "present", "unfit")
    db.spark.createDataFrame(rows, "k string, x double, _op tinyint").createOrReplaceTempView("words")
    prepared = f"({with_columns('SELECT * FROM words', made.prepared)})"
    summed = ", ".join(f"{value} AS `{word}`" for word, value in made.words.items())
    groups = f"SELECT k, {summed}, sum(if({made.fits}, 0, _op)) AS unfit FROM {prepared} GROUP BY k"
    query = f"SELECT k, total, unfit, {made.shown} AS shown FROM ({with_columns(groups, made.combined)})"
    found = {row["k"]: (row["total"], row["unfit"], row["shown"]) for row in db.spark.sql(query).collect()}
    with localcontext(Context(prec=80)):
        for key in ("0", "1", "2", "3"):
            expected = sum(op * Decimal(repr(value)) for k, value, op in rows if k == key)
            assert found[key] == (expected, 0, float(expected))
    assert found["unfit"][1] == len(UNFIT)
    assert (found["none"], found["gone"], found["quick"][2]) == ((0, 0, 0.0), (0, 0, 0.0), 0.3)
    assert found["grown"] == (None, 0, None)
    small = f"SELECT x, {made.exact} AS exact FROM {prepared} WHERE k < '3'"
    assert all(Decimal(repr(row["x"])) == row["exact"] for row in db.spark.sql(small).collect())
    both = [*made.words.values(), *made.whole.values()]
    listed = ", ".join(f"{value} AS w{at}" for at, value in enumerate(both))
    for row in db.spark.sql(f"SELECT {listed} FROM {prepared} WHERE _op = 1 GROUP BY k").collect():
        assert row[: len(both) // 2] == row[len(both) // 2 :], "rows none of which leaves add up to the same"


def test_sums_in_haste_are_right_or_in_doubt(db: seiche.Engine) -> None:
    rng = random.Random(13)
    usual = [0.1, -0.1, -0.0, 0.5, 1e-6, 123456789.123456, 999999999.999999, -999999999.999999, -1e-6]
    usual += [rng.randrange(-(10**15), 10**15) / 1e6 for _ in range(2000)]
    rows = [(str(number % 3), value) for number, value in enumerate(usual)]
    rows += [("small", 0.1), ("small", 0.2), ("none", None), ("mixed", None), ("mixed", 2.5)]
    rows += [("large", 999999999.999999)] * 1000 + [("low", -999999999.999999)] * 1000
    other = [1e9, 1.5e-7, 3.3333333333333335, float("nan"), float("inf"), -1e30]
    rows += [(f"other {value}", each) for value in other for each in (value, 1.0)]
    made = float_sum("x", "double", "total", "present", "unfit").hasty
    db.spark.createDataFrame(rows, "k string, x double").createOrReplaceTempView("words")
    summed = ", ".join(f"{value} AS `{word}`" for word, value in made.words.items())
    groups = f"SELECT k, {summed} FROM ({with_columns('SELECT * FROM words', [made.prepared])}) GROUP BY k"
    told = f"total, present, unfit, {made.shown} AS shown, {made.doubt} AS doubt"
    query = f"SELECT k, {told} FROM ({with_columns(groups, made.combined)})"
    for k, *found, shown, doubt in db.spark.sql(query).collect():
        assert doubt == k.startswith("other")
        if not doubt:
            values = [value for key, value in rows if key == k and value is not None]
            with localcontext(Context(prec=80)):
                total = sum(map(Decimal, map(repr, values)), Decimal(0))
            assert (found, shown) == ([total, len(values), 0], float(total))


def test_a_view_over_unusual_floats_is_built_again_with_all_words(open_database: Open) -> None:
    db = open_database(inline_rows_max=10)
    db.execute("CREATE TABLE tides (id int PRIMARY KEY, gauge int, level double precision)")
    db.execute("INSERT INTO tides SELECT i, i % 7, i * 0.1 FROM generate_series(1, 500) AS g(i)")
    db.execute("INSERT INTO tides VALUES (501, 1, 1e17), (502, 2, 0.1234567891234567), (503, 3, 'NaN'), (504, 8, 1e9)")
    shown = "SELECT gauge, count(*) AS n, sum(level) AS l, sum(100 / (id - 3)) AS q FROM tides GROUP BY gauge"
    db.execute(f"CREATE MATERIALIZED VIEW levels AS {shown}")
    rows = [tuple(row) for row in db.sql("SELECT gauge, level FROM tides").rows or []]
    found = {row[0]: row[1:] for row in db.sql("SELECT * FROM levels").rows or []}
    assert len(found) == 8
    for gauge, (count, level, _) in found.items():
        levels = [each for key, each in rows if key == gauge]
        if gauge == 3:
            assert math.isnan(level)
            continue
        total = float(sum(Decimal(repr(each)) for each in levels))
        assert (count, level) == (len(levels), total)
    ((relation,),) = db.sql("SELECT id FROM rw_catalog.rw_materialized_views WHERE name = 'levels'").rows or []
    (segment,) = db.database.runtime.versions.segments(relation)
    left = list((Path(db.config.data_dir) / f"r{relation}").rglob("*.parquet"))
    assert [each.name for each in left] == [Path(segment.path).name]
    told = db.sql("SELECT info FROM rw_catalog.rw_event_logs WHERE event_type = 'EXPRESSION_FAILED'").rows or []
    assert [json.loads(info)["rows"] for (info,) in told] == [1]


def test_executors_sum_bigints_to_what_integers_sum_to(db: seiche.Engine) -> None:
    rng = random.Random(12)
    ends = [-(1 << 63), (1 << 63) - 1, -1, 0, 1, 1 << 32, -(1 << 32), (1 << 32) - 1]
    values = [each for each in ends for _ in range(50)] + [rng.randrange(-(1 << 63), 1 << 63) for _ in range(500)]
    rows = [(value, rng.choice([1, 1, -1])) for value in values]
    frame = db.spark.createDataFrame([*rows, (None, 1)], "x bigint, _op tinyint")
    assert frame.selectExpr(f"{bigint_sum('x')} AS s").first()["s"] == sum(value * op for value, op in rows)
    assert frame.filter("x IS NULL").selectExpr(f"{bigint_sum('x')} AS s").first()["s"] == 0
    assert frame.selectExpr(f"{bigint_sum('x', whole=True)} AS s").first()["s"] == sum(values)


def test_a_view_built_from_many_rows_goes_on_from_the_same_sums(open_database: Open) -> None:
    db = open_database(inline_rows_max=10)
    db.execute("CREATE TABLE tides (id int PRIMARY KEY, gauge int, level double precision, calls bigint)")
    db.execute("INSERT INTO tides SELECT i, i % 7, i * 0.1, i * 1000000000000 FROM generate_series(1, 500) AS g(i)")
    shown = "gauge, count(*) AS n, sum(level) AS l, avg(level) AS a, sum(calls) AS c, avg(calls) AS d"
    db.execute(f"CREATE MATERIALIZED VIEW levels AS SELECT {shown} FROM tides GROUP BY gauge")
    for change in ("DELETE FROM tides WHERE id > 450", "UPDATE tides SET level = level + 1e-9, gauge = 1 WHERE id = 3"):
        db.execute(change)
        rows = [tuple(row) for row in db.sql("SELECT gauge, level, calls FROM tides").rows or []]
        found = {row[0]: row[1:] for row in db.sql("SELECT * FROM levels").rows or []}
        for gauge in range(7):
            levels = [Decimal(repr(level)) for g, level, _ in rows if g == gauge]
            calls = sum(each for g, _, each in rows if g == gauge)
            assert found[gauge][:2] == (len(levels), float(sum(levels)))
            assert found[gauge][3] == calls
