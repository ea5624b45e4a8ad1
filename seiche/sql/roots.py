"""Square roots of numerics, to 18 digits behind the point where a double has fewer."""

from __future__ import annotations

from sqlglot import exp

from seiche.sql.nodes import binary, call, case, comparison, conjunction, spark_cast, type_of
from seiche.types import DOUBLE, NUMERIC, numeric

_GUESS = numeric(19, 9)
_LEAST, _MOST = numeric(1, 0), numeric(18, 0)


def decimal_root(node: exp.Expr) -> exp.Expr:
    """The root of a numeric that is not negative.

    Nine digits of the double's root are squared exactly; what the square lacks, divided by twice the root, gives the
    other nine. Outside of 1 to 10^17 it is the double's root.
    """
    double = call(DOUBLE, "sqrt", spark_cast(node.copy(), DOUBLE))
    guess = spark_cast(double, _GUESS)
    square = spark_cast(binary(exp.Mul, numeric(38, 18), guess, guess.copy()), numeric(37, 18))
    lacking = binary(exp.Sub, numeric(38, 18), spark_cast(node.copy(), numeric(37, 18)), square)
    twice = binary(exp.Mul, DOUBLE, double.copy(), spark_cast(exp.Literal.number(2), DOUBLE))
    rest = binary(exp.Div, DOUBLE, spark_cast(lacking, DOUBLE), twice)
    exact = binary(exp.Add, NUMERIC, spark_cast(guess.copy(), numeric(37, 18)), spark_cast(rest, numeric(19, 18)))
    inside = conjunction(
        [
            comparison(exp.GTE, node.copy(), spark_cast(exp.Literal.number(1), type_of(node), _LEAST.spark)),
            comparison(exp.LT, node.copy(), spark_cast(exp.Literal.number(10**17), type_of(node), _MOST.spark)),
        ]
    )
    return case(NUMERIC, [(inside, spark_cast(exact, NUMERIC))], spark_cast(double.copy(), NUMERIC))
