"""Subscriptions, their cursors and prepared statements, as users write them."""

from __future__ import annotations

import pytest

from seiche.errors import SyntaxError_
from seiche.sql import statements as ast
from seiche.sql.parse import parse
from seiche.types import INTEGER, VARCHAR


def one(text: str) -> ast.Statement:
    (parsed,) = parse(text)
    return parsed.statement


def name(*parts: str) -> ast.ObjectName:
    return ast.ObjectName(parts)


RETENTION = (("retention", "1D"),)


@pytest.mark.parametrize(
    ("text", "statement"),
    [
        (
            "create subscription s from ships with(retention = '1D')",
            ast.CreateSubscription(name("s"), name("ships"), RETENTION),
        ),
        (
            "CREATE SUBSCRIPTION IF NOT EXISTS port.s FROM north.ships WITH (retention = '1D')",
            ast.CreateSubscription(name("port", "s"), name("north", "ships"), RETENTION, if_not_exists=True),
        ),
        ("DECLARE c SUBSCRIPTION CURSOR FOR s", ast.DeclareSubscriptionCursor("c", name("s"))),
        ("DECLARE c SUBSCRIPTION CURSOR FOR s FULL", ast.DeclareSubscriptionCursor("c", name("s"), ast.Since.FULL)),
        (
            "DECLARE c SUBSCRIPTION CURSOR FOR port.s SINCE proctime()",
            ast.DeclareSubscriptionCursor("c", name("port", "s"), ast.Since.NOW),
        ),
        (
            "DECLARE c SUBSCRIPTION CURSOR FOR s SINCE begin()",
            ast.DeclareSubscriptionCursor("c", name("s"), ast.Since.BEGIN),
        ),
        (
            "DECLARE c SUBSCRIPTION CURSOR FOR s SINCE 1700000000000",
            ast.DeclareSubscriptionCursor("c", name("s"), 1_700_000_000_000),
        ),
        ("FETCH NEXT FROM c", ast.FetchCursor("c")),
        ("FETCH 7 FROM c WITH (timeout = '5s')", ast.FetchCursor("c", 7, (("timeout", "5s"),))),
        (
            "ALTER SUBSCRIPTION s SET RETENTION TO '2D'",
            ast.AlterRelation(ast.ObjectKind.SUBSCRIPTION, name("s"), ast.SetRetention("2D")),
        ),
        (
            "ALTER SUBSCRIPTION s SET RETENTION = '2D'",
            ast.AlterRelation(ast.ObjectKind.SUBSCRIPTION, name("s"), ast.SetRetention("2D")),
        ),
        (
            "ALTER SUBSCRIPTION s SET SCHEMA port",
            ast.AlterRelation(ast.ObjectKind.SUBSCRIPTION, name("s"), ast.SetSchema("port")),
        ),
        ("ALTER SUBSCRIPTION s RENAME TO t", ast.Rename(ast.ObjectKind.SUBSCRIPTION, name("s"), "t")),
        ("SHOW SUBSCRIPTIONS", ast.ShowObjects(ast.Listing.SUBSCRIPTIONS)),
        ("SHOW CURSORS", ast.ShowObjects(ast.Listing.CURSORS)),
        ("SHOW SUBSCRIPTION CURSORS", ast.ShowObjects(ast.Listing.SUBSCRIPTION_CURSORS)),
        ("SHOW CREATE SUBSCRIPTION s", ast.ShowCreate(ast.ObjectKind.SUBSCRIPTION, name("s"))),
        ("EXECUTE who", ast.Execute("who")),
        ("DEALLOCATE PREPARE who", ast.Deallocate("who")),
        ("DEALLOCATE ALL", ast.Deallocate(None)),
        ("DISCARD ALL", ast.Discard(everything=True)),
    ],
)
def test_statements_are_read(text: str, statement: ast.Statement) -> None:
    assert one(text) == statement


@pytest.mark.parametrize(
    "text",
    [
        "DECLARE port.c SUBSCRIPTION CURSOR FOR s",
        "DECLARE c SUBSCRIPTION CURSOR FOR s SINCE yesterday",
        "DECLARE c SUBSCRIPTION CURSOR FOR s SINCE now",
        "DECLARE c SUBSCRIPTION CURSOR FOR SELECT 1",
        "CREATE SUBSCRIPTION s WITH (retention = '1D')",
        "ALTER SUBSCRIPTION s SET RETENTION 5",
        "PREPARE who AS CREATE TABLE t (id int)",
        "PREPARE who SELECT 1",
        "EXECUTE who()",
    ],
)
def test_what_is_not_a_statement_is_told(text: str) -> None:
    with pytest.raises(SyntaxError_):
        one(text)


def test_a_prepared_statement_keeps_its_text_and_types() -> None:
    statement = one("PREPARE who (int, varchar) AS SELECT name FROM ships WHERE id = $1 AND name = $2")
    assert isinstance(statement, ast.Prepare)
    assert (statement.name, statement.types) == ("who", (INTEGER, VARCHAR))
    assert isinstance(statement.statement, ast.Select)
    assert statement.text == "SELECT name FROM ships WHERE id = $1 AND name = $2"


def test_arguments_are_expressions() -> None:
    statement = one("EXECUTE who(1 + 1, 'Ada', (SELECT 2))")
    assert isinstance(statement, ast.Execute)
    assert [each.text for each in statement.arguments] == ["1 + 1", "'Ada'", "(SELECT 2)"]
