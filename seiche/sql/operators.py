"""Operators: arithmetic, comparison, concatenation, pattern matching, bits, json and array containment.

Each picks PostgreSQL's result type from its operands and renders Spark's expression for it. Decimals are kept
exact within 38 digits: where Spark would cut the scale of a sum or product to make room for digits that are not
there, the operands are narrowed first and Spark's own rule is the fallback for huge values.
"""

from __future__ import annotations

import re

from sqlglot import exp

from seiche.errors import AmbiguousFunction, InvalidParameter, UndefinedFunction
from seiche.sql import intervals, regexes
from seiche.sql.attempts import attempt_of, attempted
from seiche.sql.casts import Context, as_numeric, castable, coerce, common_type, convert, settle, to_text
from seiche.sql.literals import interval_constant
from seiche.sql.moments import by_days
from seiche.sql.nodes import (
    Settings,
    attempt,
    binary,
    call,
    case,
    checked_cast,
    comparison,
    conjunction,
    disjunction,
    equal,
    fallible,
    guarded,
    integer,
    is_null,
    is_unknown,
    negation,
    once,
    quiet_cast,
    spark_cast,
    text,
    type_of,
    typed,
)
from seiche.sql.order_keys import order_key
from seiche.sql.powers import double_power
from seiche.sql.regex_parts import folds
from seiche.types import (
    BIGINT,
    BOOLEAN,
    BYTEA,
    DOUBLE,
    INTEGER,
    INTERVAL,
    JSONB,
    MAX_PRECISION,
    NUMERIC,
    REAL,
    VARCHAR,
    Kind,
    SqlType,
    array_of,
    numeric,
)

FREE_SCALE = NUMERIC.scale
_ROOM = MAX_PRECISION - FREE_SCALE  # digits before the point of a free numeric
_SIGNED_DIGITS = 34  # of a decimal, which Spark turns the sign of without rounding it


def no_operator(symbol: str, *nodes: exp.Expr) -> UndefinedFunction:
    types = [str(type_of(node).unmodified) for node in nodes]
    shown = f"{types[0]} {symbol} {types[1]}" if len(types) == 2 else f"{symbol} {types[0]}"
    return UndefinedFunction(
        f"operator does not exist: {shown}",
        hint="No operator matches the given name and argument types. You might need to add explicit type casts.",
    )


# --- arithmetic --------------------------------------------------------------------------------------


def arithmetic(symbol: str, left: exp.Expr, right: exp.Expr, settings: Settings) -> exp.Expr:
    """`+ - * / %` of numbers, dates, times and intervals."""
    left, right = _adapt(symbol, left, right, settings)
    a, b = type_of(left), type_of(right)
    if a.is_number and b.is_number:
        return _numbers(symbol, left, right, settings)
    if made := intervals.arithmetic(symbol, left, right, settings):
        return made if settings.strict else attempted(made, [left, right])
    if symbol == "-" and a.kind is Kind.JSONB:
        raise no_operator(symbol, left, right)
    raise no_operator(symbol, left, right)


def _adapt(symbol: str, left: exp.Expr, right: exp.Expr, settings: Settings) -> tuple[exp.Expr, exp.Expr]:
    """An untyped literal takes the other operand's type, as the operator prefers."""
    if is_unknown(left) and is_unknown(right):
        if isinstance(left, exp.Null) and isinstance(right, exp.Null):
            return convert(left, INTEGER, settings), convert(right, INTEGER, settings)
        raise AmbiguousFunction(
            f"operator is not unique: unknown {symbol} unknown",
            hint="Could not choose a best candidate operator. You might need to add explicit type casts.",
        )
    if is_unknown(left):
        return convert(left, _partner(symbol, type_of(right), first=True), settings), right
    if is_unknown(right):
        return left, convert(right, _partner(symbol, type_of(left), first=False), settings)
    return left, right


def _partner(symbol: str, type_: SqlType, *, first: bool) -> SqlType:
    match type_.kind:
        case Kind.DATE if symbol == "+":
            return INTEGER
        case Kind.TIMESTAMP | Kind.TIMESTAMPTZ | Kind.TIME if symbol == "+" or (
            symbol == "-" and type_.kind is Kind.TIME
        ):
            return INTERVAL
        case Kind.INTERVAL if symbol in "*/":
            return DOUBLE
        case Kind.INTERVAL if first and symbol == "+":
            return INTERVAL
        case Kind.NUMERIC:
            return NUMERIC
        case _:
            return type_


def _numbers(symbol: str, left: exp.Expr, right: exp.Expr, settings: Settings) -> exp.Expr:
    a, b = type_of(left), type_of(right)
    if a.is_float or b.is_float:
        type_ = REAL if a.kind is Kind.REAL and b.kind is Kind.REAL else DOUBLE
        return _floats(symbol, convert(left, type_, settings), convert(right, type_, settings), type_, settings)
    if a.is_integer and b.is_integer:
        type_ = common_type([a, b], symbol)
        return _integers(symbol, convert(left, type_, settings), convert(right, type_, settings), type_, settings)
    return _decimals(symbol, convert(left, as_numeric(a), settings), convert(right, as_numeric(b), settings), settings)


_KINDS: dict[str, type[exp.Binary]] = {"+": exp.Add, "-": exp.Sub, "*": exp.Mul, "/": exp.Div, "%": exp.Mod}
_TRIES = {"+": "try_add", "-": "try_subtract", "*": "try_multiply", "/": "try_divide", "%": "try_mod"}


def _checked(symbol: str, type_: SqlType, left: exp.Expr, right: exp.Expr, settings: Settings) -> exp.Expr:
    """Spark's own operator, raising or giving NULL."""
    if settings.strict:
        return binary(_KINDS[symbol], type_, left, right)
    if symbol == "%" and _is_nonzero(right):  # nothing else makes it fail
        return call(type_, _TRIES[symbol], left, right)
    return attempt(type_, _TRIES[symbol], left, right)


def _is_nonzero(node: exp.Expr) -> bool:
    """Whether it is a number that was written down, and not zero."""
    while isinstance(node, exp.Cast | exp.Paren | exp.Neg):
        node = node.this
    return isinstance(node, exp.Literal) and not node.is_string and float(node.name) != 0


def _integers(symbol: str, left: exp.Expr, right: exp.Expr, type_: SqlType, settings: Settings) -> exp.Expr:
    if symbol != "/":
        return _checked(symbol, type_, left, right, settings)
    if settings.strict:
        quotient = binary(exp.IntDiv, BIGINT, left, right)
        return quotient if type_ == BIGINT else checked_cast(quotient, type_, settings)
    guarded = typed(exp.Nullif(this=right, expression=integer(0)), type_)
    quotient = typed(exp.Paren(this=fallible(typed(exp.IntDiv(this=left, expression=guarded), BIGINT))), BIGINT)
    if type_ != BIGINT:
        return checked_cast(quotient, type_, settings)
    # The one quotient that does not fit: the smallest bigint by -1.
    inverted = attempt(BIGINT, "try_subtract", integer(0, BIGINT), left.copy())
    return case(BIGINT, [(equal(right.copy(), integer(-1, BIGINT)), inverted)], quotient)


def _floats(symbol: str, left: exp.Expr, right: exp.Expr, type_: SqlType, settings: Settings) -> exp.Expr:
    if symbol == "%":
        raise no_operator(symbol, left, right)
    if symbol != "/":
        return binary(_KINDS[symbol], type_, left, right)
    quotient = _checked("/", DOUBLE, left, right, settings)
    return quotient if type_ == DOUBLE else spark_cast(quotient, REAL)


def _decimals(symbol: str, left: exp.Expr, right: exp.Expr, settings: Settings) -> exp.Expr:
    match symbol:
        case "+" | "-":
            return _decimal_sum(_KINDS[symbol], left, right, settings)
        case "*":
            return _decimal_product(left, right, settings)
        case "/":
            return decimal_quotient(left, right, settings)
        case _:
            a, b = type_of(left), type_of(right)
            scale = max(a.scale, b.scale)
            whole = min(a.precision - a.scale, b.precision - b.scale)
            type_ = numeric(min(MAX_PRECISION, whole + scale), scale, declared=a.declared and b.declared)
            return _checked("%", type_, left, right, settings)


def _whole(type_: SqlType) -> int:
    return type_.precision - type_.scale


def _decimal_sum(kind: type[exp.Binary], left: exp.Expr, right: exp.Expr, settings: Settings) -> exp.Expr:
    a, b = type_of(left), type_of(right)
    scale = max(a.scale, b.scale)
    whole = max(_whole(a), _whole(b)) + 1
    declared = a.declared and b.declared
    if whole + scale <= MAX_PRECISION:
        return binary(kind, numeric(whole + scale, scale, declared=declared), left, right)
    type_ = numeric(MAX_PRECISION, scale, declared=declared)
    if scale == 0:  # Spark keeps all 38 digits here and checks the sum itself
        return _checked("+" if kind is exp.Add else "-", type_, left, right, settings)
    operand = numeric(MAX_PRECISION - 1, scale, declared=declared)
    return binary(kind, type_, convert(left, operand, settings), convert(right, operand, settings))


def _decimal_product(left: exp.Expr, right: exp.Expr, settings: Settings) -> exp.Expr:
    a, b = type_of(left), type_of(right)
    scale, whole = a.scale + b.scale, _whole(a) + _whole(b) + 1
    declared = a.declared and b.declared
    if scale + whole <= MAX_PRECISION:
        return binary(exp.Mul, numeric(scale + whole, scale, declared=declared), left, right)
    type_ = numeric(MAX_PRECISION, min(scale, FREE_SCALE), declared=declared)
    given = max(MAX_PRECISION - whole, min(scale, 6))  # the scale that Spark leaves
    if given >= min(scale, FREE_SCALE - 1):
        return checked_cast(_checked("*", numeric(MAX_PRECISION, given), left, right, settings), type_, settings)
    return once(left, type_, lambda a: once(right, type_, lambda b: _careful_product(a, b, type_, settings), a), right)


def _careful_product(left: exp.Expr, right: exp.Expr, type_: SqlType, settings: Settings) -> exp.Expr:
    """Spark would keep only 6 digits behind the point. Values of ordinary size get 17."""
    a, b = type_of(left), type_of(right)
    small_b = min(_whole(b), max(_ROOM // 2, _ROOM - _whole(a)))
    small_a = min(_whole(a), _ROOM - small_b)
    narrow = binary(
        exp.Mul,
        numeric(MAX_PRECISION, FREE_SCALE - 1),
        quiet_cast(left.copy(), numeric(small_a + a.scale, a.scale)),
        quiet_cast(right.copy(), numeric(small_b + b.scale, b.scale)),
    )
    wide = _checked("*", numeric(MAX_PRECISION, 6), left, right, settings)
    return typed(exp.Coalesce(this=spark_cast(narrow, type_), expressions=[checked_cast(wide, type_, settings)]), type_)


def decimal_quotient(left: exp.Expr, right: exp.Expr, settings: Settings) -> exp.Expr:
    """A quotient with 18 digits behind the point; beyond ordinary sizes, 16 significant ones."""
    a, b = type_of(left), type_of(right)
    if _whole(a) + b.scale <= _ROOM:
        wide = numeric(_whole(a) + max(a.scale, FREE_SCALE), max(a.scale, FREE_SCALE))
        return checked_cast(_checked("/", NUMERIC, spark_cast(left, wide), right, settings), NUMERIC, settings)
    return once(left, NUMERIC, lambda a: once(right, NUMERIC, lambda b: _careful_quotient(a, b, settings), a), right)


def _careful_quotient(left: exp.Expr, right: exp.Expr, settings: Settings) -> exp.Expr:
    b = type_of(right)
    scale = min(b.scale, 6)
    exact = numeric(min(MAX_PRECISION, _whole(b) + scale), scale)
    dividend = quiet_cast(left.copy(), numeric(_ROOM - scale + FREE_SCALE, FREE_SCALE))
    divisor: exp.Expr = typed(exp.Nullif(this=right.copy(), expression=integer(0)), b)
    if b.scale > scale:
        shorter = quiet_cast(divisor, exact)
        divisor = case(exact, [(equal(shorter, right.copy()), shorter.copy())])
    narrow = binary(exp.Div, NUMERIC, dividend, divisor)
    double = _checked("/", DOUBLE, spark_cast(left, DOUBLE), spark_cast(right, DOUBLE), settings)
    return typed(
        exp.Coalesce(this=spark_cast(narrow, NUMERIC), expressions=[checked_cast(double, NUMERIC, settings)]), NUMERIC
    )


def negative(node: exp.Expr, settings: Settings) -> exp.Expr:
    if is_unknown(node):
        node = convert(node, DOUBLE, settings)
    type_ = type_of(node)
    if type_.kind is Kind.INTERVAL:
        made = intervals.scaled(node, integer(-1), settings)
        return made if settings.strict or interval_constant(node) is not None else attempted(made, [node])
    if not type_.is_number:
        raise no_operator("-", node)
    if (isinstance(node, exp.Literal) and not node.is_string) or type_.is_float:
        return typed(exp.Neg(this=node), type_)
    if isinstance(node, exp.Cast) and isinstance(node.this, exp.Literal) and not node.this.is_string:
        return spark_cast(exp.Neg(this=node.this), type_)
    if type_.kind is Kind.NUMERIC:
        if type_.precision <= _SIGNED_DIGITS:
            return typed(exp.Neg(this=node), type_)
        if isinstance(node, exp.Cast) and _DIGITS.fullmatch(node.this.name):
            return spark_cast(text(f"-{node.this.name}"), type_)
        return once(node, type_, lambda number: _turned(number, type_))
    return _checked("-", type_, integer(0, type_), node, settings)


def _turned(node: exp.Expr, type_: SqlType) -> exp.Expr:
    """A decimal with its sign turned, which Spark would round to 34 digits. A difference keeps 37 of them, or 38 where
    none is behind the point, a text all."""
    zero = spark_cast(integer(0), numeric(1, 0))
    if type_.precision < MAX_PRECISION or not type_.scale:
        return spark_cast(binary(exp.Sub, numeric(MAX_PRECISION, type_.scale), zero, node), type_)
    near = quiet_cast(node.copy(), numeric(MAX_PRECISION - 1, type_.scale))
    digits = spark_cast(node.copy(), VARCHAR)
    below = comparison(exp.LT, node, integer(0))
    turned = case(
        VARCHAR,
        [(below, call(VARCHAR, "substr", digits, integer(2)))],
        call(VARCHAR, "concat", text("-"), digits.copy()),
    )
    made = [spark_cast(binary(exp.Sub, type_, zero, near), type_), spark_cast(turned, type_)]
    return typed(exp.Coalesce(this=made[0], expressions=made[1:]), type_)


def absolute(node: exp.Expr, settings: Settings) -> exp.Expr:
    """A number without its sign."""
    type_ = type_of(node)
    if type_.is_float or (type_.kind is Kind.NUMERIC and type_.precision <= _SIGNED_DIGITS):
        return call(type_, "abs", node)

    def make(node: exp.Expr) -> exp.Expr:
        return case(type_, [(comparison(exp.LT, node.copy(), integer(0)), negative(node.copy(), settings))], node)

    return once(node, type_, make)


def power(left: exp.Expr, right: exp.Expr, settings: Settings) -> exp.Expr:
    left = convert(left, DOUBLE, settings) if is_unknown(left) else left
    right = convert(right, DOUBLE, settings) if is_unknown(right) else right
    if not (type_of(left).is_number and type_of(right).is_number):
        raise no_operator("^", left, right)
    exact = Kind.NUMERIC in (type_of(left).kind, type_of(right).kind) and not (
        type_of(left).is_float or type_of(right).is_float
    )
    base, exponent = convert(left, DOUBLE, settings), convert(right, DOUBLE, settings)
    result = double_power(base, exponent, settings, exact=exact)
    return checked_cast(result, NUMERIC, settings) if exact else result


_DIGITS = re.compile(r"[0-9]+\.?[0-9]*")
_BITS: dict[str, type[exp.Binary]] = {"&": exp.BitwiseAnd, "|": exp.BitwiseOr, "#": exp.BitwiseXor}


def bits(symbol: str, left: exp.Expr, right: exp.Expr, settings: Settings) -> exp.Expr:
    left = convert(left, type_of(right), settings) if is_unknown(left) else left
    right = convert(right, type_of(left), settings) if is_unknown(right) else right
    if not (type_of(left).is_integer and type_of(right).is_integer):
        raise no_operator(symbol, left, right)
    if symbol in ("<<", ">>"):
        name = "shiftleft" if symbol == "<<" else "shiftright"
        type_ = type_of(left)
        shifted = call(INTEGER if type_.kind is Kind.SMALLINT else type_, name, left, convert(right, INTEGER, settings))
        if type_.kind is not Kind.SMALLINT:
            return shifted
        low = call(INTEGER, "shiftright", call(INTEGER, "shiftleft", shifted, integer(16)), integer(16))
        return spark_cast(low, type_)  # the bits that do not fit are lost
    type_ = common_type([type_of(left), type_of(right)], symbol)
    return binary(_BITS[symbol], type_, convert(left, type_, settings), convert(right, type_, settings))


# --- comparison --------------------------------------------------------------------------------------

COMPARISONS: dict[type[exp.Expr], str] = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.NullSafeEQ: "=",
    exp.NullSafeNEQ: "=",
}


def compare(kind: type[exp.Binary], left: exp.Expr, right: exp.Expr, settings: Settings) -> exp.Expr:
    if days := by_days(kind, left, right):
        return comparison(kind, *days)
    left, right = comparable(COMPARISONS[kind], left, right, settings)
    if kind is exp.NullSafeNEQ:
        return negation(comparison(exp.NullSafeEQ, left, right))
    if kind in (exp.LT, exp.LTE, exp.GT, exp.GTE) and type_of(left).kind in (Kind.ARRAY, Kind.STRUCT):
        left, right = order_key(left), order_key(right)
    return comparison(kind, left, right)


def comparable(symbol: str, left: exp.Expr, right: exp.Expr, settings: Settings) -> tuple[exp.Expr, exp.Expr]:
    """Both operands in one type whose order is PostgreSQL's."""
    if is_unknown(left) and is_unknown(right):
        left, right = settle(left, settings), settle(right, settings)
    elif is_unknown(left):
        left = convert(left, _loose(type_of(right)), settings)
    elif is_unknown(right):
        right = convert(right, _loose(type_of(left)), settings)
    a, b = type_of(left), type_of(right)
    if Kind.MAP in (a.kind, b.kind):
        raise no_operator(symbol, left, right)
    if a.is_number and b.is_number:
        if a.kind is Kind.NUMERIC and b.kind is Kind.NUMERIC:
            return left, right
        if Kind.NUMERIC in (a.kind, b.kind) and not (a.is_float or b.is_float):
            return convert(left, as_numeric(a), settings), convert(right, as_numeric(b), settings)
        type_ = DOUBLE if a != b and (a.is_float or b.is_float) else common_type([a, b], symbol)
        return convert(left, type_, settings), convert(right, type_, settings)
    if a.kind is Kind.INTERVAL and b.kind is Kind.INTERVAL:
        return intervals.lengths(left, right, settings)
    if a == b:
        return left, right
    if a.kind is Kind.STRUCT and b.kind is Kind.STRUCT and len(a.fields) == len(b.fields):
        return left, convert(right, a, settings)
    if castable(a, b, Context.IMPLICIT):
        return coerce(left, b, settings), right
    if castable(b, a, Context.IMPLICIT):
        return left, coerce(right, a, settings)
    if a.kind is Kind.ARRAY and b.kind is Kind.ARRAY:
        type_ = common_type([a, b], symbol)
        return convert(left, type_, settings), convert(right, type_, settings)
    raise no_operator(symbol, left, right)


def _loose(type_: SqlType) -> SqlType:
    """A literal compared with numeric(10,2) is not rounded to two digits."""
    return NUMERIC if type_.kind is Kind.NUMERIC else type_


def between(node: exp.Expr, low: exp.Expr, high: exp.Expr, settings: Settings, *, symmetric: bool) -> exp.Expr:
    def within(a: exp.Expr, b: exp.Expr) -> exp.Expr:
        return conjunction(
            [compare(exp.GTE, node.copy(), a.copy(), settings), compare(exp.LTE, node.copy(), b.copy(), settings)]
        )

    inside = within(low, high)
    if symmetric:
        inside = disjunction([inside, within(high, low)])
    return typed(exp.Paren(this=inside), BOOLEAN)


# --- text --------------------------------------------------------------------------------------------


def concatenate(left: exp.Expr, right: exp.Expr, settings: Settings) -> exp.Expr:
    """`||` of texts, arrays, array and element, jsonb, bytea."""
    a, b = type_of(left), type_of(right)
    if Kind.ARRAY in (a.kind, b.kind):
        return _array_concatenate(left, right, settings)
    if Kind.JSONB in (a.kind, b.kind) and {a.kind, b.kind} <= {Kind.JSONB, Kind.NULL}:
        left, right = convert(left, JSONB, settings), convert(right, JSONB, settings)
        made = _json_concatenate(left, right)
        return made if settings.strict else attempted(made, [left, right])
    if Kind.BYTEA in (a.kind, b.kind) and {a.kind, b.kind} <= {Kind.BYTEA, Kind.NULL}:
        return call(BYTEA, "concat", convert(left, BYTEA, settings), convert(right, BYTEA, settings))
    if not {a.kind, b.kind} & {Kind.VARCHAR, Kind.NULL}:
        raise no_operator("||", left, right)
    return call(VARCHAR, "concat", to_text(left, settings), to_text(right, settings))


def _dimensions(type_: SqlType) -> int:
    return 1 + _dimensions(type_.element) if type_.element is not None else 0


def _array_concatenate(left: exp.Expr, right: exp.Expr, settings: Settings) -> exp.Expr:
    a, b = type_of(left), type_of(right)

    def as_array(node: exp.Expr, other: SqlType) -> exp.Expr:
        kind = type_of(node).kind
        if kind is Kind.ARRAY:
            return node
        if kind is Kind.NULL:
            return convert(node, other, settings)
        return call(array_of(type_of(node)), "array", node)

    left, right = as_array(left, b), as_array(right, a)
    if _dimensions(type_of(left)) + 1 == _dimensions(type_of(right)):  # an array before arrays is one of them
        left = call(array_of(type_of(left)), "array", left)
    elif _dimensions(type_of(left)) == _dimensions(type_of(right)) + 1:
        right = call(array_of(type_of(right)), "array", right)
    type_ = common_type([type_of(left), type_of(right)], "||")
    left, right = convert(left, type_, settings), convert(right, type_, settings)
    joined = call(type_, "concat", left, right)
    return typed(exp.Coalesce(this=joined, expressions=[left.copy(), right.copy()]), type_)


def _json_concatenate(left: exp.Expr, right: exp.Expr) -> exp.Expr:
    """Arrays are appended, other values wrapped first; two objects merge, the right one winning."""

    def starts(node: exp.Expr, mark: str) -> exp.Expr:
        return call(BOOLEAN, "startswith", node.copy(), text(mark))

    def inner(node: exp.Expr) -> exp.Expr:
        unwrapped = call(
            VARCHAR,
            "substr",
            node.copy(),
            integer(2),
            binary(exp.Sub, INTEGER, call(INTEGER, "length", node.copy()), integer(2)),
        )
        return case(VARCHAR, [(starts(node, "["), unwrapped)], typed(node.copy(), VARCHAR))

    both = conjunction([starts(left, "{"), starts(right, "{")])
    present = call(
        array_of(VARCHAR), "filter", call(array_of(VARCHAR), "array", inner(left), inner(right)),
        exp.Lambda(
            this=exp.NEQ(this=exp.column("x"), expression=exp.Literal.string("")), expressions=[exp.to_identifier("x")]
        ),
    )  # fmt: skip
    appended = call(VARCHAR, "concat", text("["), call(VARCHAR, "array_join", present, text(",")), text("]"))
    return case(
        JSONB,
        [
            (disjunction([is_null(left.copy()), is_null(right.copy())]), typed(exp.Null(), JSONB)),
            (both, _merge_objects(left, right)),
        ],
        typed(appended, JSONB),
    )


def _merge_objects(left: exp.Expr, right: exp.Expr) -> exp.Expr:
    """Through variants, which keep each member's own json text."""
    variants = "map<string,variant>"
    parts = [call(JSONB, "from_json", node.copy(), text(variants)) for node in (left, right)]
    keys = call(JSONB, "map_keys", parts[1])
    kept = call(
        JSONB, "map_filter", parts[0],
        exp.Lambda(
            this=exp.Not(this=exp.Anonymous(this="array_contains", expressions=[keys, exp.column("k")])),
            expressions=[exp.to_identifier("k"), exp.to_identifier("v")],
        ),
    )  # fmt: skip
    merged = call(JSONB, "to_json", call(JSONB, "map_concat", kept, parts[1].copy()))
    return call(JSONB, "to_json", call(JSONB, "parse_json", merged))


def like(node: exp.Expr, pattern: exp.Expr, settings: Settings, *, fold: bool, escape: str | None = None) -> exp.Expr:
    """LIKE and ILIKE, with PostgreSQL's default escape."""
    node, pattern = _texts("~~*" if fold else "~~", node, pattern, settings)
    if fold:
        node, pattern = call(VARCHAR, "lower", node), call(VARCHAR, "lower", pattern)
    made: exp.Expr = typed(exp.Like(this=node, expression=pattern), BOOLEAN)
    if escape is not None:
        if len(escape) != 1:
            raise InvalidParameter("invalid escape string", hint="Escape string must be one character.")
        made = typed(exp.Escape(this=made, expression=text(escape)), BOOLEAN)
    if settings.strict or isinstance(pattern, exp.Literal):
        return typed(exp.Paren(this=made), BOOLEAN)
    return attempt_of(made)


def matches(node: exp.Expr, pattern: exp.Expr, settings: Settings, *, fold: bool) -> exp.Expr:
    """`~` and `~*`."""
    node, pattern = _texts("~*" if fold else "~", node, pattern, settings)
    node, wanted = searched(node, pattern, settings, "i" if fold else "")
    made = call(BOOLEAN, "rlike", node, wanted)
    return made if settings.strict or isinstance(pattern, exp.Literal) else attempted(made, [node, pattern])


def searched(node: exp.Expr, pattern: exp.Expr, settings: Settings, flags: str = "") -> tuple[exp.Expr, exp.Expr]:
    """A text that is not too long for a regular expression, and that as Java writes it.

    An expression that is not constant is taken as it is.
    """
    if isinstance(pattern, exp.Literal):
        found = regexes.translate(pattern.this, flags.replace("g", ""))
        return no_longer(node, found.longest, settings), text(found.java)
    wanted = call(VARCHAR, "concat", text("(?is)" if folds(flags) else "(?s)"), pattern)
    return _within_reach(node, pattern, settings), wanted


def _within_reach(node: exp.Expr, pattern: exp.Expr, settings: Settings) -> exp.Expr:
    """A text that is not too long for a pattern that varies by row."""
    return no_longer(node, regexes.LONGEST, settings, call(BOOLEAN, "contains", pattern.copy(), text(")")))


def no_longer(node: exp.Expr, longest: int | None, settings: Settings, condition: exp.Expr | None = None) -> exp.Expr:
    """The text; a failure where it is longer and the condition holds."""
    if longest is None or isinstance(node, exp.Literal):
        return node
    long = comparison(exp.GT, call(INTEGER, "length", node.copy()), integer(longest))
    message = f"regular expression failed: a text of more than {longest} characters is too long for it"
    return guarded(node, long if condition is None else conjunction([long, condition]), message, settings)


def similar(node: exp.Expr, pattern: exp.Expr, settings: Settings, escape: str | None = "\\") -> exp.Expr:
    """SIMILAR TO: LIKE's wildcards with alternation and repetition, over the whole text."""
    node, pattern = _texts("~", node, pattern, settings)
    if isinstance(pattern, exp.Literal):
        found = regexes.similar(pattern.this, escape)
        return call(BOOLEAN, "rlike", no_longer(node, found.longest, settings), text(found.java))
    node = _within_reach(node, pattern, settings)
    escaped = call(VARCHAR, "regexp_replace", pattern, text(r"([.^$\\])"), text(r"\\$1"))
    wild = call(VARCHAR, "replace", call(VARCHAR, "replace", escaped, text("%"), text(".*")), text("_"), text("."))
    made = call(BOOLEAN, "rlike", node, call(VARCHAR, "concat", text(r"(?s)\A(?:"), wild, text(r")\z")))
    return made if settings.strict else attempted(made, [node, pattern])


def _texts(symbol: str, node: exp.Expr, pattern: exp.Expr, settings: Settings) -> tuple[exp.Expr, exp.Expr]:
    node, pattern = settle(node, settings), settle(pattern, settings)
    if type_of(node).kind is not Kind.VARCHAR or type_of(pattern).kind is not Kind.VARCHAR:
        raise no_operator(symbol, node, pattern)
    return node, pattern


def sort_key(node: exp.Expr) -> exp.Expr:
    """What rows are sorted and told apart by: intervals by their length, everything else as it is."""
    return intervals.length(node) if type_of(node).kind is Kind.INTERVAL else node
