"""Patterns: LIKE, SIMILAR TO and regular expressions, with their ESCAPE and their quantifiers."""

from __future__ import annotations

from sqlglot import exp

from seiche.sql import operators
from seiche.sql.binder import Binder
from seiche.sql.casts import convert
from seiche.sql.comparisons import quantifier_of
from seiche.sql.nodes import call, is_unknown, lambda_, negation, variable
from seiche.types import BOOLEAN, VARCHAR, array_of


def like(binder: Binder, node: exp.Binary, escape: str | None = None) -> exp.Expr:
    fold = isinstance(node, exp.ILike)
    quantifier = quantifier_of(node.expression)
    if quantifier is not None:
        return _like_each(binder, node, *quantifier)
    result = operators.like(
        binder.bind(node.this), binder.bind(node.expression), binder.settings, fold=fold, escape=escape
    )
    return negation(result) if node.args.get("negate") else result


def _like_each(binder: Binder, node: exp.Binary, inner: exp.Expr, every: bool) -> exp.Expr:
    """LIKE ANY and LIKE ALL; NOT belongs to each comparison."""
    text_, patterns = binder.settled(node.this), binder.bind(inner)
    if is_unknown(patterns):
        patterns = convert(patterns, array_of(VARCHAR), binder.settings)
    holds = operators.like(text_, variable("p", VARCHAR), binder.settings, fold=isinstance(node, exp.ILike))
    each = negation(holds) if node.args.get("negate") else holds
    return call(BOOLEAN, "forall" if every else "exists", patterns, lambda_(each, "p"))


def escaped(binder: Binder, node: exp.Binary) -> exp.Expr:
    if isinstance(node.this, exp.Like | exp.ILike):
        return like(binder, node.this, node.expression.name)
    if isinstance(node.this, exp.SimilarTo):
        parts = binder.bind(node.this.this), binder.bind(node.this.expression)
        return operators.similar(*parts, binder.settings, escape=node.expression.name)
    return binder.bind(node.this)


def regex(binder: Binder, node: exp.Binary) -> exp.Expr:
    fold = isinstance(node, exp.RegexpILike)
    return operators.matches(binder.bind(node.this), binder.bind(node.expression), binder.settings, fold=fold)


def similar(binder: Binder, node: exp.Binary) -> exp.Expr:
    return operators.similar(binder.bind(node.this), binder.bind(node.expression), binder.settings)
