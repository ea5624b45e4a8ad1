"""`a ASOF JOIN b ON a.k = b.k AND a.t >= b.t`: each row of the left side with the nearest one of the right.

The right side is read with, beside each row, the moment of its neighbour: the row serves every left moment between the
two. Then an ordinary join by the equalities and these two moments does it, with the same rules as every other join.
Of rows of the right side at the same moment the first one by all of its columns counts.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from seiche.errors import InvalidDefinition
from seiche.sql.bound import aliased, derived_table
from seiche.sql.nodes import binary, call, conjunction, conjuncts, not_null, type_of, typed
from seiche.sql.scopes import Entry
from seiche.types import BOOLEAN, INTEGER

_ROW, _NEIGHBOUR = "asof_row", "asof_neighbour"

# By the comparison of the left moment with the right one: which neighbour ends a row's time, and how it compares then.
_NEAREST: dict[type[exp.Expr], tuple[str, type[exp.Binary]]] = {
    exp.GTE: ("lead", exp.LT),
    exp.GT: ("lead", exp.LTE),
    exp.LTE: ("lag", exp.GT),
    exp.LT: ("lag", exp.GTE),
}
_MIRRORED: dict[type[exp.Expr], type[exp.Binary]] = {
    exp.GTE: exp.LTE,
    exp.GT: exp.LT,
    exp.LTE: exp.GTE,
    exp.LT: exp.GT,
}


def asof_join(table: exp.Expr, right: Sequence[Entry], condition: exp.Expr) -> tuple[exp.Expr, exp.Expr]:
    """The right side and the condition of the ordinary join that an ASOF join comes to."""
    ref = table.args["alias"].name
    keys: list[exp.Expr] = []
    ordering: tuple[exp.Expr, type[exp.Binary], exp.Expr] | None = None
    parts = conjuncts(condition)
    for part in parts:
        sides = _sides(part, ref)
        if sides is None:
            raise _refused("A condition is not a comparison of a value of the left side with one of the right side.")
        left, comparison, mine = sides
        if comparison is exp.EQ:
            keys.append(mine)
        elif ordering is None:
            ordering = (left, comparison, mine)
        else:
            raise _refused("It has more than one inequality.")
    if ordering is None or not keys:
        raise _refused("It lacks the one or the other.")
    moment, comparison, own = ordering
    neighbour, ends = _NEAREST[comparison]
    columns = {e.node.name: e.node for e in right if isinstance(e.node, exp.Column) and not e.hidden}
    ties = [entry.node for entry in right if isinstance(entry.node, exp.Column)]
    first = _first_of_moment(
        table, list(columns.values()), _window(call(INTEGER, "row_number"), [*keys, own], ties), own
    )
    limit = call(type_of(own), neighbour, own.copy())
    shown = [*(aliased(each.copy(), name) for name, each in columns.items())]
    shown.append(aliased(_window(limit, keys, [own]), _NEIGHBOUR))
    one = binary(exp.EQ, BOOLEAN, _column(_ROW, ref, INTEGER), exp.Literal.number(1))
    outer = exp.Select(expressions=shown).from_(derived_table(first, ref), copy=False).where(one, copy=False)
    end = typed(exp.column(_NEIGHBOUR, table=ref, quoted=True), type_of(own))
    open_ended = typed(exp.Is(this=end, expression=exp.Null()), BOOLEAN)
    before_end = binary(ends, BOOLEAN, moment.copy(), end.copy())
    serves = typed(exp.Paren(this=typed(exp.Or(this=open_ended, expression=before_end), BOOLEAN)), BOOLEAN)
    return derived_table(outer, ref), conjunction([*(part.copy() for part in parts), serves])


def _first_of_moment(table: exp.Expr, columns: Sequence[exp.Expr], number: exp.Expr, own: exp.Expr) -> exp.Select:
    shown = [*(aliased(each.copy(), each.name) for each in columns), aliased(number, _ROW)]
    return exp.Select(expressions=shown).from_(table, copy=False).where(not_null(own.copy()), copy=False)


def _window(function: exp.Expr, partition: Sequence[exp.Expr], order: Sequence[exp.Expr]) -> exp.Expr:
    ordered = [exp.Ordered(this=each.copy(), desc=False, nulls_first=False) for each in order]
    made = exp.Window(
        this=function,
        partition_by=[each.copy() for each in partition],
        over="OVER",
        order=exp.Order(expressions=ordered),
    )
    return typed(made, type_of(function))


def _sides(part: exp.Expr, ref: str) -> tuple[exp.Expr, type[exp.Binary], exp.Expr] | None:
    """The left side's value, the comparison, and the right side's value."""
    if not isinstance(part, exp.EQ | exp.GTE | exp.GT | exp.LTE | exp.LT):
        return None
    a, b = part.left, part.right
    if _is_of(b, ref) and not _touches(a, ref):
        return a, type(part), b
    if _is_of(a, ref) and not _touches(b, ref):
        return b, _MIRRORED.get(type(part), type(part)), a
    return None


def _is_of(node: exp.Expr, ref: str) -> bool:
    tables = {column.table for column in node.find_all(exp.Column)}
    return tables == {ref}


def _touches(node: exp.Expr, ref: str) -> bool:
    return any(column.table == ref for column in node.find_all(exp.Column))


def _column(name: str, ref: str, type_: object) -> exp.Expr:
    node = exp.column(name, table=ref, quoted=True)
    node.meta["sql_type"] = type_
    return node


def _refused(detail: str) -> InvalidDefinition:
    return InvalidDefinition(
        "an ASOF join needs at least one equality and exactly one inequality between its sides",
        detail=detail,
        hint="Write ON a.k = b.k AND a.t >= b.t, and all other conditions in WHERE.",
    )


__all__ = ["asof_join"]
