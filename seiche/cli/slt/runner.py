"""Runs the records of one file against a target, and tells what happened to each.

A file starts with fresh connections, and what it created is dropped when it ends, whatever its outcome, so that
many files can share one database. It ends at its first failure, unless told to go on.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import assert_never

from seiche.cli.slt import records
from seiche.cli.slt.answers import IGNORE, Answered, Mismatch, Refused, Rules, compare
from seiche.cli.slt.substitution import substitute
from seiche.cli.slt.targets import Connection, Target
from seiche.errors import SeicheError


@dataclass(frozen=True, slots=True)
class Failure:
    """A record that failed: where it stands, what it ran, and what was wrong."""

    place: records.Place
    text: str
    mismatch: Mismatch


@dataclass(slots=True)
class FileReport:
    """What happened to the records of a file. `error` is set where it could not be run (to its end)."""

    file: str
    passed: int = 0
    skipped: int = 0
    failures: list[Failure] = field(default_factory=list)
    error: SeicheError | None = None
    seconds: float = 0.0

    @property
    def ok(self) -> bool:
        return not self.failures and self.error is None


Execute = Callable[[Connection, str, records.Expectation], Answered | Refused]


def plainly(connection: Connection, sql: str, expect: records.Expectation) -> Answered | Refused:
    return connection.run(sql)


@dataclass(frozen=True, slots=True)
class Options:
    """`execute` runs the SQL of a record in its conversation; a target may want to do so in its own way."""

    labels: frozenset[str] = frozenset()
    allow_system: bool = False
    keep_going: bool = False
    sleep: Callable[[float], None] = time.sleep
    environment: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    execute: Execute = plainly
    database: str = "dev"  # that conversations begin in


def run_file(path: Path, target: Target, options: Options) -> FileReport:
    """Runs one file. Errors of the file and of the target are in the report; only defects are raised."""
    report = FileReport(str(path))
    started = time.monotonic()
    try:
        script = records.read_file(path)
        before = target.inventory()
        try:
            with _Run(target, options, report) as run:
                run.all(script)
        finally:
            target.drop(target.inventory() - before)
    except SeicheError as error:
        report.error = error
    report.seconds = time.monotonic() - started
    return report


class _Run:
    def __init__(self, target: Target, options: Options, report: FileReport) -> None:
        self._target = target
        self._options = options
        self._report = report
        self._labels = target.labels | options.labels
        self._connections: dict[str, Connection] = {}
        self._rules = Rules()
        self._substituting = False
        self._bound: dict[str, str] = {}
        self._closing = ExitStack()
        self._folder: str | None = None

    def __enter__(self) -> _Run:
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.close()

    def all(self, script: Sequence[records.Record]) -> None:
        for record in script:
            if self._is_skipped(record):
                self._report.skipped += 1
                continue
            match record:
                case records.Execute() | records.System() | records.Let():
                    failure = self._tried(record)
                    if failure is None:
                        self._report.passed += 1
                        continue
                    self._report.failures.append(failure)
                    if not self._options.keep_going:
                        return
                case records.Halt():
                    return
                case records.Sleep():
                    self._options.sleep(record.seconds)
                case records.SetSortMode():
                    self._rules = replace(self._rules, sort=record.mode)
                case records.SetResultMode():
                    self._rules = replace(self._rules, mode=record.mode)
                case records.SetHashThreshold():
                    self._rules = replace(self._rules, hash_threshold=record.values)
                case records.SetSubstitution():
                    self._substituting = record.on
                case records.Include():
                    raise AssertionError("read_file puts included records in its place")
                case _:
                    assert_never(record)

    def _is_skipped(self, record: records.Record) -> bool:
        conditions: tuple[records.Condition, ...] = getattr(record, "conditions", ())
        return any(condition.wanted != (condition.label in self._labels) for condition in conditions)

    def _tried(self, record: records.Execute | records.System | records.Let) -> Failure | None:
        """Runs a record, again if it says so; the last failure, or None."""
        if isinstance(record, records.Let):
            mismatch = self._bind(record)
            return Failure(record.place, record.sql, mismatch) if mismatch else None
        failure = self._once(record)
        for _ in range(record.retry.times):
            if failure is None:
                break
            self._options.sleep(record.retry.backoff_s)
            failure = self._once(record)
        return failure

    def _once(self, record: records.Execute | records.System) -> Failure | None:
        if isinstance(record, records.System):
            mismatch = self._system(record)
            return Failure(record.place, record.command, mismatch) if mismatch else None
        sql = record.sql
        if self._substituting:
            try:
                sql = substitute(sql, self._variables())
            except SeicheError as error:
                return Failure(record.place, sql, Mismatch("variables with values", error.message))
        outcome = self._options.execute(self._connection(record.connection), sql, record.expect)
        mismatch = compare(record.expect, outcome, self._rules)
        return Failure(record.place, sql, mismatch) if mismatch else None

    def _bind(self, record: records.Let) -> Mismatch | None:
        try:
            sql = substitute(record.sql, self._variables()) if self._substituting else record.sql
        except SeicheError as error:
            return Mismatch("variables with values", error.message)
        outcome = self._connection(record.connection).run(sql)
        if isinstance(outcome, Refused):
            return Mismatch("success", str(outcome))
        rows = outcome.rows or ()
        if len(rows) != 1 or len(rows[0]) != len(record.names):
            return Mismatch(f"one row of {len(record.names)} values", f"{len(rows)} rows")
        self._bound |= {name: value or "" for name, value in zip(record.names, rows[0], strict=True)}
        return None

    def _connection(self, name: str) -> Connection:
        if name not in self._connections:
            self._connections[name] = self._target.connect()
            self._closing.callback(self._connections[name].close)
        return self._connections[name]

    def _variables(self) -> dict[str, str]:
        return {**self._options.environment, **self._own_variables(), **self._bound}

    def _own_variables(self) -> dict[str, str]:
        if self._folder is None:
            self._folder = self._closing.enter_context(tempfile.TemporaryDirectory(prefix="seiche-slt-"))
        return {
            "__TEST_DIR__": self._folder,
            "__NOW__": str(time.time_ns()),
            "__DATABASE__": self._options.database,
        }

    def _system(self, record: records.System) -> Mismatch | None:
        if not self._options.allow_system:
            return Mismatch("system commands to be allowed", "they are off; --allow-system turns them on")
        command = record.command
        if self._substituting:
            for name, value in self._own_variables().items():
                command = command.replace(f"${name}", value)
        # A shell is what the directive is for, and it is off unless asked for.
        done = subprocess.run(
            command, shell=True, capture_output=True, text=True, env=dict(self._options.environment), check=False
        )
        if done.returncode:
            return Mismatch("exit code 0", f"exit code {done.returncode}\n{done.stdout}{done.stderr}".rstrip())
        if record.output is not None and done.stdout.strip() != record.output and IGNORE not in record.output:
            return Mismatch(record.output, done.stdout.strip())
        return None
