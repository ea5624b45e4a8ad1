"""CREATE SOURCE, and CREATE TABLE with a connector, as users write them."""

from __future__ import annotations

import pytest

from seiche.errors import FeatureNotSupported, InvalidDefinition, SyntaxError_
from seiche.sql import statements as ast
from seiche.sql.parse import parse
from seiche.sql.rename import with_own_name


def one(text: str) -> ast.Statement:
    (parsed,) = parse(text)
    return parsed.statement


def test_a_source_is_what_keeps_its_rows_and_lets_none_leave() -> None:
    source = one(
        "CREATE SOURCE IF NOT EXISTS port.tides (level int, at timestamp, high boolean AS level > 3)"
        " WITH (connector = 'datagen', fields.level.end = '10', fields.level._.kind = random,) FORMAT PLAIN ENCODE JSON"
    )
    assert isinstance(source, ast.CreateSource)
    rows = source.rows
    assert (rows.name.parts, rows.if_not_exists, rows.append_only) == (("port", "tides"), True, True)
    assert [column.name for column in rows.columns] == ["level", "at", "high"]
    assert rows.options[1:] == (("fields.level.end", "10"), ("fields.level._.kind", "random"))
    assert rows.encoding == ast.Encoding("PLAIN", "JSON")


def test_a_table_may_have_a_connector_and_an_encoding_of_either_spelling() -> None:
    for written in ("FORMAT PLAIN ENCODE JSON", "row format json"):
        table = one(f"CREATE TABLE tides (level int) WITH (connector = 'datagen') {written}")
        assert isinstance(table, ast.CreateTable)
        assert table.encoding == ast.Encoding("PLAIN", "JSON")


def test_a_source_takes_another_name() -> None:
    assert with_own_name("CREATE SOURCE a.s (v int) WITH (connector = 'x')", "b") == (
        "CREATE SOURCE a.b (v int) WITH (connector = 'x')"
    )


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("CREATE SOURCE s (v int)", SyntaxError_),
        ("CREATE SOURCE s (v int NOT NULL) WITH (connector = 'datagen')", InvalidDefinition),
        ("CREATE SOURCE s (v int PRIMARY KEY) WITH (connector = 'datagen')", FeatureNotSupported),
        ("CREATE SOURCE s (v int) WITH (connector = 'datagen') FORMAT PLAIN", SyntaxError_),
    ],
)
def test_what_a_source_cannot_be_is_refused(text: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        parse(text)
