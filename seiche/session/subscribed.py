"""What a subscription is: how long it keeps its relation's changes, and the text that defines it.

A subscription stores nothing. Its relation's segments are the change log; the subscription keeps housekeeping from
letting go of those that are folded already. What it retains follows from its definition and the clock alone, so that a
restart has nothing to recover.
"""

from __future__ import annotations

from dataclasses import replace

from seiche.catalog.catalog import Catalog
from seiche.catalog.objects import DEFAULT_SCHEMA, CatalogObject, ObjectKind
from seiche.errors import InvalidParameter, InvariantError
from seiche.model import EPOCH_SHIFT, Epoch
from seiche.sql import statements as ast
from seiche.sql.literals import MICROS_PER_DAY, parse_interval
from seiche.sql.parse import parse

RETENTION = "retention"
TIMEOUT = "timeout"
_DAYS_PER_MONTH = 30


def duration_ms(text: str, what: str) -> int:
    """An interval of the user as milliseconds; a month has 30 days."""
    months, days, micros = parse_interval(text)
    total = ((months * _DAYS_PER_MONTH + days) * MICROS_PER_DAY + micros) // 1000
    if total < 0:
        raise InvalidParameter(f"{what} must not be negative", detail=f'It was given as "{text}".')
    return int(total)


def timeout_ms(options: ast.Options) -> int | None:
    """How long a FETCH waits for rows; None: not at all."""
    for name, _ in options:
        if name != TIMEOUT:
            raise InvalidParameter(f'unknown option "{name}" of FETCH', hint=f"{TIMEOUT} is known.")
    return duration_ms(dict(options)[TIMEOUT], TIMEOUT) if options else None


def retained_since(subscription: CatalogObject, now_ms: int) -> Epoch:
    """The subscription has every change of the epochs after this one."""
    properties = subscription.properties
    return Epoch(max(properties["since_epoch"], (now_ms - properties["retention_ms"]) << EPOCH_SHIFT))


def log_since(catalog: Catalog, relation: int, now_ms: int) -> Epoch | None:
    """Some subscription to the relation needs every change of the epochs after this one; None when there is none."""
    epochs = [
        retained_since(item, now_ms)
        for item in catalog.by_id.values()
        if item.kind is ObjectKind.SUBSCRIPTION and relation in item.dependencies
    ]
    return min(epochs, default=None)


# --- definitions ---------------------------------------------------------------------------------------


def definition(statement: ast.CreateSubscription) -> str:
    options = ", ".join(f"{name} = '{_quoted(value)}'" for name, value in statement.options)
    return f"CREATE SUBSCRIPTION {statement.name} FROM {statement.source} WITH ({options})"


def _quoted(value: str) -> str:
    return value.replace("'", "''")


def defined(item: CatalogObject) -> ast.CreateSubscription:
    (parsed,) = parse(item.definition)
    if not isinstance(parsed.statement, ast.CreateSubscription):
        raise InvariantError(f"{item} is not defined by CREATE SUBSCRIPTION")
    return parsed.statement


def with_source_renamed(item: CatalogObject, new_name: str) -> CatalogObject:
    """The subscription after its relation got another name."""
    known = defined(item)
    source = ast.ObjectName((*known.source.parts[:-1], new_name))
    return replace(item, definition=definition(replace(known, source=source)))


def with_source(item: CatalogObject, schema: str, name: str) -> CatalogObject:
    """The subscription after its relation went to another schema."""
    return replace(item, definition=definition(replace(defined(item), source=ast.ObjectName((schema, name)))))


def with_name(item: CatalogObject, schema: str, name: str) -> CatalogObject:
    """The subscription under another name, perhaps in another schema."""
    parts = (name,) if schema == DEFAULT_SCHEMA else (schema, name)
    changed = replace(defined(item), name=ast.ObjectName(parts))
    return replace(item, schema=schema, name=name, definition=definition(changed))
