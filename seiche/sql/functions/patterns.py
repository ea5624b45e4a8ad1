"""Functions of regular expressions. Patterns and flags that are not constant are taken as Java understands them."""

from __future__ import annotations

import re

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
from seiche.sql.operators import regex
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
    name: str, node: exp.Expr, flags: str = "", *, before: int = 0, marked: bool = False, all_marked: bool = False
) -> Regex:
    if not isinstance(node, exp.Literal):
        raise FeatureNotSupported(f"function {name} needs a constant pattern here")
    return translate(node.this, flags.replace("g", ""), before=before, marked=marked, all_marked=all_marked)


def _wanted(node: exp.Expr, flags: str) -> exp.Expr:
    """A pattern as it is given to Spark, constant or not."""
    if isinstance(node, exp.Literal):
        return text(translate(node.this, flags.replace("g", "")).java)
    return regex(node, fold=flags.rfind("i") > flags.rfind("c"))


def _constant(name: str, arguments: Nodes, index: int, default: int) -> int:
    if len(arguments) <= index:
        return default
    value = constant_integer(arguments[index])
    if value is None:
        raise FeatureNotSupported(f"function {name} needs constant positions")
    return value


def _rest(node: exp.Expr, start: int, name: str) -> exp.Expr:
    if start < 1:
        raise InvalidParameter(f'invalid value for parameter "start": {start}')
    return node if start == 1 else call(VARCHAR, "substr", node, integer(start))


def _nth(name: str, pattern: exp.Expr, flags: str, count: int) -> Regex:
    """The pattern's n-th match, with all before it in group 1 and the match itself in group 2."""
    found = _pattern(name, pattern, flags, before=2)
    if count == 1:
        return Regex(rf"\A((?s:.*?))({found.java})", found.where)
    if re.search(r"\\[1-9]", found.java):
        raise FeatureNotSupported(f"function {name} cannot count matches of a pattern with back references")
    earlier = re.sub(r"(?<!\\)\((?!\?)", "(?:", found.java)
    return Regex(rf"\A((?s:(?:.*?{earlier}){{{count - 1}}}.*?))({found.java})", found.where)


# --- replacing ---------------------------------------------------------------------------------------


def _replacement(node: exp.Expr, where: tuple[int, ...] | None = None) -> exp.Expr:
    r"""PostgreSQL's `\1` and `\&` as Java's `$1` and `$0`; `where` are the numbers that the groups really have."""
    if isinstance(node, exp.Literal):

        def reference(found: re.Match[str]) -> str:
            if found[2]:
                return "\\$"
            if found[1] == "\\":
                return "\\\\"
            if found[1] == "&":
                return "$0" if where is None else "$2"
            group = int(found[1])
            if where is None or group == 0:
                return f"${group}"
            return f"${where[group - 1]}" if group <= len(where) else ""

        return text(re.sub(r"\\([\d&\\])|(\$)", reference, node.this))
    dollars = call(VARCHAR, "replace", node, text("$"), text("\\$"))
    return call(VARCHAR, "regexp_replace", dollars, text(r"\\(\d)"), text(r"\$$1"))


@function("regexp_replace", takes=[VARCHAR, VARCHAR, VARCHAR, VARCHAR], optional=1)
def _regexp_replace(arguments: Nodes, settings: Settings) -> exp.Expr:
    """The first match only, unless the flags have `g`."""
    node, pattern, replacement = arguments[:3]
    flags = _flags("regexp_replace", arguments, 3)
    if "g" in flags:
        return call(VARCHAR, "regexp_replace", node, _wanted(pattern, flags), _replacement(replacement))
    if isinstance(pattern, exp.Literal) and isinstance(replacement, exp.Literal):
        return _replaced_nth(node, pattern, replacement, flags, 1)
    return _replaced_first(node, _wanted(pattern, flags), replacement)


@function("regexp_replace", takes=[VARCHAR, VARCHAR, VARCHAR, INTEGER, INTEGER, VARCHAR], optional=2)
def _regexp_replace_at(arguments: Nodes, settings: Settings) -> exp.Expr:
    """From a position on, the n-th match or all of them (0)."""
    name = "regexp_replace"
    node, pattern, replacement = arguments[:3]
    start, count = _constant(name, arguments, 3, 1), _constant(name, arguments, 4, 1)
    flags = _flags(name, arguments, 5)
    rest = _rest(node.copy(), start, name)
    if count == 0:
        made = call(VARCHAR, "regexp_replace", rest, _wanted(pattern, flags), _replacement(replacement))
    elif isinstance(replacement, exp.Literal):
        made = _replaced_nth(rest, pattern, replacement, flags, count)
    else:
        raise FeatureNotSupported("function regexp_replace needs a constant replacement here")
    if start == 1:
        return made
    return call(VARCHAR, "concat", call(VARCHAR, "substr", node, integer(1), integer(start - 1)), made)


def _replaced_nth(node: exp.Expr, pattern: exp.Expr, replacement: exp.Expr, flags: str, count: int) -> exp.Expr:
    found = _nth("regexp_replace", pattern, flags, count)
    body = _replacement(replacement, found.where)
    assert isinstance(body, exp.Literal)
    return call(VARCHAR, "regexp_replace", node, text(found.java), text(f"$1{body.this}"))


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
    node = arguments[0]
    if any(_is_null(argument) for argument in arguments[1:]):
        return null(TEXTS)
    if not all(isinstance(argument, exp.Literal) for argument in arguments[1:]):
        return _match_by_row(node, arguments[1], arguments[2] if len(arguments) > 2 else text(""), settings)
    found = _pattern("regexp_match", arguments[1], _flags("regexp_match", arguments, 2), marked=True)
    wanted = text(found.java)
    groups = [_group(node, wanted, group, mark) for group, mark in zip(found.where, found.marks, strict=True)]
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


def _group(node: exp.Expr, wanted: exp.Expr, group: int, mark: int | None) -> exp.Expr:
    """A group of the first match; NULL where it took no part in it."""
    taken = call(VARCHAR, "regexp_extract", node.copy(), wanted.copy(), integer(group))
    if mark is None:
        return taken
    following = call(VARCHAR, "regexp_extract", node.copy(), wanted.copy(), integer(mark))
    apart = conjunction([equal(taken, text("")), equal(following, text(""))])
    return case(VARCHAR, [(apart, null(VARCHAR))], taken.copy())


def all_matches(arguments: Nodes, settings: Settings) -> exp.Expr:
    """regexp_matches: an array for each match. As in RisingWave it needs no flag `g` to look for more than one."""
    if any(_is_null(argument) for argument in arguments[1:]):
        return null(array_of(TEXTS))
    node, flags = arguments[0], _flags("regexp_matches", arguments, 2)
    found = _pattern("regexp_matches", arguments[1], flags, marked=True)
    wanted = text(found.java)
    numbers = [n for pair in zip(found.where, found.marks, strict=True) for n in pair if n is not None] or [0]
    columns = [call(TEXTS, "regexp_extract_all", node.copy(), wanted.copy(), integer(number)) for number in numbers]
    zipped = call(TEXTS, "arrays_zip", *columns)

    def cell(number: int) -> exp.Expr:
        field = exp.to_identifier(str(numbers.index(number)), quoted=True)
        return typed(exp.Dot(this=exp.column("m"), expression=field), VARCHAR)

    cells = [
        cell(taken)
        if mark is None
        else case(
            VARCHAR,
            [(conjunction([equal(cell(taken), text("")), equal(cell(mark), text(""))]), null(VARCHAR))],
            cell(taken),
        )
        for taken, mark in zip(found.where or (0,), found.marks or (None,), strict=True)
    ]
    return call(array_of(TEXTS), "transform", zipped, lambda_(call(TEXTS, "array", *cells), "m"))


@function("regexp_like", takes=[VARCHAR, VARCHAR, VARCHAR], optional=1)
def _regexp_like(arguments: Nodes, settings: Settings) -> exp.Expr:
    return call(BOOLEAN, "rlike", arguments[0], _wanted(arguments[1], _flags_of_one("regexp_like", arguments, 2)))


@function("regexp_count", takes=[VARCHAR, VARCHAR, INTEGER, VARCHAR], optional=2)
def _regexp_count(arguments: Nodes, settings: Settings) -> exp.Expr:
    start = _constant("regexp_count", arguments, 2, 1)
    wanted = _wanted(arguments[1], _flags_of_one("regexp_count", arguments, 3))
    return call(INTEGER, "regexp_count", _rest(arguments[0], start, "regexp_count"), wanted)


@function("regexp_substr", takes=[VARCHAR, VARCHAR, INTEGER, INTEGER, VARCHAR, INTEGER], optional=4)
def _regexp_substr(arguments: Nodes, settings: Settings) -> exp.Expr:
    name = "regexp_substr"
    start, count = _constant(name, arguments, 2, 1), _constant(name, arguments, 3, 1)
    group = _constant(name, arguments, 5, 0)
    found = _nth(name, arguments[1], _flags_of_one(name, arguments, 4), count)
    node = _rest(arguments[0], start, name)
    if group > found.groups:
        return null(VARCHAR)
    taken = call(VARCHAR, "regexp_extract", node, text(found.java), integer(found.where[group - 1] if group else 2))
    return case(VARCHAR, [(call(BOOLEAN, "rlike", node.copy(), text(found.java)), taken)])


@function("regexp_instr", takes=[VARCHAR, VARCHAR, INTEGER, INTEGER, INTEGER, VARCHAR, INTEGER], optional=5)
def _regexp_instr(arguments: Nodes, settings: Settings) -> exp.Expr:
    """Where the n-th match, or a group of it, starts or (with 1 as the fifth argument) where what follows it does."""
    name = "regexp_instr"
    start, count = _constant(name, arguments, 2, 1), _constant(name, arguments, 3, 1)
    ends, group = _constant(name, arguments, 4, 0), _constant(name, arguments, 6, 0)
    node = _rest(arguments[0], start, name)
    flags = _flags_of_one(name, arguments, 5)
    found = _nth(name, arguments[1], flags, count)
    matched = call(BOOLEAN, "rlike", node.copy(), text(found.java))
    if group == 0:
        before = call(INTEGER, "length", call(VARCHAR, "regexp_extract", node.copy(), text(found.java), integer(1)))
        taken = call(VARCHAR, "regexp_extract", node.copy(), text(found.java), integer(2))
    elif group > found.groups or count != 1:
        raise FeatureNotSupported("function regexp_instr counts groups of the first match only")
    else:
        marked = _pattern(name, arguments[1], flags, marked=True, all_marked=True)
        mark = marked.marks[group - 1]
        assert mark is not None
        following = call(VARCHAR, "regexp_extract", node.copy(), text(marked.java), integer(mark))
        taken = call(VARCHAR, "regexp_extract", node.copy(), text(marked.java), integer(marked.where[group - 1]))
        rest = call(INTEGER, "length", call(VARCHAR, "concat", taken.copy(), following))
        before = binary(exp.Sub, INTEGER, call(INTEGER, "length", node.copy()), rest)
    position = binary(exp.Add, INTEGER, before, integer(start))
    if ends:
        position = binary(exp.Add, INTEGER, position, call(INTEGER, "length", taken))
    return case(INTEGER, [(matched, position), (not_null(node.copy()), integer(0))])


# --- splitting and taking out ------------------------------------------------------------------------


@function("regexp_split_to_array", takes=[VARCHAR, VARCHAR, VARCHAR], optional=1)
def split_to_array(arguments: Nodes, settings: Settings) -> exp.Expr:
    flags = _flags("regexp_split_to_array", arguments, 2)
    if isinstance(arguments[1], exp.Literal) and arguments[1].this == "":
        return call(TEXTS, "split", arguments[0], text(""))  # the characters
    wanted = _wanted(arguments[1], flags)
    if isinstance(wanted, exp.Literal):
        # A match of nothing splits neither right behind another match nor at the end.
        wanted = text(rf"(?!\z)(?:{wanted.this})(?!\G)")
    return call(TEXTS, "split", arguments[0], wanted)


@function("substring", takes=[VARCHAR, VARCHAR])
def _substring_regex(arguments: Nodes, settings: Settings) -> exp.Expr:
    """The match, or its first group; NULL without a match."""
    node, pattern = arguments
    if not isinstance(pattern, exp.Literal):
        wanted = regex(pattern)
        found = call(VARCHAR, "regexp_extract", node, wanted, integer(0))
        return case(VARCHAR, [(call(BOOLEAN, "rlike", node.copy(), wanted.copy()), found)])
    translated = translate(pattern.this, marked=True)
    wanted = text(translated.java)
    if translated.groups:
        found = _group(node, wanted, translated.where[0], translated.marks[0])
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
    wanted = text(translated.java)
    found = call(VARCHAR, "regexp_extract", node, wanted, integer(1 if translated.groups else 0))
    return case(VARCHAR, [(call(BOOLEAN, "rlike", node.copy(), wanted.copy()), found)])
