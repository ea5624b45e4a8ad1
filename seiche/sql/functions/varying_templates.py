"""to_date and to_timestamp by a template that is known at run time only.

It may hold years, months by number or name, days, hours, minutes and seconds; all that is neither letter nor digit
stands for one such character of the text. The template becomes a regular expression with a group for each field, and
the place of a field among all of them is the number of its group.
"""

from __future__ import annotations

from sqlglot import exp

from seiche.sql.functions.making import counted_from_zero
from seiche.sql.nodes import (
    Settings,
    call,
    case,
    comparison,
    conjunction,
    disjunction,
    equal,
    guarded,
    integer,
    is_null,
    lambda_,
    let,
    negation,
    not_null,
    quiet_cast,
    spark_cast,
    text,
    variable,
)
from seiche.types import BIGINT, BOOLEAN, INTEGER, TIMESTAMP, VARCHAR, array_of, numeric

_NAMES = "MONTH|MON"
_NUMBERS = "HH24|HH12|HH|MM|DD|MI|SS"
_FIELDS = f"(?i)YYYY|{_NAMES}|{_NUMBERS}"
_MONTHS = "jan feb mar apr may jun jul aug sep oct nov dec".split()
_TEXTS = array_of(VARCHAR)


def read_by(node: exp.Expr, template: exp.Expr, name: str, settings: Settings) -> exp.Expr:
    """The moment that the text denotes, without a zone."""
    fields = call(_TEXTS, "regexp_extract_all", template.copy(), text(_FIELDS), integer(0))
    upper = call(_TEXTS, "transform", fields, lambda_(call(VARCHAR, "upper", variable("f", VARCHAR)), "f"))
    body = _read(node, template, name, settings)
    made = let("template_pattern", _pattern(template), TIMESTAMP, body)
    return let("template_fields", upper, TIMESTAMP, made)


def _pattern(template: exp.Expr) -> exp.Expr:
    """A field becomes a group that holds none of the words that are replaced after it."""
    found = call(VARCHAR, "regexp_replace", template.copy(), text("[^A-Za-z0-9]"), text("[^A-Za-z0-9]"))
    groups = (("^YYYY", "(-?[0-9]+)"), ("YYYY", "([0-9]+)"), (_NAMES, "([A-Za-z]+)"), (_NUMBERS, "([0-9]+)"))
    for words, group in groups:
        found = call(VARCHAR, "regexp_replace", found, text(f"(?i){words}"), text(group))
    return call(VARCHAR, "concat", text(r"\A\s*"), found)


def _read(node: exp.Expr, template: exp.Expr, name: str, settings: Settings) -> exp.Expr:
    year = counted_from_zero(_number(node, ["YYYY"], 1))
    parts = [year, _month(node), _number(node, ["DD"], 1), _number(node, ["HH24", "HH12", "HH"], 0)]
    seconds = spark_cast(_number(node, ["SS"], 0), numeric(16, 6))
    made = call(TIMESTAMP, "try_make_timestamp_ntz", *parts, _number(node, ["MI"], 0), seconds)
    rest = call(VARCHAR, "regexp_replace", template.copy(), text(f"{_FIELDS}|[^A-Za-z0-9]"), text(""))
    unread = comparison(exp.NEQ, rest, text(""))
    unmatched = negation(call(BOOLEAN, "rlike", node.copy(), variable("template_pattern", VARCHAR)))
    known = [not_null(node.copy()), not_null(template.copy())]
    impossible = conjunction([*known, is_null(made.copy())])
    without_year = equal(_place("YYYY"), integer(0))
    checked = guarded(made, disjunction([unmatched, impossible]), f"invalid value for {name}", settings)
    told = f"function {name} cannot read a field of its format, or misses the year in it"
    return guarded(checked, disjunction([unread, without_year]), told, settings)


def _place(field: str) -> exp.Expr:
    return spark_cast(call(BIGINT, "array_position", variable("template_fields", _TEXTS), text(field)), INTEGER)


def _word(node: exp.Expr, field: str) -> exp.Expr:
    return call(VARCHAR, "regexp_extract", node.copy(), variable("template_pattern", VARCHAR), _place(field))


def _present(field: str) -> exp.Expr:
    return comparison(exp.GT, _place(field), integer(0))


def _number(node: exp.Expr, fields: list[str], default: int) -> exp.Expr:
    """The number in the first of these fields that the template has."""
    read = [(_present(field), quiet_cast(_word(node, field), INTEGER)) for field in fields]
    return case(INTEGER, read, integer(default))


def _month(node: exp.Expr) -> exp.Expr:
    names = call(_TEXTS, "array", *(text(each) for each in _MONTHS))
    branches = []
    for field in _NAMES.split("|"):
        begins = call(VARCHAR, "lower", call(VARCHAR, "left", _word(node, field), integer(3)))
        number = spark_cast(call(BIGINT, "array_position", names.copy(), begins), INTEGER)
        branches.append((_present(field), number))
    return case(INTEGER, branches, _number(node, ["MM"], 1))
