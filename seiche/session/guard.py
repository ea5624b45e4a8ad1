"""Whether a user may run a statement, before it runs.

Reading and writing needs the privilege on each relation that the statement names, and USAGE of its schema. A view is
read with its owner's rights: what lies behind it is not asked for. Changing or dropping an object takes its owner,
making one takes CREATE on the schema, and some statements take a superuser. System views are open to all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, is_dataclass

from sqlglot import exp

from seiche.catalog import access
from seiche.catalog.access import Target
from seiche.catalog.catalog import Catalog
from seiche.catalog.objects import CatalogObject, ObjectKind, Privilege, User
from seiche.catalog.pg_catalog import SCHEMA as PG_CATALOG
from seiche.catalog.system_views import try_system_view
from seiche.catalog.temporary import is_temporary
from seiche.errors import InsufficientPrivilege
from seiche.session.administration import described
from seiche.session.names import CATALOG_KINDS
from seiche.sql import statements as ast
from seiche.sql.common_tables import is_common_table
from seiche.sql.secret_arguments import parts_of
from seiche.types import SqlType

_RELATIONS = tuple(
    kind for kind in ObjectKind if kind is not ObjectKind.INTERNAL and kind.namespace == ObjectKind.TABLE.namespace
)


class Guard:
    """Looks at statements of one user. What does not exist passes: running it will say so."""

    def __init__(self, catalog: Catalog, user: User, search_path: Sequence[str]) -> None:
        self._catalog = catalog
        self._user = user
        self._search_path = tuple(search_path)

    def check(self, statement: ast.Statement) -> None:
        """Raises InsufficientPrivilege."""
        if self._user.superuser:
            return
        match statement:
            case ast.Insert():
                met = statement.on_conflict
                self._write(
                    statement.table, Privilege.INSERT, reading=bool(statement.returning or (met and met.columns))
                )
                if met is not None and met.assignments:
                    self._write(statement.table, Privilege.UPDATE, reading=True)
                    for assignment in met.assignments:
                        self.check_reads(assignment.value.tree)
            case ast.Update():
                reading = statement.where is not None or bool(statement.returning)
                self._write(statement.table, Privilege.UPDATE, reading=reading)
                for assignment in statement.assignments:
                    self.check_reads(assignment.value.tree)
            case ast.Delete():
                reading = statement.where is not None or bool(statement.returning)
                self._write(statement.table, Privilege.DELETE, reading=reading)
            case ast.CreateTable(likes=likes) if likes:
                for like in likes:
                    self._read(like.table)
                if not statement.temporary:
                    self._create_in(statement.name)
            case ast.CreateTable(temporary=True) | ast.CreateTableAs(temporary=True) | ast.CreateView(temporary=True):
                pass  # everybody may have some
            case ast.CreateTable() | ast.CreateTableAs() | ast.CreateMaterializedView():
                self._create_in(statement.name)
            case ast.CreateSource():
                self._create_in(statement.rows.name)
            case ast.CreateSink():
                self._create_in(statement.name)
                if statement.into is not None:  # what it delivers is written in its owner's name
                    self._write(statement.into, Privilege.INSERT, reading=False)
                    self._write(statement.into, Privilege.DELETE, reading=False)
            case ast.CreateView():
                self._create_in(statement.name)
                if statement.or_replace:
                    self._own(statement.name)
            case ast.CreateFunction():
                self._create_in(statement.name)
                # Its body runs with the rights of the server's process.
                self._demand(statement.language != "python", "must be superuser to create a function in Python")
                if statement.or_replace:
                    types = tuple(each.type for each in statement.parameters)
                    self._own(ast.ObjectName(statement.name.parts, types), ast.ObjectKind.FUNCTION)
            case ast.CreateSecret():
                self._create_in(statement.name)
            case ast.AlterSecret():
                self._own(statement.name, ast.ObjectKind.SECRET)
            case ast.CreateSubscription():
                self._create_in(statement.name)
                self._read(statement.source)
            case ast.DeclareSubscriptionCursor():
                self._read(statement.subscription)
            case ast.Prepare():
                self.check(statement.statement)
            case ast.CreateIndex():
                self._own(statement.table)
            case ast.CreateSchema():
                self._need(Privilege.CREATE, self._catalog.database(self._catalog.home))
            case ast.CreateDatabase():
                self._demand(self._user.create_db, "permission denied to create database")
            case ast.CreateUser():
                self._demand(self._user.create_user, "permission denied to create user")
                self._demand("superuser" not in statement.options, "must be superuser to create superusers")
            case ast.AlterUser():
                self._alter_user(statement)
            case ast.AlterDefaultPrivileges():
                others = set(statement.owners) - {self._user.name}
                self._demand(not others, "must be superuser to change default privileges of others")
            case ast.Drop():
                self._drop(statement)
            case ast.Rename() | ast.CommentOn():
                self._own(statement.name, statement.kind)
            case ast.AlterOwner():
                self._own(statement.name, statement.kind)
                self._demand(
                    statement.owner == self._user.name,
                    f'must be superuser to give something to user "{statement.owner}"',
                )
            case ast.AlterColumns():
                self._own(statement.table)
            case ast.AlterRelation():
                self._own(statement.name, statement.kind)
                if isinstance(statement.action, ast.SwapWith):
                    self._own(statement.action.other, statement.kind)
                if isinstance(statement.action, ast.SetSchema):
                    self._create_in(ast.ObjectName((statement.action.schema, statement.name.name)))
            case ast.RefreshView():
                self._own(statement.name)
            case ast.Vacuum():
                for each in statement.relations:
                    self._own(each.name)
            case ast.AlterSystemSet() | ast.Recover() | ast.Pause() | ast.Resume():
                self._demand(False, "must be superuser to change the system")
            case ast.CancelJobs():
                for number in statement.ids:
                    item = self._catalog.by_id.get(number)  # type: ignore[call-overload]
                    if item is not None:
                        self._refuse_others(item)
            case ast.Explain():
                self.check(statement.statement)
            case ast.Describe() | ast.ShowColumns() | ast.ShowCreate():
                self._see(statement.name)
            case ast.ShowObjects(ast.Listing.INDEXES, ast.ObjectName() as relation):
                self._see(relation)
            case _:
                pass  # the rest is open to all, but for what its queries read
        if is_dataclass(statement):
            for part in fields(statement):
                value = getattr(statement, part.name)
                if isinstance(value, ast.SqlQuery | ast.SqlExpression):
                    self.check_reads(value.tree)

    def check_reads(self, tree: exp.Expr) -> None:
        """Every relation of a query must be readable."""
        if self._user.superuser:
            return
        for table in tree.find_all(exp.Table):
            if not isinstance(table.this, exp.Identifier) or is_common_table(table):
                continue
            parts = tuple(part for part in (table.catalog, table.db, table.name) if part)
            item = self._found(parts)
            if item is not None:
                self._use(item)
                self._need(Privilege.SELECT, item)

        for call in tree.find_all(exp.Anonymous):
            named = parts_of(call)
            secret = self._named(named, ObjectKind.SECRET) if named is not None else None
            if secret is not None:
                self._use(secret)
                self._need(Privilege.USAGE, secret)

    def check_write(self, table: ast.ObjectName, privilege: Privilege) -> None:
        """Rows may be written into the table."""
        if not self._user.superuser:
            self._write(table, privilege, reading=False)

    # ------------------------------------------------------------------------------------------------

    def _found(self, parts: tuple[str, ...]) -> CatalogObject | None:
        view = try_system_view(parts) if len(parts) == 1 else None
        if view is not None and view.schema == PG_CATALOG:
            return None
        if len(parts) == 3 and all(it.name != parts[0] for it in self._catalog.databases):
            return None
        return self._catalog.try_find(parts, search_path=self._search_path, kinds=_RELATIONS, anywhere=True)

    def _named(
        self, parts: tuple[str, ...], kind: ObjectKind, parameters: Sequence[SqlType] | None = None
    ) -> CatalogObject | None:
        """An object of a kind whose names are its own."""
        return self._catalog.try_find(parts, search_path=self._search_path, kinds=(kind,), parameters=parameters)

    def _read(self, name: ast.ObjectName) -> None:
        item = self._found(name.parts)
        if item is not None:
            self._use(item)
            self._need(Privilege.SELECT, item)

    def _see(self, name: ast.ObjectName) -> None:
        item = self._found(name.parts)
        if item is not None:
            self._use(item)
            self._demand(access.sees(self._catalog, self._user, item), f"permission denied for {described(item)}")

    def _write(self, name: ast.ObjectName, privilege: Privilege, *, reading: bool) -> None:
        item = self._found(name.parts)
        if item is not None:
            self._use(item)
            self._need(privilege, item)
            if reading:
                self._need(Privilege.SELECT, item)

    def _create_in(self, name: ast.ObjectName) -> None:
        # Only what is temporary goes into a session's own schema, first in its path though it is.
        lasting = tuple(place for place in self._search_path if not is_temporary(place))
        places = (name.schema,) if name.schema is not None else lasting
        schema = next((found for place in places if (found := self._catalog.try_schema(place)) is not None), None)
        if schema is not None:
            self._need(Privilege.CREATE, schema)

    def _alter_user(self, statement: ast.AlterUser) -> None:
        altered = next((it for it in self._catalog.users if it.name == statement.name), None)
        own_password = statement.name == self._user.name and not statement.options and statement.new_name is None
        if own_password:
            return
        self._demand(self._user.create_user, "permission denied to alter user")
        risen = "superuser" in statement.options or (altered is not None and altered.superuser)
        self._demand(not risen, "must be superuser to alter superusers")

    def _drop(self, statement: ast.Drop) -> None:
        for name in statement.names:
            if statement.kind is ast.ObjectKind.USER:
                self._demand(self._user.create_user, "permission denied to drop user")
                doomed = next((it for it in self._catalog.users if it.name == name.name), None)
                self._demand(doomed is None or not doomed.superuser, "must be superuser to drop superusers")
            else:
                self._own(name, statement.kind)

    def _own(self, name: ast.ObjectName, kind: ast.ObjectKind | None = None) -> None:
        target: Target | None
        match kind:
            case ast.ObjectKind.SCHEMA:
                target = self._catalog.try_schema(name.name)
            case ast.ObjectKind.DATABASE:
                target = next((it for it in self._catalog.databases if it.name == name.name), None)
            case ast.ObjectKind.FUNCTION | ast.ObjectKind.SECRET:
                target = self._named(name.parts, CATALOG_KINDS[kind], name.parameters)
            case _:
                target = self._found(name.parts)
        if target is not None:
            self._refuse_others(target)

    def _refuse_others(self, target: Target) -> None:
        self._demand(
            access.owns(self._catalog, self._user, target),
            f"must be owner of {described(target)}",
            hint=f'Its owner is "{target.owner}".',
        )

    def _use(self, item: CatalogObject) -> None:
        self._need(Privilege.USAGE, self._catalog.schema(item.schema, database=item.database))

    def _need(self, privilege: Privilege, target: Target) -> None:
        if not access.may(self._catalog, self._user, privilege, target):
            what = described(target)
            raise InsufficientPrivilege(
                f"permission denied for {what}",
                detail=f'User "{self._user.name}" has no {privilege.value} on it.',
                hint=f'Its owner "{target.owner}" may grant it.',
            )

    def _demand(self, allowed: bool, message: str, hint: str | None = None) -> None:
        if not allowed:
            raise InsufficientPrivilege(message, hint=hint)
