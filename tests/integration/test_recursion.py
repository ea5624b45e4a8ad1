"""WITH RECURSIVE asked for once and kept as a view, and what ends one that does not end by itself."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest

import seiche
from seiche import errors
from seiche.session import apart

pytestmark = pytest.mark.spark

Open = Callable[..., seiche.Engine]

REACHED = """WITH RECURSIVE reached(a, b) AS (
    SELECT a, b FROM ways UNION {} SELECT r.a, w.b FROM reached r JOIN ways w ON w.a = r.b)
    SELECT a, b FROM reached"""
NUMBERS = "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t WHERE n < {}) SELECT n FROM t"
ENDLESS = "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n % 7 FROM t) SELECT * FROM t"


def rows(db: seiche.Engine, query: str) -> list[tuple[object, ...]]:
    return sorted(db.sql(query).rows or [], key=repr)


@pytest.mark.smoke
def test_a_query_follows_itself_until_nothing_is_new(db: seiche.Engine) -> None:
    assert rows(db, NUMBERS.format(5)) == [(1,), (2,), (3,), (4,), (5,)]
    db.execute("CREATE TABLE ways (a int, b int)")
    db.execute("INSERT INTO ways VALUES (1, 2), (2, 3), (3, 1)")
    every = [(a, b) for a in (1, 2, 3) for b in (1, 2, 3)]
    assert rows(db, REACHED.format("")) == every


def test_a_view_of_a_recursion_follows_its_tables(db: seiche.Engine) -> None:
    db.execute("CREATE TABLE ways (a int, b int)")
    db.execute("INSERT INTO ways VALUES (1, 2), (2, 3)")
    db.execute(f"CREATE MATERIALIZED VIEW reach AS {REACHED.format('')}")
    db.execute("CREATE MATERIALIZED VIEW far AS SELECT a, count(*) AS n FROM reach GROUP BY a")
    assert rows(db, "SELECT * FROM reach") == [(1, 2), (1, 3), (2, 3)]
    db.execute("INSERT INTO ways VALUES (3, 1)")
    assert rows(db, "SELECT * FROM far") == [(1, 3), (2, 3), (3, 3)]
    db.execute("DELETE FROM ways WHERE a = 2")
    assert rows(db, "SELECT * FROM reach") == [(1, 2), (3, 1), (3, 2)]
    assert rows(db, "SELECT * FROM far") == [(1, 1), (3, 2)]


def test_a_change_that_makes_a_view_endless_is_refused(open_database: Open) -> None:
    db = open_database(recursion_rounds_max=3)
    db.execute("CREATE TABLE ways (a int, b int)")
    db.execute("INSERT INTO ways VALUES (1, 2), (2, 3)")
    db.execute(f"CREATE MATERIALIZED VIEW paths AS {REACHED.format('ALL')}")
    with pytest.raises(errors.SeicheError) as caught:
        db.execute("INSERT INTO ways VALUES (3, 1)")
    assert caught.value.sqlstate == "54000"
    assert 'job "paths" failed: recursive query has not ended after 3 rounds' in caught.value.message
    assert rows(db, "SELECT * FROM ways") == [(1, 2), (2, 3)]
    db.execute("INSERT INTO ways VALUES (4, 1)")
    assert rows(db, "SELECT * FROM paths") == [(1, 2), (1, 3), (2, 3), (4, 1), (4, 2), (4, 3)]
    db.execute("DROP MATERIALIZED VIEW paths")
    db.execute("INSERT INTO ways VALUES (3, 1)")
    assert len(rows(db, "SELECT * FROM ways")) == 4
    with pytest.raises(errors.RecursionLimit, match="has not ended after 3 rounds"):
        db.execute(f"CREATE MATERIALIZED VIEW paths AS {REACHED.format('ALL')}")


def test_rounds_and_rows_are_limited_by_system_parameters(db: seiche.Engine) -> None:
    db.execute("ALTER SYSTEM SET recursion_rounds_max = 4")
    assert len(rows(db, NUMBERS.format(4))) == 4
    with pytest.raises(errors.RecursionLimit, match="has not ended after 4 rounds"):
        db.sql(NUMBERS.format(6)).rows  # noqa: B018
    db.execute("ALTER SYSTEM SET recursion_rows_max = 3")
    with pytest.raises(errors.RecursionLimit, match="has not ended after 3 rows"):
        db.sql(NUMBERS.format(6)).rows  # noqa: B018


def test_an_endless_recursion_ends_with_its_time(db: seiche.Engine) -> None:
    db.execute("ALTER SYSTEM SET recursion_rounds_max = 1000000")
    db.execute("SET statement_timeout = '1s'")
    started = time.monotonic()
    with pytest.raises(errors.QueryCanceled, match="statement timeout"):
        db.sql(ENDLESS).rows  # noqa: B018
    assert time.monotonic() - started < 60
    db.execute("SET statement_timeout = 0")
    wait_for_rounds_to_end()


def test_an_endless_recursion_is_cancelled(open_database: Open) -> None:
    db = open_database(recursion_rounds_max=1_000_000)
    session = db.session()
    caught: list[errors.SeicheError] = []

    def ask() -> None:
        try:
            session.execute(ENDLESS)[-1].rows  # noqa: B018
        except errors.SeicheError as error:
            caught.append(error)

    asking = threading.Thread(target=ask)
    asking.start()
    time.sleep(1)
    session.cancel()
    asking.join(60)
    assert not asking.is_alive()
    assert isinstance(caught[0], errors.QueryCanceled)
    wait_for_rounds_to_end()


def wait_for_rounds_to_end() -> None:
    """No thread goes on with a recursion that nobody waits for."""
    until = time.monotonic() + 60
    while apart._left._value < apart.LEFT_MAX:  # type: ignore[attr-defined]
        assert time.monotonic() < until
        time.sleep(0.1)


def test_kept_rounds_are_released_with_the_answer(db: seiche.Engine) -> None:
    spark = db.database.runtime.spark
    db.execute("CREATE TABLE ways (a int, b int)")
    db.execute("INSERT INTO ways VALUES (1, 2), (2, 3)")

    def kept() -> int:
        return int(spark.sparkContext._jsc.getPersistentRDDs().size())  # type: ignore[union-attr]

    before = kept()
    db.execute(f"CREATE MATERIALIZED VIEW reach AS {REACHED.format('')}")
    db.execute("INSERT INTO ways VALUES (3, 4)")
    assert kept() == before
