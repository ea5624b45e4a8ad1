"""Names in a statement, looked up in the catalog; and which kinds of objects a statement can name there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import MappingProxyType

from seiche.catalog.catalog import Catalog, not_found
from seiche.catalog.objects import SECRET_TEXT, CatalogObject, ObjectKind, ObjectStatus
from seiche.catalog.pg_catalog import SCHEMA as PG_CATALOG
from seiche.catalog.system_views import try_system_view
from seiche.catalog.temporary import is_temporary
from seiche.errors import FeatureNotSupported, InvariantError, ObjectNotReady, WrongObjectType
from seiche.model import ROW_ID, ObjectId
from seiche.session.shapes import Shapes, seen, shapes_of
from seiche.sql import statements as ast
from seiche.sql.bind import BoundRelation
from seiche.sql.parse import parse
from seiche.sql.user_functions import UserFunction

SYSTEM_SOURCE = "system_"
# What a statement's words name in the catalog; schemas, users and databases are no objects there.
CATALOG_KINDS = {
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

_READABLE = (
    ObjectKind.TABLE,
    ObjectKind.SOURCE,
    ObjectKind.MATERIALIZED_VIEW,
    ObjectKind.VIEW,
    ObjectKind.INDEX,
)


def user_function(statement: ast.CreateFunction) -> UserFunction:
    parameters = tuple((each.name, each.type) for each in statement.parameters)
    return UserFunction(
        statement.name.name,
        parameters,
        statement.returns,
        statement.body,
        statement.strict,
        statement.language,
        statement.volatile,
        statement.aggregate,
        statement.columns,
    )


def refuse_of_others(item: CatalogObject, search_path: Sequence[str]) -> None:
    """A temporary table is seen by its own session alone."""
    if is_temporary(item.schema) and item.schema not in search_path:
        raise FeatureNotSupported("cannot access temporary tables of other sessions")


class CatalogNames:
    """Satisfies `seiche.sql.bind.Names`, and remembers which objects a statement mentioned.

    Names without a database are looked up in the one that the catalog is seen from.

    `progress` tells how far an object in creation is, `shapes` which columns of relations are seen.
    """

    def __init__(
        self,
        catalog: Catalog,
        search_path: Sequence[str],
        progress: Callable[[int], str | None] = lambda _: None,
        shapes: Shapes = MappingProxyType({}),
    ) -> None:
        self._catalog = catalog
        self._search_path = tuple(search_path)
        self._progress = progress
        self._shapes = shapes
        self.mentioned: set[int] = set()
        self.system: list[str] = []

    def relation(self, parts: tuple[str, ...]) -> BoundRelation:
        view = try_system_view(parts, self._catalog.home)
        if view is not None and (view.schema == PG_CATALOG or not self._is_own(parts)):
            self.system.append(view.name)
            source = f"{SYSTEM_SOURCE}{view.schema}.{view.name}"
            return BoundRelation(None, view.name, view.columns, None, source, schema=view.schema)
        found = self._catalog.find(parts, search_path=self._search_path, anywhere=True)
        refuse_of_others(found, self._search_path)
        if found.kind not in _READABLE:
            raise WrongObjectType(f"{found} cannot be queried", detail=not_found("table or source", found.name))
        self.mentioned.add(found.id)
        return self._bound(found)

    def read_by_name(self, parts: tuple[str, ...]) -> CatalogObject | None:
        """The stored relation of that name, if the statement reads it: by itself, or through a view that it names."""
        found = self._catalog.try_find(parts, search_path=self._search_path, anywhere=True)
        return found if found is not None and found.id in self.mentioned and found.relation is not None else None

    def read_names(self) -> list[str]:
        """What the stored relations that the statement reads are called."""
        items = (self._catalog.get(ObjectId(each)) for each in sorted(self.mentioned))
        return [item.name for item in items if item.relation is not None]

    def functions(self, name: str) -> tuple[UserFunction, ...]:
        return tuple(map(_function_of, self._catalog.functions(name, search_path=self._search_path)))

    def call(self, function: UserFunction) -> None:
        types = [type_ for _, type_ in function.parameters]
        kinds = (ObjectKind.FUNCTION,)
        found = self._catalog.find((function.name,), search_path=self._search_path, kinds=kinds, parameters=types)
        self.mentioned.add(found.id)

    def secret(self, parts: tuple[str, ...]) -> str:
        found = self._catalog.find(parts, search_path=self._search_path, kinds=(ObjectKind.SECRET,))
        self.mentioned.add(found.id)
        return str(found.properties[SECRET_TEXT])

    def _is_own(self, parts: tuple[str, ...]) -> bool:
        """Whether the user has a relation of that bare name, which goes before one of `rw_catalog`."""
        return len(parts) == 1 and self._catalog.try_find(parts, search_path=self._search_path) is not None

    def _of_view(self, view: CatalogObject) -> CatalogNames:
        """Names as they were when the view was created: its text means the same in every session."""
        path = view.properties.get("search_path", self._search_path)
        names = CatalogNames(self._catalog.seen_from(view.database), path, self._progress, shapes_of(view))
        names.mentioned, names.system = self.mentioned, self.system
        return names

    def _bound(self, item: CatalogObject) -> BoundRelation:
        if item.kind is ObjectKind.VIEW:
            (parsed,) = parse(item.definition)
            if not isinstance(parsed.statement, ast.CreateView):
                raise InvariantError(f"{item} is not defined by CREATE VIEW")
            own = self._of_view(item)
            tree = parsed.statement.query.tree
            return BoundRelation(item.id, item.name, item.columns, tree, f"r{item.id}", own, item.schema)
        refuse_unfinished(item, self._progress)
        relation = seen(item, self._shapes).relation
        if relation is None:
            raise InvariantError(f"{item} has no stored shape")
        key = relation.key if item.kind is ObjectKind.TABLE and ROW_ID not in relation.key else ()
        return BoundRelation(item.id, item.name, relation.columns, None, f"r{item.id}", schema=item.schema, key=key)


def _function_of(item: CatalogObject) -> UserFunction:
    (parsed,) = parse(item.definition)
    if not isinstance(parsed.statement, ast.CreateFunction):
        raise InvariantError(f"{item} is not defined by CREATE FUNCTION")
    return user_function(parsed.statement)


def refuse_unfinished(item: CatalogObject, progress: Callable[[int], str | None] = lambda _: None) -> None:
    """Nobody reads or writes what is still being created."""
    if item.status is not ObjectStatus.CREATING:
        return
    reached = progress(item.id)
    raise ObjectNotReady(
        f"{item} is still being created",
        detail=f"It is at {reached}." if reached else None,
        hint="Its CREATE TABLE AS has not ended yet."
        if item.kind is ObjectKind.TABLE
        else "Wait for it with WAIT, or look at SHOW JOBS.",
    )
