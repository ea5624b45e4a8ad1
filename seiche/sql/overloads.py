"""Which of several functions of one name a call means: the one whose parameters are nearest to the arguments' types."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from seiche.errors import AmbiguousFunction
from seiche.sql.casts import Context, castable
from seiche.sql.functions import undefined
from seiche.sql.nodes import type_of
from seiche.sql.user_functions import UserFunction


def chosen(functions: Sequence[UserFunction], arguments: Sequence[exp.Expr]) -> UserFunction:
    """The function that takes most of the arguments as they are, among those that take all of them.

    As in PostgreSQL, it is an error when two are equally near.
    """
    name = functions[0].name
    fitting = [each for each in functions if _fits(each, arguments)]
    if not fitting:
        raise undefined(name, arguments, [name])
    near = [_as_they_are(each, arguments) for each in fitting]
    best = [each for each, count in zip(fitting, near, strict=True) if count == max(near)]
    if len(best) > 1:
        types = ", ".join(str(type_of(argument)) for argument in arguments)
        raise AmbiguousFunction(
            f"function {name}({types}) is not unique",
            detail="Could be " + " or ".join(f"{name}({_types(each)})" for each in best) + ".",
            hint="Could not choose a best candidate function. You might need to add explicit type casts.",
        )
    return best[0]


def _fits(function: UserFunction, arguments: Sequence[exp.Expr]) -> bool:
    return len(function.parameters) == len(arguments) and all(
        castable(type_of(node), type_, Context.IMPLICIT)
        for node, (_, type_) in zip(arguments, function.parameters, strict=True)
    )


def _as_they_are(function: UserFunction, arguments: Sequence[exp.Expr]) -> int:
    pairs = zip(arguments, function.parameters, strict=True)
    return sum(type_of(node).kind is type_.kind for node, (_, type_) in pairs)


def _types(function: UserFunction) -> str:
    return ", ".join(str(type_) for _, type_ in function.parameters)
