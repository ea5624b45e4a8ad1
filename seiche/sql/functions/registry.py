"""Which functions exist, and how a call finds its overload.

A function is registered under PostgreSQL's name with its parameters; a call takes the first overload whose
parameters its arguments become by implicit casts, or raises PostgreSQL's `function f(types) does not exist`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from sqlglot import exp

from seiche.errors import DatatypeMismatch, UndefinedFunction, nearest
from seiche.sql.attempts import attempted
from seiche.sql.casts import Context, as_numeric, castable, convert, settle
from seiche.sql.nodes import Settings, is_unknown, type_of
from seiche.types import BIGINT, BYTEA, DOUBLE, NUMERIC, Kind, SqlType

Maker = Callable[[list[exp.Expr], Settings], exp.Expr]


class Any_(Enum):
    """Parameters that take more than one type and leave the argument's own."""

    VALUE = "any"
    NUMBER = "number"  # any number; an untyped literal becomes double precision
    EXACT = "numeric"  # integer or numeric, as a decimal of its own precision
    INTEGER = "integer"
    FLOAT = "float"
    ARRAY = "anyarray"
    MAP = "anymap"
    ELEMENT = "anyelement"  # an untyped literal waits for the array to type it


Parameter = SqlType | Any_


@dataclass(frozen=True, slots=True)
class Overload:
    parameters: tuple[Parameter, ...]
    make: Maker
    optional: int = 0
    variadic: bool = False  # the last parameter repeats


_FUNCTIONS: dict[str, list[Overload]] = {}


def function(
    *names: str, takes: Sequence[Parameter] = (), optional: int = 0, variadic: bool = False
) -> Callable[[Maker], Maker]:
    """Registers a maker under one or more names."""

    def register(make: Maker) -> Maker:
        for name in names:
            _FUNCTIONS.setdefault(name, []).append(Overload(tuple(takes), make, optional, variadic))
        return make

    return register


def overloads() -> Mapping[str, Sequence[Overload]]:
    """All functions by name, for the reference."""
    return _FUNCTIONS


def is_function(name: str) -> bool:
    return name in _FUNCTIONS


def invoke(name: str, arguments: list[exp.Expr], settings: Settings) -> exp.Expr:
    """The Spark expression of a call by PostgreSQL's name."""
    for accepts in (_exact, _likely, _accepts):
        for overload in _FUNCTIONS.get(name, ()):
            parameters = _matched(overload, len(arguments))
            if parameters is None:
                continue
            if all(accepts(type_of(a), p) for a, p in zip(arguments, parameters, strict=True)):
                adapted = [_adapt(a, p, settings) for a, p in zip(arguments, parameters, strict=True)]
                made = overload.make(adapted, settings)
                return made if settings.strict else attempted(made, adapted)
    if any(_waits_for_an_array(overload, arguments) for overload in _FUNCTIONS.get(name, ())):
        raise DatatypeMismatch("could not determine polymorphic type because input has type unknown")
    raise undefined(name, arguments)


def _waits_for_an_array(overload: Overload, arguments: Sequence[exp.Expr]) -> bool:
    """Whether the call fits, but for a literal without a type where only an array could tell the type."""
    parameters = _matched(overload, len(arguments))
    if parameters is None:
        return False
    pairs = list(zip((type_of(argument) for argument in arguments), parameters, strict=True))
    missing = [type_.kind is Kind.NULL and parameter is Any_.ARRAY for type_, parameter in pairs]
    fits = all(lacks or _accepts(type_, parameter) for (type_, parameter), lacks in zip(pairs, missing, strict=True))
    return any(missing) and fits


def undefined(name: str, arguments: Sequence[exp.Expr], others: Sequence[str] = ()) -> UndefinedFunction:
    types = ", ".join(str(type_of(argument).unmodified) for argument in arguments)
    known = name in _FUNCTIONS or name in others
    hint = _as_bytes(name, arguments) if known else nearest(name, [*_FUNCTIONS, *others])
    return UndefinedFunction(
        f"function {name}({types}) does not exist",
        detail=_misfit(name, arguments),
        hint=hint
        or "No function matches the given name and argument types. You might need to add explicit type casts.",
    )


def _misfit(name: str, arguments: Sequence[exp.Expr]) -> str | None:
    """What is wrong with a call of a function that exists, where it can be told."""
    if name in _FUNCTIONS and not any(_matched(each, len(arguments)) is not None for each in _FUNCTIONS[name]):
        return f"{name}() was given an unexpected arguments number: {len(arguments)}."
    if name == "date":  # a call by the name of a type is a cast
        return f'It would be a cast: cannot cast type "{type_of(arguments[0])}" to "date" in Explicit context.'
    return None


def _as_bytes(name: str, arguments: Sequence[exp.Expr]) -> str | None:
    """What helps a call that would fit if its text were bytes."""
    types = [type_of(argument) for argument in arguments]
    given = [BYTEA if type_.kind is Kind.VARCHAR else type_ for type_ in types]
    for overload in _FUNCTIONS.get(name, ()):
        parameters = _matched(overload, len(given))
        if parameters and given != types and all(_accepts(t, p) for t, p in zip(given, parameters, strict=True)):
            return "Make bytes of the text first, as by decode(text, 'hex')."
    return None


def _matched(overload: Overload, count: int) -> list[Parameter] | None:
    parameters = list(overload.parameters)
    if overload.variadic:
        fixed = len(parameters) - 1
        return parameters[:fixed] + [parameters[-1]] * (count - fixed) if count >= fixed else None
    if len(parameters) - overload.optional <= count <= len(parameters):
        return parameters[:count]
    return None


def _exact(source: SqlType, parameter: Parameter) -> bool:
    match parameter:
        case SqlType() if source.kind is Kind.NULL:
            return parameter.kind is Kind.VARCHAR
        case SqlType():
            return source.kind is parameter.kind and (source == parameter or parameter.kind is Kind.NUMERIC)
        case Any_.ELEMENT:
            return True
        case _:
            return source.kind is not Kind.NULL and _accepts(source, parameter)


def _likely(source: SqlType, parameter: Parameter) -> bool:
    """By implicit casts, an untyped literal being text first of all."""
    if source.kind is Kind.NULL and isinstance(parameter, SqlType):
        return parameter.kind is Kind.VARCHAR
    if source.kind is Kind.NULL and parameter is Any_.EXACT:
        return False  # of all numbers it becomes a double rather, where the function takes one
    return _accepts(source, parameter)


def _accepts(source: SqlType, parameter: Parameter) -> bool:
    match parameter:
        case Any_.VALUE | Any_.ELEMENT:
            return True
        case Any_.NUMBER:
            return source.is_number or source.kind is Kind.NULL
        case Any_.EXACT:
            return source.is_integer or source.kind in (Kind.NUMERIC, Kind.NULL)
        case Any_.INTEGER:
            return source.is_integer or source.kind is Kind.NULL
        case Any_.FLOAT:
            return source.is_float
        case Any_.ARRAY:
            return source.kind is Kind.ARRAY
        case Any_.MAP:
            return source.kind is Kind.MAP
        case SqlType():
            return castable(source, parameter, Context.IMPLICIT)


def _adapt(node: exp.Expr, parameter: Parameter, settings: Settings) -> exp.Expr:
    match parameter:
        case Any_.NUMBER if is_unknown(node):
            return convert(node, DOUBLE, settings)
        case Any_.INTEGER if is_unknown(node):
            return convert(node, BIGINT, settings)
        case Any_.EXACT:
            return convert(node, NUMERIC if is_unknown(node) else as_numeric(type_of(node)), settings)
        case Any_.VALUE:
            return settle(node, settings)
        case SqlType():
            return convert(node, parameter, settings)
        case _:
            return node
