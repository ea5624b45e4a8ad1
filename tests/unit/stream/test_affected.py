"""Which keys changes affect, told on the driver."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from seiche.model import OP, RelationId
from seiche.plan.algebra import Keyed
from seiche.storage.changes import Changes, arrow_schema
from seiche.stream.keyed import _few
from tests.unit.plan.harbour import ARRIVALS, SCHEMAS, SHIPS, Harbour

Row = tuple[int, dict[str, Any]]  # a sign, and some columns


class Changed:
    """What is asked of `EpochReads` for changes that need not be joined."""

    looks_up = False  # so that a join of changes fails here

    def __init__(self, **rows: list[Row]) -> None:
        relations = {"ships": SHIPS, "arrivals": ARRIVALS}
        self._changes = {relations[name]: _changes(relations[name], each) for name, each in rows.items()}

    def changed(self, relation: RelationId) -> Changes | None:
        return self._changes.get(relation)


def _changes(relation: RelationId, rows: list[Row]) -> Changes:
    schema = SCHEMAS[relation]
    columns = {
        field.name: pa.array([sign if field.name == OP else row.get(field.name) for sign, row in rows], field.type)
        for field in arrow_schema(schema)
    }
    return Changes(relation, schema, len(rows), (), pa.table(columns))


def affected(query: str, changed: Changed) -> list[int] | None:
    plan = Harbour().plan(query)
    assert isinstance(plan, Keyed)
    found = _few(plan, None, changed)  # type: ignore[arg-type]
    return sorted(found["k0"].to_pylist()) if found is not None else None


EVERY = "SELECT s.name, a.day FROM ships s LEFT JOIN arrivals a ON a.ship = s.id"


def test_keys_of_both_sides_are_affected() -> None:
    ships: list[Row] = [(1, {"id": 3, "name": "Aurora"})]
    arrivals: list[Row] = [(-1, {"ship": 1, "_row_id": 1}), (1, {"ship": 2, "_row_id": 2})]
    assert affected(EVERY, Changed(ships=ships, arrivals=arrivals)) == [1, 2, 3]


def test_a_row_that_changed_in_columns_that_nobody_asks_for_affects_nothing() -> None:
    ships: list[Row] = [(-1, {"id": 3, "name": "Aurora", "tons": 5}), (1, {"id": 3, "name": "Aurora", "tons": 6})]
    assert affected(EVERY, Changed(ships=ships)) == []
    assert affected(
        "SELECT s.tons, a.day FROM ships s LEFT JOIN arrivals a ON a.ship = s.id", Changed(ships=ships)
    ) == [3]


JOINED = (
    "SELECT s.name FROM ships s, arrivals a WHERE a.ship = s.id"
    " AND NOT EXISTS (SELECT 1 FROM arrivals o WHERE o.ship = s.id AND o.day < a.day)"
)


def test_changes_are_not_joined_for_keys_that_are_known() -> None:
    arrivals: list[Row] = [(1, {"ship": 7, "_row_id": 1}), (-1, {"ship": 8, "_row_id": 2})]
    ships: list[Row] = [(1, {"id": 7, "name": "Aurora"})]
    assert affected(JOINED, Changed(arrivals=arrivals, ships=ships)) == [7, 8]
