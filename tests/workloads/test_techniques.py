"""Which of TPC-H's and Nexmark's queries are recomputed, and why: a list to be shortened.

A query that gains a rule leaves its list; one that loses its rule fails here.
"""

from __future__ import annotations

import pytest

from benchmarks import nexmark_data, nexmark_queries, tpch_data, tpch_queries
from tests.workloads.techniques import Planner

# By query: the reason codes of EXPLAIN.
TPCH: dict[str, str] = {}
NEXMARK: dict[str, str] = {}


def nexmark(tail: str) -> Planner:
    schema = {name: f"({columns}){tail}" for name, columns in nexmark_data.SCHEMA.items()}
    return Planner({**schema, "side_input": f"({nexmark_data.SIDE_INPUT})"})


def test_a_query_without_a_rule_is_seen_to_be_recomputed() -> None:
    assert nexmark("").recomputed("SELECT id, rank() OVER (ORDER BY name) AS place FROM person") == "window"


def test_the_tpch_queries_that_are_recomputed_are_those_listed() -> None:
    planner = Planner({name: f"({columns})" for name, columns in tpch_data.SCHEMA.items()})
    found = {name: planner.recomputed(query) for name, query in tpch_queries.QUERIES.items()}
    assert {name: reason for name, reason in found.items() if reason} == TPCH


@pytest.mark.parametrize("tail", ["", " APPEND ONLY"], ids=["tables", "append-only tables"])
def test_the_nexmark_queries_that_are_recomputed_are_those_listed(tail: str) -> None:
    planner = nexmark(tail)
    found = {name: planner.recomputed(query) for name, query in nexmark_queries.QUERIES.items()}
    assert {name: reason for name, reason in found.items() if reason} == NEXMARK
