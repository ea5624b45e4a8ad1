"""Who may do what: questions to the catalog's owners and grants.

A superuser may anything. The owner of an object may anything with it, and so may the owner of its schema or database
drop it. Everybody may use the schema `public` and connect to a database; all else has to be granted.
"""

from __future__ import annotations

from seiche.catalog.catalog import Catalog
from seiche.catalog.objects import (
    DEFAULT_SCHEMA,
    PUBLIC,
    CatalogObject,
    Database,
    Grant,
    ObjectKind,
    Privilege,
    Schema,
    User,
)

Target = CatalogObject | Schema | Database

_LETTERS = {
    Privilege.INSERT: "a",
    Privilege.SELECT: "r",
    Privilege.UPDATE: "w",
    Privilege.DELETE: "d",
    Privilege.EXECUTE: "X",
    Privilege.USAGE: "U",
    Privilege.CREATE: "C",
    Privilege.CONNECT: "c",
}
_READ = (Privilege.SELECT,)
_OF_KINDS = {
    ObjectKind.TABLE: (Privilege.SELECT, Privilege.INSERT, Privilege.UPDATE, Privilege.DELETE),
    ObjectKind.SOURCE: _READ,
    ObjectKind.VIEW: _READ,
    ObjectKind.MATERIALIZED_VIEW: _READ,
    ObjectKind.INDEX: _READ,
    ObjectKind.SINK: _READ,
    ObjectKind.SUBSCRIPTION: _READ,
    ObjectKind.INTERNAL: (),
    ObjectKind.FUNCTION: (Privilege.EXECUTE,),
    ObjectKind.SECRET: (Privilege.USAGE,),
}


def privileges_of(target: Target) -> tuple[Privilege, ...]:
    """What can be granted on it, in the order of PostgreSQL's documents."""
    match target:
        case CatalogObject():
            return privileges_of_kind(target.kind)
        case Schema():
            return privileges_of_kind(None)
        case Database():
            return Privilege.CONNECT, Privilege.CREATE


def privileges_of_kind(kind: ObjectKind | None) -> tuple[Privilege, ...]:
    """What can be granted on objects of a kind, or on schemas (None)."""
    return _OF_KINDS[kind] if kind is not None else (Privilege.USAGE, Privilege.CREATE)


def may(catalog: Catalog, user: User, privilege: Privilege, target: Target) -> bool:
    """Whether the user may do this with the target."""
    if user.superuser or target.owner == user.name:
        return True
    if privilege is Privilege.CONNECT:
        return True
    if privilege is Privilege.USAGE and isinstance(target, Schema) and target.name == DEFAULT_SCHEMA:
        return True
    return bool(_granted(catalog, user, privilege, target))


def may_grant(catalog: Catalog, user: User, privilege: Privilege, target: Target) -> bool:
    """Whether the user may allow it to others."""
    if user.superuser or target.owner == user.name:
        return True
    return any(grant.grantable for grant in _granted(catalog, user, privilege, target))


def owns(catalog: Catalog, user: User, target: Target) -> bool:
    """Whether the user may alter and drop the target."""
    if user.superuser or target.owner == user.name:
        return True
    match target:
        case CatalogObject():
            return catalog.schema(target.schema, database=target.database).owner == user.name
        case Schema():
            return catalog.database(target.database).owner == user.name
        case Database():
            return False


def sees(catalog: Catalog, user: User, item: CatalogObject) -> bool:
    """Whether SHOW and DESCRIBE tell the user of an object: who owns it, and who may do anything with it. What belongs
    to a relation, as indexes do, is seen with that, and everybody may call functions."""
    if item.kind is ObjectKind.FUNCTION:
        return True
    if owns(catalog, user, item) or any(may(catalog, user, each, item) for each in privileges_of(item)):
        return True
    if item.kind is ObjectKind.INDEX:
        return any(sees(catalog, user, catalog.get(each)) for each in item.dependencies)
    return item.parent is not None and sees(catalog, user, catalog.get(item.parent))


def access_list(catalog: Catalog, target: int, owner: str) -> list[str] | None:
    """Who may do what, in PostgreSQL's form `user=letters/grantor`; None where only the owner may anything."""
    names = {PUBLIC: "", **{it.id: it.name for it in catalog.users}}
    held: dict[str, list[Grant]] = {}
    for grant in catalog.grants:
        if grant.target == target:
            held.setdefault(names[grant.user], []).append(grant)
    if not held:
        return None
    order = list(_LETTERS)
    shown = []
    for user in sorted(held):
        grants = sorted(held[user], key=lambda it: order.index(it.privilege))
        letters = "".join(_LETTERS[it.privilege] + ("*" if it.grantable else "") for it in grants)
        shown.append(f"{user}={letters}/{owner}")
    return shown


def read_access(item: str) -> tuple[str, list[tuple[Privilege, bool]], str]:
    """An item of an access list taken apart: to whom (nobody's name for everybody), what and whether it may be granted
    on, and by whom."""
    held, _, grantor = item.rpartition("/")
    user, _, letters = held.rpartition("=")
    of = {letter: privilege for privilege, letter in _LETTERS.items()}
    granted = [(of[letter], letters[at + 1 : at + 2] == "*") for at, letter in enumerate(letters) if letter != "*"]
    return user, granted, grantor


def _granted(catalog: Catalog, user: User, privilege: Privilege, target: Target) -> list[Grant]:
    """What was granted to the user, and to everybody."""
    wanted = {(who, target.id, privilege.value) for who in (user.id, PUBLIC)}
    return [grant for grant in catalog.grants if grant.key in wanted]
