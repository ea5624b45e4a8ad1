"""Expressions: every node typed bottom-up and rewritten to the Spark expression that gives PostgreSQL's answer.

Which function binds which node is told by the table at the end: literals, arithmetic, AND, OR and casts are here, the
rest in the modules that the table names. What they share is the `Binder` of `sql/binder.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice

from sqlglot import exp

from seiche.errors import FeatureNotSupported, SeicheError, SyntaxError_, UndefinedParameter
from seiche.sql import (
    aggregate_calls,
    choices,
    comparisons,
    compounds,
    invocations,
    operators,
    patterns,
    user_aggregates,
    windows,
)
from seiche.sql.attempts import attempted
from seiche.sql.binder import QUERY, Binder, Clause, Surroundings, Usage
from seiche.sql.calls import call_of
from seiche.sql.casts import cast, convert
from seiche.sql.collations import refuse_collation
from seiche.sql.functions import (
    invoke,
    json_edit,
    maps,
)
from seiche.sql.literals import array_literal, bytes_literal, interval_literal, literal, number_literal, parse_interval
from seiche.sql.nodes import (
    Settings,
    boolean,
    conjunction,
    disjunction,
    integer,
    is_unknown,
    negation,
    null,
    text,
    type_of,
    typed,
)
from seiche.sql.parameters import PARAMETER
from seiche.sql.places import begin_as, begin_of, place_of, point_at, reading
from seiche.sql.tokens import too_deep
from seiche.sql.user_functions import Functions
from seiche.sql.written import written_as
from seiche.sql.written_types import sql_type
from seiche.types import BIGINT, INTEGER, NULL, TIMESTAMPTZ, Kind, SqlType

_ARITHMETIC = {exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/", exp.Mod: "%"}
_BITS = {
    exp.BitwiseAnd: "&",
    exp.BitwiseOr: "|",
    exp.BitwiseXor: "#",
    exp.BitwiseLeftShift: "<<",
    exp.BitwiseRightShift: ">>",
}
# The parts that an expression may have once it is bound, unless it was written with about as many. Each takes a
# kilobyte or two until its statement has been planned.
GROWN_MAX = 100_000
GROWTH = 8
_SMALLEST = ("2147483648", "9223372036854775808")


def expression_binder(
    surroundings: Surroundings, settings: Settings, usage: Usage, clause: Clause, functions: Functions | None = None
) -> Binder:
    """What binds the expressions of one clause of one query."""
    return Binder(surroundings, settings, usage, clause, _bind, functions)


def _bind(binder: Binder, node: exp.Expr) -> exp.Expr:
    try:
        bound = _handled(binder, node)
    except SeicheError as error:
        point_at(error, place_of(node) or begin_of(node))
        raise
    if not isinstance(node, exp.Binary):  # those grow by what is written only, and stand in long rows
        _refuse_grown(bound, node)
    return written_as(begin_as(bound, node), node)


def _refuse_grown(bound: exp.Expr, node: exp.Expr) -> None:
    """Raises StatementTooComplex for what has grown by powers: functions mention an argument several times, and so do
    their arguments."""
    parts = sum(1 for _ in islice(bound.walk(), GROWN_MAX + 1))
    if parts > GROWN_MAX and parts > GROWTH * sum(1 for _ in islice(node.walk(), GROWN_MAX)):
        raise too_deep(f"With what its functions are made of, an expression has more than {GROWN_MAX} parts.")


def _handled(binder: Binder, node: exp.Expr) -> exp.Expr:
    handler = _HANDLERS.get(type(node))
    if handler is not None:
        return handler(binder, node)
    found = call_of(node)
    if found is not None:
        return invocations.invoked(binder, found[0], found[1], node)
    if isinstance(node, QUERY):
        return comparisons.scalar(binder, node)
    raise FeatureNotSupported(f"expression {node.sql('seiche')} is not supported")


def _literal(binder: Binder, node: exp.Expr) -> exp.Expr:
    if node.is_string:
        return typed(exp.Literal.string(node.this), NULL)
    return number_literal(node.this)


def _string(binder: Binder, node: exp.Expr) -> exp.Expr:
    return typed(exp.Literal.string(node.this), NULL)


def _hex(binder: Binder, node: exp.Expr) -> exp.Expr:
    return bytes_literal(bytes.fromhex(node.this))


def _boolean(binder: Binder, node: exp.Expr) -> exp.Expr:
    return boolean(bool(node.this))


def _null(binder: Binder, node: exp.Expr) -> exp.Expr:
    return typed(exp.Null(), NULL)


def _column(binder: Binder, node: exp.Column) -> exp.Expr:
    if node.name == "user" and not node.table and not node.this.args.get("quoted"):
        return text(binder.settings.user)  # the word is a function's; a column of that name has to be quoted
    if isinstance(node.this, exp.Star) and node.table:  # among arguments it is the row as one value
        node = exp.Column(this=node.args["table"].copy(), table=node.args.get("db"))
    return binder.surroundings.column(node)


def _paren(binder: Binder, node: exp.Expr) -> exp.Expr:
    return binder.bind(node.this)


def _interval(binder: Binder, node: exp.Interval) -> exp.Expr:
    unit = node.args.get("unit")
    names = unit.this.name if isinstance(unit, exp.IntervalSpan) else (unit.name if unit else None)
    if node.this is None or not isinstance(node.this, exp.Literal):
        raise SyntaxError_("an interval needs a quoted constant", hint="Write INTERVAL '1 day', or multiply one.")
    with reading(node.this):
        return interval_literal(*parse_interval(node.this.name, names))


def _parameter(binder: Binder, node: exp.Expr) -> exp.Expr:
    if isinstance(node.this, exp.Var | exp.Identifier):  # `@ x`, the absolute value
        return invoke("abs", [binder.bind(exp.Column(this=exp.to_identifier(node.this.name)))], binder.settings)
    parameters, number = binder.settings.parameters, node.name
    if parameters is None or not number.isdecimal():
        raise UndefinedParameter(f"there is no parameter {node.sql('seiche')}")
    type_ = parameters.type(int(number))
    value = parameters.value(int(number)) if parameters.has_values else None
    if type_ is not None:
        return null(type_) if value is None else literal(value, type_, binder.settings)
    unknown = typed(exp.Null(), NULL)
    unknown.meta[PARAMETER] = int(number)
    return unknown


def _alias(binder: Binder, node: exp.Expr) -> exp.Expr:
    return binder.bind(node.this)


def _unicode(binder: Binder, node: exp.Expr) -> exp.Expr:
    made = invoke("unistr", [text(node.name)], binder.settings)
    return typed(made, NULL)


def _arithmetic(binder: Binder, node: exp.Binary) -> exp.Expr:
    left, right = binder.bind(node.this), binder.bind(node.expression)
    symbol = _ARITHMETIC[type(node)]
    if symbol == "-" and type_of(left).kind is Kind.JSONB:
        made = json_edit.subtract(left, right, binder.settings)
        return made if binder.settings.strict else attempted(made, [left, right])
    return operators.arithmetic(symbol, left, right, binder.settings)


def _power(binder: Binder, node: exp.Binary) -> exp.Expr:
    return operators.power(binder.bind(node.this), binder.bind(node.expression), binder.settings)


def _negative(binder: Binder, node: exp.Expr) -> exp.Expr:
    if isinstance(node.this, exp.Literal) and not node.this.is_string and node.this.name in _SMALLEST:
        return integer(-int(node.this.name), INTEGER if node.this.name == "2147483648" else BIGINT)
    return operators.negative(binder.bind(node.this), binder.settings)


def _bits(binder: Binder, node: exp.Binary) -> exp.Expr:
    return operators.bits(_BITS[type(node)], binder.bind(node.this), binder.bind(node.expression), binder.settings)


def _bit_not(binder: Binder, node: exp.Expr) -> exp.Expr:
    inner = binder.bind(node.this)
    if not type_of(inner).is_integer:
        raise operators.no_operator("~", inner)
    return typed(exp.BitwiseNot(this=inner), type_of(inner))


def _connector(binder: Binder, node: exp.Binary) -> exp.Expr:
    """Long chains are folded without recursion: generated queries have hundreds of ORs."""
    kind = type(node)
    operands: list[exp.Expr] = []
    stack: list[exp.Expr] = [node]
    while stack:
        current = stack.pop()
        if type(current) is kind:
            stack += [current.expression, current.this]
        else:
            operands.append(binder.condition(current, "AND" if kind is exp.And else "OR"))
    return (conjunction if kind is exp.And else disjunction)(operands)


def _not(binder: Binder, node: exp.Expr) -> exp.Expr:
    inner = binder.condition(node.this, "NOT")
    return negation(inner)


def _dpipe(binder: Binder, node: exp.Binary) -> exp.Expr:
    return operators.concatenate(binder.bind(node.this), binder.bind(node.expression), binder.settings)


def _collate(binder: Binder, node: exp.Binary) -> exp.Expr:
    inner = binder.bind(node.this)
    refuse_collation(node.expression.name, None if is_unknown(inner) else type_of(inner))
    return inner


def _at_zone(binder: Binder, node: exp.Expr) -> exp.Expr:
    inner = binder.bind(node.this)
    if is_unknown(inner):
        inner = convert(inner, TIMESTAMPTZ, binder.settings)
    if type_of(inner).kind is Kind.DATE:
        inner = convert(inner, TIMESTAMPTZ, binder.settings)
    return invoke("timezone", [binder.settled(node.args["zone"]), inner], binder.settings)


def _cast(binder: Binder, node: exp.Cast) -> exp.Expr:
    with reading(node.args["to"]):
        target = sql_type(node.args["to"])
    if isinstance(node.this, exp.Array) and not node.this.expressions:
        return array_literal([], target)
    if isinstance(node.this, exp.Anonymous) and str(node.this.this) == "map_of_pairs" and not node.this.expressions:
        return maps.empty(target)
    if isinstance(node.this, exp.Array) and target.element is not None:
        if not any(isinstance(item, QUERY) for item in node.this.expressions):
            return _array_of_casts(binder, node.this, target, target.element)
    if isinstance(node.this, exp.IntDiv):  # sqlglot's reading of div(a, b)
        return invoke("div", [binder.bind(node.this.this), binder.bind(node.this.expression)], binder.settings)
    return cast(binder.bind(node.this), target, binder.settings)


def _array_of_casts(binder: Binder, node: exp.Array, target: SqlType, element: SqlType) -> exp.Expr:
    """`ARRAY[a, b]::type[]` casts each element, which need not have a common type before."""
    items = [
        _array_of_casts(binder, item, element, element.element)
        if isinstance(item, exp.Array) and element.element is not None
        else cast(binder.bind(item), element, binder.settings)
        for item in node.expressions
    ]
    return array_literal(items, target.bare)


_HANDLERS: dict[type[exp.Expr], Callable[..., exp.Expr]] = {
    exp.Literal: _literal,
    exp.RawString: _string,
    exp.ByteString: _string,
    exp.National: _string,
    exp.HexString: _hex,
    exp.Boolean: _boolean,
    exp.Null: _null,
    exp.Column: _column,
    exp.Paren: _paren,
    exp.Interval: _interval,
    exp.Parameter: _parameter,
    exp.Placeholder: _parameter,
    exp.Alias: _alias,
    exp.Add: _arithmetic,
    exp.Sub: _arithmetic,
    exp.Mul: _arithmetic,
    exp.Div: _arithmetic,
    exp.Mod: _arithmetic,
    exp.Pow: _power,
    exp.Neg: _negative,
    **dict.fromkeys(_BITS, _bits),
    exp.BitwiseNot: _bit_not,
    exp.And: _connector,
    exp.Or: _connector,
    exp.Not: _not,
    exp.EQ: comparisons.comparison_of,
    exp.NEQ: comparisons.comparison_of,
    exp.LT: comparisons.comparison_of,
    exp.LTE: comparisons.comparison_of,
    exp.GT: comparisons.comparison_of,
    exp.GTE: comparisons.comparison_of,
    exp.NullSafeEQ: comparisons.comparison_of,
    exp.NullSafeNEQ: comparisons.comparison_of,
    exp.Between: comparisons.between,
    exp.In: comparisons.membership,
    exp.Exists: comparisons.exists,
    exp.Subquery: comparisons.scalar,
    exp.Select: comparisons.scalar,
    exp.Union: comparisons.scalar,
    exp.Intersect: comparisons.scalar,
    exp.Except: comparisons.scalar,
    exp.Values: comparisons.scalar,
    exp.Is: comparisons.is_test,
    exp.DPipe: _dpipe,
    exp.Like: patterns.like,
    exp.ILike: patterns.like,
    exp.Escape: patterns.escaped,
    exp.RegexpLike: patterns.regex,
    exp.RegexpILike: patterns.regex,
    exp.SimilarTo: patterns.similar,
    exp.Collate: _collate,
    exp.AtTimeZone: _at_zone,
    exp.Case: choices.case_of,
    exp.Cast: _cast,
    exp.Array: compounds.array,
    exp.Bracket: compounds.subscript,
    exp.Tuple: compounds.row,
    exp.Dot: compounds.member,
    exp.JSONExtract: compounds.json_member,
    exp.JSONExtractScalar: compounds.json_member,
    exp.JSONBExtract: compounds.json_path,
    exp.JSONBExtractScalar: compounds.json_path,
    exp.ArrayContainsAll: compounds.contains,
    exp.ArrayContainedBy: compounds.contains,
    exp.ArrayOverlaps: compounds.overlaps,
    exp.Overlaps: compounds.overlapping_spans,
    exp.JSONBDeleteAtPath: compounds.json_without,
    exp.JSONBPathExists: compounds.json_path_test,
    exp.MatchAgainst: compounds.json_path_test,
    exp.UnicodeString: _unicode,
    exp.JSONBContainsTopKey: compounds.has_key,
    exp.JSONBContains: compounds.has_key,
    exp.JSONBContainsAnyTopKeys: compounds.has_keys,
    exp.JSONBContainsAllTopKeys: compounds.has_keys,
    exp.Filter: user_aggregates.filtered,
    exp.WithinGroup: aggregate_calls.within_group,
    exp.Window: windows.windowed,
}
