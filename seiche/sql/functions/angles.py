"""Trigonometry in degrees, exact where the answer is: sind(30) is a half, not nearly a half.

Angles are brought into the first quadrant, and results are scaled by what the machine computes for 30, 45 and 60
degrees, so that its rounding cancels there. This is how PostgreSQL defines these functions.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from sqlglot import exp

from seiche.sql.functions.registry import function
from seiche.sql.nodes import (
    Settings,
    binary,
    call,
    case,
    comparison,
    guarded,
    integer,
    let,
    spark_cast,
    typed,
    variable,
)
from seiche.types import DOUBLE

Nodes = list[exp.Expr]

_SIN_30 = math.sin(math.radians(30))
_ONE_MINUS_COS_60 = 1 - math.cos(math.radians(60))
_X = variable("x", DOUBLE)


def _number(value: float) -> exp.Expr:
    return spark_cast(exp.Literal.string(repr(value)), DOUBLE)


def _times(left: exp.Expr, right: exp.Expr) -> exp.Expr:
    return binary(exp.Mul, DOUBLE, left, right)


def _over(left: exp.Expr, right: exp.Expr) -> exp.Expr:
    return binary(exp.Div, DOUBLE, left, right)


def _minus(left: exp.Expr, right: exp.Expr) -> exp.Expr:
    return binary(exp.Sub, DOUBLE, left, right)


def _radians(node: exp.Expr) -> exp.Expr:
    return _times(node, _number(math.pi / 180))


def _small_sine(node: exp.Expr) -> exp.Expr:
    """From 0 to 30 degrees."""
    return _over(_over(call(DOUBLE, "sin", _radians(node)), _number(_SIN_30)), _number(2.0))


def _small_cosine(node: exp.Expr) -> exp.Expr:
    """From 0 to 60 degrees."""
    missing = _minus(_number(1.0), call(DOUBLE, "cos", _radians(node)))
    return _minus(_number(1.0), _over(_over(missing, _number(_ONE_MINUS_COS_60)), _number(2.0)))


def _sine(node: exp.Expr) -> exp.Expr:
    """From 0 to 90 degrees."""
    rest = _minus(_number(90.0), node.copy())
    return case(DOUBLE, [(comparison(exp.LTE, node.copy(), integer(30)), _small_sine(node))], _small_cosine(rest))


def _cosine(node: exp.Expr) -> exp.Expr:
    rest = _minus(_number(90.0), node.copy())
    return case(DOUBLE, [(comparison(exp.LTE, node.copy(), integer(60)), _small_cosine(node))], _small_sine(rest))


def _of_quadrant(name: str, inside: Callable[[exp.Expr], exp.Expr], *, odd: bool, mirrored: bool) -> None:
    """Registers a periodic function by its first quadrant.

    `odd` functions change sign with their argument, `mirrored` ones change it beyond 90 degrees. Of infinity they are
    NaN, as in RisingWave; PostgreSQL raises.
    """

    @function(name, takes=[DOUBLE])
    def make(arguments: Nodes, settings: Settings) -> exp.Expr:
        turn = call(DOUBLE, "abs", _X.copy())
        half = case(
            DOUBLE, [(comparison(exp.GT, turn, integer(180)), _minus(_number(360.0), turn.copy()))], turn.copy()
        )
        folded = case(
            DOUBLE, [(comparison(exp.GT, half, integer(90)), _minus(_number(180.0), half.copy()))], half.copy()
        )
        negative = (
            [comparison(exp.LT, _X.copy(), integer(0)), comparison(exp.GT, turn.copy(), integer(180))] if odd else []
        )
        negative += [comparison(exp.GT, half.copy(), integer(90))] if mirrored else []
        sign = _number(1.0)
        for condition in negative:
            sign = _times(sign, case(DOUBLE, [(condition, _number(-1.0))], _number(1.0)))
        quadrant = let("q", folded, DOUBLE, inside(variable("q", DOUBLE)))
        within = binary(exp.Mod, DOUBLE, arguments[0], _number(360.0))
        signed = _times(sign, quadrant)
        # A zero has no sign where both odd and mirrored functions meet: minus zero and zero make zero.
        body = binary(exp.Add, DOUBLE, signed, _number(0.0)) if odd and mirrored else signed
        return let("x", within, DOUBLE, body)


_TAN_45 = _over(_sine(_number(45.0)), _cosine(_number(45.0)))
_COT_45 = _over(_cosine(_number(45.0)), _sine(_number(45.0)))


def _nonzero(top: exp.Expr, bottom: exp.Expr, scale: exp.Expr) -> exp.Expr:
    """A quotient that is infinite where the divisor is zero, as floats are."""
    zero = comparison(exp.EQ, bottom.copy(), integer(0))
    return case(DOUBLE, [(zero, _number(math.inf))], _over(_over(top, bottom), scale))


_of_quadrant("sind", _sine, odd=True, mirrored=False)
_of_quadrant("cosd", _cosine, odd=False, mirrored=True)
_of_quadrant("tand", lambda q: _nonzero(_sine(q), _cosine(q.copy()), _TAN_45.copy()), odd=True, mirrored=True)
_of_quadrant("cotd", lambda q: _nonzero(_cosine(q), _sine(q.copy()), _COT_45.copy()), odd=True, mirrored=True)


def _arc_sine(node: exp.Expr) -> exp.Expr:
    """In degrees, of 0 to 1."""
    low = _times(_over(call(DOUBLE, "asin", node), _number(math.asin(0.5))), _number(30.0))
    high = _minus(
        _number(90.0), _times(_over(call(DOUBLE, "acos", node.copy()), _number(math.acos(0.5))), _number(60.0))
    )
    return case(DOUBLE, [(comparison(exp.LTE, node.copy(), _number(0.5)), low)], high)


def _arc_cosine(node: exp.Expr) -> exp.Expr:
    low = _minus(_number(90.0), _times(_over(call(DOUBLE, "asin", node), _number(math.asin(0.5))), _number(30.0)))
    high = _times(_over(call(DOUBLE, "acos", node.copy()), _number(math.acos(0.5))), _number(60.0))
    return case(DOUBLE, [(comparison(exp.LTE, node.copy(), _number(0.5)), low)], high)


def _outside_one(node: exp.Expr) -> exp.Expr:
    return comparison(exp.GT, call(DOUBLE, "abs", node.copy()), integer(1))


@function("asind", takes=[DOUBLE])
def _asind(arguments: Nodes, settings: Settings) -> exp.Expr:
    below = typed(exp.Neg(this=_arc_sine(typed(exp.Neg(this=_X.copy()), DOUBLE))), DOUBLE)
    body = case(DOUBLE, [(comparison(exp.GTE, _X.copy(), integer(0)), _arc_sine(_X.copy()))], below)
    made = let("x", arguments[0], DOUBLE, body)
    return guarded(made, _outside_one(arguments[0]), "input is out of range", settings)


@function("acosd", takes=[DOUBLE])
def _acosd(arguments: Nodes, settings: Settings) -> exp.Expr:
    below = binary(exp.Add, DOUBLE, _number(90.0), _arc_sine(typed(exp.Neg(this=_X.copy()), DOUBLE)))
    body = case(DOUBLE, [(comparison(exp.GTE, _X.copy(), integer(0)), _arc_cosine(_X.copy()))], below)
    made = let("x", arguments[0], DOUBLE, body)
    return guarded(made, _outside_one(arguments[0]), "input is out of range", settings)


@function("atand", takes=[DOUBLE])
def _atand(arguments: Nodes, settings: Settings) -> exp.Expr:
    return _times(_over(call(DOUBLE, "atan", arguments[0]), _number(math.atan(1.0))), _number(45.0))


@function("atan2d", takes=[DOUBLE, DOUBLE])
def _atan2d(arguments: Nodes, settings: Settings) -> exp.Expr:
    return _times(_over(call(DOUBLE, "atan2", *arguments), _number(math.atan(1.0))), _number(45.0))
