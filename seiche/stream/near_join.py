"""Joins of few changed rows with stored ones, put together on the driver.

By Spark such a join is a chain: the changes are sent to the scan of their first partners, what that gives to the scan
of the next ones, and so on, a job after the other and each for a few rows. Here each partner is looked up by the values
that the rows at hand have, where it lies: the log and small relations in memory, others by one scan of the pages that
may hold those values.

    changed rows ── own conditions ──▶ partners by key, near ones first ──▶ theirs ──▶ … ──▶ joined rows

What is compared here must only miss nothing. All conditions of the join are evaluated by Spark over the joined rows, as
are its items, and that takes no job: rows that came from the driver are mapped by Spark's optimizer. So rows are
matched by equalities of plain columns of one type whose equal values have equal bits, and by nothing else. An input
that no such equality ties to the rest meets every row if it has few, or leaves the whole join to Spark.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from sqlglot import exp

from seiche.model import OP, Epoch
from seiche.plan.algebra import Plan, Scan, Select, field_of, input_index
from seiche.query import to_arrow
from seiche.storage.changes import local_frame
from seiche.stream.joined_row import flat, flat_name, inputs_of, needed
from seiche.stream.matching import PLAIN, all_pairs, codes, pairs
from seiche.stream.near import filtered
from seiche.stream.near_values import Beyond, Row, fulfilled, shown
from seiche.stream.runtime import EpochReads
from seiche.types import SqlType

_Tie = tuple[int, str, str]  # an input that is joined already, its column, and the equal one of the input to join


@dataclass(frozen=True, slots=True)
class _Step:
    """An input to join next. `growth` is how many rows of it a row meets, about; `unique` says one at most."""

    input: int
    ties: tuple[_Tie, ...]
    near: bool
    unique: bool
    growth: float


@dataclass(frozen=True, slots=True)
class Joined:
    """Joined rows with `_op`. All of them fulfil the conditions, but for some that `told` is false of."""

    rows: pa.Table
    told: bool


def joined(plan: Select, reads: EpochReads) -> Joined | None:
    """The changes of a join as its joined rows; None when Spark has to join."""
    if not reads.looks_up or not all(isinstance(each, Scan) for each in plan.inputs):
        return None
    walks = []
    for index in range(len(plan.inputs)):
        changes = reads.changed(_scan(plan, index).relation)
        if changes is None:
            continue
        if len(plan.inputs) == 1 and changes.frame is not None:
            return None  # Spark has these rows already
        route = _route(plan, index, reads) if changes.table is not None else None
        if route is None:
            return None
        walks.append((index, changes.table, route))
    terms, told = [], True
    for index, rows, route in walks:

        def epoch_of(other: int, changed: int = index) -> Epoch:
            return reads.after if other < changed else reads.before

        walk = _Walk(plan, index, reads, epoch_of)
        term = walk.along(rows, route)
        if term is None:
            return None
        terms.append(term)
        told = told and walk.told_all
    return Joined(pa.concat_tables(terms), told) if terms else None


def changes(plan: Plan, reads: EpochReads) -> pa.Table | None:
    """The changes of a node: its fields and `_op`; None where Spark has something to do for them."""
    if isinstance(plan, Scan):
        changed = reads.changed(plan.relation)
        rows = changed.table if changed is not None and changed.frame is None else None
        return rows.select([*plan.schema.names, OP]) if rows is not None else None
    found = joined(plan, reads) if isinstance(plan, Select) else None
    return fields_of(plan, found) if isinstance(plan, Select) and found is not None else None


def fields_of(plan: Select, found: Joined) -> pa.Table | None:
    """The fields of joined rows and `_op`; None where Spark has a condition or an item to evaluate."""
    if not found.told:
        return None
    row = joined_row(plan, found.rows)
    try:
        columns = {item.field.name: shown(item, row, found.rows.num_rows) for item in plan.items}
    except Beyond:
        return None
    return pa.table({**columns, OP: found.rows[OP]})


@dataclass(frozen=True, slots=True)
class Wanted:
    """Values of a key that are wanted, one row each and no NULLs among them; and how many values there are in all,
    None where nobody knows."""

    rows: pa.Table
    total: int | None


def restricted(plan: Select, keys: Sequence[str], wanted: Wanted, reads: EpochReads) -> Joined | None:
    """The joined rows at `reads.after` whose fields `keys` are wanted; None when Spark has to tell."""
    if not reads.looks_up or not all(isinstance(each, Scan) for each in plan.inputs) or not _are_hashable(plan):
        return None
    exprs = {item.field.name: item.expr.unnest() for item in plan.items}
    columns = [each for key in keys if isinstance(each := exprs[key], exp.Column)]
    if len(columns) < len(keys):
        return None
    start = input_index(columns[0])
    scan = _scan(plan, start)
    asked = [(column.name, number) for number, column in enumerate(columns) if input_index(column) == start]
    values = _values(scan, asked, wanted, reads)
    route = _route(plan, start, reads) if values is not None else None
    if values is None or route is None:
        return None
    walk = _Walk(plan, start, reads, lambda _: reads.after)
    rows = reads.having(scan.relation, reads.after, needed(plan)[start], values)
    rows = walk.along(rows, route) if rows is not None else None
    names = [flat_name(input_index(column), column.name) for column in columns]
    rows = _among(rows, names, wanted) if rows is not None else None
    return Joined(rows, walk.told_all) if rows is not None else None


def stored(scan: Scan, keys: Sequence[str], wanted: Wanted, reads: EpochReads) -> pa.Table | None:
    """The rows of a relation at `reads.before` whose columns `keys` are wanted; None when Spark has to tell."""
    if not reads.looks_up or not all(column.type.is_hashable for column in scan.schema.columns):
        return None
    values = _values(scan, [(key, number) for number, key in enumerate(keys)], wanted, reads)
    rows = reads.having(scan.relation, reads.before, scan.schema.names, values) if values is not None else None
    return _among(rows, keys, wanted) if rows is not None else None


def _values(
    scan: Scan, columns: Sequence[tuple[str, int]], wanted: Wanted, reads: EpochReads
) -> dict[str, pa.ChunkedArray] | None:
    """The values to look some columns up by, each with its number in the key; None where it cannot be, or where more
    rows might have them than the driver may hold."""
    found = {}
    for name, number in columns:
        type_, values = scan.schema.column(name).type, wanted.rows.column(number)
        if type_.kind not in PLAIN or values.type != type_.arrow:
            return None
        found[name] = values
    if reads.is_near(scan.relation) or set(scan.schema.key) <= set(found):
        return found
    if wanted.total is None:
        return None
    about = wanted.rows.num_rows * reads.rows_of(scan.relation) / max(wanted.total, 1)
    return found if about <= reads.runtime.limits.inline_rows_max else None


def _among(rows: pa.Table, names: Sequence[str], wanted: Wanted) -> pa.Table | None:
    """The rows whose values are wanted together; None where they are not of the same types."""
    held = rows.select(list(names))
    if held.schema.types != wanted.rows.schema.types:
        return None
    mine, theirs = codes(held, wanted.rows)
    return rows.filter(pa.array(np.isin(mine, theirs)))


def _are_hashable(plan: Select) -> bool:
    """Whether signs of stored rows can be added up here: no input has rows twice then, with opposite signs."""
    fields = zip(plan.inputs, needed(plan), strict=True)
    return all(field_of(each, name).type.is_hashable for each, names in fields for name in (*names, *each.key))


def joined_row(plan: Select, rows: pa.Table) -> Row:
    """Joined rows for expressions to be evaluated over."""

    def find(node: exp.Column) -> tuple[str, SqlType]:
        index = input_index(node)
        return flat_name(index, node.name), field_of(plan.inputs[index], node.name).type

    return Row(rows, find)


def frame_of(rows: pa.Table, plan: Select, spark: SparkSession) -> DataFrame:
    """Joined rows as a frame."""
    types: dict[str, str] = {}
    for index, names in enumerate(needed(plan)):
        schema = _scan(plan, index).schema
        types |= {flat_name(index, name): schema.column(name).type.spark for name in names}
    types[OP] = "tinyint"
    ddl = ", ".join(f"`{name}` {types[name]}" for name in rows.column_names)
    return local_frame(spark, rows, ddl)


def _scan(plan: Select, index: int) -> Scan:
    scan = plan.inputs[index]
    assert isinstance(scan, Scan)
    return scan


# --- which way -----------------------------------------------------------------------------------------


def _route(plan: Select, start: int, reads: EpochReads) -> list[_Step] | None:
    """The order in which inputs are joined: first what gives one row at most, and of that what is in memory; last what
    gives many."""
    bound = {start}
    found = []
    while len(bound) < len(plan.inputs):
        steps = [_step(plan, bound, each, reads) for each in range(len(plan.inputs)) if each not in bound]
        possible = [each for each in steps if each is not None]
        if not possible:
            return None
        best = min(possible, key=lambda each: (not each.unique, each.growth, not each.near))
        bound.add(best.input)
        found.append(best)
    return found


def _step(plan: Select, bound: set[int], other: int, reads: EpochReads) -> _Step | None:
    """How an input could be joined; None where nobody can tell how many of its rows would come."""
    ties = tuple(_ties(plan, bound, other))
    scan = _scan(plan, other)
    near = reads.is_near(scan.relation)
    if not ties:
        return _Step(other, ties, near, False, math.inf) if near else None
    if set(scan.schema.key) <= {theirs for _, _, theirs in ties}:
        return _Step(other, ties, near, True, 1.0)
    rows = reads.rows_of(scan.relation)
    for index in {mine for mine, _, _ in ties}:
        owner = _scan(plan, index)
        if set(owner.schema.key) <= {column for mine, column, _ in ties if mine == index}:
            # Each of its rows belongs to one of the owner's.
            return _Step(other, ties, near, False, max(rows / max(reads.rows_of(owner.relation), 1), 1.0))
    return _Step(other, ties, near, False, float(rows)) if near else None


def _ties(plan: Select, bound: set[int], other: int) -> list[_Tie]:
    found = []
    for condition in plan.conjuncts:
        if not isinstance(condition, exp.EQ):
            continue
        sides = condition.left.unnest(), condition.right.unnest()
        for mine, theirs in (sides, sides[::-1]):
            if not isinstance(mine, exp.Column) or not isinstance(theirs, exp.Column):
                continue
            if input_index(mine) in bound and input_index(theirs) == other:
                type_ = _scan(plan, input_index(mine)).schema.column(mine.name).type
                if type_.kind in PLAIN and type_ == _scan(plan, other).schema.column(theirs.name).type:
                    found.append((input_index(mine), mine.name, theirs.name))
    return found


# --- and there -----------------------------------------------------------------------------------------


class _Walk:
    """One term of a join: it starts at rows of an input, and reads each of the others at its epoch."""

    def __init__(self, plan: Select, start: int, reads: EpochReads, epoch_of: Callable[[int], Epoch]) -> None:
        self._plan = plan
        self._start = start
        self._reads = reads
        self._epoch_of = epoch_of
        self._fields = needed(plan)
        self._pending = list(plan.conjuncts)
        self._bound = {start}

    @property
    def told_all(self) -> bool:
        """Whether the rows are known to fulfil every condition."""
        return not self._pending

    def along(self, first: pa.Table, route: Sequence[_Step]) -> pa.Table | None:
        """The joined rows; None when they become too many."""
        rows: pa.Table | None = self._own(self._start, first)
        for step in route:
            if rows is not None and not step.near:
                rows = self._sifted(rows)
            if rows is not None:
                rows = self._joined(rows, step)
        if rows is None:
            return None
        names = [flat_name(index, name) for index, fields in enumerate(self._fields) for name in fields]
        return self._told(rows.select([*names, OP]), self._pending)

    def _joined(self, rows: pa.Table, step: _Step) -> pa.Table | None:
        self._bound.add(step.input)
        self._pending = [each for each in self._pending if not _is_among(each, step)]
        limit = self._reads.runtime.limits.inline_rows_max
        mine = [flat_name(index, name) for index, name, _ in step.ties]
        theirs = [flat_name(step.input, name) for _, _, name in step.ties]
        for name in mine:
            rows = rows.filter(pc.is_valid(rows[name]))
        if not step.near and rows.num_rows * step.growth > limit:
            return None
        partners = self._partners(rows, step)
        if partners is None:
            return None
        others = self._own(step.input, partners)
        found = pairs(rows.select(mine), others.select(theirs), limit) if mine else all_pairs(rows, others, limit)
        if found is None:
            return None
        left, right = rows.take(found[0]), others.take(found[1])
        sign = pc.multiply(left[OP], right[OP])
        for name in right.column_names:
            if name != OP:
                left = left.append_column(name, right[name])
        return left.set_column(left.schema.get_field_index(OP), OP, sign)

    def _partners(self, rows: pa.Table, step: _Step) -> pa.Table | None:
        """The stored rows of an input that have the wanted values, each column by itself; without ties, all of them."""
        scan = _scan(self._plan, step.input)
        wanted = {theirs: rows[flat_name(index, name)] for index, name, theirs in step.ties}
        epoch = self._epoch_of(step.input)
        if not wanted:
            return self._reads.alive(scan.relation, epoch)
        return self._reads.having(scan.relation, epoch, self._fields[step.input], wanted)

    def _own(self, index: int, rows: pa.Table) -> pa.Table:
        """An input's rows under their names in the joined row, without what plain conditions of its own refuse."""
        schema = _scan(self._plan, index).schema
        for condition in [each for each in self._pending if inputs_of(each) == {index}]:
            kept = filtered(condition, rows, schema)
            if kept is not None:
                rows = kept
                self._pending.remove(condition)
        names = self._fields[index]
        return rows.select([*names, OP]).rename_columns([*(flat_name(index, name) for name in names), OP])

    def _told(self, rows: pa.Table, conditions: Sequence[exp.Expr]) -> pa.Table:
        """The rows that fulfil those of some conditions that can be told here."""
        for condition in list(conditions):
            try:
                kept = fulfilled(condition, joined_row(self._plan, rows), rows.num_rows)
            except Beyond:
                continue
            rows = rows.filter(kept)
            self._pending.remove(condition)
        return rows

    def _sifted(self, rows: pa.Table) -> pa.Table:
        """The rows that fulfil whatever else can be told of them: what is refused now need not be looked up."""
        ready = [each for each in self._pending if inputs_of(each) <= self._bound and not _is_tie(each)]
        rows = self._told(rows, ready)
        ready = [each for each in ready if each in self._pending]
        if not ready or rows.num_rows == 0:
            return rows
        self._pending = [each for each in self._pending if each not in ready]
        with self._reads.runtime.scope() as scope:
            view = scope.view(frame_of(rows, self._plan, self._reads.runtime.spark))
            conditions = " AND ".join(f"({flat(each)})" for each in ready)
            return to_arrow(scope.sql(f"SELECT * FROM {view} AS x WHERE {conditions}")).cast(rows.schema)


def _is_among(condition: exp.Expr, step: _Step) -> bool:
    """Whether a condition is one of the equalities by which an input is joined."""
    if not isinstance(condition, exp.EQ):
        return False
    both = condition.left.unnest(), condition.right.unnest()
    sides = {(input_index(each), each.name) for each in both if isinstance(each, exp.Column)}
    return any({(index, mine), (step.input, theirs)} == sides for index, mine, theirs in step.ties)


def _is_tie(condition: exp.Expr) -> bool:
    return isinstance(condition, exp.EQ) and all(
        isinstance(side.unnest(), exp.Column) for side in (condition.left, condition.right)
    )


__all__ = ["Joined", "Wanted", "changes", "fields_of", "frame_of", "joined", "joined_row", "restricted", "stored"]
