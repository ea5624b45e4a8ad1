"""Many rows of constants in one INSERT, which are read as text, against the same rows one by one."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import seiche
from seiche import errors
from seiche.sql.literal_rows import ROWS_MIN

pytestmark = pytest.mark.spark

Open = Callable[..., seiche.Engine]

COLUMNS = "id int, name varchar(5), fee numeric(6, 2), since date, at timestamptz, free boolean, draught float8"


def row(number: int) -> str:
    if number % 7 == 0:
        return f"({number}, NULL, NULL, NULL, NULL, NULL, NULL)"
    sign = "-" if number % 2 else ""
    name = ("é'' \\", "", "NULL", "a b")[number % 4]
    return (
        f"({number}, '{name}', {sign}{number}.125, '2024-02-{1 + number % 28:02}',"
        f" '2024-03-10 0{number % 10}:30:00+02', {'true' if number % 3 else 'false'}, {sign}{number})"
    )


def test_many_constants_are_read_like_few(open_database: Open) -> None:
    db = open_database()
    db.execute("SET TIME ZONE 'America/New_York'")
    for table in ("many", "few"):
        db.execute(f"CREATE TABLE {table} ({COLUMNS}, note varchar DEFAULT 'new')")
    names = "id, name, fee, since, at, free, draught"
    listed = [row(number) for number in range(ROWS_MIN + 50)]
    db.execute(f"INSERT INTO many ({names}) VALUES {', '.join(listed)}")
    for start in range(0, len(listed), 100):
        db.execute(f"INSERT INTO few ({names}) VALUES {', '.join(listed[start : start + 100])}")
    found = [db.sql(f"SELECT * FROM {table} ORDER BY id").rows for table in ("many", "few")]
    assert found[0] == found[1]
    with pytest.raises(errors.StringTooLong):
        db.execute(f"INSERT INTO many (id, name) VALUES {', '.join(['(1, ' + repr('too long') + ')'] * ROWS_MIN)}")
    with pytest.raises(errors.InvalidText):
        db.execute(f"INSERT INTO many (id, since) VALUES {', '.join(['(1, ' + repr('soon') + ')'] * ROWS_MIN)}")
    assert db.sql("SELECT count(*) FROM many").rows == [(len(listed),)]
    db.execute(f"BEGIN; INSERT INTO many ({names}) VALUES {', '.join(listed)}; ROLLBACK")
    assert db.sql("SELECT count(*) FROM many").rows == [(len(listed),)]
