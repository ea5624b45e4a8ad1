"""`seiche demo`: views that stay up to date through a kill -9, and the proof that they are right.

    harbour   the tables, the views and the traffic, with a ledger of what was acknowledged
    child     the engine's process
    process   that process as the demonstration sees it: start, ask, kill
    screen    what a person sees
    run       the story, in order

The demonstration is a client like any other: it believes only what was acknowledged to it, and compares that with
what it finds. Exit code 0 means that everything it showed was true.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

SECONDS = 16
ROWS = 1_500_000


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(
        prog="seiche demo",
        description="Keeps views of a busy harbour up to date, kills the engine in the middle, starts it again, and "
        "compares every view with Spark's own answer. Exit code 0 only if all of it held.",
    )
    top.add_argument(
        "--seconds", type=_seconds, default=SECONDS, metavar="N", help=f"how long changes stream (default: {SECONDS})"
    )
    top.add_argument(
        "--rows", type=_rows, default=ROWS, metavar="N", help=f"arrivals to begin with (default: {ROWS:,})"
    )
    top.add_argument("--keep", action="store_true", help="keep the database's folder, and say where it is")
    return top


def main(argv: Sequence[str]) -> int:
    arguments = parser().parse_args(argv)
    from seiche.cli.demo.run import Demo
    from seiche.cli.demo.screen import screen_for

    return Demo(screen_for(sys.stdout), arguments.seconds, arguments.rows, keep=arguments.keep).run()


def _seconds(text: str) -> float:
    value = float(text)
    if not 2 <= value <= 3600:
        raise argparse.ArgumentTypeError("must be between 2 and 3600")
    return value


def _rows(text: str) -> int:
    value = int(text.replace("_", "").replace(",", ""))
    if not 10_000 <= value <= 1_000_000_000:
        raise argparse.ArgumentTypeError("must be between 10,000 and 1,000,000,000")
    return value
