"""Expressions: every node typed bottom-up and rewritten to the Spark expression that gives PostgreSQL's answer.

The binder knows nothing of FROM: it asks its `Surroundings` what a column name means and hands subqueries back.
What an expression used besides its columns (the time, random numbers) is noted in `Usage`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from dataclasses import field as dataclass_field
from enum import Enum
from typing import Protocol

from sqlglot import exp

from seiche.errors import (
    DatatypeMismatch,
    FeatureNotSupported,
    GroupingError,
    InvalidParameter,
    SyntaxError_,
    UndefinedColumn,
    UndefinedObject,
    WrongObjectType,
    nearest,
)
from seiche.sql import frames, operators
from seiche.sql.aggregates import AGGREGATE, AggregateCall, aggregate, aggregate_names, is_aggregate
from seiche.sql.calls import call_of
from seiche.sql.casts import Context, cast, castable, common_type, convert, micros_of, settle
from seiche.sql.collecting import HYPOTHETICAL, ORDERED
from seiche.sql.functions import arrays, invoke, is_function, json_edit, jsonb, spans, temporal, undefined
from seiche.sql.literals import (
    MICROS_PER_DAY,
    array_literal,
    bytes_literal,
    interval_constant,
    interval_literal,
    literal,
    now_literal,
    number_literal,
    parse_interval,
)
from seiche.sql.nodes import (
    Settings,
    bigint,
    boolean,
    call,
    case,
    comparison,
    conjunction,
    disjunction,
    field,
    integer,
    is_null,
    is_unknown,
    lambda_,
    negation,
    null,
    spark_cast,
    text,
    type_of,
    typed,
    variable,
)
from seiche.sql.parameters import PARAMETER
from seiche.sql.user_functions import MAX_DEPTH, Functions, UserFunction, body_of, parameter_names
from seiche.types import (
    BIGINT,
    BOOLEAN,
    BYTEA,
    DATE,
    DOUBLE,
    INTEGER,
    INTERVAL,
    JSONB,
    NULL,
    NUMERIC,
    REAL,
    SMALLINT,
    TIME,
    TIMESTAMP,
    TIMESTAMPTZ,
    VARCHAR,
    Kind,
    SqlType,
    array_of,
    character,
    numeric,
    struct_of,
    varchar,
)

NOW = "seiche_now"
_MICROS = "micros"  # marks a frame bound that was an interval
QUERY = (exp.Query, exp.Values)  # what can stand where a query can
_SET_RETURNING = frozenset(
    ("generate_series", "generate_subscripts", "unnest", "regexp_matches", "jsonb_array_elements")
)
_VOLATILE = frozenset(("random", "gen_random_uuid", "clock_timestamp", "timeofday"))


class Clause(Enum):
    """Where an expression stands: what may be in it, and what the errors call the place."""

    SELECT = "SELECT"
    WHERE = "WHERE"
    JOIN = "JOIN conditions"
    GROUP = "GROUP BY"
    HAVING = "HAVING"
    ORDER = "ORDER BY"
    FROM = "functions in FROM"
    VALUES = "VALUES"
    UPDATE = "UPDATE"
    LIMIT = "LIMIT"
    DEFAULT = "DEFAULT expressions"
    GENERATED = "column generation expressions"
    AGGREGATE = "aggregate function calls"
    WINDOW = "window definitions"

    @property
    def aggregates(self) -> bool:
        return self in (Clause.SELECT, Clause.HAVING, Clause.ORDER, Clause.WINDOW)

    @property
    def windows(self) -> bool:
        return self in (Clause.SELECT, Clause.ORDER)


@dataclass(slots=True)
class Usage:
    """What a query used, gathered while it is bound."""

    relations: set[int] = dataclass_field(default_factory=set)
    references: list[tuple[int, exp.Table]] = dataclass_field(default_factory=list)  # as written, views not expanded
    now: bool = False
    volatile: list[str] = dataclass_field(default_factory=list)


class Surroundings(Protocol):
    """What an expression needs from the query it stands in."""

    def column(self, node: exp.Column) -> exp.Expr:
        """The bound column, or the error of a name that means nothing or too much."""

    def subquery(self, query: exp.Expr) -> tuple[exp.Query, tuple[tuple[str, SqlType], ...]]:
        """The bound query with its output names and types; it may refer to the columns around it."""

    def window(self, name: str) -> exp.Window | None:
        """A window of the WINDOW clause."""

    def around(self, values: Sequence[tuple[str, exp.Expr]]) -> Surroundings:
        """What the body of a function sees: its arguments by their names, and tables."""


def sql_type(node: exp.Expr) -> SqlType:
    """A written type as SqlType."""
    if isinstance(node, exp.DataType):
        kind = node.this
        simple = _TYPES.get(kind)
        if simple is not None:
            return simple
        match kind:
            case exp.DataType.Type.VARCHAR | exp.DataType.Type.CHAR | exp.DataType.Type.BPCHAR:
                return _text_type(node)
            case exp.DataType.Type.DECIMAL:
                return _numeric_type(node)
            case exp.DataType.Type.ARRAY:
                return array_of(sql_type(node.expressions[0]))
            case exp.DataType.Type.STRUCT:
                return struct_of(
                    *((definition.name, sql_type(definition.args["kind"])) for definition in node.expressions)
                )
            case _:
                name = str(node.args.get("kind") or node.sql("risingwave")).strip('"').lower()
                if name in _WORDS:
                    return _WORDS[name]
                raise UndefinedObject(f'type "{name}" does not exist', hint=nearest(name, _WORDS))
    raise UndefinedObject(f'type "{node.sql("risingwave").lower()}" does not exist')


def _text_type(node: exp.DataType) -> SqlType:
    """`varchar(n)` and `char(n)`; a bare `char` has one character, the others have no limit."""
    is_char = node.this is not exp.DataType.Type.VARCHAR
    if not node.expressions:
        return character(1) if node.this is exp.DataType.Type.CHAR else VARCHAR
    length = int(node.expressions[0].this.name)
    if length < 1:
        raise InvalidParameter(f"length for type {'char' if is_char else 'varchar'} must be at least 1")
    return character(length) if is_char else varchar(length)


def _numeric_type(node: exp.DataType) -> SqlType:
    if not node.expressions:
        return NUMERIC
    sizes = [int(parameter.this.name) for parameter in node.expressions]
    precision, scale = sizes[0], sizes[1] if len(sizes) > 1 else 0
    if not 1 <= precision <= 38 or not 0 <= scale <= precision:
        raise FeatureNotSupported(
            f"numeric({precision},{scale}) is not supported",
            detail="Precision goes from 1 to 38 and scale up to the precision.",
        )
    return numeric(precision, scale, declared=True)


_T = exp.DataType.Type
_TYPES: dict[exp.DType, SqlType] = {
    _T.BOOLEAN: BOOLEAN, _T.SMALLINT: SMALLINT, _T.INT: INTEGER, _T.BIGINT: BIGINT, _T.FLOAT: REAL, _T.DOUBLE: DOUBLE,
    _T.TEXT: VARCHAR, _T.NAME: VARCHAR, _T.UUID: VARCHAR,
    _T.VARBINARY: BYTEA, _T.BINARY: BYTEA, _T.DATE: DATE, _T.TIME: TIME, _T.TIMESTAMP: TIMESTAMP,
    _T.TIMESTAMPNTZ: TIMESTAMP, _T.TIMESTAMPTZ: TIMESTAMPTZ, _T.TIMESTAMPLTZ: TIMESTAMPTZ, _T.INTERVAL: INTERVAL,
    _T.JSONB: JSONB, _T.JSON: JSONB,
}  # fmt: skip
_WORDS = {
    "string": VARCHAR, "text": VARCHAR, "bytea": BYTEA, "int": INTEGER, "integer": INTEGER,
    "bigint": BIGINT, "smallint": SMALLINT, "real": REAL, "boolean": BOOLEAN, "date": DATE, "time": TIME,
    "timestamp": TIMESTAMP, "timestamptz": TIMESTAMPTZ, "interval": INTERVAL, "jsonb": JSONB, "numeric": NUMERIC,
}  # fmt: skip


class ExpressionBinder:
    """Binds the expressions of one clause of one query."""

    def __init__(
        self,
        surroundings: Surroundings,
        settings: Settings,
        usage: Usage,
        clause: Clause,
        functions: Functions | None = None,
        depth: int = 0,
    ) -> None:
        self._functions = functions
        self._depth = depth
        self._surroundings = surroundings
        self._settings = settings
        self._usage = usage
        self._clause = clause

    def bind(self, node: exp.Expr) -> exp.Expr:
        """The bound expression; a literal may still be of no type."""
        handler = _HANDLERS.get(type(node))
        if handler is not None:
            return handler(self, node)
        found = call_of(node)
        if found is not None:
            return self._call(found[0], found[1], node)
        if isinstance(node, QUERY):
            return self._scalar(node)
        raise FeatureNotSupported(f"expression {node.sql('risingwave')} is not supported")

    def settled(self, node: exp.Expr) -> exp.Expr:
        return settle(self.bind(node), self._settings)

    def condition(self, node: exp.Expr, what: str) -> exp.Expr:
        """A boolean, as WHERE wants it."""
        bound = self.bind(node)
        if is_unknown(bound):
            return convert(bound, BOOLEAN, self._settings)
        if type_of(bound).kind is not Kind.BOOLEAN:
            raise DatatypeMismatch(f"argument of {what} must be type boolean, not type {type_of(bound)}")
        return bound

    def within(self, clause: Clause) -> ExpressionBinder:
        return ExpressionBinder(self._surroundings, self._settings, self._usage, clause, self._functions, self._depth)

    # --- leaves --------------------------------------------------------------------------------------

    def _literal(self, node: exp.Expr) -> exp.Expr:
        if node.is_string:
            return typed(exp.Literal.string(node.this), NULL)
        return number_literal(node.this)

    def _string(self, node: exp.Expr) -> exp.Expr:
        return typed(exp.Literal.string(node.this), NULL)

    def _hex(self, node: exp.Expr) -> exp.Expr:
        return bytes_literal(bytes.fromhex(node.this))

    def _boolean(self, node: exp.Expr) -> exp.Expr:
        return boolean(bool(node.this))

    def _null(self, node: exp.Expr) -> exp.Expr:
        return typed(exp.Null(), NULL)

    def _column(self, node: exp.Column) -> exp.Expr:
        return self._surroundings.column(node)

    def _paren(self, node: exp.Expr) -> exp.Expr:
        return self.bind(node.this)

    def _interval(self, node: exp.Interval) -> exp.Expr:
        unit = node.args.get("unit")
        names = unit.this.name if isinstance(unit, exp.IntervalSpan) else (unit.name if unit else None)
        if node.this is None or not isinstance(node.this, exp.Literal):
            raise SyntaxError_("an interval needs a quoted constant", hint="Write INTERVAL '1 day', or multiply one.")
        return interval_literal(*parse_interval(node.this.name, names))

    def _parameter(self, node: exp.Expr) -> exp.Expr:
        if isinstance(node.this, exp.Var | exp.Identifier):  # `@ x`, the absolute value
            return invoke("abs", [self.bind(exp.Column(this=exp.to_identifier(node.this.name)))], self._settings)
        parameters, number = self._settings.parameters, node.name
        if parameters is None or not number.isdecimal():
            raise FeatureNotSupported(f"parameter {node.sql('risingwave')} has no value")
        type_ = parameters.type(int(number))
        value = parameters.value(int(number)) if parameters.has_values else None
        if type_ is not None:
            return null(type_) if value is None else literal(value, type_, self._settings)
        unknown = typed(exp.Null(), NULL)
        unknown.meta[PARAMETER] = int(number)
        return unknown

    def _alias(self, node: exp.Expr) -> exp.Expr:
        return self.bind(node.this)

    # --- operators -----------------------------------------------------------------------------------

    def _arithmetic(self, node: exp.Binary) -> exp.Expr:
        left, right = self.bind(node.this), self.bind(node.expression)
        symbol = _ARITHMETIC[type(node)]
        if symbol == "-" and type_of(left).kind is Kind.JSONB:
            return json_edit.subtract(left, right, self._settings)
        return operators.arithmetic(symbol, left, right, self._settings)

    def _power(self, node: exp.Binary) -> exp.Expr:
        return operators.power(self.bind(node.this), self.bind(node.expression), self._settings)

    def _negative(self, node: exp.Expr) -> exp.Expr:
        if isinstance(node.this, exp.Literal) and not node.this.is_string and node.this.name in _SMALLEST:
            return integer(-int(node.this.name), INTEGER if node.this.name == "2147483648" else BIGINT)
        return operators.negative(self.bind(node.this), self._settings)

    def _bits(self, node: exp.Binary) -> exp.Expr:
        return operators.bits(_BITS[type(node)], self.bind(node.this), self.bind(node.expression), self._settings)

    def _bit_not(self, node: exp.Expr) -> exp.Expr:
        inner = self.bind(node.this)
        if not type_of(inner).is_integer:
            raise operators.no_operator("~", inner)
        return typed(exp.BitwiseNot(this=inner), type_of(inner))

    def _connector(self, node: exp.Binary) -> exp.Expr:
        """Long chains are folded without recursion: generated queries have hundreds of ORs."""
        kind = type(node)
        operands: list[exp.Expr] = []
        stack: list[exp.Expr] = [node]
        while stack:
            current = stack.pop()
            if type(current) is kind:
                stack += [current.expression, current.this]
            else:
                operands.append(self.condition(current, "AND" if kind is exp.And else "OR"))
        return (conjunction if kind is exp.And else disjunction)(operands)

    def _not(self, node: exp.Expr) -> exp.Expr:
        inner = self.condition(node.this, "NOT")
        return negation(inner)

    def _comparison(self, node: exp.Binary) -> exp.Expr:
        kind = type(node)
        right = node.expression
        quantifier = _quantifier(right)
        if quantifier is not None:
            return self._quantified(kind, node.this, *quantifier)
        rows = _row(node.this), _row(right)
        if rows[0] is not None and rows[1] is not None:
            return self._rows(kind, rows[0], rows[1])
        return operators.compare(kind, self.bind(node.this), self.bind(right), self._settings)

    def _rows(self, kind: type[exp.Binary], left: Sequence[exp.Expr], right: Sequence[exp.Expr]) -> exp.Expr:
        if len(left) != len(right):
            raise SyntaxError_("unequal number of entries in row expressions")
        if kind in (exp.EQ, exp.NullSafeEQ):
            return conjunction(
                [
                    operators.compare(kind, self.bind(a), self.bind(b), self._settings)
                    for a, b in zip(left, right, strict=True)
                ]
            )
        if kind in (exp.NEQ, exp.NullSafeNEQ):
            return disjunction(
                [
                    operators.compare(kind, self.bind(a), self.bind(b), self._settings)
                    for a, b in zip(left, right, strict=True)
                ]
            )
        # Lexicographic: the first pair that differs decides.
        first_left, first_right = self.bind(left[0]), self.bind(right[0])
        if len(left) == 1:
            return operators.compare(kind, first_left, first_right, self._settings)
        strictly = exp.LT if kind in (exp.LT, exp.LTE) else exp.GT
        decided = operators.compare(strictly, first_left, first_right, self._settings)
        tied = operators.compare(exp.EQ, first_left.copy(), first_right.copy(), self._settings)
        return disjunction([decided, conjunction([tied, self._rows(kind, left[1:], right[1:])])])

    def _quantified(self, kind: type[exp.Binary], left: exp.Expr, inner: exp.Expr, every: bool) -> exp.Expr:
        if isinstance(inner, QUERY):
            if kind is exp.EQ and not every:
                return self._in_query(left, inner)
            if kind is exp.NEQ and every:
                return negation(self._in_query(left, inner))
            return self._compared_query(kind, self.bind(left), inner, every)
        array = self.bind(inner)
        node = self.bind(left)
        if is_unknown(array):
            array = convert(array, array_of(VARCHAR if is_unknown(node) else type_of(node)), self._settings)
        if kind in (exp.Like, exp.ILike):
            raise FeatureNotSupported(
                "LIKE ANY and LIKE ALL are not supported", hint="Combine several LIKE with OR or AND."
            )
        return arrays.quantified(kind, node, array, self._settings, every=every)

    def _compared_query(self, kind: type[exp.Binary], left: exp.Expr, query: exp.Expr, every: bool) -> exp.Expr:
        """`x > ALL (query)` through EXISTS over the rows that decide it."""
        bound, columns = self._surroundings.subquery(query)
        if len(columns) != 1:
            raise SyntaxError_("subquery has too many columns")
        name, type_ = columns[0]
        alias = "compared"
        value = typed(exp.column(name, table=alias, quoted=True), type_)
        holds = operators.compare(kind, left, value, self._settings)
        decides = (
            typed(exp.Not(this=typed(exp.Coalesce(this=holds, expressions=[boolean(False)]), BOOLEAN)), BOOLEAN)
            if every
            else holds
        )
        rows = (
            exp.Select(expressions=[exp.alias_(integer(1), "one", quoted=True)])
            .from_(exp.Subquery(this=bound, alias=exp.TableAlias(this=exp.to_identifier(alias, quoted=True))))
            .where(decides, copy=False)
        )
        found = typed(exp.Exists(this=rows), BOOLEAN)
        return negation(found) if every else found

    def _between(self, node: exp.Between) -> exp.Expr:
        parts = (self.bind(node.this), self.bind(node.args["low"]), self.bind(node.args["high"]))
        return operators.between(*parts, self._settings, symmetric=bool(node.args.get("symmetric")))

    def _in(self, node: exp.In) -> exp.Expr:
        query = node.args.get("query")
        if query is not None:
            return self._in_query(node.this, query)
        row = _row(node.this)
        if row is not None:
            return disjunction([self._rows(exp.EQ, row, _row(item) or [item]) for item in node.expressions])
        left = self.bind(node.this)
        items = [self.bind(item) for item in node.expressions]
        if type_of(left).kind is Kind.INTERVAL or any(type_of(item).kind is Kind.INTERVAL for item in items):
            return disjunction([operators.compare(exp.EQ, left.copy(), item, self._settings) for item in items])
        pairs = [operators.comparable("=", left.copy(), item, self._settings) for item in items]
        if len({type_of(a) for a, _ in pairs}) == 1:
            return typed(
                exp.Paren(this=typed(exp.In(this=pairs[0][0], expressions=[b for _, b in pairs]), BOOLEAN)), BOOLEAN
            )
        return typed(
            exp.Paren(
                this=disjunction([operators.compare(exp.EQ, left.copy(), item, self._settings) for item in items])
            ),
            BOOLEAN,
        )

    def _in_query(self, left: exp.Expr, query: exp.Expr) -> exp.Expr:
        inner = query.unnest() if isinstance(query, exp.Subquery) else query
        assert isinstance(inner, QUERY)
        bound, columns = self._surroundings.subquery(inner)
        row = _row(left)
        lefts = [self.bind(part) for part in row] if row is not None else [self.bind(left)]
        if len(lefts) != len(columns):
            raise SyntaxError_(f"subquery has too {'many' if len(columns) > len(lefts) else 'few'} columns")
        pairs = [
            operators.comparable(
                "=", part, typed(exp.column(name, table="candidates", quoted=True), type_), self._settings
            )
            for part, (name, type_) in zip(lefts, columns, strict=True)
        ]
        if any(not isinstance(right, exp.Column) for _, right in pairs):
            selected = [exp.alias_(right, f"c{index}", quoted=True) for index, (_, right) in enumerate(pairs)]
            source = exp.Subquery(this=bound, alias=exp.TableAlias(this=exp.to_identifier("candidates", quoted=True)))
            bound = exp.Select(expressions=selected).from_(source)
        tested: exp.Expr = pairs[0][0] if len(pairs) == 1 else exp.Tuple(expressions=[a for a, _ in pairs])
        return typed(exp.Paren(this=typed(exp.In(this=tested, query=exp.Subquery(this=bound)), BOOLEAN)), BOOLEAN)

    def _exists(self, node: exp.Expr) -> exp.Expr:
        inner = node.this.unnest() if isinstance(node.this, exp.Subquery) else node.this
        if not isinstance(inner, QUERY):
            raise undefined("exists", [self.bind(inner)])
        bound, _ = self._surroundings.subquery(inner)
        return typed(exp.Exists(this=bound), BOOLEAN)

    def _scalar(self, node: exp.Expr) -> exp.Expr:
        inner = node.unnest() if isinstance(node, exp.Subquery) else node
        if not isinstance(inner, QUERY):
            return self.bind(inner)
        bound, columns = self._surroundings.subquery(inner)
        if len(columns) != 1:
            raise SyntaxError_("subquery must return only one column")
        return typed(exp.Subquery(this=bound), columns[0][1])

    def _is(self, node: exp.Expr) -> exp.Expr:
        wanted = node.expression
        match wanted:
            case exp.Null():
                row = _row(node.this)
                if row is not None:
                    return conjunction([is_null(self.settled(part)) for part in row])
                return is_null(self.settled(node.this))
            case exp.Boolean():
                inner = self.condition(node.this, f"IS {str(wanted.this).upper()}")
                return typed(
                    exp.Coalesce(
                        this=comparison(exp.EQ, inner, boolean(bool(wanted.this))),
                        expressions=[boolean(False)],
                    ),
                    BOOLEAN,
                )
            case exp.Not():
                return negation(self._is(exp.Is(this=node.this, expression=wanted.this)))
            case exp.JSON() if not wanted.args.get("unique"):
                return jsonb.is_json(self.settled(node.this), str(wanted.this or "VALUE").upper())
        raise FeatureNotSupported(f"IS {wanted.sql('risingwave')} is not supported")

    def _dpipe(self, node: exp.Binary) -> exp.Expr:
        return operators.concatenate(self.bind(node.this), self.bind(node.expression), self._settings)

    def _like(self, node: exp.Binary, escape: str | None = None) -> exp.Expr:
        fold = isinstance(node, exp.ILike)
        quantifier = _quantifier(node.expression)
        if quantifier is not None:
            return self._like_each(node, *quantifier)
        result = operators.like(
            self.bind(node.this), self.bind(node.expression), self._settings, fold=fold, escape=escape
        )
        return negation(result) if node.args.get("negate") else result

    def _like_each(self, node: exp.Binary, inner: exp.Expr, every: bool) -> exp.Expr:
        """LIKE ANY and LIKE ALL; NOT belongs to each comparison."""
        text_, patterns = self.settled(node.this), self.bind(inner)
        if is_unknown(patterns):
            patterns = convert(patterns, array_of(VARCHAR), self._settings)
        holds = operators.like(text_, variable("p", VARCHAR), self._settings, fold=isinstance(node, exp.ILike))
        each = negation(holds) if node.args.get("negate") else holds
        return call(BOOLEAN, "forall" if every else "exists", patterns, lambda_(each, "p"))

    def _escape(self, node: exp.Binary) -> exp.Expr:
        if isinstance(node.this, exp.Like | exp.ILike):
            return self._like(node.this, node.expression.name)
        if isinstance(node.this, exp.SimilarTo):
            parts = self.bind(node.this.this), self.bind(node.this.expression)
            return operators.similar(*parts, self._settings, escape=node.expression.name)
        return self.bind(node.this)

    def _regex(self, node: exp.Binary) -> exp.Expr:
        fold = isinstance(node, exp.RegexpILike)
        return operators.matches(self.bind(node.this), self.bind(node.expression), self._settings, fold=fold)

    def _similar(self, node: exp.Binary) -> exp.Expr:
        return operators.similar(self.bind(node.this), self.bind(node.expression), self._settings)

    def _collate(self, node: exp.Binary) -> exp.Expr:
        return self.bind(node.this)

    def _at_zone(self, node: exp.Expr) -> exp.Expr:
        inner = self.bind(node.this)
        if is_unknown(inner):
            inner = convert(inner, TIMESTAMPTZ, self._settings)
        if type_of(inner).kind is Kind.DATE:
            inner = convert(inner, TIMESTAMPTZ, self._settings)
        return invoke("timezone", [self.settled(node.args["zone"]), inner], self._settings)

    # --- choices -------------------------------------------------------------------------------------

    def _case(self, node: exp.Case) -> exp.Expr:
        operand = node.this
        conditions: list[exp.Expr] = []
        values: list[exp.Expr] = []
        for branch in node.args["ifs"]:
            if operand is None:
                conditions.append(self.condition(branch.this, "CASE/WHEN"))
            else:
                conditions.append(operators.compare(exp.EQ, self.bind(operand), self.bind(branch.this), self._settings))
            values.append(self.bind(branch.args["true"]))
        default = node.args.get("default")
        last = self.bind(default) if default is not None else typed(exp.Null(), NULL)
        *converted, last = self._unified([*values, last], "CASE")
        branches = list(zip(conditions, converted, strict=True))
        return case(type_of(last), branches, last if default is not None else None)

    def _unified(self, nodes: Sequence[exp.Expr], what: str) -> list[exp.Expr]:
        type_ = common_type([type_of(node) for node in nodes], what)
        return [convert(node, type_, self._settings) for node in nodes]

    def _coalesce(self, arguments: Sequence[exp.Expr]) -> exp.Expr:
        nodes = self._unified([self.bind(a) for a in arguments], "COALESCE")
        return typed(exp.Coalesce(this=nodes[0], expressions=nodes[1:]), type_of(nodes[0]))

    def _nullif(self, arguments: Sequence[exp.Expr]) -> exp.Expr:
        left, right = (self.bind(a) for a in arguments)
        same = operators.compare(exp.EQ, left, right, self._settings)
        kept = (
            convert(left, type_of(right), self._settings)
            if is_unknown(left) and not is_unknown(right)
            else settle(left, self._settings)
        )
        return case(type_of(kept), [(same, null(type_of(kept)))], kept.copy())

    def _extreme(self, name: str, arguments: Sequence[exp.Expr]) -> exp.Expr:
        nodes = self._unified([self.bind(a) for a in arguments], name.upper())
        return nodes[0] if len(nodes) == 1 else call(type_of(nodes[0]), name, *nodes)

    # --- casts, arrays, structs, json ----------------------------------------------------------------

    def _cast(self, node: exp.Cast) -> exp.Expr:
        target = sql_type(node.args["to"])
        if isinstance(node.this, exp.Array) and not node.this.expressions:
            return array_literal([], target)
        if isinstance(node.this, exp.IntDiv):  # sqlglot's reading of div(a, b)
            return invoke("div", [self.bind(node.this.this), self.bind(node.this.expression)], self._settings)
        return cast(self.bind(node.this), target, self._settings)

    def _array(self, node: exp.Array) -> exp.Expr:
        if len(node.expressions) == 1 and isinstance(node.expressions[0], QUERY):
            bound, columns = self._surroundings.subquery(node.expressions[0])
            name, type_ = columns[0]
            value = exp.column(name, table="listed", quoted=True)
            source = exp.Subquery(this=bound, alias=exp.TableAlias(this=exp.to_identifier("listed", quoted=True)))
            wrapped = exp.Anonymous(
                this="array_agg", expressions=[exp.Anonymous(this="named_struct", expressions=[text("v"), value])]
            )
            item = exp.Dot(this=exp.column("s"), expression=exp.to_identifier("v"))
            listed = exp.Anonymous(
                this="transform", expressions=[wrapped, exp.Lambda(this=item, expressions=[exp.to_identifier("s")])]
            )
            rows = exp.Select(expressions=[exp.alias_(listed, "listed", quoted=True)]).from_(source)
            return typed(exp.Subquery(this=rows), array_of(type_))
        if not node.expressions:
            raise UndefinedObject(
                "cannot determine type of empty array",
                hint="Explicitly cast to the desired type, for example ARRAY[]::integer[].",
            )
        items = self._unified([self.bind(item) for item in node.expressions], "ARRAY")
        return array_literal(items, array_of(type_of(items[0])))

    def _bracket(self, node: exp.Bracket) -> exp.Expr:
        inner = self.bind(node.this)
        index = node.expressions[0]
        if type_of(inner).kind is Kind.JSONB:
            return jsonb.member(inner, self.bind(index), self._settings, as_text=False)
        if type_of(inner).kind is not Kind.ARRAY:
            raise DatatypeMismatch(f"cannot subscript type {type_of(inner)} because it does not support subscripting")
        if isinstance(index, exp.Slice):
            low, high = index.this, index.args.get("expression")
            return arrays.part(
                inner, self.bind(low) if low else None, self.bind(high) if high else None, self._settings
            )
        return arrays.element(inner, self.bind(index), self._settings)

    def _row(self, node: exp.Expr) -> exp.Expr:
        parts = [self.settled(part) for part in node.expressions]
        fields = [(f"f{index}", type_of(part)) for index, part in enumerate(parts, start=1)]
        arguments: list[exp.Expr] = []
        for (name, _), part in zip(fields, parts, strict=True):
            arguments += [text(name), part]
        return call(struct_of(*fields), "named_struct", *arguments)

    def _dot(self, node: exp.Dot) -> exp.Expr:
        if isinstance(node.expression, exp.Func):  # a function named with its schema
            return self.bind(node.expression)
        inner = self.bind(node.this)
        type_ = type_of(inner)
        name = node.expression.name
        for field_name, field_type in type_.fields:
            if field_name == name:
                return field(inner, name, field_type)
        if type_.kind is not Kind.STRUCT:
            raise WrongObjectType(f"column notation .{name} applied to type {type_}, which is not a composite type")
        raise UndefinedColumn(
            f'column "{name}" not found in data type {type_}', hint=nearest(name, [n for n, _ in type_.fields])
        )

    def _json_member(self, node: exp.Expr) -> exp.Expr:
        as_text = isinstance(node, exp.JSONExtractScalar)
        current = self._json(node.this)
        keys: list[exp.Expr] = []
        if isinstance(node.expression, exp.JSONPath):
            for step in node.expression.expressions:
                match step:
                    case exp.JSONPathKey():
                        keys.append(text(str(step.this)))
                    case exp.JSONPathSubscript():
                        keys.append(integer(int(step.this)))
        else:
            keys.append(self.bind(node.expression))
        for position, key in enumerate(keys):
            current = jsonb.member(current, key, self._settings, as_text=as_text and position == len(keys) - 1)
        return current

    def _json(self, node: exp.Expr) -> exp.Expr:
        inner = self.bind(node)
        if is_unknown(inner):
            return convert(inner, JSONB, self._settings)
        if type_of(inner).kind is not Kind.JSONB:
            raise operators.no_operator("->", inner, text(""))
        return inner

    def _json_path(self, node: exp.Expr) -> exp.Expr:
        as_text = isinstance(node, exp.JSONBExtractScalar)
        return jsonb.path(self._json(node.this), self.bind(node.expression), self._settings, as_text=as_text)

    def _contains(self, node: exp.Expr) -> exp.Expr:
        left, right = self.bind(node.this), self.bind(node.expression)
        if isinstance(node, exp.ArrayContainedBy):
            left, right = right, left
        if type_of(left).kind is Kind.JSONB or type_of(right).kind is Kind.JSONB:
            return jsonb.contains(convert(left, JSONB, self._settings), right, self._settings)
        if type_of(left).kind is Kind.ARRAY and is_unknown(right):
            right = convert(right, type_of(left), self._settings)
        if type_of(left).kind is not Kind.ARRAY or type_of(right).kind is not Kind.ARRAY:
            raise operators.no_operator("@>", left, right)
        return arrays.contains(left, right, self._settings)

    def _overlaps(self, node: exp.Expr) -> exp.Expr:
        return arrays.overlaps(self.bind(node.this), self.bind(node.expression), self._settings)

    def _overlapping(self, node: exp.Expr) -> exp.Expr:
        sides = [_row(side) for side in (node.this, node.expression)]
        if any(side is None or len(side) != 2 for side in sides):
            raise SyntaxError_("wrong number of parameters on one side of OVERLAPS expression")
        left, right = ([self.bind(part) for part in side] for side in sides if side is not None)
        return spans.overlaps(left, right, self._settings)

    def _json_without(self, node: exp.Expr) -> exp.Expr:
        return invoke("jsonb_delete_path", [self._json(node.this), self.bind(node.expression)], self._settings)

    def _json_path_test(self, node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.MatchAgainst):  # `@@`
            return invoke("jsonb_path_match", [self._json(node.expressions[0]), self.bind(node.this)], self._settings)
        return invoke("jsonb_path_exists", [self._json(node.this), self.bind(node.expression)], self._settings)

    def _unicode(self, node: exp.Expr) -> exp.Expr:
        made = invoke("unistr", [text(node.name)], self._settings)
        return typed(made, NULL)

    def _has_key(self, node: exp.Expr) -> exp.Expr:
        return jsonb.has_key(self._json(node.this), self.bind(node.expression), self._settings)

    def _has_keys(self, node: exp.Expr) -> exp.Expr:
        every = isinstance(node, exp.JSONBContainsAllTopKeys)
        return jsonb.has_keys(self._json(node.this), self.bind(node.expression), self._settings, every=every)

    # --- calls ---------------------------------------------------------------------------------------

    def _call(self, name: str, arguments: list[exp.Expr], node: exp.Expr) -> exp.Expr:
        match name:
            case "coalesce":
                return self._coalesce(arguments)
            case "nullif":
                return self._nullif(arguments)
            case "greatest" | "least":
                return self._extreme(name, arguments)
            case "array" if len(arguments) == 1 and isinstance(arguments[0], QUERY):
                return self._array(exp.Array(expressions=arguments))
            case "row" | "struct":
                return self._row(node)
            case "extract":
                return temporal.extract(temporal.unit_of(arguments[0].name), self.bind(arguments[1]), self._settings)
            case (
                "now"
                | "current_timestamp"
                | "transaction_timestamp"
                | "statement_timestamp"
                | "proctime"
                | "clock_timestamp"
            ):
                return self._now()
            case "current_date":
                return convert(self._now(), DATE, self._settings)
            case "localtimestamp":
                return convert(self._now(), TIMESTAMP, self._settings)
            case "localtime" | "current_time":
                return convert(self._now(), TIME, self._settings)
            case "current_user" | "session_user" | "user":
                return text("root")
            case "if":
                return self.bind(
                    exp.Case(
                        ifs=[exp.If(this=arguments[0], true=arguments[1])],
                        default=arguments[2] if len(arguments) > 2 else None,
                    )
                )
            case "make_interval":
                return self._make_interval(arguments)
        if is_aggregate(name) or (name in ORDERED and any(isinstance(a, exp.Order) for a in arguments)):
            return self._aggregate(name, arguments, None, ())
        if name in _RANKING or name in _OFFSET:
            raise GroupingError(f"window function {name} requires an OVER clause")
        if not is_function(name) and name in _CAST_NAMES and len(arguments) == 1:
            return cast(self.bind(arguments[0]), _CAST_NAMES[name], self._settings)
        bound = [self.bind(argument) for argument in arguments]
        if not is_function(name):
            written = self._functions.function(name) if self._functions is not None else None
            if written is not None:
                return self.inlined(written, bound)
            if name in _SET_RETURNING:
                raise FeatureNotSupported(f"set-returning functions are not allowed in {self._clause.value}")
            raise undefined(name, bound, [*aggregate_names(), *_RANKING, *_OFFSET])
        if name in _VOLATILE and name not in self._usage.volatile:
            self._usage.volatile.append(name)
        return invoke(name, bound, self._settings)

    def inlined(self, function: UserFunction, arguments: list[exp.Expr]) -> exp.Expr:
        """The body of a user's function over its arguments."""
        types = [type_ for _, type_ in function.parameters]
        fits = len(types) == len(arguments) and all(
            castable(type_of(node), type_, Context.IMPLICIT) for node, type_ in zip(arguments, types, strict=True)
        )
        if not fits:
            raise undefined(function.name, arguments, [function.name])
        if self._depth >= MAX_DEPTH:
            raise FeatureNotSupported(f'function "{function.name}" calls itself, or too many others in turn')
        given = [convert(node, type_, self._settings) for node, type_ in zip(arguments, types, strict=True)]
        if function.volatile and function.name not in self._usage.volatile:
            self._usage.volatile.append(function.name)
        if function.language == "python":
            called = call(function.returns, function.spark_name(raises=self._settings.strict), *given)
            return self._unless_null(function, given, called)
        inside = self._surroundings.around(list(zip(parameter_names(function), given, strict=True)))
        binder = ExpressionBinder(inside, self._settings, self._usage, Clause.FROM, self._functions, self._depth + 1)
        value = binder.bind(body_of(function))
        if not castable(type_of(value), function.returns, Context.ASSIGNMENT):
            raise DatatypeMismatch(
                f'return type mismatch in function "{function.name}"',
                detail=f"It is declared to return {function.returns}, and its body is of type {type_of(value)}.",
            )
        made = typed(exp.Paren(this=convert(value, function.returns, self._settings)), function.returns)
        return self._unless_null(function, given, made)

    def _unless_null(self, function: UserFunction, given: Sequence[exp.Expr], made: exp.Expr) -> exp.Expr:
        if not function.strict or not given:
            return made
        known = conjunction([negation(is_null(node.copy())) for node in given])
        return case(function.returns, [(known, made)])

    def _make_interval(self, arguments: list[exp.Expr]) -> exp.Expr:
        given: dict[str, exp.Expr] = {}
        for index, argument in enumerate(arguments):
            if isinstance(argument, exp.Kwarg):
                given[argument.this.name.lower()] = self.bind(argument.expression)
            else:
                given[temporal.INTERVAL_PARTS[index]] = self.bind(argument)
        parts = [given.get(part, integer(0)) for part in temporal.INTERVAL_PARTS]
        return invoke("make_interval", parts, self._settings)

    def _now(self) -> exp.Expr:
        self._usage.now = True
        if self._settings.now_ms is None:
            return call(TIMESTAMPTZ, NOW)
        return now_literal(self._settings.now_ms)

    # --- aggregates and windows ----------------------------------------------------------------------

    def _aggregate(
        self,
        name: str,
        arguments: Sequence[exp.Expr],
        condition: exp.Expr | None,
        order: Sequence[exp.Expr],
        arguments_in: Clause = Clause.AGGREGATE,
    ) -> exp.Expr:
        if not self._clause.aggregates:
            if self._clause is Clause.AGGREGATE:
                raise GroupingError("aggregate function calls cannot be nested")
            raise GroupingError(f"aggregate functions are not allowed in {self._clause.value}")
        inside = self.within(arguments_in)
        distinct = False
        items = list(arguments)
        ordered = list(order)
        # DISTINCT wraps the arguments and ORDER BY hangs on one of them.
        for index, item in enumerate(items):
            if isinstance(item, exp.Order):
                ordered += item.expressions
                items[index] = item = item.this
            if isinstance(item, exp.Distinct):
                distinct = True
                items[index : index + 1] = item.expressions
        star = len(items) == 1 and isinstance(items[0], exp.Star)
        bound = [] if star else [inside.bind(item) for item in items if not isinstance(item, exp.Star)]
        if distinct:
            items_bound = [settle(item, self._settings) for item in bound]
            bound = items_bound
        made = AggregateCall(
            name,
            bound,
            star=star or (name == "count" and not items),
            distinct=distinct,
            order=[inside.ordered(item) for item in ordered],
            condition=None if condition is None else inside.condition(condition, "FILTER"),
        )
        special = HYPOTHETICAL.get(name) or ORDERED.get(name)
        return special(made, self._settings) if special else aggregate(made, self._settings)

    def ordered(self, node: exp.Expr) -> exp.Expr:
        """A sort key with its nulls placed as PostgreSQL places them."""
        inner = node.this if isinstance(node, exp.Ordered) else node
        return self.sorted_by(settle(self.bind(inner), self._settings), node)

    def sorted_by(self, bound: exp.Expr, node: exp.Expr) -> exp.Expr:
        desc = bool(node.args.get("desc")) if isinstance(node, exp.Ordered) else False
        explicit = node.args.get("nulls_first") if isinstance(node, exp.Ordered) else None
        first = desc if explicit is None else bool(explicit)
        key = operators.sort_key(bound)
        return typed(exp.Ordered(this=key, desc=desc, nulls_first=first), type_of(bound))

    def _filter(self, node: exp.Filter) -> exp.Expr:
        condition = node.expression.this
        inner = node.this
        if isinstance(inner, exp.WithinGroup):
            return self._within_group(inner, condition)
        found = call_of(inner)
        if found is None or not is_aggregate(found[0]):
            raise WrongObjectType("FILTER specified, but the function is not an aggregate function")
        return self._aggregate(found[0], found[1], condition, ())

    def _within_group(self, node: exp.WithinGroup, condition: exp.Expr | None = None) -> exp.Expr:
        found = call_of(node.this)
        if found is None or not (is_aggregate(found[0]) or found[0] in HYPOTHETICAL):
            raise undefined(node.this.name.lower(), [])
        return self._aggregate(found[0], found[1], condition, node.expression.expressions)

    def _window(self, node: exp.Window) -> exp.Expr:
        if not self._clause.windows:
            raise GroupingError(f"window functions are not allowed in {self._clause.value}")
        inside = self.within(Clause.WINDOW)
        partition, order, spec = self._window_parts(node, inside)
        function = node.this
        ignore_nulls = isinstance(function, exp.IgnoreNulls)
        if isinstance(function, exp.IgnoreNulls | exp.RespectNulls):
            function = function.this
        condition = None
        if isinstance(function, exp.Filter):
            condition, function = function.expression.this, function.this
        found = call_of(function)
        if found is None:
            raise WrongObjectType(
                "OVER specified, but the expression is not a window function nor an aggregate function"
            )
        name, arguments = found

        unframed = spec is None or name in _RANKING or name in ("lag", "lead")

        def over(inner: exp.Expr, frame: exp.WindowSpec | None = None if unframed else spec) -> exp.Expr:
            placed = [item.copy() for item in order]
            if not placed and (name in _RANKING or name in _OFFSET):
                placed = [exp.Ordered(this=exp.Null(), desc=False, nulls_first=False)]
            made = exp.Window(
                this=inner,
                partition_by=[item.copy() for item in partition],
                over="OVER",
                spec=frame.copy() if frame is not None else None,
            )
            if placed:
                made.set("order", exp.Order(expressions=placed))
            return typed(made, type_of(inner))

        if spec is not None and frames.is_special(spec) and name not in _RANKING and name not in ("lag", "lead"):
            return self._framed(name, arguments, condition, order, spec, over, inside)
        if name in _RANKING:
            type_, cast_to = _RANKING[name]
            given = [convert(inside.bind(a), INTEGER, self._settings) for a in arguments]
            made = over(call(type_, name, *given))
            return spark_cast(made, cast_to) if cast_to != type_ else made
        if name in _OFFSET:
            return self._offset(name, [inside.bind(a) for a in arguments], over, ignore_nulls)
        if not is_aggregate(name):
            raise WrongObjectType(f"OVER specified, but {name} is not a window function nor an aggregate function")
        made = inside._aggregate(name, arguments, condition, (), Clause.WINDOW)
        return _replaced(made, over)

    def _framed(
        self,
        name: str,
        arguments: Sequence[exp.Expr],
        condition: exp.Expr | None,
        order: Sequence[exp.Expr],
        spec: exp.WindowSpec,
        over: Callable[..., exp.Expr],
        inside: ExpressionBinder,
    ) -> exp.Expr:
        """A frame that Spark does not have."""
        star = name == "count" and (not arguments or isinstance(arguments[0], exp.Star))
        plain = spec.copy()
        plain.set("exclude", None)
        made = frames.FramedCall(
            name,
            [] if star else [inside.bind(argument) for argument in arguments],
            star,
            None if condition is None else inside.condition(condition, "FILTER"),
            [key.this for key in order],
            plain,
            frames.excluded(spec),
        )
        return frames.framed(made, lambda inner, frame: over(inner, frame=frame), self._settings)

    def _offset(
        self, name: str, arguments: list[exp.Expr], over: Callable[[exp.Expr], exp.Expr], ignore_nulls: bool
    ) -> exp.Expr:
        if not arguments:
            raise undefined(name, arguments)
        value, *rest = arguments
        value = settle(value, self._settings)
        if name in ("lag", "lead"):
            offset = [convert(rest[0], INTEGER, self._settings)] if rest else []
            if len(rest) > 1:
                value, default = self._unified([value, rest[1]], name)
                offset.append(default)
            inner = call(type_of(value), name, value, *offset)
        elif name == "nth_value":
            inner = call(type_of(value), name, value, convert(rest[0], INTEGER, self._settings))
        else:
            inner = call(type_of(value), name, value)
        if ignore_nulls:
            inner = typed(exp.IgnoreNulls(this=inner), type_of(inner))
        return over(inner)

    def _window_parts(
        self, node: exp.Window, inside: ExpressionBinder
    ) -> tuple[list[exp.Expr], list[exp.Expr], exp.WindowSpec | None]:
        named = node.args.get("alias")
        partition_by = list(node.args.get("partition_by") or ())
        order_by = node.args.get("order")
        spec = node.args.get("spec")
        while named is not None:  # a named window may be built on another
            base = self._surroundings.window(named.name)
            if base is None:
                raise UndefinedObject(f'window "{named.name}" does not exist')
            named = base.args.get("alias")
            partition_by = partition_by or list(base.args.get("partition_by") or ())
            order_by = order_by or base.args.get("order")
            spec = spec or base.args.get("spec")
        partition = [settle(inside.bind(item), self._settings) for item in partition_by]
        order = [inside.ordered(item) for item in (order_by.expressions if order_by else ())]
        if spec is None:
            return partition, order, None
        frame = self._frame(spec, inside)
        if any(isinstance(bound, exp.Expr) and bound.meta.get(_MICROS) for bound in frame.args.values()):
            order = [self._in_micros(order)]
        return partition, order, frame

    def _in_micros(self, order: Sequence[exp.Expr]) -> exp.Expr:
        """The one moment that a frame of time is ordered by, in the unit of its bounds."""
        if len(order) != 1:
            raise SyntaxError_("RANGE with offset PRECEDING/FOLLOWING requires exactly one ORDER BY column")
        key = order[0].copy()
        moment = key.this
        is_time = type_of(moment).kind is Kind.TIME
        key.set("this", typed(moment, BIGINT) if is_time else micros_of(moment))
        return key

    def _frame(self, spec: exp.WindowSpec, inside: ExpressionBinder) -> exp.WindowSpec:
        kind = str(spec.args.get("kind") or "").upper()
        made = exp.WindowSpec(kind=kind, exclude=spec.args.get("exclude"))
        for side in ("start", "end"):
            bound = spec.args.get(side)
            if isinstance(bound, exp.Expr):
                bound = self._frame_bound(inside.bind(bound))
            made.set(side, bound.upper() if isinstance(bound, str) else bound)
            direction = spec.args.get(f"{side}_side")
            made.set(f"{side}_side", direction.upper() if direction else None)
        if made.args.get("end") is None:
            made.set("end", "CURRENT ROW")
        return made

    def _frame_bound(self, node: exp.Expr) -> exp.Expr:
        constant = interval_constant(node)
        if constant is None:
            return convert(node, INTEGER, self._settings) if is_unknown(node) else node
        if constant[0]:
            raise FeatureNotSupported("a window frame in months is not supported", hint="Write the frame in days.")
        made = bigint(constant[1] * MICROS_PER_DAY + constant[2])
        made.meta[_MICROS] = True
        return made


def _replaced(node: exp.Expr, over: Callable[[exp.Expr], exp.Expr]) -> exp.Expr:
    """The expression with each aggregate in it put over the window."""
    if node.meta.get(AGGREGATE):
        bare = node.copy()
        bare.meta.pop(AGGREGATE)
        return over(bare)

    def put(inner: exp.Expr) -> exp.Expr:
        if inner.meta.get(AGGREGATE):
            bare = inner.copy()
            bare.meta.pop(AGGREGATE)
            return over(bare)
        return inner

    return node.transform(put)


def _row(node: exp.Expr) -> Sequence[exp.Expr] | None:
    if isinstance(node, exp.Tuple):
        return node.expressions
    if isinstance(node, exp.Anonymous) and str(node.this).lower() == "row":
        return node.expressions
    return None


def _quantifier(node: exp.Expr) -> tuple[exp.Expr, bool] | None:
    """What stands in ANY (...) or ALL (...), and whether it is ALL."""
    match node:
        case exp.Any():
            return _inside(node.this), False
        case exp.All():
            return _inside(node.this), True
        case exp.Anonymous() if str(node.this).lower() in ("all", "some", "any") and len(node.expressions) == 1:
            return _inside(node.expressions[0]), str(node.this).lower() == "all"
    return None


def _inside(node: exp.Expr) -> exp.Expr:
    while isinstance(node, exp.Paren | exp.Subquery) and not (
        isinstance(node, exp.Subquery) and node.args.get("alias")
    ):
        node = node.this
    return node


_ARITHMETIC = {exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/", exp.Mod: "%"}
_BITS = {
    exp.BitwiseAnd: "&",
    exp.BitwiseOr: "|",
    exp.BitwiseXor: "#",
    exp.BitwiseLeftShift: "<<",
    exp.BitwiseRightShift: ">>",
}
_SMALLEST = ("2147483648", "9223372036854775808")
_RANKING: dict[str, tuple[SqlType, SqlType]] = {
    "row_number": (INTEGER, BIGINT),
    "rank": (INTEGER, BIGINT),
    "dense_rank": (INTEGER, BIGINT),
    "percent_rank": (DOUBLE, DOUBLE),
    "cume_dist": (DOUBLE, DOUBLE),
    "ntile": (INTEGER, INTEGER),
}
_OFFSET = frozenset(("lag", "lead", "first_value", "last_value", "nth_value"))


def window_names() -> tuple[str, ...]:
    return (*_RANKING, *_OFFSET)


_CAST_NAMES = {
    "text": VARCHAR, "int2": SMALLINT, "int4": INTEGER, "int8": BIGINT, "float4": REAL, "float8": DOUBLE,
    "bool": BOOLEAN, "numeric": NUMERIC, "varchar": VARCHAR,
}  # fmt: skip

_HANDLERS: dict[type[exp.Expr], Callable[[ExpressionBinder, exp.Expr], exp.Expr]] = {}


def _handle(handler: Callable[..., exp.Expr], *kinds: type[exp.Expr]) -> None:
    for kind in kinds:
        _HANDLERS[kind] = handler


_handle(ExpressionBinder._literal, exp.Literal)
_handle(ExpressionBinder._string, exp.RawString, exp.ByteString, exp.National)
_handle(ExpressionBinder._hex, exp.HexString)
_handle(ExpressionBinder._boolean, exp.Boolean)
_handle(ExpressionBinder._null, exp.Null)
_handle(ExpressionBinder._column, exp.Column)
_handle(ExpressionBinder._paren, exp.Paren)
_handle(ExpressionBinder._interval, exp.Interval)
_handle(ExpressionBinder._parameter, exp.Parameter, exp.Placeholder)
_handle(ExpressionBinder._alias, exp.Alias)
_handle(ExpressionBinder._arithmetic, exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod)
_handle(ExpressionBinder._power, exp.Pow)
_handle(ExpressionBinder._negative, exp.Neg)
_handle(ExpressionBinder._bits, *_BITS)
_handle(ExpressionBinder._bit_not, exp.BitwiseNot)
_handle(ExpressionBinder._connector, exp.And, exp.Or)
_handle(ExpressionBinder._not, exp.Not)
_handle(
    ExpressionBinder._comparison, exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ, exp.NullSafeNEQ
)
_handle(ExpressionBinder._between, exp.Between)
_handle(ExpressionBinder._in, exp.In)
_handle(ExpressionBinder._exists, exp.Exists)
_handle(ExpressionBinder._scalar, exp.Subquery, exp.Select, exp.Union, exp.Intersect, exp.Except, exp.Values)
_handle(ExpressionBinder._is, exp.Is)
_handle(ExpressionBinder._dpipe, exp.DPipe)
_handle(ExpressionBinder._like, exp.Like, exp.ILike)
_handle(ExpressionBinder._escape, exp.Escape)
_handle(ExpressionBinder._regex, exp.RegexpLike, exp.RegexpILike)
_handle(ExpressionBinder._similar, exp.SimilarTo)
_handle(ExpressionBinder._collate, exp.Collate)
_handle(ExpressionBinder._at_zone, exp.AtTimeZone)
_handle(ExpressionBinder._case, exp.Case)
_handle(ExpressionBinder._cast, exp.Cast)
_handle(ExpressionBinder._array, exp.Array)
_handle(ExpressionBinder._bracket, exp.Bracket)
_handle(ExpressionBinder._row, exp.Tuple)
_handle(ExpressionBinder._dot, exp.Dot)
_handle(ExpressionBinder._json_member, exp.JSONExtract, exp.JSONExtractScalar)
_handle(ExpressionBinder._json_path, exp.JSONBExtract, exp.JSONBExtractScalar)
_handle(ExpressionBinder._contains, exp.ArrayContainsAll, exp.ArrayContainedBy)
_handle(ExpressionBinder._overlaps, exp.ArrayOverlaps)
_handle(ExpressionBinder._overlapping, exp.Overlaps)
_handle(ExpressionBinder._json_without, exp.JSONBDeleteAtPath)
_handle(ExpressionBinder._json_path_test, exp.JSONBPathExists, exp.MatchAgainst)
_handle(ExpressionBinder._unicode, exp.UnicodeString)
_handle(ExpressionBinder._has_key, exp.JSONBContainsTopKey, exp.JSONBContains)
_handle(ExpressionBinder._has_keys, exp.JSONBContainsAnyTopKeys, exp.JSONBContainsAllTopKeys)
_handle(ExpressionBinder._filter, exp.Filter)
_handle(ExpressionBinder._within_group, exp.WithinGroup)
_handle(ExpressionBinder._window, exp.Window)
