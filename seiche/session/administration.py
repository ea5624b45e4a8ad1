"""Users, grants, owners, comments and databases: definitions that touch neither rows nor jobs.

Each statement makes a new catalog, which becomes true at a barrier. The passwords that CREATE and ALTER USER bring are
turned into verifiers before anything else sees them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass, replace
from typing import Any

from seiche.catalog import access
from seiche.catalog.access import Target
from seiche.catalog.catalog import Catalog
from seiche.catalog.objects import (
    MAINTAINER,
    PUBLIC_NAME,
    CatalogObject,
    Grant,
    ObjectKind,
    Privilege,
    Schema,
    User,
)
from seiche.catalog.objects import Database as DatabaseEntry
from seiche.epoch.barrier import Barrier
from seiche.epoch.checkpoint import Effect
from seiche.epoch.graph import Graph
from seiche.errors import (
    DependentObjects,
    FeatureNotSupported,
    InsufficientPrivilege,
    InvalidDefinition,
    UndefinedColumn,
    nearest,
)
from seiche.model import ObjectId
from seiche.session.database import Database
from seiche.session.databases import schema_of
from seiche.session.default_privileges import grantees, privileges_on, with_defaults
from seiche.session.passwords import is_hashed_with_md5, verifier_of
from seiche.session.result import Result
from seiche.session.variables import Variables
from seiche.sql import statements as ast

_KINDS = {
    ast.ObjectKind.TABLE: ObjectKind.TABLE,
    ast.ObjectKind.VIEW: ObjectKind.VIEW,
    ast.ObjectKind.MATERIALIZED_VIEW: ObjectKind.MATERIALIZED_VIEW,
    ast.ObjectKind.INDEX: ObjectKind.INDEX,
    ast.ObjectKind.SOURCE: ObjectKind.SOURCE,
    ast.ObjectKind.SINK: ObjectKind.SINK,
    ast.ObjectKind.FUNCTION: ObjectKind.FUNCTION,
    ast.ObjectKind.SUBSCRIPTION: ObjectKind.SUBSCRIPTION,
    ast.ObjectKind.SECRET: ObjectKind.SECRET,
}
Administered = (
    ast.CreateUser
    | ast.AlterUser
    | ast.Grant
    | ast.Revoke
    | ast.AlterDefaultPrivileges
    | ast.AlterOwner
    | ast.CommentOn
    | ast.CreateDatabase
    | ast.Drop
)
_RELATIONS = (ObjectKind.TABLE, ObjectKind.VIEW, ObjectKind.MATERIALIZED_VIEW, ObjectKind.SOURCE)


@dataclass(frozen=True, slots=True)
class _Change:
    """A command that makes a new catalog, given as seen from the database `home`, and leaves jobs alone."""

    database: Database
    home: str
    change: Callable[[Catalog], Catalog]

    def apply(self, graph: Graph, barrier: Barrier) -> Effect:
        new = self.change(self.database.catalog_at(barrier).seen_from(self.home))
        part, publish = self.database.change_catalog(barrier, new)
        return Effect(graph, part, None, publish)


class Administration:
    """These statements for one session."""

    def __init__(
        self, database: Database, user: User, variables: Variables, wait: Callable[[Future[Any]], Any]
    ) -> None:
        self._database = database
        self._user = user
        self._variables = variables
        self._wait = wait

    def run(self, statement: Administered, note: Callable[[str], None]) -> Result:
        match statement:
            case ast.CreateUser():
                self.create_user(statement)
                _warn_of_md5(statement.password, note)
                return Result("CREATE_USER")
            case ast.AlterUser():
                self.alter_user(statement)
                _warn_of_md5(statement.password, note)
                return Result("UPDATE_USER")
            case ast.Grant():
                self.grant(statement)
                return Result("GRANT_PRIVILEGE")
            case ast.Revoke():
                self.revoke(statement)
                return Result("REVOKE_PRIVILEGE")
            case ast.AlterDefaultPrivileges():
                self._checked_change(lambda catalog: with_defaults(catalog, statement, self._user))
                return Result("ALTER_DEFAULT_PRIVILEGES")
            case ast.AlterOwner():
                self.alter_owner(statement)
                return Result("ALTER_" + statement.kind.name)
            case ast.CommentOn():
                self.comment(statement)
                return Result("COMMENT")
            case ast.CreateDatabase():
                if (notice := self.create_database(statement)) is not None:
                    note(notice)
                return Result("CREATE_DATABASE")
            case ast.Drop():
                for notice in self.drop_users(statement):
                    note(notice)
                return Result("DROP_USER")

    # --- users ---------------------------------------------------------------------------------------

    def create_user(self, statement: ast.CreateUser) -> None:
        _refuse_reserved(statement.name)
        self._database.catalog.with_user(User(ObjectId(0), statement.name))  # a name that is taken is told at once
        verifier = verifier_of(statement.password) if statement.password is not None else None
        user = _with_options(User(self._new_id(), statement.name, verifier=verifier), statement.options)
        self._change(lambda catalog: catalog.with_user(user))

    def alter_user(self, statement: ast.AlterUser) -> None:
        verifier = verifier_of(statement.password) if statement.password is not None else None

        def change(catalog: Catalog) -> Catalog:
            user = _with_options(catalog.user(statement.name), statement.options)
            if statement.sets_password:
                user = replace(user, verifier=verifier)
            if statement.new_name is None:
                return catalog.with_user(user)
            return _renamed_user(catalog, user, statement.new_name)

        _refuse_maintainer(statement.name)
        if statement.new_name is not None:
            _refuse_reserved(statement.new_name)
        if statement.new_name is not None and statement.name == self._user.name:
            raise FeatureNotSupported("session user cannot be renamed", hint="Rename it as another user.")
        self._change(change)

    def drop_users(self, statement: ast.Drop) -> list[str]:
        """Drops users; notices for those that were not there."""
        notices = []
        for name in (each.name for each in statement.names):
            if statement.if_exists and all(user.name != name for user in self._database.catalog.users):
                notices.append(f'user "{name}" does not exist, skipping')
                continue
            _refuse_maintainer(name)
            if name == self._user.name:
                raise DependentObjects("current user cannot be dropped", hint="Drop it as another user.")
            self._change(lambda catalog, name=name: catalog.without_user(name))  # type: ignore[misc]
        return notices

    # --- grants --------------------------------------------------------------------------------------

    def _check_grantor(self, name: str | None) -> None:
        """Who is said to grant must be there, and be oneself unless one may do everything. It is not kept."""
        if name is None:
            return
        grantor = self._database.catalog.user(name)
        if grantor.id != self._user.id and not self._user.superuser:
            raise InsufficientPrivilege("grantor must be current user", hint="Leave out GRANTED BY.")

    def grant(self, statement: ast.Grant) -> None:
        self._check_grantor(statement.granted_by)

        def change(catalog: Catalog) -> Catalog:
            users = grantees(catalog, statement.users, option=statement.grant_option)
            _check_kind(statement)
            held = {grant.key: grant for grant in catalog.grants}
            new = []
            for target in self._targets(catalog, statement.target):
                for privilege in _chosen(statement.privileges, target):
                    self._refuse_ungrantable(catalog, privilege, target)
                    for user in users:
                        grant = Grant(user, target.id, privilege, statement.grant_option)
                        before = held.get(grant.key)
                        kept = before is not None and before.grantable
                        new.append(replace(grant, grantable=grant.grantable or kept))
            return catalog.with_grants(*new)

        self._checked_change(change)

    def revoke(self, statement: ast.Revoke) -> None:
        self._check_grantor(statement.granted_by)

        def change(catalog: Catalog) -> Catalog:
            users = grantees(catalog, statement.users, option=False)
            _check_kind(statement)
            held = {grant.key: grant for grant in catalog.grants}
            gone: list[Grant] = []
            for target in self._targets(catalog, statement.target):
                for privilege in _chosen(statement.privileges, target):
                    self._refuse_ungrantable(catalog, privilege, target)
                    keys = [(user, target.id, privilege.value) for user in users]
                    gone += [held[key] for key in keys if key in held]
            if statement.option_only:
                return catalog.with_grants(*(replace(grant, grantable=False) for grant in gone))
            return catalog.without_grants(*gone)

        self._checked_change(change)

    def _refuse_ungrantable(self, catalog: Catalog, privilege: Privilege, target: Target) -> None:
        if privilege not in access.privileges_of(target):
            raise InvalidDefinition(
                f"privilege {privilege.value} does not apply to {described(target)}",
                hint="It takes " + ", ".join(each.value for each in access.privileges_of(target)) + ".",
            )
        if not access.may_grant(catalog, self._user, privilege, target):
            raise InsufficientPrivilege(
                f"permission denied for {described(target)}",
                detail=f"{privilege.value} is granted by its owner, or by who has it WITH GRANT OPTION.",
                hint=f'Its owner is "{target.owner}".',
            )

    def _targets(self, catalog: Catalog, target: ast.GrantTarget) -> Iterator[Target]:
        for name in target.names:
            if target.whole_schemas:
                schema = catalog.schema(name.name, database=name.schema)
                kind = _KINDS[target.kind]
                inside = (it for it in catalog.objects(kind) if it.database == schema.database)
                yield from (it for it in inside if it.schema == schema.name)
            elif target.kind is ast.ObjectKind.SCHEMA:
                yield catalog.schema(schema_of(name, catalog.home))
            elif target.kind is ast.ObjectKind.DATABASE:
                yield catalog.database(name.name)
            else:
                kinds = (_known(target.kind),) if target.explicit else _RELATIONS
                if target.explicit and kinds == (ObjectKind.TABLE,):
                    kinds = _RELATIONS  # as in PostgreSQL, where a view is granted ON TABLE too
                path = self._variables.search_path
                yield catalog.find(name.parts, search_path=path, kinds=kinds, parameters=name.parameters)

    # --- owners and comments -------------------------------------------------------------------------

    def alter_owner(self, statement: ast.AlterOwner) -> None:
        def change(catalog: Catalog) -> Catalog:
            owner = catalog.user(statement.owner).name
            match self.find(catalog, statement.kind, statement.name):
                case Schema() as schema:
                    return catalog.with_schema(replace(schema, owner=owner))
                case DatabaseEntry() as database:
                    return catalog.with_database(replace(database, owner=owner))
                case CatalogObject() as item:
                    own = [it for it in catalog.objects(ObjectKind.INDEX) if item.id in it.dependencies]
                    inside = [child for it in (item, *own) for child in catalog.children(it.id)]
                    return catalog.with_objects(*(replace(it, owner=owner) for it in (item, *own, *inside)))

        change(self._catalog)
        self._change(change)

    def comment(self, statement: ast.CommentOn) -> None:
        def change(catalog: Catalog) -> Catalog:
            if statement.column is None:
                return catalog.with_comment(self._commented(catalog, statement).id, None, statement.comment)
            item = catalog.find(statement.name.parts, search_path=self._variables.search_path)
            names = [column.name for column in item.columns]
            hidden = [column.name for column in item.relation.columns if column.hidden] if item.relation else []
            if statement.column not in (*names, *hidden):
                raise UndefinedColumn(
                    f'column "{statement.column}" of relation "{item.name}" does not exist',
                    hint=nearest(statement.column, names),
                )
            return catalog.with_comment(item.id, statement.column, statement.comment)

        change(self._catalog)
        self._change(change)

    def _commented(self, catalog: Catalog, statement: ast.CommentOn) -> Target:
        return self.find(catalog, statement.kind, statement.name)

    def find(self, catalog: Catalog, kind: ast.ObjectKind, name: ast.ObjectName) -> Target:
        """What a statement about an object of a kind names."""
        match kind:
            case ast.ObjectKind.SCHEMA:
                return catalog.schema(schema_of(name, catalog.home))
            case ast.ObjectKind.DATABASE:
                return catalog.database(name.name)
            case _:
                found = _known(kind)
                path, types = self._variables.search_path, name.parameters
                return catalog.find(name.parts, search_path=path, kinds=(found,), action="ALTER", parameters=types)

    # --- databases -----------------------------------------------------------------------------------

    def create_database(self, statement: ast.CreateDatabase) -> str | None:
        """Creates a database with a schema `public`; a notice when it was there already."""
        name = statement.name
        if statement.if_not_exists and any(it.name == name for it in self._database.catalog.databases):
            return f'database "{name}" already exists, skipping'
        owner = statement.owner or self._user.name
        self._database.catalog.with_database(DatabaseEntry(ObjectId(0), name, owner))  # what is wrong is told at once
        database, schema = self._database.store.allocate_ids(2)

        def change(catalog: Catalog) -> Catalog:
            made = catalog.with_database(DatabaseEntry(ObjectId(database), name, owner))
            return made.with_schema(Schema(ObjectId(schema), name, "public", owner))

        self._change(change)
        return None

    # ------------------------------------------------------------------------------------------------

    @property
    def _catalog(self) -> Catalog:
        """What exists, seen from the session's database."""
        return self._database.catalog.seen_from(self._variables.database)

    def _new_id(self) -> ObjectId:
        (number,) = self._database.store.allocate_ids(1)
        return ObjectId(number)

    def _checked_change(self, change: Callable[[Catalog], Catalog]) -> None:
        change(self._catalog)  # what is wrong with it is told before any epoch
        self._change(change)

    def _change(self, change: Callable[[Catalog], Catalog]) -> None:
        self._wait(self._database.coordinator.command(_Change(self._database, self._variables.database, change)))


def described(target: Target) -> str:
    """The target as a sentence names it."""
    match target:
        case CatalogObject():
            return str(target)
        case Schema():
            return f'schema "{target.name}"'
        case DatabaseEntry():
            return f'database "{target.name}"'


def _known(kind: ast.ObjectKind) -> ObjectKind:
    if kind not in _KINDS:
        raise FeatureNotSupported(f"{kind.value.upper()} is not supported here")
    return _KINDS[kind]


def _chosen(words: tuple[str, ...], target: Target) -> tuple[Privilege, ...]:
    """The privileges named, or all that the target takes."""
    return tuple(Privilege(word.upper()) for word in words) or access.privileges_of(target)


def _check_kind(statement: ast.Grant | ast.Revoke) -> None:
    """What does not apply to a kind is told also where a schema has none of it."""
    if statement.target.whole_schemas:
        privileges_on(_KINDS[statement.target.kind], statement.privileges)


def _warn_of_md5(password: str | None, note: Callable[[str], None]) -> None:
    if password is not None and is_hashed_with_md5(password):
        note("a password hashed with MD5 lets nobody in: give the password itself, or a SCRAM verifier")


def _refuse_reserved(name: str) -> None:
    if name == PUBLIC_NAME:
        raise InvalidDefinition(f'user name "{name}" is reserved', hint="It stands for everybody in GRANT and REVOKE.")


def _refuse_maintainer(name: str) -> None:
    if name == MAINTAINER:
        raise InsufficientPrivilege(f'Permission denied: user "{name}" cannot be changed or dropped')


def _with_options(user: User, options: tuple[str, ...]) -> User:
    settings = {
        "superuser": ("superuser", True),
        "nosuperuser": ("superuser", False),
        "createdb": ("create_db", True),
        "nocreatedb": ("create_db", False),
        "createuser": ("create_user", True),
        "nocreateuser": ("create_user", False),
        "login": ("can_login", True),
        "nologin": ("can_login", False),
    }
    chosen: dict[str, Any] = dict(settings[option] for option in options if option in settings)
    return replace(user, **chosen)


def _renamed_user(catalog: Catalog, user: User, name: str) -> Catalog:
    """The catalog with another name for a user, in everything that the user owns too."""
    old = user.name
    changed = catalog.with_user(replace(user, name=name))
    return replace(
        changed,
        databases=tuple(replace(it, owner=name) if it.owner == old else it for it in changed.databases),
        schemas=tuple(replace(it, owner=name) if it.owner == old else it for it in changed.schemas),
        by_id={id: replace(it, owner=name) if it.owner == old else it for id, it in changed.by_id.items()},
    )
