"""Expressions of a plan as EXPLAIN shows them: as they were written.

Inside a plan, columns have names that only the machine likes (`l0.a1`, `c2`), and expressions are what Spark computes.
Here each column is shown as what it stands for: a column of a named input, or the aggregate call as the user wrote it.
An expression that somebody has written is shown in those words, with each column in it as what it stands for. In others
casts that cannot change a value are left out, and functions that give NULL instead of failing are shown as operators.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TypeVar

from sqlglot import exp

from seiche.plan.algebra import Field, input_index, rewrite_columns
from seiche.sql.written import stands_for, written
from seiche.types import Kind, SqlType

Spellings = Sequence[tuple[exp.Expr, exp.Expr]]


N = TypeVar("N", bound=exp.Expr)


def typed(node: N, type_: SqlType | None) -> N:
    if type_ is not None:
        node.meta["sql_type"] = type_
    return node


def named(field: Field) -> exp.Expr:
    return typed(exp.column(exp.to_identifier(field.name)), field.type)


def qualified(column: exp.Expr, table: str) -> exp.Expr:
    shown = exp.column(exp.to_identifier(column.name), *map(exp.to_identifier, reversed(table.split("."))))
    return typed(shown, column.meta.get("sql_type"))


def resolved(expr: exp.Expr, columns: Mapping[str, exp.Expr], type_: SqlType | None = None) -> exp.Expr:
    """The expression with each column replaced by what it stands for."""

    def place(column: exp.Column) -> exp.Expr:
        name = f"l{input_index(column)}.{column.name}" if column.table else column.name
        value = columns[name].copy()
        return exp.paren(value, copy=False) if isinstance(value, exp.Binary | exp.Unary) else value

    made = rewrite_columns(expr, place)
    if "sql_type" not in made.meta:
        typed(made, type_)
    return made


def worded(expr: exp.Expr, spellings: Spellings = ()) -> str:
    """The expression as text. `spellings` are patterns in it that stand for something shorter."""
    whole = expr.copy()
    for pattern, short in spellings:
        whole = whole.transform(lambda node, p=pattern, s=short: s.copy() if node == p else node, copy=False)
    return _text(_plain(whole).unnest())


def _text(shown: exp.Expr) -> str:
    return str(shown.sql("spark", normalize_functions="lower"))


def condition(expr: exp.Expr, spellings: Spellings) -> str:
    words = worded(expr, spellings)
    return f"({words})" if isinstance(expr.unnest(), exp.Or) else words


_OPERATORS: dict[str, type[exp.Binary]] = {
    "try_add": exp.Add,
    "try_subtract": exp.Sub,
    "try_multiply": exp.Mul,
    "try_divide": exp.Div,
}


def _plain(expr: exp.Expr) -> exp.Expr:
    """The expression without what only the machine needs: as it was written, where somebody has written it."""
    words = _in_words(expr)
    if words is not None:
        return words
    for child in list(expr.iter_expressions()):
        plain: exp.Expr = _plain(child)
        if plain is not child:
            child.replace(plain)
    match expr:
        case exp.Cast(this=exp.Expr() as inner) if _keeps_value(inner, expr.meta.get("sql_type")):
            return inner
        case exp.Cast(this=exp.Literal(is_string=True) as number) if _is_numeric(
            number.name, expr.meta.get("sql_type")
        ):
            return typed(exp.Literal.number(number.name), expr.meta["sql_type"])
        case exp.Anonymous() if str(expr.this).lower() in _OPERATORS and len(expr.expressions) == 2:
            left, right = (_operand(each) for each in expr.expressions)
            kind = _OPERATORS[str(expr.this).lower()]
            return typed(kind(this=left, expression=right), expr.meta.get("sql_type"))
        case exp.Nullif() if isinstance(expr.this, exp.Literal) and expr.this.name != expr.expression.name:
            return expr.this
        case exp.Paren(this=exp.Expr() as inner) if not _is_compound(inner) or isinstance(inner, exp.Paren):
            return inner
        case _:
            return expr


_COMPOUND = "compound"  # the mark of words that want parentheses next to an operator
_ENCLOSING = (exp.Func, exp.Paren, exp.Case, exp.If, exp.Array, exp.Window, exp.Ordered, exp.Order)


def _in_words(expr: exp.Expr) -> exp.Expr | None:
    """What was written, with each column in it as what it stands for by now.

    None where nothing was written, where something of it is not to be found any more, and where it holds a subquery,
    which has become an input.
    """
    own = written(expr)
    if own is None or isinstance(own, exp.Literal) or isinstance(expr, exp.Column):
        return None
    known: dict[int, exp.Expr] = {}
    for piece in expr.walk():
        for each in stands_for(piece):
            known.setdefault(id(each), piece)
    words = own.copy()
    pending: list[tuple[exp.Expr, exp.Expr]] = [(own, words)]
    while pending:
        before, twin = pending.pop()
        part = known.get(id(before))
        if part is not None and part is not expr and exp.Column in (type(part.unnest()), type(before)):
            shown = _plain(part.copy()).unnest()
            text = exp.Var(this=_text(shown))
            around = _is_compound(shown) and not isinstance(twin.parent, _ENCLOSING)
            twin.replace(exp.paren(text) if around else text)
        elif isinstance(before, exp.Query | exp.Exists) or (isinstance(before, exp.Column) and before is not own):
            return None
        else:
            pending += zip(before.iter_expressions(), twin.iter_expressions(), strict=True)
    made = exp.Var(this=words.sql("seiche", normalize_functions="lower"))
    made.meta[_COMPOUND] = not isinstance(own, (*_ENCLOSING, exp.Cast, exp.Bracket))
    return typed(made, expr.meta.get("sql_type"))


def _is_compound(node: exp.Expr) -> bool:
    return isinstance(node, exp.Binary | exp.Unary) or bool(node.meta.get(_COMPOUND))


def _is_numeric(text: str, target: SqlType | None) -> bool:
    """Whether a quoted text is how binding writes a decimal literal."""
    return target is not None and target.kind is Kind.NUMERIC and bool(re.fullmatch(r"\d*\.?\d+", text))


def _operand(node: exp.Expr) -> exp.Expr:
    return exp.paren(node, copy=False) if isinstance(node, exp.Binary) else node


_INTEGER_DIGITS = {Kind.SMALLINT: 5, Kind.INTEGER: 10, Kind.BIGINT: 19}


def _keeps_value(inner: exp.Expr, target: SqlType | None) -> bool:
    """Whether a cast to `target` cannot change a value: the same type, a wider number, or a plain literal."""
    if target is None:
        return False
    literal = inner.this if isinstance(inner, exp.Neg) else inner
    if isinstance(literal, exp.Literal) and not literal.is_string and target.is_number:
        return True
    source = inner.unnest().meta.get("sql_type")
    if not isinstance(source, SqlType):
        return False
    if source == target or (source.kind is Kind.REAL and target.kind is Kind.DOUBLE):
        return True
    if source.is_integer and target.is_integer:
        return _INTEGER_DIGITS[source.kind] <= _INTEGER_DIGITS[target.kind]
    if target.kind is Kind.NUMERIC and (source.is_integer or source.kind is Kind.NUMERIC):
        digits, scale = _INTEGER_DIGITS.get(source.kind, source.precision - source.scale), source.scale
        return digits <= target.precision - target.scale and scale <= target.scale
    return False


__all__ = ["Spellings", "condition", "named", "qualified", "resolved", "typed", "worded"]
