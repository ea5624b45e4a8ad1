"""The joined row of a Select: all columns that it mentions of its inputs, those of input i named l<i>_<field>."""

from __future__ import annotations

from sqlglot import exp

from seiche.plan.algebra import Select, columns_in, input_index, rewrite_columns


def needed(plan: Select) -> list[list[str]]:
    """The fields of each input that the Select mentions, in a fixed order."""
    found: list[dict[str, None]] = [{} for _ in plan.inputs]
    for expr in (*plan.conjuncts, *(item.expr for item in plan.items)):
        for column in columns_in(expr):
            found[input_index(column)][column.name] = None
    return [list(names) for names in found]


def flat_name(index: int, field: str) -> str:
    """What a field of an input is called in the joined row."""
    return f"l{index}_{field}"


def flat(expr: exp.Expr) -> str:
    """An expression over the joined row."""

    def rename(column: exp.Column) -> exp.Expr:
        return exp.column(exp.to_identifier(f"{column.table}_{column.name}", quoted=True))

    return rewrite_columns(expr, rename).sql("spark")


def inputs_of(expr: exp.Expr) -> set[int]:
    """The inputs whose fields an expression mentions."""
    return {input_index(column) for column in columns_in(expr)}
