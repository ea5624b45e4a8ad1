"""`GAP_FILL(table, time, interval, LOCF(x), INTERPOLATE(y), KEEPNULL(z), PARTITION_BY(p))` as a query without it.

Each row stands for itself and for the rows that are missing between it and the next one of its partition: the row's
windows tell the next time and value, and a series counts the steps in between. So it is maintained as a window
function and an unnested series are. A row without a time stands for itself alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum

import sqlglot
from sqlglot import exp

from seiche.errors import DatatypeMismatch, FeatureNotSupported, SyntaxError_, UndefinedColumn
from seiche.sql.calls import call_of
from seiche.sql.dialect import Seiche
from seiche.sql.literals import MICROS_PER_DAY, parse_interval
from seiche.sql.places import unplaced
from seiche.sql.statements import quote_name
from seiche.types import Kind, SqlType

_SOURCE = "gap fill source"
NEXT = "gap fill next "
_STEP = '"gap fill step"'


class Fill(Enum):
    """What a column has in the rows between two others."""

    KEEPNULL = "keepnull"
    LOCF = "locf"
    INTERPOLATE = "interpolate"


def gap_fill_query(source: exp.Expr, columns: Mapping[str, SqlType], arguments: Sequence[exp.Expr]) -> exp.Select:
    """The query, not bound yet, over `source`, whose visible columns these are."""
    if len(arguments) < 2:
        raise SyntaxError_("GAP_FILL takes a table, its column of time, an interval, and how columns are filled")
    time = _column(arguments[0], columns)
    if columns[time].kind not in (Kind.TIMESTAMP, Kind.TIMESTAMPTZ):
        raise DatatypeMismatch(f'column "{time}" of GAP_FILL must be a timestamp, and is {columns[time]}')
    micros = _micros(arguments[1])
    fills, partition = _fills(arguments[2:], columns)
    over = f"OVER ({_partition_by(partition)}ORDER BY {quote_name(time)})"
    needed = [time, *(name for name, fill in fills.items() if fill is Fill.INTERPOLATE)]
    leads = [f"lead({quote_name(name)}) {over} AS {_next(name)}" for name in needed]
    steps = f"(({_micros_of(_next(time))} - {_micros_of(quote_name(time))} + {micros - 1}) / {micros}::bigint)"
    shown = [
        f"{_value(name, type_, time, micros, steps, fills, partition)} AS {quote_name(name)}"
        for name, type_ in columns.items()
    ]
    query = sqlglot.parse_one(
        f"""SELECT {", ".join(shown)} FROM (SELECT *, {", ".join(leads)} FROM {quote_name(_SOURCE)}) AS filled
        CROSS JOIN LATERAL generate_series(0, coalesce(greatest({steps} - 1, 0), 0)) AS steps({_STEP})""",
        dialect=Seiche,
    )
    assert isinstance(query, exp.Select)
    unplaced(query)
    for table in query.find_all(exp.Table):
        if table.name == _SOURCE:
            table.replace(source)
    return query


def _value(
    name: str,
    type_: SqlType,
    time: str,
    micros: int,
    steps: str,
    fills: Mapping[str, Fill],
    partition: Sequence[str],
) -> str:
    own = quote_name(name)
    if name == time:
        return f"{own} + {_STEP} * INTERVAL '{micros} microseconds'"
    if name in partition:
        return own
    match fills.get(name, Fill.KEEPNULL):
        case Fill.KEEPNULL:
            return f"CASE WHEN {_STEP} = 0 THEN {own} END"
        case Fill.LOCF:
            return own
        case Fill.INTERPOLATE if type_.is_float:
            # Step by step, as if each row were made from the one before it.
            growth = f"({_next(name)} - {own}) / {steps}"
            grown = f"array_sum(array_prepend({own}, array_fill({growth}, ARRAY[{_STEP}::int])))::{type_}"
            return f"CASE WHEN {_STEP} = 0 THEN {own} ELSE {grown} END"
        case Fill.INTERPOLATE:
            grown = f"({own} + ({_next(name)} - {own})::numeric * {_STEP} / {steps})::{type_}"
            return f"CASE WHEN {_STEP} = 0 THEN {own} ELSE {grown} END"


def _micros_of(moment: str) -> str:
    return f"(extract(epoch FROM {moment}) * 1000000)::bigint"


def _next(name: str) -> str:
    return quote_name(NEXT + name)


def _partition_by(names: Sequence[str]) -> str:
    return f"PARTITION BY {', '.join(map(quote_name, names))} " if names else ""


def _column(node: exp.Expr, columns: Mapping[str, SqlType]) -> str:
    if not isinstance(node, exp.Column):
        raise SyntaxError_(f"{node.sql('seiche')} is not a column, which GAP_FILL needs here")
    if node.name not in columns:
        raise UndefinedColumn(f'column "{node.name}" does not exist')
    return str(node.name)


def _micros(node: exp.Expr) -> int:
    if not isinstance(node, exp.Interval):
        raise SyntaxError_("the third argument of GAP_FILL is an INTERVAL constant")
    unit = node.args.get("unit")
    months, days, micros = parse_interval(node.this.name, unit.name if unit is not None else None)
    if months:
        raise FeatureNotSupported("GAP_FILL needs an interval of constant length", hint="Use days, hours or less.")
    total = days * MICROS_PER_DAY + micros
    if total <= 0:
        raise SyntaxError_("the interval of GAP_FILL must be positive")
    return total


def _fills(arguments: Sequence[exp.Expr], columns: Mapping[str, SqlType]) -> tuple[Mapping[str, Fill], tuple[str, ...]]:
    """How columns are filled, and the columns of the partition."""
    fills: dict[str, Fill] = {}
    partition: tuple[str, ...] = ()
    for argument in arguments:
        word, inner = call_of(argument) or ("", [])
        names = [_column(each, columns) for each in inner]
        if word == "partition_by" and names:
            partition = tuple(names)
        elif word in [each.value for each in Fill] and len(names) == 1:
            fill = Fill(word)
            if fill is Fill.INTERPOLATE and not columns[names[0]].is_number:
                raise DatatypeMismatch(f'column "{names[0]}" cannot be interpolated: it is {columns[names[0]]}')
            fills[names[0]] = fill
        else:
            raise SyntaxError_(
                f"{argument.sql('seiche')} does not belong to GAP_FILL",
                hint="Use LOCF, INTERPOLATE or KEEPNULL of one column, or PARTITION_BY of some.",
            )
    return fills, partition
