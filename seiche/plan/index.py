"""The plan of an index: the rows of a relation, keyed by the indexed columns first."""

from __future__ import annotations

from collections.abc import Sequence

from seiche.plan.algebra import Field, Item, Scan, Select, input_column, rewrite_columns
from seiche.sql.bind import BoundExpression


def index_plan(source: Scan, columns: Sequence[tuple[str, BoundExpression | None]], included: Sequence[str]) -> Select:
    """Copies the `included` columns of a relation beside the indexed ones.

    An indexed column without an expression is the relation's column of that name. The relation's own key ends the
    key of the copy, so that rows with equal values in the indexed columns stay apart.
    """
    stored = {field.name: field for field in source.fields}
    items: dict[str, Item] = {}
    for name, expression in columns:
        if expression is None:
            items[name] = _plain(stored[name])
        else:
            over_input = rewrite_columns(expression.ast, lambda column: input_column(0, column.name))
            items[name] = Item(Field(name, expression.type), over_input)
    for name in (*included, *source.key):
        items.setdefault(name, _plain(stored[name], hidden=name not in included))
    key = dict.fromkeys((*(name for name, _ in columns), *source.key))
    return Select((source,), (), tuple(items.values()), tuple(key))


def _plain(field: Field, *, hidden: bool | None = None) -> Item:
    shown = field if hidden is None else Field(field.name, field.type, field.hidden or hidden)
    return Item(shown, input_column(0, field.name))
