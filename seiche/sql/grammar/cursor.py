"""A cursor over the tokens of one statement, and what every family of statements is made of.

Each method reads one thing (a word, a name, a literal, an expression) and leaves the cursor after it, or raises at the
token where that thing should have been. Queries and expressions are measured here and read by `seiche.sql.trees`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from seiche.errors import DuplicateColumn, FeatureNotSupported, SyntaxError_, nearest
from seiche.sql.places import PlacedName
from seiche.sql.statements import RESERVED_WORDS, ObjectKind, ObjectName, Options, SqlExpression, SqlQuery
from seiche.sql.tokens import CLOSING, FOLDED, OPENING, QUOTED, WORD, source_of, syntax_error
from seiche.sql.trees import read_tree

T = TypeVar("T")

_EMIT = ("emit", "on", "window", "close")
_KINDS: dict[tuple[str, ...], ObjectKind] = {tuple(kind.value.split()): kind for kind in ObjectKind}


class Cursor:
    """`index` is the token under the cursor; `following` is what ends the statement, None at the end of the text."""

    def __init__(self, text: str, tokens: Sequence[Token], following: Token | None) -> None:
        self.text = text
        self.tokens = tokens
        self.following = following
        self.index = 0

    def finish(self) -> None:
        """The statement is read: nothing may be left."""
        if self.peek() is not None:
            raise self.error()

    def peek(self, ahead: int = 0) -> Token | None:
        index = self.index + ahead
        return self.tokens[index] if index < len(self.tokens) else None

    def word(self, ahead: int = 0) -> str:
        """The token as a lower-case word, or "" where it is not one (a quoted name is not)."""
        token = self.peek(ahead)
        if token is None or token.token_type in QUOTED:
            return ""
        word = token.text.lower()
        return word if WORD.fullmatch(word) else ""

    def sees(self, *words: str) -> bool:
        return all(self.word(ahead) == word for ahead, word in enumerate(words))

    def accept(self, *words: str) -> bool:
        if not self.sees(*words):
            return False
        self.index += len(words)
        return True

    def expect(self, *words: str) -> None:
        for word in words:
            if not self.accept(word):
                raise self._expected(word.upper())

    def sees_symbol(self, kind: TokenType, ahead: int = 0) -> bool:
        token = self.peek(ahead)
        return token is not None and token.token_type is kind

    def accept_symbol(self, kind: TokenType) -> bool:
        if not self.sees_symbol(kind):
            return False
        self.index += 1
        return True

    def expect_symbol(self, kind: TokenType) -> None:
        if not self.accept_symbol(kind):
            raise self.error()

    def position(self) -> int:
        token = self.peek() or self.following
        return len(self.text) + 1 if token is None else token.start + 1

    def error(self, hint: str | None = None) -> SyntaxError_:
        return syntax_error(self.text, self.peek() or self.following, hint)

    def _expected(self, what: str) -> SyntaxError_:
        """The error for something else than what alone could come here."""
        found = self.peek() or self.following
        near = "EOF" if found is None else self.text[found.start : found.end + 1]
        error = self.error()
        error.detail = f"This is an sql parser error: expected {what}, found: {near}."
        return error

    def unsupported(self, what: str, hint: str | None = None) -> FeatureNotSupported:
        return FeatureNotSupported(f"{what} is not supported", hint=hint, position=self.position())

    def name(self) -> str:
        token = self.peek()
        if token is not None and token.token_type is TokenType.IDENTIFIER:
            if not token.text:
                raise SyntaxError_('zero-length delimited identifier at or near """"', position=token.start + 1)
            self.index += 1
            return token.text
        word = self.word()
        if not word or " " in word:
            raise self._expected("identifier")
        if word in RESERVED_WORDS:
            error = self.error(hint=f'"{word}" is a reserved word: write it in double quotes to use it as a name.')
            error.detail = f"This is an sql parser error: syntax error at or near {word}."
            raise error
        self.index += 1
        token = self.tokens[self.index - 1]
        return token.text.translate(FOLDED)

    def placed_name(self) -> PlacedName:
        place = self.position()
        return PlacedName(self.name(), place)

    def user_name(self) -> str:
        """A name where nothing but a name can stand; there the word USER is one like any other."""
        if self.accept("user"):
            return "user"
        return self.name()

    def object_name(self) -> ObjectName:
        place = self.position()
        parts = [self.name()]
        while self.accept_symbol(TokenType.DOT):
            parts.append(self.name())
        if len(parts) > 3:
            raise SyntaxError_(f"improper qualified name (too many dotted names): {'.'.join(parts)}", position=place)
        return ObjectName(tuple(parts), place=place)

    def comma_separated(self, read: Callable[[], T]) -> tuple[T, ...]:
        items = [read()]
        while self.accept_symbol(TokenType.COMMA):
            items.append(read())
        return tuple(items)

    def in_parentheses(self, read: Callable[[], T], *, comma_may_end: bool = False) -> tuple[T, ...]:
        """Items between parentheses; `comma_may_end` allows one more comma after the last."""
        self.expect_symbol(TokenType.L_PAREN)
        items = [read()]
        while self.accept_symbol(TokenType.COMMA):
            if comma_may_end and self.sees_symbol(TokenType.R_PAREN):
                break
            items.append(read())
        self.expect_symbol(TokenType.R_PAREN)
        return tuple(items)

    def column_names(self) -> tuple[str, ...]:
        """An optional list of distinct column names in parentheses."""
        return tuple(str(name) for name in self.placed_names())

    def placed_names(self) -> tuple[PlacedName, ...]:
        """As `column_names`, with their places."""
        if not self.sees_symbol(TokenType.L_PAREN):
            return ()
        names: list[PlacedName] = []

        def name() -> PlacedName:
            names.append(self.placed_name())
            if names[-1] in names[:-1]:
                raise DuplicateColumn(f'column "{names[-1]}" specified more than once', position=names[-1].place)
            return names[-1]

        return self.in_parentheses(name)

    def string(self) -> str:
        token = self.peek()
        if token is None or token.token_type is not TokenType.STRING:
            raise self.error()
        self.index += 1
        return token.text

    def integer(self) -> int:
        negative = self.accept_symbol(TokenType.DASH)
        token = self.peek()
        if token is None or token.token_type is not TokenType.NUMBER or not token.text.isdecimal():
            raise self.error()
        self.index += 1
        return -int(token.text) if negative else int(token.text)

    def value(self) -> str:
        """A setting's value: a string, a number, or a word."""
        token = self.peek()
        if token is not None and token.token_type is TokenType.STRING:
            return self.string()
        sign = "-" if self.accept_symbol(TokenType.DASH) else ""
        token = self.peek()
        if token is not None and token.token_type is TokenType.NUMBER:
            self.index += 1
            return sign + token.text
        if sign:
            raise self.error()
        if self.word() in ("true", "false", "on", "default", "all", "null", "both"):
            self.index += 1
            return self.word(-1)
        return ".".join(self.object_name().parts)

    def setting(self) -> str | None:
        """`= value` or `TO value`, where DEFAULT is None and several values make a list."""
        if not self.accept_symbol(TokenType.EQ):
            self.expect("to")
        if self.accept("default"):
            return None
        return ", ".join(self.comma_separated(self.value))

    def options(self) -> Options:
        """`(name = value, ...)`; names may have dots, and a value may be a call, which is kept as text."""

        def option() -> tuple[str, str]:
            if self.sees_symbol(TokenType.COMMA) or self.sees_symbol(TokenType.R_PAREN):
                raise self.error(hint="Write name = value; expected identifier of an option.")
            name = self.option_name()
            self.expect_symbol(TokenType.EQ)
            start, value = self.index, self.value()
            if not self.sees_symbol(TokenType.L_PAREN):
                return name, value
            self.index += 1
            self.index = self.region(lambda _index: False)
            self.expect_symbol(TokenType.R_PAREN)
            return name, source_of(self.text, self.tokens[start : self.index])

        return self.in_parentheses(option, comma_may_end=True)

    def option_name(self) -> str:
        """A name that may have dots."""

        def part() -> str:
            # Options of connectors use any word, reserved ones too.
            word = self.word()
            if word and " " not in word:
                self.index += 1
                return word
            token = self.peek()
            return self.string() if token is not None and token.token_type is TokenType.STRING else self.name()

        parts = [part()]
        while self.accept_symbol(TokenType.DOT):
            parts.append(part())
        return ".".join(parts)

    def accept_temporary(self) -> bool:
        """TEMPORARY after CREATE, with the words that PostgreSQL lets stand before it."""
        if self.word() in ("local", "global") and self.word(1) in ("temp", "temporary"):
            self.index += 1
        return self.accept("temp") or self.accept("temporary")

    def if_not_exists(self) -> bool:
        return self.accept("if", "not", "exists")

    def kind(self) -> ObjectKind:
        for words, kind in _KINDS.items():
            if self.accept(*words):
                return kind
        if self.accept("role"):
            return ObjectKind.USER
        raise self.error(hint=nearest(self.word(), (kind.value.split()[0] for kind in ObjectKind)))

    def rest(self) -> int:
        """The index at which the statement ends."""
        return len(self.tokens)

    def region(self, stop: Callable[[int], bool]) -> int:
        """The index at which the expression under the cursor ends: where `stop` says so outside any parenthesis and
        any struct type, or at a parenthesis that was open before, or at the end."""
        depth = 0
        structs = 0
        for index in range(self.index, len(self.tokens)):
            kind = self.tokens[index].token_type
            if depth == 0 and (kind in CLOSING or (structs == 0 and stop(index))):
                return index
            if kind in OPENING:
                depth += 1
            elif kind in CLOSING:
                depth -= 1
            elif kind is TokenType.LT and (structs or self._casts_to_struct(index)):
                structs += 1
            elif kind is TokenType.GT and structs:
                structs -= 1
        return len(self.tokens)

    def _casts_to_struct(self, index: int) -> bool:
        """Whether the `<` at `index` opens the fields of a type, as in `x::struct<a integer>`."""
        ahead = index - self.index
        return ahead >= 2 and self.word(ahead - 1) == "struct" and self.sees_symbol(TokenType.DCOLON, ahead - 2)

    def take(self, end: int, into: type[exp.Expr] | None, prefix: Sequence[Token] = ()) -> tuple[exp.Expr, str]:
        """The tokens up to `end` as a tree, with their source; the tree also holds the `prefix`."""
        tokens = self.tokens[self.index : end]
        following = self.tokens[end] if end < len(self.tokens) else self.following
        if not tokens:
            raise syntax_error(self.text, following)
        tree = read_tree(self.text, [*prefix, *tokens], into, following)
        self.index = end
        return tree, source_of(self.text, tokens)

    def query(self, end: int, prefix: Sequence[Token] = ()) -> SqlQuery:
        """The query up to token `end`; `prefix` is a WITH clause that was written earlier."""
        first = self.peek()
        if not self.sees_symbol(TokenType.L_PAREN) and self.word() not in ("select", "values", "table", "with"):
            raise self.error()
        tree, source = self.take(end, None, prefix)
        if not isinstance(tree, exp.Query | exp.Values):
            raise syntax_error(self.text, first)
        return SqlQuery(tree, f"{source_of(self.text, prefix)} {source}" if prefix else source)

    def emitting_query(self, end: int) -> tuple[SqlQuery, bool]:
        """The query up to token `end`, and whether EMIT ON WINDOW CLOSE stands behind it."""
        words = [token.text.lower() for token in self.tokens[max(self.index, end - len(_EMIT)) : end]]
        emits = words == list(_EMIT)
        query = self.query(end - len(_EMIT) if emits else end)
        self.index = end
        return query, emits

    def expression(self, stop: Callable[[int], bool]) -> SqlExpression:
        tree, source = self.take(self.region(stop), exp.Condition)
        return SqlExpression(tree, source)

    def at_comma(self, index: int) -> bool:
        return self.tokens[index].token_type is TokenType.COMMA

    def at_word(self, *words: str) -> Callable[[int], bool]:
        return lambda index: self.word(index - self.index) in words
