"""Functions of users, functions that return rows and time windows: in queries, in views and after a restart."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable

import pytest

import seiche
from seiche import errors

pytestmark = pytest.mark.spark

Open = Callable[..., seiche.Engine]


def rows(db: seiche.Engine, query: str) -> list[tuple[object, ...]]:
    return sorted(db.sql(query).rows or [], key=repr)


def test_a_function_in_sql_serves_queries_and_views_and_survives_a_restart(open_database: Open) -> None:
    db = open_database()
    db.execute("CREATE TABLE berths (id int PRIMARY KEY, depth int)")
    db.execute("INSERT INTO berths VALUES (1, 7), (2, NULL)")
    db.execute("CREATE FUNCTION draught(d int, tide int) RETURNS int LANGUAGE sql AS $$ SELECT d + tide $$")
    db.execute(
        "CREATE MATERIALIZED VIEW room WITH (incremental = 'strict') AS SELECT id, draught(depth, 2) AS d FROM berths"
    )
    assert rows(db, "SELECT * FROM room") == [(1, 9), (2, None)]
    assert rows(db, "SHOW FUNCTIONS") == [("public.draught",)]
    with pytest.raises(errors.SeicheError):
        db.execute("DROP FUNCTION draught(int, int)")
    db.close()
    again = open_database()
    again.execute("INSERT INTO berths VALUES (3, 10)")
    assert rows(again, "SELECT * FROM room") == [(1, 9), (2, None), (3, 12)]
    assert rows(again, "SELECT draught(1, 1)") == [(2,)]
    again.execute("DROP MATERIALIZED VIEW room")
    again.execute("DROP FUNCTION draught")
    with pytest.raises(errors.UndefinedFunction):
        again.sql("SELECT draught(1, 1)")


def test_a_function_in_python_runs_in_queries_and_views(open_database: Open) -> None:
    db = open_database()
    db.execute("CREATE TABLE ships (id int PRIMARY KEY, name varchar)")
    db.execute("INSERT INTO ships VALUES (1, 'Aurora'), (2, NULL), (3, '')")
    db.execute(
        "CREATE FUNCTION initial(name varchar) RETURNS varchar LANGUAGE python AS $$\n"
        "def initial(name):\n    return None if name is None else name[0].lower()\n$$"
    )
    db.execute("CREATE MATERIALIZED VIEW initials AS SELECT id, initial(name) AS i FROM ships")
    assert rows(db, "SELECT * FROM initials") == [(1, "a"), (2, None), (3, None)]
    assert rows(db, "SELECT initial(name) FROM ships WHERE id < 3") == [("a",), (None,)]
    with pytest.raises(errors.DataException, match="Python function"):
        db.sql("SELECT initial(name) FROM ships WHERE id = 3").rows  # noqa: B018 - reading them runs the query
    db.close()
    again = open_database()
    again.execute("UPDATE ships SET name = 'Borealis' WHERE id = 2")
    assert rows(again, "SELECT * FROM initials") == [(1, "a"), (2, "b"), (3, None)]


def test_a_python_body_that_does_not_define_the_function_is_refused(db: seiche.Engine) -> None:
    with pytest.raises(errors.InvalidDefinition, match="does not define it"):
        db.execute("CREATE FUNCTION f(a int) RETURNS int LANGUAGE python AS 'g = 1'")


def test_a_volatile_function_cannot_be_used_in_a_view(db: seiche.Engine) -> None:
    db.execute("CREATE TABLE t (a int)")
    db.execute("CREATE FUNCTION f(a int) RETURNS int VOLATILE AS 'SELECT a'")
    with pytest.raises(errors.FeatureNotSupported, match="cannot be used in a materialized view"):
        db.execute("CREATE MATERIALIZED VIEW v AS SELECT f(a) AS x FROM t")


def test_views_over_functions_that_return_rows_follow_their_table(db: seiche.Engine) -> None:
    db.execute("CREATE TABLE ships (id int PRIMARY KEY, tags varchar[], crew jsonb)")
    db.execute("""INSERT INTO ships VALUES (1, ARRAY['tug', 'old'], '["Ada", "Bo"]'), (2, NULL, '[]')""")
    db.execute("CREATE MATERIALIZED VIEW tags AS SELECT id, unnest(tags) AS tag FROM ships")
    db.execute(
        "CREATE MATERIALIZED VIEW crew AS SELECT s.id, c.name, c.n FROM ships s,"
        " jsonb_array_elements_text(s.crew) WITH ORDINALITY AS c(name, n)"
    )
    assert rows(db, "SELECT * FROM tags") == [(1, "old"), (1, "tug")]
    db.execute("""UPDATE ships SET tags = ARRAY['new'], crew = '["Cy"]' WHERE id = 2""")
    db.execute("DELETE FROM ships WHERE id = 1")
    assert rows(db, "SELECT * FROM tags") == [(2, "new")]
    assert rows(db, "SELECT * FROM crew") == [(2, "Cy", 1)]


def test_time_windows_put_rows_into_their_windows(db: seiche.Engine) -> None:
    db.execute(
        "CREATE TABLE tides (at timestamp, level int, WATERMARK FOR at AS at - interval '5 minutes') APPEND ONLY"
    )
    db.execute("INSERT INTO tides VALUES ('2024-01-01 00:07', 3), ('2024-01-01 00:12', 5)")
    db.execute(
        "CREATE MATERIALIZED VIEW by_ten WITH (incremental = 'strict') AS"
        " SELECT window_start, window_end, sum(level) AS l"
        " FROM tumble(tides, at, interval '10 minutes') GROUP BY window_start, window_end"
    )
    db.execute(
        "CREATE MATERIALIZED VIEW sliding AS SELECT window_start, count(*) AS n"
        " FROM hop(tides, at, interval '5 minutes', interval '10 minutes') GROUP BY window_start"
    )
    db.execute("INSERT INTO tides VALUES ('2024-01-01 00:09', 1)")

    def at(minute: int) -> dt.datetime:
        return dt.datetime(2024, 1, 1, 0, minute)

    assert rows(db, "SELECT * FROM by_ten") == [(at(0), at(10), 4), (at(10), at(20), 5)]
    assert rows(db, "SELECT * FROM sliding") == [(at(0), 2), (at(10), 1), (at(5), 3)]


def test_a_watermark_of_another_type_is_refused(db: seiche.Engine) -> None:
    with pytest.raises(errors.InvalidDefinition, match="another type"):
        db.execute("CREATE TABLE t (a int, WATERMARK FOR a AS to_timestamp(a)) APPEND ONLY")
