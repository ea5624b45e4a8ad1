"""`x IN (SELECT …)` for Spark: what is not known has to come out as NULL.

As a condition by itself Spark plans it well and knows about NULL. Inside another expression, shown in a select list for
instance, it answers false where x or one of the rows is NULL. There the question is asked in three parts.
"""

from __future__ import annotations

from sqlglot import exp


def null_aware(query: exp.Expr) -> exp.Expr:
    """`x IN (SELECT …)` inside an expression, spelled out: Spark answers false there where the answer is not known.

    A condition by itself is left alone: there Spark plans it well, and knows about NULL. So is a subquery that looks
    outside and is no plain selection, which cannot be asked any other way.
    """
    for node in list(query.find_all(exp.In)):
        subquery = node.args.get("query")
        if subquery is None or _is_condition(node):
            continue
        inner = subquery.unnest()
        if isinstance(inner, exp.Select) and not any(inner.args.get(each) for each in _NOT_PLAIN):
            value = inner.selects[0].unalias()
            rows = inner
        elif not _looks_outside(inner):
            value = exp.column(exp.to_identifier(inner.named_selects[0], quoted=True), table="members")
            rows = exp.select("1").from_(inner.subquery("members"))
        else:
            continue
        if not rows.args.get("from_") and not rows.args.get("from"):
            continue

        def some(*conditions: exp.Expr, rows: exp.Select = rows) -> exp.Expr:
            found = rows.copy()
            found.set("expressions", [exp.Literal.number(1)])
            return exp.Exists(this=found.where(*conditions, copy=False) if conditions else found)

        asked = exp.paren(node.this.copy(), copy=False)
        unknown = exp.or_(
            some(exp.Is(this=exp.paren(value.copy()), expression=exp.null())),
            exp.and_(exp.Is(this=asked.copy(), expression=exp.null()), some()),
        )
        spelled = (
            exp.Case()
            .when(some(exp.EQ(this=exp.paren(value.copy()), expression=asked)), exp.true())
            .when(unknown, exp.null())
            .else_(exp.false())
        )
        node.replace(exp.paren(spelled, copy=False))
    return query


_NOT_PLAIN = ("group", "having", "limit", "offset", "distinct", "qualify", "windows", "with_", "with")


def _is_condition(node: exp.Expr) -> bool:
    """Whether it stands, negated or not, among the conditions of a WHERE, HAVING or ON."""
    parent = node.parent
    while isinstance(parent, exp.Paren | exp.And | exp.Not):
        parent = parent.parent
    return isinstance(parent, exp.Where | exp.Having | exp.Join)


def _looks_outside(query: exp.Expr) -> bool:
    inside = {each.alias_or_name for each in query.find_all(exp.Table, exp.Subquery)}
    return any(column.table and column.table not in inside for column in query.find_all(exp.Column))
