"""Text to tokens, and where one statement ends and the next begins.

`tokenize` is strict: comments are gone, every string is decoded, and what is no token of PostgreSQL is refused at its
place. `split` is for a prompt: it cuts text that may be unfinished or wrong, and never raises. Both rest on one scan
of quotes and comments, so they agree on which semicolon ends a statement.

Nesting is bounded here, in the tokens, before anything recursive sees them: a depth that would exhaust the stack is
the user's error, not a crash.
"""

from __future__ import annotations

import re
import string
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from sqlglot.errors import TokenError
from sqlglot.tokenizer_core import Token, TokenType

from seiche.errors import InvalidText, StatementTooComplex, SyntaxError_
from seiche.sql.dialect import Seiche

_PIECE = re.compile(
    r"""
    (?P<blank>\s+|--[^\n\r]*)
  | (?P<comment>/\*)
  | [eE]'(?:[^'\\]+|\\.|'')*+(?P<escape_end>')?
  | '(?:[^']+|'')*+(?P<string_end>')?
  | "(?:[^"]+|"")*+(?P<name_end>")?
  | (?P<dollar>\$(?:[^\W\d]\w*)?\$)
  | (?P<word>[\w$]+)
  | (?P<open>[(\[])
  | (?P<close>[)\]])
  | (?P<semicolon>;)
  | .
    """,
    re.VERBOSE | re.DOTALL,
)
_PARAMETER = re.compile(r"\$\d+")
_COMMENT_EDGE = re.compile(r"/\*|\*/")

_UNTERMINATED = {
    "'": "unterminated quoted string",
    '"': "unterminated quoted identifier",
    "$": "unterminated dollar-quoted string",
    "*": "unterminated /* comment",
}


@dataclass(frozen=True, slots=True)
class Split:
    """A buffer cut at its semicolons.

    `statements` are complete, each with its text up to the semicolon; `rest` is what follows the last of them,
    empty when nothing but blanks and comments does. `waiting_for` tells a prompt what keeps `rest` open: a quote
    character, `$` for a dollar quote, `*` for a comment, `(` for a parenthesis, or None for just the semicolon.
    """

    statements: tuple[str, ...]
    rest: str
    waiting_for: str | None = None


def split(text: str) -> Split:
    """Cuts what was typed so far. Never raises: whether a statement is right is for `parse` to say.

    A semicolon inside quotes, comments or open parentheses does not end a statement.
    """
    statements: list[str] = []
    begin: int | None = None  # where the statement under way starts, None while only blanks were seen
    depth = 0

    def piece(match: re.Match[str]) -> None:
        nonlocal begin, depth
        kind = match.lastgroup
        if kind == "semicolon" and depth <= 0:
            if begin is not None:
                statements.append(text[begin : match.start()].rstrip())
            begin, depth = None, 0
            return
        if kind == "open":
            depth += 1
        elif kind == "close":
            depth -= 1
        if kind not in ("blank", "comment") and begin is None:
            begin = match.start()

    open_at, opener = _scan(text, piece)
    if opener is not None:
        return Split(tuple(statements), text[open_at if begin is None else begin :], opener)
    if begin is None:
        return Split(tuple(statements), "")
    return Split(tuple(statements), text[begin:].rstrip(), "(" if depth > 0 else None)


def _scan(text: str, visit: Callable[[re.Match[str]], None]) -> tuple[int, str | None]:
    """Shows each lexical piece to `visit`; where and with which opener the text ends inside one, if it does."""
    at = 0
    while match := _PIECE.match(text, at):
        at = match.end()
        if match["comment"]:
            nesting = 1
            while nesting:
                edge = _COMMENT_EDGE.search(text, at)
                if edge is None:
                    return match.start(), "*"
                nesting += 1 if edge[0] == "/*" else -1
                at = edge.end()
        elif match["dollar"]:
            end = text.find(match["dollar"], at)
            if end < 0:
                return match.start(), "$"
            at = end + len(match["dollar"])
        elif (quote := match[0].lstrip("eE")[:1]) in ("'", '"') and match.lastgroup not in (
            "string_end",
            "name_end",
            "escape_end",
        ):
            return match.start(), quote
        visit(match)
    return len(text), None


class _Tokenizer(Seiche.Tokenizer):
    # By default SHOW, EXPLAIN and others swallow the rest of their statement as one string, and comments after
    # SELECT become hints. Here they are words and comments.
    COMMANDS: ClassVar[set[TokenType]] = set()
    TOKENS_PRECEDING_HINT: ClassVar[set[TokenType]] = set()


DIALECT = Seiche()

# Keywords of two words. sqlglot finds them across blanks, but not across a comment.
_PAIRS = {words: token for words, token in Seiche.Tokenizer.KEYWORDS.items() if " " in words}

_LITERALS = frozenset(
    {
        TokenType.STRING,
        TokenType.NUMBER,
        TokenType.BIT_STRING,
        TokenType.HEX_STRING,
        TokenType.BYTE_STRING,
        TokenType.NATIONAL_STRING,
        TokenType.RAW_STRING,
        TokenType.HEREDOC_STRING,
        TokenType.UNICODE_STRING,
    }
)
QUOTED = _LITERALS | {TokenType.IDENTIFIER}
OPENING = frozenset({TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE})
CLOSING = frozenset({TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE})
_FOREIGN_SYMBOLS = frozenset({"==", "<=>", "??", "?::", "~~~", "|>", ":=", "`", "\\", "@", "{{", "}}"})
# PostgreSQL folds the letters of ASCII only, and so does sqlglot.
FOLDED = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)
WORD = re.compile(r"[^\W\d][\w$]*(?: [^\W\d]\w*)*")


def tokenize(text: str) -> list[Token]:
    """Tokens without comments, every plain string (escape, dollar quoted, continued on the next line) decoded."""
    parameters: list[int] = []

    def piece(match: re.Match[str]) -> None:
        if match["word"] and _PARAMETER.fullmatch(match[0]):
            parameters.append(match.start())

    open_at, opener = _scan(text, piece)
    if opener is not None:
        raise SyntaxError_(f'{_UNTERMINATED[opener]} at or near "{text[open_at:]}"', position=open_at + 1)
    try:
        raw = _Tokenizer(dialect=DIALECT).tokenize(_with_plain_parameters(text, parameters))
    except TokenError as cause:
        raise SyntaxError_("syntax error in the text", detail=f"The tokenizer stopped: {cause}.") from cause
    _refuse_too_many(raw)
    tokens: list[Token] = []
    braces = 0  # of MAP {key: value}, the only ones that there are
    for token in raw:
        source = text[token.start : token.end + 1]
        if source == "{" and tokens and tokens[-1].token_type is TokenType.MAP:
            braces += 1
        elif source == "}" and braces:
            braces -= 1
        elif source in ("{", "}"):
            raise syntax_error(text, token)
        kind, value = token.token_type, token.text
        if kind is TokenType.BYTE_STRING and source[0] in "eE":
            kind, value = TokenType.STRING, _unescape(source[2:-1], token.start + 2)
        elif kind in (TokenType.HEREDOC_STRING, TokenType.RAW_STRING, TokenType.NATIONAL_STRING):
            kind = TokenType.STRING
        elif kind is TokenType.UNICODE_STRING:
            kind, value = TokenType.STRING, _unescape_unicode(source[3:-1], token.start + 3)
        elif source in _FOREIGN_SYMBOLS or kind in (TokenType.BLOCK_START, TokenType.BLOCK_END):
            raise syntax_error(text, token)
        last = tokens[-1] if tokens else None
        after_number = last is not None and last.token_type is TokenType.NUMBER and last.end + 1 == token.start
        if last is not None and after_number and WORD.fullmatch(source):
            junk = text[last.start : token.end + 1]
            raise SyntaxError_(f'trailing junk after numeric literal at or near "{junk}"', position=last.start + 1)
        if kind is TokenType.STRING and last is not None and last.token_type is TokenType.STRING:
            if source[0] != "'" or "\n" not in text[last.end + 1 : token.start]:
                raise syntax_error(text, token)
            tokens[-1] = Token(kind, last.text + value, last.line, last.col, last.start, token.end)
            continue
        pair = f"{last.text} {value}".upper() if last is not None else ""
        if last is not None and pair in _PAIRS and not {last.token_type, kind} & QUOTED:
            tokens[-1] = Token(_PAIRS[pair], pair, last.line, last.col, last.start, token.end)
            continue
        tokens.append(Token(kind, value, token.line, token.col, token.start, token.end))
    return tokens


def _with_plain_parameters(text: str, starts: Sequence[int]) -> str:
    """The text with `@1` for `$1`: sqlglot takes `$1,$` for the opening of a dollar quote. Each is one character, so
    that positions stay."""
    if not starts:
        return text
    pieces, at = [], 0
    for start in starts:
        pieces += [text[at:start], "@"]
        at = start + 1
    return "".join((*pieces, text[at:]))


_BYTE = re.compile(r"\\(?:([0-7]{1,3})|x([0-9a-fA-F]{1,2}))")
_ESCAPE = re.compile(
    r"((?:\\(?:[0-7]{1,3}|x[0-9a-fA-F]{1,2}))+)|\\(?:u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|(.))|''", re.DOTALL
)
_ESCAPED_LETTERS = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_UNICODE_ESCAPE = re.compile(r"\\(?:([0-9a-fA-F]{4})|\+([0-9a-fA-F]{6})|(\\)|(.?))|''", re.DOTALL)


def _unescape(body: str, start: int) -> str:
    def replace(match: re.Match[str]) -> str:
        codes, short, long, letter = match.groups()
        if codes:
            return _text_of_bytes(codes, start + match.start())
        if short or long:
            return _character(int(short or long, 16), start + match.start())
        if letter in ("u", "U"):
            raise SyntaxError_(
                "invalid Unicode escape",
                hint=r"Unicode escapes must be \uXXXX or \UXXXXXXXX.",
                position=start + match.start() + 1,
            )
        return "'" if letter is None else _ESCAPED_LETTERS.get(letter, letter)

    return _joined_surrogates(_ESCAPE.sub(replace, body), start)


def _text_of_bytes(codes: str, offset: int) -> str:
    """The characters that escaped bytes spell in UTF-8."""
    spelled = bytes(int(octal, 8) & 0xFF if octal else int(digits, 16) for octal, digits in _BYTE.findall(codes))
    try:
        text = spelled.decode()
    except UnicodeDecodeError as cause:
        raise _not_text(spelled[cause.start : cause.start + 1], offset) from cause
    if "\0" in text:
        raise _not_text(b"\0", offset)
    return text


def _not_text(wrong: bytes, offset: int) -> InvalidText:
    return InvalidText(f'invalid byte sequence for encoding "UTF8": 0x{wrong.hex()}', position=offset + 1)


def _unescape_unicode(body: str, start: int) -> str:
    def replace(match: re.Match[str]) -> str:
        short, long, backslash, other = match.groups()
        if short or long:
            return _character(int(short or long, 16), start + match.start())
        if other is not None:
            raise SyntaxError_(
                "invalid Unicode escape",
                hint=r"Unicode escapes must be \XXXX or \+XXXXXX.",
                position=start + match.start() + 1,
            )
        return "\\" if backslash else "'"

    return _joined_surrogates(_UNICODE_ESCAPE.sub(replace, body), start)


def _character(code: int, offset: int) -> str:
    if not 0 < code <= 0x10FFFF:
        raise SyntaxError_("invalid Unicode escape value", position=offset + 1)
    return chr(code)


def _joined_surrogates(value: str, start: int) -> str:
    """Two escapes may spell one character beyond U+FFFF, as in JSON; half of such a pair is no character."""
    try:
        return value.encode("utf-16", "surrogatepass").decode("utf-16")
    except UnicodeDecodeError as cause:
        raise SyntaxError_("invalid Unicode surrogate pair", position=start + 1) from cause


def statement_tokens(text: str) -> list[tuple[list[Token], Token | None]]:
    """The tokens of each statement that has any, with the semicolon that ends it."""
    found: list[tuple[list[Token], Token | None]] = []
    current: list[Token] = []
    for token in tokenize(text):
        if token.token_type is not TokenType.SEMICOLON:
            current.append(token)
            continue
        if current:
            found.append((current, token))
        current = []
    if current:
        found.append((current, None))
    return found


def source_of(text: str, tokens: Sequence[Token]) -> str:
    """The text from the first of the tokens to the last."""
    return text[tokens[0].start : tokens[-1].end + 1] if tokens else ""


def syntax_error(text: str, token: Token | None, hint: str | None = None) -> SyntaxError_:
    """The error for stopping at this token, or at the end of the text."""
    if token is None:
        return SyntaxError_("syntax error at end of input", hint=hint, position=len(text) + 1)
    near = text[token.start : token.end + 1]
    if token.token_type not in QUOTED:
        near = near.split()[0]  # a keyword of two words, like ORDER BY
    return SyntaxError_(f'syntax error at or near "{near}"', hint=hint, position=token.start + 1)


# The reading of one parenthesis takes about 26 Python frames, so this fits a recursion limit of 10,000.
MAX_NESTING = 300
# sqlglot reads what stands in brackets after the name of a type twice, as part of a type and as a value, so each
# such level doubles the work. PostgreSQL's own arrays have at most six dimensions.
MAX_TYPE_NESTING = 8
_TYPE_WORDS = Seiche.Parser.TYPE_TOKENS - {TokenType.UNION}


# A word, number or sign takes a kilobyte or two here and in Spark until its statement has been planned.
MAX_TOKENS = 500_000


def _refuse_too_many(tokens: Sequence[Token]) -> None:
    """Raises StatementTooComplex for a text whose reading would take the memory of the process."""
    if len(tokens) > MAX_TOKENS:
        raise StatementTooComplex(
            "statement is too long",
            detail=f"It has {len(tokens)} words, numbers and signs; at most {MAX_TOKENS} are read.",
            hint="Bring many rows with COPY, and join with a table instead of listing many values.",
        )


def refuse_deep_nesting(tokens: Sequence[Token]) -> None:
    """Raises StatementTooComplex at the parenthesis, bracket or CASE that is one too many."""
    nested: list[tuple[TokenType, bool]] = []  # what is open, and whether the name of a type stands before it
    typed = 0
    before: TokenType | None = None
    for token in tokens:
        kind = token.token_type
        named = before in (TokenType.DOT, TokenType.ALIAS)  # then CASE and END are names
        if kind in OPENING or (kind is TokenType.CASE and not named):
            after_type = kind in OPENING and before in _TYPE_WORDS
            nested.append((kind, after_type))
            typed += after_type
            if len(nested) > MAX_NESTING:
                raise too_deep(f"At most {MAX_NESTING} levels of parentheses and CASE fit in each other.", token)
            if typed > MAX_TYPE_NESTING:
                raise too_deep(
                    f"At most {MAX_TYPE_NESTING} levels of arrays, or of calls named like a type, fit in each other.",
                    token,
                )
        elif kind is TokenType.END and nested and nested[-1][0] is TokenType.CASE and not named:
            nested.pop()
        elif kind in CLOSING:
            # Whether the brackets match is for the grammar to check; a CASE without END ends with its bracket.
            while nested:
                opened, after_type = nested.pop()
                typed -= after_type
                if opened is not TokenType.CASE:
                    break
        before = kind


def too_deep(detail: str, token: Token | None = None) -> StatementTooComplex:
    return StatementTooComplex(
        "statement is nested too deeply",
        detail=detail,
        hint="Split it with CREATE VIEW, or flatten its expressions.",
        position=None if token is None else token.start + 1,
    )
