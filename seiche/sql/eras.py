"""The text of dates and moments outside of the years 1 to 9999, as PostgreSQL has it rather than Spark.

Spark writes years with a sign there, and counts 1 BC as the year 0.
"""

from __future__ import annotations

from sqlglot import exp

from seiche.sql.nodes import (
    binary,
    call,
    case,
    comparison,
    disjunction,
    integer,
    let,
    spark_cast,
    text,
    type_of,
    variable,
)
from seiche.types import BOOLEAN, INTEGER, VARCHAR

# A day within the calendar at both ends, since a zone may move a moment out of it.
_FIRST, _LAST = "0001-01-02", "9999-12-30"


def with_era(node: exp.Expr, plain: exp.Expr) -> exp.Expr:
    """`plain`, which is Spark's text of the date or moment `node`, in PostgreSQL's words."""
    first, last = (spark_cast(exp.Literal.string(each), type_of(node)) for each in (_FIRST, _LAST))
    outside = disjunction([comparison(exp.LT, node.copy(), first), comparison(exp.GT, node.copy(), last)])
    return case(VARCHAR, [(outside, let("told", plain.copy(), VARCHAR, _far(variable("told", VARCHAR))))], plain)


def _far(told: exp.Expr) -> exp.Expr:
    year = call(VARCHAR, "regexp_extract", told.copy(), text("^-?[0-9]+"), integer(0))
    counted = binary(exp.Sub, INTEGER, integer(1), spark_cast(year, INTEGER))
    rest = call(VARCHAR, "regexp_replace", told.copy(), text("^-?[0-9]+"), text(""))
    before = call(VARCHAR, "concat", call(VARCHAR, "format_string", text("%04d"), counted), rest, text(" BC"))
    return case(
        VARCHAR,
        [
            (call(BOOLEAN, "startswith", told.copy(), text("+")), call(VARCHAR, "substr", told.copy(), integer(2))),
            (call(BOOLEAN, "rlike", told.copy(), text("^(-|0000)")), before),
        ],
        told,
    )
