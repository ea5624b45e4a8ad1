"""The gamma function and its logarithm, by Stirling's series.

The series is exact to a double from 15 on; smaller arguments are moved there by the recurrence, negative ones are
mirrored at 1/2. Whole numbers up to 21 are factorials, and exact.
"""

from __future__ import annotations

import math

import sqlglot
from sqlglot import exp

from seiche.sql.functions.registry import function
from seiche.sql.nodes import Settings, guarded, let, typed, variable
from seiche.types import BOOLEAN, DOUBLE

Nodes = list[exp.Expr]

_FROM = 15
_SERIES = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156, -3617 / 122400)


def _series() -> str:
    """What the logarithm of gamma(z) has beside the leading terms."""
    nested = "0D"
    for coefficient in reversed(_SERIES):
        nested = f"({nested} / (z * z) + ({coefficient!r}D))"
    return f"({nested} / z)"


# `y` is positive, `z` is y or y moved to where the series holds.
_STEPS = "(" + " * ".join(f"(y + {step}D)" for step in range(_FROM)) + ")"
_MOVED = f"CASE WHEN y < {_FROM} THEN y + {_FROM} ELSE y END"
_PASSED = f"CASE WHEN y < {_FROM} THEN {_STEPS} ELSE 1D END"
# The power is taken in two halves, since the whole one overflows before gamma does.
_POSITIVE = (
    f"CASE WHEN y <= 21 AND y = floor(y) THEN CAST(factorial(CAST(y AS INT) - 1) AS DOUBLE) "
    "WHEN y > 172 AND NOT isnan(y) THEN DOUBLE('Infinity') "  # more than a double holds
    f"ELSE {math.sqrt(2 * math.pi)!r}D * pow(z, z / 2 - 0.25D) * exp(-z) * pow(z, z / 2 - 0.25D) * exp({_series()}) "
    f"/ {_PASSED} END"
)
_POSITIVE_LOG = (
    f"CASE WHEN y = 1 OR y = 2 THEN 0D WHEN y = DOUBLE('Infinity') THEN y "
    f"ELSE (z - 0.5D) * ln(z) - z + {0.5 * math.log(2 * math.pi)!r}D + {_series()} - ln({_PASSED}) END"
)
# Of x below zero, with its distance to the next whole number, so that nothing is lost for large arguments.
_SINE = f"sin({math.pi!r}D * least(x - floor(x), ceil(x) - x))"
_POLE = "x <= 0 AND x > DOUBLE('-Infinity') AND x = rint(x)"


def _formula(sql: str) -> exp.Expr:
    return typed(sqlglot.parse_one(sql, dialect="spark"), DOUBLE)


def _condition(sql: str) -> exp.Expr:
    return typed(sqlglot.parse_one(sql, dialect="spark"), BOOLEAN)


def _of_positive(formula: str, argument: str) -> exp.Expr:
    return let("y", _formula(argument), DOUBLE, let("z", _formula(_MOVED), DOUBLE, _formula(formula)))


def _chosen(negative: exp.Expr, positive: exp.Expr) -> exp.Expr:
    made = exp.Case(ifs=[exp.If(this=_condition("x < 0"), true=negative)], default=positive)
    return typed(made, DOUBLE)


@function("gamma", takes=[DOUBLE])
def _gamma(arguments: Nodes, settings: Settings) -> exp.Expr:
    mirrored = let(
        "g",
        _of_positive(_POSITIVE, "1 - x"),
        DOUBLE,
        _formula(f"CASE WHEN pmod(floor(x), 2) = 0 THEN 1D ELSE -1D END * {math.pi!r}D / ({_SINE} * g)"),
    )
    made = _chosen(mirrored, _of_positive(_POSITIVE, "x"))
    made = _checked(made, f"{_POLE} OR x = DOUBLE('-Infinity')", "abs(r) = DOUBLE('Infinity')", settings)
    return let("x", arguments[0], DOUBLE, made)


@function("lgamma", takes=[DOUBLE])
def _lgamma(arguments: Nodes, settings: Settings) -> exp.Expr:
    mirrored = let(
        "g",
        _of_positive(_POSITIVE_LOG, "-x"),
        DOUBLE,
        _formula(
            f"CASE WHEN x = DOUBLE('-Infinity') THEN -x ELSE {math.log(math.pi)!r}D - ln(abs(x * {_SINE})) - g END"
        ),
    )
    made = _chosen(mirrored, _of_positive(_POSITIVE_LOG, "x"))
    return let("x", arguments[0], DOUBLE, _checked(made, _POLE, "r = DOUBLE('Infinity')", settings))


def _checked(made: exp.Expr, pole: str, infinite: str, settings: Settings) -> exp.Expr:
    """The value `r`, unless it lies outside what a double holds although `x` does not."""
    result = variable("r", DOUBLE)
    tiny = guarded(result, _condition("r = 0 AND x < 0"), "value out of range: underflow", settings)
    large = guarded(
        tiny, _condition(f"{infinite} AND abs(x) < DOUBLE('Infinity')"), "value out of range: overflow", settings
    )
    return guarded(let("r", made, DOUBLE, large), _condition(pole), "value out of range: overflow", settings)
