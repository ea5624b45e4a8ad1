"""What Spark may fail at in a tolerant expression, put where a failure is NULL.

Where Spark has a tolerant form (`try_add`, `try_cast`) it is used. It has none for a pattern that is no regular
expression, a series of too many elements, a moment beyond the calendar. Such a call, with row values in it, is the
argument of a function that Seiche makes known to Spark (`stream/attempts.py`), which is NULL where its argument fails.

Each call has one of its own, and not the whole expression: Spark evaluates what stands in an expression twice before
all else, outside of whatever is around it.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from seiche.sql.nodes import TYPE, case, conjunction, kind_of, not_null
from seiche.types import INTERVAL, Kind, SqlType

ATTEMPT = "seiche_attempt"

# Calls that fail for some values, and are NULL only where an argument is.
_CALLS = frozenset(
    (
        "aes_decrypt",
        "aes_encrypt",
        "array_repeat",
        "chr",
        "convert_timezone",
        "date_trunc",
        "decode",
        "encode",
        "factorial",
        "format_string",
        "make_date",
        "parse_json",
        "sequence",
        "timestamp_micros",
        "timestamp_millis",
        "timestampadd",
        "unix_micros",
    )
)
# Those that fail for some patterns, positions and lengths. What is written down was looked at when it was bound.
_BY_ARGUMENTS = frozenset(
    (
        "bround",
        "lpad",
        "overlay",
        "regexp_count",
        "regexp_extract",
        "regexp_extract_all",
        "regexp_instr",
        "regexp_replace",
        "repeat",
        "rlike",
        "round",
        "rpad",
        "split",
        "split_part",
    )
)
_WIDTH = {Kind.SMALLINT: 16, Kind.INTEGER: 32, Kind.BIGINT: 64, Kind.REAL: 128, Kind.DOUBLE: 128, Kind.NUMERIC: 128}
_INTEGERS = (Kind.SMALLINT, Kind.INTEGER, Kind.BIGINT)
_DAYS = (Kind.DATE,)
_MOMENTS = (Kind.TIMESTAMP, Kind.TIMESTAMPTZ)


def attempted(node: exp.Expr, given: Sequence[exp.Expr]) -> exp.Expr:
    """The expression, changed in place, with NULL where a call in it fails. What it is made of is left as it is."""
    if node in given:
        return node
    for child in [each for each in node.iter_expressions() if not isinstance(each, exp.DataType | exp.Identifier)]:
        made = attempted(child, given)
        if made is not child:
            child.replace(made)
    if isinstance(node, exp.Anonymous) and str(node.this) == "named_struct" and kind_of(node) is Kind.INTERVAL:
        # A struct of NULLs is not NULL, and no interval either.
        return case(INTERVAL, [(conjunction([not_null(part.copy()) for part in node.expressions[1::2]]), node.copy())])
    if not _may_fail(node) or is_attempt(node.parent):
        return node
    return attempt_of(node.copy())


def attempt_of(node: exp.Expr) -> exp.Expr:
    """One attempt at all of the expression. Nothing that may fail stands in it twice."""
    made = exp.Anonymous(this=ATTEMPT, expressions=[node])
    if TYPE in node.meta:
        made.meta[TYPE] = node.meta[TYPE]
    return made


def is_attempt(node: exp.Expr | None) -> bool:
    return isinstance(node, exp.Anonymous) and str(node.this) == ATTEMPT


def _may_fail(node: exp.Expr) -> bool:
    if node.find(exp.Column) is None:
        return False
    match node:
        case exp.Anonymous() if str(node.this).lower() in _BY_ARGUMENTS:
            return not all(isinstance(each, exp.Literal) for each in node.expressions[1:])
        case exp.Anonymous() if str(node.this).lower() == "abs":
            return kind_of(node) in _INTEGERS
        case exp.Anonymous():
            return str(node.this).lower() in _CALLS
        case exp.TryCast():
            return False
        case exp.Cast():
            return _narrows(_type_of(node.this), _type_of(node))
        case exp.IntDiv():  # into a bigint
            return kind_of(node.this) is Kind.NUMERIC
        case exp.Add() | exp.Sub() | exp.Mul():
            return kind_of(node) in _INTEGERS
        case _:
            return False


def _narrows(source: SqlType | None, target: SqlType | None) -> bool:
    if source is None or target is None:
        return False
    if source.kind in _DAYS:
        return target.kind in _MOMENTS
    if source.kind is Kind.NUMERIC and target.kind is Kind.NUMERIC:
        room = (target.precision - target.scale) - (source.precision - source.scale)
        return room < 0 or (room == 0 and target.scale < source.scale)  # what is rounded may get one digit more
    return _WIDTH.get(source.kind, 0) > _WIDTH.get(target.kind, 0) > 0


def _type_of(node: exp.Expr) -> SqlType | None:
    """The type of a node, which parentheses may carry or not."""
    found = (each.meta.get(TYPE) for each in (node, node.unnest()))
    return next((each for each in found if isinstance(each, SqlType)), None)
