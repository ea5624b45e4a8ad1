r"""The parts of one of PostgreSQL's regular expressions, and what it refuses.

A pattern is read once, from left to right. Spaces and comments mean nothing in an expanded one and are left out, and
options that stand in the pattern itself are told as flags.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum, auto
from typing import NoReturn

from seiche.errors import OutOfDomain

_REPEATED_MAX = 255
_NESTED_MAX = 100  # groups in groups; PostgreSQL has no such number, but an end as well
_CLASSES = {
    "alpha": r"\p{Alpha}", "digit": "0-9", "alnum": r"\p{Alnum}", "upper": r"\p{Upper}", "lower": r"\p{Lower}",
    "space": r"\s", "punct": r"\p{Punct}", "xdigit": "0-9A-Fa-f", "print": r"\p{Print}", "graph": r"\p{Graph}",
    "cntrl": r"\p{Cntrl}", "blank": r"\p{Blank}", "word": r"\w",
}  # fmt: skip
_CONSTRAINTS = {
    "m": r"\b(?=\w)", "M": r"\b(?<=\w)", "y": r"\b", "A": r"\A", "Z": r"\z",
    "Y": r"\B(?![\x{dc00}-\x{dfff}])",  # Java would also stand between the halves of a character that it keeps as two
}  # fmt: skip
_DIGITS = {"d": "0-9", "D": r":-\x{10ffff}\x{0}-/"}  # as members of a bracket expression
_CHARACTERS = {"a": 7, "b": 8, "B": 92, "e": 27, "f": 12, "n": 10, "r": 13, "t": 9, "v": 11}
_LOOKS = ("(?=", "(?!", "(?<=", "(?<!")
_OPTIONS = frozenset("ceimnpqstwx")


class Part(Enum):
    GROUP = auto()  # that is counted, by its opening parenthesis
    PLAIN_GROUP = auto()
    LOOK = auto()
    CLOSE = auto()
    BAR = auto()
    QUANTIFIER = auto()
    BACK = auto()  # to a group, whose number it is
    BRACKET = auto()
    BEGIN = auto()  # ^
    END = auto()  # $
    CONSTRAINT = auto()  # any other that takes no room
    ATOM = auto()


@dataclass(frozen=True, slots=True)
class Token:
    part: Part
    java: str


@dataclass(frozen=True, slots=True)
class Pattern:
    """The parts, and the flags that were given with those in the pattern. A `literal` one is to be met as it is."""

    tokens: tuple[Token, ...]
    flags: str
    literal: str | None = None
    has_classes: bool = False  # of characters, as letters and words are, that Java would take for those of ASCII

    @property
    def folds(self) -> bool:
        return folds(self.flags)


def read(pattern: str, flags: str = "") -> Pattern:
    """The parts of a pattern; OutOfDomain with PostgreSQL's words where it is none."""
    if pattern.startswith("***="):
        return Pattern((), flags, pattern[4:])
    if "q" in flags:
        return Pattern((), flags, pattern)
    if pattern.startswith("***:"):
        pattern = pattern[4:]
    options = re.match(r"\(\?([a-zA-Z]+)(\)?)", pattern)
    if options is not None:
        if not options[2] or not _OPTIONS.issuperset(options[1]):
            _refused("invalid embedded option")
        flags += options[1]
        pattern = pattern[options.end() :]
        if "q" in options[1]:
            return Pattern((), flags, pattern)
    reader = _Reader(pattern, flags.rfind("x") > flags.rfind("t"), folds(flags))
    return Pattern(reader.tokens(), flags, has_classes=reader.has_classes)


def literal_text(value: str) -> str:
    return "".join(_plain(char) for char in value)


def folds(flags: str) -> bool:
    return flags.rfind("i") > flags.rfind("c")  # the later of the two counts


def _refused(why: str) -> NoReturn:
    raise OutOfDomain(f"invalid regular expression: {why}", sqlstate="2201B")


class _Reader:
    def __init__(self, pattern: str, expanded: bool, folds: bool) -> None:
        self.has_classes = False
        self._pattern = pattern
        self._expanded = expanded
        self._folds = folds
        self._at = 0
        self._open: list[Part] = []
        self._left: Part | None = None  # the last that was closed
        self._groups = 0
        self._closed: set[int] = set()
        self._numbers: list[int] = []  # of the open ones, 0 for what is not counted
        self._repeatable = False  # whether a quantifier may follow

    def tokens(self) -> tuple[Token, ...]:
        out = []
        while (token := self._next()) is not None:
            self._repeatable = token.part in (Part.ATOM, Part.BRACKET, Part.BACK) or (
                token.part is Part.CLOSE and self._left is not Part.LOOK
            )
            out.append(token)
        if self._open:
            _refused("parentheses () not balanced")
        return tuple(out)

    def _take(self, count: int = 1) -> str:
        taken = self._pattern[self._at : self._at + count]
        self._at += count
        return taken

    def _is_next(self, text: str) -> bool:
        return self._pattern.startswith(text, self._at)

    def _next(self) -> Token | None:
        self._skip()
        if self._at >= len(self._pattern):
            return None
        if self._is_next("("):
            return self._opened()
        match char := self._take():
            case ")":
                return self._closing()
            case "|":
                return Token(Part.BAR, "|")
            case "*" | "+" | "?":
                self._check_operand()
                return Token(Part.QUANTIFIER, char + self._lazy())
            case "{" if re.compile("[0-9]").match(self._pattern, self._at):
                return self._bounds()
            case "[" if self._is_next("[:<:]]") or self._is_next("[:>:]]"):
                return self._constraint("m" if self._take(6)[2] == "<" else "M")
            case "[":
                return Token(Part.BRACKET, self._bracket())
            case "^":
                return Token(Part.BEGIN, char)
            case "$":
                return Token(Part.END, char)
            case ".":
                return Token(Part.ATOM, ".")
            case "\\":
                return self._escape()
            case _:
                return Token(Part.ATOM, _plain(char))

    def _skip(self) -> None:
        """Leaves out comments, and spaces where they mean nothing."""
        while True:
            found = re.compile(r"\(\?#[^)]*\)?" + (r"|\s+|#[^\n]*" if self._expanded else "")).match(
                self._pattern, self._at
            )
            if found is None:
                return
            self._at = found.end()

    # --- groups and quantifiers --------------------------------------------------------------------

    def _opened(self) -> Token:
        look = next((each for each in sorted(_LOOKS, key=len, reverse=True) if self._is_next(each)), None)
        if look is not None:
            token = Token(Part.LOOK, self._take(len(look)))
        elif self._is_next("(?:"):
            token = Token(Part.PLAIN_GROUP, self._take(3))
        elif self._is_next("(?"):
            _refused("quantifier operand invalid")
        elif Part.LOOK in self._open:  # where nothing is counted
            self._at += 1
            token = Token(Part.PLAIN_GROUP, "(?:")
        else:
            token = Token(Part.GROUP, self._take())
            self._groups += 1
        if len(self._open) == _NESTED_MAX:
            _refused("regular expression is too complex")
        self._open.append(token.part)
        self._numbers.append(self._groups if token.part is Part.GROUP else 0)
        return token

    def _closing(self) -> Token:
        if not self._open:
            _refused("parentheses () not balanced")
        self._left = self._open.pop()
        self._closed.add(self._numbers.pop())
        return Token(Part.CLOSE, ")")

    def _check_operand(self) -> None:
        if not self._repeatable:
            _refused("quantifier operand invalid")

    def _lazy(self) -> str:
        return self._take() if self._is_next("?") else ""

    def _bounds(self) -> Token:
        found = re.compile(r"([0-9]+)(?:(,)([0-9]*))?(\})?").match(self._pattern, self._at)
        assert found is not None
        self._check_operand()
        least = int(found[1])
        most = int(found[3]) if found[3] else least if found[2] is None else _REPEATED_MAX
        if max(least, most) > _REPEATED_MAX or least > most:
            _refused("invalid repetition count(s)")
        if found[4] is None:
            _refused("braces {} not balanced" if found.end() == len(self._pattern) else "invalid repetition count(s)")
        self._at = found.end()
        return Token(Part.QUANTIFIER, "{" + found[0] + self._lazy())

    # --- characters --------------------------------------------------------------------------------

    def _escape(self) -> Token:
        if self._at >= len(self._pattern):
            _refused("invalid escape \\ sequence")
        char = self._pattern[self._at]
        if char in _CONSTRAINTS:
            self._at += 1
            return self._constraint(char)
        if (number := self._reference()) is not None:
            self._at += len(number)
            if int(number) not in self._closed or Part.LOOK in self._open:
                _refused("invalid backreference number")
            return Token(Part.BACK, number)
        made = self._character()
        return Token(Part.ATOM, f"[{made}]" if made in _DIGITS.values() else made)

    def _constraint(self, letter: str) -> Token:
        self.has_classes |= letter not in "AZ"
        return Token(Part.CONSTRAINT, _CONSTRAINTS[letter])

    def _reference(self) -> str | None:
        """The digits that come next if they are a reference to a group, and not an octal number."""
        number = re.compile("[1-9][0-9]*").match(self._pattern, self._at)
        refers = number is not None and (len(number[0]) == 1 or int(number[0]) <= self._groups)
        return number[0] if refers and number is not None else None

    def _character(self) -> str:
        """What an escape stands for that is the same inside and outside of brackets."""
        char = self._take()
        if char in _DIGITS:
            return _DIGITS[char]
        if char in "sSwW":
            self.has_classes = True
            return "\\" + char
        if char in _CHARACTERS:
            return _code(_CHARACTERS[char])
        if char == "c" and self._at < len(self._pattern):
            return _code(ord(self._take()) & 31)
        for letter, digits in (("u", "{4}"), ("U", "{8}"), ("x", "{1,255}")):
            if char == letter and (found := re.compile(f"[0-9a-fA-F]{digits}").match(self._pattern, self._at)):
                self._at = found.end()
                return _code(int(found[0], 16))
        if char in "0123456789":
            octal = re.compile("[0-7]{1,3}").match(self._pattern, self._at - 1)
            if octal is not None:
                number = octal[0] if int(octal[0], 8) <= 255 else octal[0][:-1]
                self._at += len(number) - 1
                return _code(int(number, 8))
        if char.isascii() and char.isalnum():
            _refused("invalid escape \\ sequence")
        return _plain(char)

    def _bracket(self) -> str:
        """A bracket expression whose opening bracket has been read."""
        out = "[^" if self._is_next("^") else "["
        self._at += len(out) - 1
        first = True
        while not self._is_next("]") or first:
            if self._at >= len(self._pattern):
                _refused("brackets [] not balanced")
            start = self._member(first)
            first = False
            if not self._is_next("-") or self._is_next("-]"):
                out += start
                continue
            self._at += 1
            if self._at >= len(self._pattern):
                _refused("brackets [] not balanced")
            end = self._member(True)
            if _value(start) is None or _value(end) is None or (_value(start) or 0) > (_value(end) or 0):
                _refused("invalid character range")
            out += f"{start}-{end}"
        self._at += 1
        return out + "]"

    def _member(self, dash: bool) -> str:
        """One member of a bracket expression; `dash` says whether it may be one."""
        named = re.compile(r"\[([:.=])(.*?)\1\]", re.DOTALL).match(self._pattern, self._at)
        if named is not None:
            self._at = named.end()
            if named[1] == ":":
                return self._class(named[2])
            if len(named[2]) != 1:
                _refused("invalid collating element")
            return _inside(named[2])
        if re.compile(r"\[[:.=]").match(self._pattern, self._at):
            _refused("brackets [] not balanced")
        char = self._take()
        if char == "-" and not dash and not self._is_next("]"):
            _refused("invalid character range")
        if char != "\\":
            return _inside(char)
        if self._at >= len(self._pattern):
            _refused("invalid escape \\ sequence")
        if self._pattern[self._at] in _CONSTRAINTS or self._reference() is not None:
            _refused("invalid escape \\ sequence")
        made = self._character()
        return _inside(made) if len(made) == 1 else made

    def _class(self, name: str) -> str:
        if name not in _CLASSES:
            _refused("invalid character class")
        self.has_classes = True
        return _CLASSES["alpha" if self._folds and name in ("lower", "upper") else name]


def _plain(char: str) -> str:
    return "\\" + char if char in "\\.[]{}()*+?^$|" else char


def _inside(char: str) -> str:
    return "\\" + char if char in "\\[]&~^-(){}|" else char


def _code(value: int) -> str:
    if value > 0x10FFFF:
        _refused("invalid escape \\ sequence")
    return f"\\x{{{value:x}}}"


def _value(member: str) -> int | None:
    """The character that a member of a bracket expression is; None for a class."""
    if member.startswith("\\x"):
        return int(member[3:-1], 16)
    last = member[-1]
    return ord(last) if len(member) == 1 or (len(member) == 2 and last not in "dDsSwW") else None


__all__ = ["Part", "Pattern", "Token", "folds", "literal_text", "read"]
