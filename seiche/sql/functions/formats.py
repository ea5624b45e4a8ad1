"""`format` with a format string that is known at run time only: `%s`, `%I`, `%L`, `%%` and positions, without widths.

The string is cut into specifiers and the text between them, which are joined one after another.
"""

from __future__ import annotations

import sqlglot
from sqlglot import exp

from seiche.sql.nodes import Settings, call, comparison, field, guarded, let, text, typed, variable
from seiche.types import INTEGER, VARCHAR, array_of, struct_of

_STATE = struct_of(("out", VARCHAR), ("used", INTEGER), ("bad", VARCHAR))
_PIECES = r"(?s)%(?:[0-9]{1,6}[$])?[sIL%]|[^%]+|%"


def _state(out: str, used: str, bad: str = "''") -> str:
    return f"named_struct('out', {out}, 'used', {used}, 'bad', {bad})"


_PLACE = "CASE WHEN t RLIKE '[0-9]' THEN CAST(regexp_extract(t, '[0-9]+', 0) AS INT) ELSE a.used + 1 END"
_CHOSEN = "CASE right(t, 1) WHEN 's' THEN get(plain, p - 1) WHEN 'I' THEN get(names, p - 1) ELSE get(quoted, p - 1) END"
_STEP = f"""
    CASE WHEN a.bad <> '' THEN a
         WHEN NOT startswith(t, '%') THEN {_state("concat(a.out, t)", "a.used")}
         WHEN t = '%%' THEN {_state("concat(a.out, '%')", "a.used")}
         WHEN t = '%' THEN {_state("a.out", "a.used", "'unrecognized format() type specifier'")}
         ELSE get(transform(array({_PLACE}), p ->
              CASE WHEN p < 1 OR p > size(plain) THEN {_state("a.out", "a.used", "'too few arguments for format()'")}
                   ELSE {_state(f"concat(a.out, {_CHOSEN})", "p")} END), 0) END
"""


def _field(node: exp.Expr) -> exp.Expr:
    """`a.used` is a field of a variable, and no column of a table."""
    if isinstance(node, exp.Column) and node.table:
        return exp.Dot(this=exp.column(node.table), expression=exp.to_identifier(node.name))
    return node


def formatted(
    pattern: exp.Expr, plain: list[exp.Expr], names: list[exp.Expr], quoted: list[exp.Expr], settings: Settings
) -> exp.Expr:
    """The text; the values are given three times, as each specifier shows them."""
    pieces = call(array_of(VARCHAR), "regexp_extract_all", pattern, text(_PIECES), exp.Literal.number(0))
    body = sqlglot.parse_one(_STEP, dialect="spark").transform(_field)
    step = exp.Lambda(this=body, expressions=[exp.to_identifier("a"), exp.to_identifier("t")])
    start = sqlglot.parse_one(_state("''", "0"), dialect="spark")
    made = call(_STATE, "aggregate", pieces, start, step)
    result = variable("r", _STATE)
    bad = field(result, "bad", VARCHAR)
    shown = guarded(field(result.copy(), "out", VARCHAR), comparison(exp.NEQ, bad, text("")), bad.copy(), settings)
    body = let("r", typed(made, _STATE), VARCHAR, shown)
    for name, values in (("plain", plain), ("names", names), ("quoted", quoted)):
        body = let(name, call(array_of(VARCHAR), "array", *values), VARCHAR, body)
    return body
