"""Who asks, and what of: all that a function of a system query may look at."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from seiche.catalog import oids
from seiche.catalog.catalog import Catalog
from seiche.catalog.facts import Facts
from seiche.catalog.objects import CatalogObject, Database, ObjectKind, Schema, User
from seiche.catalog.pg_catalog import SYSTEM_NAMESPACES
from seiche.catalog.system_views import SYSTEM_VIEWS
from seiche.catalog.temporary import is_temporary
from seiche.errors import InvalidText, SeicheError, UndefinedObject, UndefinedSchema, UndefinedTable
from seiche.model import ObjectId

_NAMED_SCHEMAS = {oid: name for name, oid in SYSTEM_NAMESPACES.items()}
_SYSTEM_OIDS = {view.oid: view for view in SYSTEM_VIEWS.values()}


@dataclass(slots=True)
class Asking:
    """The present question. `signal` stops what a session runs, or ends it. `changes` collects what `set_config` asked
    for; `error` is what a function raised, since DuckDB would pass on only its text."""

    facts: Facts
    user: User
    search_path: tuple[str, ...]
    pid: int
    variable: Callable[[str], str]
    now_ms: int
    started_ms: int
    server_started_ms: int = 0
    signal: Callable[[int, bool], None] = lambda pid, ends: None
    changes: dict[str, str] = field(default_factory=dict)
    error: SeicheError | None = None

    @property
    def catalog(self) -> Catalog:
        return self.facts.catalog

    def existing_path(self, *, temporary: bool = False) -> tuple[str, ...]:
        """The schemas of the path that exist, that of temporary tables only where asked for."""
        wanted = (name for name in self.search_path if temporary or not is_temporary(name))
        return tuple(name for name in wanted if self.catalog.try_schema(name) is not None)

    # --- oids to things ------------------------------------------------------------------------------

    def object_at(self, oid: int) -> CatalogObject | None:
        return self._at_home(oids.id_of(oid))

    def keyed_table_at(self, oid: int) -> CatalogObject | None:
        """The table whose primary key's index or constraint this is."""
        return self._at_home(oids.keyed_table(oid))

    def _at_home(self, id: int | None) -> CatalogObject | None:
        """As in PostgreSQL, what is in another database has no number in this one."""
        found = self.catalog.by_id.get(ObjectId(id)) if id is not None else None
        return found if found is not None and found.database == self.catalog.home else None

    def relation_name(self, oid: int) -> tuple[str, str] | None:
        """Schema and name of whatever `pg_class` has under this oid."""
        if oid in _SYSTEM_OIDS:
            return _SYSTEM_OIDS[oid].schema, _SYSTEM_OIDS[oid].name
        item = self.object_at(oid)
        if item is not None:
            return item.schema, item.name
        table = self.keyed_table_at(oid)
        return (table.schema, f"{table.name}_pkey") if table is not None else None

    def is_visible(self, oid: int) -> bool | None:
        """Whether the relation is found by its bare name; None where there is none."""
        named = self.relation_name(oid)
        if named is None:
            return None
        schema, name = named
        if schema == "pg_catalog":
            return True
        for place in self.search_path:
            if place == schema:
                return True
            if self.catalog.try_find((place, name)) is not None:
                return False
        return False

    def schema_at(self, oid: int) -> str | None:
        if oid in _NAMED_SCHEMAS:
            return _NAMED_SCHEMAS[oid]
        return next((it.name for it in self.catalog.home_schemas if oids.oid_of(it.id) == oid), None)

    def user_at(self, oid: int) -> User | None:
        return next((it for it in self.catalog.users if oids.user_oid(it.id) == oid), None)

    # --- names to oids -------------------------------------------------------------------------------

    def relation_oid(self, text: str) -> int | None:
        """The oid of a relation by its name as SQL spells it, or by its number."""
        if text.isdecimal():
            return int(text)
        parts = split_name(text)
        if len(parts) == 1:
            found = SYSTEM_VIEWS.get(("pg_catalog", parts[0]))
            if found is not None:
                return found.oid
        item = self.catalog.try_find(parts, search_path=self.search_path)
        if item is not None and item.kind is not ObjectKind.INTERNAL:
            return oids.oid_of(item.id)
        if len(parts) > 1 and (parts[-2], parts[-1]) in SYSTEM_VIEWS:
            return SYSTEM_VIEWS[parts[-2], parts[-1]].oid
        if len(parts) == 1 and ("rw_catalog", parts[0]) in SYSTEM_VIEWS:
            return SYSTEM_VIEWS["rw_catalog", parts[0]].oid
        if parts[-1].endswith("_pkey"):
            table = self.catalog.try_find((*parts[:-1], parts[-1].removesuffix("_pkey")), search_path=self.search_path)
            if table is not None and table.properties.get("primary_key"):
                return oids.key_index_oid(table.id)
        return None

    def relation_of(self, text: str) -> int:
        found = self.relation_oid(text)
        if found is None:
            raise UndefinedTable(f'relation "{text}" does not exist')
        return found

    def schema_named(self, text: str) -> Schema | None:
        if text.isdecimal():
            return next((it for it in self.catalog.home_schemas if oids.oid_of(it.id) == int(text)), None)
        return self.catalog.try_schema(split_name(text)[-1])

    def schema_oid(self, text: str) -> int | None:
        if text.isdecimal():
            return int(text)
        name = split_name(text)[-1]
        if name in SYSTEM_NAMESPACES:
            return SYSTEM_NAMESPACES[name]
        found = self.catalog.try_schema(name)
        return oids.oid_of(found.id) if found is not None else None

    def schema_of(self, text: str) -> int:
        found = self.schema_oid(text)
        if found is None:
            raise UndefinedSchema(f'schema "{text}" does not exist')
        return found

    def database_named(self, text: str) -> Database | None:
        return next((it for it in self.catalog.databases if it.name == text or str(oids.oid_of(it.id)) == text), None)

    def user_named(self, text: str) -> User:
        for it in self.catalog.users:
            if it.name == text or str(oids.user_oid(it.id)) == text:
                return it
        raise UndefinedObject(f'role "{text}" does not exist')


def split_name(text: str) -> list[str]:
    """The parts of a name as SQL spells it, folded unless quoted."""
    parts: list[str] = []
    rest = text.strip()
    while True:
        if rest.startswith('"'):
            end = 1
            while end < len(rest) and (rest[end] != '"' or rest[end : end + 2] == '""'):
                end += 2 if rest[end] == '"' else 1
            parts.append(rest[1:end].replace('""', '"'))
            rest = rest[end + 1 :]
        else:
            word, dot, tail = rest.partition(".")
            parts.append(word.strip().lower())
            rest = dot + tail
        if not rest:
            return parts
        if not rest.startswith(".") or not parts[-1]:
            raise InvalidText(f'invalid name syntax: "{text}"')
        rest = rest[1:]


Overloads = Mapping[int, Callable[..., object]]
