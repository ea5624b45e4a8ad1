"""The state of a group: the hidden columns from which its aggregates are kept up to date.

Each call keeps columns that add up (counts and sums), or the extreme value so far:

    count(*)         the group's own `_count`
    count(x)         n: rows with a value
    sum(x)           s: the sum, n
    sum(x), floats   d: the sum as an exact decimal, n, and u: how many values are not exact as a decimal
    bool_and(x)      f: rows that are false, n          bool_or(x)   t: rows that are true, n
    min(x), max(x)   m: the extreme

A float is added as the decimal that it prints as, which is exact for almost every value that people store;
such sums never drift as rows come and go. A group holding a value for which that fails (u > 0) is evaluated
anew from its rows when it changes, as is a group whose extreme value left, and one whose decimal sum has outgrown
its type (which is then NULL).

All of it is Spark SQL text; `<row>` frames have the input's fields and `_op`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from seiche.errors import InvariantError
from seiche.model import OP, Column, RelationSchema
from seiche.plan.algebra import Aggregate, Function, stored_schema
from seiche.plan.words import Columns, FloatSum, HastySum, bigint_sum, float_sum
from seiche.types import BIGINT, Kind, SqlType, numeric

COUNT = "_count"
FLOAT_AS_DECIMAL = numeric(38, 20)


@dataclass(frozen=True, slots=True)
class SumColumn:
    """A state column that adds up: `of_row` is what one changed row adds, NULL for nothing.

    `total` is the same summed up in a way that costs the executors less, `plain` over rows none of which leaves. A
    `combined` one is made of words of its own once the group is summed (`GroupState.combined`).
    """

    name: str
    type: SqlType
    of_row: str
    may_overflow: bool = False
    total: str | None = None
    plain: str | None = None
    combined: bool = False

    @property
    def whole(self) -> str:
        """The sum over the rows of a group, all of which are there."""
        return self.plain or self.partial

    @property
    def partial(self) -> str:
        """The sum over the changes of a group; NULL only where it outgrew its type."""
        if self.total is not None:
            return self.total
        if self.may_overflow:
            return f"if(count({self.of_row}) = 0, 0, try_sum({self.of_row}))"
        return f"coalesce(sum({self.of_row}), 0)"


@dataclass(frozen=True, slots=True)
class ExtremeColumn:
    """A state column holding the least or greatest value; `argument` is the input's field."""

    name: str
    type: SqlType
    argument: str
    greatest: bool

    @property
    def gained(self) -> str:
        """Name of the extreme among the values that appeared."""
        return f"{self.name}_gained"

    @property
    def lost(self) -> str:
        return f"{self.name}_lost"

    @property
    def function(self) -> str:
        return "max" if self.greatest else "min"

    @property
    def choose(self) -> str:
        return "greatest" if self.greatest else "least"


@dataclass(frozen=True, slots=True)
class Evaluation:
    """How groups are evaluated from plain rows, none of which leaves."""

    prepared: tuple[Columns, ...]  # columns that the rows need beside their own, step by step
    grouped: Columns  # what is summed up for a group: state columns, words, Spark's own aggregates
    combined: tuple[Columns, ...]  # the other state columns, made of these step by step
    results: Columns  # call -> expression over all of them
    doubt: str | None = None  # whether a group has to be evaluated another way, after all


@dataclass(frozen=True, slots=True)
class GroupState:
    """The state columns of an Aggregate, and what its calls are in terms of them."""

    sums: tuple[SumColumn, ...]
    extremes: tuple[ExtremeColumn, ...]
    results: dict[str, str]  # call -> expression over state columns
    inexact: tuple[str, ...]  # columns that must be zero for the state to be trusted
    prepared: tuple[Columns, ...]  # columns that `<row>` frames need beside the input's, step by step
    words: Columns  # sums of groups that are no state themselves
    combined: tuple[Columns, ...]  # the state columns made of them, step by step
    evaluation: Evaluation
    hasty: Evaluation | None  # one that takes less time, where there are sums of floats

    @property
    def columns(self) -> tuple[Column, ...]:
        found = [Column(COUNT, BIGINT, hidden=True)]
        found += [Column(each.name, each.type, hidden=True) for each in self.sums]
        found += [Column(each.name, each.type, hidden=True) for each in self.extremes]
        return tuple(found)


def aggregate_schema(aggregate: Aggregate) -> RelationSchema:
    """The relation that stores an Aggregate: its items, then its state."""
    shown = stored_schema(aggregate)
    return RelationSchema((*shown.columns, *group_state(aggregate).columns), shown.key)


def group_state(aggregate: Aggregate) -> GroupState:
    sums: dict[str, SumColumn] = {}
    extremes: dict[str, ExtremeColumn] = {}
    results: dict[str, str] = {}
    natives: dict[str, str] = {}
    evaluated: dict[str, str] = {}
    quick: dict[str, str] = {}
    inexact: list[str] = []
    floats: dict[str, FloatSum] = {}
    for call in aggregate.calls:
        if call.function is Function.COUNT_ROWS:
            results[call.field.name] = f"`{COUNT}`"
            continue
        if call.argument is None:
            raise InvariantError(f"aggregate call {call} lacks its argument")
        name, value = call.argument.name, f"`{call.argument.name}`"
        present = f"_n_{name}"
        if call.function not in (Function.MIN, Function.MAX):
            counted = f"if({value} is null, 0, `{OP}`)"
            sums.setdefault(present, SumColumn(present, BIGINT, counted, plain=f"count({value})"))
        match call.function:
            case Function.COUNT:
                result = f"`{present}`"
            case Function.SUM if call.argument.type.is_float:
                decimal, unfit = f"_d_{name}", f"_u_{name}"
                made = floats[name] = float_sum(name, call.argument.type.spark, decimal, present, unfit)
                signed = f"if(`{OP}` > 0, {made.exact}, -{made.exact})"
                sums[decimal] = SumColumn(decimal, FLOAT_AS_DECIMAL, signed, may_overflow=True, combined=True)
                sums[unfit] = SumColumn(
                    unfit, BIGINT, f"if({made.fits}, 0, `{OP}`)", plain=f"count_if(NOT {made.fits})"
                )
                inexact.append(unfit)
                result = f"if(`{present}` = 0, null, cast(`{decimal}` as {call.field.type.spark}))"
                natives[f"_native_{name}"] = f"try_sum({value})"
                doubt = f"`{unfit}` <> 0 OR `{decimal}` IS NULL"
                told = f"if({doubt}, `_native_{name}`, if(`{present}` = 0, null, {made.shown}))"
                evaluated[call.field.name] = f"cast({told} as {call.field.type.spark})"
                hurried = f"if(`{present}` = 0, null, {made.hasty.shown})"
                quick[call.field.name] = f"cast({hurried} as {call.field.type.spark})"
            case Function.SUM:
                total = f"_s_{name}"
                type_ = call.field.type
                wide = f"cast({value} as {type_.spark})"
                signed = f"if(`{OP}` > 0, {wide}, -{wide})"
                if call.argument.type.kind is Kind.BIGINT and type_.kind is Kind.NUMERIC:
                    whole = bigint_sum(value, whole=True)
                    sums[total] = SumColumn(total, type_, signed, total=bigint_sum(value), plain=whole)
                else:
                    sums[total] = SumColumn(total, type_, signed, may_overflow=type_.kind is Kind.NUMERIC)
                result = f"if(`{present}` = 0, null, `{total}`)"
            case Function.BOOL_AND:
                column = f"_f_{name}"
                sums[column] = SumColumn(column, BIGINT, f"if({value} = false, `{OP}`, 0)")
                result = f"if(`{present}` = 0, null, `{column}` = 0)"
            case Function.BOOL_OR:
                column = f"_t_{name}"
                sums[column] = SumColumn(column, BIGINT, f"if({value} = true, `{OP}`, 0)")
                result = f"if(`{present}` = 0, null, `{column}` > 0)"
            case Function.MIN | Function.MAX:
                greatest = call.function is Function.MAX
                column = f"_{'max' if greatest else 'min'}_{name}"
                extremes[column] = ExtremeColumn(column, call.argument.type, name, greatest)
                result = f"`{column}`"
        results[call.field.name] = f"cast({result} as {call.field.type.spark})"
    found = list(floats.values())
    prepared = _side_by_side(each.prepared for each in found)
    combined = _side_by_side(each.combined for each in found)
    extreme = {each.name: f"{each.function}(`{each.argument}`)" for each in extremes.values()}
    direct = {each.name: each.whole for each in sums.values() if not each.combined} | extreme
    words = {word: value for each in found for word, value in each.whole.items()}
    return GroupState(
        tuple(sums.values()),
        tuple(extremes.values()),
        results,
        tuple(inexact),
        prepared,
        {word: value for each in found for word, value in each.words.items()},
        combined,
        Evaluation(prepared, direct | words | natives, combined, results | evaluated),
        _hasty(direct, results | quick, [each.hasty for each in found]) if found else None,
    )


def _hasty(direct: Columns, results: Columns, sums: Sequence[HastySum]) -> Evaluation:
    """The groups in fewer words, which takes all their floats to be of the usual kind."""
    combined = _side_by_side(each.combined for each in sums)
    words = {word: value for each in sums for word, value in each.words.items()}
    direct = {name: value for name, value in direct.items() if name not in combined[-1]}
    prepared = {name: value for each in sums for name, value in each.prepared.items()}
    doubt = " OR ".join(each.doubt for each in sums)
    return Evaluation((prepared,), {**direct, **words}, combined, results, doubt)


def _side_by_side(steps: Iterable[Sequence[Columns]]) -> tuple[Columns, ...]:
    """The steps of several columns as steps of all of them."""
    return tuple({name: value for part in parts for name, value in part.items()} for parts in zip(*steps, strict=True))
