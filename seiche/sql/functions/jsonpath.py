"""jsonpath in its lax mode: a constant path becomes one Spark expression over the items it has reached.

A path is read by `_Parser` straight into Spark: what a part of it yields is an array of json texts, what a predicate
yields a boolean. Arrays are opened by themselves where a member or a comparison asks for single items. Left out are
the strict mode, `.**`, datetimes and `keyvalue()`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from itertools import count

from sqlglot import exp

from seiche.errors import FeatureNotSupported, InvalidParameter, SyntaxError_
from seiche.sql.casts import to_text
from seiche.sql.functions.jsonb import items_of, starts, variant
from seiche.sql.functions.registry import function
from seiche.sql.nodes import (
    Settings,
    binary,
    boolean,
    call,
    case,
    comparison,
    conjunction,
    disjunction,
    equal,
    integer,
    lambda_,
    let,
    negation,
    not_null,
    quiet_cast,
    spark_cast,
    text,
    typed,
    variable,
)
from seiche.sql.operators import arithmetic
from seiche.sql.regexes import translate
from seiche.types import BOOLEAN, INTEGER, JSONB, NUMERIC, VARCHAR, array_of

Nodes = list[exp.Expr]
_ITEMS = array_of(JSONB)
_TOKEN = re.compile(
    r'\s*(?:("(?:[^"\\]|\\.)*")|(\$[A-Za-z_]\w*)|(\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)|([A-Za-z_]\w*)'
    r"|(==|!=|<>|<=|>=|&&|\|\||[$@.*\[\]()?,<>!+\-/%]))"
)
_COMPARISONS: dict[str, type[exp.Binary]] = {
    "==": exp.EQ, "!=": exp.NEQ, "<>": exp.NEQ, "<": exp.LT, "<=": exp.LTE, ">": exp.GT, ">=": exp.GTE,
}  # fmt: skip


class _Parser:
    """Reads one path. `variables` are the values of its `$names`."""

    def __init__(self, path: str, root: exp.Expr, variables: dict[str, object], settings: Settings) -> None:
        self._path = path
        self._tokens: list[str] = []
        at = 0
        while path[at:].strip():
            found = _TOKEN.match(path, at)
            if found is None:
                raise self._error()
            self._tokens.append(found[0].strip())
            at = found.end()
        self._at = 0
        self._root = root
        self._current: exp.Expr | None = None
        self._variables = variables
        self._settings = settings
        self._names = (f"p{number}" for number in count())

    def _error(self) -> SyntaxError_:
        return SyntaxError_(f'syntax error in jsonpath "{self._path}"')

    def _sees(self, *words: str) -> bool:
        return self._at < len(self._tokens) and self._tokens[self._at] in words

    def _next(self) -> str:
        if self._at >= len(self._tokens):
            raise self._error()
        self._at += 1
        return self._tokens[self._at - 1]

    def _accept(self, *words: str) -> str | None:
        return self._next() if self._sees(*words) else None

    def _expect(self, word: str) -> None:
        if self._next() != word:
            raise self._error()

    # --- whole paths ---------------------------------------------------------------------------------

    def items(self) -> exp.Expr:
        """What the path yields; a predicate yields one boolean."""
        self._mode()
        start = self._at
        try:
            made = self._value()
            if self._at == len(self._tokens):
                return made
        except SyntaxError_:
            pass
        self._at = start
        truth = self._predicate()
        self._finish()
        shown = case(JSONB, [(truth, text("true")), (negation(truth.copy()), text("false"))], text("null"))
        return call(_ITEMS, "array", shown)

    def truth(self) -> exp.Expr:
        self._mode()
        made = self._predicate()
        self._finish()
        return made

    def _mode(self) -> None:
        if self._accept("strict"):
            raise FeatureNotSupported("the strict mode of jsonpath is not supported", hint="Leave out the word strict.")
        self._accept("lax")

    def _finish(self) -> None:
        if self._at != len(self._tokens):
            raise self._error()

    # --- predicates ----------------------------------------------------------------------------------

    def _predicate(self) -> exp.Expr:
        parts = [self._conjunct()]
        while self._accept("||"):
            parts.append(self._conjunct())
        return disjunction(parts) if len(parts) > 1 else parts[0]

    def _conjunct(self) -> exp.Expr:
        parts = [self._test()]
        while self._accept("&&"):
            parts.append(self._test())
        return conjunction(parts) if len(parts) > 1 else parts[0]

    def _test(self) -> exp.Expr:
        if self._accept("!"):
            return negation(typed(exp.Paren(this=self._test()), BOOLEAN))
        if self._sees("exists"):
            self._next()
            self._expect("(")
            found = self._value()
            self._expect(")")
            return comparison(exp.GT, call(INTEGER, "size", found), integer(0))
        if self._sees("("):
            start = self._at
            try:
                self._next()
                inner = self._predicate()
                self._expect(")")
            except SyntaxError_:
                self._at = start  # it was an operand
            else:
                return typed(exp.Paren(this=inner), BOOLEAN)
        left = self._value()
        symbol = self._accept(*_COMPARISONS)
        if symbol is not None:
            return self._compared(_COMPARISONS[symbol], left, self._value())
        if self._accept("starts"):
            self._expect("with")
            prefix = text(_string(self._next()))
            return self._some_text(left, lambda shown: call(BOOLEAN, "startswith", shown, prefix))
        if self._accept("like_regex"):
            pattern = _string(self._next())
            flags = _string(self._next()) if self._accept("flag") else ""
            wanted = text(translate(pattern, flags).java)
            return self._some_text(left, lambda shown: call(BOOLEAN, "rlike", shown, wanted))
        raise self._error()

    def _compared(self, kind: type[exp.Binary], left: exp.Expr, right: exp.Expr) -> exp.Expr:
        a, b = variable(next(self._names), JSONB), variable(next(self._names), JSONB)
        inner = call(BOOLEAN, "exists", self._opened(right), lambda_(_compare(kind, a, b), b.name))
        return call(BOOLEAN, "exists", self._opened(left), lambda_(inner, a.name))

    def _some_text(self, items: exp.Expr, test: Callable[[exp.Expr], exp.Expr]) -> exp.Expr:
        item = variable(next(self._names), JSONB)
        holds = conjunction([starts(item, '"'), test(_text_of(item))])
        return call(BOOLEAN, "exists", self._opened(items), lambda_(holds, item.name))

    # --- values --------------------------------------------------------------------------------------

    def _value(self) -> exp.Expr:
        left = self._product()
        while symbol := self._accept("+", "-"):
            left = self._computed(symbol, left, self._product())
        return left

    def _product(self) -> exp.Expr:
        left = self._unary()
        while symbol := self._accept("*", "/", "%"):
            left = self._computed(symbol, left, self._unary())
        return left

    def _unary(self) -> exp.Expr:
        if self._accept("-"):
            return self._computed("-", call(_ITEMS, "array", text("0")), self._unary())
        self._accept("+")
        return self._accessors(self._primary())

    def _computed(self, symbol: str, left: exp.Expr, right: exp.Expr) -> exp.Expr:
        """Arithmetic of single numbers; nothing where there is not exactly one on each side."""
        numbers = [_number(call(JSONB, "get", items.copy(), integer(0))) for items in (left, right)]
        result = arithmetic(symbol, numbers[0], numbers[1], Settings(strict=False))
        shown = call(_ITEMS, "array", typed(to_text(result, self._settings), JSONB))
        return call(_ITEMS, "array_compact", shown)

    def _primary(self) -> exp.Expr:
        token = self._next()
        match token:
            case "$":
                return call(_ITEMS, "array", self._root.copy())
            case "@":
                if self._current is None:
                    raise self._error()
                return call(_ITEMS, "array", self._current.copy())
            case "(":
                inner = self._value()
                self._expect(")")
                return inner
            case "true" | "false" | "null":
                return call(_ITEMS, "array", text(token))
        if token.startswith("$"):
            if token[1:] not in self._variables:
                raise SyntaxError_(f'could not find jsonpath variable "{token[1:]}"')
            return call(_ITEMS, "array", text(json.dumps(self._variables[token[1:]])))
        if token.startswith('"') or token[0].isdigit():
            return call(_ITEMS, "array", text(token))
        raise self._error()

    def _accessors(self, items: exp.Expr) -> exp.Expr:
        while True:
            if self._accept("."):
                items = self._member(items)
            elif self._accept("["):
                items = self._subscript(items)
            elif self._accept("?"):
                self._expect("(")
                items = self._filtered(items)
                self._expect(")")
            else:
                return items

    def _opened(self, items: exp.Expr) -> exp.Expr:
        """Arrays replaced by their items."""
        item = variable(next(self._names), JSONB)
        inner = case(_ITEMS, [(starts(item, "["), items_of(item))], call(_ITEMS, "array", item.copy()))
        return call(_ITEMS, "flatten", call(_ITEMS, "transform", items, lambda_(inner, item.name)))

    def _each(self, items: exp.Expr, body: Callable[[exp.Expr], exp.Expr]) -> exp.Expr:
        """One item, or none where it is NULL, for each."""
        item = variable(next(self._names), JSONB)
        return call(_ITEMS, "array_compact", call(_ITEMS, "transform", items, lambda_(body(item), item.name)))

    def _member(self, items: exp.Expr) -> exp.Expr:
        name = self._next()
        opened = self._opened(items)
        if name == "*":
            item = variable(next(self._names), JSONB)
            values = call(_ITEMS, "map_values", call(JSONB, "from_json", item, text("map<string,variant>")))
            shown = call(
                _ITEMS, "transform", values, lambda_(exp.Anonymous(this="to_json", expressions=[exp.column("v")]), "v")
            )
            objects = call(_ITEMS, "filter", opened, lambda_(starts(item, "{"), item.name))
            return call(_ITEMS, "flatten", call(_ITEMS, "transform", objects, lambda_(shown, item.name)))
        if self._sees("(") and name in _METHODS:
            self._next()
            self._expect(")")
            return self._each(items if name in ("size", "type") else opened, _METHODS[name])
        key = _string(name) if name.startswith('"') else name
        step = text("$[" + json.dumps(key, ensure_ascii=False) + "]")

        def found(item: exp.Expr) -> exp.Expr:
            value = call(JSONB, "to_json", call(JSONB, "variant_get", variant(item), step.copy(), text("variant")))
            return case(JSONB, [(starts(item, "{"), value)])

        return self._each(opened, found)

    def _subscript(self, items: exp.Expr) -> exp.Expr:
        if self._accept("*"):
            self._expect("]")
            return self._opened(items)
        item = variable(next(self._names), JSONB)
        listed = case(_ITEMS, [(starts(item, "["), items_of(item))], call(_ITEMS, "array", item.copy()))
        whole = variable(next(self._names), _ITEMS)
        pieces: Nodes = []
        while True:
            low = self._position(whole)
            high = self._position(whole) if self._accept("to") else low.copy()
            first = call(INTEGER, "greatest", low, integer(0))
            length = binary(exp.Add, INTEGER, binary(exp.Sub, INTEGER, high, first.copy()), integer(1))
            start = binary(exp.Add, INTEGER, first.copy(), integer(1))
            pieces.append(call(_ITEMS, "slice", whole.copy(), start, call(INTEGER, "greatest", length, integer(0))))
            if not self._accept(","):
                break
        self._expect("]")
        chosen = call(_ITEMS, "concat", *pieces)
        body = let(whole.name, listed, _ITEMS, chosen)
        return call(_ITEMS, "flatten", call(_ITEMS, "transform", items, lambda_(body, item.name)))

    def _position(self, whole: exp.Expr) -> exp.Expr:
        if self._accept("last"):
            last = binary(exp.Sub, INTEGER, call(INTEGER, "size", whole.copy()), integer(1))
            if self._accept("-"):
                return binary(exp.Sub, INTEGER, last, integer(int(self._next())))
            return last
        digits = self._next()
        if not digits.isdigit():
            raise self._error()
        return integer(int(digits))

    def _filtered(self, items: exp.Expr) -> exp.Expr:
        item = variable(next(self._names), JSONB)
        outside, self._current = self._current, item
        truth = self._predicate()
        self._current = outside
        return call(_ITEMS, "filter", self._opened(items), lambda_(truth, item.name))


def _string(token: str) -> str:
    value = json.loads(token) if token.startswith('"') else token
    assert isinstance(value, str)
    return value


def _text_of(item: exp.Expr) -> exp.Expr:
    return call(VARCHAR, "variant_get", variant(item.copy()), text("$"), text("string"))


def _number(item: exp.Expr) -> exp.Expr:
    """A number, or NULL for anything else."""
    return case(NUMERIC, [(call(BOOLEAN, "rlike", item.copy(), text("^[-0-9]")), quiet_cast(item, NUMERIC))])


def _compare(kind: type[exp.Binary], left: exp.Expr, right: exp.Expr) -> exp.Expr:
    """Two items: numbers and strings by their order, others only for equality."""
    numbers = comparison(kind, _number(left), _number(right))
    strings = comparison(kind, _text_of(left), _text_of(right))
    both_numbers = conjunction([not_null(_number(left)), not_null(_number(right))])
    both_strings = conjunction([starts(left, '"'), starts(right, '"')])
    branches = [(both_numbers, numbers), (both_strings, strings)]
    plain = equal(typed(left.copy(), VARCHAR), typed(right.copy(), VARCHAR))
    if kind in (exp.EQ, exp.NEQ):
        words = [call(BOOLEAN, "rlike", side.copy(), text("^(true|false|null)$")) for side in (left, right)]
        one_null = disjunction([equal(typed(side.copy(), VARCHAR), text("null")) for side in (left, right)])
        comparable = disjunction([conjunction(words), one_null])
        branches.append((comparable, plain if kind is exp.EQ else negation(plain)))
    return case(BOOLEAN, branches, boolean(False))


def _rounded(spark: str) -> Callable[[exp.Expr], exp.Expr]:
    def body(item: exp.Expr) -> exp.Expr:
        return typed(spark_cast(call(NUMERIC, spark, _number(item)), VARCHAR), JSONB)

    return body


def _type_name(item: exp.Expr) -> exp.Expr:
    names = {"{": "object", "[": "array", '"': "string", "t": "boolean", "f": "boolean", "n": "null"}
    branches = [(starts(item, mark), text(f'"{name}"')) for mark, name in names.items()]
    return case(JSONB, branches, text('"number"'))


def _size(item: exp.Expr) -> exp.Expr:
    length = spark_cast(call(INTEGER, "json_array_length", item.copy()), VARCHAR)
    return case(JSONB, [(starts(item, "["), length)], text("1"))


def _absolute(item: exp.Expr) -> exp.Expr:
    return call(JSONB, "ltrim", text("-"), to_text(_number(item), Settings()))


def _double(item: exp.Expr) -> exp.Expr:
    quoted = case(VARCHAR, [(starts(item, '"'), _text_of(item))], typed(item.copy(), VARCHAR))
    return typed(to_text(quiet_cast(quoted, NUMERIC), Settings()), JSONB)


_METHODS: dict[str, Callable[[exp.Expr], exp.Expr]] = {
    "size": _size, "type": _type_name, "floor": _rounded("floor"), "ceiling": _rounded("ceil"), "abs": _absolute,
    "double": _double,
}  # fmt: skip


# --- functions ---------------------------------------------------------------------------------------


def _parser(arguments: Nodes, root: exp.Expr, settings: Settings) -> _Parser:
    path = arguments[1]
    if not isinstance(path, exp.Literal):
        raise FeatureNotSupported("a jsonpath must be a constant")
    variables: dict[str, object] = {}
    if len(arguments) > 2:
        if not isinstance(arguments[2], exp.Literal):
            raise FeatureNotSupported("the variables of a jsonpath must be a constant")
        variables = json.loads(arguments[2].this)
        if not isinstance(variables, dict):
            raise InvalidParameter(
                '"vars" argument is not an object', hint="Give the variables of the path by name, as in '{\"min\": 2}'."
            )
    return _Parser(path.this, root, variables, settings)


def query(arguments: Nodes, settings: Settings) -> exp.Expr:
    """The items that a path yields, as an array; NULL for a NULL."""
    root = variable("root", JSONB)
    return let(
        "root",
        arguments[0],
        _ITEMS,
        case(_ITEMS, [(not_null(root.copy()), _parser(arguments, root, settings).items())]),
    )


_TAKES = [JSONB, VARCHAR, JSONB]


@function("jsonb_path_exists", takes=_TAKES, optional=1)
def exists(arguments: Nodes, settings: Settings) -> exp.Expr:
    return comparison(exp.GT, call(INTEGER, "size", query(arguments, settings)), integer(0))


@function("jsonb_path_match", takes=_TAKES, optional=1)
def match(arguments: Nodes, settings: Settings) -> exp.Expr:
    root = variable("root", JSONB)
    truth = _parser(arguments, root, settings).truth()
    return let("root", arguments[0], BOOLEAN, case(BOOLEAN, [(not_null(root.copy()), truth)]))


@function("jsonb_path_query_array", takes=_TAKES, optional=1)
def _query_array(arguments: Nodes, settings: Settings) -> exp.Expr:
    items = call(VARCHAR, "array_join", query(arguments, settings), text(","))
    return call(JSONB, "concat", text("["), items, text("]"))


@function("jsonb_path_query_first", takes=_TAKES, optional=1)
def _query_first(arguments: Nodes, settings: Settings) -> exp.Expr:
    return call(JSONB, "get", query(arguments, settings), integer(0))
