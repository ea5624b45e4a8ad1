r"""Random regular expressions, against what a real PostgreSQL makes of them: both refuse one, or both match the same.

SEICHE_TEST_REGEXES=<seed>:<how many> tries others. Compared is whether a text has a match, not which one it is: Java
takes the first alternative that leads to one, PostgreSQL the longest.
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

from seiche.errors import FeatureNotSupported, UserError
from seiche.sql.regexes import similar, translate
from tests.integration.postgres import temporary_server

pytestmark = pytest.mark.spark

TEXTS = [
    "", "a", "b", "ab", "ba", "aab", "abc", "A", "aB", "1", "a1", "12", "a-b", "_", "a_1", " ", "a b", "a\nb", "\n",
    "\t", "é", "aé", "É", "ß", "Straße", "😀", "a😀", "[", "]", "(", ")", "{", "}", "{1}", "a{1}", "\\", "\\a", "^",
    "$", "a.b", "*", "+", "?", "|", "a|b", "#", "a#b", "%", "\x07", "\x1b", "&", "a&&b", "~", "-", "aaaaa", "aa",
]  # fmt: skip
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
