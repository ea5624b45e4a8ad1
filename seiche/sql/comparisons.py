"""Comparisons: of values, of rows, with ANY and ALL, BETWEEN and IN, IS, and with what a subquery returns."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from seiche.errors import FeatureNotSupported, SyntaxError_
from seiche.sql import operators
from seiche.sql.binder import QUERY, Binder
from seiche.sql.calls import row_parts
from seiche.sql.casts import convert
from seiche.sql.dialect import UNKNOWN
from seiche.sql.functions import arrays, jsonb, undefined
from seiche.sql.nodes import (
    boolean,
    comparison,
    conjunction,
    disjunction,
    integer,
    is_null,
    is_unknown,
    negation,
    type_of,
    typed,
)
from seiche.sql.single_rows import SCALAR
from seiche.types import BOOLEAN, VARCHAR, Kind, array_of


def comparison_of(binder: Binder, node: exp.Binary) -> exp.Expr:
    kind = type(node)
    right = node.expression
    quantifier = quantifier_of(right)
    if quantifier is not None:
        return _quantified(binder, kind, node.this, *quantifier)
    rows = row_parts(node.this), row_parts(right)
    if rows[0] is not None and rows[1] is not None:
        return _rows(binder, kind, rows[0], rows[1])
    return operators.compare(kind, binder.bind(node.this), binder.bind(right), binder.settings)


def _rows(binder: Binder, kind: type[exp.Binary], left: Sequence[exp.Expr], right: Sequence[exp.Expr]) -> exp.Expr:
    if len(left) != len(right):
        raise SyntaxError_("unequal number of entries in row expressions")
    if kind in (exp.EQ, exp.NullSafeEQ):
        return conjunction(
            [
                operators.compare(kind, binder.bind(a), binder.bind(b), binder.settings)
                for a, b in zip(left, right, strict=True)
            ]
        )
    if kind in (exp.NEQ, exp.NullSafeNEQ):
        return disjunction(
            [
                operators.compare(kind, binder.bind(a), binder.bind(b), binder.settings)
                for a, b in zip(left, right, strict=True)
            ]
        )
    # Lexicographic: the first pair that differs decides.
    first_left, first_right = binder.bind(left[0]), binder.bind(right[0])
    if len(left) == 1:
        return operators.compare(kind, first_left, first_right, binder.settings)
    strictly = exp.LT if kind in (exp.LT, exp.LTE) else exp.GT
    decided = operators.compare(strictly, first_left, first_right, binder.settings)
    tied = operators.compare(exp.EQ, first_left.copy(), first_right.copy(), binder.settings)
    return disjunction([decided, conjunction([tied, _rows(binder, kind, left[1:], right[1:])])])


def _quantified(binder: Binder, kind: type[exp.Binary], left: exp.Expr, inner: exp.Expr, every: bool) -> exp.Expr:
    if isinstance(inner, QUERY):
        if kind is exp.EQ and not every:
            return _in_query(binder, left, inner)
        if kind is exp.NEQ and every:
            return negation(_in_query(binder, left, inner))
        return _compared_query(binder, kind, binder.bind(left), inner, every)
    array = binder.bind(inner)
    node = binder.bind(left)
    if is_unknown(array):
        array = convert(array, array_of(VARCHAR if is_unknown(node) else type_of(node)), binder.settings)
    if kind in (exp.Like, exp.ILike):
        raise FeatureNotSupported(
            "LIKE ANY and LIKE ALL are not supported", hint="Combine several LIKE with OR or AND."
        )
    return arrays.quantified(kind, node, array, binder.settings, every=every)


def _compared_query(binder: Binder, kind: type[exp.Binary], left: exp.Expr, query: exp.Expr, every: bool) -> exp.Expr:
    """`x > ALL (query)` through EXISTS over the rows that decide it."""
    bound, columns = binder.surroundings.subquery(query)
    if len(columns) != 1:
        raise SyntaxError_(f"subquery has too {'many' if columns else 'few'} columns")
    name, type_ = columns[0]
    alias = "compared"
    value = typed(exp.column(name, table=alias, quoted=True), type_)
    holds = operators.compare(kind, left, value, binder.settings)
    decides = (
        typed(exp.Not(this=typed(exp.Coalesce(this=holds, expressions=[boolean(False)]), BOOLEAN)), BOOLEAN)
        if every
        else holds
    )
    rows = (
        exp.Select(expressions=[exp.alias_(integer(1), "one", quoted=True)])
        .from_(exp.Subquery(this=bound, alias=exp.TableAlias(this=exp.to_identifier(alias, quoted=True))))
        .where(decides, copy=False)
    )
    found = typed(exp.Exists(this=rows), BOOLEAN)
    return negation(found) if every else found


def between(binder: Binder, node: exp.Between) -> exp.Expr:
    parts = (binder.bind(node.this), binder.bind(node.args["low"]), binder.bind(node.args["high"]))
    return operators.between(*parts, binder.settings, symmetric=bool(node.args.get("symmetric")))


def membership(binder: Binder, node: exp.In) -> exp.Expr:
    query = node.args.get("query")
    if query is not None:
        return _in_query(binder, node.this, query)
    row = row_parts(node.this)
    if row is not None:
        return disjunction([_rows(binder, exp.EQ, row, row_parts(item) or [item]) for item in node.expressions])
    left = binder.bind(node.this)
    items = [binder.bind(item) for item in node.expressions]
    if type_of(left).kind is Kind.INTERVAL or any(type_of(item).kind is Kind.INTERVAL for item in items):
        return disjunction([operators.compare(exp.EQ, left.copy(), item, binder.settings) for item in items])
    pairs = [operators.comparable("=", left.copy(), item, binder.settings) for item in items]
    if len({type_of(a) for a, _ in pairs}) == 1:
        return typed(
            exp.Paren(this=typed(exp.In(this=pairs[0][0], expressions=[b for _, b in pairs]), BOOLEAN)), BOOLEAN
        )
    return typed(
        exp.Paren(this=disjunction([operators.compare(exp.EQ, left.copy(), item, binder.settings) for item in items])),
        BOOLEAN,
    )


def _in_query(binder: Binder, left: exp.Expr, query: exp.Expr) -> exp.Expr:
    inner = query.unnest() if isinstance(query, exp.Subquery) else query
    assert isinstance(inner, QUERY)
    bound, columns = binder.surroundings.subquery(inner)
    row = row_parts(left)
    lefts = [binder.bind(part) for part in row] if row is not None else [binder.bind(left)]
    if len(lefts) != len(columns):
        raise SyntaxError_(f"subquery has too {'many' if len(columns) > len(lefts) else 'few'} columns")
    pairs = [
        operators.comparable(
            "=", part, typed(exp.column(name, table="candidates", quoted=True), type_), binder.settings
        )
        for part, (name, type_) in zip(lefts, columns, strict=True)
    ]
    if any(not isinstance(right, exp.Column) for _, right in pairs):
        selected = [exp.alias_(right, f"c{index}", quoted=True) for index, (_, right) in enumerate(pairs)]
        source = exp.Subquery(this=bound, alias=exp.TableAlias(this=exp.to_identifier("candidates", quoted=True)))
        bound = exp.Select(expressions=selected).from_(source)
    tested: exp.Expr = pairs[0][0] if len(pairs) == 1 else exp.Tuple(expressions=[a for a, _ in pairs])
    return typed(exp.Paren(this=typed(exp.In(this=tested, query=exp.Subquery(this=bound)), BOOLEAN)), BOOLEAN)


def exists(binder: Binder, node: exp.Expr) -> exp.Expr:
    inner = node.this.unnest() if isinstance(node.this, exp.Subquery) else node.this
    if not isinstance(inner, QUERY):
        raise undefined("exists", [binder.bind(inner)])
    bound, _ = binder.surroundings.subquery(inner)
    return typed(exp.Exists(this=bound), BOOLEAN)


def scalar(binder: Binder, node: exp.Expr) -> exp.Expr:
    inner = node.unnest() if isinstance(node, exp.Subquery) else node
    if not isinstance(inner, QUERY):
        return binder.bind(inner)
    bound, columns = binder.surroundings.subquery(inner)
    if len(columns) != 1:
        raise SyntaxError_("subquery must return only one column")
    value = typed(exp.Subquery(this=bound), columns[0][1])
    value.meta[SCALAR] = True
    return value


def is_test(binder: Binder, node: exp.Expr) -> exp.Expr:
    wanted = node.expression
    match wanted:
        case exp.Null() if wanted.meta.get(UNKNOWN):
            return is_null(binder.condition(node.this, "IS UNKNOWN"))
        case exp.Null():
            row = row_parts(node.this)
            if row is not None:
                return conjunction([is_null(binder.settled(part)) for part in row])
            return is_null(binder.settled(node.this))
        case exp.Boolean():
            inner = binder.condition(node.this, f"IS {str(wanted.this).upper()}")
            return typed(
                exp.Coalesce(this=comparison(exp.EQ, inner, boolean(bool(wanted.this))), expressions=[boolean(False)]),
                BOOLEAN,
            )
        case exp.Not():
            return negation(is_test(binder, exp.Is(this=node.this, expression=wanted.this)))
        case exp.JSON() if not wanted.args.get("unique"):
            return jsonb.is_json(binder.settled(node.this), str(wanted.this or "VALUE").upper())
    raise FeatureNotSupported(f"IS {wanted.sql('seiche')} is not supported")


def quantifier_of(node: exp.Expr) -> tuple[exp.Expr, bool] | None:
    """What stands in ANY (...) or ALL (...), and whether it is ALL."""
    match node:
        case exp.Any():
            return _inside(node.this), False
        case exp.All():
            return _inside(node.this), True
        case exp.Anonymous() if str(node.this).lower() in ("all", "some", "any") and len(node.expressions) == 1:
            return _inside(node.expressions[0]), str(node.this).lower() == "all"
    return None


def _inside(node: exp.Expr) -> exp.Expr:
    while isinstance(node, exp.Paren | exp.Subquery) and not (
        isinstance(node, exp.Subquery) and node.args.get("alias")
    ):
        node = node.this
    return node
