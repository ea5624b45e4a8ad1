"""What a wrong statement gets, word for word: SQLSTATE, code, message, detail, hint and position."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from seiche.errors import UserError
from seiche.plan.reasons import REMEDIES
from seiche.session.run import Session
from tests.golden.recorded import check, recorded
from tests.golden.session import harbour_session

STRICT = "CREATE MATERIALIZED VIEW v WITH (incremental = 'strict') AS"
STATEMENTS = {
    "syntax": (
        "SELEC * FROM ships",
        "SELECT * FROM ships WHERE",
        "SELECT (1 + 2 FROM ships",
        "SELECT 'unfinished FROM ships",
        'SELECT "unfinished FROM ships',
        "SELECT 1 /* never closed",
        "CREATE TABLE",
        "CREATE TABLE buoys AS",
        "CREATE TABLE buoys (id)",
        "CREATE TABLE buoys (id int,,)",
        "CREATE MATERIALIZED VIEW v",
        "CREATE MATERIALIZED VIEW v AS",
        "INSERT INTO ships",
        "UPDATE ships",
        "DELETE ships",
        "DROP",
        "DROP TABLE",
        "EXPLAIN",
        "SHOW",
        "VACUUM (nosuch) ships",
        "LISTEN ships",
        "SELECT * FROM ships; SELEC 1",
    ),
    "names": (
        "SELECT * FROM shps",
        "SELECT * FROM north.ships",
        "SELECT nme FROM ships",
        "SELECT s.nme FROM ships s",
        "SELECT x.name FROM ships s",
        "SELECT ships.name FROM ships s",
        "SELECT id FROM ships JOIN berths ON true",
        "SELECT s.id FROM ships s JOIN berths s ON true",
        "WITH s AS (SELECT 1), s AS (SELECT 2) SELECT * FROM s",
        "SELECT * FROM elsewhere.public.ships",
        "SELECT * FROM elsewhere.rw_catalog.rw_tables",
        "INSERT INTO elsewhere.public.ships VALUES (1)",
        "DROP TABLE elsewhere.public.ships",
        "SELECT * FROM office.public.ships",
        "INSERT INTO office.public.ships VALUES (1)",
        "CREATE TABLE office.public.buoys (id int)",
        "DROP SCHEMA office.public",
        "SET database TO ofice",
        "SELECT uper(name) FROM ships",
        "SELECT sum(name) FROM ships",
        "SELECT round(name) FROM ships",
        "INSERT INTO shps VALUES (1)",
        "INSERT INTO ships (id, nme) VALUES (1, 'Ada')",
        "INSERT INTO heavy VALUES (1)",
        "UPDATE ships SET nme = 'Ada'",
        "UPDATE calls SET name = 'Ada'",
        "DELETE FROM shps",
        "DELETE FROM ships WHERE nme = 'Ada'",
        "DROP TABLE shps",
        "DROP TABLE heavy",
        "DROP MATERIALIZED VIEW calls",
        "DROP SCHEMA north",
        "DESCRIBE shps",
        "SHOW CREATE TABLE heavy",
        "ALTER TABLE shps RENAME TO boats",
    ),
    "types": (
        "SELECT name + 1 FROM ships",
        "SELECT tons || flag FROM ships WHERE name",
        "SELECT * FROM ships WHERE tons",
        "SELECT * FROM ships WHERE tons = 'many'",
        "SELECT * FROM ships WHERE name = 1",
        "SELECT * FROM ships JOIN berths ON ships.name = berths.id",
        "SELECT CASE WHEN free THEN 1 ELSE quay END FROM berths",
        "SELECT coalesce(tons, name) FROM ships",
        "SELECT name::boat FROM ships",
        "SELECT free::date FROM berths",
        "SELECT '2026-13-01'::date",
        "SELECT 'x'::int",
        "SELECT map_filter(MAP {'north': 2}, |k, v| v + 1)",
        "SELECT upper(1.5)",
        "SELECT name FROM ships UNION ALL SELECT free FROM berths",
        "SELECT name FROM ships UNION ALL SELECT quay, id FROM berths",
        "INSERT INTO ships (id, tons) VALUES (1, true)",
        "INSERT INTO ships (id, tons) VALUES (1, 'many')",
        "INSERT INTO ships (id, name) VALUES (1)",
        "INSERT INTO ships (id) VALUES (1, 2)",
        "UPDATE ships SET tons = free FROM berths",
        "UPDATE ships SET tons = 'many'",
    ),
    "queries": (
        "SELECT flag, tons FROM ships GROUP BY flag",
        "SELECT flag FROM ships WHERE count(*) > 1",
        "SELECT sum(count(*)) FROM ships",
        "SELECT name FROM ships HAVING tons > 1",
        "SELECT row_number() OVER () FROM ships GROUP BY flag HAVING row_number() OVER () > 1",
        "SELECT name FROM ships ORDER BY 3",
        "SELECT name FROM ships GROUP BY 3",
        "SELECT name FROM ships LIMIT -1",
        "SELECT name FROM ships LIMIT tons",
        "SELECT (SELECT id, name FROM ships)",
        "CREATE MATERIALIZED VIEW empty AS SELECT FROM ships",
        "SELECT * FROM ships WHERE id IN (SELECT id, name FROM ships)",
    ),
    "definitions": (
        "CREATE TABLE ships (id int)",
        "CREATE TABLE north.buoys (id int)",
        "CREATE TABLE buoys (id int, id int)",
        "CREATE TABLE buoys (id boat)",
        "CREATE TABLE buoys (id int, PRIMARY KEY (nr))",
        "CREATE TABLE buoys (id int PRIMARY KEY, nr int PRIMARY KEY)",
        "CREATE TABLE buoys (tags int[] PRIMARY KEY)",
        "CREATE TABLE buoys (_row_id int)",
        "CREATE TABLE buoys (_seq int)",
        "CREATE TABLE buoys (id int DEFAULT tons)",
        "CREATE TABLE buoys (id int, twice int AS nr * 2)",
        "CREATE TABLE buoys (id int PRIMARY KEY) APPEND ONLY ON CONFLICT OVERWRITE",
        "CREATE TABLE buoys (a, b) AS SELECT 1",
        "CREATE MATERIALIZED VIEW v AS SELECT name, name FROM ships",
        "CREATE VIEW v (a) AS SELECT id, name FROM ships",
        "CREATE MATERIALIZED VIEW heavy AS SELECT * FROM ships",
        "CREATE MATERIALIZED VIEW v AS SELECT name, name FROM ships",
        "CREATE MATERIALIZED VIEW v (a, b) AS SELECT id FROM ships",
        "CREATE MATERIALIZED VIEW v AS SELECT * FROM v",
        "CREATE MATERIALIZED VIEW v AS SELECT id, random() AS luck FROM ships",
        "CREATE MATERIALIZED VIEW v AS SELECT name AS _op FROM ships",
        "CREATE MATERIALIZED VIEW v AS SELECT name AS _count, count(*) AS n FROM ships GROUP BY name",
        "CREATE MATERIALIZED VIEW v AS SELECT max(x._op) FROM (SELECT tons AS _op FROM ships GROUP BY tons) x",
        "CREATE MATERIALIZED VIEW v AS SELECT * FROM rw_catalog.rw_tables",
        "CREATE MATERIALIZED VIEW v WITH (incremental = 'strict') AS SELECT id, rank() OVER (ORDER BY id) FROM ships",
        "CREATE MATERIALIZED VIEW v WITH (incremental = 'never') AS SELECT * FROM ships",
        "CREATE MATERIALIZED VIEW v WITH (refresh.interval.sec = 0) AS SELECT id FROM ships",
        "CREATE MATERIALIZED VIEW v WITH (refresh.cron = '0 25 * * *') AS SELECT id FROM ships",
        "CREATE MATERIALIZED VIEW v WITH (backfill_rate_limit = 'fast') AS SELECT id FROM ships",
        "CREATE MATERIALIZED VIEW v WITH (backfill_order = FIXED(ships, berths)) AS SELECT id FROM ships",
        "CREATE MATERIALIZED VIEW v WITH (backfill_order = FIXED(ships -> 3 berths)) AS SELECT id FROM ships",
        "CREATE MATERIALIZED VIEW v WITH (backfill_order = FIXED(ships -> ships)) AS SELECT id FROM ships",
        "CREATE MATERIALIZED VIEW v WITH (incrementl = 'auto') AS SELECT * FROM ships",
        "DROP TABLE ships",
        "DROP VIEW calls",
        "DROP MATERIALIZED VIEW heavy, busiest, quays",
        "ALTER TABLE ships RENAME TO berths",
        "ALTER VIEW heavy RENAME TO light",
        "ALTER SINK ships RENAME TO boats",
        "CREATE INDEX by_name ON ships (nome)",
        "CREATE INDEX by_name ON calls (name)",
        "CREATE INDEX by_name ON ships (name, flag) DISTRIBUTED BY (flag)",
        "CREATE DATABASE dev",
        "CREATE USER root PASSWORD 'secret'",
        "DROP DATABASE dev",
        "ALTER DATABASE dev RENAME TO port",
        "ALTER MATERIALIZED VIEW heavy AS SELECT id, name, tons FROM ships",
        "DROP USER root",
        "GRANT INSERT ON heavy TO postgres",
        "GRANT SELECT ON ships TO nobody",
        "COMMENT ON COLUMN ships.nme IS 'x'",
    ),
    "recomputed": (
        f"{STRICT} SELECT string_agg(name, ',') AS names FROM ships",
        f"{STRICT} SELECT (SELECT ship FROM arrivals WHERE ship = id GROUP BY ROLLUP (ship) LIMIT 1) FROM ships",
        f"{STRICT} SELECT s.id, n FROM ships s LEFT JOIN LATERAL generate_series(1, s.tons) n ON n > s.id",
        f"{STRICT} SELECT name FROM ships OFFSET 3",
        f"{STRICT} SELECT name FROM ships ORDER BY tons LIMIT 20000",
        f"{STRICT} WITH RECURSIVE t(n) AS (SELECT id FROM ships UNION SELECT n + 1 FROM t WHERE n < 9) SELECT n FROM t",
        f"{STRICT} SELECT name FROM ships WHERE (SELECT count(*) FROM berths) IN (SELECT ship FROM arrivals)",
        f"{STRICT} SELECT name FROM ships WHERE NOT now() < '2026-01-01'",
        f"{STRICT} SELECT name, rank() OVER (ORDER BY tons) AS place FROM ships",
        f"{STRICT} SELECT max(place) AS last FROM (SELECT rank() OVER (ORDER BY tons) AS place FROM ships OFFSET 1) x",
    ),
    "rows": (
        "INSERT INTO ships (id, id) VALUES (1, 1)",
        "UPDATE ships SET tons = 1, tons = 2",
        "UPDATE tides SET height = 0",
        "DELETE FROM tides",
        "UPDATE ships SET tons = sum(tons)",
        "INSERT INTO ships VALUES (1, 2, 3, 4, 5, 6, 7)",
        "DELETE FROM ships RETURNING nme",
        "SAVEPOINT low",
        "FETCH 5 FROM gulls",
        "DEALLOCATE tug",
        "EXPLAIN DROP TABLE ships",
        "CANCEL JOBS 1",
        "ALTER MATERIALIZED VIEW heavy SET BACKFILL_RATE_LIMIT = 10",
    ),
    "parameters": (
        "SET timezon = 'UTC'",
        "SET timezone = 'Europe/Atlantis'",
        "SET rw_implicit_flush = maybe",
        "SET statement_timeout = soon",
        "SET server_version = '17'",
        "SHOW timezon",
        "ALTER SYSTEM SET barrier_interval = 10",
        "ALTER SYSTEM SET barrier_interval_ms = 'often'",
        "ALTER SYSTEM SET barrier_interval_ms = -1",
        "ALTER SYSTEM SET data_dir = 'elsewhere'",
    ),
}


@pytest.fixture(scope="module")
def session() -> Session:
    return harbour_session()


def shown(session: Session, statement: str, before: str = "") -> str:
    """The error of a statement as a client shows it."""
    with pytest.raises(UserError) as caught:
        session.execute(before + statement)
    error = caught.value
    lines = [f"-- {statement}", f"ERROR {error.sqlstate} {error.code}: {error.message}"]
    if error.detail:
        lines.append(f"DETAIL: {error.detail}")
    if error.hint:
        lines.append(f"HINT: {error.hint}")
    if error.position is not None:
        position = error.position - len(before)
        lines.append(f"AT: {position} ({statement[position - 1 :][:12]})")
    return "\n".join(lines)


@pytest.mark.parametrize("topic", STATEMENTS)
def test_errors_read_as_recorded(session: Session, topic: str) -> None:
    check(f"errors/{topic}.txt", "\n\n".join(shown(session, statement) for statement in STATEMENTS[topic]))


def test_explain_refuses_a_view_exactly_as_create_does_but_for_a_name_that_is_taken(session: Session) -> None:
    creates = [each for each in STATEMENTS["definitions"] if each.startswith("CREATE MATERIALIZED VIEW")]
    refused = {each: shown(session, each).partition("\n")[2] for each in creates}
    wanted = {each: text for each, text in refused.items() if "already exists" not in text}
    assert wanted
    for statement, text in wanted.items():
        assert shown(session, statement, before="EXPLAIN ").partition("\n")[2] == text, statement


def test_every_reason_for_a_recompute_that_a_query_can_meet_is_recorded() -> None:
    """The others are about forms that binding has expanded before, or that nobody is known to be able to write."""
    never_seen = {"constant", "pivot", "shape", "table_function", "untyped", "using", "with"}
    text = (Path(__file__).parent / "errors" / "recomputed.txt").read_text(encoding="utf-8")
    assert set(re.findall(r"reason code: (\w+)", text)) == set(REMEDIES) - never_seen


def test_no_recorded_errors_are_left_over() -> None:
    assert recorded("errors") == set(STATEMENTS)


@pytest.mark.parametrize("topic", STATEMENTS)
def test_an_error_states_one_fact_and_its_detail_and_hint_are_sentences(session: Session, topic: str) -> None:
    for statement in STATEMENTS[topic]:
        with pytest.raises(UserError) as caught:
            session.execute(statement)
        error = caught.value
        assert "\n" not in error.message, statement
        assert not error.message.endswith("."), statement
        for sentence in (error.detail, error.hint):
            assert sentence is None or sentence.endswith((".", ")")), f"{statement}: {sentence}"
