"""ALTER TABLE of a column: what is read, and what is refused before the catalog is asked."""

from __future__ import annotations

import pytest

from seiche import errors
from seiche.sql.parse import parse
from seiche.sql.statements import AddColumn, AlterColumns, DropColumn, ObjectName, Rename, RenameColumn
from seiche.types import INTEGER, VARCHAR


def action(text: str) -> AddColumn | DropColumn | RenameColumn:
    (parsed,) = parse(text)
    assert isinstance(parsed.statement, AlterColumns)
    assert parsed.statement.table == ObjectName(("ships",))
    return parsed.statement.action


@pytest.mark.parametrize("word", ["", "COLUMN "])
def test_a_column_is_added_as_create_table_declares_it(word: str) -> None:
    found = action(f"ALTER TABLE ships ADD {word}tons int DEFAULT 3 + 4 NOT NULL")
    assert isinstance(found, AddColumn)
    assert (found.column.name, found.column.type, found.column.nullable) == ("tons", INTEGER, False)
    assert found.column.default is not None
    assert found.column.default.text == "3 + 4"
    assert not found.if_not_exists


def test_a_column_may_be_there_already_or_be_gone_already() -> None:
    found = action("ALTER TABLE ships ADD COLUMN IF NOT EXISTS flag varchar")
    assert isinstance(found, AddColumn)
    assert (found.column.type, found.if_not_exists) == (VARCHAR, True)
    assert action("ALTER TABLE ships DROP COLUMN IF EXISTS flag") == DropColumn("flag", if_exists=True)
    assert action("ALTER TABLE ships DROP flag CASCADE") == DropColumn("flag", cascade=True)
    assert action("ALTER TABLE ships DROP flag RESTRICT") == DropColumn("flag")


def test_renaming_a_column_and_renaming_the_table_are_told_apart() -> None:
    assert action("ALTER TABLE ships RENAME COLUMN flag TO nation") == RenameColumn("flag", "nation")
    assert action('ALTER TABLE ships RENAME flag TO "Nation"') == RenameColumn("flag", "Nation")
    (parsed,) = parse("ALTER TABLE ships RENAME TO boats")
    assert isinstance(parsed.statement, Rename)


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("ALTER TABLE ships ADD COLUMN number int PRIMARY KEY", errors.FeatureNotSupported, "alter primary key"),
        ("ALTER TABLE ships ADD CONSTRAINT one UNIQUE (id)", errors.FeatureNotSupported, "ADD CONSTRAINT"),
        ("ALTER TABLE ships ADD COLUMN tons", errors.SyntaxError_, "syntax error"),
        ("ALTER TABLE ships RENAME COLUMN flag", errors.SyntaxError_, "syntax error"),
        ("ALTER MATERIALIZED VIEW ships ADD COLUMN tons int", errors.FeatureNotSupported, "ADD is not supported"),
    ],
)
def test_what_makes_no_sense_is_refused(text: str, error: type[errors.SeicheError], message: str) -> None:
    with pytest.raises(error, match=message):
        parse(text)
