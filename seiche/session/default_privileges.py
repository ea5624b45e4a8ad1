"""ALTER DEFAULT PRIVILEGES: what is granted on objects and schemas when they are made.

Each user has defaults of its own, for what it makes from now on; what exists stays as it is. A REVOKE that names no
schema takes them back in every schema.
"""

from __future__ import annotations

from dataclasses import replace

from seiche.catalog import access
from seiche.catalog.catalog import Catalog
from seiche.catalog.objects import PUBLIC, PUBLIC_NAME, DefaultGrant, ObjectKind, Privilege, User
from seiche.errors import InvalidDefinition
from seiche.model import ObjectId
from seiche.sql import statements as ast


def with_defaults(catalog: Catalog, statement: ast.AlterDefaultPrivileges, speaker: User) -> Catalog:
    """The catalog after the statement."""
    kind = None if statement.kind is ast.ObjectKind.SCHEMA else ObjectKind[statement.kind.name]
    owners = [catalog.user(name).id for name in statement.owners] or [speaker.id]
    schemas: list[ObjectId | None] = [catalog.schema(name).id for name in statement.schemas]
    users = grantees(catalog, statement.users, option=statement.option and not statement.revokes)
    privileges = privileges_on(kind, statement.privileges)
    if not statement.revokes:
        return catalog.with_default_grants(
            *(
                _merged(catalog, DefaultGrant(owner, schema, kind, user, privilege, statement.option))
                for owner in owners
                for schema in schemas or [None]
                for user in users
                for privilege in privileges
            )
        )
    gone = [
        it
        for it in catalog.default_grants
        if it.owner in owners
        and it.kind is kind
        and it.user in users
        and it.privilege in privileges
        and (not schemas or it.schema in schemas)
    ]
    if statement.option:
        return catalog.with_default_grants(*(replace(it, grantable=False) for it in gone))
    return catalog.without_default_grants(*gone)


def grantees(catalog: Catalog, names: tuple[str, ...], *, option: bool) -> list[ObjectId]:
    """The users that a GRANT or REVOKE names, or everybody. A right to grant on is for users only."""
    if option and PUBLIC_NAME in names:
        raise InvalidDefinition(
            "grant options can only be granted to users", hint="Leave out WITH GRANT OPTION, or name the users."
        )
    return [PUBLIC if name == PUBLIC_NAME else catalog.user(name).id for name in names]


def privileges_on(kind: ObjectKind | None, words: tuple[str, ...]) -> tuple[Privilege, ...]:
    """The privileges named, or all that a kind (None: schemas) takes. InvalidDefinition for one that it does not."""
    known = access.privileges_of_kind(kind)
    chosen = tuple(Privilege(word.upper()) for word in words) or known
    for privilege in chosen:
        if privilege not in known:
            raise InvalidDefinition(
                f"privilege {privilege.value} does not apply to a {kind.value if kind is not None else 'schema'}",
                hint="It takes " + ", ".join(each.value for each in known) + ".",
            )
    return chosen


def _merged(catalog: Catalog, grant: DefaultGrant) -> DefaultGrant:
    """A second GRANT never takes the right to grant on away."""
    kept = any(it.key == grant.key and it.grantable for it in catalog.default_grants)
    return replace(grant, grantable=grant.grantable or kept)
