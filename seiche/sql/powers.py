"""Powers and exponentials of doubles, refused where PostgreSQL refuses them: Spark has NaN, infinity or zero there."""

from __future__ import annotations

from sqlglot import exp

from seiche.sql.nodes import (
    Settings,
    boolean,
    call,
    case,
    comparison,
    conjunction,
    disjunction,
    equal,
    guarded,
    integer,
    negation,
    not_null,
    once,
    spark_cast,
)
from seiche.types import DOUBLE

_INFINITY = spark_cast(exp.Literal.string("Infinity"), DOUBLE)


def double_power(base: exp.Expr, exponent: exp.Expr, settings: Settings, *, exact: bool = False) -> exp.Expr:
    """`base` to the power of `exponent`, both doubles. An exact number becomes zero where a double is too small."""

    def of_base(b: exp.Expr) -> exp.Expr:
        return once(exponent, DOUBLE, lambda e: _power(b, e, settings, exact), b)

    return once(base, DOUBLE, of_base, exponent)


def double_exp(node: exp.Expr, settings: Settings) -> exp.Expr:
    """The exponential of a double."""

    def make(of: exp.Expr) -> exp.Expr:
        return _within_doubles(call(DOUBLE, "exp", of.copy()), _finite(of), settings)

    return once(node, DOUBLE, make)


def _power(base: exp.Expr, exponent: exp.Expr, settings: Settings, exact: bool) -> exp.Expr:
    finite = conjunction([_finite(base), _finite(exponent)])
    zero = equal(base.copy(), integer(0))
    made = call(DOUBLE, "power", base.copy(), exponent.copy())
    made = _within_doubles(made, finite, settings, zero if not exact else boolean(True))
    # One to any power, and minus one to an infinite one, is one; Java has NaN there.
    one = equal(base.copy(), integer(1))
    minus_one = conjunction(
        [equal(base.copy(), integer(-1)), equal(call(DOUBLE, "abs", exponent.copy()), _INFINITY.copy())]
    )
    known = disjunction([conjunction([one, not_null(exponent.copy())]), minus_one])
    made = case(DOUBLE, [(known, spark_cast(integer(1), DOUBLE))], made)
    undefined = conjunction([zero.copy(), comparison(exp.LT, exponent.copy(), integer(0))])
    whole = equal(call(DOUBLE, "rint", exponent.copy()), exponent.copy())
    complex_ = conjunction([finite.copy(), comparison(exp.LT, base.copy(), integer(0)), negation(whole)])
    made = guarded(made, undefined, "zero raised to a negative power is undefined", settings)
    return guarded(made, complex_, "a negative number raised to a non-integer power yields a complex result", settings)


def _within_doubles(
    made: exp.Expr, finite: exp.Expr, settings: Settings, rightly_zero: exp.Expr | None = None
) -> exp.Expr:
    """The value, unless it is too large or too small for a double although its arguments are `finite`."""
    vanished = conjunction([finite, equal(made.copy(), integer(0))])
    if rightly_zero is not None:
        vanished = conjunction([vanished, negation(rightly_zero)])
    grown = conjunction([finite.copy(), equal(call(DOUBLE, "abs", made.copy()), _INFINITY.copy())])
    checked = guarded(made, vanished, "value out of range: underflow", settings)
    return guarded(checked, grown, "value out of range: overflow", settings)


def _finite(node: exp.Expr) -> exp.Expr:
    """Neither infinite nor NaN, which Spark holds for greater than all else."""
    return comparison(exp.LT, call(DOUBLE, "abs", node.copy()), _INFINITY.copy())
