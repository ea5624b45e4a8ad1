"""Queries and expressions as sqlglot trees, for text that PostgreSQL would take too.

sqlglot's parser is lenient: it drops a trailing comma, takes another engine's clauses, and turns what it does not
know into an opaque command. `read_tree` refuses before and after it whatever it would let pass, so that text which
PostgreSQL rejects never becomes a tree that means something else. Names in the tree are folded.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from sqlglot import exp
from sqlglot.errors import ErrorLevel, ParseError
from sqlglot.optimizer.normalize_identifiers import normalize_identifiers
from sqlglot.tokenizer_core import Token, TokenType

from seiche.errors import FeatureNotSupported, SyntaxError_
from seiche.sql.dialect import Seiche
from seiche.sql.secret_arguments import with_references
from seiche.sql.statements import RESERVED_WORDS
from seiche.sql.tokens import CLOSING, DIALECT, OPENING, QUOTED, WORD, syntax_error
from seiche.sql.wrapped_aggregates import joined_prefixes, unwrapped

_SET_OPERATIONS = frozenset({TokenType.UNION, TokenType.EXCEPT, TokenType.INTERSECT})
# Words that end the clause before them, so that a clause which needs more cannot stop there.
_CLAUSES = _SET_OPERATIONS | {
    TokenType.FROM,
    TokenType.WHERE,
    TokenType.GROUP_BY,
    TokenType.HAVING,
    TokenType.ORDER_BY,
    TokenType.LIMIT,
    TokenType.OFFSET,
    TokenType.WINDOW,
}
# Words that cannot be the last of a clause.
_UNFINISHED = frozenset(
    {
        TokenType.COMMA,
        TokenType.ALIAS,
        TokenType.WHERE,
        TokenType.GROUP_BY,
        TokenType.HAVING,
        TokenType.ORDER_BY,
        TokenType.PARTITION_BY,
        TokenType.LIMIT,
        TokenType.OFFSET,
        TokenType.JOIN,
        TokenType.IN,
    }
)
_WITHOUT_BY = ("group", "order")  # with BY they are other tokens
_DISTINCT_NOTHING = [TokenType.SELECT, TokenType.DISTINCT]
_EMPTY_LIST = [TokenType.L_PAREN, TokenType.R_PAREN]
_VALUES_OF_NOTHING = [TokenType.VALUES, *_EMPTY_LIST]
_JOIN_SIDES = frozenset({TokenType.INNER, TokenType.OUTER, TokenType.LEFT, TokenType.RIGHT, TokenType.FULL})
_INDEXABLE = QUOTED | CLOSING
_FOREIGN_NODES: tuple[type[exp.Expr], ...] = (
    exp.Command,
    exp.Into,
    exp.Qualify,
    exp.Pivot,
    exp.Cluster,
    exp.Distribute,
    exp.Sort,
    exp.Connect,
    exp.Placeholder,
    exp.Insert,
    exp.Update,
    exp.Delete,
)


class _TreeParser(Seiche.Parser):
    """sqlglot's parser, which remembers the token it stopped at (None: the end of its input)."""

    # `f(a -> 'k')` reads a field of a JSON value; it is no lambda.
    LAMBDAS: ClassVar[dict[TokenType, Any]] = {
        token: build for token, build in Seiche.Parser.LAMBDAS.items() if token is not TokenType.ARROW
    }

    stopped_at: Token | None = None

    def raise_error(self, message: str, *token: Token) -> None:
        self.stopped_at = self._curr or None
        super().raise_error(message, *token)


def read_tree(text: str, tokens: Sequence[Token], into: type[exp.Expr] | None, following: Token | None) -> exp.Expr:
    """The tokens as one sqlglot tree with folded names. `following` is what comes next in the text."""
    if not tokens:
        raise syntax_error(text, following)
    _refuse_leniency(text, tokens, following)
    tokens = [_as_label(token, tokens[index - 1] if index else None) for index, token in enumerate(tokens)]
    tokens = with_references(joined_prefixes(tokens))
    parser = _TreeParser(dialect=DIALECT, error_level=ErrorLevel.IMMEDIATE)
    try:
        trees = parser.parse(list(tokens), text) if into is None else parser.parse_into(into, list(tokens), text)
    except ParseError as cause:
        raise syntax_error(text, parser.stopped_at or following) from cause
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as cause:
        # sqlglot builds some functions from their arguments without looking whether they are there.
        raise SyntaxError_(
            "syntax error in a function call",
            detail="A function near here has arguments that it cannot take.",
            hint="Check the number and the kind of the arguments of each function.",
            position=tokens[0].start + 1,
        ) from cause
    tree = trees[0]
    if len(trees) != 1 or tree is None:
        raise syntax_error(text, tokens[0])
    for node in tree.walk():
        _refuse_foreign(text, tokens, node)
    folded: exp.Expr = normalize_identifiers(unwrapped(tree), dialect=DIALECT)
    return folded


def _as_label(token: Token, before: Token | None) -> Token:
    """The word SELECT after AS is the name of a column, as any word is there."""
    if token.token_type is not TokenType.SELECT or before is None or before.token_type is not TokenType.ALIAS:
        return token
    return Token(TokenType.VAR, token.text, token.line, token.col, token.start, token.end)


def _can_be_indexed(token: Token) -> bool:
    """Whether `[` after this token takes an element or spells an array, rather than starting a bare list."""
    word = token.text.lower()
    return (
        token.token_type in _INDEXABLE
        or word == "array"
        or (" " in word and token.token_type in Seiche.Parser.TYPE_TOKENS)  # double precision[]
        or (WORD.fullmatch(word) is not None and word not in RESERVED_WORDS and " " not in word)
    )


def _takes_group(token: Token | None) -> bool:
    """WITHIN GROUP, and EXCLUDE GROUP of a frame."""
    return token is not None and token.text.lower() in ("within", "exclude")


def _ends_struct(tokens: Sequence[Token], index: int) -> bool:
    """Whether the token is the `>` of `struct<...>`, which `[]` makes an array of."""
    open_structs = 0
    for at in range(index, 0, -1):
        kind = tokens[at].token_type
        if kind is TokenType.GT:
            open_structs += 1
        elif kind is TokenType.LT and tokens[at - 1].text.lower() == "struct":
            open_structs -= 1
        if open_structs == 0:
            return at < index
    return False


def _refuse_leniency(text: str, tokens: Sequence[Token], following: Token | None) -> None:
    """Raises where sqlglot would silently drop or invent something."""
    enclosing: list[TokenType] = []
    conditions_due = [0]  # for each open parenthesis: joins that still need their ON or USING
    for index, token in enumerate(tokens):
        kind = token.token_type
        before = tokens[index - 1] if index else None
        after = tokens[index + 1] if index + 1 < len(tokens) else following
        last_of_clause = (
            index + 1 == len(tokens)
            or tokens[index + 1].token_type in CLOSING
            or (tokens[index + 1].token_type in _CLAUSES and kind is not TokenType.ALIAS)
        )
        named = before is not None and before.token_type in (TokenType.DOT, TokenType.ALIAS)
        if kind is TokenType.VAR and token.text.lower() in _WITHOUT_BY and not named and not _takes_group(before):
            raise syntax_error(text, after)
        if kind in _UNFINISHED and last_of_clause and not named:
            raise syntax_error(text, after)
        if kind is TokenType.IN and [t.token_type for t in tokens[index + 1 : index + 3]] == _EMPTY_LIST:
            raise syntax_error(text, tokens[index + 2])
        if [t.token_type for t in tokens[index : index + 3]] == _VALUES_OF_NOTHING:
            raise syntax_error(text, tokens[index + 2])
        leading = before is None or before.token_type is TokenType.L_PAREN
        if kind is TokenType.FROM and [t.token_type for t in tokens[index - 2 : index]] == _DISTINCT_NOTHING:
            raise syntax_error(text, token)
        if kind is TokenType.FROM and leading and (index < 2 or tokens[index - 2].text.lower() != "trim"):
            raise syntax_error(text, token)
        bare_list = kind is TokenType.L_BRACKET and enclosing[-1:] != [TokenType.L_BRACKET]
        if bare_list and (before is None or not (_can_be_indexed(before) or _ends_struct(tokens, index - 1))):
            raise syntax_error(text, token)
        if kind is TokenType.JOIN:
            side = index - 1
            while side >= 0 and tokens[side].token_type in _JOIN_SIDES:
                side -= 1
            if side < 0 or tokens[side].token_type not in (TokenType.CROSS, TokenType.NATURAL):
                conditions_due[-1] += 1
        elif kind in (TokenType.ON, TokenType.USING) and conditions_due[-1]:
            conditions_due[-1] -= 1
        elif conditions_due[-1] and (kind is TokenType.COMMA or kind in _CLAUSES or kind in CLOSING):
            rows_from = kind is TokenType.FROM and before is not None and before.text.lower() == "rows"
            if not rows_from:
                raise syntax_error(text, token)
        if kind in OPENING:
            enclosing.append(kind)
            conditions_due.append(0)
        elif kind in CLOSING and enclosing:
            enclosing.pop()
            conditions_due.pop()
    if conditions_due[-1]:
        raise syntax_error(text, following)


def _refuse_foreign(text: str, tokens: Sequence[Token], node: exp.Expr) -> None:
    """Raises for a node that only another engine's SQL has."""
    if isinstance(node, exp.Insert | exp.Update | exp.Delete):
        raise FeatureNotSupported(
            f"{node.key.upper()} inside WITH is not supported", hint="Run it as a statement of its own."
        )
    if isinstance(node, exp.Into):
        raise FeatureNotSupported("SELECT INTO is not supported", hint="Use CREATE TABLE ... AS SELECT ....")
    joined = isinstance(node, exp.Join) and (node.kind in ("SEMI", "ANTI") or node.args.get("pivots"))
    if not joined and not isinstance(node, _FOREIGN_NODES):
        return
    if isinstance(node, exp.Placeholder):
        symbols = (TokenType.PLACEHOLDER, TokenType.MOD)
        found = next((token for token in tokens if token.token_type in symbols), tokens[0])
        raise syntax_error(text, found)
    word = node.kind.lower() if isinstance(node, exp.Join) else node.key
    raise syntax_error(text, next((token for token in tokens if token.text.lower().startswith(word)), tokens[0]))
