"""Lengths of text: what storing into varchar(n) and character(n) does, and what casting to them does.

    stored      longer text is refused, unless only spaces would be lost: those are cut off
    cast        longer text is cut

Trailing spaces of a character(n) mean nothing, so they are not kept. A length belongs to a column or to a cast and
to nothing else: no expression has one in its type.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from seiche.errors import StringTooLong
from seiche.sql.nodes import (
    call,
    case,
    comparison,
    field,
    integer,
    not_null,
    spark_cast,
    text,
    transform,
    type_of,
    typed,
    variable,
)
from seiche.types import INTEGER, VARCHAR, Kind, SqlType

_Leaf = Callable[[exp.Expr, SqlType], exp.Expr]


def stored(node: exp.Expr, target: SqlType) -> exp.Expr:
    """The text as a column of type `target` takes it; at run time an error where it does not fit."""
    return _applied(node, target, _stored)


def cut(node: exp.Expr, target: SqlType) -> exp.Expr:
    """The text as a cast to `target` leaves it."""
    return _applied(node, target, _cut)


def too_long(target: SqlType) -> str:
    return f"value too long for type {target}"


def _applied(node: exp.Expr, target: SqlType, leaf: _Leaf) -> exp.Expr:
    """Applies `leaf` to every text with a length in the type, also inside arrays and structs."""
    if not target.has_length or isinstance(node, exp.Null):
        return node
    match target.kind:
        case Kind.ARRAY:
            assert target.element is not None
            return transform(node, "t", _applied(variable("t", target.element), target.element, leaf), target)
        case Kind.MAP:
            return typed(_applied(typed(node, target.entries), target.entries, leaf), target)
        case Kind.STRUCT:
            parts: list[exp.Expr] = []
            for name, type_ in target.fields:
                parts += [text(name), _applied(field(node.copy(), name, type_), type_, leaf)]
            made = call(target, "named_struct", *parts)
            return spark_cast(case(target, [(not_null(node), made)]), target)
        case _:
            return leaf(node, target)


def _stored(node: exp.Expr, target: SqlType) -> exp.Expr:
    value = _constant(node)
    if value is not None:
        kept = value.rstrip(" ")
        if len(kept) > target.length:
            raise StringTooLong(too_long(target))
        return text(kept if target.padded else value[: target.length])
    trimmed = _trimmed(node)
    complaint = call(VARCHAR, "raise_error", text(too_long(target)))
    fits = comparison(exp.LTE, _length(node), integer(target.length))
    only_spaces = comparison(exp.LTE, _length(trimmed), integer(target.length))
    if target.padded:
        return case(VARCHAR, [(only_spaces, trimmed.copy()), (not_null(node.copy()), complaint)])
    shortened = call(VARCHAR, "left", node.copy(), integer(target.length))
    return case(VARCHAR, [(fits, node), (only_spaces, shortened), (not_null(node.copy()), complaint)])


def _cut(node: exp.Expr, target: SqlType) -> exp.Expr:
    value = _constant(node)
    if value is not None:
        kept = value[: target.length]
        return text(kept.rstrip(" ") if target.padded else kept)
    shortened = call(VARCHAR, "left", node, integer(target.length))
    return _trimmed(shortened) if target.padded else shortened


def _constant(node: exp.Expr) -> str | None:
    return str(node.this) if isinstance(node, exp.Literal) and node.is_string else None


def _length(node: exp.Expr) -> exp.Expr:
    return call(INTEGER, "char_length", node.copy())


def _trimmed(node: exp.Expr) -> exp.Expr:
    return call(type_of(node), "rtrim", node.copy())
