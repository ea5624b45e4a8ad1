"""What CREATE SINK … WITH (…) may say, read and checked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from seiche.catalog.objects import CONNECTOR, DECOUPLED, SINK_RATE_LIMIT
from seiche.errors import FeatureNotSupported, InvalidDefinition, UndefinedColumn, nearest
from seiche.model import RelationSchema
from seiche.session.view_options import ORDER, RATE_LIMIT, SERVERLESS
from seiche.sql.statements import Options
from seiche.stream.backfill.rate_limit import rate_of

TYPE, FORCED, IGNORE_DELETE = "type", "force_append_only", "ignore_delete"
KEY, SNAPSHOT = "primary_key", "snapshot"
COMPACTED = "force_compaction"  # asks for one change of a key in an epoch, which is so whether asked for or not
_KNOWN = (CONNECTOR, TYPE, FORCED, IGNORE_DELETE, KEY, SNAPSHOT, COMPACTED)
_SHARED = (RATE_LIMIT, ORDER, SERVERLESS)  # with materialized views
_BLACKHOLE = "blackhole"
_APPEND_ONLY, _UPSERT = "append-only", "upsert"


@dataclass(frozen=True, slots=True)
class SinkOptions:
    """`drops_deletes`: rows that leave are not handed on. `rest` is what materialized views know too."""

    append_only: bool
    forced: bool
    drops_deletes: bool
    snapshot: bool
    key: tuple[str, ...]
    rest: Options

    def check(self, shape: RelationSchema) -> None:
        """Raises where the rows that the sink follows are not what its type asks for."""
        known = [column.name for column in shape.visible]
        for name in self.key:
            if name not in known:
                raise UndefinedColumn(
                    f'primary key column "{name}" of the sink does not exist', hint=nearest(name, known)
                )
        if self.append_only and not self.forced and not shape.append_only:
            raise InvalidDefinition(
                "the sink cannot be append-only: rows of its query may change and leave",
                detail="The sink of append-only format cannot be created on a query that is not append-only.",
                hint=f"Write {FORCED} = 'true' to hand on nothing but rows that appear.",
            )


def read_sink_options(options: Options, *, into_table: bool) -> SinkOptions:
    given: dict[str, str] = {}
    for name, value in options:
        if name in given:
            raise InvalidDefinition(f'option "{name}" is given twice', detail=f"Duplicated option: {name}.")
        given[name] = value
    _check_connector(given.get(CONNECTOR), into_table=into_table)
    for name in given:
        if name not in (*_KNOWN, *_SHARED):
            raise FeatureNotSupported(
                f'option "{name}" is not supported',
                detail="There are unexpected options in WITH clause.",
                hint=nearest(name, _KNOWN),
            )
    type_ = given.get(TYPE, _UPSERT)
    if type_ not in (_APPEND_ONLY, _UPSERT):
        raise InvalidDefinition(f"type of a sink must be '{_APPEND_ONLY}' or '{_UPSERT}', not '{type_}'")
    forced = _truth(given, FORCED)
    _truth(given, COMPACTED)
    return SinkOptions(
        type_ == _APPEND_ONLY,
        forced,
        type_ == _APPEND_ONLY or forced or _truth(given, IGNORE_DELETE),
        _truth(given, SNAPSHOT, default=True),
        tuple(part.strip() for part in given.get(KEY, "").split(",") if part.strip()),
        tuple((name, value) for name, value in options if name in _SHARED),
    )


def handing_on(setting: Callable[[str], str]) -> dict[str, Any]:
    """What is stored with a new sink, of the session's variables."""
    rate = rate_of(setting(SINK_RATE_LIMIT), where=SINK_RATE_LIMIT)
    decoupled = {DECOUPLED: setting("sink_decouple").lower() not in ("false", "off")}
    return decoupled if rate is None else {**decoupled, SINK_RATE_LIMIT: rate}


def explained_options(options: Options) -> Options:
    """The options that a sink's plan depends on, as those of one that hands its rows to nobody."""
    kept = (TYPE, FORCED, IGNORE_DELETE, KEY, *_SHARED)
    return ((CONNECTOR, _BLACKHOLE), *((name, value) for name, value in options if name in kept))


def _check_connector(connector: str | None, *, into_table: bool) -> None:
    if into_table:
        if connector is not None:
            raise InvalidDefinition("a sink into a table has no connector", hint=f"Leave {CONNECTOR} out.")
        return
    if connector is None:
        raise InvalidDefinition(
            "a sink needs a connector or a table",
            detail="missing WITH clause",
            hint=f"Write INTO and a table, or WITH ({CONNECTOR} = '{_BLACKHOLE}').",
        )
    if connector != _BLACKHOLE:
        raise FeatureNotSupported(
            f"unsupported sink type {connector}",
            detail=f'Connector "{connector}" is not offered.',
            hint=f"The connector '{_BLACKHOLE}' is, and CREATE SINK … INTO a table.",
        )


def _truth(given: dict[str, str], name: str, *, default: bool = False) -> bool:
    value = given.get(name)
    if value is None:
        return default
    if value.lower() not in ("true", "false"):
        raise InvalidDefinition(f"{name} must be 'true' or 'false', not '{value}'")
    return value.lower() == "true"
