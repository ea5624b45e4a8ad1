r"""Regular expressions: PostgreSQL's as Java writes them.

The dot matches a line break and `$` only the very end, unless the flag `n` asks for lines; bracket classes, word
boundaries and `\Z` are spelled differently. One thing stays Java's: of several alternatives it takes the first that
matches, not the longest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from seiche.errors import FeatureNotSupported, InvalidParameter, OutOfDomain
from seiche.sql.regex_parts import Part, Token, literal_text, read

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
    found = read(pattern, flags)
    lines = any(flag in found.flags for flag in "nmw")
    dots_stop = any(flag in found.flags for flag in "nmp")
    inline = ("iu" if found.folds else "") + ("" if dots_stop else "s") + ("U" if found.has_classes else "")
    if found.literal is not None:
        return Regex(f"(?{inline}:{literal_text(found.literal)})", ())
    _refuse_endless_looks_back(found.tokens)
    certain = _certain(found.tokens) if marked and not all_marked else frozenset()
    out, count = "", before
    where: list[int] = []
    marks: dict[int, int] = {}
    opened: list[int] = []  # the groups around, 0 for one that holds nothing
    for token in found.tokens:
        match token.part:
            case Part.GROUP:
                count += 1
                where.append(count)
                opened.append(len(where))
                out += "((?:" if marked and len(where) not in certain else "("
            case Part.PLAIN_GROUP | Part.LOOK:
                opened.append(0)
                out += token.java
            case Part.CLOSE:
                group = opened.pop()
                if marked and group and group not in certain:
                    count += 1
                    marks[group] = count
                    out += r")(?=([\s\S]*))"
                out += token.java
            case Part.BACK:
                out += f"(?:\\{where[int(token.java) - 1]})"  # a digit behind it would be one of its number
            case Part.BRACKET if dots_stop and token.java.startswith("[^"):
                out += r"[^\n" + token.java[2:]
            case Part.BEGIN:
                out += r"(?<![^\n])" if lines else r"\A"
            case Part.END:
                out += r"(?=\n|\z)" if lines else r"\z"
            case _:
                out += token.java
    at_ends = tuple(marks.get(group) for group in range(1, len(where) + 1)) if marked else ()
    return Regex(f"(?{inline}:{out})" if inline else f"(?:{out})", tuple(where), at_ends)


def _refuse_endless_looks_back(tokens: Sequence[Token]) -> None:
    """Java looks back over a known number of characters at most."""
    inside: list[bool] = []
    for token in tokens:
        if token.part in (Part.GROUP, Part.PLAIN_GROUP, Part.LOOK):
            inside.append(token.java.startswith("(?<") or any(inside))
        elif token.part is Part.CLOSE:
            inside.pop()
        elif any(inside) and (token.part is Part.BACK or _is_endless(token)):
            raise FeatureNotSupported(
                "a regular expression that looks back over any number of characters is not supported",
                hint="Say how many there are at most, as in (?<=a{1,20}).",
            )


def _is_endless(token: Token) -> bool:
    return token.part is Part.QUANTIFIER and (token.java[0] in "*+" or token.java.rstrip("?").endswith(",}"))


def _certain(tokens: Sequence[Token]) -> frozenset[int]:
    """The groups that take part in every match: no alternative is beside them or beside what is around them, and
    nothing of that may be left out."""
    inside: list[set[int]] = [set()]  # for each level that is open: its groups that are certain as far as it goes
    branches = [False]  # whether the level has alternatives
    numbers: list[int] = []  # the group that opened each level, 0 for one that holds nothing, -1 for one that looks
    count = 0
    for token, following in zip(tokens, [*tokens[1:], None], strict=True):
        if token.part in (Part.GROUP, Part.PLAIN_GROUP, Part.LOOK):
            count += token.part is Part.GROUP
            numbers.append({Part.GROUP: count, Part.PLAIN_GROUP: 0}.get(token.part, -1))
            inside.append(set())
            branches.append(False)
        elif token.part is Part.BAR:
            branches[-1] = True
        elif token.part is Part.CLOSE:
            number, within, parted = numbers.pop(), inside.pop(), branches.pop()
            kept = set() if parted else within
            if number > 0:
                kept.add(number)
            left_out = following is not None and following.part is Part.QUANTIFIER and following.java[0] != "+"
            if number >= 0 and not left_out:
                inside[-1] |= kept
    return frozenset() if branches[0] else frozenset(inside[0])


def similar(pattern: str, escape: str | None = "\\") -> Regex:
    """SIMILAR TO's pattern, for the whole text: LIKE's wildcards with alternation and repetition.

    Escaped quotes part it in two or three, of which SUBSTRING wants the one between them; it is group 1.
    """
    out, separators = "", 0
    brackets, members = 0, ""  # how many are open, and what stands in the outermost
    rest = iter(pattern)
    for char in rest:
        if escape and char == escape:
            following = next(rest, "")
            if following == '"' and not brackets:
                separators += 1
                out += ")(" if separators == 1 else ")(?:"
            elif following:
                out += "\\" + following
                members += "\\"
        elif brackets:
            if char == "[":
                brackets += 1
            elif char == "]" and members not in ("", "^"):
                brackets -= 1
            out += "\\\\" if char == "\\" else char
            members += char
        elif char == "[":
            brackets, members = 1, ""
            out += char
        else:
            out += {"%": ".*", "_": ".", "(": "(?:", ".": r"\.", "^": r"\^", "$": r"\$", "\\": r"\\"}.get(char, char)
    if separators > 2:
        raise OutOfDomain(
            "SQL regular expression may not contain more than two escape-double-quote separators", sqlstate="2200C"
        )
    return translate(f"^(?:{out})$")
