"""EXCEPT and INTERSECT: how often a row is on either side is counted, and the counts tell.

The counts are groups with a state, so changes are added to them and neither side is read again. With ALL, a row is
given as many times as the counts say, and these copies are numbered.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from seiche.plan.algebra import (
    Aggregate,
    Call,
    Field,
    Function,
    Item,
    Keyed,
    Plan,
    Select,
    input_column,
    make_aggregate,
    make_select,
    make_union,
    own_column,
)
from seiche.plan.keyed import Body, keyed, table
from seiche.types import BIGINT, INTEGER


def except_or_intersect(sides: Sequence[Plan], *, is_except: bool, every: bool) -> Plan:
    counted, left, right = _counted(sides)
    visible = [field for field in counted.fields if field not in (left, right)]
    mine, other = input_column(0, left.name), input_column(0, right.name)
    zero = exp.Literal.number(0)
    if every:
        difference = exp.Greatest(this=exp.Sub(this=mine, expression=other), expressions=[zero])
        return _copies(counted, visible, difference if is_except else exp.Least(this=mine, expressions=[other]))
    wanted = exp.EQ(this=other, expression=zero) if is_except else exp.GT(this=other, expression=zero.copy())
    conjuncts = [exp.GT(this=mine, expression=zero.copy()), wanted]
    return make_select([counted], conjuncts, [Item(field, input_column(0, field.name)) for field in visible])


def _counted(sides: Sequence[Plan]) -> tuple[Aggregate, Field, Field]:
    """Each row of either side once, with how often it is on the left and how often on the right."""
    marked = []
    names = {field.name for field in sides[0].fields}
    flags = [Field(_free(name, names), BIGINT) for name in ("on_left", "on_right")]
    shown = [field for field in sides[0].fields if not field.hidden]
    for number, side in enumerate(sides):
        own = [field for field in side.fields if not field.hidden]
        items = [Item(field, input_column(0, source.name)) for field, source in zip(shown, own, strict=True)]
        items += [Item(flag, exp.cast(exp.Literal.number(int(i == number)), "bigint")) for i, flag in enumerate(flags)]
        marked.append(make_select([side], [], items))
    calls = [Call(flag, Function.SUM, flag) for flag in flags]
    items = [Item(field, own_column(field.name)) for field in (*shown, *flags)]
    return make_aggregate(make_union(marked), shown, calls, items), flags[0], flags[1]


def _free(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "_"
    return name


def _copies(counted: Aggregate, visible: Sequence[Field], times: exp.Expr) -> Keyed:
    source: Select = make_select([counted], [], [Item(f, input_column(0, f.name)) for f in counted.fields])
    body = Body()
    for field in visible:
        body.add(field.name, field, input_column(0, field.name))
    number = Field("_n", INTEGER, hidden=True)
    upto = exp.Anonymous(this="sequence", expressions=[exp.cast(exp.Literal.number(1), "bigint"), times.copy()])
    columns = body.select()
    exploded = exp.Anonymous(this="explode", expressions=[upto])
    columns.append("expressions", exp.alias_(exploded, exp.to_identifier(number.name, quoted=True)))
    query = columns.from_(table(0), copy=False).where(exp.GT(this=times.copy(), expression=exp.Literal.number(0)))
    names = [field.name for field in visible]
    return keyed(
        "Copies",
        [source],
        [names],
        query,
        [*body.columns, number],
        partition=names,
        key=[*names, number.name],
        shown=[("times", times)],
    )
