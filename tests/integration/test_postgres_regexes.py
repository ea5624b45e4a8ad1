r"""Random regular expressions, against what a real PostgreSQL makes of them: both refuse one, or both match the same.

SEICHE_TEST_REGEXES=<seed>:<how many> tries others. Compared is whether a text has a match, not which one it is: Java
takes the first alternative that leads to one, PostgreSQL the longest. What functions answer is compared
where that is the same.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import psycopg
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import seiche
from seiche.errors import FeatureNotSupported, UserError
from seiche.sql.regexes import similar, translate
from tests.integration.postgres import temporary_server

pytestmark = pytest.mark.spark

TEXTS = [
    "", "a", "b", "ab", "ba", "aab", "abc", "A", "aB", "1", "a1", "12", "a-b", "_", "a_1", " ", "a b", "a\nb", "\n",
    "\t", "é", "aé", "É", "ß", "Straße", "😀", "a😀", "[", "]", "(", ")", "{", "}", "{1}", "a{1}", "\\", "\\a", "^",
    "$", "a.b", "*", "+", "?", "|", "a|b", "#", "a#b", "%", "\x07", "\x1b", "&", "a&&b", "~", "-", "aaaaa", "aa",
]  # fmt: skip
CALLED_FOR = [
    "", "a", "ab", "aab", "abc", "ba1", "a1b2", "12", "a b", "a\nb", "é", "aéa", "😀a", "abab", "aaaa", "a.b.c",
    "x=1&y=2", "\\a1\\a2", "A", "aAbB", "_", "bbab",
]  # fmt: skip
WIDTH = 40  # calls of one query
PIECES = [
    "a", "b", "A", "1", " ", "_", "-", "é", "😀", "#", "%", ".", "^", "$", "|", "(", ")", "(", ")", "(?:", "(?=", "(?!",
    "(?<=", "(?<!", "(?", "(?#", "*", "+", "?", "*?", "+?", "??", "{", "}", "{1}", "{0}", "{1,2}", "{2,1}", "{1,}",
    "{,2}", "{256}", "{1", "{1,", "{a}", "[", "]", "[", "]", "[^", "[]", "[a-b]", "[b-a]", "[^a]", "[a-", "[]a]",
    "[[:alpha:]]", "[^[:space:]]", "[[:lower:]_]", "[[:nosuch:]]", "[[:digit:]-a]", "[[.a.]]", "[[=a=]]", "[[:<:]]",
    "[[:>:]]", "[[.ab.]]", "[[:", "[\\d]", "[\\w-]", "[^\\s]", "[\\n]", "[\\]", "[a\\]b]", "[a&&b]", "[a~#]", "\\",
    "\\\\", "\\d", "\\D", "\\w", "\\W", "\\s", "\\S", "\\m", "\\M", "\\y", "\\Y", "\\A", "\\Z", "\\1", "\\2", "\\12",
    "\\0", "\\101", "\\x41", "\\u0061", "\\U00000061", "\\x", "\\u12", "\\cA", "\\e", "\\n", "\\t", "\\B", "\\b", "\\q",
    "\\.", "\\(", "\\[", "\\^", "\\$", "\\-", "\\é", "\n", "\t",
]  # fmt: skip
STARTS = [
    "",
    "",
    "",
    "",
    "",
    "",
    "",
    "",
    "",
    "",
    "(?i)",
    "(?x)",
    "(?n)",
    "(?q)",
    "(?w)",
    "(?p)",
    "(?z)",
    "***=",
    "***:",
    "^",
]
SIMILAR = [
    *PIECES, "%", "%", "_", "_", "%", '\\"', "\\%", "\\_", "\\|", "[%]", "[_a]",
]  # fmt: skip


@pytest.fixture(scope="module")
def postgres() -> Iterator[psycopg.Connection[Any]]:
    with temporary_server() as server:
        with psycopg.connect(server.create_database(), autocommit=True) as connection:
            connection.execute("CREATE DATABASE letters TEMPLATE template0 LC_CTYPE 'C.UTF-8'")
        with psycopg.connect(server.address("letters"), autocommit=True) as connection:
            yield connection


def test_random_patterns_are_refused_or_match_as_those_of_postgres(
    spark: SparkSession, postgres: psycopg.Connection[Any]
) -> None:
    chance = random.Random(_seed_and_count()[0])
    patterns = [chance.choice(STARTS) + _some(chance, PIECES) for _ in range(_seed_and_count()[1])]
    _compare(spark, postgres, "~", patterns, lambda pattern: translate(pattern).java)


def test_random_patterns_of_similar_to_are_refused_or_match_as_those_of_postgres(
    spark: SparkSession, postgres: psycopg.Connection[Any]
) -> None:
    chance = random.Random(_seed_and_count()[0])
    patterns = [_some(chance, SIMILAR) for _ in range(_seed_and_count()[1])]
    _compare(spark, postgres, "SIMILAR TO", patterns, lambda pattern: similar(pattern).java)


# One piece at most may match in several ways, so that the first way is the longest.
FIXED = [
    "a", "b", ".", "[ab]", "[^a]", "\\w", "\\d", "\\D", "\\s", "=", "&", "\\.", "\\\\", "é", "A", "(a)", "(b)", "(.)",
    "(?:ab)", "(ab)", "(a(b))", "()", "^", "$", "\\y", "\\m", "\\M", "(?=b)", "(?!b)", "(?<=a)", "(?<!a)", "a{2}",
]  # fmt: skip
VARYING = [
    "", "", "a*", "b+", ".*", "\\w?", "[^a]+", "é*", "(a*)", "(\\w+)", "([ab])*", "(.)?", "(ab)*", "(?:(a)b)*",
    "(?:(a)|(b))", "(a|(b))", "\\d{1,2}", "(\\w){1,2}",
]  # fmt: skip
REPLACEMENTS = ["X", "<\\1>", "<\\&>", "\\\\", "$1", "[\\2\\1]", "", "\\", "\\10", "\\x"]


def test_random_calls_answer_as_those_of_postgres(
    open_database: Callable[..., seiche.Engine], postgres: psycopg.Connection[Any]
) -> None:
    chance = random.Random(_seed_and_count()[0])
    calls = [_call(chance) for _ in range(max(_seed_and_count()[1] // 20, WIDTH))]
    rows = ", ".join(f"({n}, {_quoted(text)})" for n, text in enumerate(CALLED_FOR))
    db = open_database()
    for statement in ("CREATE TABLE texts (n integer, t text)", f"INSERT INTO texts VALUES {rows}"):
        db.execute(statement)
        postgres.execute(statement)
    differences, refused = [], 0
    for start in range(0, len(calls), WIDTH):
        part = []
        for each in calls[start : start + WIDTH]:
            try:
                db.session().execute(f"EXPLAIN SELECT {each} FROM texts")
                part.append(each)
            except FeatureNotSupported:
                refused += 1
        query = f"SELECT {', '.join(f'{each} AS c{n}' for n, each in enumerate(part))} FROM texts ORDER BY n"
        answers = zip(CALLED_FOR, db.execute(query)[0].rows or [], postgres.execute(query), strict=True)
        for text, found, wanted in answers:
            for each, here, there in zip(part, found, wanted, strict=True):
                if here != there:
                    differences.append(f"{each} of {text!r} is {there!r} there and {here!r} here")
    assert not differences, "\n".join(differences)
    assert refused < len(calls) // 20


def _call(chance: random.Random) -> str:
    pieces = [*chance.choices(FIXED, k=chance.randint(0, 3)), chance.choice(VARYING)]
    chance.shuffle(pieces)
    pattern, replacement = _quoted("".join(pieces)), _quoted(chance.choice(REPLACEMENTS))
    flags, start, count = chance.choice(["", "", "i", "n", "x"]), chance.randint(1, 3), chance.randint(1, 3)
    end = chance.randint(0, 1)
    return chance.choice(
        [
            f"regexp_replace(t, {pattern}, {replacement}, '{flags}')",
            f"regexp_replace(t, {pattern}, {replacement}, '{flags}g')",
            f"regexp_replace(t, {pattern}, {replacement}, {start}, {count - 1}, '{flags}')",
            f"regexp_match(t, {pattern}, '{flags}')::text",
            f"(SELECT array_agg(m::text) FROM regexp_matches(t, {pattern}, '{flags}g') AS m)::text",
            f"regexp_like(t, {pattern}, '{flags}')",
            f"regexp_count(t, {pattern}, {start}, '{flags}')",
            f"regexp_substr(t, {pattern}, {start}, {count}, '{flags}', {count - 1})",
            f"regexp_instr(t, {pattern}, {start}, {count}, {end}, '{flags}')",
            f"regexp_instr(t, {pattern}, {start}, 1, {end}, '{flags}', {count - 1})",
            f"regexp_split_to_array(t, {pattern}, '{flags}')::text",
            f"substring(t FROM {pattern})",
        ]
    )


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _seed_and_count() -> tuple[int, int]:
    seed, _, count = os.environ.get("SEICHE_TEST_REGEXES", "1:2000").partition(":")
    return int(seed), int(count)


def _some(chance: random.Random, pieces: Sequence[str]) -> str:
    return "".join(chance.choices(pieces, k=chance.randint(1, 7)))


def _compare(
    spark: SparkSession,
    postgres: psycopg.Connection[Any],
    operator: str,
    patterns: list[str],
    translated: Callable[[str], str],
) -> None:
    wanted: dict[str, list[bool]] = {}  # of each pattern: for each text, whether it matches
    differences: list[str] = []
    javas: dict[str, str] = {}
    for pattern in dict.fromkeys(patterns):
        refused = None
        try:
            query = f"SELECT array_agg(t {operator} %s ORDER BY n) FROM unnest(%s::text[]) WITH ORDINALITY AS x (t, n)"
            row = postgres.execute(query, (pattern, TEXTS)).fetchone()
            assert row is not None
            wanted[pattern] = row[0]
        except psycopg.Error as error:
            refused = error.diag.message_primary
        try:
            java = translated(pattern)
            if refused is None:
                javas[pattern] = java
            else:
                differences.append(f"{pattern!r} is refused there: {refused}; here it is {java}")
        except FeatureNotSupported:
            pass
        except UserError as error:
            if refused is None:
                differences.append(f"{pattern!r} is refused here alone: {error}")
    assert not differences, "\n".join(differences)
    rows = [(pattern, java, text) for pattern, java in javas.items() for text in TEXTS]
    found = spark.createDataFrame(rows, "pattern string, java string, text string").select(
        "pattern", "java", "text", F.expr("text rlike java").alias("matches")
    )
    for row in found.collect():
        if row.matches != wanted[row.pattern][TEXTS.index(row.text)]:
            differences.append(
                f"{row.pattern!r}, here {row.java}: {row.text!r} matches {'here' if row.matches else 'there'} alone"
            )
    assert len(javas) > len(patterns) // 10
    assert not differences, "\n".join(differences)
