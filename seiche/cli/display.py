"""What the shell prints: results as psql aligns them, errors as psql words them.

Pure functions from values to text; nothing here writes to a stream.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from seiche.errors import SeicheError
from seiche.sql.text import format_value, render_table
from seiche.types import SqlType


class OutputColumn(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def type(self) -> SqlType: ...


class StatementResult(Protocol):
    """What the engine answers to one statement. `columns` and `rows` are None where it returns no rows."""

    @property
    def tag(self) -> str: ...
    @property
    def columns(self) -> Sequence[OutputColumn] | None: ...
    @property
    def rows(self) -> Sequence[tuple[Any, ...]] | None: ...
    @property
    def notices(self) -> Sequence[str]: ...
    @property
    def seconds(self) -> float: ...


# Statements that report a count even when they also return rows.
_COUNTED = ("INSERT", "UPDATE", "DELETE")


def result_text(result: StatementResult, *, expanded: bool = False) -> str:
    """A result as the shell shows it, without its notices and without a final newline."""
    if result.columns is None or result.rows is None:
        return result.tag
    shown = _expanded(result.columns, result.rows) if expanded else table_text(result.columns, result.rows)
    if result.tag.startswith(_COUNTED):
        return f"{shown}\n{result.tag}"
    return shown


def table_text(columns: Sequence[OutputColumn], rows: Sequence[tuple[Any, ...]]) -> str:
    return render_table([(c.name, c.type) for c in columns], rows).rstrip("\n")


def _expanded(columns: Sequence[OutputColumn], rows: Sequence[tuple[Any, ...]]) -> str:
    """One line a value: for rows wider than the screen."""
    if not rows:
        return "(0 rows)"
    width = max((len(c.name) for c in columns), default=0)
    lines = []
    for number, row in enumerate(rows, start=1):
        lines.append(f"-[ RECORD {number} ]".ljust(width + 3, "-"))
        for column, value in zip(columns, row, strict=True):
            text = "" if value is None else format_value(value, column.type)
            first, *rest = text.split("\n")
            lines.append(f"{column.name:<{width}} | {first}".rstrip())
            lines.extend(f"{'':<{width}} | {line}".rstrip() for line in rest)
    return "\n".join(lines)


def error_text(error: SeicheError, statement: str = "") -> str:
    """An error in PostgreSQL's look. `statement` is what `error.position` counts in."""
    lines = [f"ERROR:  {error.message}"]
    if error.position is not None and 0 < error.position <= len(statement) + 1:
        lines += _marked(statement, error.position)
    if error.detail:
        lines.append(f"DETAIL:  {error.detail}")
    if error.hint:
        lines.append(f"HINT:  {error.hint}")
    return "\n".join(lines)


_MARKED_WIDTH = 100


def _marked(statement: str, position: int) -> list[str]:
    """The line of the statement that holds the position, cut to a readable width, and a caret below it."""
    before = statement[: position - 1]
    number = before.count("\n") + 1
    start = before.rfind("\n") + 1
    end = statement.find("\n", start)
    line = statement[start : end if end >= 0 else len(statement)]
    column = position - 1 - start
    cut = max(0, column - _MARKED_WIDTH * 2 // 3)
    shown = line[cut : cut + _MARKED_WIDTH]
    ellipsis = "..." if cut else ""
    if cut + _MARKED_WIDTH < len(line):
        shown += "..."
    head = f"LINE {number}: {ellipsis}"
    # A tab stays a tab below itself, so that the caret lands under its character.
    blank = "".join("\t" if c == "\t" else " " for c in line[cut:column])
    return [head + shown.rstrip(), " " * len(head) + blank + "^"]


def timing_text(seconds: float) -> str:
    if seconds < 1:
        return f"Time: {seconds * 1000:.3f} ms"
    minutes, rest = divmod(seconds, 60)
    if minutes:
        return f"Time: {seconds * 1000:.3f} ms ({int(minutes):02}:{rest:06.3f})"
    return f"Time: {seconds * 1000:.3f} ms ({seconds:.1f} s)"
