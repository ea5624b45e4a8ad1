"""Groups that a query asks for twice, each time with other columns, are stored once.

Equal parts of a plan share one relation. A WITH query that is read twice is rarely equal to itself, though: each reader
takes the columns that it needs, under names of its own. So where several Aggregates below other operators differ in
nothing but what they show, each becomes a Select over one that shows its keys and calls as they are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from seiche.plan.algebra import (
    Aggregate,
    Item,
    Keyed,
    Plan,
    Select,
    UnionAll,
    children,
    input_column,
    make_aggregate,
    make_select,
    own_column,
    rewrite_columns,
)


def shared(plan: Plan) -> Plan:
    """The plan with groups that differ in nothing but what they show made the same; those within first."""
    while alike := _alike(list(_below(plan))):
        plan = _over_bare(plan, alike)
    return plan


def _alike(groups: Sequence[Aggregate]) -> list[Aggregate]:
    """Those of which there is another one that shows something else."""
    bare = [_bare(each) for each in groups]
    asked = list(zip(groups, bare, strict=True))
    return [each for each, own in asked if each != own and any(own == its and each != other for other, its in asked)]


def _bare(groups: Aggregate) -> Aggregate:
    shown = [Item(each, own_column(each.name)) for each in (*groups.keys, *(call.field for call in groups.calls))]
    return make_aggregate(groups.input, groups.keys, groups.calls, shown, total=groups.total)


def _below(plan: Plan) -> Iterator[Aggregate]:
    """The Aggregates for which a Select may stand: those below what takes one."""
    if isinstance(plan, Select | UnionAll | Keyed | Aggregate):
        for child in children(plan):
            yield from _below(child)
            if isinstance(child, Aggregate):
                yield child


def _over_bare(plan: Plan, alike: Sequence[Aggregate]) -> Plan:
    def below(child: Plan) -> Plan:
        made = _over_bare(child, alike)
        return _shown(made) if isinstance(made, Aggregate) and child in alike else made

    match plan:
        case Select():
            return make_select(
                [below(child) for child in plan.inputs], plan.conjuncts, plan.items, keyed=bool(plan.key)
            )
        case UnionAll() | Keyed():
            return replace(plan, inputs=tuple(below(child) for child in plan.inputs))
        case Aggregate():
            return replace(plan, input=below(plan.input))
        case _:
            return plan


def _shown(groups: Aggregate) -> Select:
    items = [
        Item(item.field, rewrite_columns(item.expr, lambda column: input_column(0, column.name)))
        for item in groups.items
    ]
    return make_select([_bare(groups)], [], items)


__all__ = ["shared"]
