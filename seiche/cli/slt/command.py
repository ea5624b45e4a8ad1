"""`seiche slt FILE…`: finds the files, runs them one after another, prints what failed and the sums."""

from __future__ import annotations

import argparse
import glob
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol, TextIO

from seiche.cli.slt.runner import Execute, Failure, FileReport, Options, plainly, run_file
from seiche.cli.slt.targets import EngineTarget, Target
from seiche.config import Config
from seiche.errors import InvalidParameter

EXIT_FAILED = 1
SUFFIX = ".slt"


class Connect(Protocol):
    def __call__(self, data_dir: str | None = None, *, config: Config) -> AbstractContextManager[Any]: ...


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("files", metavar="FILE", nargs="+", help="file, folder of .slt files, or pattern")
    parser.add_argument("--label", action="append", default=[], help="a label for onlyif and skipif; may be repeated")
    parser.add_argument("--keep-going", action="store_true", help="go on with a file after a record failed")
    parser.add_argument("--allow-system", action="store_true", help="let `system` records run commands of the shell")
    group = parser.add_argument_group("server", "run through the wire protocol instead of an engine in this process")
    group.add_argument("--host", metavar="NAME")
    group.add_argument("--port", metavar="NUMBER", type=int)
    group.add_argument("--user", metavar="NAME", default="root")
    group.add_argument("--dbname", metavar="NAME", default="dev")
    group.add_argument("--server", action="store_true", help="start a server for the run, in a process of its own")
    group.add_argument(
        "--kills", action="store_true", help="kill that server with -9 around each CREATE and DROP, and retry"
    )
    group.add_argument("--seed", metavar="NUMBER", type=int, default=0, help="decides when the kills come (default: 0)")


def run(arguments: argparse.Namespace, config: Config, connect: Connect, out: TextIO) -> int:
    files = find_files(arguments.files)
    started = time.monotonic()
    reports = []
    with _target(arguments, config, connect) as (target, execute):
        labels = frozenset(arguments.label)
        options = Options(
            labels, arguments.allow_system, arguments.keep_going, execute=execute, database=arguments.dbname
        )
        for file in files:
            report = run_file(file, target, options)
            reports.append(report)
            out.write(report_text(report) + "\n")
            out.flush()
    out.write(summary(reports, time.monotonic() - started) + "\n")
    return 0 if all(report.ok for report in reports) else EXIT_FAILED


def find_files(names: Sequence[str]) -> list[Path]:
    """The files that are meant: themselves, those below a folder, or those that match a pattern."""
    found: list[Path] = []
    for name in names:
        path = Path(name)
        if path.is_dir():
            here = sorted(path.rglob(f"*{SUFFIX}"))
        elif path.exists():
            here = [path]
        else:
            here = [Path(each) for each in sorted(glob.glob(name, recursive=True))]
        if not here:
            raise InvalidParameter(
                f'no file is meant by "{name}"', hint=f"Name a file, or a folder with {SUFFIX} files."
            )
        found.extend(here)
    return list(dict.fromkeys(found))


@contextmanager
def _target(arguments: argparse.Namespace, config: Config, connect: Connect) -> Iterator[tuple[Target, Execute]]:
    """What the files run against, and how."""
    address = arguments.host is not None or arguments.port is not None
    if address and (arguments.server or arguments.kills):
        raise InvalidParameter(
            "a server of somebody else is neither started nor killed",
            hint="Leave out --host and --port: the server is one of the run's own.",
        )
    if address:
        from psycopg.conninfo import make_conninfo  # late, so that other commands answer at once

        from seiche.cli.slt.wire import WireTarget

        host, port = arguments.host or "127.0.0.1", arguments.port or 4566
        given = make_conninfo(host=host, port=port, user=arguments.user, dbname=arguments.dbname)
        with closing(WireTarget(given)) as target:
            yield target, plainly
        return
    with tempfile.TemporaryDirectory(prefix="seiche-slt-") as folder:
        # Tests do not belong into the database that happens to lie in the current folder.
        here = config if arguments.data_dir is not None else replace(config, data_dir=Path(folder, "data"))
        if arguments.server or arguments.kills:
            with _own_server(Path(here.data_dir), arguments) as both:
                yield both
        else:
            with connect(config=here) as engine:
                yield EngineTarget(engine), plainly


@contextmanager
def _own_server(folder: Path, arguments: argparse.Namespace) -> Iterator[tuple[Target, Execute]]:
    from seiche.cli.slt.kills import Alone, KilledTarget
    from seiche.cli.slt.servers import ServerProcess
    from seiche.cli.slt.wire import WireTarget

    with ServerProcess(folder, _passed_on(arguments)) as server:
        if arguments.kills:
            with closing(KilledTarget(Alone(server, arguments.seed))) as killed:
                yield killed, killed.execute
        else:
            with closing(WireTarget(server.address)) as target:
                yield target, plainly


def _passed_on(arguments: argparse.Namespace) -> list[str]:
    """The settings of the command line, for a server in a process of its own. What the environment says it sees."""
    given = {"--metadata": arguments.metadata, "--master": arguments.master, "--config": arguments.config}
    options = [word for name, value in given.items() if value is not None for word in (name, str(value))]
    return [*options, *(word for pair in arguments.settings for word in ("--set", pair))]


# --- what is printed -------------------------------------------------------------------------------------


def report_text(report: FileReport) -> str:
    skipped = f", {report.skipped} skipped" if report.skipped else ""
    counts = f"({report.passed} passed{skipped}, {report.seconds:.1f} s)"
    head = f"{'ok    ' if report.ok else 'FAILED'} {report.file}  {counts}"
    lines = [head, *(failure_text(failure) for failure in report.failures)]
    if report.error is not None:
        lines.append(_indented(f"ERROR:  {report.error}", 4))
    return "\n".join(lines)


def failure_text(failure: Failure) -> str:
    mismatch = failure.mismatch
    lines = [f"  {failure.place}", _indented(failure.text, 6)]
    if mismatch.diff:
        lines += ["    - expected, + found", _indented("\n".join(mismatch.diff), 6)]
    else:
        lines += ["    expected", _indented(mismatch.expected, 6), "    found", _indented(mismatch.found, 6)]
    return "\n".join(lines)


def summary(reports: Sequence[FileReport], seconds: float) -> str:
    passed = sum(report.passed for report in reports)
    failed = sum(len(report.failures) for report in reports)
    skipped = sum(report.skipped for report in reports)
    bad = [report.file for report in reports if not report.ok]
    text = f"{len(reports)} files, {len(bad)} failed; records: {passed} passed, {failed} failed, {skipped} skipped"
    return "\n".join([f"{text}; {seconds:.1f} s", *(f"  FAILED {file}" for file in bad)])


def _indented(text: str, width: int) -> str:
    return "\n".join(" " * width + line for line in text.splitlines() or [""])
