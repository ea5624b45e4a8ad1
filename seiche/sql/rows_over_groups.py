"""Functions that return rows in the select list of a query that groups, aggregates or has window functions.

They come after all of that, so the query becomes a derived table, and they stand in the select list around it:

    SELECT k, generate_series(1, count(*)) FROM t GROUP BY k
    SELECT g.c0 AS k, generate_series(1, g.c2) FROM (SELECT k, NULL, count(*) FROM t GROUP BY k) AS g (c0, c1, c2)

What stands in the list keeps its place in the derived table, for GROUP BY may name it or give its number.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from seiche.sql.calls import own_nodes
from seiche.sql.output_names import output_name

_OUTSIDE = ("order", "limit", "offset", "distinct", "with_", "with")


def apart(node: exp.Select, is_set: Callable[[exp.Expr], bool], ref: str) -> exp.Select | None:
    """The query around the groups; None where the list has a star or DISTINCT ON, which depend on the list as it is."""
    distinct = node.args.get("distinct")
    if any(item.is_star for item in node.expressions) or (distinct is not None and distinct.args.get("on")):
        return None
    inner = node.copy()
    for part in _OUTSIDE:
        inner.set(part, None)
    lifted: list[exp.Expr] = []
    first = len(node.expressions)

    def column(number: int) -> exp.Expr:
        return exp.column(f"c{number}", table=ref, quoted=True)

    def returns_rows(part: exp.Expr) -> bool:
        return any(is_set(each) for each in own_nodes(part))

    def lift(part: exp.Expr) -> exp.Expr:
        """The part with what is evaluated below taken from there."""
        if isinstance(part, exp.Kwarg) or returns_rows(part):
            for child in list(part.iter_expressions()):
                made = lift(child)
                if made is not child:
                    child.replace(made)
            return part
        if part.find(exp.Column, exp.Func, exp.Query) is None or isinstance(part, exp.DataType):
            return part
        if part not in lifted:
            lifted.append(part.copy())
        return column(first + lifted.index(part))

    outer = exp.Select(expressions=[])
    names = [output_name(item) for item in node.expressions]
    for number, (item, name) in enumerate(zip(node.expressions, names, strict=True)):
        if returns_rows(item):
            inner.expressions[number].replace(exp.null())
            made = item.copy()
            lift(made)
            outer.append("expressions", made if isinstance(made, exp.Alias) else exp.alias_(made, name, quoted=True))
        else:
            outer.append("expressions", exp.alias_(column(number), name, quoted=True))
    for part in _OUTSIDE:
        outer.set(part, node.args[part].copy() if node.args.get(part) is not None else None)
    for key in outer.args["order"].expressions if outer.args.get("order") is not None else ():
        named = isinstance(key.this, exp.Column) and not key.this.table and key.this.name in names
        if not named and not key.this.is_number:
            key.set("this", lift(key.this))
    for each in lifted:
        inner.append("expressions", each)
    columns = [exp.to_identifier(f"c{number}", quoted=True) for number in range(first + len(lifted))]
    table = exp.TableAlias(this=exp.to_identifier(ref, quoted=True), columns=columns)
    outer.set("from_", exp.From(this=exp.Subquery(this=inner, alias=table)))
    return outer
