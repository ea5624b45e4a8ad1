"""Tokens out of text: strings decoded, junk refused at its place, nesting bounded, and buffers still being typed."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest
from sqlglot.tokenizer_core import TokenType

from seiche.errors import StatementTooComplex, SyntaxError_
from seiche.sql.parse import parse, parse_type
from seiche.sql.tokens import (
    MAX_NESTING,
    MAX_TYPE_NESTING,
    Split,
    refuse_deep_nesting,
    source_of,
    split,
    statement_tokens,
    tokenize,
)


@pytest.fixture
def _stack_of_the_engine() -> Iterator[None]:
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(10_000)
    yield
    sys.setrecursionlimit(before)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("'it''s'", "it's"),
        (r"'a\nb'", r"a\nb"),
        (r"E'a\nb\t\\\'\x41\101\u00e9\U0001F6A2'", "a\nb\t\\'AA\u00e9\U0001f6a2"),
        (r"E'\uD83D\uDEA2'", "\U0001f6a2"),
        (r"U&'\0041\+01F6A2\\'", "A\U0001f6a2\\"),
        ("$$it's; a 'quote'$$", "it's; a 'quote'"),
        ("$tag$a $$ b$tag$", "a $$ b"),
        ("'two '\n  'lines'", "two lines"),
    ],
)
def test_every_spelling_of_a_string_is_one_decoded_token(text: str, value: str) -> None:
    assert [(token.token_type, token.text) for token in tokenize(text)] == [(TokenType.STRING, value)]


@pytest.mark.parametrize(
    ("text", "message", "position"),
    [
        ("SELECT 'abc", 'unterminated quoted string at or near "\'abc"', 8),
        (r"SELECT E'a\'", "unterminated quoted string at or near \"E'a\\'\"", 8),
        ('SELECT "abc', 'unterminated quoted identifier at or near ""abc"', 8),
        ("SELECT $a$b$$", 'unterminated dollar-quoted string at or near "$a$b$$"', 8),
        ("SELECT /* /* */", 'unterminated /* comment at or near "/* /* */"', 8),
        ("SELECT 1abc", 'trailing junk after numeric literal at or near "1abc"', 8),
        (r"SELECT E'ab\u12'", "invalid Unicode escape", 12),
        (r"SELECT U&'\zz'", "invalid Unicode escape", 11),
        (r"SELECT E'\uD83D'", "invalid Unicode surrogate pair", 10),
        ("SELECT 'a' 'b'", "syntax error at or near \"'b'\"", 12),
        ("SELECT a == b", 'syntax error at or near "=="', 10),
        ("SELECT `a`", 'syntax error at or near "`"', 8),
    ],
)
def test_text_that_is_no_token_is_refused_at_its_place(text: str, message: str, position: int) -> None:
    with pytest.raises(SyntaxError_) as caught:
        tokenize(text)
    assert (caught.value.message, caught.value.position) == (message, position)


def test_keywords_of_two_words_are_one_token_even_across_a_comment() -> None:
    kinds = [token.token_type for token in tokenize("ORDER /* by arrival */ BY at")]
    assert kinds[0] is TokenType.ORDER_BY
    assert len(kinds) == 2


def test_each_statement_comes_with_the_semicolon_that_ends_it() -> None:
    text = "FLUSH ;; SELECT ';' -- a comment;\n"
    found = [(source_of(text, tokens), end and end.start) for tokens, end in statement_tokens(text)]
    assert found == [("FLUSH", 6), ("SELECT ';'", None)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", Split((), "")),
        ("  -- nothing yet\n", Split((), "")),
        ("SELECT 1", Split((), "SELECT 1")),
        ("SELECT 1;", Split(("SELECT 1",), "")),
        (" SELECT 1 ; -- done\n", Split(("SELECT 1",), "")),
        ("a; b;\nc", Split(("a", "b"), "c")),
        (";;a;", Split(("a",), "")),
        ("SELECT 'a;b'; x", Split(("SELECT 'a;b'",), "x")),
        ("SELECT 'it''s; fine'; x", Split(("SELECT 'it''s; fine'",), "x")),
        (r"SELECT E'\';'; x", Split((r"SELECT E'\';'",), "x")),
        (r"SELECT '\'; x", Split((r"SELECT '\'",), "x")),
        ('SELECT "a;""b"; x', Split(('SELECT "a;""b"',), "x")),
        ("SELECT $$a;b$$; x", Split(("SELECT $$a;b$$",), "x")),
        ("SELECT $f$ $$;$$ $f$; x", Split(("SELECT $f$ $$;$$ $f$",), "x")),
        ("SELECT 1 -- no; no\n; x", Split(("SELECT 1 -- no; no",), "x")),
        ("SELECT /* ; /* ; */ ; */ 1; x", Split(("SELECT /* ; /* ; */ ; */ 1",), "x")),
        ("SELECT (1; 2); x", Split(("SELECT (1; 2)",), "x")),
        ("SELECT 1); x", Split(("SELECT 1)",), "x")),
        ("a; SELECT (1;\n", Split(("a",), "SELECT (1;", "(")),
        ("a; SELECT 'b;\n", Split(("a",), "SELECT 'b;\n", "'")),
        (r"a; SELECT E'b\';", Split(("a",), r"SELECT E'b\';", "'")),
        ('a; SELECT "b;', Split(("a",), 'SELECT "b;', '"')),
        ("a; SELECT $x$b$$;", Split(("a",), "SELECT $x$b$$;", "$")),
        ("a; /* b;", Split(("a",), "/* b;", "*")),
    ],
)
def test_a_buffer_is_cut_at_its_semicolons(text: str, expected: Split) -> None:
    assert split(text) == expected


_NESTED = {
    "parentheses": ("(", "1", ")"),
    "calls": ("abs(", "1", ")"),
    "subscripts": ("a[", "1", "]"),
    "cases": ("CASE WHEN true THEN ", "1", " END"),
    "subqueries": ("(SELECT ", "1", ")"),
    "predicates": ("1 IN (SELECT 1 WHERE ", "true", ")"),
}


@pytest.mark.usefixtures("_stack_of_the_engine")
@pytest.mark.parametrize(("opening", "inner", "closing"), _NESTED.values(), ids=_NESTED)
def test_a_few_hundred_levels_are_read(opening: str, inner: str, closing: str) -> None:
    depth = 250
    assert len(parse("SELECT " + opening * depth + inner + closing * depth)) == 1


@pytest.mark.usefixtures("_stack_of_the_engine")
@pytest.mark.parametrize(("opening", "inner", "closing"), _NESTED.values(), ids=_NESTED)
def test_the_first_level_too_many_is_named(opening: str, inner: str, closing: str) -> None:
    for depth in (MAX_NESTING + 1, 10_000):
        with pytest.raises(StatementTooComplex) as caught:
            parse("SELECT " + opening * depth + inner + closing * depth)
        opened = len("SELECT ") + len(opening) * MAX_NESTING
        assert opened < (caught.value.position or 0) <= opened + len(opening)


@pytest.mark.usefixtures("_stack_of_the_engine")
@pytest.mark.parametrize(
    "text",
    [
        "EXPLAIN " * 10_000 + "SELECT 1",
        "SELECT " + "NOT " * 10_000 + "true",
        "SELECT " + "- " * 10_000 + "1",
        "SELECT a" + "[1]" * 10_000,
        "SELECT 1::" + "struct<a " * 10_000 + "int" + ">" * 10_000,
        "CREATE TABLE t (a " + "struct<a " * 10_000 + "int" + ">" * 10_000 + ")",
        "CREATE TABLE t (a int" + "[]" * 10_000 + ")",
    ],
    ids=["explain", "not", "minus", "subscripts", "cast to struct", "struct", "array"],
)
def test_endless_nesting_without_parentheses_is_refused_too(text: str) -> None:
    with pytest.raises(StatementTooComplex):
        parse(text)


@pytest.mark.parametrize(
    "text",
    ["SELECT " + "(" * 5_000, "SELECT " + "CASE " * 5_000, "EXPLAIN " * 5_000 + "SELECT 1"],
    ids=["parentheses", "cases", "explain"],
)
def test_endless_nesting_is_refused_on_a_small_stack(text: str) -> None:
    with pytest.raises(StatementTooComplex):
        parse(text)


@pytest.mark.parametrize("opening", ["ARRAY[", "date(", "abs(ARRAY["])
def test_levels_that_sqlglot_would_read_twice_each_are_few(opening: str) -> None:
    closing = "])" if opening == "abs(ARRAY[" else "]" if opening == "ARRAY[" else ")"
    parse("SELECT " + opening * MAX_TYPE_NESTING + "a" + closing * MAX_TYPE_NESTING)
    with pytest.raises(StatementTooComplex):
        parse("SELECT " + opening * (MAX_TYPE_NESTING + 1) + "a" + closing * (MAX_TYPE_NESTING + 1))


@pytest.mark.parametrize(
    "text",
    [
        "SELECT " + ", ".join(["(1)", "ARRAY[1]", "CASE WHEN a THEN 1 END"] * 400),
        "SELECT " + ", ".join(["t.case"] * 400),
        "SELECT " + ", ".join(["1 AS end"] * 400),
        "SELECT " + "(CASE), " * 400,
        "SELECT " + ")" * 400,
    ],
    ids=["side by side", "columns named case", "aliases named end", "cases without end", "nothing open"],
)
def test_only_what_is_inside_each_other_counts_as_nested(text: str) -> None:
    refuse_deep_nesting(tokenize(text))


@pytest.mark.usefixtures("_stack_of_the_engine")
@pytest.mark.parametrize("suffix", ["[]", "[3]", " array"])
def test_a_type_may_nest_as_deep_as_a_statement(suffix: str) -> None:
    structs = MAX_NESTING // 3
    text = "struct<a int, b " * structs + "int" + suffix * structs + ">" * structs + suffix * structs
    parse_type(text)
    with pytest.raises(StatementTooComplex) as caught:
        parse_type(text + suffix)
    assert caught.value.detail == f"A type has at most {MAX_NESTING} levels of arrays and structs."


def test_a_struct_may_have_more_arrays_than_levels() -> None:
    fields = ", ".join(f"f{number} int[]" for number in range(MAX_NESTING + 1))
    assert len(parse_type(f"struct<{fields}>").fields) == MAX_NESTING + 1
