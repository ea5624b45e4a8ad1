"""`FETCH FIRST n ROWS WITH TIES` for Spark, which has no such thing: rows are ranked, and the rank is compared.

The bound query keeps the clause, so that a plan can know it; it is spelled out where the text for Spark is made.
"""

from __future__ import annotations

from sqlglot import exp

_ROWS, _RANK, _NUMBER = "ties", "ties_rank", "ties_number"


def has_ties(query: exp.Expr) -> bool:
    limit = query.args.get("limit")
    return isinstance(limit, exp.Limit) and bool(limit.args.get("with_ties"))


def without_ties(query: exp.Expr) -> exp.Expr:
    """The query with every such clause in it spelled out. Changes the tree that it is given."""
    for node in reversed([each for each in query.find_all(exp.Query) if has_ties(each)]):  # inner ones first
        ranked = _ranked(node)
        if node is query:
            query = ranked
        else:
            node.replace(ranked)
    return query


def _ranked(node: exp.Query) -> exp.Select:
    count, offset = node.args["limit"].expression, node.args.get("offset")
    order = node.args["order"].expressions
    names = [each.alias_or_name for each in node.selects]
    inner = node.copy()
    for part in ("order", "limit", "offset"):
        inner.set(part, None)
    keys = []
    for number, each in enumerate(order):
        key = each.copy()
        if not (isinstance(each.this, exp.Column) and not each.this.table and each.this.name in names):
            assert isinstance(inner, exp.Select)
            inner.append("expressions", exp.alias_(_meant(each.this, node), f"_o{number}", quoted=True))
            key.set("this", exp.column(f"_o{number}", quoted=True))
        keys.append(key)

    def over(function: str) -> exp.Expr:
        ordering = exp.Order(expressions=[key.copy() for key in keys])
        return exp.Window(this=exp.Anonymous(this=function), over="OVER", order=ordering)

    ranked = exp.Select(
        expressions=[
            exp.Star(),
            exp.alias_(over("rank"), _RANK, quoted=True),
            exp.alias_(over("row_number"), _NUMBER, quoted=True),
        ]
    ).from_(inner.subquery(_ROWS), copy=False)
    last = count if offset is None else exp.Add(this=count, expression=offset.expression.copy())
    conditions: list[exp.Expr] = [exp.LTE(this=exp.column(_RANK, quoted=True), expression=exp.paren(last.copy()))]
    if offset is not None:
        conditions.append(exp.GT(this=exp.column(_NUMBER, quoted=True), expression=exp.paren(offset.expression.copy())))
    shown = [exp.column(name, quoted=True) for name in names]
    answer = exp.Select(expressions=shown).from_(ranked.subquery(_ROWS), copy=False).where(*conditions, copy=False)
    answer.set("order", exp.Order(expressions=[exp.Ordered(this=exp.column(_NUMBER, quoted=True))]))
    return answer


def _meant(key: exp.Expr, query: exp.Query) -> exp.Expr:
    """A sort key with names of output columns replaced by what they stand for."""
    outputs = {each.alias_or_name: each.unalias() for each in query.selects}

    def place(node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.Column) and not node.table and node.name in outputs:
            return exp.paren(outputs[node.name].copy())
        return node

    return key.copy().transform(place)


__all__ = ["has_ties", "without_ties"]
