"""What the directives of a file mean."""

from __future__ import annotations

from pathlib import Path

import pytest

from seiche.cli.slt import records
from seiche.cli.slt.records import Answers, Counts, Execute, Fails, Retry, SortMode, Succeeds, parse, read_file
from seiche.errors import InvalidParameter, SeicheError, SyntaxError_


def one(text: str) -> Execute:
    (record,) = parse(text, "harbour.slt")
    assert isinstance(record, Execute)
    return record


def test_a_statement_runs_to_the_next_blank_line() -> None:
    record = one("# a comment\n\nstatement ok\nCREATE TABLE ships (\n  id int)\n\n")
    assert record.sql == "CREATE TABLE ships (\n  id int)"
    assert record.expect == Succeeds()
    assert str(record.place) == "harbour.slt:3"


def test_a_blank_first_line_belongs_to_the_statement() -> None:
    assert one("statement ok\n\nDROP TABLE ships\n").sql.strip() == "DROP TABLE ships"


def test_a_query_has_lines_below_its_delimiter() -> None:
    record = one("query IT rowsort first\nSELECT *\nFROM ships\n----\n1 Aurora\n2 NULL\n")
    assert record.sql == "SELECT *\nFROM ships"
    assert record.expect == Answers(("1 Aurora", "2 NULL"), SortMode.ROWSORT, "first")


def test_a_label_may_stand_without_a_sort_mode() -> None:
    assert one("query I first\nSELECT 1\n----\n1\n").expect == Answers(("1",), None, "first")


def test_a_query_without_lines_expects_none() -> None:
    assert one("query I\nSELECT 1 WHERE false\n").expect == Answers(())
    assert one("query\nSELECT 1 WHERE false\n----\n").expect == Answers(())


def test_a_count_and_errors_are_told_on_the_line() -> None:
    assert one("statement count 3\nDELETE FROM ships").expect == Counts(3)
    assert one("statement error\nDROP TABLE x").expect == Fails()
    assert one("statement error (42P01)\nDROP TABLE x").expect == Fails(sqlstate="42P01")
    expect = one("query error does (not|never) exist\nSELECT x").expect
    assert isinstance(expect, Fails)
    assert expect.pattern is not None
    assert expect.pattern.search("column x does not exist")


def test_the_text_of_an_error_ends_at_two_blank_lines() -> None:
    first, second = parse(
        "statement error\nSELECT 1/0\n----\ndivision\n\nby zero\n\n\nstatement ok\nSELECT 1\n", "harbour.slt"
    )
    assert isinstance(first, Execute)
    assert first.expect == Fails(text="division\n\nby zero")
    assert isinstance(second, Execute)
    assert second.sql == "SELECT 1"


def test_conditions_and_a_connection_belong_to_the_next_record_only() -> None:
    first, second = parse(
        "skipif postgres\nonlyif slow\nconnection pilot\nstatement ok\nSELECT 1\n\nstatement ok\nSELECT 2\n", "h"
    )
    assert isinstance(first, Execute)
    assert isinstance(second, Execute)
    assert first.conditions == (records.Condition("postgres", False), records.Condition("slow", True))
    assert first.connection == "pilot"
    assert (second.conditions, second.connection) == ((), "default")


@pytest.mark.parametrize(
    "line",
    [
        "statement ok retry 3 backoff 1m30s",
        "query I rowsort retry 3 backoff 1m30s",
        "statement error x retry 3 backoff 1m30s",
    ],
)
def test_retries_end_the_line(line: str) -> None:
    record = one(f"{line}\nSELECT 1")
    assert record.retry == Retry(3, 90.0)


def test_controls_sleep_halt_and_system() -> None:
    found = parse(
        "control sortmode rowsort\ncontrol resultmode valuewise\ncontrol substitution on\nsleep 250ms\n"
        "subtest tides\nhash-threshold 8\nsystem ok\necho tide\n----\ntide\n\n\nhalt\n",
        "h",
    )
    place = [record.place.line for record in found]
    assert found == [
        records.SetSortMode(records.Place("h", 1), SortMode.ROWSORT),
        records.SetResultMode(records.Place("h", 2), records.ResultMode.VALUEWISE),
        records.SetSubstitution(records.Place("h", 3), True),
        records.Sleep(records.Place("h", 4), 0.25),
        records.SetHashThreshold(records.Place("h", 6), 8),
        records.System(records.Place("h", 7), "echo tide", "tide"),
        records.Halt(records.Place("h", 13)),
    ]
    assert place == sorted(place)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("statment ok\nSELECT 1", "h:1: .statment ok. is not a directive"),
        ("statement\nSELECT 1", "h:1: a statement is"),
        ("statement ok\nSELECT 1\n----\n1", "has no results"),
        ("statement count many\nSELECT 1", "not a number"),
        ("query I a b\nSELECT 1", "not expected"),
        ("let 1\nSELECT 1", "does not name variables"),
        ("let a\nSELECT 1\n----\n1", "let has no results"),
        ("query I rowsort a b\nSELECT 1", "not expected"),
        ("statement error (\nSELECT 1", "regular expression"),
        ("statement error x\nSELECT 1\n----\nx", "told twice"),
        ("sleep long", "not a time"),
        ("control sortmode up", "not a directive"),
        ("statement ok\n", "no text below"),
    ],
)
def test_a_wrong_line_is_named_with_its_place(text: str, message: str) -> None:
    with pytest.raises(SyntaxError_, match=message):
        parse(text, "h")


def test_included_files_stand_in_place_of_their_include(tmp_path: Path) -> None:
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "b.part").write_text("statement ok\nSELECT 'b'\n")
    (tmp_path / "parts" / "a.part").write_text("statement ok\nSELECT 'a'\n")
    main = tmp_path / "main.slt"
    main.write_text("onlyif slow\ninclude ./parts/*.part\n\nstatement ok\nSELECT 'main'\n")
    found = [record for record in read_file(main) if isinstance(record, Execute)]
    assert [record.sql for record in found] == ["SELECT 'a'", "SELECT 'b'", "SELECT 'main'"]
    assert [len(record.conditions) for record in found] == [1, 1, 0]
    assert found[0].place.file.endswith("a.part")


def test_two_stars_of_an_include_go_through_all_folders_below(tmp_path: Path) -> None:
    (tmp_path / "quays" / "north").mkdir(parents=True)
    for place in ("quays", "quays/north"):
        (tmp_path / place / "berths.slt").write_text("statement ok\nFLUSH\n")
    (tmp_path / "all.slt").write_text("include ./quays/**/*.slt\n")
    assert len(read_file(tmp_path / "all.slt")) == 2


def test_a_file_that_includes_itself_or_nothing_is_an_error(tmp_path: Path) -> None:
    circle = tmp_path / "circle.slt"
    circle.write_text("include circle.slt\n")
    with pytest.raises(InvalidParameter, match="too deeply"):
        read_file(circle)
    lost = tmp_path / "lost.slt"
    lost.write_text("include none.slt\n")
    with pytest.raises(SeicheError, match="no file matches"):
        read_file(lost)
    with pytest.raises(SeicheError, match="cannot be read"):
        read_file(tmp_path / "absent.slt")
