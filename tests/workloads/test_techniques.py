"""Which of TPC-H's and Nexmark's queries are recomputed, and why: a list to be shortened.

A query that gains a rule leaves its list; one that loses its rule fails here.
"""

from __future__ import annotations

import pytest

from benchmarks import nexmark_data, nexmark_queries, tpch_data, tpch_queries
from seiche.errors import SeicheError
from tests.workloads.techniques import Planner

# By query: the reason codes of EXPLAIN.
TPCH: dict[str, str] = {}
NEXMARK: dict[str, str] = {}
# Not bound yet.
NOT_BOUND = {
    "q12": "proctime(), and TUMBLE over a subquery",
    "q13": "FOR SYSTEM_TIME AS OF PROCTIME()",
}


def nexmark(tail: str) -> Planner:
    schema = {name: f"({columns}){tail}" for name, columns in nexmark_data.SCHEMA.items()}
    return Planner({**schema, "side_input": f"({nexmark_data.SIDE_INPUT})"})


def test_a_query_that_reads_the_clock_is_seen_to_be_recomputed() -> None:
    assert nexmark("").recomputed("SELECT id, now() AS asked FROM person") == "time"


def test_the_tpch_queries_that_are_recomputed_are_those_listed() -> None:
    planner = Planner({name: f"({columns})" for name, columns in tpch_data.SCHEMA.items()})
    found = {name: planner.recomputed(query) for name, query in tpch_queries.QUERIES.items()}
    assert {name: reason for name, reason in found.items() if reason} == TPCH


@pytest.mark.parametrize("tail", ["", " APPEND ONLY"], ids=["tables", "append-only tables"])
def test_the_nexmark_queries_that_are_recomputed_are_those_listed(tail: str) -> None:
    planner = nexmark(tail)
    queries = {name: query for name, query in nexmark_queries.QUERIES.items() if name not in NOT_BOUND}
    found = {name: planner.recomputed(query) for name, query in queries.items()}
    assert {name: reason for name, reason in found.items() if reason} == NEXMARK


def _fails(why: str) -> pytest.MarkDecorator:
    return pytest.mark.xfail(reason=why, raises=SeicheError, strict=True)


@pytest.mark.parametrize("name", [pytest.param(name, marks=_fails(why)) for name, why in NOT_BOUND.items()])
def test_every_nexmark_query_binds(name: str) -> None:
    nexmark(" APPEND ONLY").recomputed(nexmark_queries.QUERIES[name])
