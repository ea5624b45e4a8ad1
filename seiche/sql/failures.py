"""Failures of expressions: where a tolerant one failed, and what a strict one's Spark error means.

In a view an expression that fails yields NULL (`strict=False`). `failure_of` gives the condition under which it
did, so that the event can be counted. `translate_spark_error` turns the error of a strict one into PostgreSQL's.
"""

from __future__ import annotations

import re

from sqlglot import exp

from seiche.errors import (
    CardinalityViolation,
    DataException,
    DatetimeOutOfRange,
    DiskFull,
    DivisionByZero,
    EngineStopped,
    InvalidDatetime,
    InvalidParameter,
    InvalidText,
    InvariantError,
    NotNullViolation,
    NumericOutOfRange,
    OutOfDomain,
    SeicheError,
    StringTooLong,
)
from seiche.sql.attempts import is_attempt
from seiche.sql.literals import INVALID_DIGIT, numeric_limit
from seiche.sql.nodes import FALLIBLE, ONCE, boolean, conjunction, disjunction, is_null, let, negation, not_null, typed
from seiche.sql.tokens import too_deep
from seiche.types import BOOLEAN


def failure_of(expression: exp.Expr) -> exp.Expr | None:
    """A Spark condition that is true exactly where evaluating the tolerant expression failed; None if it cannot.

    Branches that are not taken do not fail: CASE, COALESCE, AND and OR guard what stands behind them.
    """
    match expression:
        case exp.Alias() | exp.Paren():
            return failure_of(expression.this)
        case exp.Subquery() | exp.Query() | exp.Lambda():
            return None  # counted where its own rows are evaluated
        case exp.Anonymous() if expression.meta.get(ONCE):
            return _once(expression)
        case exp.Anonymous() if is_attempt(expression):
            return _attempt(expression)
        case exp.Case():
            inner = _case(expression)
        case exp.Coalesce():
            inner = _coalesce([expression.this, *expression.expressions])
        case exp.And():
            inner = _connector(expression, stops_at=False)
        case exp.Or():
            inner = _connector(expression, stops_at=True)
        case _:
            inner = _any([failure_of(part) for part in _operands(expression)])
    if not expression.meta.get(FALLIBLE):
        return inner
    if isinstance(expression, exp.Case):  # outside its domain: the one condition is false
        domain = expression.args["ifs"][0].this
        outside = typed(exp.Coalesce(this=negation(domain.copy()), expressions=[boolean(False)]), BOOLEAN)
        return outside if inner is None else disjunction([inner, outside])
    own = conjunction([is_null(expression.copy()), *(not_null(part.copy()) for part in _inputs(expression))])
    return own if inner is None else disjunction([inner, own])


def _attempt(expression: exp.Anonymous) -> exp.Expr:
    """Of a call that is NULL where it fails, and which is mentioned as such only."""
    (inner,) = expression.expressions
    own = conjunction([is_null(expression.copy()), *(not_null(part.copy()) for part in _inputs(inner))])
    made = _any([*(failure_of(part) for part in _operands(inner)), own])
    assert made is not None
    return made


def _operands(node: exp.Expr) -> list[exp.Expr]:
    return [part for part in node.iter_expressions() if not isinstance(part, exp.DataType | exp.Identifier | exp.Var)]


def _inputs(node: exp.Expr) -> list[exp.Expr]:
    """The operands whose NULL is no failure; a divisor's guard against zero is looked through."""
    return [part.this if isinstance(part, exp.Nullif) else part for part in _operands(node)]


def _any(conditions: list[exp.Expr | None]) -> exp.Expr | None:
    present = [condition for condition in conditions if condition is not None]
    return disjunction(present) if present else None


def _once(expression: exp.Anonymous) -> exp.Expr | None:
    """Of a node that is evaluated once, and of what mentions it by a name."""
    listed, function = expression.expressions[0].expressions
    (node,) = listed.expressions
    inside = failure_of(function.this)
    made = None if inside is None else let(function.expressions[0].name, node.copy(), BOOLEAN, inside)
    return _any([failure_of(node), made])


def _case(node: exp.Case) -> exp.Expr | None:
    conditions = [branch.this for branch in node.args["ifs"]]
    results = [branch.args["true"] for branch in node.args["ifs"]]
    default = node.args.get("default")
    behind = [failure_of(result) for result in results]
    at_last = failure_of(default) if default is not None else None
    taken: exp.Expr | None = None
    if at_last is not None or any(failure is not None for failure in behind):
        ifs = [
            exp.If(this=condition.copy(), true=failure or boolean(False))
            for condition, failure in zip(conditions, behind, strict=True)
        ]
        taken = typed(exp.Case(ifs=ifs, default=at_last or boolean(False)), BOOLEAN)
    # A later condition is evaluated only where the earlier ones were not true.
    tested: list[exp.Expr | None] = []
    for index, condition in enumerate(conditions):
        failure = failure_of(condition)
        if failure is not None and index:
            earlier = [_not_true(before) for before in conditions[:index]]
            failure = conjunction([*earlier, failure])
        tested.append(failure)
    return _any([*tested, taken])


def _coalesce(parts: list[exp.Expr]) -> exp.Expr | None:
    found: list[exp.Expr | None] = []
    for index, part in enumerate(parts):
        failure = failure_of(part)
        if failure is not None and index:
            failure = conjunction([*(is_null(before.copy()) for before in parts[:index]), failure])
        found.append(failure)
    return _any(found)


def _connector(node: exp.Expr, *, stops_at: bool) -> exp.Expr | None:
    left, right = failure_of(node.this), failure_of(node.expression)
    if right is not None:
        goes_on = _not_true(node.this) if stops_at else _not_false(node.this)
        right = conjunction([goes_on, right])
    return _any([left, right])


def _not_true(node: exp.Expr) -> exp.Expr:
    return negation(typed(exp.Coalesce(this=node.copy(), expressions=[boolean(False)]), BOOLEAN))


def _not_false(node: exp.Expr) -> exp.Expr:
    return typed(exp.Coalesce(this=node.copy(), expressions=[boolean(True)]), BOOLEAN)


# --- errors of strict expressions --------------------------------------------------------------------

_TYPES = {
    "INT": "integer",
    "BIGINT": "bigint",
    "SMALLINT": "smallint",
    "TINYINT": "smallint",
    "DOUBLE": "double precision",
    "FLOAT": "real",
    "BOOLEAN": "boolean",
    "DATE": "date",
    "TIMESTAMP_NTZ": "timestamp",
    "TIMESTAMP": "timestamp with time zone",
    "BINARY": "bytea",
}


# What Spark says of forms of subqueries and of grouping() that it has no plan for.
_UNPLANNED = frozenset(
    (
        "DATATYPE_MISMATCH",
        "UNRESOLVED_COLUMN",
        "UNSUPPORTED_GROUPING_EXPRESSION",
        "UNSUPPORTED_SUBQUERY_EXPRESSION_CATEGORY",
    )
)

SEVERAL_ROWS = "more than one row returned by a subquery used as an expression"

_TEMPORAL = ("date", "time", "interval")  # as the names of such types begin
# What a function complains about, in PostgreSQL's words, and its SQLSTATE.
_DOMAINS = {
    "logarithm": "2201E",
    "square root": "2201F",
    "negative substring length": "22011",
    "null character not permitted": "54000",
}

# The code with which Spark ends its process when a thread has no memory left.
OUT_OF_MEMORY = 52


def spark_gone(code: int | None = None) -> EngineStopped:
    """`code` is the exit code of the process, where it is known."""
    if code == OUT_OF_MEMORY:
        return EngineStopped(
            "Spark's Java process has ended",
            detail="It ran out of memory.",
            hint="Start Seiche again with a larger driver_memory: nothing that was acknowledged is lost.",
        )
    return EngineStopped(
        "Spark's Java process has ended",
        detail=f"Its exit code is {code}." if code is not None else None,
        hint="Start Seiche again: nothing that was acknowledged is lost. A process that was killed for its memory wants"
        " a larger machine or a smaller driver_memory.",
    )


def translate_spark_error(error: BaseException) -> SeicheError:
    """PostgreSQL's error for an exception of Spark; one that says nothing of the user's data stays ours."""
    if isinstance(error, SeicheError):
        return error
    if isinstance(error, RecursionError):
        return too_deep("It has more levels than can be planned.")
    if isinstance(error, OverflowError):  # Python's calendar is shorter than Spark's
        return DataException("date or timestamp out of range", detail="It lies before year 1 or after year 9999.")
    if isinstance(error, ConnectionError) or type(error).__name__ == "Py4JNetworkError":
        return spark_gone()
    condition, message = _condition(error)
    if "java.lang.StackOverflowError" in str(error):
        return too_deep("It has more parts than Spark can plan.")
    if "No space left on device" in message:
        return DiskFull(
            "data cannot be written",
            detail="No space is left on the device.",
            hint="Free some space; the database keeps its last state and goes on once there is room.",
        )
    if "Python worker" in message or "PythonException" in type(error).__name__:
        raised = [line.strip() for line in message.splitlines() if re.match(r"\s*\w+(Error|Exception)\b", line)]
        return DataException("a Python function raised an error", detail=raised[-1] if raised else None)
    match condition.split(".")[0]:
        case "DIVIDE_BY_ZERO" | "REMAINDER_BY_ZERO" | "INTERVAL_DIVIDED_BY_ZERO":
            return DivisionByZero("division by zero")
        case "FAILED_TO_PARSE_TOO_COMPLEX":
            return too_deep("It has more parts than Spark can plan.")
        case "CAST_INVALID_INPUT":
            value = _first(r"The value (?:'(.*?)'|(\S+)) of the type", message)
            type_ = _type_name(_first(r'cannot be cast to "([^"]+)"', message) or "")
            detail = INVALID_DIGIT if type_ in ("smallint", "integer", "bigint") else None
            kind_of_error = InvalidDatetime if type_.startswith(_TEMPORAL) else InvalidText
            return kind_of_error(f'invalid input syntax for type {type_}: "{value}"', detail=detail)
        case "CONVERSION_INVALID_INPUT" | "INVALID_FORMAT" | "CANNOT_PARSE_TIMESTAMP" | "DATETIME_FIELD_OUT_OF_BOUNDS":
            value = _first(r"The value '(.*?)'", message) or _first(r"Text '(.*?)'", message)
            shown = f': "{value}"' if value else ""
            if 'to "BINARY"' in message:
                return InvalidParameter(f"invalid data for decode{shown}", detail=_sentence(message))
            if "TIME" in condition:
                return InvalidDatetime(f"invalid date/time input{shown}", detail=_sentence(message))
            return InvalidText(f"invalid value input{shown}", detail=_sentence(message))
        case "CAST_OVERFLOW" | "CAST_OVERFLOW_IN_TABLE_INSERT":
            type_ = _first(r'cannot be cast to "([^"]+)"', message) or ""
            return NumericOutOfRange(f"{_type_name(type_)} out of range")
        case "ARITHMETIC_OVERFLOW" | "BINARY_ARITHMETIC_OVERFLOW":
            word = message.split("]", 1)[-1].strip().lower()
            kind = (
                "bigint"
                if word.startswith(("long", "bigint"))
                else "smallint"
                if "tinyint" in word or "smallint" in word
                else "integer"
            )
            return NumericOutOfRange(f"{kind} out of range")
        case (
            "NUMERIC_VALUE_OUT_OF_RANGE" | "DECIMAL_PRECISION_EXCEEDS_MAX_PRECISION" | "NUMERIC_OUT_OF_SUPPORTED_RANGE"
        ):
            return NumericOutOfRange("numeric field overflow", detail=_overflow(message))
        case "SCALAR_SUBQUERY_TOO_MANY_ROWS":
            return _several_rows()
        case "USER_RAISED_EXCEPTION" if SEVERAL_ROWS in message:
            return _several_rows()
        case "MALFORMED_RECORD_IN_PARSING" | "INVALID_JSON_ROOT_FIELD" | "VARIANT_DUPLICATE_KEY":
            return InvalidText("invalid input syntax for type json", detail=_sentence(message))
        case "DATETIME_OVERFLOW":
            return DataException("timestamp out of range", detail=_sentence(message))
        case "USER_RAISED_EXCEPTION" if "violates not-null constraint" in message:
            return NotNullViolation(_sentence(message).rstrip("."))
        case "USER_RAISED_EXCEPTION" if "value too long for type" in message:
            return StringTooLong(_sentence(message).rstrip("."))
        case "USER_RAISED_EXCEPTION" if "invalid input syntax for type" in message:
            told = _sentence(message).rstrip(".")
            of_time = told.partition("for type ")[2].startswith(_TEMPORAL)
            return InvalidDatetime(told) if of_time else InvalidText(told)
        case "USER_RAISED_EXCEPTION" if "field value out of range" in message or "date out of range" in message:
            told, _, reason = _sentence(message).partition(". ")
            return DatetimeOutOfRange(told, detail=reason or None)
        case "USER_RAISED_EXCEPTION" if "out of range" in message:
            return NumericOutOfRange(_sentence(message).rstrip("."))
        case "USER_RAISED_EXCEPTION" if "invalid value for to_" in message:
            return InvalidDatetime(_sentence(message).rstrip("."))
        case "USER_RAISED_EXCEPTION" if "division by zero" in message:
            return DivisionByZero("division by zero")
        case "USER_RAISED_EXCEPTION" if "cannot cast jsonb" in message:
            told, _, reason = _sentence(message).partition(". ")
            return InvalidParameter(told, detail=reason or None)
        case "USER_RAISED_EXCEPTION":
            told = _sentence(message).rstrip(".")
            for words, sqlstate in _DOMAINS.items():
                if words in told:
                    return OutOfDomain(told, sqlstate=sqlstate)
            return InvalidParameter(told)
        case "INVALID_PARAMETER_VALUE" if condition.endswith(".PATTERN"):
            return OutOfDomain("invalid regular expression", sqlstate="2201B", detail=_sentence(message))
        case "INVALID_ARRAY_INDEX" | "INVALID_PARAMETER_VALUE" | "INVALID_REGEXP_REPLACE" | "INVALID_UTF8_STRING":
            return DataException("invalid value in an expression", detail=_sentence(message))
        case "INVALID_TIMEZONE":
            zone = _first(r"The timezone: (\S+)", message)
            return InvalidParameter(f'time zone "{zone}" not recognized')
        case "UNSUPPORTED_SUBQUERY_EXPRESSION_CATEGORY":
            return _unsupported(message)
    if condition:
        return InvariantError("Spark could not run the query", detail=_sentence(message))
    return InvariantError(f"unexpected {type(error).__name__}", detail=_sentence(message) or None)


def is_unplanned(error: BaseException) -> bool:
    """Whether Spark cannot plan a query, which says nothing of the query itself: all was bound before."""
    return _condition(error)[0].split(".")[0] in _UNPLANNED


def _several_rows() -> CardinalityViolation:
    return CardinalityViolation(SEVERAL_ROWS, detail="Scalar subquery produced more than one row.")


def _overflow(message: str) -> str:
    """What the field can hold, in PostgreSQL's words."""
    found = re.search(r"decimal\((\d+),\s*(\d+)\)", message, re.I)
    if found is None:
        return _sentence(message)
    precision, scale = int(found[1]), int(found[2])
    return numeric_limit(precision, scale)


def _unsupported(message: str) -> SeicheError:
    from seiche.errors import FeatureNotSupported

    return FeatureNotSupported("this form of subquery is not supported", detail=_sentence(message))


def _condition(error: BaseException) -> tuple[str, str]:
    """Spark's error condition and message, from the exception or the one that it wraps."""
    seen: BaseException | None = error
    message = str(error)
    while seen is not None:
        for name in ("getCondition", "getErrorClass"):
            getter = getattr(seen, name, None)
            condition = getter() if callable(getter) else None
            if isinstance(condition, str) and condition:
                return condition, str(seen)
        found = re.search(r"\[([A-Z][A-Z0-9_]+(?:\.[A-Z0-9_]+)?)\]", str(seen))
        if found:
            return found[1], str(seen)[found.start() :]
        seen = seen.__cause__ or seen.__context__
    return "", message


def _first(pattern: str, message: str) -> str:
    found = re.search(pattern, message, re.S)
    return next((group for group in found.groups() if group is not None), "") if found else ""


def _type_name(spark: str) -> str:
    if spark.startswith("DECIMAL"):
        return "numeric"
    return _TYPES.get(spark, spark.lower())


def _sentence(message: str) -> str:
    """The first line of Spark's message without its condition and state."""
    line = message.strip().split("\n", 1)[0]
    line = re.sub(r"^.*?\[[A-Z0-9_.]+\]\s*", "", line)
    return re.sub(r"\s*(If necessary set .*|SQLSTATE: \w+.*)$", "", line)
