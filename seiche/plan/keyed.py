"""Building Keyed nodes, and moving conditions and projections that stand above one into its query.

A Keyed is stored, so what a Select above it throws away should not get there in the first place: the first three rows
of each group, and not all rows with their numbers. `tidy` does that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from seiche.plan.algebra import (
    Field,
    Item,
    Keyed,
    Plan,
    Reason,
    Select,
    columns_in,
    field_of,
    input_column,
    input_index,
    reads_clock,
    rewrite_columns,
)
from seiche.plan.numbered import only_first


class Body:
    """The query of a Keyed in the making: its columns, the hidden ones for keys among them."""

    def __init__(self) -> None:
        self.items: list[Item] = []
        self._taken: set[str] = set()

    def add(self, name: str, field: Field, expr: exp.Expr, *, hidden: bool = False) -> Field:
        """A column, under a name that no other one has."""
        while name in self._taken:
            name += "_"
        self._taken.add(name)
        made = Field(name, field.type, hidden)
        self.items.append(Item(made, expr))
        return made

    def carry(self, index: int, plan: Plan, names: Sequence[str], prefix: str) -> tuple[str, ...]:
        """The columns that show fields of an input as they are; hidden ones are added where none does."""
        shown = {
            (item.expr.table, item.expr.name): item.field.name
            for item in self.items
            if isinstance(item.expr, exp.Column)
        }
        found = []
        for name in names:
            present = shown.get((f"l{index}", name))
            if present is None:
                hidden = name if name.startswith("_") else f"_{prefix}{index}_{name}"
                present = self.add(hidden, field_of(plan, name), input_column(index, name), hidden=True).name
            found.append(present)
        return tuple(found)

    def select(self) -> exp.Select:
        return exp.Select(
            expressions=[
                exp.alias_(_cast(item), exp.to_identifier(item.field.name, quoted=True), copy=False)
                for item in self.items
            ]
        )

    @property
    def columns(self) -> tuple[Field, ...]:
        return tuple(item.field for item in self.items)


def _cast(item: Item) -> exp.Expr:
    if isinstance(item.expr, exp.Column):
        return item.expr.copy()
    cast = exp.cast(item.expr.copy(), item.field.type.spark, dialect="spark")
    cast.meta["sql_type"] = item.field.type
    return cast


def table(index: int) -> exp.Table:
    """Input number `index` in the FROM clause of a body."""
    return exp.Table(this=exp.to_identifier(f"l{index}"))


def keyed(
    title: str,
    inputs: Sequence[Plan],
    keys: Sequence[Sequence[str]],
    body: exp.Query,
    columns: Sequence[Field],
    *,
    partition: Sequence[str],
    key: Sequence[str],
    shown: Sequence[tuple[str, exp.Expr]] = (),
    reason: Reason | None = None,
    looked_up: tuple[tuple[str, str], ...] | None = None,
) -> Keyed:
    return Keyed(
        title,
        tuple(inputs),
        tuple(tuple(each) for each in keys),
        body,
        tuple(columns),
        tuple(partition),
        tuple(key),
        tuple(shown),
        reason,
        looked_up,
    )


def tidy(select: Select) -> Plan:
    """The Select with what concerns a single Keyed input moved into it; a Keyed when nothing else is left."""
    clocks = [each for each in select.conjuncts if reads_clock(each)]  # they stay above, where the clock is watched
    if len(select.inputs) == 1 and isinstance(select.inputs[0], Keyed) and not clocks:
        return _inside(select.inputs[0], select.conjuncts, select.items, select.key)
    if not any(isinstance(child, Keyed) for child in select.inputs):
        return select
    inputs, conjuncts = list(select.inputs), list(select.conjuncts)
    for index, child in enumerate(inputs):
        if isinstance(child, Keyed):
            own = [each for each in conjuncts if {input_index(c) for c in columns_in(each)} == {index}]
            own = [each for each in own if each not in clocks]
            conjuncts = [each for each in conjuncts if each not in own]
            used = _used(index, conjuncts, select.items)
            items = [Item(f, input_column(0, f.name)) for f in child.fields if f.name in used or f.name in child.key]
            moved = [rewrite_columns(each, lambda column: input_column(0, column.name)) for each in own]
            inputs[index] = _inside(child, moved, items, child.key)
    return replace(select, inputs=tuple(inputs), conjuncts=tuple(conjuncts))


def _used(index: int, conjuncts: Sequence[exp.Expr], items: Sequence[Item]) -> set[str]:
    exprs = (*conjuncts, *(item.expr for item in items))
    return {column.name for expr in exprs for column in columns_in(expr) if input_index(column) == index}


def _inside(inner: Keyed, conjuncts: Sequence[exp.Expr], items: Sequence[Item], key: Sequence[str]) -> Keyed:
    """A Keyed that filters and projects the rows of another; expressions are over `l0`."""
    inner = only_first(inner, [unfolded(inner.body, each) for each in conjuncts])
    body = Body()
    renamed: dict[str, str] = {}
    taken = {item.field.name for item in items}
    for item in items:
        name = item.field.name
        if item.field.hidden and isinstance(item.expr, exp.Column) and item.expr.name.startswith("_"):
            name = item.expr.name if item.expr.name not in taken else name  # no prefix for each level
        renamed[item.field.name] = body.add(name, item.field, item.expr, hidden=item.field.hidden).name
    partition = body.carry(0, inner, inner.partition, "p")
    query = body.select().from_(inner.body.subquery("l0"), copy=False)
    if conjuncts:
        query = query.where(*(exp.paren(each) for each in conjuncts), copy=False)
    shown = [*inner.shown, *(("where", unfolded(inner.body, each)) for each in conjuncts)]
    own_key = tuple(renamed[name] for name in key)
    return replace(inner, body=query, columns=body.columns, partition=partition, key=own_key, shown=tuple(shown))


def meaning(body: exp.Query, name: str) -> exp.Expr:
    """A column of a Keyed's query as an expression over the node's inputs."""
    assert isinstance(body, exp.Select)
    found = next(each.unalias() for each in body.expressions if each.alias_or_name == name)
    below = body.args["from_"].this
    return unfolded(below.this, found) if isinstance(below, exp.Subquery) else found.copy()


def unfolded(body: exp.Query, expr: exp.Expr) -> exp.Expr:
    """An expression over the columns of a query as one over the inputs of that query."""

    def place(column: exp.Column) -> exp.Expr:
        value = meaning(body, column.name)
        return exp.paren(value, copy=False) if isinstance(value, exp.Binary | exp.Unary) else value

    return rewrite_columns(expr, place)
