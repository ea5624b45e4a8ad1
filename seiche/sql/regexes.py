r"""Regular expressions: PostgreSQL's as Java writes them.

The dot matches a line break and `$` only the very end, unless the flag `n` asks for lines; bracket classes, word
boundaries and `\Z` are spelled differently. One thing stays Java's: of several alternatives it takes the first that
matches, not the longest.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from seiche.errors import InvalidParameter

_CLASSES = {
    "alpha": "IsAlphabetic", "digit": "Digit", "alnum": "Alnum", "upper": "Upper", "lower": "Lower",
    "space": "Space", "punct": "Punct", "xdigit": "XDigit", "print": "Print", "graph": "Graph",
    "cntrl": "Cntrl", "blank": "Blank",
}  # fmt: skip
_ESCAPES = {"m": r"\b(?=\w)", "M": r"\b(?<=\w)", "y": r"\b", "Y": r"\B", "A": r"\A", "Z": r"\z"}
_KNOWN_FLAGS = frozenset("gimnpqstwcx")


@dataclass(frozen=True, slots=True)
class Regex:
    """A pattern that stands as one group, so that others can be put around it. `where` tells each group's number."""

    java: str
    where: tuple[int, ...]  # of PostgreSQL's groups 1, 2, ... among Java's
    marks: tuple[int | None, ...] = ()  # Java's groups that hold what follows each group, if asked for

    @property
    def groups(self) -> int:
        return len(self.where)


def translate(
    pattern: str, flags: str = "", *, before: int = 0, marked: bool = False, all_marked: bool = False
) -> Regex:
    """The pattern under some flags, to be put behind `before` groups of others.

    `marked` adds to each group one that holds all that follows it; both are empty where the group took no part in the
    match, or where it held nothing at the very end. A group that takes part in every match needs none and has none,
    unless all groups are to be marked.
    """
    unknown = set(flags) - _KNOWN_FLAGS
    if unknown:
        raise InvalidParameter(f'invalid regular expression option: "{sorted(unknown)[0]}"')
    lines = any(flag in flags for flag in "nmw")
    dots_stop = any(flag in flags for flag in "nmp")
    folds = flags.rfind("i") > flags.rfind("c")  # the later of the two counts
    inline = ("i" if folds else "") + ("x" if "x" in flags else "") + ("" if dots_stop else "s")
    if "q" in flags:
        return Regex(f"(?{inline}:{_literal(pattern)})", ())
    certain = _certain(pattern) if marked and not all_marked and not _is_spaced(pattern, flags) else frozenset()
    out, index, count = "", 0, before
    where: list[int] = []
    marks: dict[int, int] = {}
    opened: list[int] = []  # the groups around, 0 for one that holds nothing
    while index < len(pattern):
        char = pattern[index]
        if char == "\\" and index + 1 < len(pattern):
            index += 1
            following = pattern[index]
            if following.isdigit() and following != "0" and int(following) <= len(where):
                out += f"\\{where[int(following) - 1]}"
            else:
                out += _ESCAPES.get(following, "\\" + following)
        elif char == "[":
            piece, index = _bracket(pattern, index)
            out += piece
        elif char == "(" and pattern[index + 1 : index + 2] == "?":
            opened.append(0)
            out += char
        elif char == "(":
            count += 1
            where.append(count)
            opened.append(len(where))
            out += "((?:" if marked and len(where) not in certain else "("
        elif char == ")" and opened:
            group = opened.pop()
            if marked and group and group not in certain:
                count += 1
                marks[group] = count
                out += r")(?=([\s\S]*))"
            out += char
        elif char == "$":
            out += r"(?=\n|\z)" if lines else r"\z"
        elif char == "^":
            out += r"(?<![^\n])" if lines else r"\A"
        else:
            out += char
        index += 1
    at_ends = tuple(marks.get(group) for group in range(1, len(where) + 1)) if marked else ()
    prefix = re.match(r"\(\?[a-z]+\)", out)
    if prefix:  # options at the head of the pattern itself
        return Regex(f"(?{inline}:{prefix[0]}{out[prefix.end() :]})", tuple(where), at_ends)
    return Regex(f"(?{inline}:{out})" if inline else f"(?:{out})", tuple(where), at_ends)


def _is_spaced(pattern: str, flags: str) -> bool:
    """Whether white space and comments in the pattern mean nothing, also between a group and how often it comes."""
    return "x" in flags or re.match(r"\(\?[a-wyz]*x", pattern) is not None


def _certain(pattern: str) -> frozenset[int]:
    """The groups that take part in every match: no alternative is beside them or beside what is around them, and
    nothing of that may be left out."""
    inside: list[set[int]] = [set()]  # for each level that is open: its groups that are certain as far as it goes
    branches = [False]  # whether the level has alternatives
    numbers: list[int] = []  # the group that opened each level, 0 for one that holds nothing, -1 for one that looks
    count = index = 0
    while index < len(pattern):
        char = pattern[index]
        if char == "\\":
            index += 1
        elif char == "[":
            _, index = _bracket(pattern, index)
        elif char == "(":
            holds = pattern[index + 1 : index + 2] != "?"
            count += holds
            numbers.append(count if holds else 0 if pattern.startswith("(?:", index) else -1)
            inside.append(set())
            branches.append(False)
        elif char == "|":
            branches[-1] = True
        elif char == ")" and numbers:
            number, within, parted = numbers.pop(), inside.pop(), branches.pop()
            kept = set() if parted else within
            if number > 0:
                kept.add(number)
            if number >= 0 and pattern[index + 1 : index + 2] not in ("?", "*", "{"):
                inside[-1] |= kept
        index += 1
    return frozenset() if branches[0] or numbers else frozenset(inside[0])


def _bracket(pattern: str, start: int) -> tuple[str, int]:
    """A bracket expression from `start`, and where its last character is."""
    out, index = "[", start + 1
    if pattern[index : index + 1] == "^":
        out, index = "[^", index + 1
    first = True
    while index < len(pattern):
        char = pattern[index]
        if char == "]" and not first:
            return out + "]", index
        if pattern.startswith("[:", index) and (end := pattern.find(":]", index)) > 0:
            name = pattern[index + 2 : end]
            if name not in _CLASSES:
                raise InvalidParameter(f'invalid regular expression: invalid character class "{name}"')
            out, index = out + f"\\p{{{_CLASSES[name]}}}", end + 2
        elif char == "\\" and index + 1 < len(pattern):
            out, index = out + pattern[index : index + 2], index + 2
        else:
            out, index = out + ("\\" + char if char in "[]&~" else char), index + 1
        first = False
    raise InvalidParameter("invalid regular expression: brackets [] not balanced")


def _literal(value: str) -> str:
    return re.sub(r"([\\.\[\]{}()*+?^$|])", r"\\\1", value)


def similar(pattern: str, escape: str | None = "\\") -> str:
    """SIMILAR TO's pattern, for the whole text: LIKE's wildcards with alternation and repetition."""
    out, index, inside, separators = "", 0, False, 0
    while index < len(pattern):
        char = pattern[index]
        if escape and char == escape and index + 1 < len(pattern):
            index += 1
            if pattern[index] == '"' and not inside:  # a part of the pattern, for SUBSTRING
                separators += 1
                out += "(" if separators == 1 else ")"
            else:
                out += _literal(pattern[index]) if not pattern[index].isalpha() else _escaped_letter(pattern[index])
        elif inside:
            inside = char != "]"
            out += "\\\\" if char == "\\" else char
        elif char == "[":
            inside, out = True, out + char
        elif char == "(":
            out += "(?:"
        else:
            out += {"%": "(?s:.*)", "_": "(?s:.)", ".": r"\.", "^": r"\^", "$": r"\$", "\\": r"\\"}.get(char, char)
        index += 1
    return rf"\A(?:{out})\z"


def _escaped_letter(letter: str) -> str:
    return _ESCAPES.get(letter, "\\" + letter if letter in "dDsSwW" else letter)
