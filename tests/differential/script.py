"""Scripts: what happens to one database in a differential test, step by step, as values that can be kept.

A script says everything that playing it needs: the statements as text, and what each table holds after them. So a
script that once failed stays the same test, however the grammar grows that it was drawn from. As JSON:

    {"found": "...", "settings": {...}, "steps": [
      ["table", "t0", "CREATE TABLE t0 (...)"],
      ["view", "v0", "SELECT ..."],
      ["write", [["t0", "INSERT ...", [rows after], [rows inserted] | null]], api],     several: side by side
      ["fold", ["t0", "v0"]],  ["restart"],  ["check"]
    ]}
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, assert_never

from tests.differential.harbour_tables import Row, Write


@dataclass(frozen=True, slots=True)
class CreateTable:
    name: str
    ddl: str


@dataclass(frozen=True, slots=True)
class CreateView:
    name: str
    query: str


@dataclass(frozen=True, slots=True)
class Writes:
    """One statement, or several on different tables that go side by side."""

    writes: tuple[Write, ...]
    api: bool = False  # inserted through Python's insert()


@dataclass(frozen=True, slots=True)
class Fold:
    """Folds tables and views, with the internal relations of the views."""

    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Restart:
    pass


@dataclass(frozen=True, slots=True)
class Check:
    pass


Step = CreateTable | CreateView | Writes | Fold | Restart | Check


@dataclass(frozen=True, slots=True)
class Script:
    settings: dict[str, Any]
    steps: tuple[Step, ...]
    found: str = field(default="", compare=False)  # what it found when it failed


# --- files -----------------------------------------------------------------------------------------------


def save(script: Script, path: Path) -> None:
    """Writes the script with one step a line, for people to read and for `git diff`."""
    steps = ",\n".join("  " + json.dumps(_encoded(_step_to_json(step)), ensure_ascii=False) for step in script.steps)
    head = f'{{"found": {json.dumps(script.found)}, "settings": {json.dumps(script.settings)}, "steps": [\n'
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{head}{steps}\n]}}\n", encoding="utf-8")


def load(path: Path) -> Script:
    data = json.loads(path.read_text(encoding="utf-8"))
    steps = tuple(_step_from_json(_decoded(step)) for step in data["steps"])
    return Script(data["settings"], steps, data["found"])


def _step_to_json(step: Step) -> list[Any]:
    match step:
        case CreateTable():
            return ["table", step.name, step.ddl]
        case CreateView():
            return ["view", step.name, step.query]
        case Writes():
            return ["write", [[w.table, w.sql, w.after, w.rows] for w in step.writes], step.api]
        case Fold():
            return ["fold", list(step.names)]
        case Restart():
            return ["restart"]
        case Check():
            return ["check"]
        case _:
            assert_never(step)


def _step_from_json(data: list[Any]) -> Step:
    match data:
        case ["table", name, ddl]:
            return CreateTable(name, ddl)
        case ["view", name, query]:
            return CreateView(name, query)
        case ["write", writes, api]:
            return Writes(tuple(Write(t, sql, _rows(after), _given(rows)) for t, sql, after, rows in writes), api)
        case ["fold", names]:
            return Fold(tuple(names))
        case ["restart"]:
            return Restart()
        case ["check"]:
            return Check()
        case _:
            raise ValueError(f"not a step: {data}")


def _rows(rows: list[list[Any]]) -> list[Row]:
    return [tuple(row) for row in rows]


def _given(rows: list[list[Any]] | None) -> list[Row] | None:
    return None if rows is None else _rows(rows)


# --- values of rows: what JSON has no word for is written as {"$kind": text} ---


def _encoded(value: Any) -> Any:
    match value:
        case Decimal():
            return {"$decimal": str(value)}
        case datetime():  # before date, of which it is one
            return {"$datetime": value.isoformat()}
        case date():
            return {"$date": value.isoformat()}
        case bytes():
            return {"$bytes": value.hex()}
        case float():
            return {"$float": value.hex()}
        case dict():
            return {"$dict": [[name, _encoded(each)] for name, each in value.items()]}
        case list() | tuple():
            return [_encoded(each) for each in value]
        case None | bool() | int() | str():
            return value
        case _:
            raise TypeError(f"a row holds a {type(value).__name__}")


_DECODERS: dict[str, Any] = {
    "$decimal": Decimal,
    "$datetime": datetime.fromisoformat,
    "$date": date.fromisoformat,
    "$bytes": bytes.fromhex,
    "$float": float.fromhex,
    "$dict": lambda pairs: {name: _decoded(each) for name, each in pairs},
}


def _decoded(value: Any) -> Any:
    match value:
        case dict():
            ((kind, inner),) = value.items()
            return _DECODERS[kind](inner)
        case list():
            return [_decoded(each) for each in value]
        case _:
            return value
