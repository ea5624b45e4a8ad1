"""Numbers."""

from __future__ import annotations

from sqlglot import exp

from seiche.sql.casts import convert
from seiche.sql.functions.registry import Any_, Maker, function
from seiche.sql.literals import constant_integer
from seiche.sql.nodes import (
    Settings,
    attempt,
    binary,
    call,
    case,
    checked_cast,
    comparison,
    disjunction,
    equal,
    guarded,
    integer,
    lambda_,
    not_null,
    once,
    spark_cast,
    text,
    type_of,
    typed,
    variable,
)
from seiche.sql.operators import absolute, arithmetic, compare, power
from seiche.sql.powers import double_exp
from seiche.sql.roots import decimal_root
from seiche.types import BIGINT, BOOLEAN, DOUBLE, INTEGER, MAX_PRECISION, NUMERIC, VARCHAR, SqlType, numeric

Nodes = list[exp.Expr]


@function("abs", takes=[Any_.NUMBER])
def _abs(arguments: Nodes, settings: Settings) -> exp.Expr:
    return absolute(arguments[0], settings)


@function("sign", takes=[Any_.EXACT])
def _sign(arguments: Nodes, settings: Settings) -> exp.Expr:
    return spark_cast(call(DOUBLE, "signum", spark_cast(arguments[0], DOUBLE)), numeric(1, 0, declared=True))


@function("sign", takes=[DOUBLE])
def _sign_double(arguments: Nodes, settings: Settings) -> exp.Expr:
    """As PostgreSQL has it, neither -0 nor NaN has a sign."""

    def make(node: exp.Expr) -> exp.Expr:
        unsigned = typed(exp.In(this=node.copy(), expressions=[_double("0"), _double("NaN")]), BOOLEAN)
        return case(DOUBLE, [(unsigned, _double("0"))], call(DOUBLE, "signum", node))

    return once(arguments[0], DOUBLE, make)


def _double(value: str) -> exp.Expr:
    return spark_cast(exp.Literal.string(value), DOUBLE)


def _to_whole(spark: str) -> Maker:
    """ceil and floor: Spark's give bigint for doubles, so those take the long way round."""

    def exact(arguments: Nodes, settings: Settings) -> exp.Expr:
        type_ = type_of(arguments[0])
        if type_.scale == 0:
            return arguments[0]
        whole = numeric(min(MAX_PRECISION, type_.precision - type_.scale + 1), 0, declared=True)
        return spark_cast(call(whole, spark, arguments[0]), whole)

    return exact


def _double_whole(spark: str) -> Maker:
    def make(arguments: Nodes, settings: Settings) -> exp.Expr:
        return once(arguments[0], DOUBLE, whole_of)

    def whole_of(node: exp.Expr) -> exp.Expr:
        size = call(DOUBLE, "abs", node.copy())
        # From 2^53 on every double is whole; NaN compares greater than all.
        large = comparison(exp.GTE, size, spark_cast(exp.Literal.string("9007199254740992"), DOUBLE))
        whole = call(BIGINT, spark, node.copy())
        # A bigint knows no -0, which is what the ceiling of -0.5 is.
        signed_zero = binary(exp.Mul, DOUBLE, node.copy(), spark_cast(exp.Literal.string("0"), DOUBLE))
        zero = comparison(exp.EQ, whole, integer(0))
        return case(DOUBLE, [(large, node), (zero, signed_zero)], spark_cast(whole.copy(), DOUBLE))

    return make


for _names, _spark in ((("ceil", "ceiling"), "ceil"), (("floor",), "floor")):
    function(*_names, takes=[DOUBLE])(_double_whole(_spark))
    function(*_names, takes=[Any_.EXACT])(_to_whole(_spark))


@function("round", takes=[DOUBLE])
def _round_double(arguments: Nodes, settings: Settings) -> exp.Expr:
    return call(DOUBLE, "rint", arguments[0])


@function("round", takes=[Any_.EXACT])
def _round_whole(arguments: Nodes, settings: Settings) -> exp.Expr:
    return _rounded(arguments[0], 0)


@function("round", takes=[Any_.EXACT, INTEGER])
def _round_digits(arguments: Nodes, settings: Settings) -> exp.Expr:
    node, digits = arguments
    places = constant_integer(digits)
    if places is not None:
        return _rounded(node, places)
    return _shifted("round", node, digits, settings)


def _shifted(how: str, node: exp.Expr, digits: exp.Expr, settings: Settings) -> exp.Expr:
    """Digits that vary by row: one of the roundings that the type has room for, chosen where it is evaluated."""
    type_ = type_of(node)
    wide = spark_cast(node, NUMERIC)
    least, most = -(type_.precision - type_.scale), type_.scale
    branches: list[tuple[exp.Expr, exp.Expr]] = []
    for places in range(least, most):
        made = _rounded(wide.copy(), places) if how == "round" else _trunc([wide.copy(), integer(places)], settings)
        condition = comparison(exp.LTE if places == least else exp.EQ, digits.copy(), integer(places))
        branches.append((condition, spark_cast(made, NUMERIC)))
    known = typed(exp.Not(this=typed(exp.Is(this=digits.copy(), expression=exp.Null()), BOOLEAN)), BOOLEAN)
    return case(NUMERIC, [*branches, (known, wide)])


def _rounded(node: exp.Expr, places: int) -> exp.Expr:
    type_ = type_of(node)
    if 0 <= type_.scale <= places:
        return node if type_.declared else spark_cast(node, numeric(type_.precision, type_.scale))
    whole = min(MAX_PRECISION - max(places, 0), type_.precision - type_.scale + 1)
    result = numeric(whole + max(places, 0), max(places, 0), declared=True)
    return spark_cast(call(result, "round", node, integer(places)), result)


@function("trunc", takes=[DOUBLE])
def _trunc_double(arguments: Nodes, settings: Settings) -> exp.Expr:
    def make(node: exp.Expr) -> exp.Expr:
        down = _double_whole("floor")([node.copy()], settings)
        up = _double_whole("ceil")([node.copy()], settings)
        return case(DOUBLE, [(comparison(exp.LT, node, integer(0)), up)], down)

    return once(arguments[0], DOUBLE, make)


@function("trunc", takes=[Any_.EXACT, INTEGER], optional=1)
def _trunc(arguments: Nodes, settings: Settings) -> exp.Expr:
    node = arguments[0]
    type_ = type_of(node)
    places = constant_integer(arguments[1]) if len(arguments) > 1 else 0
    if places is None:
        return _shifted("trunc", node, arguments[1], settings)
    if 0 <= type_.scale <= places:
        return node
    whole = min(MAX_PRECISION - max(places, 0), type_.precision - type_.scale + 1)
    result = numeric(whole + max(places, 0), max(places, 0), declared=True)

    def make(node: exp.Expr) -> exp.Expr:
        down = spark_cast(call(result, "floor", node.copy(), integer(places)), result)
        up = spark_cast(call(result, "ceil", node.copy(), integer(places)), result)
        return case(result, [(comparison(exp.LT, node, integer(0)), up)], down)

    return once(node, result, make)


# --- roots, powers, logarithms -----------------------------------------------------------------------


def _domain(spark: str, low: str, *, inclusive: bool) -> Maker:
    """A function of doubles that PostgreSQL refuses below a bound."""

    def make(arguments: Nodes, settings: Settings) -> exp.Expr:
        def inside(node: exp.Expr) -> exp.Expr:
            outside = comparison(exp.LT, node.copy(), spark_cast(exp.Literal.string(low), DOUBLE))
            made = guarded(call(DOUBLE, spark, node), outside, _COMPLAINTS[spark], settings)
            if inclusive:
                return made
            at_bound = equal(node.copy(), spark_cast(exp.Literal.string(low), DOUBLE))
            return guarded(made, at_bound, "cannot take logarithm of zero", settings)

        return once(arguments[0], DOUBLE, inside)

    return make


_COMPLAINTS = {
    "sqrt": "cannot take square root of a negative number",
    "ln": "cannot take logarithm of a negative number",
    "log10": "cannot take logarithm of a negative number",
}


function("sqrt", takes=[DOUBLE])(_domain("sqrt", "0", inclusive=True))
function("ln", takes=[DOUBLE])(_domain("ln", "0", inclusive=False))
function("log", "log10", takes=[DOUBLE])(_domain("log10", "0", inclusive=False))


def _of_numeric(spark: str, low: str, *, inclusive: bool) -> Maker:
    of_double = _domain(spark, low, inclusive=inclusive)

    def make(arguments: Nodes, settings: Settings) -> exp.Expr:
        return checked_cast(of_double([spark_cast(arguments[0], DOUBLE)], settings), NUMERIC, settings)

    return make


@function("sqrt", takes=[NUMERIC])
def _numeric_root(arguments: Nodes, settings: Settings) -> exp.Expr:
    def make(node: exp.Expr) -> exp.Expr:
        negative = comparison(exp.LT, node.copy(), integer(0))
        return guarded(decimal_root(node), negative, _COMPLAINTS["sqrt"], settings)

    return once(arguments[0], NUMERIC, make)


function("ln", takes=[NUMERIC])(_of_numeric("ln", "0", inclusive=False))
function("log", "log10", takes=[NUMERIC])(_of_numeric("log10", "0", inclusive=False))


@function("log", takes=[Any_.EXACT, Any_.EXACT])
def _log_base(arguments: Nodes, settings: Settings) -> exp.Expr:
    base, node = (convert(argument, DOUBLE, settings) for argument in arguments)
    made = checked_cast(call(DOUBLE, "log", base, node), NUMERIC, settings)
    made = guarded(made, equal(base.copy(), integer(1)), "division by zero", settings)
    for each in (node, base):  # of what is not positive Spark makes NULL
        made = guarded(made, equal(each.copy(), integer(0)), "cannot take logarithm of zero", settings)
        made = guarded(made, comparison(exp.LT, each.copy(), integer(0)), _COMPLAINTS["ln"], settings)
    return made


@function("power", "pow", takes=[Any_.NUMBER, Any_.NUMBER])
def _power(arguments: Nodes, settings: Settings) -> exp.Expr:
    return power(arguments[0], arguments[1], settings)


def _of_double(names: str, spark: str, count: int = 1) -> None:
    def make(arguments: Nodes, settings: Settings) -> exp.Expr:
        return call(DOUBLE, spark, *arguments)

    function(*names.split(), takes=[DOUBLE] * count)(make)


@function("exp", takes=[DOUBLE])
def _exp(arguments: Nodes, settings: Settings) -> exp.Expr:
    return double_exp(arguments[0], settings)


@function("exp", takes=[NUMERIC])
def _numeric_exp(arguments: Nodes, settings: Settings) -> exp.Expr:
    def make(node: exp.Expr) -> exp.Expr:
        nothing = comparison(exp.LT, node.copy(), integer(-100))  # of the digits that a numeric keeps
        made = checked_cast(double_exp(spark_cast(node, DOUBLE), settings), NUMERIC, settings)
        return case(NUMERIC, [(nothing, spark_cast(integer(0), NUMERIC))], made)

    return once(arguments[0], NUMERIC, make)


for _name in "cbrt sin cos tan cot asin acos atan sinh cosh tanh asinh acosh atanh degrees radians".split():
    _of_double(_name, _name)
_of_double("atan2", "atan2", 2)


@function("coth", takes=[DOUBLE])
def _coth(arguments: Nodes, settings: Settings) -> exp.Expr:
    """Of zero it is infinite, with the sign of the zero that Spark does not keep."""
    hyperbolic = call(DOUBLE, "tanh", arguments[0])
    pole = equal(arguments[0].copy(), integer(0))
    return case(DOUBLE, [(pole, spark_cast(text("Infinity"), DOUBLE))], binary(exp.Div, DOUBLE, integer(1), hyperbolic))


@function("pi")
def _pi(arguments: Nodes, settings: Settings) -> exp.Expr:
    return call(DOUBLE, "pi")


@function("mod", takes=[Any_.NUMBER, Any_.NUMBER])
def _mod(arguments: Nodes, settings: Settings) -> exp.Expr:
    return arithmetic("%", arguments[0], arguments[1], settings)


@function("div", takes=[Any_.EXACT, Any_.EXACT])
def _div(arguments: Nodes, settings: Settings) -> exp.Expr:
    quotient = arithmetic("/", arguments[0], arguments[1], settings)
    return _trunc([quotient], settings)


def _divisor(a: exp.Expr, b: exp.Expr) -> exp.Expr:
    """Euclid over a bounded fold: 93 steps suffice for 64 bits."""
    names = exp.Literal.string("a"), exp.Literal.string("b")
    start = call(BIGINT, "named_struct", names[0], call(BIGINT, "abs", a), names[1], call(BIGINT, "abs", b))
    step = _euclid()
    return call(BIGINT, "aggregate", call(BIGINT, "sequence", integer(1), integer(93)), start, step[0], step[1])


@function("gcd", takes=[Any_.INTEGER, Any_.INTEGER])
def _gcd(arguments: Nodes, settings: Settings) -> exp.Expr:
    type_ = BIGINT if BIGINT in (type_of(arguments[0]), type_of(arguments[1])) else INTEGER
    a, b = (spark_cast(argument, BIGINT) for argument in arguments)
    return checked_cast(_divisor(a, b), type_, settings)


@function("lcm", takes=[Any_.INTEGER, Any_.INTEGER])
def _lcm(arguments: Nodes, settings: Settings) -> exp.Expr:
    type_ = BIGINT if BIGINT in (type_of(arguments[0]), type_of(arguments[1])) else INTEGER
    a, b = (spark_cast(argument, BIGINT) for argument in arguments)
    return _multiple(a, b, type_, settings)


def _multiple(a: exp.Expr, b: exp.Expr, type_: SqlType, settings: Settings) -> exp.Expr:
    """a / gcd(a, b) * b, of which only the product can be too large."""
    share = binary(exp.IntDiv, BIGINT, a, _divisor(a.copy(), b.copy()))
    size = spark_cast(call(BIGINT, "abs", share), numeric(19, 0))
    product = binary(exp.Mul, numeric(38, 0), size, spark_cast(call(BIGINT, "abs", b), numeric(19, 0)))
    none = disjunction([equal(a.copy(), integer(0)), equal(b.copy(), integer(0))])
    return case(type_, [(none, spark_cast(integer(0), type_))], checked_cast(product, type_, settings))


@function("gcd", takes=[Any_.EXACT, Any_.EXACT])
def _gcd_numeric(arguments: Nodes, settings: Settings) -> exp.Expr:
    a, b, type_ = _alike(arguments, settings)
    return _decimal_divisor(a, b, type_)


@function("lcm", takes=[Any_.EXACT, Any_.EXACT])
def _lcm_numeric(arguments: Nodes, settings: Settings) -> exp.Expr:
    """How often the divisor is in the smaller number, which a bigint can tell, times the larger one."""
    a, b, type_ = _alike(arguments, settings)
    smaller, larger = (call(type_, name, a.copy(), b.copy()) for name in ("least", "greatest"))
    times = binary(exp.IntDiv, BIGINT, smaller, _decimal_divisor(a, b, type_))
    none = equal(smaller.copy(), integer(0))

    def make(times: exp.Expr) -> exp.Expr:
        count = spark_cast(times, numeric(19, 0))
        point = spark_cast(call(numeric(20, 0), "floor", larger), numeric(type_.precision - type_.scale, 0))
        whole = _times(point, count, settings)
        if not type_.scale:
            return checked_cast(whole, type_, settings)
        one = spark_cast(integer(1), numeric(1, 0))
        fraction = spark_cast(binary(exp.Mod, type_, larger.copy(), one), numeric(type_.scale, type_.scale))
        return arithmetic("+", checked_cast(whole, type_, settings), _times(fraction, count.copy(), settings), settings)

    product = once(times, type_, make, a, b)
    return case(type_, [(none, spark_cast(integer(0), type_))], checked_cast(product, type_, settings))


def _times(node: exp.Expr, count: exp.Expr, settings: Settings) -> exp.Expr:
    """An exact product of at most 38 digits."""
    type_ = numeric(MAX_PRECISION, type_of(node).scale)
    if settings.strict:
        return binary(exp.Mul, type_, node, count)
    return attempt(type_, "try_multiply", node, count)


def _alike(arguments: Nodes, settings: Settings) -> tuple[exp.Expr, exp.Expr, SqlType]:
    """Two decimals in one type and without their signs."""
    types = [type_of(each) for each in arguments]
    scale = max(each.scale for each in types)
    type_ = numeric(MAX_PRECISION, scale, declared=all(each.declared for each in types))
    a, b = (absolute(convert(each, type_, settings), settings) for each in arguments)
    return a, b, type_


def _decimal_divisor(a: exp.Expr, b: exp.Expr, type_: SqlType) -> exp.Expr:
    """Euclid as for integers: 183 steps suffice for 38 digits."""
    names = exp.Literal.string("a"), exp.Literal.string("b")
    start = call(type_, "named_struct", names[0], a.copy(), names[1], b.copy())
    return call(type_, "aggregate", call(BIGINT, "sequence", integer(1), integer(183)), start, *_euclid(type_))


def _euclid(type_: SqlType = BIGINT) -> tuple[exp.Expr, exp.Expr]:
    a = exp.Dot(this=exp.column("s"), expression=exp.to_identifier("a"))
    b = exp.Dot(this=exp.column("s"), expression=exp.to_identifier("b"))
    done = exp.EQ(this=b, expression=exp.Literal.number(0))
    # Under ANSI the remainder is evaluated only where the divisor is not zero, thanks to CASE.
    following = exp.Anonymous(
        this="named_struct",
        expressions=[
            exp.Literal.string("a"),
            b.copy(),
            exp.Literal.string("b"),
            spark_cast(exp.Mod(this=a.copy(), expression=b.copy()), type_),
        ],
    )
    step = exp.Case(ifs=[exp.If(this=done, true=exp.column("s"))], default=following)
    merge = exp.Lambda(this=step, expressions=[exp.to_identifier("s"), exp.to_identifier("i")])
    return merge, exp.Lambda(this=a, expressions=[exp.to_identifier("s")])


@function("factorial", takes=[BIGINT])
def _factorial(arguments: Nodes, settings: Settings) -> exp.Expr:
    return spark_cast(call(BIGINT, "factorial", spark_cast(arguments[0], INTEGER)), numeric(38, 0, declared=True))


@function("isnan", takes=[DOUBLE])
def _isnan(arguments: Nodes, settings: Settings) -> exp.Expr:
    return call(BOOLEAN, "isnan", arguments[0])


def _fraction_digits(node: exp.Expr) -> exp.Expr:
    """The digits after the point without trailing zeros."""
    if type_of(node).scale == 0:
        return case(VARCHAR, [(not_null(node), text(""))])
    shown = call(VARCHAR, "substring_index", spark_cast(node, VARCHAR), text("."), integer(-1))
    return call(VARCHAR, "rtrim", text("0"), shown)


@function("min_scale", takes=[Any_.EXACT])
def _min_scale(arguments: Nodes, settings: Settings) -> exp.Expr:
    return call(INTEGER, "length", _fraction_digits(arguments[0]))


@function("scale", takes=[Any_.EXACT])
def _scale(arguments: Nodes, settings: Settings) -> exp.Expr:
    """A numeric of no declared scale keeps no trailing zeros, so it has as many digits as it needs."""
    type_ = type_of(arguments[0])
    if not type_.declared:
        return _min_scale(arguments, settings)
    return case(INTEGER, [(not_null(arguments[0]), integer(type_.scale))])


@function("trim_scale", takes=[Any_.EXACT])
def _trim_scale(arguments: Nodes, settings: Settings) -> exp.Expr:
    type_ = type_of(arguments[0])
    return spark_cast(arguments[0], numeric(type_.precision, type_.scale))


@function("width_bucket", takes=[Any_.VALUE, Any_.ARRAY])
def _width_bucket_array(arguments: Nodes, settings: Settings) -> exp.Expr:
    """How many of the sorted bounds are not above the value."""
    node, bounds = arguments
    bound = type_of(bounds).element
    assert bound is not None
    passed = call(
        type_of(bounds), "filter", bounds, lambda_(compare(exp.LTE, variable("x", bound), node, settings), "x")
    )
    return case(INTEGER, [(not_null(node.copy()), call(INTEGER, "size", passed))])


@function("width_bucket", takes=[DOUBLE, DOUBLE, DOUBLE, INTEGER])
def _width_bucket(arguments: Nodes, settings: Settings) -> exp.Expr:
    return spark_cast(call(BIGINT, "width_bucket", *arguments), INTEGER)


@function("random")
def _random(arguments: Nodes, settings: Settings) -> exp.Expr:
    return call(DOUBLE, "rand")
