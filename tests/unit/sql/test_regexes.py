"""PostgreSQL's regular expressions in Java's words."""

from __future__ import annotations

import pytest

from seiche.errors import FeatureNotSupported, InvalidParameter
from seiche.sql.regexes import similar, translate


@pytest.mark.parametrize(
    ("pattern", "flags", "java"),
    [
        ("a.c", "", "(?s:a.c)"),
        ("A", "i", "(?ius:A)"),
        ("a.c", "n", "(?:a.c)"),
        ("^a$", "", r"(?s:\Aa\z)"),
        ("^a$", "n", r"(?:(?<![^\n])a(?=\n|\z))"),
        ("[[:alpha:]_]", "", r"(?sU:[\p{Alpha}_])"),
        ("[^]a]", "", r"(?s:[^\]a])"),
        ("[a&&b]", "", r"(?s:[a\&\&b])"),
        (r"\mberth\M", "", r"(?sU:\b(?=\w)berth\b(?<=\w))"),
        ("a.c", "q", r"(?s:a\.c)"),
        ("(?i)x", "", "(?ius:x)"),
        ("(?x) a # b", "", "(?s:a)"),
        ("a{b}{2}", "", r"(?s:a\{b\}{2})"),
        (r"\x41\102\b[\e]", "", r"(?s:\x{41}\x{42}\x{8}[\x{1b}])"),
        ("***=a*", "", r"(?s:a\*)"),
        ("[^a]", "n", r"(?:[^\na])"),
        (r"\d[\d_]", "", r"(?s:[0-9][0-9_])"),
        ("[[:lower:]]", "i", r"(?iusU:[\p{Alpha}])"),
    ],
)
def test_a_pattern_is_spelled_as_java_spells_it(pattern: str, flags: str, java: str) -> None:
    assert translate(pattern, flags).java == java


def test_groups_behind_others_keep_their_references() -> None:
    found = translate(r"(a)(?:b)(c)\2", before=2)
    assert found.where == (3, 4)
    assert found.java == r"(?s:(a)(?:b)(c)(?:\4))"


def test_marked_groups_tell_whether_they_took_part() -> None:
    found = translate("(a|b)(c)?", marked=True)
    assert found.java == "(?s:(a|b)((?:c)())?)"
    assert (found.where, found.marks) == ((1, 2), (None, 3))


def test_a_group_that_is_followed_tells_what_follows_it() -> None:
    found = translate("(a|b)(c)?", marked=True, followed=2)
    assert found.java == r"(?s:(a|b)((?:c)()(?=([\s\S]*)))?)"
    assert (found.where, found.marks, found.following) == ((1, 2), (None, 3), 4)


def test_a_repeated_group_is_taken_back_where_it_is_asked_for() -> None:
    assert translate("(a)*b").java == "(?s:(a)*b)"
    assert translate("(a)*b", marked=True).java == "(?s:((?:a)()(?:|(?!)))*b)"
    assert translate("(?:(a)b)+", marked=True).java == "(?s:(?:(?:(a)b)(?:|(?!)))+)"
    assert translate("(?:(a)b)+", marked=True).longest == 10_000
    with pytest.raises(FeatureNotSupported):
        translate("(a)*(b)", followed=1)
    assert translate("(a)*(b)", followed=2).following == 3


def test_groups_in_too_many_groups_are_refused() -> None:
    translate("(" * 100 + "a" + ")" * 100)
    with pytest.raises(InvalidParameter, match="too complex"):
        translate("(" * 101 + "a" + ")" * 101)


@pytest.mark.parametrize("pattern", ["", "a*", "(a|)", "(a|b*)c?", "^$", r"\m", "(?=a)", "(a){0,3}", "a|", "(?:a?)+"])
def test_nothing_is_looked_for_between_characters_only(pattern: str) -> None:
    assert r":(?![\x{dc00}-\x{dfff}])" in translate(pattern).java, "between the halves of one"


@pytest.mark.parametrize("pattern", ["a", "(a|b)", "a?b", "(a*)b", "(?:a|(b))c*", "[ab]+", "^.$"])
def test_a_pattern_that_takes_room_needs_no_care_for_halves(pattern: str) -> None:
    assert not translate(pattern).may_be_empty


@pytest.mark.parametrize(
    ("pattern", "longest"),
    [
        ("(a|b)*", 10_000),
        (r"(?:\w+\s?)+x", 10_000),
        ("((((((((((a|b))))))))))*", 4_000),
        ("(a|b)?c.*", None),
        ("(ab)*", None),
        (r"(?:\w{2})+", None),
        ("a|b", None),
        (r"\(a|b\)*", None),
        ("(a*b)", None),
        ("(?:(a|b)c)*", 10_000),
        ("(a|b){3}", 10_000),
    ],
)
def test_a_repeated_group_that_matches_in_several_ways_wants_texts_of_a_length(
    pattern: str, longest: int | None
) -> None:
    assert translate(pattern).longest == longest


@pytest.mark.parametrize(
    ("pattern", "uncertain"),
    [
        ("(a|b)(c)", []),
        ("(&|^)id=([^&|(]*)", []),
        ("(?:x(a))", []),
        (r"\((a)\|", []),
        ("(a)+(b)", []),
        ("(a|b)(c)?", [2]),
        ("(a)|(b)", [1, 2]),
        ("(a(b)|c)", [2]),
        ("((a)(b))*", [1, 2, 3]),
        ("(a){0,2}(b)", [1]),
        ("(?:(a)|b)(c)", [1]),
        ("(?!(a))(b)", []),
        ("(?:x|(?=(a)).(b))", [1]),
        ("(?x)(a) ?(b)", [1]),
    ],
)
def test_groups_that_take_part_in_every_match_need_no_mark(pattern: str, uncertain: list[int]) -> None:
    found = translate(pattern, marked=True)
    assert [number for number, mark in enumerate(found.marks, 1) if mark is not None] == uncertain
    assert len(found.marks) == found.groups


@pytest.mark.parametrize(
    ("pattern", "flags"),
    [("[a", ""), ("[[:tide:]]", ""), ("(a", ""), ("a**", ""), ("a{256}", ""), ("a", "z")],
)
def test_what_is_no_pattern_is_refused_when_bound(pattern: str, flags: str) -> None:
    with pytest.raises(InvalidParameter):
        translate(pattern, flags)


def test_looking_back_over_any_number_of_characters_is_refused_when_bound() -> None:
    assert translate("(?<=ab{1,3})c").java == "(?s:(?<=ab{1,3})c)"
    for pattern in ("(?<=ab*)c", "(?<!(?:ab{2,}))c"):
        with pytest.raises(FeatureNotSupported):
            translate(pattern)


@pytest.mark.parametrize(
    ("pattern", "escape", "java"),
    [
        ("a%", "\\", r"(?s:\A(?:a.*)\z)"),
        ("a_(b|c)", "\\", r"(?s:\A(?:a.(?:b|c))\z)"),
        ("a.b", "\\", r"(?s:\A(?:a\.b)\z)"),
        ("a#%", "#", r"(?s:\A(?:a%)\z)"),
        ("[[:alpha:]_%]", "\\", r"(?sU:\A(?:[\p{Alpha}_%])\z)"),
        ("a\\", "\\", r"(?s:\A(?:a)\z)"),
        ('%#"o_a#"_', "#", r"(?s:\A(?:.*)(o.a)(?:.)\z)"),
    ],
)
def test_similar_to_covers_the_whole_text(pattern: str, escape: str, java: str) -> None:
    assert similar(pattern, escape).java == java
