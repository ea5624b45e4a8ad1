"""The formats of COPY with their options, as PostgreSQL 15 reads and writes them."""

from __future__ import annotations

import pytest

from seiche.errors import BadCopyFormat, SeicheError, UserError
from seiche.server import copy
from seiche.sql import statements as ast
from seiche.sql.parse import parse
from seiche.types import INTEGER, VARCHAR


def options(text: str, *, to: bool = False) -> ast.CopyFormat:
    (parsed,) = parse(f"COPY ships {'TO STDOUT' if to else 'FROM STDIN'} {text}")
    statement = parsed.statement
    assert isinstance(statement, ast.CopyFrom | ast.CopyTo)
    return statement.format


def read(given: str, data: str | bytes, names: tuple[str, ...] = ("id", "name")) -> list[list[str | None]]:
    """The rows of a stream, which has to be read alike however it is cut into messages."""
    raw = data.encode() if isinstance(data, str) else data
    found = []
    for size in (1, 7, max(len(raw), 1)):
        reader = copy.reader(options(given), names, [VARCHAR] * len(names))
        rows = [row for at in range(0, len(raw), size) for row in reader.feed(raw[at : at + size])]
        found.append(rows + reader.finish())
    assert found[0] == found[1] == found[2]
    return found[0]


def written(given: str, *rows: tuple[int | None, str | None]) -> str:
    format = options(given, to=True)
    columns = [list(each) for each in zip(*rows, strict=True)]
    lines = copy.rows(format, ["id", "name"], [INTEGER, VARCHAR], columns, len(rows), "UTC")
    return (copy.head(format, ["id", "name"]) + b"".join(lines)).decode()


def test_the_end_of_data_in_quotes_is_a_value() -> None:
    assert read("CSV", 'a\n"\\."\nb\n', ("name",)) == [["a"], ["\\."], ["b"]]
    assert read("CSV", "a\n\\.\nb\n", ("name",)) == [["a"]]


def test_a_header_may_have_to_name_the_columns() -> None:
    given = "(FORMAT csv, HEADER match)"
    assert read(given, "id,name\n1,Eos\n") == [["1", "Eos"]]
    with pytest.raises(BadCopyFormat, match='field 2: got "flag", expected "name"'):
        read(given, "id,flag\n1,Eos\n")
    with pytest.raises(BadCopyFormat, match="got 1, expected 2"):
        read("(HEADER match)", "id\n")
    assert read("(FORMAT csv, HEADER)", "anything\n1,Eos\n") == [["1", "Eos"]]


def test_columns_may_be_null_in_quotes_and_never_without() -> None:
    lines = '1,"NULL"\n2,NULL\n3,\n'
    assert read("(FORMAT csv, NULL 'NULL')", lines) == [["1", "NULL"], ["2", None], ["3", ""]]
    assert read("(FORMAT csv, NULL 'NULL', FORCE_NULL (name))", lines) == [["1", None], ["2", None], ["3", ""]]
    assert read("(FORMAT csv, NULL 'NULL', FORCE_NOT_NULL (name))", lines) == [["1", "NULL"], ["2", "NULL"], ["3", ""]]
    assert read("CSV FORCE NOT NULL id, name", ",\n") == [["", ""]]


def test_columns_may_be_quoted_always() -> None:
    rows = ((1, "Eos"), (2, None))
    assert written("CSV", *rows) == "1,Eos\n2,\n"
    assert written("CSV NULL 'none' FORCE QUOTE *", *rows) == '"1","Eos"\n"2",none\n'
    assert written("(FORMAT csv, HEADER, FORCE_QUOTE (name))", *rows) == 'id,name\n1,"Eos"\n2,\n'


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_lines_may_end_in_three_ways(end: str) -> None:
    assert read("", end.join(("1\tEos", "2\tIris", ""))) == [["1", "Eos"], ["2", "Iris"]]
    assert read("CSV", end.join(("1,Eos", '2,"a\rb"', ""))) == [["1", "Eos"], ["2", "a\rb"]]
    assert read("CSV", end.join(("1,Eos", "2,Iris"))) == [["1", "Eos"], ["2", "Iris"]]


@pytest.mark.parametrize("data", [b"a\xff\n", b"a\0b\n", b"a\\000b\n", b"a\\377\n"])
def test_bytes_that_are_no_text_are_refused(data: bytes) -> None:
    with pytest.raises(UserError, match="invalid byte sequence") as caught:
        read("", data, ("name",))
    assert caught.value.sqlstate == "22021"


@pytest.mark.parametrize(
    ("given", "to", "sqlstate"),
    [
        ("(FORMAT csv, FORMAT text)", False, "42601"),
        ("(NULL 'a', NULL 'b')", False, "42601"),
        ("(DELIMITER 'ab')", False, "0A000"),
        ("(QUOTE '!')", False, "0A000"),
        ("(FORMAT binary, DELIMITER ',')", False, "42601"),
        ("(FORCE_NULL (name))", False, "0A000"),
        ("(FORMAT csv, FORCE_QUOTE *)", False, "0A000"),
        ("(FORMAT csv, FORCE_NULL (name))", True, "0A000"),
        ("(FORMAT csv, HEADER match)", True, "0A000"),
        ("(FORMAT csv, FORCE_NULL name", False, "42601"),
    ],
)
def test_options_that_do_not_fit_are_refused_as_postgres_does(given: str, to: bool, sqlstate: str) -> None:
    with pytest.raises(SeicheError) as caught:
        options(given, to=to)
    assert caught.value.sqlstate == sqlstate


def test_options_name_columns_that_are_copied() -> None:
    with pytest.raises(UserError, match='FORCE_NULL column "flag" not referenced by COPY'):
        read("(FORMAT csv, FORCE_NULL (flag))", "")
    with pytest.raises(UserError, match="FORCE_QUOTE"):
        copy.head(options("(FORMAT csv, FORCE_QUOTE (flag))", to=True), ["id", "name"])
