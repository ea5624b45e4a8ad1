"""Decimals over few rows on the driver: sums, products, quotients, roundings, each with the type that Spark gives it.

Types tell how many digits there are and how many of them are a fraction. Spark derives them from those of the operands,
and shortens the fraction where a number would need more than 38 digits. A value that does not fit, or whose last digit
depends on how often it was rounded on the way, is `Beyond`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

DIGITS_MAX = 38
INTEGERS = {pa.int16(): 5, pa.int32(): 10, pa.int64(): 19}  # and the digits of each
ARITHMETIC: Mapping[str, Callable[[Any, Any], Any]] = {
    "add": pc.add_checked,
    "subtract": pc.subtract_checked,
    "multiply": pc.multiply_checked,
}

_DIGITS_KEPT = 6  # of a fraction, when Spark shortens the type
_QUOTIENTS_MAX = 20_000  # they are computed one by one
_LONG = Context(prec=160)
_SPARK = Context(prec=DIGITS_MAX, rounding=ROUND_HALF_UP)

Values: TypeAlias = Any  # an array with a value for each row, or a scalar for all of them


class Beyond(Exception):
    """Something that is Spark's to evaluate."""


def arithmetic(operation: str, left: Values, right: Values) -> Values:
    """A sum, a difference or a product of decimals that keeps all its digits."""
    if not (pa.types.is_decimal128(left.type) and pa.types.is_decimal128(right.type)):
        raise Beyond
    digits, scale = _of_product(left.type, right.type) if operation == "multiply" else _of_sum(left.type, right.type)
    if digits <= DIGITS_MAX:
        return ARITHMETIC[operation](left, right).cast(pa.decimal128(digits, scale))
    if operation != "multiply" or _shortened(digits, scale) != (DIGITS_MAX, scale):
        raise Beyond  # Spark would round
    wide = ARITHMETIC[operation](_wide(left), _wide(right))
    return wide.cast(pa.decimal128(DIGITS_MAX, scale))


def quotient(left: Values, right: Values) -> Values:
    """Decimals divided by decimals, none of which is zero."""
    if not (pa.types.is_decimal128(left.type) and pa.types.is_decimal128(right.type)):
        raise Beyond
    rows = max((len(each) for each in (left, right) if not isinstance(each, pa.Scalar)), default=0)
    if not 0 < rows <= _QUOTIENTS_MAX:
        raise Beyond
    digits, scale = _shortened(*_of_quotient(left.type, right.type))
    pairs = zip(_each(left, rows), _each(right, rows), strict=True)
    found = [None if a is None or b is None else _divided(a, b, scale) for a, b in pairs]
    return pa.array(found, pa.decimal128(digits, scale))


def rounded(values: Values, places: int | None) -> Values:
    """Decimals rounded to so many places, half of the last one upwards."""
    if places is None or places < 0 or not pa.types.is_decimal128(values.type):
        raise Beyond
    scale = min(values.type.scale, places)
    digits = min(values.type.precision - values.type.scale + 1 + scale, DIGITS_MAX)
    return pc.round(values, scale, round_mode="half_towards_infinity").cast(pa.decimal128(digits, scale))


def as_decimal(values: Values, precision: int, scale: int) -> Values:
    """A cast; what is behind the last place of the fraction is rounded, half of it upwards."""
    target = pa.decimal128(precision, scale)
    if isinstance(values, pa.StringScalar):
        try:
            return pa.scalar(Decimal(values.as_py()), target)
        except InvalidOperation:
            raise Beyond from None
    if values.type in INTEGERS:
        values = values.cast(pa.decimal128(INTEGERS[values.type], 0))
    if not pa.types.is_decimal128(values.type):
        raise Beyond
    if values.type.scale > scale:
        values = pc.round(values, scale, round_mode="half_towards_infinity")
    return values.cast(target)


def _divided(left: Decimal, right: Decimal, scale: int) -> Decimal:
    """Rounded once; and the same if it were rounded to 38 digits or 38 places before, which engines do."""
    place = Decimal(1).scaleb(-scale)
    long = _LONG.divide(left, right)
    found = long.quantize(place, ROUND_HALF_UP, _LONG)
    at_38 = long.quantize(Decimal(1).scaleb(-DIGITS_MAX), ROUND_HALF_UP, _LONG), _SPARK.divide(left, right)
    if any(each.quantize(place, ROUND_HALF_UP, _LONG) != found for each in at_38):
        raise Beyond
    return found


def _each(values: Values, rows: int) -> list[Any]:
    return [values.as_py()] * rows if isinstance(values, pa.Scalar) else values.to_pylist()


def _wide(values: Values) -> Values:
    return values.cast(pa.decimal256(values.type.precision, values.type.scale))


def _of_product(left: pa.DataType, right: pa.DataType) -> tuple[int, int]:
    return left.precision + right.precision + 1, left.scale + right.scale


def _of_sum(left: pa.DataType, right: pa.DataType) -> tuple[int, int]:
    scale = max(left.scale, right.scale)
    return max(left.precision - left.scale, right.precision - right.scale) + scale + 1, scale


def _of_quotient(left: pa.DataType, right: pa.DataType) -> tuple[int, int]:
    scale = max(_DIGITS_KEPT, left.scale + right.precision + 1)
    return left.precision - left.scale + right.scale + scale, scale


def _shortened(digits: int, scale: int) -> tuple[int, int]:
    """What Spark makes of a type with more digits than there can be: it takes them from the fraction."""
    if digits <= DIGITS_MAX:
        return digits, scale
    return DIGITS_MAX, max(DIGITS_MAX - (digits - scale), min(scale, _DIGITS_KEPT))


__all__ = [
    "ARITHMETIC",
    "DIGITS_MAX",
    "INTEGERS",
    "Beyond",
    "Values",
    "arithmetic",
    "as_decimal",
    "quotient",
    "rounded",
]
