"""Files run against a small real database: SQLite, in memory."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from seiche.cli.slt.answers import Answered, Refused
from seiche.cli.slt.command import find_files, report_text, summary
from seiche.cli.slt.runner import FileReport, Options, run_file
from seiche.cli.slt.targets import Thing, by_kind, drops
from seiche.errors import InvalidParameter


class SqliteConnection:
    def __init__(self, target: SqliteTarget) -> None:
        self._target = target
        self.closed = False

    def run(self, sql: str) -> Answered | Refused:
        try:
            cursor = self._target.database.execute(sql)
        except sqlite3.Error as error:
            return Refused(str(error), "42000")
        if cursor.description is None:
            return Answered(None, cursor.rowcount)
        return Answered(tuple(tuple(None if v is None else str(v) for v in row) for row in cursor.fetchall()))

    def close(self) -> None:
        self.closed = True


@dataclass
class SqliteTarget:
    database: sqlite3.Connection = field(default_factory=lambda: sqlite3.connect(":memory:", isolation_level=None))
    connections: list[SqliteConnection] = field(default_factory=list)
    labels: frozenset[str] = frozenset({"sqlite"})

    def connect(self) -> SqliteConnection:
        self.connections.append(SqliteConnection(self))
        return self.connections[-1]

    def inventory(self) -> frozenset[Thing]:
        found = self.database.execute("SELECT upper(type), name FROM sqlite_schema").fetchall()
        return frozenset(Thing(*row) for row in found)

    def drop(self, things: Iterable[Thing]) -> None:
        for kind, names in by_kind(things):
            for name in names:
                self.database.execute(f"DROP {kind} {name}")


@pytest.fixture
def target() -> SqliteTarget:
    return SqliteTarget()


def run(tmp_path: Path, target: SqliteTarget, text: str, **options: object) -> FileReport:
    file = tmp_path / "harbour.slt"
    file.write_text(text)
    return run_file(file, target, Options(**options))  # type: ignore[arg-type]


SHIPS = "statement ok\nCREATE TABLE ships (id int)\n\nstatement count 2\nINSERT INTO ships VALUES (1), (2)\n\n"


def test_a_file_passes_and_leaves_nothing(tmp_path: Path, target: SqliteTarget) -> None:
    target.database.execute("CREATE TABLE before (id int)")
    report = run(tmp_path, target, SHIPS + "query I\nSELECT id FROM ships\n----\n1\n2\n")
    assert report.ok
    assert (report.passed, report.skipped) == (3, 0)
    assert target.inventory() == {Thing("TABLE", "before")}
    assert all(connection.closed for connection in target.connections)


def test_a_file_ends_at_its_first_failure_and_is_cleaned_up_all_the_same(tmp_path: Path, target: SqliteTarget) -> None:
    text = SHIPS + "query I\nSELECT id FROM ships\n----\n1\n3\n\nstatement ok\nSELECT nonsense\n"
    report = run(tmp_path, target, text)
    assert not report.ok
    (failure,) = report.failures
    assert failure.place.line == 7
    assert failure.text == "SELECT id FROM ships"
    shown = report_text(report)
    assert "harbour.slt:7" in shown
    assert "- 3" in shown
    assert "+ 2" in shown
    assert target.inventory() == frozenset()


def test_keep_going_finds_every_failure(tmp_path: Path, target: SqliteTarget) -> None:
    text = "statement ok\nSELECT nonsense\n\nstatement error\nSELECT 1\n\nstatement ok\nSELECT 2\n"
    report = run(tmp_path, target, text, keep_going=True)
    assert (report.passed, len(report.failures)) == (1, 2)
    assert "1 files, 1 failed; records: 1 passed, 2 failed, 0 skipped" in summary([report], 0.1)


def test_labels_decide_what_runs(tmp_path: Path, target: SqliteTarget) -> None:
    text = (
        "skipif sqlite\nstatement ok\nSELECT nonsense\n\nonlyif postgres\nstatement ok\nSELECT nonsense\n\n"
        "onlyif deep\nstatement ok\nSELECT 1\n"
    )
    report = run(tmp_path, target, text, labels=frozenset({"deep"}))
    assert report.ok
    assert (report.passed, report.skipped) == (1, 2)


def test_halt_ends_a_file(tmp_path: Path, target: SqliteTarget) -> None:
    report = run(tmp_path, target, "skipif sqlite\nhalt\n\nstatement ok\nSELECT 1\n\nhalt\n\nstatement ok\nnonsense\n")
    assert report.ok
    assert report.passed == 1


def test_a_record_is_tried_again_with_waits_between(tmp_path: Path, target: SqliteTarget) -> None:
    waits: list[float] = []

    def wait(seconds: float) -> None:
        waits.append(seconds)
        target.database.execute("INSERT INTO ships VALUES (9)")

    text = "statement ok\nCREATE TABLE ships (id int)\n\n"
    text += "query I retry 5 backoff 10ms\nSELECT count(*) FROM ships\n----\n2\n"
    report = run(tmp_path, target, text, sleep=wait)
    assert report.ok
    assert waits == [0.01, 0.01]
    report = run(tmp_path, target, "statement ok retry 2 backoff 1s\nnonsense\n", sleep=waits.append)
    assert not report.ok
    assert waits[2:] == [1.0, 1.0]


def test_named_connections_are_conversations_of_their_own(tmp_path: Path, target: SqliteTarget) -> None:
    text = "connection pilot\nstatement ok\nSELECT 1\n\n"
    text += "statement ok\nSELECT 2\n\nconnection pilot\nstatement ok\nSELECT 3\n"
    assert run(tmp_path, target, text).ok
    assert len(target.connections) == 2


def test_variables_are_replaced_only_after_they_were_turned_on(tmp_path: Path, target: SqliteTarget) -> None:
    text = "query T\nSELECT '$ship'\n----\n$ship\n\ncontrol substitution on\n\nquery T\nSELECT '$ship'\n----\nAurora\n"
    assert run(tmp_path, target, text, environment={"ship": "Aurora"}).ok
    text = "control substitution on\nquery T\nSELECT '$__DATABASE__'\n----\nquay\n"
    assert run(tmp_path, target, text, database="quay").ok
    report = run(tmp_path, target, "control substitution on\nquery T\nSELECT '$tide'\n----\nlow\n", environment={})
    assert 'variable "tide" has no value' in report_text(report)


def test_let_keeps_the_values_of_a_row_as_variables(tmp_path: Path, target: SqliteTarget) -> None:
    text = (
        "control substitution on\n\nlet ship, tons\nSELECT 'Aurora', 5\n\n"
        "let twice\nSELECT $tons * 2\n\nquery TI\nSELECT '$ship', $twice\n----\nAurora 10\n"
    )
    assert run(tmp_path, target, text).ok
    for wrong in ("SELECT 1, 2", "SELECT 1 WHERE false", "SELECT nonsense", "SELECT $none"):
        assert not run(tmp_path, target, f"control substitution on\nlet a\n{wrong}\n").ok


def test_system_commands_run_only_when_allowed(tmp_path: Path, target: SqliteTarget) -> None:
    file = tmp_path / "made"
    text = f"system ok\ntouch {file} && echo done\n----\ndone\n"
    report = run(tmp_path, target, text)
    assert "--allow-system" in report_text(report)
    assert not file.exists()
    assert run(tmp_path, target, text, allow_system=True).ok
    assert file.exists()
    report = run(tmp_path, target, "system ok\nexit 3\n", allow_system=True)
    assert "exit code 3" in report_text(report)


def test_a_file_with_a_wrong_line_runs_nothing(tmp_path: Path, target: SqliteTarget) -> None:
    report = run(tmp_path, target, SHIPS + "statemnt ok\nSELECT 1\n")
    assert not report.ok
    assert report.passed == 0
    assert "harbour.slt:7" in report_text(report)


def test_files_are_found_by_name_folder_and_pattern(tmp_path: Path) -> None:
    for name in ("a.slt", "deep/b.slt", "deep/c.part"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("")
    assert [path.name for path in find_files([str(tmp_path)])] == ["a.slt", "b.slt"]
    assert [path.name for path in find_files([str(tmp_path / "deep" / "c.part")])] == ["c.part"]
    assert [path.name for path in find_files([f"{tmp_path}/**/*.slt", str(tmp_path)])] == ["a.slt", "b.slt"]
    with pytest.raises(InvalidParameter):
        find_files([str(tmp_path / "none.slt")])


def test_what_hangs_on_others_is_dropped_after_them() -> None:
    assert drops("TABLE", ["a", "b"]) == ["a, b CASCADE"]
    assert drops("DATABASE", ["a", "b"]) == ["a", "b"]
    things = [
        Thing("USER", "u"),
        Thing("DATABASE", "d"),
        Thing("SCHEMA", "s"),
        Thing("VIEW", "v"),
        Thing("TABLE", "b"),
        Thing("TABLE", "a"),
    ]
    assert by_kind([*things, Thing("SECRET", "x")]) == [
        ("TABLE", ["a", "b"]), ("VIEW", ["v"]), ("SECRET", ["x"]), ("SCHEMA", ["s"]), ("DATABASE", ["d"]),
        ("USER", ["u"]),
    ]  # fmt: skip
