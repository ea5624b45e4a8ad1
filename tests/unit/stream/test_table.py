"""What an insert does to rows with the same key, on rows that are on the driver."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from seiche.errors import NotNullViolation
from seiche.model import OP, ROW_ID, VNODE, Column, JobId, RelationId, RelationSchema
from seiche.stream.conflict import Conflict, in_turn
from seiche.stream.rowids import RowIds, vnodes_of
from seiche.stream.table import TableJob, check_not_null, inserted_schema
from seiche.types import BIGINT, INTEGER, VARCHAR

SHIPS = RelationId(7)
KEYED = RelationSchema(
    (Column("id", INTEGER, nullable=False), Column("name", VARCHAR), Column("tons", INTEGER)), ("id",)
)
NUMBERED = RelationSchema(
    (Column("name", VARCHAR, nullable=False), Column(ROW_ID, BIGINT, hidden=True, nullable=False)), (ROW_ID,)
)


def job(schema: RelationSchema = KEYED, conflict: Conflict = Conflict.OVERWRITE) -> TableJob:
    unused: Any = None  # Spark's side of the job
    return TableJob(JobId(7), "ships", SHIPS, schema, conflict, unused, RowIds({SHIPS: 10}), unused)


def ships(*rows: tuple[int, str | None, int | None]) -> pa.Table:
    ids, names, tons = zip(*rows, strict=True) if rows else ((), (), ())
    return pa.table([ids, names, tons, [0] * len(rows)], schema=inserted_schema(KEYED))


def listed(table: pa.Table, *names: str) -> list[tuple[Any, ...]]:
    return list(zip(*(table[name].to_pylist() for name in names), strict=True))


def test_of_rows_with_one_key_the_last_is_kept_in_the_order_of_the_statement() -> None:
    rows = ships((2, "a", 1), (1, "b", 1), (2, "c", 1), (3, "d", 1))
    assert listed(job()._one_per_key(rows, first=False), "id", "name") == [(1, "b"), (2, "c"), (3, "d")]


def test_or_the_first_where_conflicts_are_ignored() -> None:
    rows = ships((2, "a", 1), (1, "b", 1), (2, "c", 1))
    assert listed(job()._one_per_key(rows, first=True), "id", "name") == [(2, "a"), (1, "b")]


def test_rows_whose_keys_are_taken_are_left_out() -> None:
    rows = ships((1, "a", 1), (2, "b", 1))
    assert listed(job()._without_keys(rows, ships((2, "old", 1))), "id") == [(1,)]


def test_a_row_fills_only_the_columns_that_it_has_a_value_for() -> None:
    rows = ships((1, None, 5), (2, "new", None))
    after = in_turn(rows, ships((1, "Ada", 3)), ["id"], [], Conflict.UPDATE_IF_NOT_NULL)
    assert listed(after, "id", "name", "tons") == [(1, "Ada", 5), (2, "new", None)]


def test_rows_of_one_statement_fill_each_other_in_turn() -> None:
    rows = ships((1, "Ada", None), (1, None, 5), (1, "Eve", None))
    after = in_turn(rows, ships(), ["id"], [], Conflict.UPDATE_IF_NOT_NULL)
    assert listed(after, "id", "name", "tons") == [(1, "Eve", 5)]


def test_a_row_of_an_older_version_changes_nothing() -> None:
    rows = ships((1, "old", 2), (1, "none", None), (1, "same", 3), (2, "first", None), (2, "second", 0))
    after = in_turn(rows, ships((1, "Ada", 3)), ["id"], ["tons"], Conflict.OVERWRITE)
    assert listed(after, "id", "name", "tons") == [(1, "same", 3), (2, "second", 0)]


def test_rows_without_a_primary_key_are_numbered_on() -> None:
    table = job(NUMBERED)._numbered(pa.table({"name": ["a", "b"]}, schema=inserted_schema(NUMBERED)))
    assert listed(table, "name", ROW_ID, OP) == [("a", 10, 1), ("b", 11, 1)]
    assert table[VNODE].to_pylist() == vnodes_of(table[ROW_ID].to_numpy()).tolist()


def test_a_null_where_none_may_be_names_the_column_and_the_table() -> None:
    with pytest.raises(NotNullViolation) as caught:
        check_not_null(pa.table({"name": pa.array([None], pa.string())}), NUMBERED, "ships")
    assert caught.value.message == 'null value in column "name" of relation "ships" violates not-null constraint'
    assert caught.value.hint == 'Give "name" a value, or a DEFAULT in the table.'


def test_a_column_that_may_be_null_is_not_checked() -> None:
    assert job()._checked("name", "true") == "`name`"
    assert job()._checked("id", "`_op` > 0").startswith("if(`id` IS NULL AND `_op` > 0, raise_error('null value in")


def test_inserted_rows_carry_a_vnode_where_the_key_is_their_own() -> None:
    assert inserted_schema(KEYED).names == ["id", "name", "tons", VNODE]
    assert inserted_schema(NUMBERED).names == ["name"]


def test_a_table_job_reads_nothing_and_writes_its_table() -> None:
    assert job().inputs == frozenset()
    assert job().outputs == {SHIPS}
    assert job(NUMBERED).has_row_ids and not job().has_row_ids
