"""Columns of which storage keeps more than statements see.

A struct that loses a field keeps it in storage, for views that read it; what a statement sees is made of the stored
value by the names of fields, and back again when a row is written. A field that the other side lacks is NULL.
"""

from __future__ import annotations

from sqlglot import exp

from seiche.model import Column
from seiche.sql.nodes import call, case, field, not_null, null, spark_cast, text, transform, type_of, typed, variable
from seiche.types import Kind, SqlType

_KEPT = "kept"  # among the meta of a node: the stored value that it was made of


def column_node(column: Column, ref: str) -> exp.Expr:
    """A column of the relation that is called `ref`, as statements see it."""
    stored = typed(exp.column(column.name, table=ref, quoted=True), column.type)
    if column.shown is None:
        return stored
    made = by_fields(stored, column.shown)
    made.meta[_KEPT] = stored
    return made


def as_stored(node: exp.Expr, column: Column) -> exp.Expr:
    """A value of the column as storage keeps it."""
    if column.shown is None:
        return node
    kept = node.meta.get(_KEPT)
    return kept if isinstance(kept, exp.Expr) and type_of(kept) == column.type else by_fields(node, column.type)


def by_fields(node: exp.Expr, target: SqlType) -> exp.Expr:
    """A value of another type that differs in the fields of structs only."""
    source = type_of(node)
    if source == target:
        return node
    match source.kind:
        case Kind.STRUCT:
            held = dict(source.fields)
            arguments: list[exp.Expr] = []
            for name, type_ in target.fields:
                value = by_fields(field(node.copy(), name, held[name]), type_) if name in held else null(type_)
                arguments += [text(name), value]
            made = call(target, "named_struct", *arguments)
            return spark_cast(case(target, [(not_null(node.copy()), made)]), target)
        case Kind.ARRAY:
            assert source.element is not None and target.element is not None
            return transform(node, "x", by_fields(variable("x", source.element), target.element), target)
        case Kind.MAP:
            return typed(by_fields(typed(node, source.entries), target.entries), target)
        case _:
            return spark_cast(node, target)
