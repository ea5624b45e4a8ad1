"""Window functions: a partition that changed is evaluated anew.

Functions over the same PARTITION BY are evaluated together, and so are those over more columns than others have: a
partition by (flag, year) lies within one by (flag). Functions over columns that share nothing follow each other.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from seiche.plan.algebra import Field, Reason, input_column
from seiche.plan.keyed import Body, keyed, table
from seiche.plan.rows import Rows, over, type_of


def windows_in(roots: Sequence[exp.Expr]) -> list[exp.Window]:
    """The window functions of expressions, without those of their subqueries."""
    found: dict[exp.Window, None] = {}

    def visit(node: exp.Expr) -> None:
        if isinstance(node, exp.Window):
            found[node] = None
        elif not isinstance(node, exp.Query):
            for child in node.iter_expressions():
                visit(child)

    for root in roots:
        visit(root)
    return list(found)


def evaluate(rows: Rows, windows: Sequence[exp.Window], remaining: Sequence[exp.Expr]) -> Rows:
    """The rows with the window functions known; `remaining` is what the query still asks of them."""
    for partition, members in _together(windows):
        rows = _evaluate(rows, partition, members, [*remaining, *windows])
    return rows


def _together(windows: Sequence[exp.Window]) -> list[tuple[list[exp.Expr], list[exp.Window]]]:
    by_partition: dict[frozenset[exp.Expr], tuple[list[exp.Expr], list[exp.Window]]] = {}
    for each in sorted(windows, key=lambda each: len(_partition(each))):
        columns = _partition(each)
        coarser = next((known for known in by_partition if known and known <= frozenset(columns)), frozenset(columns))
        by_partition.setdefault(coarser, (columns, []))[1].append(each)
    return list(by_partition.values())


def _partition(window: exp.Window) -> list[exp.Expr]:
    """What a window is partitioned by, each once; a constant parts nothing."""
    given = window.args.get("partition_by") or ()
    return list(dict.fromkeys(each for each in given if each.find(exp.Column, exp.Query, exp.Anonymous, exp.AggFunc)))


def _evaluate(
    rows: Rows, partition: Sequence[exp.Expr], windows: Sequence[exp.Window], remaining: Sequence[exp.Expr]
) -> Rows:
    source, fields = rows.plan([*partition, *rows.used_by(remaining)])
    inside = over(source, fields)
    body = Body()
    known: dict[exp.Expr, Field] = {}
    for node, field in fields.items():
        known[node] = body.add(field.name, field, input_column(0, field.name))
    for number, window in enumerate(windows):
        made = Field(f"w{number}", type_of(window))
        known[window] = body.add(made.name, made, inside.resolve(window))
    key = body.carry(0, source, source.key, "k")
    names = [fields[each].name for each in partition]
    reason = None if partition else Reason("window", "A window without PARTITION BY covers all rows.")
    plan = keyed(
        "Window",
        [source],
        [names],
        body.select().from_(table(0), copy=False),
        body.columns,
        partition=[known[each].name for each in partition],
        key=key,
        reason=reason,
    )
    return over(plan, known)
