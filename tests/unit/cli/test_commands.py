from __future__ import annotations

from pathlib import Path

import pytest

from seiche.cli import commands
from seiche.cli.commands import Command, Include, ListRelations, Print, Quit, RunSql, Toggle, read
from seiche.errors import SyntaxError_


@pytest.mark.parametrize(
    ("line", "command"),
    [
        (r"\q", Quit()),
        (r"\q;", Quit()),
        (r"\timing", Toggle("timing", None)),
        (r"\timing off", Toggle("timing", False)),
        (r"\x on", Toggle("expanded", True)),
        (r"\d", ListRelations()),
        (r"\d ships", RunSql("DESCRIBE ships")),
        (r'\d public."Pier 9";', RunSql('DESCRIBE public."Pier 9"')),
        (r"\dm", RunSql("SHOW MATERIALIZED VIEWS")),
        (r"\dv", RunSql("SHOW VIEWS")),
        (r"\dn", RunSql("SHOW SCHEMAS")),
        (r"\du", RunSql("SHOW USERS")),
        (r"\dt Ship_*", RunSql(r"SHOW TABLES LIKE 'ship\_%'")),
        (r'\dt "Pier?9"', RunSql("SHOW TABLES LIKE 'Pier_9'")),
        (r"\dt o'brien", RunSql("SHOW TABLES LIKE 'o''brien'")),
        (r"\i 'tide tables.sql'", Include(Path("tide tables.sql"))),
    ],
)
def test_each_command_is_read(line: str, command: Command) -> None:
    assert read(line) == command


@pytest.mark.parametrize("line", [r"\d ships; DROP TABLE ships", r"\i", r"\x maybe", r"\nothing", "\\"])
def test_what_is_no_command_is_refused_with_a_hint(line: str) -> None:
    with pytest.raises(SyntaxError_):
        read(line)


def test_help_names_every_command() -> None:
    for name in commands.NAMES:
        assert f"\\{name}" in commands.HELP


def test_h_shows_the_syntax_of_statements_that_begin_so() -> None:
    shown = read(r"\h create mat")
    assert isinstance(shown, Print)
    assert shown.text.startswith("CREATE MATERIALIZED VIEW")


def test_help_offers_only_what_works() -> None:
    offered = "\n".join([commands.HELP, *commands.STATEMENTS.values()])
    assert "INDEX" not in offered.upper()
    for statement in commands.STATEMENTS:
        assert not statement.startswith(("CREATE DATABASE", "CREATE INDEX", "CREATE SOURCE", "CREATE SINK"))


def test_h_of_an_unknown_statement_lists_what_there_is() -> None:
    shown = read(r"\h sail")
    assert isinstance(shown, Print)
    assert "SELECT" in shown.text
