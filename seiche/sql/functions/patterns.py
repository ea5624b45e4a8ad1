"""Functions of regular expressions. Patterns and flags that are not constant are taken as Java understands them."""

from __future__ import annotations

import re
from dataclasses import dataclass

from sqlglot import exp

from seiche.errors import FeatureNotSupported, InvalidParameter
from seiche.sql.functions.registry import function
from seiche.sql.functions.strings import constant_text
from seiche.sql.literals import constant_integer
from seiche.sql.nodes import (
    Settings,
    binary,
    call,
    case,
    conjunction,
    each_by_itself,
    equal,
    guarded,
    integer,
    lambda_,
    not_null,
    null,
    text,
    typed,
)
from seiche.sql.operators import no_longer, searched
from seiche.sql.regexes import Regex, similar, translate
from seiche.types import BOOLEAN, INTEGER, VARCHAR, array_of

Nodes = list[exp.Expr]
TEXTS = array_of(VARCHAR)


def _is_null(node: exp.Expr) -> bool:
    """Whether it is written as NULL."""
    return isinstance(node, exp.Null) or (isinstance(node, exp.Cast) and isinstance(node.this, exp.Null))


def _flags(name: str, arguments: Nodes, index: int) -> str:
    return constant_text(name, arguments[index]) if len(arguments) > index else ""


def _flags_of_one(name: str, arguments: Nodes, index: int) -> str:
    """The flags of a function that all matches, or one of them, are its own choice of."""
    flags = _flags(name, arguments, index)
    if "g" in flags:
        raise InvalidParameter(f"{name}() does not support the global option")
    return flags


def _pattern(
    name: str,
    node: exp.Expr,
    flags: str = "",
    *,
    before: int = 0,
    marked: bool = False,
    followed: int = 0,
    counted: bool = True,
) -> Regex:
    if not isinstance(node, exp.Literal):
        raise FeatureNotSupported(f"function {name} needs a constant pattern here")
    flags = flags.replace("g", "")
    return translate(node.this, flags, before=before, marked=marked, followed=followed, counted=counted)


def _constant(name: str, arguments: Nodes, index: int, default: int, parameter: str, least: int) -> int:
    if len(arguments) <= index:
        return default
    value = constant_integer(arguments[index])
    if value is None:
        raise FeatureNotSupported(f"function {name} needs constant positions")
    if value < least:
        raise InvalidParameter(f'invalid value for parameter "{parameter}": {value}')
    return value


def _from(start: int, java: str) -> str:
    """The pattern where it matches at a position or behind it, with what is before still in sight."""
    if start == 1:
        return java
    # Of characters that Java keeps as two it would look back over too few: what never matches has it look further.
    return rf"(?<!\A(?s:.{{0,{start - 2}}})[^\s\S]{{0,{start - 2}}}){java}"


@dataclass(frozen=True, slots=True)
class _Nth:
    """A match of many, as a pattern for the whole text before it and for itself. All before it is in group 1."""

    java: str
    whole: int  # the group of the match
    regex: Regex  # its own groups

    def group(self, number: int) -> int:
        """PostgreSQL's group; the first one of a pattern without groups is the match."""
        return self.regex.where[number - 1] if number and self.regex.groups else self.whole

    def took_part(self, number: int) -> str:
        """A pattern that matches if there is such a match and the group took part in it."""
        mark = self.regex.marks[number - 1] if number and self.regex.groups else None
        return self.java if mark is None else _took_part(self.java, mark)


def _nth(name: str, pattern: exp.Expr, flags: str, start: int, count: int, *, marked: bool, followed: int = 0) -> _Nth:
    earlier, whole = "", 2
    if count > 1:
        one = _pattern(name, pattern, flags, counted=False)
        found = rf"(?s:.*?){one.java}"
        if one.may_be_empty:  # the next one is looked for behind the character that follows
            found = rf"(?s:.*?)(?=((?s:.*))){one.java}(?:(?!\2\z)|(?s:.))"
            whole = 3
        earlier = f"(?>{found}){{{count - 1}}}"
    skipped = f"(?s:.{{{start - 1}}})" if start > 1 else ""
    regex = _pattern(name, pattern, flags, before=whole, marked=marked, followed=followed)
    return _Nth(rf"\A({skipped}{earlier}(?s:.*?))({regex.java})", whole, regex)


def _took_part(java: str, mark: int) -> str:
    return rf"(?>{java})\{mark}"


# --- replacing ---------------------------------------------------------------------------------------


def _replacement(node: exp.Expr, where: tuple[int, ...] | None = None, whole: int = 0) -> exp.Expr:
    r"""PostgreSQL's `\1` and `\&` as Java's `$1` and `$0`.

    `where` are the numbers that the groups really have, if they are known, and `whole` is that of the match.
    """
    if isinstance(node, exp.Literal):

        def reference(found: re.Match[str]) -> str:
            escaped, following = found[1], "\\" if found[2] else ""  # a digit behind it would be one of its number
            if found[0].startswith("$"):
                return "\\$"
            if escaped == "&":
                return f"${whole}{following}"
            if not escaped.isdecimal():
                return "\\\\"
            group = int(escaped)
            if where is not None and group > len(where):
                return ""
            return f"${group if where is None else where[group - 1]}{following}"

        return text(re.sub(r"\\([1-9&\\]|)(?=([0-9])?)|\$", reference, node.this))
    dollars = call(VARCHAR, "replace", node, text("$"), text("\\$"))
    return call(VARCHAR, "regexp_replace", dollars, text(r"\\([1-9])"), text(r"\$$1"))


@function("regexp_replace", takes=[VARCHAR, VARCHAR, VARCHAR, VARCHAR], optional=1)
def _regexp_replace(arguments: Nodes, settings: Settings) -> exp.Expr:
    """The first match only, unless the flags have `g`."""
    pattern, replacement = arguments[1:3]
    flags = _flags("regexp_replace", arguments, 3)
    if "g" in flags:
        return _replaced_all(arguments, flags, 1, settings)
    if isinstance(pattern, exp.Literal) and isinstance(replacement, exp.Literal):
        return _replaced_nth(arguments, flags, 1, 1, settings)
    node, wanted = searched(arguments[0], pattern, settings, flags)
    return _replaced_first(node, wanted, replacement)


@function("regexp_replace", takes=[VARCHAR, VARCHAR, VARCHAR, INTEGER, INTEGER, VARCHAR], optional=2)
def _regexp_replace_at(arguments: Nodes, settings: Settings) -> exp.Expr:
    """From a position on, the n-th match or all of them (0)."""
    name = "regexp_replace"
    start = _constant(name, arguments, 3, 1, "start", 1)
    count = _constant(name, arguments, 4, 1, "n", 0)
    flags = _flags(name, arguments, 5)
    if count == 0:
        return _replaced_all(arguments, flags, start, settings)
    if not isinstance(arguments[2], exp.Literal):
        raise FeatureNotSupported("function regexp_replace needs a constant replacement here")
    return _replaced_nth(arguments, flags, start, count, settings)


def _replaced_all(arguments: Nodes, flags: str, start: int, settings: Settings) -> exp.Expr:
    node, pattern, replacement = arguments[:3]
    if start == 1 and not isinstance(pattern, exp.Literal):
        node, wanted = searched(node, pattern, settings, flags)
        return call(VARCHAR, "regexp_replace", node, wanted, _replacement(replacement))
    found = _pattern("regexp_replace", pattern, flags, marked=_shows_groups(replacement))
    node, wanted = no_longer(node, found.longest, settings), text(_from(start, found.java))
    return call(VARCHAR, "regexp_replace", node, wanted, _replacement(replacement, found.where))


def _shows_groups(replacement: exp.Expr) -> bool:
    return not isinstance(replacement, exp.Literal) or re.search(r"\\[1-9]", replacement.this) is not None


def _replaced_nth(arguments: Nodes, flags: str, start: int, count: int, settings: Settings) -> exp.Expr:
    node, pattern, replacement = arguments[:3]
    found = _nth("regexp_replace", pattern, flags, start, count, marked=_shows_groups(replacement))
    body = _replacement(replacement, found.regex.where, found.whole)
    assert isinstance(body, exp.Literal)
    apart = "\\" if body.this[:1].isdigit() else ""
    node = no_longer(node, found.regex.longest, settings)
    return call(VARCHAR, "regexp_replace", node, text(found.java), text(f"$1{apart}{body.this}"))


def _replaced_first(node: exp.Expr, wanted: exp.Expr, replacement: exp.Expr) -> exp.Expr:
    """With a pattern or replacement that varies by row: what is before the match, the match, what is after."""
    position = call(INTEGER, "regexp_instr", node.copy(), wanted.copy())
    found = call(VARCHAR, "regexp_extract", node.copy(), wanted.copy(), integer(0))
    before = call(VARCHAR, "substr", node.copy(), integer(1), binary(exp.Sub, INTEGER, position, integer(1)))
    after = call(
        VARCHAR, "substr", node.copy(), binary(exp.Add, INTEGER, position.copy(), call(INTEGER, "length", found))
    )
    replaced = call(VARCHAR, "regexp_replace", found.copy(), wanted.copy(), _replacement(replacement))
    matched = call(BOOLEAN, "rlike", node.copy(), wanted.copy())
    known = conjunction([not_null(matched.copy()), not_null(replacement.copy())])
    empty = equal(found.copy(), text(""))  # then it is at the front, and Spark tells no position
    put = call(VARCHAR, "regexp_replace", text(""), text(""), _replacement(replacement.copy()))
    at_front = call(VARCHAR, "concat", put, node.copy())
    return case(
        VARCHAR,
        [
            (conjunction([matched, empty]), at_front),
            (matched.copy(), call(VARCHAR, "concat", before, replaced, after)),
            (known, node),
        ],
    )


# --- finding -----------------------------------------------------------------------------------------


@function("regexp_match", takes=[VARCHAR, VARCHAR, VARCHAR], optional=1)
def _regexp_match(arguments: Nodes, settings: Settings) -> exp.Expr:
    """The groups of the first match, or the whole of it."""
    if any(_is_null(argument) for argument in arguments[1:]):
        return null(TEXTS)
    if not all(isinstance(argument, exp.Literal) for argument in arguments[1:]):
        node, _ = searched(arguments[0], arguments[1].copy(), settings)
        return _match_by_row(node, arguments[1], arguments[2] if len(arguments) > 2 else text(""), settings)
    flags = _flags("regexp_match", arguments, 2)
    found = _pattern("regexp_match", arguments[1], flags, marked=True)
    node = no_longer(arguments[0], found.longest, settings)
    wanted = text(found.java)
    groups = [_group(node, found, number) for number in range(1, found.groups + 1)]
    if not groups:
        groups = [call(VARCHAR, "regexp_extract", node.copy(), wanted.copy(), integer(0))]
    return each_by_itself(case(TEXTS, [(call(BOOLEAN, "rlike", node, wanted), call(TEXTS, "array", *groups))]))


def _match_by_row(node: exp.Expr, pattern: exp.Expr, flags: exp.Expr, settings: Settings) -> exp.Expr:
    """The whole match of a pattern or flags that vary by row. Java cannot tell a group that took no part from an empty
    one, so such a pattern has none."""
    fold = call(BOOLEAN, "rlike", flags, text("i[^c]*$"))
    wanted = call(VARCHAR, "concat", case(VARCHAR, [(fold, text("(?is)"))], text("(?s)")), pattern)
    taken = call(VARCHAR, "regexp_extract", node.copy(), wanted.copy(), integer(0))
    found = case(TEXTS, [(call(BOOLEAN, "rlike", node, wanted), call(TEXTS, "array", taken))])
    grouped = call(BOOLEAN, "rlike", pattern.copy(), text(r"(?<!\\)\((?!\?)"))
    found = guarded(found, grouped, "function regexp_match needs a constant pattern where it has groups", settings)
    other = call(BOOLEAN, "rlike", flags.copy(), text("[^ic]"))
    found = guarded(found, other, "function regexp_match needs constant flags, unless they are i and c", settings)
    return case(TEXTS, [(conjunction([not_null(pattern.copy()), not_null(flags.copy())]), found)])


def _group(node: exp.Expr, found: Regex, number: int) -> exp.Expr:
    """A group of the first match; NULL where it took no part in it."""
    taken = call(VARCHAR, "regexp_extract", node.copy(), text(found.java), integer(found.where[number - 1]))
    mark = found.marks[number - 1]
    if mark is None:
        return taken
    first = _took_part(rf"\A(?s:.*?){found.java}", mark)
    return case(VARCHAR, [(call(BOOLEAN, "rlike", node.copy(), text(first)), taken)])


def all_matches(arguments: Nodes, settings: Settings) -> exp.Expr:
    """regexp_matches: an array for each match. As in RisingWave it needs no flag `g` to look for more than one."""
    if any(_is_null(argument) for argument in arguments[1:]):
        return null(array_of(TEXTS))
    flags = _flags("regexp_matches", arguments, 2)
    found = _pattern("regexp_matches", arguments[1], flags, marked=True)
    node = no_longer(arguments[0], found.longest, settings)
    last = max((*found.where, *(mark or 0 for mark in found.marks)), default=0)
    lists: list[exp.Expr] = []

    def each(java: str, group: int) -> exp.Expr:
        """What a group holds, in the match that is `m`."""
        field = exp.to_identifier(str(len(lists)), quoted=True)
        lists.append(call(TEXTS, "regexp_extract_all", node.copy(), text(java), integer(group)))
        return typed(exp.Dot(this=exp.column("m"), expression=field), VARCHAR)

    def cell(group: int, mark: int | None) -> exp.Expr:
        taken = each(found.java, group)
        if mark is None:
            return taken
        # A letter behind the match, or before its end, is met where the group took part. The empty text has neither.
        beside = [each(rf"{found.java}(?:\{mark}{look}|)", last + 1) for look in (r"(?=([\s\S]))", r"(?<=([\s\S]))")]
        first = call(BOOLEAN, "rlike", node.copy(), text(_took_part(rf"\A{found.java}", mark)))
        apart = conjunction([equal(letter, text("")) for letter in beside])
        met = conjunction([equal(node.copy(), text("")), first])
        return case(VARCHAR, [(met, taken), (apart, null(VARCHAR))], taken.copy())

    cells = [cell(group, mark) for group, mark in zip(found.where or (0,), found.marks or (None,), strict=True)]
    matches = call(TEXTS, "arrays_zip", *lists)
    return call(array_of(TEXTS), "transform", matches, lambda_(call(TEXTS, "array", *cells), "m"))


@function("regexp_like", takes=[VARCHAR, VARCHAR, VARCHAR], optional=1)
def _regexp_like(arguments: Nodes, settings: Settings) -> exp.Expr:
    node, wanted = searched(arguments[0], arguments[1], settings, _flags_of_one("regexp_like", arguments, 2))
    return call(BOOLEAN, "rlike", node, wanted)


@function("regexp_count", takes=[VARCHAR, VARCHAR, INTEGER, VARCHAR], optional=2)
def _regexp_count(arguments: Nodes, settings: Settings) -> exp.Expr:
    name = "regexp_count"
    start = _constant(name, arguments, 2, 1, "start", 1)
    flags = _flags_of_one(name, arguments, 3)
    if start > 1 and not isinstance(arguments[1], exp.Literal):
        raise FeatureNotSupported(f"function {name} needs a constant pattern here")
    node, wanted = searched(arguments[0], arguments[1], settings, flags)
    if isinstance(wanted, exp.Literal):
        wanted = text(_from(start, wanted.this))
    return call(INTEGER, "regexp_count", node, wanted)


@function("regexp_substr", takes=[VARCHAR, VARCHAR, INTEGER, INTEGER, VARCHAR, INTEGER], optional=4)
def _regexp_substr(arguments: Nodes, settings: Settings) -> exp.Expr:
    name = "regexp_substr"
    start = _constant(name, arguments, 2, 1, "start", 1)
    count = _constant(name, arguments, 3, 1, "n", 1)
    group = _constant(name, arguments, 5, 0, "subexpr", 0)
    found = _nth(name, arguments[1], _flags_of_one(name, arguments, 4), start, count, marked=group > 0)
    node = no_longer(arguments[0], found.regex.longest, settings)
    if group > max(found.regex.groups, 1):
        return null(VARCHAR)
    taken = call(VARCHAR, "regexp_extract", node, text(found.java), integer(found.group(group)))
    return case(VARCHAR, [(call(BOOLEAN, "rlike", node.copy(), text(found.took_part(group))), taken)])


@function("regexp_instr", takes=[VARCHAR, VARCHAR, INTEGER, INTEGER, INTEGER, VARCHAR, INTEGER], optional=5)
def _regexp_instr(arguments: Nodes, settings: Settings) -> exp.Expr:
    """Where the n-th match, or a group of it, starts or (with 1 as the fifth argument) where what follows it does."""
    name = "regexp_instr"
    start = _constant(name, arguments, 2, 1, "start", 1)
    count = _constant(name, arguments, 3, 1, "n", 1)
    ends = _constant(name, arguments, 4, 0, "endoption", 0)
    if ends > 1:
        raise InvalidParameter(f'invalid value for parameter "endoption": {ends}')
    group = _constant(name, arguments, 6, 0, "subexpr", 0)
    flags = _flags_of_one(name, arguments, 5)
    found = _nth(name, arguments[1], flags, start, count, marked=group > 0, followed=group)
    node = no_longer(arguments[0], found.regex.longest, settings)
    known = not_null(node.copy())
    if group > max(found.regex.groups, 1):
        return case(INTEGER, [(known, integer(0))])

    def taken(group: int) -> exp.Expr:
        return call(VARCHAR, "regexp_extract", node.copy(), text(found.java), integer(group))

    if found.regex.following is not None:
        rest = taken(found.regex.following)
        if not ends:
            rest = call(VARCHAR, "concat", taken(found.group(group)), rest)
        before = binary(exp.Sub, INTEGER, call(INTEGER, "length", node.copy()), call(INTEGER, "length", rest))
    else:
        first = taken(1)
        before = call(INTEGER, "length", call(VARCHAR, "concat", first, taken(found.whole)) if ends else first)
    position = binary(exp.Add, INTEGER, before, integer(1))
    matched = call(BOOLEAN, "rlike", node.copy(), text(found.took_part(group)))
    return case(INTEGER, [(matched, position), (known, integer(0))])


# --- splitting and taking out ------------------------------------------------------------------------


@function("regexp_split_to_array", takes=[VARCHAR, VARCHAR, VARCHAR], optional=1)
def split_to_array(arguments: Nodes, settings: Settings) -> exp.Expr:
    flags = _flags("regexp_split_to_array", arguments, 2)
    if isinstance(arguments[1], exp.Literal) and arguments[1].this == "":
        return call(TEXTS, "split", arguments[0], text(""))  # the characters
    node, wanted = searched(arguments[0], arguments[1], settings, flags)
    if isinstance(wanted, exp.Literal):
        # A match of nothing splits neither right behind another match nor at the end.
        wanted = text(rf"(?!\z)(?:{wanted.this})(?!\G)")
    return call(TEXTS, "split", node, wanted)


@function("substring", takes=[VARCHAR, VARCHAR])
def _substring_regex(arguments: Nodes, settings: Settings) -> exp.Expr:
    """The match, or its first group; NULL without a match."""
    node, pattern = arguments
    if not isinstance(pattern, exp.Literal):
        node, wanted = searched(node, pattern, settings)
        found = call(VARCHAR, "regexp_extract", node, wanted, integer(0))
        return case(VARCHAR, [(call(BOOLEAN, "rlike", node.copy(), wanted.copy()), found)])
    translated = translate(pattern.this, marked=True)
    node = no_longer(node, translated.longest, settings)
    wanted = text(translated.java)
    if translated.groups:
        found = _group(node, translated, 1)
    else:
        found = call(VARCHAR, "regexp_extract", node.copy(), wanted, integer(0))
    return case(VARCHAR, [(call(BOOLEAN, "rlike", node, wanted.copy()), found)])


@function("substring", takes=[VARCHAR, VARCHAR, VARCHAR])
def _substring_similar(arguments: Nodes, settings: Settings) -> exp.Expr:
    """`SUBSTRING(x SIMILAR p ESCAPE e)`: the part between two escaped quotes."""
    node, pattern, escape = arguments
    if not isinstance(pattern, exp.Literal) or not isinstance(escape, exp.Literal):
        raise FeatureNotSupported("function substring needs a constant pattern here")
    translated = similar(pattern.this, escape.this)
    node = no_longer(node, translated.longest, settings)
    wanted = text(translated.java)
    found = call(VARCHAR, "regexp_extract", node, wanted, integer(1 if translated.groups else 0))
    return case(VARCHAR, [(call(BOOLEAN, "rlike", node.copy(), wanted.copy()), found)])
