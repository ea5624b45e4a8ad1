"""A small engine for the shell's tests: it answers a few statements about a harbour from a dictionary."""

from __future__ import annotations

import re
import threading
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

from seiche import types
from seiche.config import Config
from seiche.errors import QueryCanceled, SeicheError, UndefinedTable


@dataclass(frozen=True, slots=True)
class Column:
    name: str
    type: types.SqlType


@dataclass(frozen=True, slots=True)
class Result:
    tag: str
    columns: tuple[Column, ...] | None = None
    rows: list[tuple[Any, ...]] | None = None
    notices: list[str] = field(default_factory=list)
    seconds: float = 0.0


def table(*columns: tuple[str, types.SqlType], rows: list[tuple[Any, ...]], tag: str = "SELECT") -> Result:
    return Result(tag, tuple(Column(n, t) for n, t in columns), rows)


SHIPS = table(
    ("id", types.INTEGER),
    ("name", types.VARCHAR),
    rows=[(1, "Aurora"), (2, None)],
)

ANSWERS: dict[str, Result | SeicheError] = {
    "SELECT * FROM ships": SHIPS,
    "SELECT * FROM shps": UndefinedTable(
        'relation "shps" does not exist', hint='Perhaps you meant "ships".', position=15
    ),
    "INSERT INTO ships VALUES (3, 'Kestrel')": Result("INSERT 0 1"),
    "INSERT INTO ships VALUES (3, 'a;b')": Result("INSERT 0 1"),
    "INSERT INTO ships VALUES (4, 'Tern') RETURNING id": table(("id", types.INTEGER), rows=[(4,)], tag="INSERT 0 1"),
    "CREATE TABLE IF NOT EXISTS ships (id INT)": Result(
        "CREATE_TABLE", notices=['relation "ships" already exists, skipping']
    ),
    "SHOW TABLES": table(("Name", types.VARCHAR), rows=[("ships",), ("berths",)]),
    "SHOW TABLES LIKE 'sh%'": table(("Name", types.VARCHAR), rows=[("ships",)]),
    "SHOW MATERIALIZED VIEWS": table(("Name", types.VARCHAR), rows=[("arrivals_by_berth",)]),
    "SHOW VIEWS": table(("Name", types.VARCHAR), rows=[]),
    "SHOW INDEXES": table(("Name", types.VARCHAR), rows=[]),
    "DESCRIBE ships": table(("Name", types.VARCHAR), ("Type", types.VARCHAR), rows=[("id", "integer")]),
}


class Harbour:
    """`SELECT wait` runs until it is cancelled."""

    def __init__(self, data_dir: str | None = None, *, config: Config | None = None) -> None:
        self.config = config
        self.executed: list[str] = []
        self.waiting = threading.Event()
        self.cancelled = threading.Event()
        self.closed = False

    def __enter__(self) -> Harbour:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.closed = True

    def execute(self, text: str) -> list[Result]:
        self.executed.append(text)
        if text == "SELECT wait":
            self.waiting.set()
            assert self.cancelled.wait(10)
            raise QueryCanceled("canceling statement due to user request")
        if text == "SELECT broken":
            raise ZeroDivisionError("the engine has a defect")
        answer = ANSWERS[" ".join(re.sub("--.*", "", text).split())]
        if isinstance(answer, SeicheError):
            raise answer
        return [answer]

    def cancel(self) -> None:
        self.cancelled.set()

    def names(self) -> list[str]:
        return ["ships", "berths", "Pier 9", "arrivals_by_berth"]
