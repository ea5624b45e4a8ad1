"""Lengths of text and precisions of numbers, as the executors enforce them."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
import pytest

import seiche
from seiche import errors

pytestmark = pytest.mark.spark


def test_text_and_numbers_fit_their_columns_or_the_statement_fails(db: seiche.Engine) -> None:
    db.execute("CREATE TABLE words (word varchar); INSERT INTO words VALUES ('Ada'), ('Ada    '), ('Aurora'), (NULL)")
    db.execute("CREATE TABLE ships (name varchar(5), flag char(2), fee numeric(5, 2), tags varchar(3)[])")
    db.execute("INSERT INTO ships (name) SELECT word FROM words WHERE word IS NULL OR word <> 'Aurora'")
    assert sorted(db.sql("SELECT name FROM ships").rows or [], key=repr) == [("Ada  ",), ("Ada",), (None,)]
    for statement, problem in (
        ("INSERT INTO ships (name) SELECT word FROM words", "value too long for type character varying(5)"),
        ("INSERT INTO ships (flag) SELECT word FROM words", "value too long for type character(2)"),
        ("INSERT INTO ships (tags) SELECT ARRAY[word] FROM words", "value too long for type character varying(3)"),
        ("UPDATE ships SET name = name || '!!!'", "value too long for type character varying(5)"),
    ):
        with pytest.raises(errors.StringTooLong) as caught:
            db.execute(statement)
        assert caught.value.message == problem
    for value in ("1000", "999.995", "-1000.5", "(SELECT max(length(word)) * 200 FROM words)"):
        with pytest.raises(errors.NumericOutOfRange, match="numeric field overflow") as overflow:
            db.execute(f"INSERT INTO ships (fee) VALUES ({value})")
        assert "less than 10^3" in str(overflow.value.detail)
    with pytest.raises(errors.StringTooLong):
        db.insert("ships", pa.table({"name": ["Aurora"]}))
    assert db.sql("SELECT count(*) FROM ships").rows == [(3,)]
    db.execute("DELETE FROM ships")
    db.execute("INSERT INTO ships SELECT 'Ada', upper('no  '), 999.994, ARRAY['abc  ', 'de']")
    expected = [("Ada", "NO", Decimal("999.99"), ["abc", "de"])]
    assert db.sql("SELECT * FROM ships").rows == expected
    assert db.sql("SELECT name::varchar(2), flag::char(1), 'Aurora'::varchar(3) FROM ships").rows == [
        ("Ad", "N", "Aur")
    ]


def test_a_length_is_described_and_survives_a_restart(db: seiche.Engine) -> None:
    db.execute("CREATE TABLE ships (name varchar(5), flag char(2))")
    described = db.sql("DESCRIBE ships").rows or []
    assert [row[:2] for row in described[:2]] == [("name", "character varying(5)"), ("flag", "character(2)")]
    stored = db.database.store.load().catalog.find(("ships",))
    assert [str(column.type) for column in stored.columns] == ["character varying(5)", "character(2)"]
