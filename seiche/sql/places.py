"""Places: where in its text a statement says something, for the caret that a client draws under an error.

    text ── PlacingParser ── nodes with places ── binding ── bound nodes with places, errors with positions

The parser notes at each node the place of what made it: a name, a literal, the name of a function, an operator. While
an expression is bound, an error without a position gets that of the innermost node around it (`point_at`), and the
bound expression gets the place at which the written one begins (`begin_as`), for errors that are found later: a column
outside GROUP BY, a literal that is no value of the type it comes to.

Text that is no statement of the user's (a stored default, the body of a function) has places of its own, which say
nothing to the user: `unplaced` takes them out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, ClassVar, TypeVar

from sqlglot import exp
from sqlglot.parsers.risingwave import RisingWaveParser
from sqlglot.tokenizer_core import Token, TokenType

from seiche.errors import SeicheError

N = TypeVar("N", bound=exp.Expr)
T = TypeVar("T")

_START = "start"  # sqlglot's own: the 0-based character
_BEGIN = "begin"  # as the one before, of the whole expression; noted where it has been looked for
# What is wrong with values (class 22) is mostly found when a query runs, and then has no place. The position of a
# literal that is no value of its type is given where it is read.
_OF_TEXT = ("42", "0A", "3F", "3D")


class PlacedName(str):
    """A name that the grammar of statements read, which knows its place."""

    __slots__ = ("place",)
    place: int | None

    def __new__(cls, name: str, place: int | None = None) -> PlacedName:
        made = super().__new__(cls, name)
        made.place = place
        return made


def place_of(node: exp.Expr | str | None) -> int | None:
    """The 1-based character of what makes a node: a name, an operator, a literal. None for what nobody wrote."""
    if not isinstance(node, exp.Expr):
        return getattr(node, "place", None)
    start = node.meta.get(_START)
    if start is None and isinstance(node, exp.Column | exp.Table):
        start = min((part.meta[_START] for part in node.parts if _START in part.meta), default=None)
    return None if start is None else start + 1


def begin_of(node: exp.Expr) -> int | None:
    """The 1-based character at which an expression begins, be it an operator's left operand."""
    places: list[int] = []
    inner: object = node
    while isinstance(inner, exp.Expr):
        known = inner.meta.get(_BEGIN)
        place = place_of(inner) if known is None else known
        if place is not None:
            places.append(place)
        inner = inner.args.get("this") if known is None else None
    if not places:
        return None
    node.meta[_BEGIN] = begin = min(places)
    return begin


def begin_as(bound: N, node: exp.Expr) -> N:
    """The bound expression, placed where the one that was written begins."""
    begin = begin_of(node)
    if begin is not None:
        bound.meta[_START] = begin - 1
    return bound


def point_at(error: SeicheError, place: int | None) -> None:
    """Gives an error its position, unless it has one or is about values."""
    if error.position is None and error.sqlstate[:2] in _OF_TEXT:
        error.position = place


@contextmanager
def pointing_at(node: exp.Expr | str | None) -> Iterator[None]:
    """Errors from inside point at the node, unless they point at something closer."""
    try:
        yield
    except SeicheError as error:
        point_at(error, place_of(node))
        raise


@contextmanager
def reading(written: exp.Expr) -> Iterator[None]:
    """Errors from inside are of a literal that is no value of its type, or of a type that is none; they point at it."""
    try:
        yield
    except SeicheError as error:
        error.position = place_of(written)
        raise


def unplaced(tree: N) -> N:
    """The tree without its places."""
    for node in tree.walk():
        node.meta.pop(_START, None)
        node.meta.pop(_BEGIN, None)
    return tree


# Where sqlglot looks up what makes the node of the operator that it has just read.
_OPERATORS = (
    "TERM", "FACTOR", "EQUALITY", "COMPARISON", "BITWISE", "EXPONENT", "UNARY_PARSERS", "JSON_OPERATORS"
)  # fmt: skip


class PlacingParser(RisingWaveParser):
    """sqlglot's parser, which notes the places of names and literals, and here those of operators, calls and types."""

    PRIMARY_PARSERS: ClassVar[dict[TokenType, Any]] = {
        **RisingWaveParser.PRIMARY_PARSERS,
        TokenType.NULL: lambda self, token: self.expression(exp.Null(), token),
        TokenType.TRUE: lambda self, token: self.expression(exp.Boolean(this=True), token),
        TokenType.FALSE: lambda self, token: self.expression(exp.Boolean(this=False), token),
    }
    BITWISE: ClassVar[dict[TokenType, Any]] = {
        **RisingWaveParser.BITWISE,
        TokenType.DPIPE: lambda **parts: exp.DPipe(**parts, safe=True),
    }

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._shifts: list[tuple[int, Token]] = []
        for table in _OPERATORS:
            self._note_operators(table, lambda: self._prev)
        self._note_operators("RANGE_PARSERS", self._range_operator)
        self._note_operators("COLUMN_OPERATORS", lambda: self._curr)

    def _note_operators(self, table: str, operator: Callable[[], Token]) -> None:
        setattr(self, table, _Operators(getattr(self, table), operator))

    def _range_operator(self) -> Token:
        """The operator before the cursor, or the NOT before it."""
        before = self._tokens[self._index - 2] if self._index > 1 else self._prev
        return before if before.token_type is TokenType.NOT else self._prev

    def _match_pair(self, first: TokenType, second: TokenType, advance: bool = True) -> bool:
        """Notes where `<<` and `>>` stand, which are two tokens. What was read in vain is forgotten."""
        token = self._curr
        matched = super()._match_pair(first, second, advance=advance)
        if matched and advance and first is second and first in (TokenType.LT, TokenType.GT):
            self._shifts = [(index, shift) for index, shift in self._shifts if index < self._index]
            self._shifts.append((self._index, token))
        return matched

    def expression(self, instance: N, token: Token | None = None, comments: list[str] | None = None) -> N:
        if isinstance(instance, exp.BitwiseLeftShift | exp.BitwiseRightShift) and self._shifts:
            _placed(instance, self._shifts.pop()[1])
        elif isinstance(instance, exp.If) and (when := self._last_when()) is not None:
            _placed(instance, when)
        return super().expression(instance, token, comments)

    def _last_when(self) -> Token | None:
        """The WHEN of the CASE that is being read, past those that are read already."""
        inside = 0
        for token in reversed(self._tokens[: self._index]):
            match token.token_type:
                case TokenType.END:
                    inside += 1
                case TokenType.CASE if inside:
                    inside -= 1
                case TokenType.WHEN if not inside:
                    return token
                case TokenType.CASE:
                    return None
        return None

    def _parse_window_spec(self) -> dict[str, str | exp.Expr | None]:
        """A bound that is no expression knows its place too."""
        after = self._curr is not None and self._curr.token_type is TokenType.BETWEEN
        token = self._next if after else self._curr
        spec: dict[str, str | exp.Expr | None] = super()._parse_window_spec()
        if isinstance(spec["value"], str):
            spec["value"] = PlacedName(spec["value"], token.start + 1)
        return spec

    def _parse_function_call(self, *arguments: Any, **options: Any) -> exp.Expr | None:
        token = self._curr
        return _placed(super()._parse_function_call(*arguments, **options), token)

    def _parse_types(self, *arguments: Any, **options: Any) -> exp.Expr | None:
        token = self._curr
        return _placed(super()._parse_types(*arguments, **options), token)

    def _parse_paren(self) -> exp.Expr | None:
        token = self._curr
        tree = super()._parse_paren()
        return _placed(tree, token) if isinstance(tree, exp.Subquery | exp.Tuple) else tree

    def _parse_unnest(self, *arguments: Any, **options: Any) -> exp.Unnest | None:
        token = self._curr
        return _placed(super()._parse_unnest(*arguments, **options), token)

    def _parse_parameter(self) -> exp.Parameter:
        token = self._prev
        return _placed(super()._parse_parameter(), token)

    def _parse_at_time_zone(self, this: exp.Expr | None) -> exp.Expr | None:
        token = self._curr
        tree = super()._parse_at_time_zone(this)
        return tree if tree is this else _placed(tree, token)

    def _parse_column_ops(self, this: exp.Expr | None) -> exp.Expr | None:
        """A function that is called by its schema and its name stands where the schema does."""
        tree = super()._parse_column_ops(this)
        if isinstance(tree, exp.Dot) and isinstance(tree.expression, exp.Func):
            begin_as(tree.expression, tree)
        return tree

    def _parse_bracket(self, this: exp.Expr | None = None) -> exp.Expr | None:
        """`ARRAY[…]` stands where the word does, a list inside it where its bracket does."""
        token = self._curr if this is None else self._prev
        tree = super()._parse_bracket(this)
        return _placed(tree, token) if isinstance(tree, exp.Array) and tree is not this else tree


class _Operators(dict[Any, Any]):
    """What makes the node of each operator, which is then placed at the operator."""

    def __init__(self, makers: dict[Any, Any], operator: Callable[[], Token]) -> None:
        super().__init__(makers)
        self._operator = operator

    def __getitem__(self, kind: Any) -> Any:
        maker = super().__getitem__(kind)
        if maker is None or maker is exp.IntDiv:  # which the parser looks at instead of calling it
            return maker
        token = self._operator()
        return lambda *arguments, **parts: _placed(maker(*arguments, **parts), token)


def _placed(node: T, token: Token) -> T:
    """The node with a place, and so what OVER, FILTER and their like are said of, unless it has one."""
    inner: object = node
    while isinstance(inner, exp.Expr) and place_of(inner) is None:
        inner.meta[_START] = token.start
        inner = inner.this if isinstance(inner, exp.Window | exp.Filter | exp.WithinGroup | exp.IgnoreNulls) else None
    return node
