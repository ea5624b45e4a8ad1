"""All 22 queries of TPC-H as views: made before the data, made after it, and right after every kind of change.

SEICHE_TEST_TPCH_SCALE multiplies the number of rows; SEICHE_TEST_WORKLOADS=all makes every view both ways.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from benchmarks.tpch_data import SCHEMA, Generator, Sizes, order_key
from benchmarks.tpch_queries import QUERIES
from tests.workloads.workload import Delete, Insert, Update, Workload

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.long, pytest.mark.timeout(900)]

_SCALE = float(os.environ.get("SEICHE_TEST_TPCH_SCALE", "1"))
SIZES = Sizes(int(60 * _SCALE), int(150 * _SCALE), int(400 * _SCALE), int(800 * _SCALE))

# Over so few rows the standard parameters choose none.
_LOOSER = {
    "q2": {"p_size = 15": "p_size <= 25"},
    "q8": {"p_type = 'ECONOMY ANODIZED STEEL'": "p_type LIKE 'ECONOMY%'"},
    "q17": {"p_container = 'MED BOX'": "p_container LIKE 'MED%'"},
    "q18": {"> 300": "> 200"},
    "q19": {"p_brand = 'Brand#12'": "p_brand > 'Brand'", "p_size BETWEEN 1 AND 5": "p_size BETWEEN 1 AND 50",
            "l_quantity <= 11": "l_quantity <= 50"},
    "q20": {"LIKE 'forest%'": "LIKE '%e%'"},
}  # fmt: skip


def loosened() -> dict[str, str]:
    found = dict(QUERIES)
    for name, changes in _LOOSER.items():
        for old, new in changes.items():
            assert old in found[name], f"{name} has changed: {old} is not in it"
            found[name] = found[name].replace(old, new)
    return found


VIEWS = loosened()
# Made after the data: all of them, or every second one, to be done sooner.
LATE_VIEWS = VIEWS if os.environ.get("SEICHE_TEST_WORKLOADS") == "all" else dict(list(VIEWS.items())[::2])


@pytest.fixture(scope="module")
def tpch(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workload]:
    schema = {name: f"({columns})" for name, columns in SCHEMA.items()}
    workload = Workload(spark, tmp_path_factory.mktemp("tpch") / "db", schema)
    yield workload
    workload.close()


def test_generated_rows_keep_the_rules_of_the_benchmark(spark: SparkSession) -> None:
    session = spark.newSession()
    rows = Generator(session, SIZES)
    for name in ("part", "partsupp", "orders", "lineitem"):
        session.createDataFrame(rows.table(name).toArrow()).createOrReplaceTempView(name)
    (kept,) = session.sql(
        """
        SELECT (SELECT count(*) - count(DISTINCT ps_partkey, ps_suppkey) FROM partsupp) AS repeated_pairs,
               (SELECT count(*) FROM lineitem LEFT ANTI JOIN partsupp
                  ON l_partkey = ps_partkey AND l_suppkey = ps_suppkey) AS lines_of_no_supplier,
               (SELECT count(*) FROM orders WHERE o_custkey % 3 = 0) AS orders_of_those_who_never_order,
               (SELECT count(*) FROM lineitem JOIN part ON l_partkey = p_partkey
                  WHERE l_extendedprice <> l_quantity * p_retailprice) AS wrong_prices,
               (SELECT count(*) FROM (
                  SELECT max(o_totalprice) AS total, sum(l_extendedprice * (1 + l_tax) * (1 - l_discount)) AS charged,
                         max(o_orderstatus) AS status, collect_set(l_linestatus) AS lines
                  FROM orders JOIN lineitem ON l_orderkey = o_orderkey GROUP BY o_orderkey)
                WHERE abs(total - charged) > 0.02 OR (status = 'P') <> (size(lines) = 2)
                   OR (status <> 'P' AND status <> lines[0])) AS orders_unlike_their_lines
        """
    ).collect()
    assert set(kept.asDict().values()) == {0}, kept
    again = Generator(session, SIZES).orders(5, 25).toArrow()
    assert again.equals(rows.orders(0, 25).toArrow().slice(5))


def test_views_made_before_and_after_the_data_equal_sparks_answer_through_changes(tpch: Workload) -> None:
    rows = Generator(tpch.mirror.spark, SIZES)
    tpch.create_views("before", VIEWS)
    tpch.load({name: rows.table(name).toArrow() for name in SCHEMA})
    tpch.create_views("after", LATE_VIEWS)

    wrong, filled = tpch.wrong_views()
    assert not wrong
    assert filled == {f"before_{name}" for name in VIEWS} | {f"after_{name}" for name in LATE_VIEWS}

    more, old = SIZES.orders // 10, order_key(SIZES.orders // 10)
    tpch.change(
        [
            Insert("orders", rows.orders(SIZES.orders, SIZES.orders + more).toArrow()),
            Insert("lineitem", rows.lineitem(SIZES.orders, SIZES.orders + more).toArrow()),
            Delete("orders", f"o_orderkey < {old}"),
            Delete("lineitem", f"l_orderkey < {old}"),
            Update("orders", {"o_orderpriority": "'1-URGENT'", "o_custkey": "o_custkey + 1"}, "o_orderkey % 7 = 1"),
            Update("lineitem", {"l_quantity": "l_quantity + 1", "l_returnflag": "'R'"}, "l_linenumber = 2"),
            Update("customer", {"c_mktsegment": "'BUILDING'", "c_acctbal": "c_acctbal + 100"}, "c_custkey % 5 = 0"),
            Update("supplier", {"s_nationkey": "20"}, "s_suppkey % 6 = 0"),
            Update("partsupp", {"ps_supplycost": "ps_supplycost - 0.5"}, "ps_suppkey % 4 = 1"),
            Delete("part", "p_partkey % 50 = 7"),
        ]
    )
    wrong, _ = tpch.wrong_views()
    assert not wrong
