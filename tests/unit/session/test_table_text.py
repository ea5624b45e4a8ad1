"""What SHOW CREATE shows says the same as what was created, in one way of writing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from seiche.sql.parse import parse
from seiche.sql.statements import CreateTable
from tests.unit.session.port import Port, open_port

TABLES = [
    "CREATE TABLE t (id int PRIMARY KEY, name varchar NOT NULL DEFAULT 'it''s', at date DEFAULT now(), gone int)",
    'CREATE TABLE t (a bigint, "B c" numeric(10,2), d double, PRIMARY KEY (a, "B c"), gone int) ON CONFLICT IGNORE',
    "CREATE TABLE t (at timestamp, tags varchar[], box struct<w int, h real>, code char(3), gone int) APPEND ONLY",
    "CREATE TABLE t (at date, n int AS 2 * m, m int, gone int, WATERMARK FOR at AS at) APPEND ONLY",
    "CREATE TABLE t (id int PRIMARY KEY, v bigint, gone int) WITH VERSION COLUMN (v)",
    "CREATE TABLE t (id int, raw bytea, doc jsonb, span interval, day date, gone int) WITH (note = 'it''s')",
]


@pytest.fixture
def port(tmp_path: Path) -> Iterator[Port]:
    with open_port(tmp_path) as opened:
        yield opened


@pytest.mark.parametrize("text", TABLES)
def test_the_text_declares_what_the_first_text_declared_less_what_went(port: Port, text: str) -> None:
    port.execute(text)
    port.execute("ALTER TABLE t DROP COLUMN gone")
    ((_, shown),) = port.rows("SHOW CREATE TABLE t")
    statements = [parse(each)[0].statement for each in (text.replace(", gone int", ""), shown)]
    first, second = statements
    assert isinstance(first, CreateTable)
    assert isinstance(second, CreateTable)
    assert _declared(first) == _declared(second)


def _declared(statement: CreateTable) -> object:
    key = statement.primary_key
    columns = [
        (
            column.name,
            column.type,
            column.nullable or column.name in key,
            column.default.text if column.default is not None else None,
            column.generated.text if column.generated is not None else None,
        )
        for column in statement.columns
    ]
    watermarks = [(each.column, each.expression.text) for each in statement.watermarks]
    rules = (statement.append_only, statement.on_conflict, statement.version_columns)
    return columns, key, watermarks, rules, dict(statement.options)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("create table v (id int, name varchar)", "CREATE TABLE v (id INT, name CHARACTER VARYING)"),
        ("create table v (at timestamptz, was timestamp)", "CREATE TABLE v (at timestamptz, was TIMESTAMP)"),
        (
            "create view v as select sum(tons) total from ships s\nwhere s.id != 1",
            "CREATE VIEW v AS SELECT sum(tons) AS total FROM ships AS s WHERE s.id <> 1",
        ),
        ("create view v (a) as (select id from ships)", "CREATE VIEW v (a) AS (SELECT id FROM ships)"),
        (
            "create sink v as select id from ships with ( connector = 'blackhole', type = 'upsert' )",
            "CREATE SINK v AS SELECT id FROM ships WITH (connector = 'blackhole', type = 'upsert')",
        ),
        (
            "create sink v from ships with (connector= 'blackhole')",
            "CREATE SINK v FROM ships WITH (connector = 'blackhole')",
        ),
        # In other words it would not be the user's.
        ("create view v as select id::bigint from ships", "create view v as select id::bigint from ships"),
        ("create view v as select id from ships where name is not null", None),
    ],
)
def test_definitions_are_shown_in_one_way_of_writing(port: Port, text: str, shown: str | None) -> None:
    port.execute("CREATE TABLE ships (id int, name varchar, tons int)")
    port.execute(text)
    kind = text.split()[1].upper()
    assert port.rows(f"SHOW CREATE {kind} v") == [("public.v", shown or text)]
