"""Statements about jobs, as users write them."""

from __future__ import annotations

import pytest

from seiche.errors import FeatureNotSupported, SyntaxError_
from seiche.sql import statements as ast
from seiche.sql.parse import parse
from seiche.sql.renamed import renamed, with_options

VIEW = ast.ObjectKind.MATERIALIZED_VIEW


def one(text: str) -> ast.Statement:
    (parsed,) = parse(text)
    return parsed.statement


def name(*parts: str) -> ast.ObjectName:
    return ast.ObjectName(parts)


@pytest.mark.parametrize(
    ("text", "action"),
    [
        ("SET BACKFILL_RATE_LIMIT = 10", ast.SetBackfillRateLimit("10")),
        ("SET BACKFILL_RATE_LIMIT TO -1", ast.SetBackfillRateLimit("-1")),
        ("set backfill_rate_limit to default", ast.SetBackfillRateLimit(None)),
        ("SET PARALLELISM = 3", ast.SetParallelism("3")),
        ("SET PARALLELISM TO ADAPTIVE", ast.SetParallelism("adaptive")),
        ("SET parallelism = default", ast.SetParallelism(None)),
        ("SET BACKFILL_PARALLELISM TO 1", ast.SetParallelism("1", backfill=True)),
        (
            "SET CONFIG (streaming.a.b=5, streaming.c = TRUE, streaming.d='x', streaming.e=\"y\", streaming.f=null,)",
            ast.SetConfig(
                (
                    ("streaming.a.b", "5"),
                    ("streaming.c", "true"),
                    ("streaming.d", '"x"'),
                    ("streaming.e", '"y"'),
                    ("streaming.f", None),
                )
            ),
        ),
        ("RESET CONFIG (streaming.a.b)", ast.SetConfig((("streaming.a.b", None),))),
        ("SET SCHEMA north", ast.SetSchema("north")),
        ("SWAP WITH north.b", ast.SwapWith(name("north", "b"))),
        ("SET (refresh.interval.sec = 5)", ast.SetOptions((("refresh.interval.sec", "5"),))),
    ],
)
def test_alter_of_a_view_names_what_changes(text: str, action: object) -> None:
    assert one(f"ALTER MATERIALIZED VIEW m {text}") == ast.AlterRelation(VIEW, name("m"), action)  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", [ast.ObjectKind.INDEX, ast.ObjectKind.SINK])
def test_whatever_reads_history_can_be_slowed_down(kind: ast.ObjectKind) -> None:
    slowed = ast.AlterRelation(kind, name("m"), ast.SetBackfillRateLimit("5"))
    assert one(f"ALTER {kind.value} m SET BACKFILL_RATE_LIMIT = 5") == slowed


@pytest.mark.parametrize(
    ("text", "statement"),
    [
        ("WAIT", ast.Wait()),
        ("WAIT MATERIALIZED VIEW north.m", ast.Wait(name("north", "m"))),
        ("PAUSE", ast.Pause()),
        ("RESUME", ast.Resume()),
        ("REFRESH MATERIALIZED VIEW m", ast.RefreshView(name("m"))),
        ("CANCEL JOBS 1, 2", ast.CancelJobs((1, 2))),
    ],
)
def test_jobs_have_their_statements(text: str, statement: ast.Statement) -> None:
    assert one(text) == statement


@pytest.mark.parametrize("text", ["WAIT m", "PAUSE all", "REFRESH m", "ALTER MATERIALIZED VIEW m SWAP b"])
def test_what_is_no_such_statement_is_refused(text: str) -> None:
    with pytest.raises((SyntaxError_, FeatureNotSupported)):
        one(text)


@pytest.mark.parametrize("order", ["FIXED(t1 -> t2, t2 -> t3)", "AUTO", "none"])
def test_an_option_may_be_a_call(order: str) -> None:
    statement = one(f"CREATE MATERIALIZED VIEW m WITH (backfill_order = {order}, incremental = 'auto') AS SELECT 1")
    assert isinstance(statement, ast.CreateMaterializedView)
    assert [(key, value.lower()) for key, value in statement.options] == [
        ("backfill_order", order.lower()),
        ("incremental", "auto"),
    ]


@pytest.mark.parametrize(
    ("definition", "parts", "expected"),
    [
        ("CREATE MATERIALIZED VIEW a AS SELECT 1", ("b",), "CREATE MATERIALIZED VIEW b AS SELECT 1"),
        ("create table if not exists s.a (a int)", ("s", "B c"), 'create table if not exists s."B c" (a int)'),
        ("CREATE OR REPLACE VIEW a AS SELECT a FROM a", ("b",), "CREATE OR REPLACE VIEW b AS SELECT a FROM a"),
    ],
)
def test_a_definition_is_renamed_in_one_place_only(definition: str, parts: tuple[str, ...], expected: str) -> None:
    assert renamed(definition, parts) == expected


@pytest.mark.parametrize(
    ("definition", "expected"),
    [
        ("CREATE MATERIALIZED VIEW a WITH (x = 1) AS SELECT 1", "CREATE MATERIALIZED VIEW a WITH ({}) AS SELECT 1"),
        (
            "create materialized view if not exists s.a (b, c)\nwith (refresh.interval.sec='5', y = f(1)) as table t",
            "create materialized view if not exists s.a (b, c)\nwith ({}) as table t",
        ),
    ],
)
def test_a_definition_takes_other_options_and_reads_the_same(definition: str, expected: str) -> None:
    options = {"refresh.cron": "0 6 * * *", "backfill_rate_limit": "5", "backfill_order": "FIXED(a -> b)"}
    written = "refresh.cron = '0 6 * * *', backfill_rate_limit = 5, backfill_order = FIXED(a -> b)"
    found = with_options(definition, options)
    assert found == expected.format(written)
    statement = one(found)
    assert isinstance(statement, ast.CreateMaterializedView) and dict(statement.options) == options
