"""The SQL that maps and joins changes: which terms, in which order, looking up what."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any

import pyarrow as pa
import pytest
import sqlglot

from seiche.model import Epoch, RelationId
from seiche.plan.algebra import Aggregate, Plan, Select, UnionAll
from seiche.storage.changes import Changes, arrow_schema
from seiche.stream.linear import (
    can_fail,
    changes_sql,
    exact_sql,
    restricted_sql,
    weighted_sql,
    with_vnode,
)
from seiche.stream.runtime import EpochReads
from tests.unit.plan.harbour import ARRIVALS, BERTHS, SCHEMAS, SHIPS, Harbour

BEFORE, AFTER = Epoch(4), Epoch(5)
BY_BERTH = RelationId(77)  # an index of arrivals
JOIN = """SELECT s.name, b.quay, a.at FROM ships s JOIN arrivals a ON a.ship = s.id
    JOIN berths b ON a.berth = b.id WHERE b.free"""


class Reads(EpochReads):
    """Names views by what they hold instead of making them, and remembers the predicates that were pushed down."""

    def __init__(self, **changed: list[dict[str, Any]] | None) -> None:
        relations = {"ships": SHIPS, "berths": BERTHS, "arrivals": ARRIVALS}
        nothing: Any = None
        changes = {}
        for name, rows in changed.items():
            schema = SCHEMAS[relations[name]]
            table = pa.Table.from_pylist(rows, arrow_schema(schema)) if rows is not None else None
            changes[relations[name]] = Changes(relations[name], schema, 1, (), table)
        super().__init__(nothing, nothing, BEFORE, AFTER, changes)
        self.predicates: dict[str, str | None] = {}
        self.indexes: dict[tuple[RelationId, str], RelationId] = {}

    def index_for(self, relation: RelationId, limited: Collection[str], needed: Collection[str]) -> RelationId | None:
        found = [index for (of, column), index in self.indexes.items() if of == relation and column in limited]
        return found[0] if found else None

    def _name(self, relation: RelationId) -> str:
        return {SHIPS: "ships", BERTHS: "berths", ARRIVALS: "arrivals", BY_BERTH: "by_berth"}[relation]

    def weighted(self, relation: RelationId, epoch: Epoch, predicate: str | None = None) -> str:
        name = f"{self._name(relation)}_{'old' if epoch == BEFORE else 'new'}"
        self.predicates[name] = predicate
        return name

    def exact(self, relation: RelationId, epoch: Epoch) -> str:
        return f"{self._name(relation)}_{'old' if epoch == BEFORE else 'new'}_exact"

    def delta(self, relation: RelationId) -> str:
        return f"{self._name(relation)}_changes"


@pytest.fixture(scope="module")
def harbour() -> Harbour:
    return Harbour()


def order(sql: str) -> list[str]:
    """The views of a query, innermost first: the order in which they are joined."""
    return re.findall(r"\b(?:ships|arrivals|berths)_(?:old|new|changes)(?:_exact)?\b", sql)


def terms(sql: str) -> list[list[str]]:
    """The order of joins in each term of a union."""
    return [order(part) for part in sql.split(" UNION ALL ")]


def changes_of(harbour: Harbour, query: str, reads: Reads, **options: bool) -> str:
    sql = changes_sql(harbour.plan(query), reads, broadcast=options.pop("broadcast", False), **options)
    assert sql is not None
    sqlglot.parse_one(sql, dialect="spark")  # it is a query
    return sql


# --- which terms -------------------------------------------------------------------------------------


def test_nothing_changed_means_no_query(harbour: Harbour) -> None:
    assert changes_sql(harbour.plan(JOIN), Reads(), broadcast=False) is None


def test_a_change_of_another_relation_means_no_query(harbour: Harbour) -> None:
    assert changes_sql(harbour.plan("SELECT name FROM ships"), Reads(berths=None), broadcast=False) is None


def test_a_filter_maps_the_changes_alone(harbour: Harbour) -> None:
    sql = changes_of(harbour, "SELECT name FROM ships WHERE tons > 10", Reads(ships=None))
    assert order(sql) == ["ships_changes"]
    assert "WHERE (`l0_tons` > 10)" in sql


def test_each_changed_input_is_one_term_with_the_others_new_before_it_and_old_after_it(harbour: Harbour) -> None:
    found = terms(changes_of(harbour, JOIN, Reads(ships=None, arrivals=None, berths=None)))
    assert found == [
        ["ships_changes", "arrivals_old", "berths_old"],
        ["arrivals_changes", "ships_new", "berths_old"],
        ["berths_changes", "arrivals_new", "ships_new"],
    ]


def test_unchanged_inputs_have_no_term(harbour: Harbour) -> None:
    assert terms(changes_of(harbour, JOIN, Reads(arrivals=None))) == [["arrivals_changes", "ships_new", "berths_old"]]


def test_a_self_join_has_two_terms_for_one_change(harbour: Harbour) -> None:
    query = "SELECT a.name, b.name AS other FROM ships a JOIN ships b ON a.flag = b.flag"
    assert terms(changes_of(harbour, query, Reads(ships=None))) == [
        ["ships_changes", "ships_old"],
        ["ships_changes", "ships_new"],
    ]


def test_only_changed_branches_of_a_union_are_read(harbour: Harbour) -> None:
    query = "SELECT name FROM ships UNION ALL SELECT quay FROM berths UNION ALL SELECT flag FROM ships"
    assert terms(changes_of(harbour, query, Reads(ships=None))) == [["ships_changes"], ["ships_changes"]]
    assert terms(changes_of(harbour, query, Reads(berths=None))) == [["berths_changes"]]


# --- the walk ----------------------------------------------------------------------------------------


def test_the_walk_goes_to_inputs_that_an_equality_ties_before_others(harbour: Harbour) -> None:
    query = "SELECT s.name FROM ships s, berths b, arrivals a WHERE a.ship = s.id AND b.depth > s.draught"
    assert order(changes_of(harbour, query, Reads(ships=None))) == ["ships_changes", "arrivals_old", "berths_old"]


def test_an_inequality_is_better_than_no_condition(harbour: Harbour) -> None:
    query = "SELECT s.name FROM ships s, berths b, arrivals a WHERE a.tons > s.tons"
    sql = changes_of(harbour, query, Reads(ships=None))
    assert order(sql) == ["ships_changes", "arrivals_old", "berths_old"]
    assert sql.count("CROSS JOIN") == 1


def test_a_condition_is_checked_as_soon_as_its_inputs_are_there(harbour: Harbour) -> None:
    sql = changes_of(harbour, JOIN, Reads(berths=None))
    first = sql.index("WHERE (`l2_free`)")
    assert first < sql.index("`l1_berth` = `l2_id`") < sql.index("`l1_ship` = `l0_id`")


def test_signs_are_multiplied_along_the_walk(harbour: Harbour) -> None:
    sql = changes_of(harbour, JOIN, Reads(ships=None))
    assert sql.count("cast(x.`_op` * y.`_sign` as tinyint) AS `_op`") == 2


def test_only_fields_that_are_used_are_read(harbour: Harbour) -> None:
    sql = changes_of(harbour, JOIN, Reads(ships=None))
    assert "`draught` AS" not in sql
    assert "l1_tons" not in sql


def test_a_small_side_is_broadcast_at_every_step(harbour: Harbour) -> None:
    assert changes_of(harbour, JOIN, Reads(ships=None), broadcast=True).count("/*+ BROADCAST(x) */") == 2
    assert "BROADCAST" not in changes_of(harbour, JOIN, Reads(ships=None))


def test_every_output_is_cast_to_its_stored_type(harbour: Harbour) -> None:
    sql = changes_of(harbour, "SELECT id, fee * 2 AS fee FROM ships", Reads(ships=None))
    assert sql.startswith("SELECT cast(`l0_id` as int) AS `id`, cast(")


# --- lookups -----------------------------------------------------------------------------------------


def test_a_lookup_asks_only_for_partners_of_the_changed_rows(harbour: Harbour) -> None:
    reads = Reads(ships=[{"id": 3}, {"id": 1}, {"id": 3}])
    changes_of(harbour, JOIN, reads)
    assert reads.predicates == {
        "arrivals_old": "`ship` IN (3, 1, NULL)",
        "berths_old": None,
    }


def test_partners_are_looked_up_in_an_index_of_the_unchanged_side(harbour: Harbour) -> None:
    reads = Reads(berths=[{"id": 7, "quay": "south"}])
    reads.indexes = {(ARRIVALS, "berth"): BY_BERTH}
    sql = changes_of(harbour, "SELECT b.quay, a.tons FROM arrivals a JOIN berths b ON a.berth = b.id", reads)
    assert reads.predicates == {"by_berth_old": "`berth` IN (7, NULL)"}
    assert "arrivals" not in sql


def test_large_changes_are_looked_up_without_a_predicate(harbour: Harbour) -> None:
    reads = Reads(ships=None)
    changes_of(harbour, JOIN, reads)
    assert set(reads.predicates.values()) == {None}


def test_columns_of_different_types_make_no_predicate(harbour: Harbour) -> None:
    reads = Reads(ships=[{"id": 3, "draught": 1.0}])
    changes_of(harbour, "SELECT s.name FROM ships s JOIN berths b ON b.depth = s.draught", reads)
    assert reads.predicates == {"berths_old": None}


# --- whole values ------------------------------------------------------------------------------------


def test_a_whole_value_is_read_at_one_epoch(harbour: Harbour) -> None:
    plan = harbour.plan(JOIN)
    assert order(weighted_sql(plan, Reads(), AFTER)) == ["ships_new", "arrivals_new", "berths_new"]
    assert order(exact_sql(plan, Reads(), BEFORE)) == ["ships_old_exact", "arrivals_old_exact", "berths_old_exact"]


def test_rows_of_some_groups_are_found_from_their_keys(harbour: Harbour) -> None:
    plan = harbour.plan(
        "SELECT b.quay, max(a.tons) AS most FROM arrivals a JOIN berths b ON a.berth = b.id GROUP BY b.quay"
    )
    assert isinstance(plan, Aggregate)
    sql = restricted_sql(plan.input, Reads(), AFTER, ["g0"], "wanted", broadcast=True)
    assert sql.index("wanted") < sql.index("berths_new_exact") < sql.index("arrivals_new_exact")
    assert "(`l1_quay`) IS NOT DISTINCT FROM `l2_g0`" in sql


def test_a_restricted_union_restricts_every_branch(harbour: Harbour) -> None:
    plan = harbour.plan("SELECT name FROM ships UNION SELECT quay FROM berths")
    assert isinstance(plan, Aggregate) and isinstance(plan.input, UnionAll)
    sql = restricted_sql(plan.input, Reads(), AFTER, ["name"], "wanted", broadcast=False)
    assert sql.count("FROM wanted") == 2


def test_the_vnode_follows_from_the_key(harbour: Harbour) -> None:
    (fragment,) = harbour.fragments("SELECT name FROM ships")
    assert with_vnode("SELECT 1", fragment.schema) == (
        "SELECT `name`, `_k0_id`, cast(pmod(xxhash64(`_k0_id`), 256) as smallint) AS `_vnode`, `_op` FROM (SELECT 1)"
    )


# --- failures ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT name FROM ships WHERE tons > 1", False),
        ("SELECT tons + 1 AS more FROM ships", True),
        ("SELECT name FROM ships WHERE 10 / tons > 1", True),
        ("SELECT name::int AS n FROM ships UNION ALL SELECT id FROM berths", True),
    ],
)
def test_only_expressions_that_may_fail_are_watched(harbour: Harbour, query: str, expected: bool) -> None:
    plan: Plan = harbour.plan(query)
    assert isinstance(plan, Select | UnionAll)
    assert can_fail(plan) is expected


def test_failures_are_counted_in_outputs_and_in_conditions_that_dropped_their_row(harbour: Harbour) -> None:
    query = "SELECT name::int AS n FROM ships WHERE 10 / tons > 1"
    sql = changes_of(harbour, query, Reads(ships=None), counting=True)
    kept, dropped = sql.split(" UNION ALL ")
    assert "AS `_failed`" in kept
    assert "cast(null as int) AS `n`" in dropped
    assert "cast(0 as tinyint) AS `_op`, 1 AS `_failed`" in dropped


def test_nothing_is_counted_where_nobody_asks(harbour: Harbour) -> None:
    assert "_failed" not in changes_of(harbour, "SELECT name::int AS n FROM ships", Reads(ships=None))
