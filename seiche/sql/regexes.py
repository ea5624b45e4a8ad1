r"""Regular expressions: PostgreSQL's as Java writes them.

The dot matches a line break and `$` only the very end, unless the flag `n` asks for lines; bracket classes, word
boundaries and `\Z` are spelled differently. One thing stays Java's: of several alternatives it takes the first that
matches, not the longest.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from seiche.errors import FeatureNotSupported, InvalidParameter, OutOfDomain
from seiche.sql.regex_groups import Group, Piece, tree_of
from seiche.sql.regex_parts import Part, Token, literal_text, read

# Java would also find nothing between the halves of a character that it keeps as two.
_WHOLE_CHARACTERS = r"(?![\x{dc00}-\x{dfff}])"
# Where a repeated group may match in several ways, Java calls itself for each time, and fails when its stack is full.
# One of 16 MiB, which Seiche asks for, is enough for so many characters, with this many groups around each of them.
LONGEST, _GROUPS = 10_000, 4
_KNOWN_FLAGS = frozenset("gimnpqstwcx")


@dataclass(frozen=True, slots=True)
class Regex:
    """A pattern that stands as one group, so that others can be put around it. `where` tells each group's number.

    With marks a group that may be left out has one: a group that is empty, and set if it took part in the match. A
    reference to it tells, which matches only then. Another group holds what follows the one that this is asked for.
    """

    java: str
    where: tuple[int, ...]  # of PostgreSQL's groups 1, 2, ... among Java's
    marks: tuple[int | None, ...] = ()
    following: int | None = None
    may_be_empty: bool = True  # whether it may match nothing
    longest: int | None = None  # the characters of a text that is surely not too long for Java's way to match it

    @property
    def groups(self) -> int:
        return len(self.where)


def translate(
    pattern: str,
    flags: str = "",
    *,
    before: int = 0,
    marked: bool = False,
    followed: int = 0,
    counted: bool = True,
) -> Regex:
    """The pattern under some flags, to be put behind `before` groups of others. Its own are `counted`, or hold nothing,
    and have marks if that is asked for, as what follows one of them is."""
    unknown = set(flags) - _KNOWN_FLAGS
    if unknown:
        raise InvalidParameter(f'invalid regular expression option: "{sorted(unknown)[0]}"')
    found = read(pattern, flags)
    dots_stop = any(flag in found.flags for flag in "nmp")
    inline = ("iu" if found.folds else "") + ("" if dots_stop else "s") + ("U" if found.has_classes else "")
    if found.literal is not None:
        return Regex(f"(?{inline}:{literal_text(found.literal)})", ())
    tree = tree_of(found.tokens)
    _refuse_endless_looks_back(tree)
    if followed in tree.repeated:
        raise FeatureNotSupported("it is not known where a repeated group of a regular expression matches")
    lines = any(flag in found.flags for flag in "nmw")
    writer = _Writer(tree.certain, before, lines, dots_stop, marked, followed, counted)
    out = (_WHOLE_CHARACTERS if tree.may_be_empty else "") + writer.inside(tree)
    groups = range(1, len(writer.where) + 1)
    around = (tree.depth - 1) * (2 if marked else 1)
    deep = tree.has_deep_loops or (marked and tree.repeated)
    return Regex(
        f"(?{inline}:{out})" if inline else f"(?:{out})",
        tuple(writer.where),
        tuple(writer.marks.get(group) for group in groups),
        writer.following,
        tree.may_be_empty,
        LONGEST * _GROUPS // max(around, _GROUPS) if deep else None,
    )


@dataclass(slots=True)
class _Writer:
    """Writes a pattern as Java's, and numbers its groups."""

    certain: frozenset[int]
    count: int  # of Java's groups so far
    lines: bool
    dots_stop: bool
    marked: bool
    followed: int
    counted: bool
    where: list[int] = field(default_factory=list)
    marks: dict[int, int] = field(default_factory=dict)
    following: int | None = None

    def inside(self, group: Group) -> str:
        return "|".join("".join(self._piece(piece) for piece in branch) for branch in group.branches)

    def _piece(self, piece: Piece) -> str:
        if isinstance(piece.what, Token):
            return self._token(piece.what) + piece.times
        # Java forgets to take a repeated group back, unless it may match in several ways: the second one here is none.
        restored = "(?:|(?!))" if self.marked and piece.is_repeated and piece.what.numbers else ""
        return self._group(piece.what, restored) + piece.times

    def _group(self, group: Group, restored: str) -> str:
        if not group.number:
            inside = self.inside(group)
            return f"{group.opening}(?:{inside}){restored})" if restored else f"{group.opening}{inside})"
        if not self.counted:
            return f"(?:{self.inside(group)})"
        self.where.append(self._next())
        inside, added = self.inside(group), ""
        if self.marked and group.number not in self.certain:
            self.marks[group.number] = self._next()
            added = "()"
        if group.number == self.followed:
            self.following = self._next()
            added += r"(?=([\s\S]*))"
        added += restored
        return f"((?:{inside}){added})" if added else f"({inside})"

    def _next(self) -> int:
        self.count += 1
        return self.count

    def _token(self, token: Token) -> str:
        match token.part:
            case Part.BACK if not self.counted:
                raise FeatureNotSupported("matches of a regular expression with back references cannot be counted")
            case Part.BACK:
                return f"(?:\\{self.where[int(token.java) - 1]})"  # a digit behind it would be one of its number
            case Part.BRACKET if self.dots_stop and token.java.startswith("[^"):
                return r"[^\n" + token.java[2:]
            case Part.BEGIN:
                return r"(?<![^\n])" if self.lines else r"\A"
            case Part.END:
                return r"(?=\n|\z)" if self.lines else r"\z"
            case _:
                return token.java


def _refuse_endless_looks_back(group: Group, inside: bool = False) -> None:
    """Java looks back over a known number of characters at most."""
    for piece in group.pieces():
        endless = piece.times[:1] in ("*", "+") or piece.times.rstrip("?").endswith(",}")
        refers = isinstance(piece.what, Token) and piece.what.part is Part.BACK
        if inside and (endless or refers):
            raise FeatureNotSupported(
                "a regular expression that looks back over any number of characters is not supported",
                hint="Say how many there are at most, as in (?<=a{1,20}).",
            )
        if isinstance(piece.what, Group):
            _refuse_endless_looks_back(piece.what, inside or piece.what.opening.startswith("(?<"))


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
