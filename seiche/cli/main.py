"""The command `seiche`: reads the command line, runs one subcommand, turns every outcome into an exit code.

    0 fine    1 a statement or a check failed    2 wrong usage    130 interrupted

This is the edge: no stack trace leaves it unless SEICHE_DEBUG=1.
"""

from __future__ import annotations

import argparse
import importlib
import os
import signal
import sys
import traceback
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Protocol

import seiche
from seiche.cli.slt import command as slt_command
from seiche.config import Config
from seiche.errors import ConfigError, SeicheError

EXIT_FAILED = 1
EXIT_INTERRUPTED = 130


class Connect(Protocol):
    """`seiche.connect`, as far as this command uses it."""

    def __call__(self, data_dir: str | None = None, *, config: Config) -> AbstractContextManager[Any]: ...


def main(argv: Sequence[str] | None = None, *, connect: Connect | None = None) -> int:
    """Runs the command. `connect` opens the engine; it is `seiche.connect` unless given."""
    try:
        code = _run(sys.argv[1:] if argv is None else argv, connect or _connect)
        sys.stdout.flush()
        return code
    except SeicheError as error:
        _trace()
        from seiche.cli.display import error_text

        print(error_text(error), file=sys.stderr)
        return EXIT_FAILED
    except KeyboardInterrupt:
        _trace()
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        # Whoever read our output has gone (`| head`). Python would complain once more while it exits.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_FAILED
    except Exception as failure:  # noqa: BLE001  (the edge of the CLI)
        _trace()
        print(f"ERROR:  {type(failure).__name__}: {failure}", file=sys.stderr)
        if not _debugging():
            print("HINT:  This is a defect. Run again with SEICHE_DEBUG=1 to see where it happened.", file=sys.stderr)
        return EXIT_FAILED


def _connect(data_dir: str | None = None, *, config: Config) -> AbstractContextManager[Any]:
    return seiche.connect(data_dir, config=config)


def parser() -> argparse.ArgumentParser:
    common = argparse.ArgumentParser(add_help=False)
    group = common.add_argument_group("settings", "each can also be set in a file or as SEICHE_<NAME>")
    group.add_argument("--data-dir", metavar="FOLDER", help="folder of the database (default: ./seiche-data)")
    group.add_argument("--metadata", metavar="ADDRESS", help="metadata database (default: SQLite in the data folder)")
    group.add_argument("--master", metavar="ADDRESS", help="Spark master (default: local[*])")
    group.add_argument("--config", metavar="FILE", type=Path, help="file of settings (TOML)")
    group.add_argument(
        "--set",
        metavar="NAME=VALUE",
        action="append",
        default=[],
        dest="settings",
        help="any other setting, as `seiche config` lists them; may be repeated",
    )

    top = argparse.ArgumentParser(
        prog="seiche",
        description="SQL materialized views that stay up to date, on Apache Spark.",
        epilog="`seiche COMMAND --help` tells more about a command.",
    )
    top.add_argument("--version", action="version", version=f"seiche {seiche.__version__}")
    subcommands = top.add_subparsers(dest="command", metavar="COMMAND", required=True)

    sql = subcommands.add_parser(
        "sql",
        parents=[common],
        help="run SQL: interactively, from -c, from files or from standard input",
        description="Runs SQL. Without -c and -f: interactively, or from standard input where that is no terminal. "
        "Stops at the first error with exit code 1.",
    )
    sql.add_argument(
        "-c", metavar="TEXT", action=_Script, dest="scripts", const="text", help="statements to run; may be repeated"
    )
    sql.add_argument(
        "-f",
        metavar="FILE",
        action=_Script,
        dest="scripts",
        const="file",
        help="file of statements to run (- is standard input); may be repeated",
    )
    sql.add_argument("-d", "--database", metavar="NAME", help="database to work in (default: dev)")
    sql.add_argument("-x", "--expanded", action="store_true", help="one line a value")
    sql.add_argument("--timing", action="store_true", help="show how long each statement took")

    start = subcommands.add_parser(
        "start",
        parents=[common],
        help="run a server that PostgreSQL clients connect to",
        description="Runs a server in the foreground. It ends after a checkpoint on SIGTERM, Ctrl-C or `seiche stop`.",
    )
    start.add_argument("--host", default="127.0.0.1", help="address to listen on (default: 127.0.0.1)")
    start.add_argument("--port", type=int, default=4566, help="port to listen on (default: 4566)")
    start.add_argument(
        "--dashboard-port", type=int, metavar="N", help="port of the dashboard, 0 for none (default: 5691 if free)"
    )
    start.add_argument("--max-connections", type=int, default=300, metavar="N", help="most sessions at a time (300)")
    start.add_argument("--threads", type=int, default=32, metavar="N", help="statements that run at a time (32)")
    start.add_argument("--tls-cert", type=Path, metavar="FILE", help="certificate chain (PEM): offer TLS")
    start.add_argument("--tls-key", type=Path, metavar="FILE", help="its key, where not in the same file")
    start.add_argument(
        "--passwords",
        action="store_true",
        help="everybody from beyond this machine needs a password (users who have one need it anyway)",
    )
    start.add_argument(
        "--trust-everyone-on-the-network",
        action="store_true",
        help="let anybody who reaches the port in, as any user without a password",
    )
    subcommands.add_parser("status", parents=[common], help="say whether a server runs for the data folder")
    subcommands.add_parser("stop", parents=[common], help="stop the server of the data folder after a checkpoint")

    jobs = subcommands.add_parser("jobs", parents=[common], help="show views that are being created, and how far")
    jobs.add_argument("--watch", action="store_true", help="go on until there is none")
    subcommands.add_parser("pause", parents=[common], help="hold everything still but queries, until resume")
    subcommands.add_parser("resume", parents=[common], help="let a paused database go on")

    doctor = subcommands.add_parser(
        "doctor", parents=[common], help="check Java, Python, folders and versions, and say what to do"
    )
    doctor.add_argument("--quiet", action="store_true", help="print only what is not fine")

    prepare = subcommands.add_parser(
        "prepare", parents=[common], help="archive Spark's Java classes, so that every start takes less time"
    )
    prepare.add_argument("--anew", action="store_true", help="also if there is an archive that fits")

    config = subcommands.add_parser(
        "config", parents=[common], help="list each setting, its value, and where that came from"
    )
    config.add_argument("--json", action="store_true", help="print JSON")

    slt = subcommands.add_parser(
        "slt",
        parents=[common],
        help="run sqllogictest files against an engine or a server",
        description="Runs sqllogictest files: in an engine of its own in a temporary folder, in the database of "
        "--data-dir, or through the wire with --host or --port. Each file's tables and views are dropped after it.",
    )
    slt_command.add_arguments(slt)

    subcommands.add_parser(
        "demo", add_help=False, help="watch views stay up to date through a kill, and compare them with Spark"
    )
    return top


class _Script(argparse.Action):
    """Collects -c and -f into one list, in the order in which they were given."""

    def __call__(self, parser: Any, namespace: argparse.Namespace, value: Any, option: str | None = None) -> None:
        setattr(namespace, self.dest, [*(getattr(namespace, self.dest) or []), (self.const, value)])


def _run(argv: Sequence[str], connect: Connect) -> int:
    top = parser()
    arguments, rest = top.parse_known_args(argv)
    if arguments.command == "demo":
        return int(importlib.import_module("seiche.cli.demo").main(rest))
    if rest:
        top.error(f"unrecognized arguments: {' '.join(rest)}")
    config = _config(arguments)
    match arguments.command:
        case "sql":
            return _sql(arguments, config, connect)
        case "start":
            return _start(arguments, config)
        case "status" | "stop":
            from seiche.cli import serve

            return (serve.status if arguments.command == "status" else serve.stop)(config, sys.stdout)
        case "jobs" | "pause" | "resume":
            return _jobs(arguments, config, connect)
        case "doctor":
            from seiche.cli import doctor

            return doctor.run(config, quiet=arguments.quiet, out=sys.stdout)
        case "prepare":
            from seiche.cli import prepare

            return prepare.run(sys.stdout, anew=arguments.anew)
        case "config":
            from seiche.cli import settings

            return settings.show(config, as_json=arguments.json, out=sys.stdout, err=sys.stderr)
        case "slt":
            return slt_command.run(arguments, config, connect, sys.stdout)
        case command:
            raise AssertionError(f"subcommand {command} has no code")


def _config(arguments: argparse.Namespace) -> Config:
    given: dict[str, object] = {}
    for pair in arguments.settings:
        name, equals, value = pair.partition("=")
        if not equals:
            raise ConfigError(f'option --set "{pair}" has no value', hint="Write --set NAME=VALUE.")
        given[name.strip()] = value
    for name in ("data_dir", "metadata", "master"):
        if getattr(arguments, name) is not None:
            given[name] = getattr(arguments, name)
    return Config.load(arguments=given, file=arguments.config)


def _start(arguments: argparse.Namespace, config: Config) -> int:
    from seiche.cli import serve
    from seiche.server.server import ServerOptions

    options = ServerOptions(
        host=arguments.host,
        port=arguments.port,
        connections_max=arguments.max_connections,
        threads=arguments.threads,
        passwords=arguments.passwords,
        trust_network=arguments.trust_everyone_on_the_network,
        certificate=arguments.tls_cert,
        key=arguments.tls_key,
    )
    return serve.start(config, options, dashboard_port=arguments.dashboard_port)


def _jobs(arguments: argparse.Namespace, config: Config, connect: Connect) -> int:
    from seiche.cli import jobs

    with _database(config, connect, interactive=False) as database:
        match arguments.command:
            case "pause":
                return jobs.pause(database, sys.stdout)
            case "resume":
                return jobs.resume(database, sys.stdout)
            case _:
                return (jobs.watch if arguments.watch else jobs.show)(database, sys.stdout)


def _sql(arguments: argparse.Namespace, config: Config, connect: Connect) -> int:
    # Late, so that the other subcommands answer at once.
    from seiche.catalog.catalog import quoted
    from seiche.cli import prompt
    from seiche.cli.session import Outcome, Session, read_script

    scripts = [
        (value, None) if kind == "text" else (sys.stdin, None) if value == "-" else (read_script(Path(value)), value)
        for kind, value in arguments.scripts or ()
    ]
    interactive = not scripts and sys.stdin.isatty()
    if not scripts and not interactive:
        scripts = [(sys.stdin, None)]
    with _database(config, connect, interactive=interactive) as database:
        # Spark's own handler would cancel the jobs of the engine together with the statement's.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        if arguments.database is not None:
            database.execute(f"SET database TO {quoted(arguments.database)}")
        session = Session(database, sys.stdout, sys.stderr)
        session.timing = arguments.timing
        session.expanded = arguments.expanded
        if interactive:
            print(r"Type \? for help, \q or Ctrl-D to leave.", file=sys.stderr)
            prompt.interact(session, database.names, history=prompt.open_history(prompt.history_path(os.environ)))
            return 0
        for script, name in scripts:
            outcome = session.run_text(script, name) if isinstance(script, str) else session.run_lines(script, name)
            if outcome is not Outcome.OK:
                return EXIT_FAILED if outcome is Outcome.FAILED else 0
    return 0


def _database(config: Config, connect: Connect, *, interactive: bool) -> AbstractContextManager[Any]:
    """The server of the data folder if one runs, else an engine of our own."""
    if (Path(config.data_dir) / "server.json").exists():
        from seiche.cli import remote, serve

        address = serve.running(config)
        if address is not None:
            if interactive:
                print(f"seiche {seiche.__version__}: connected to port {address.port}", file=sys.stderr, flush=True)
            return remote.RemoteDatabase(address.client_host, address.port)
    if interactive:
        print(f"seiche {seiche.__version__}: starting Spark ...", file=sys.stderr, flush=True)
    return connect(config=config)


def _debugging() -> bool:
    return os.environ.get("SEICHE_DEBUG", "") not in ("", "0")


def _trace() -> None:
    if _debugging():
        traceback.print_exc()


if __name__ == "__main__":
    sys.exit(main())
