"""Calls: built-in functions, the user's own, and those that SQL gives a meaning of their own (`coalesce`, `now`)."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from seiche.errors import DatatypeMismatch, FeatureNotSupported, WrongObjectType
from seiche.sql import aggregate_calls, choices, compounds, overloads, secret_arguments
from seiche.sql.aggregates import aggregate_names, is_aggregate
from seiche.sql.attempts import attempted
from seiche.sql.binder import QUERY, Binder, Clause
from seiche.sql.casts import Context, cast, castable, convert
from seiche.sql.collecting import ORDERED
from seiche.sql.functions import invoke, is_function, temporal, undefined
from seiche.sql.literals import now_literal
from seiche.sql.nodes import call, case, conjunction, integer, is_null, negation, text, type_of, typed
from seiche.sql.user_aggregates import aggregated, user_aggregate
from seiche.sql.user_functions import MAX_DEPTH, UserFunction, body_of, parameter_names
from seiche.sql.windows import OFFSET, RANKING
from seiche.sql.written_types import CAST_NAMES
from seiche.types import DATE, TIME, TIMESTAMP, TIMESTAMPTZ, Kind

NOW = "seiche_now"
PROCTIME = "seiche_proctime"  # in a view: when the row came
_SET_RETURNING = frozenset(
    ("generate_series", "generate_subscripts", "unnest", "regexp_matches", "jsonb_array_elements")
)
_VOLATILE = frozenset(("random", "gen_random_uuid", "clock_timestamp", "timeofday"))


def invoked(binder: Binder, name: str, arguments: list[exp.Expr], node: exp.Expr) -> exp.Expr:
    match name:
        case "coalesce":
            return choices.coalesce(binder, arguments)
        case "nullif":
            return choices.nullif(binder, arguments)
        case "greatest" | "least":
            return choices.extreme(binder, name, arguments)
        case "array" if len(arguments) == 1 and isinstance(arguments[0], QUERY):
            return compounds.array(binder, exp.Array(expressions=arguments))
        case "row" | "struct":
            return compounds.row(binder, node)
        case "extract":
            return _extracted(binder, arguments[0].name, binder.bind(arguments[1]))
        case "now" | "current_timestamp" | "transaction_timestamp" | "statement_timestamp" | "clock_timestamp":
            if arguments and name != "current_timestamp":
                raise undefined(name, [binder.bind(argument) for argument in arguments], [name])
            return _now(binder)
        case "proctime":
            return _now(binder, PROCTIME)
        case "current_date":
            return convert(_now(binder), DATE, binder.settings)
        case "localtimestamp":
            return convert(_now(binder), TIMESTAMP, binder.settings)
        case "localtime" | "current_time":
            return convert(_now(binder), TIME, binder.settings)
        case "current_user" | "session_user" | "user":
            return text(binder.settings.user)
        case "if":
            return binder.bind(
                exp.Case(
                    ifs=[exp.If(this=arguments[0], true=arguments[1])],
                    default=arguments[2] if len(arguments) > 2 else None,
                )
            )
        case "array_transform":
            return compounds.transformed(binder, arguments)
        case "map_filter":
            return compounds.map_filtered(binder, arguments)
        case "map_of_pairs":
            return compounds.map_of_pairs(binder, arguments)
        case "make_interval":
            return _make_interval(binder, arguments)
    if is_aggregate(name) or (name in ORDERED and any(isinstance(a, exp.Order) for a in arguments)):
        return aggregate_calls.aggregate_of(binder, name, arguments, None, ())
    if name in RANKING or name in OFFSET:
        raise WrongObjectType(f"window function {name} requires an OVER clause")
    if not is_function(name) and name in CAST_NAMES and len(arguments) == 1:
        return cast(binder.bind(arguments[0]), CAST_NAMES[name], binder.settings)
    if not is_function(name) and (own := user_aggregate(binder, name, arguments)) is not None:
        return aggregated(binder, own, arguments)
    if name == secret_arguments.REFERENCE:
        raise secret_arguments.misplaced()
    written = written_function(binder, name, arguments)
    if written is not None:
        if written[0].columns:
            raise _misplaced_rows(binder)
        return inlined(binder, *written)
    for argument in arguments:
        match argument:
            case exp.Distinct():
                raise WrongObjectType(f"DISTINCT specified, but {name} is not an aggregate function")
            case exp.Order():
                raise WrongObjectType(f"ORDER BY specified, but {name} is not an aggregate function")
            case exp.Star():
                raise undefined(name, [])
    bound = [binder.bind(argument) for argument in arguments]
    if not is_function(name):
        if name in _SET_RETURNING:
            raise _misplaced_rows(binder)
        raise undefined(name, bound, [*aggregate_names(), *RANKING, *OFFSET])
    if name in _VOLATILE and name not in binder.usage.volatile:
        binder.usage.volatile.append(name)
    return invoke(name, bound, binder.settings)


def _extracted(binder: Binder, unit: str, node: exp.Expr) -> exp.Expr:
    made = temporal.extract(temporal.unit_of(unit), node, binder.settings)
    zoned = type_of(node).kind is Kind.TIMESTAMPTZ and binder.settings.timezone != "UTC"
    fallible = zoned or type_of(node).kind is Kind.INTERVAL
    return attempted(made, [node]) if fallible and not binder.settings.strict else made


def _misplaced_rows(binder: Binder) -> FeatureNotSupported:
    return FeatureNotSupported(f"set-returning functions are not allowed in {binder.clause.value}")


def written_function(
    binder: Binder, name: str, arguments: Sequence[exp.Expr]
) -> tuple[UserFunction, list[exp.Expr]] | None:
    """The user's function that a call means, with the call's arguments; None where there is none of that name."""
    written = binder.functions.functions(name) if binder.functions is not None and not is_function(name) else ()
    if binder.functions is None or not written:
        return None
    if any(isinstance(argument, exp.Kwarg) for argument in arguments):
        raise FeatureNotSupported(
            "named function arguments are not supported yet", hint=f"Write those of {name} in their order."
        )
    given = [secret_arguments.looked_up(binder.functions, each) or binder.bind(each) for each in arguments]
    chosen = overloads.chosen(written, given)
    binder.functions.call(chosen)
    return chosen, given


def inlined(binder: Binder, function: UserFunction, arguments: list[exp.Expr]) -> exp.Expr:
    """The body of a user's function over its arguments, which fit it."""
    types = [type_ for _, type_ in function.parameters]
    if binder.depth >= MAX_DEPTH:
        raise FeatureNotSupported(f'function "{function.name}" calls itself, or too many others in turn')
    given = [convert(node, type_, binder.settings) for node, type_ in zip(arguments, types, strict=True)]
    if function.volatile and function.name not in binder.usage.volatile:
        binder.usage.volatile.append(function.name)
    if function.language == "python":
        # What is strict sees to NULL itself: Spark calls it before it looks at a condition around the call.
        return call(function.returns, function.spark_name(raises=binder.settings.strict), *given)
    inside = binder.surroundings.around(list(zip(parameter_names(function), given, strict=True)))
    value = binder.called(inside, Clause.FROM).bind(body_of(function))
    if not castable(type_of(value), function.returns, Context.ASSIGNMENT):
        raise DatatypeMismatch(
            f'return type mismatch in function "{function.name}"',
            detail=f"It is declared to return {function.returns}, and its body is of type {type_of(value)}.",
        )
    made = typed(exp.Paren(this=convert(value, function.returns, binder.settings)), function.returns)
    return _unless_null(function, given, made)


def _unless_null(function: UserFunction, given: Sequence[exp.Expr], made: exp.Expr) -> exp.Expr:
    if not function.strict or not given:
        return made
    known = conjunction([negation(is_null(node.copy())) for node in given])
    return case(function.returns, [(known, made)])


def _make_interval(binder: Binder, arguments: list[exp.Expr]) -> exp.Expr:
    given: dict[str, exp.Expr] = {}
    for index, argument in enumerate(arguments):
        if isinstance(argument, exp.Kwarg):
            given[argument.this.name.lower()] = binder.bind(argument.expression)
        else:
            given[temporal.INTERVAL_PARTS[index]] = binder.bind(argument)
    parts = [given.get(part, integer(0)) for part in temporal.INTERVAL_PARTS]
    return invoke("make_interval", parts, binder.settings)


def call_now() -> exp.Expr:
    """The time of the epoch, for a view."""
    return call(TIMESTAMPTZ, NOW)


def _now(binder: Binder, name: str = NOW) -> exp.Expr:
    binder.usage.now = True
    if binder.settings.now_ms is None:
        return call(TIMESTAMPTZ, name)
    return now_literal(binder.settings.now_ms)
