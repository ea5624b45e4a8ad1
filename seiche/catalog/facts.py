"""What system views show, as one value: nothing else is read for their rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from seiche.catalog.catalog import Catalog
from seiche.catalog.checkpoint import Event
from seiche.catalog.objects import DEFAULT_DATABASE, CatalogObject, ObjectKind
from seiche.model import Column, ObjectId
from seiche.types import SqlType

Rows = list[tuple[Any, ...]]


@dataclass(frozen=True, slots=True)
class SessionFact:
    """A session as others see it. `query` is what it runs, or ran last."""

    pid: int
    user: str
    application: str = ""
    client: str | None = None
    started_ms: int = 0
    query_started_ms: int | None = None
    active: bool = False
    query: str = ""
    database: str = DEFAULT_DATABASE


@dataclass(frozen=True, slots=True)
class BackfillFact:
    """How far the creation of a view has come."""

    job: int
    statement: str
    progress: str
    started_ms: int
    rate_limit: int | None = None
    inputs: Mapping[int, tuple[int, int]] = field(default_factory=dict)  # rows read, and of how many, by relation
    kind: str = "snapshot"


@dataclass(frozen=True, slots=True)
class Refreshed:
    """A view with a schedule: the epoch that it stands for, and how far that is behind."""

    id: ObjectId
    state: str
    committed_epoch: int
    lag_ms: int
    runs: int
    rows: int
    last_error: str | None


@dataclass(frozen=True, slots=True)
class Variable:
    """A session variable as `pg_settings` shows it."""

    name: str
    value: str
    default: str
    meaning: str


@dataclass(frozen=True, slots=True)
class Facts:
    """`settings` holds every system parameter with its present value; `sizes` and `counts` are bytes stored and rows of
    relations, by id, as their files tell."""

    catalog: Catalog
    settings: Mapping[str, str] = field(default_factory=dict)
    events: Sequence[Event] = ()
    sizes: Mapping[int, int] = field(default_factory=dict)
    counts: Mapping[int, int] = field(default_factory=dict)
    variables: tuple[Variable, ...] = ()
    sessions: tuple[SessionFact, ...] = ()
    backfills: tuple[BackfillFact, ...] = ()
    refreshes: tuple[Refreshed, ...] = ()
    refresh_history: Sequence[Mapping[str, Any]] = ()
    committed_epoch: int = 0
    cores: int = 1
    cluster_id: str = ""
    shown: Callable[[CatalogObject], str] = lambda item: item.definition  # the definition as SHOW CREATE has it

    @property
    def database(self) -> str:
        """Whose objects are shown: that of the session that asks."""
        return self.catalog.home


@dataclass(frozen=True, slots=True)
class SystemView:
    """A view of one of the system schemas. What a `lasting` one shows changes only with the catalog."""

    schema: str
    name: str
    columns: tuple[Column, ...]
    rows: Callable[[Facts], Rows]
    oid: int = 0
    lasting: bool = True


def columns(**types: SqlType) -> tuple[Column, ...]:
    return tuple(Column(name, type_) for name, type_ in types.items())


def moment(ms: int) -> datetime:
    return datetime.fromtimestamp(ms / 1000, UTC)


# Relations that a user sees; an internal one belongs to its view, a sink or a subscription has no rows to read.
VISIBLE = (ObjectKind.TABLE, ObjectKind.SOURCE, ObjectKind.MATERIALIZED_VIEW, ObjectKind.VIEW, ObjectKind.INDEX)
