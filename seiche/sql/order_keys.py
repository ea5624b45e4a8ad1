"""What rows are sorted by, where Spark's own order is not PostgreSQL's.

Intervals are sorted by their length. Inside arrays and structs PostgreSQL puts NULL behind every value and Spark before
it, so that each element becomes a pair of whether it is NULL and itself.
"""

from __future__ import annotations

from sqlglot import exp

from seiche.sql import intervals
from seiche.sql.nodes import call, case, field, is_null, not_null, text, transform, type_of, typed, variable
from seiche.types import BOOLEAN, Kind, array_of, struct_of


def order_key(node: exp.Expr, depth: int = 0) -> exp.Expr:
    """An expression of the node's values whose order in Spark is theirs in PostgreSQL."""
    type_ = type_of(node)
    match type_.kind:
        case Kind.INTERVAL:
            return intervals.length(node)
        case Kind.ARRAY:
            name = f"item{depth}"
            assert type_.element is not None
            pair = _pairs([("item", variable(name, type_.element))], depth + 1)
            return transform(node, name, pair, array_of(type_of(pair)))
        case Kind.STRUCT:
            fields = enumerate(type_.fields)
            parts = [(f"f{index}", field(node.copy(), name, part)) for index, (name, part) in fields]
            key = _pairs(parts, depth)
            return case(type_of(key), [(not_null(node.copy()), key)])
    return node


def _pairs(parts: list[tuple[str, exp.Expr]], depth: int) -> exp.Expr:
    arguments: list[exp.Expr] = []
    fields = []
    for name, part in parts:
        key = order_key(part, depth)
        arguments += [text(f"{name}_missing"), is_null(part.copy()), text(name), key]
        fields += [(f"{name}_missing", BOOLEAN), (name, type_of(key))]
    return typed(call(struct_of(*fields), "named_struct", *arguments), struct_of(*fields))
