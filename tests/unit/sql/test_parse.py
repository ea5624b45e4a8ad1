"""Statements out of text: each form, and each refusal with its place."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlglot import exp

from seiche import types
from seiche.errors import (
    DuplicateColumn,
    FeatureNotSupported,
    InvalidDefinition,
    InvalidParameter,
    SyntaxError_,
    UndefinedColumn,
    UndefinedObject,
    UserError,
)
from seiche.sql.parse import parse, parse_expression, parse_name, parse_query, parse_type, split
from seiche.sql.statements import (
    AlterOwner,
    AlterSystemSet,
    AlterUser,
    Assignment,
    Begin,
    CancelJobs,
    ColumnDef,
    CommentOn,
    Commit,
    ConflictRule,
    CreateDatabase,
    CreateIndex,
    CreateMaterializedView,
    CreateSchema,
    CreateTable,
    CreateTableAs,
    CreateUser,
    CreateView,
    Delete,
    Describe,
    Drop,
    Explain,
    ExplainFormat,
    ExplainJob,
    Flush,
    Grant,
    GrantTarget,
    IndexColumn,
    Insert,
    Listing,
    ObjectKind,
    ObjectName,
    OnConflict,
    Recover,
    Rename,
    ResetAll,
    Revoke,
    Rollback,
    Select,
    SetVariable,
    ShowAll,
    ShowColumns,
    ShowCreate,
    ShowObjects,
    ShowParameters,
    ShowVariable,
    SqlExpression,
    Statement,
    Update,
    Wait,
    Watermark,
)


def one(text: str) -> Statement:
    (parsed,) = parse(text)
    return parsed.statement


def name(*parts: str) -> ObjectName:
    return ObjectName(parts)


DEFAULT = SqlExpression(exp.Var(this="DEFAULT"), "DEFAULT")

DEFINITIONS: dict[str, Statement] = {
    "CREATE TABLE ships (id int)": CreateTable(name("ships"), (ColumnDef("id", types.INTEGER),)),
    "CREATE TABLE IF NOT EXISTS harbour.ships (id bigint PRIMARY KEY, title varchar NOT NULL)": CreateTable(
        name("harbour", "ships"),
        (ColumnDef("id", types.BIGINT), ColumnDef("title", types.VARCHAR, nullable=False)),
        primary_key=("id",),
        if_not_exists=True,
    ),
    "CREATE TABLE berths (pier int, no int, PRIMARY KEY (pier, no)) ON CONFLICT DO NOTHING": CreateTable(
        name("berths"),
        (ColumnDef("pier", types.INTEGER), ColumnDef("no", types.INTEGER)),
        primary_key=("pier", "no"),
        on_conflict=ConflictRule.IGNORE,
    ),
    "CREATE TABLE t (a int) ON CONFLICT OVERWRITE": CreateTable(
        name("t"), (ColumnDef("a", types.INTEGER),), on_conflict=ConflictRule.OVERWRITE
    ),
    "CREATE TEMPORARY TABLE t (a int)": CreateTable(name("t"), (ColumnDef("a", types.INTEGER),), temporary=True),
    "CREATE LOCAL TEMP TABLE t (a int) ON COMMIT PRESERVE ROWS": CreateTable(
        name("t"), (ColumnDef("a", types.INTEGER),), temporary=True
    ),
    "CREATE OR REPLACE TEMP VIEW v AS SELECT 1 AS a": CreateView(
        name("v"), (), parse_query("SELECT 1 AS a"), or_replace=True, temporary=True
    ),
    "CREATE TEMP TABLE t AS SELECT 1 AS a": CreateTableAs(name("t"), (), parse_query("SELECT 1 AS a"), temporary=True),
    "CREATE TABLE t (a int) ON CONFLICT DO UPDATE IF NOT NULL": CreateTable(
        name("t"), (ColumnDef("a", types.INTEGER),), on_conflict=ConflictRule.UPDATE_IF_NOT_NULL
    ),
    "CREATE TABLE tides (at timestamptz, level real, WATERMARK FOR at AS at - interval '5 minutes') APPEND ONLY "
    "WITH (retention_seconds = 60, 'Key.x' = 'v', a.b = true)": CreateTable(
        name("tides"),
        (ColumnDef("at", types.TIMESTAMPTZ), ColumnDef("level", types.REAL)),
        watermarks=(Watermark("at", parse_expression("at - interval '5 minutes'")),),
        append_only=True,
        options=(("retention_seconds", "60"), ("Key.x", "v"), ("a.b", "true")),
    ),
    "CREATE TABLE t (a int DEFAULT 1 + 2 NOT NULL, b int AS a * 2, c int GENERATED ALWAYS AS (a) STORED)": CreateTable(
        name("t"),
        (
            ColumnDef("a", types.INTEGER, nullable=False, default=parse_expression("1 + 2")),
            ColumnDef("b", types.INTEGER, generated=parse_expression("a * 2")),
            ColumnDef("c", types.INTEGER, generated=parse_expression("(a)")),
        ),
    ),
    "CREATE TABLE t (a int DEFAULT NULL, b bool DEFAULT 1 IS NOT NULL NOT NULL, c int DEFAULT 5 NULL)": CreateTable(
        name("t"),
        (
            ColumnDef("a", types.INTEGER, default=parse_expression("NULL")),
            ColumnDef("b", types.BOOLEAN, nullable=False, default=parse_expression("1 IS NOT NULL")),
            ColumnDef("c", types.INTEGER, default=parse_expression("5")),
        ),
    ),
    "CREATE TABLE t AS SELECT 1 AS a": CreateTableAs(name("t"), (), parse_query("SELECT 1 AS a")),
    "CREATE TABLE t (a, b) APPEND ONLY AS VALUES (1, 2)": CreateTableAs(
        name("t"), ("a", "b"), parse_query("VALUES (1, 2)"), append_only=True
    ),
    "CREATE MATERIALIZED VIEW busy AS SELECT * FROM berths": CreateMaterializedView(
        name("busy"), (), parse_query("SELECT * FROM berths")
    ),
    "CREATE MATERIALIZED VIEW IF NOT EXISTS s.busy (pier) WITH (parallelism = 2) AS SELECT 1": CreateMaterializedView(
        name("s", "busy"), ("pier",), parse_query("SELECT 1"), if_not_exists=True, options=(("parallelism", "2"),)
    ),
    "CREATE MATERIALIZED VIEW m AS SELECT 1 EMIT ON WINDOW CLOSE": CreateMaterializedView(
        name("m"), (), parse_query("SELECT 1"), emit_on_window_close=True
    ),
    "CREATE VIEW v (a) AS SELECT 1": CreateView(name("v"), ("a",), parse_query("SELECT 1")),
    "CREATE OR REPLACE VIEW v AS SELECT 1": CreateView(name("v"), (), parse_query("SELECT 1"), or_replace=True),
    "CREATE INDEX by_pier ON berths (pier DESC, lower(name) NULLS FIRST) INCLUDE (no) DISTRIBUTED BY (pier)": (
        CreateIndex(
            name("by_pier"),
            name("berths"),
            (
                IndexColumn(parse_expression("pier"), descending=True),
                IndexColumn(parse_expression("lower(name)"), nulls_first=True),
            ),
            include=("no",),
            distributed_by=(parse_expression("pier"),),
        )
    ),
    "CREATE INDEX ON berths (no)": CreateIndex(None, name("berths"), (IndexColumn(parse_expression("no")),)),
    "CREATE SCHEMA IF NOT EXISTS harbour AUTHORIZATION pilot": CreateSchema(name("harbour"), True, "pilot"),
    "CREATE DATABASE port WITH OWNER = pilot": CreateDatabase("port", owner="pilot"),
    "CREATE USER pilot WITH PASSWORD 's3a' SUPERUSER NOLOGIN": CreateUser("pilot", ("superuser", "nologin"), "s3a"),
    "DROP TABLE ships": Drop(ObjectKind.TABLE, (name("ships"),)),
    'DROP MATERIALIZED VIEW IF EXISTS s.a, "B" CASCADE': Drop(
        ObjectKind.MATERIALIZED_VIEW, (name("s", "a"), name("B")), if_exists=True, cascade=True
    ),
    "DROP VIEW v RESTRICT": Drop(ObjectKind.VIEW, (name("v"),)),
    "DROP SCHEMA s": Drop(ObjectKind.SCHEMA, (name("s"),)),
    "DROP USER pilot": Drop(ObjectKind.USER, (name("pilot"),)),
    "DROP SOURCE s": Drop(ObjectKind.SOURCE, (name("s"),)),
    "ALTER TABLE ships RENAME TO vessels": Rename(ObjectKind.TABLE, name("ships"), "vessels"),
    "ALTER MATERIALIZED VIEW m RENAME TO n": Rename(ObjectKind.MATERIALIZED_VIEW, name("m"), "n"),
    "ALTER USER pilot WITH PASSWORD NULL": AlterUser("pilot", (), None, True),
    "ALTER ROLE pilot CREATEROLE NOLOGIN": AlterUser("pilot", ("createuser", "nologin")),
    "ALTER USER pilot RENAME TO captain": AlterUser("pilot", new_name="captain"),
    "GRANT SELECT, INSERT ON ships TO pilot, ada WITH GRANT OPTION": Grant(
        ("select", "insert"), GrantTarget(ObjectKind.TABLE, (name("ships"),)), ("pilot", "ada"), True
    ),
    "GRANT ALL PRIVILEGES ON ALL MATERIALIZED VIEWS IN SCHEMA port TO pilot": Grant(
        (), GrantTarget(ObjectKind.MATERIALIZED_VIEW, (name("port"),), True, True), ("pilot",)
    ),
    "REVOKE GRANT OPTION FOR usage ON SCHEMA port FROM pilot CASCADE": Revoke(
        ("usage",), GrantTarget(ObjectKind.SCHEMA, (name("port"),), False, True), ("pilot",), True, True
    ),
    "ALTER MATERIALIZED VIEW visits OWNER TO pilot": AlterOwner(ObjectKind.MATERIALIZED_VIEW, name("visits"), "pilot"),
    "COMMENT ON TABLE ships IS 'all of them'": CommentOn(ObjectKind.TABLE, name("ships"), None, "all of them"),
    "COMMENT ON COLUMN s.ships.id IS NULL": CommentOn(ObjectKind.TABLE, name("s", "ships"), "id", None),
}

ROWS: dict[str, Statement] = {
    "SELECT 1": Select(parse_query("SELECT 1")),
    "(SELECT 1) UNION ALL (SELECT 2) ORDER BY 1": Select(parse_query("(SELECT 1) UNION ALL (SELECT 2) ORDER BY 1")),
    "WITH a AS (SELECT 1) SELECT * FROM a": Select(parse_query("WITH a AS (SELECT 1) SELECT * FROM a")),
    "VALUES (1), (2)": Select(parse_query("VALUES (1), (2)")),
    "TABLE ships": Select(parse_query("TABLE ships")),
    "INSERT INTO ships VALUES (1, 'Aurora')": Insert(name("ships"), (), parse_query("VALUES (1, 'Aurora')")),
    "INSERT INTO s.ships (id, name) SELECT 1, 'x' RETURNING *, id + 1 AS next": Insert(
        name("s", "ships"),
        ("id", "name"),
        parse_query("SELECT 1, 'x'"),
        tuple(parse_query("SELECT *, id + 1 AS next").tree.expressions),
    ),
    "INSERT INTO ships (SELECT 1)": Insert(name("ships"), (), parse_query("(SELECT 1)")),
    "INSERT INTO ships DEFAULT VALUES": Insert(name("ships"), (), None),
    "INSERT INTO ships AS s SELECT 1 ON CONFLICT DO NOTHING RETURNING id": Insert(
        name("ships"), (), parse_query("SELECT 1"), tuple(parse_query("SELECT id").tree.expressions), "s", OnConflict()
    ),
    "INSERT INTO ships SELECT 1 ON CONFLICT (id) DO UPDATE SET name = excluded.name WHERE id > 1": Insert(
        name("ships"),
        (),
        parse_query("SELECT 1"),
        on_conflict=OnConflict(
            ("id",), None, (Assignment("name", parse_expression("excluded.name")),), parse_expression("id > 1")
        ),
    ),
    "INSERT INTO ships SELECT 1 ON CONFLICT ON CONSTRAINT ships_pkey DO NOTHING": Insert(
        name("ships"), (), parse_query("SELECT 1"), on_conflict=OnConflict((), "ships_pkey")
    ),
    "WITH update AS (SELECT 1) SELECT * FROM update": Select(
        parse_query("WITH update AS (SELECT 1) SELECT * FROM update")
    ),
    "WITH a AS (SELECT 1) INSERT INTO ships SELECT * FROM a": Insert(
        name("ships"), (), parse_query("WITH a AS (SELECT 1) SELECT * FROM a")
    ),
    "UPDATE ships SET length = length + 1": Update(
        name("ships"), None, (Assignment("length", parse_expression("length + 1")),)
    ),
    "UPDATE ships AS s SET (a, b) = (1, DEFAULT), c = d IS DISTINCT FROM e WHERE s.id = 5 RETURNING s.id": Update(
        name("ships"),
        "s",
        (
            Assignment("a", parse_expression("1")),
            Assignment("b", DEFAULT),
            Assignment("c", parse_expression("d IS DISTINCT FROM e")),
        ),
        parse_expression("s.id = 5"),
        tuple(parse_query("SELECT s.id").tree.expressions),
    ),
    # Commas inside a cast's type belong to the type.
    "UPDATE ships SET a = ROW(1, 2)::struct<a int, b int>, c = 3": Update(
        name("ships"),
        None,
        (
            Assignment("a", parse_expression("ROW(1, 2)::struct<a int, b int>")),
            Assignment("c", parse_expression("3")),
        ),
    ),
    "UPDATE ships SET a = CAST(x AS struct<a numeric(3, 2), b struct<c int, d int>>), c = d < e, f = g > h": Update(
        name("ships"),
        None,
        (
            Assignment("a", parse_expression("CAST(x AS struct<a numeric(3, 2), b struct<c int, d int>>)")),
            Assignment("c", parse_expression("d < e")),
            Assignment("f", parse_expression("g > h")),
        ),
    ),
    "UPDATE ships SET a = DEFAULT": Update(name("ships"), None, (Assignment("a", DEFAULT),)),
    "UPDATE ships s SET a = o.a FROM offers o JOIN berths USING (berth) WHERE o.ship = s.id": Update(
        name("ships"),
        "s",
        (Assignment("a", parse_expression("o.a")),),
        parse_expression("o.ship = s.id"),
        others=parse_query("SELECT * FROM offers o JOIN berths USING (berth)"),
    ),
    "WITH a AS (SELECT 1), b AS (SELECT 2) DELETE FROM ships USING a": Delete(
        name("ships"),
        None,
        others=parse_query("SELECT * FROM a"),
        common=parse_query("WITH a AS (SELECT 1), b AS (SELECT 2) SELECT 1"),
    ),
    "WITH a AS (SELECT 1 AS n) UPDATE ships SET tons = (SELECT n FROM a)": Update(
        name("ships"),
        None,
        (Assignment("tons", parse_expression("(SELECT n FROM a)")),),
        common=parse_query("WITH a AS (SELECT 1 AS n) SELECT 1"),
    ),
    "DELETE FROM ships USING offers, berths AS b": Delete(
        name("ships"), None, others=parse_query("SELECT * FROM offers, berths AS b")
    ),
    "DELETE FROM ships": Delete(name("ships"), None),
    "TRUNCATE ships": Delete(name("ships"), None, truncating=True),
    "TRUNCATE TABLE ONLY public.ships RESTART IDENTITY CASCADE": Delete(name("public", "ships"), None, truncating=True),
    "DELETE FROM ships s WHERE s.id IN (SELECT 1) RETURNING *": Delete(
        name("ships"), "s", parse_expression("s.id IN (SELECT 1)"), (exp.Star(),)
    ),
}

SESSION: dict[str, Statement] = {
    "FLUSH": Flush(),
    "WAIT": Wait(),
    "RECOVER": Recover(),
    "BEGIN": Begin(),
    "BEGIN TRANSACTION READ WRITE": Begin(),
    "START TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY": Begin(True, "repeatable read"),
    "COMMIT WORK": Commit(),
    "END": Commit(),
    "ROLLBACK": Rollback(),
    "ABORT TRANSACTION": Rollback(),
    "ALTER SYSTEM SET barrier_interval_ms = 250": AlterSystemSet("barrier_interval_ms", "250"),
    "ALTER SYSTEM SET checkpoint_frequency TO DEFAULT": AlterSystemSet("checkpoint_frequency", None),
    "SET rw_implicit_flush TO true": SetVariable("rw_implicit_flush", "true"),
    "SET SESSION datestyle = 'ISO'": SetVariable("datestyle", "ISO"),
    "SET LOCAL Limit_Ms = -5": SetVariable("limit_ms", "-5", local=True),
    'SET search_path = "$user", public': SetVariable("search_path", "$user, public"),
    "SET x = DEFAULT": SetVariable("x", None),
    "SET x = on": SetVariable("x", "on"),
    "SET extension.setting = 1.5": SetVariable("extension.setting", "1.5"),
    "SET TIME ZONE 'Europe/Oslo'": SetVariable("timezone", "Europe/Oslo"),
    "SET TIME ZONE LOCAL": SetVariable("timezone", None),
    "SET NAMES 'UTF8'": SetVariable("client_encoding", "UTF8"),
    "RESET x": SetVariable("x", None),
    "RESET ALL": ResetAll(),
    "SHOW search_path": ShowVariable("search_path"),
    "SHOW TIME ZONE": ShowVariable("timezone"),
    "SHOW TRANSACTION ISOLATION LEVEL": ShowVariable("transaction_isolation"),
    "SHOW ALL": ShowAll(),
    "SHOW PARAMETERS": ShowParameters(),
    "SHOW PARAMETERS LIKE 'barrier%'": ShowParameters("barrier%"),
    "SHOW TABLES": ShowObjects(Listing.TABLES),
    "SHOW MATERIALIZED VIEWS FROM harbour LIKE 'b%'": ShowObjects(Listing.MATERIALIZED_VIEWS, name("harbour"), "b%"),
    "SHOW INTERNAL TABLES": ShowObjects(Listing.INTERNAL_TABLES),
    "SHOW INDEXES FROM ships": ShowObjects(Listing.INDEXES, name("ships")),
    "SHOW JOBS": ShowObjects(Listing.JOBS),
    "SHOW COLUMNS FROM s.ships": ShowColumns(name("s", "ships")),
    "SHOW CREATE MATERIALIZED VIEW busy": ShowCreate(ObjectKind.MATERIALIZED_VIEW, name("busy")),
    "SHOW CREATE TABLE ships": ShowCreate(ObjectKind.TABLE, name("ships")),
    "DESCRIBE ships": Describe(name("ships")),
    "DESC s.ships": Describe(name("s", "ships")),
    "EXPLAIN SELECT 1": Explain(Select(parse_query("SELECT 1")), "SELECT 1"),
    "EXPLAIN (SELECT 1)": Explain(Select(parse_query("(SELECT 1)")), "(SELECT 1)"),
    "EXPLAIN ANALYZE FLUSH": Explain(Flush(), "FLUSH", analyze=True),
    "EXPLAIN ANALYZE MATERIALIZED VIEW calls": ExplainJob(
        ObjectKind.MATERIALIZED_VIEW, ObjectName(("calls",)), seconds=10
    ),
    "EXPLAIN ANALYZE (DURATION_SECS 3) TABLE harbour.ships": ExplainJob(
        ObjectKind.TABLE, ObjectName(("harbour", "ships")), seconds=3
    ),
    "EXPLAIN (VERBOSE, ANALYZE false, FORMAT JSON) CREATE VIEW v AS SELECT 1": Explain(
        CreateView(name("v"), (), parse_query("SELECT 1")),
        "CREATE VIEW v AS SELECT 1",
        verbose=True,
        format=ExplainFormat.JSON,
    ),
    "CANCEL JOBS 1, 2": CancelJobs((1, 2)),
    "CANCEL JOB 7": CancelJobs((7,)),
}


@pytest.mark.parametrize(("text", "statement"), [*DEFINITIONS.items(), *ROWS.items(), *SESSION.items()])
def test_a_statement_becomes_its_value(text: str, statement: Statement) -> None:
    assert one(text) == statement


@pytest.mark.parametrize("text", [*DEFINITIONS, *ROWS, *SESSION])
def test_case_blanks_and_comments_do_not_matter(text: str) -> None:
    spaced = " /* a /* nested */ one */\n" + text.replace(" ", " -- and; here\n ") + " ;"
    if "'" not in text:
        assert type(one(spaced.swapcase() if '"' not in text else spaced)) is type(one(text))
    assert parse(spaced)[0].start == spaced.index(text.split()[0])


def test_a_password_is_not_shown_by_repr() -> None:
    assert "s3a" not in repr(one("CREATE USER pilot PASSWORD 's3a'"))


def test_each_statement_keeps_its_exact_source_and_offset() -> None:
    text = "  SELECT 'a;b' -- first\n ;; FLUSH;\n-- the end\n"
    assert [(parsed.text, parsed.start) for parsed in parse(text)] == [("SELECT 'a;b'", 2), ("FLUSH", 28)]


@pytest.mark.parametrize("text", ["", " \n", ";;", "-- nothing", "/* nothing */ ;"])
def test_a_text_without_statements_is_empty(text: str) -> None:
    assert parse(text) == []


def test_one_bad_statement_fails_the_whole_text() -> None:
    with pytest.raises(SyntaxError_) as caught:
        parse("FLUSH; SELEC 1")
    assert caught.value.position == 8


def test_names_fold_to_lower_case_unless_quoted() -> None:
    table = one('CREATE TABLE Harbour."Ships" (Id int, "Name" text)')
    assert isinstance(table, CreateTable)
    assert table.name == name("harbour", "Ships")
    assert [column.name for column in table.columns] == ["id", "Name"]


def test_folding_leaves_letters_beyond_ascii_alone_everywhere() -> None:
    table = one("CREATE TABLE ÄB (Ö int)")
    assert isinstance(table, CreateTable)
    assert (table.name.name, table.columns[0].name) == ("Äb", "Ö")
    assert parse_query("SELECT Ö FROM ÄB").tree.sql() == "SELECT Ö FROM Äb"


def test_folding_a_query_leaves_strings_alone() -> None:
    tree = parse_query("SELECT S.Name AS Title, S.\"Name\" FROM Ships AS S WHERE Name = 'Aurora'").tree
    assert tree.sql() == "SELECT s.name AS title, s.\"Name\" FROM ships AS s WHERE name = 'Aurora'"


def test_a_comment_cannot_change_how_a_name_folds() -> None:
    assert parse_query("SELECT A /* sqlglot.meta case_sensitive */ FROM t").tree.sql() == "SELECT a FROM t"


def test_words_that_are_not_reserved_may_name_columns() -> None:
    words = ["source", "sink", "date", "time", "timestamp", "key", "value", "type", "index", "comment", "text"]
    table = one(f"CREATE TABLE t ({', '.join(f'{word} int' for word in words)})")
    assert isinstance(table, CreateTable)
    assert [column.name for column in table.columns] == words


def test_an_object_name_prints_so_that_it_parses_back() -> None:
    printed = str(ObjectName(("public", "Ships", 'a"b', "select")[1:]))
    assert printed == '"Ships"."a""b"."select"'
    assert one(f"DESCRIBE {printed}") == Describe(name("Ships", 'a"b', "select"))


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("Ships", ("ships",)),
        ('public."My Table"', ("public", "My Table")),
        ('Harbour . PUBLIC\n. "a""b" -- the third', ("harbour", "public", 'a"b')),
        ('"select"', ("select",)),
        ("date", ("date",)),
        ("Ärger", ("Ärger",)),
    ],
)
def test_a_name_on_its_own_folds_like_sql(text: str, parts: tuple[str, ...]) -> None:
    assert parse_name(text) == name(*parts)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "syntax error at end of input"),
        ("public.", "syntax error at end of input"),
        (".ships", 'syntax error at or near "."'),
        ("ships berths", 'syntax error at or near "berths"'),
        ("ships;", 'syntax error at or near ";"'),
        ("'ships'", "syntax error at or near \"'ships'\""),
        ("1", 'syntax error at or near "1"'),
        ("select", 'syntax error at or near "select"'),
        ("order by", 'syntax error at or near "order"'),
        ('""', 'zero-length delimited identifier at or near """"'),
        ('"ships', 'unterminated quoted identifier at or near ""ships"'),
        ("a.b.c.d", "improper qualified name (too many dotted names): a.b.c.d"),
    ],
)
def test_what_is_more_or_less_than_a_name_is_refused(text: str, message: str) -> None:
    with pytest.raises(SyntaxError_) as caught:
        parse_name(text)
    assert caught.value.message == message


def test_the_arrow_of_json_is_no_lambda_inside_a_call() -> None:
    assert parse_expression("coalesce(a -> 'k', b)").tree.find(exp.Lambda) is None


@pytest.mark.parametrize(
    ("text", "type_"),
    [
        ("smallint", types.SMALLINT),
        ("int2", types.SMALLINT),
        ("INT", types.INTEGER),
        ("int4", types.INTEGER),
        ("integer", types.INTEGER),
        ("bigint", types.BIGINT),
        ("int8", types.BIGINT),
        ("numeric", types.NUMERIC),
        ("decimal(10, 2)", types.numeric(10, 2, declared=True)),
        ("numeric(5)", types.numeric(5, 0, declared=True)),
        ("real", types.REAL),
        ("float4", types.REAL),
        ("float(24)", types.REAL),
        ("float(25)", types.DOUBLE),
        ("float8", types.DOUBLE),
        ("double  precision", types.DOUBLE),
        ("bool", types.BOOLEAN),
        ("boolean", types.BOOLEAN),
        ("varchar", types.VARCHAR),
        ("varchar(20)", types.varchar(20)),
        ("character varying(20)", types.varchar(20)),
        ("char(3)", types.character(3)),
        ("char", types.character(1)),
        ("bpchar", types.VARCHAR),
        ("text", types.VARCHAR),
        ("string", types.VARCHAR),
        ("bytea", types.BYTEA),
        ("date", types.DATE),
        ("time", types.TIME),
        ("time without time zone", types.TIME),
        ("timestamp", types.TIMESTAMP),
        ("timestamp(6) without time zone", types.TIMESTAMP),
        ("timestamptz", types.TIMESTAMPTZ),
        ("timestamp with time zone", types.TIMESTAMPTZ),
        ("interval", types.INTERVAL),
        ("jsonb", types.JSONB),
        ("pg_catalog.int4", types.INTEGER),
        ("int[]", types.array_of(types.INTEGER)),
        ("int[3][]", types.array_of(types.array_of(types.INTEGER))),
        ("text ARRAY", types.array_of(types.VARCHAR)),
        (
            "struct<a int, B varchar(3)[], c struct<d date>>[]",
            types.array_of(
                types.struct_of(
                    ("a", types.INTEGER),
                    ("b", types.array_of(types.varchar(3))),
                    ("c", types.struct_of(("d", types.DATE))),
                )
            ),
        ),
    ],
)
def test_a_type_is_known_by_all_its_names(text: str, type_: types.SqlType) -> None:
    assert parse_type(text) == type_


@pytest.mark.parametrize(
    "type_",
    [
        types.BOOLEAN,
        types.DOUBLE,
        types.numeric(12, 3, declared=True),
        types.TIME,
        types.TIMESTAMP,
        types.TIMESTAMPTZ,
        types.array_of(types.VARCHAR),
        types.struct_of(("a", types.DOUBLE), ("b", types.array_of(types.TIMESTAMPTZ))),
    ],
)
def test_a_type_reads_back_from_its_own_text(type_: types.SqlType) -> None:
    assert parse_type(str(type_)) == type_


@pytest.mark.parametrize(
    ("text", "error", "message", "hint"),
    [
        ("intger", UndefinedObject, 'type "intger" does not exist', 'Perhaps you meant "integer".'),
        ("json", UndefinedObject, 'type "json" does not exist', 'Perhaps you meant "jsonb".'),
        ("a.b", UndefinedObject, 'type "a.b" does not exist', None),
        ("numeric(39)", InvalidParameter, "numeric precision 39 must be between 1 and 38", None),
        ("numeric(5, 6)", InvalidParameter, "numeric scale 6 must be between 0 and the precision 5", None),
        ("numeric(5, -1)", InvalidParameter, "numeric scale -1 must be between 0 and the precision 5", None),
        ("varchar(0)", InvalidParameter, "length for type varchar must be at least 1", None),
        ("date(3)", InvalidParameter, 'type modifier is not allowed for type "date"', None),
        ("timestamp(3)", FeatureNotSupported, "timestamp precision 3 is not supported", None),
        ("time with time zone", FeatureNotSupported, "type time with time zone is not supported", None),
        ("struct<a int, a int>", DuplicateColumn, 'field "a" of struct specified more than once', None),
        ("int[", SyntaxError_, "syntax error at end of input", None),
        ("struct<>", SyntaxError_, 'syntax error at or near "<>"', None),
        ("select", SyntaxError_, 'syntax error at or near "select"', None),
    ],
)
def test_a_type_that_is_not_one_says_so(text: str, error: type[UserError], message: str, hint: str | None) -> None:
    with pytest.raises(error) as caught:
        parse_type(text)
    assert caught.value.message == message
    if hint is not None:
        assert caught.value.hint == hint


@pytest.mark.parametrize(
    ("text", "near"),
    [
        ("SELEC 1", "SELEC"),
        ("CREATE shop x", "shop"),
        ("FLUSH now", "now"),
        ("SELECT 1 2", "2"),
        ("SELECT a, FROM t", "FROM"),
        ("SELECT * FROM t WHERE ORDER BY a", "ORDER"),
        ("SELECT (1; 2)", ";"),
        ("SELECT 1)", ")"),
        ("SELECT 'a' 'b'", "'b'"),
        ("SELECT a == b", "=="),
        ("SELECT {fn now()}", "{"),
        ("SELECT `a`", "`"),
        ("SELECT [1, 2]", "["),
        ("SELECT :x", ":"),
        ("SELECT ?", "?"),
        ("SELECT @x", "@"),
        ("SELECT a IN ()", ")"),
        ("FROM ships", "FROM"),
        ("SELECT * FROM (FROM ships) s", "FROM"),
        ("SELECT * FROM a JOIN b WHERE true", "WHERE"),
        ("SELECT * FROM a JOIN b, c", ","),
        ("SELECT * FROM a LEFT SEMI JOIN b ON true", "SEMI"),
        ("SELECT * FROM t QUALIFY x", "QUALIFY"),
        ("SELECT sum(a) OVER (PARTITION BY) FROM t", ")"),
        ("CREATE TABLE select (a int)", "select"),
        ("CREATE TABLE t (a int,,)", ","),
        ("CREATE TABLE t (a int DEFAULT)", ")"),
        ("CREATE TABLE t (a int DEFAULT 1 +)", ")"),
        ("CREATE TABLE t (a int oops)", "oops"),
        ("CREATE TABLE t (a int) ON CONFLICT EXPLODE", "EXPLODE"),
        ("CREATE OR REPLACE TABLE t (a int)", "TABLE"),
        ("CREATE VIEW v AS DELETE FROM t", "DELETE"),
        ("CREATE USER u WITH SUPRUSER", "SUPRUSER"),
        ("DROP TABEL t", "TABEL"),
        ("DELETE ships", "ships"),
        ("INSERT INTO ships SET a = 1", "SET"),
        ("UPDATE ships SET a = WHERE true", "WHERE"),
        ("UPDATE ships SET a = 1 FROM WHERE true", "WHERE"),
        ("BEGIN QUICKLY", "QUICKLY"),
        ("CANCEL JOB x", "x"),
        ("SHOW TABLES LIKE x", "x"),
    ],
)
def test_a_syntax_error_names_the_token_and_its_place(text: str, near: str) -> None:
    with pytest.raises(SyntaxError_) as caught:
        parse(text)
    assert caught.value.message == f'syntax error at or near "{near}"'
    assert caught.value.position is not None
    assert text[caught.value.position - 1 :].startswith(near)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT (1",
        "SELECT 1 LIMIT",
        "SELECT a FROM t AS",
        "SELECT * FROM t,",
        "SELECT * FROM",
        "SELECT * FROM t WHERE",
        "SELECT * FROM t GROUP BY",
        "SELECT * FROM a JOIN b",
        "SELECT CASE WHEN a THEN b",
        "SELECT 1 UNION",
        "WITH a AS (SELECT 1)",
        "VALUES (1), (2",
        "CREATE TABLE t (a int",
        "CREATE VIEW v",
        "CREATE VIEW v AS",
        "DROP TABLE",
        "INSERT INTO t",
        "UPDATE t SET",
        "UPDATE t SET a =",
        "DELETE FROM t WHERE",
        "DELETE FROM t RETURNING",
        "SET x",
        "SET x =",
        "SHOW",
        "EXPLAIN",
        "DESCRIBE",
        "COMMENT ON TABLE t IS",
    ],
)
def test_an_unfinished_statement_stops_at_the_end_of_input(text: str) -> None:
    with pytest.raises(SyntaxError_) as caught:
        parse(text)
    assert caught.value.message == "syntax error at end of input"
    assert caught.value.position == len(text) + 1
    with pytest.raises(SyntaxError_) as caught:
        parse(text + ";")
    assert caught.value.message == 'syntax error at or near ";"'


@pytest.mark.parametrize(
    ("text", "message", "position"),
    [
        ("DESCRIBE a.b.c.d", "improper qualified name (too many dotted names): a.b.c.d", 10),
        ('DESCRIBE ""', 'zero-length delimited identifier at or near """"', 10),
        ("UPDATE t SET (a, b) = (1)", "number of columns does not match number of values", 23),
        (
            "CREATE TABLE t (a int NULL NOT NULL)",
            'conflicting NULL/NOT NULL declarations for column "a" of table "t"',
            28,
        ),
    ],
)
def test_other_malformed_text_is_explained(text: str, message: str, position: int) -> None:
    with pytest.raises(SyntaxError_) as caught:
        parse(text)
    assert (caught.value.message, caught.value.position) == (message, position)


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("SELEC 1", 'Perhaps you meant "select".'),
        ("FLUSHH", 'Perhaps you meant "flush".'),
        ("CREATE TABEL t (a int)", 'Perhaps you meant "table".'),
        ("DROP MATERIALISED VIEW v", 'Perhaps you meant "materialized".'),
        ("CREATE TABLE order (a int)", '"order" is a reserved word: write it in double quotes to use it as a name.'),
    ],
)
def test_a_likely_slip_gets_a_hint(text: str, hint: str) -> None:
    with pytest.raises(SyntaxError_) as caught:
        parse(text)
    assert caught.value.hint == hint


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("CREATE TEMPORARY SEQUENCE s", "CREATE TEMPORARY SEQUENCE is not supported"),
        ("CREATE TEMP TABLE t (a int) ON COMMIT DROP", "ON COMMIT of anything but PRESERVE ROWS is not supported"),
        (
            "CREATE SOURCE s (a int) INCLUDE timestamp WITH (connector = 'kafka')",
            "CREATE SOURCE with INCLUDE is not supported",
        ),
        ("CREATE UNIQUE INDEX i ON t (a)", "UNIQUE INDEX is not supported"),
        ("CREATE TABLE t (a int UNIQUE)", "UNIQUE on a column is not supported"),
        ("CREATE TABLE t (a int, CHECK (a > 0))", "CHECK constraint is not supported"),
        ("CREATE TABLE t (a int) FORMAT PLAIN ENCODE JSON (a = 1)", "options of an encoding is not supported"),
        (
            "INSERT INTO t VALUES (1) ON CONFLICT (a) WHERE a > 0 DO NOTHING",
            "a conflict with a part of an index is not supported",
        ),
        (
            "UPDATE t SET (a, b) = (SELECT * FROM u)",
            "assigning several columns from this form of subquery is not supported",
        ),
        ("WITH a AS (SELECT 1) MERGE INTO t", "MERGE is not supported"),
        ("WITH a AS (DELETE FROM t RETURNING *) SELECT * FROM a", "DELETE inside WITH is not supported"),
        ("SELECT 1 INTO t", "SELECT INTO is not supported"),
        ("TRUNCATE t, u", "TRUNCATE of several tables is not supported"),
        ("COMMIT AND CHAIN", "AND CHAIN is not supported"),
        ("GRANT SELECT (imo) ON ships TO pilot", "a privilege on single columns is not supported"),
        ("GRANT pilots TO ada", "membership in roles is not supported"),
    ],
)
def test_what_is_known_but_not_offered_is_named(text: str, message: str) -> None:
    with pytest.raises(FeatureNotSupported) as caught:
        parse(text)
    assert caught.value.message == message


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("CREATE TABLE t (a int, A int)", DuplicateColumn, 'column "a" specified more than once'),
        ("INSERT INTO t (a, a) VALUES (1, 2)", DuplicateColumn, 'column "a" specified more than once'),
        (
            "CREATE TABLE t (a int PRIMARY KEY, PRIMARY KEY (a))",
            InvalidDefinition,
            'multiple primary keys for table "t" are not allowed',
        ),
        (
            "CREATE TABLE t (length int, PRIMARY KEY (lenght))",
            UndefinedColumn,
            'column "lenght" named in key does not exist',
        ),
        (
            "CREATE TABLE t (a int, WATERMARK FOR b AS b)",
            UndefinedColumn,
            'column "b" named in watermark does not exist',
        ),
        ("UPDATE t SET a = 1, a = 2", SyntaxError_, 'multiple assignments to same column "a"'),
        ("UPDATE t SET (a, a) = (1, 2)", SyntaxError_, 'multiple assignments to same column "a"'),
        ("UPDATE t SET (a, b) = (SELECT 1)", SyntaxError_, "number of columns does not match number of values"),
        (
            "UPDATE t SET (a, b) = c",
            SyntaxError_,
            "source for a multiple-column UPDATE item must be a sub-SELECT or ROW() expression",
        ),
        (
            "CREATE TABLE t (a int DEFAULT 1 AS 2)",
            SyntaxError_,
            'both default and generation expression specified for column "a" of table "t"',
        ),
        (
            "EXPLAIN (FORMAT XML) SELECT 1",
            InvalidParameter,
            'unrecognized value for EXPLAIN option "format": "xml"',
        ),
    ],
)
def test_a_definition_that_contradicts_itself_is_refused(text: str, error: type[UserError], message: str) -> None:
    with pytest.raises(error) as caught:
        parse(text)
    assert caught.value.message == message


@pytest.mark.parametrize(
    "text",
    [
        "SELECT 1 AS limit FROM t",
        "SELECT t.offset FROM t",
        "SELECT position('a' IN b), extract(year FROM c), trim(FROM ' x '), substring(d FROM 2)",
        "SELECT * FROM a JOIN b JOIN c ON true ON true, d CROSS JOIN e NATURAL LEFT JOIN f",
        "SELECT DISTINCT ON (a) a FROM t JOIN u USING (a)",
        "SELECT * FROM a LEFT JOIN LATERAL (SELECT 1) x ON true",
        "SELECT ARRAY[[1, 2], [3]], x[1], (f(x))[2], \"D\"[1], '{}'::int[]",
        "SELECT a ? 'k', a @> b, a -> 'b' ->> 'c', a #> '{x}', 5 % 2, a IS DISTINCT FROM b",
        "SELECT count(*) FILTER (WHERE a) OVER (ORDER BY b) FROM t GROUP BY ROLLUP (a) LIMIT 5 OFFSET 1",
        "SELECT FROM t",
        "SELECT $1 + 1",
        "SELECT * FROM tumble(arrivals, at, interval '1 minute')",
    ],
)
def test_the_checks_against_leniency_let_real_sql_pass(text: str) -> None:
    assert isinstance(one(text), Select)


_PIECES = re.findall(
    r"\S+",
    r"""
    SELECT FROM WHERE GROUP BY ORDER LIMIT JOIN ON CREATE TABLE MATERIALIZED VIEW AS INSERT INTO VALUES UPDATE SET
    DELETE WITH SHOW EXPLAIN DEFAULT PRIMARY KEY NOT NULL IN CASE WHEN THEN END int numeric struct interval ships id
    ( ) [ ] < > , ; . :: -> = + - * / % 1 2.5 'a' E'\n' $$b$$ "C" ? : @ $1 to_char date_trunc extract
    """,
)


@settings(max_examples=400, deadline=None)
@given(st.lists(st.sampled_from(_PIECES), max_size=14).map(" ".join) | st.text(max_size=30))
def test_any_text_parses_or_fails_with_the_users_error(text: str) -> None:
    split(text)
    try:
        statements = parse(text)
    except UserError as error:
        position = error.position
    else:
        position = None
        assert all(text[parsed.start :].startswith(parsed.text) for parsed in statements)
    assert position is None or 1 <= position <= len(text) + 1


@settings(max_examples=200, deadline=None)
@given(st.lists(st.sampled_from([*ROWS, *SESSION]), max_size=4))
def test_splitting_and_parsing_agree_on_where_statements_end(texts: list[str]) -> None:
    buffer = ";\n".join([*texts, ""])
    assert split(buffer).statements == tuple(texts) == tuple(parsed.text for parsed in parse(buffer))
