"""What the files run against: a database that gives conversations, and can be brought back to how it was.

Two kinds: an engine in this process (here), and a server behind PostgreSQL's wire protocol (`seiche.cli.slt.wire`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from seiche.catalog.objects import CatalogObject, ObjectKind
from seiche.cli.display import StatementResult
from seiche.cli.slt.answers import Answered, Refused
from seiche.errors import InvariantError, SeicheError, SurroundingsError
from seiche.sql.text import format_value

SEICHE_LABEL = "seiche"


class Connection(Protocol):
    """One conversation, with variables of its own."""

    def run(self, sql: str) -> Answered | Refused: ...

    def close(self) -> None: ...


class Target(Protocol):
    @property
    def labels(self) -> frozenset[str]:
        """What `onlyif` and `skipif` may name."""
        ...

    def connect(self) -> Connection: ...

    def inventory(self) -> frozenset[Thing]:
        """Everything that a file could have created."""
        ...

    def drop(self, things: Iterable[Thing]) -> None:
        """Removes those, with whatever hangs on them."""
        ...


@dataclass(frozen=True, slots=True, order=True)
class Thing:
    """Something that DROP removes: its kind in DROP's words, and its name, quoted."""

    kind: str
    name: str


# What comes first takes most of the rest along. A schema has to be empty, and a user owns nothing by then.
_DROP_ORDER = ("SINK", "SUBSCRIPTION", "TABLE", "SOURCE", "MATERIALIZED VIEW", "VIEW", "INDEX", "AGGREGATE", "FUNCTION")
_LAST = ("SCHEMA", "DATABASE", "USER")
_BARE = frozenset({"DATABASE", "USER"})  # DROP takes one name of these, and no CASCADE


def by_kind(things: Iterable[Thing]) -> list[tuple[str, list[str]]]:
    """Names to drop, kind by kind, in an order that works."""
    found: dict[str, list[str]] = {}
    for thing in sorted(things):
        found.setdefault(thing.kind, []).append(thing.name)
    others = sorted(set(found) - {*_DROP_ORDER, *_LAST})
    return [(kind, found[kind]) for kind in (*_DROP_ORDER, *others, *_LAST) if kind in found]


def drops(kind: str, names: Sequence[str]) -> list[str]:
    """What follows DROP and the kind in the statements that remove these."""
    if kind in _BARE:
        return list(names)
    return [f"{', '.join(names)} CASCADE"] if names else []


def drop_all(things: Iterable[Thing], run: Callable[[str], Refused | None]) -> None:
    """Drops what is there of them. What something in another database still reads is dropped after that."""
    waiting = [f"DROP {kind} IF EXISTS {words}" for kind, names in by_kind(things) for words in drops(kind, names)]
    while waiting:
        tried, refusals = waiting, [(statement, run(statement)) for statement in waiting]
        waiting = [statement for statement, refused in refusals if refused is not None]
        if len(waiting) == len(tried):
            refused = refusals[0][1]
            assert refused is not None
            raise SurroundingsError(f"what a file left behind stays: {refused.message}", detail=waiting[0])


def quoted(*parts: str) -> str:
    return ".".join('"' + part.replace('"', '""') + '"' for part in parts)


def refusal(error: SeicheError) -> Refused:
    return Refused(error.message, error.sqlstate, error.detail, error.hint)


# --- an engine in this process ---------------------------------------------------------------------------


class EngineTarget:
    """An open engine. It stays the caller's to close."""

    labels = frozenset({SEICHE_LABEL})

    def __init__(self, engine: Any) -> None:
        self._engine = engine

    def connect(self) -> EngineConnection:
        return EngineConnection(self._engine.session())

    def inventory(self) -> frozenset[Thing]:
        catalog = self._engine.database.catalog
        found = {
            Thing("AGGREGATE" if item.properties.get("aggregate") else item.kind.sql, _named(item))
            for item in catalog.at_home()
            if item.kind is not ObjectKind.INTERNAL
        }
        found |= {Thing("SCHEMA", quoted(schema.name)) for schema in catalog.home_schemas}
        found |= {Thing("DATABASE", quoted(each.name)) for each in catalog.databases}
        return frozenset(found | {Thing("USER", quoted(user.name)) for user in catalog.users})

    def drop(self, things: Iterable[Thing]) -> None:
        connection = self.connect()

        def run(statement: str) -> Refused | None:
            outcome = connection.run(statement)
            return outcome if isinstance(outcome, Refused) else None

        drop_all(things, run)


def _named(item: CatalogObject) -> str:
    types = f"({', '.join(map(str, item.parameter_types))})" if item.kind is ObjectKind.FUNCTION else ""
    return quoted(item.schema, item.name) + types


class EngineConnection:
    def __init__(self, session: Any) -> None:
        self._session = session

    def run(self, sql: str) -> Answered | Refused:
        try:
            results: Sequence[StatementResult] = self._session.execute(sql)
        except InvariantError:
            raise  # a broken promise is never what a file expects
        except SeicheError as error:
            return refusal(error)
        return answered(results, self._session.variables.get("timezone")) if results else Answered()

    def close(self) -> None:
        self._session.cancel()


def answered(results: Sequence[StatementResult], timezone: str) -> Answered:
    """The last of several results, as text."""
    result = results[-1]
    count = result.tag.split()[-1]
    touched = int(count) if count.isdecimal() else None
    if result.columns is None or result.rows is None:
        return Answered(None, touched)
    types = [column.type for column in result.columns]
    rows = tuple(
        tuple(
            None if value is None else format_value(value, type_, timezone)
            for value, type_ in zip(row, types, strict=True)
        )
        for row in result.rows
    )
    return Answered(rows, touched)
