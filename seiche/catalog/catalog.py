"""The catalog: an immutable value that says what exists.

A statement is planned against one `Catalog` and changes it by making another; the new one becomes true when the
checkpoint that carries the difference is durable (`Checkpoint.between`). A catalog is always whole: names are
unique in their schema, dependencies exist and have no cycle, nothing is removed while something depends on it.
All databases are in one catalog, which is seen from one of them: names without a database are looked up there.

    ships ◀── arrivals_by_ship ◀── busiest_ships       is dropped as       busiest_ships, arrivals_by_ship, ships
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from graphlib import CycleError, TopologicalSorter
from typing import Any

from seiche.catalog.objects import (
    DEFAULT_DATABASE,
    DEFAULT_SCHEMA,
    INTO,
    MAINTAINER,
    SUPERUSER,
    CatalogObject,
    Comment,
    Database,
    DefaultGrant,
    Grant,
    ObjectKind,
    Schema,
    User,
    signature,
)
from seiche.catalog.temporary import is_temporary, resolved
from seiche.errors import (
    AmbiguousFunction,
    DependentObjects,
    DuplicateDatabase,
    DuplicateObject,
    DuplicateSchema,
    DuplicateUser,
    FeatureNotSupported,
    InvalidDefinition,
    InvariantError,
    SeicheError,
    UndefinedDatabase,
    UndefinedFunction,
    UndefinedObject,
    UndefinedSchema,
    UndefinedTable,
    WrongObjectType,
    nearest,
)
from seiche.model import ObjectId
from seiche.types import SqlType

FIRST_FREE_ID = 100  # ids below are those of the objects that every catalog begins with
DETAIL_LINES = 20  # dependants listed in an error before "and n more"

_NameKey = tuple[str, str, str, str]  # database, schema, namespace, name
_PLAIN_NAME = re.compile(r"[a-z_][a-z0-9_$]*\Z")


def quoted(name: str) -> str:
    """The name as SQL text: in double quotes unless folding would leave it as it is."""
    return name if _PLAIN_NAME.match(name) else '"' + name.replace('"', '""') + '"'


@dataclass(frozen=True, slots=True)
class Catalog:
    """What exists. Equal catalogs name equal things; build changed ones with `with_*` and `without_*`.

    `home` is the database that it is seen from, and no part of what exists.
    """

    databases: tuple[Database, ...] = ()
    schemas: tuple[Schema, ...] = ()
    users: tuple[User, ...] = ()
    by_id: Mapping[ObjectId, CatalogObject] = field(default_factory=dict, hash=False)
    grants: frozenset[Grant] = frozenset()
    comments: frozenset[Comment] = frozenset()
    default_grants: frozenset[DefaultGrant] = frozenset()
    home: str = field(default=DEFAULT_DATABASE, compare=False)

    _by_name: dict[_NameKey, CatalogObject] = field(init=False, repr=False, compare=False)
    _functions: dict[tuple[str, str, str], list[CatalogObject]] = field(init=False, repr=False, compare=False)
    _needed_by: dict[ObjectId, list[ObjectId]] = field(init=False, repr=False, compare=False)
    _children: dict[ObjectId, list[ObjectId]] = field(init=False, repr=False, compare=False)
    _seen: dict[str, Catalog] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        by_name: dict[_NameKey, CatalogObject] = {}
        functions: dict[tuple[str, str, str], list[CatalogObject]] = {}
        needed_by: dict[ObjectId, list[ObjectId]] = {}
        children: dict[ObjectId, list[ObjectId]] = {}
        for id in sorted(self.by_id):
            item = self.by_id[id]
            key = _name_key(item)
            if key in by_name:
                raise DuplicateObject(f'{by_name[key].kind.value} "{item.qualified}" already exists')
            by_name[key] = item
            if item.kind is ObjectKind.FUNCTION:
                functions.setdefault((item.database, item.schema, item.name), []).append(item)
            for dependency in sorted(item.dependencies):
                if dependency not in self.by_id:
                    raise InvariantError(f"{item} depends on object {dependency}, which does not exist")
                needed_by.setdefault(dependency, []).append(id)
            if item.parent is not None:
                if item.parent not in self.by_id:
                    raise InvariantError(f"{item} belongs to object {item.parent}, which does not exist")
                children.setdefault(item.parent, []).append(id)
        fill = object.__setattr__  # the one way to set a computed field of a frozen dataclass
        fill(self, "databases", tuple(sorted(self.databases, key=lambda it: it.id)))
        fill(self, "schemas", tuple(sorted(self.schemas, key=lambda it: it.id)))
        fill(self, "users", tuple(sorted(self.users, key=lambda it: it.id)))
        fill(self, "_by_name", by_name)
        fill(self, "_functions", functions)
        fill(self, "_needed_by", needed_by)
        fill(self, "_children", children)
        fill(self, "_seen", {self.home: self})

    @staticmethod
    def default() -> Catalog:
        """What a new database begins with."""
        return Catalog(
            databases=(Database(ObjectId(1), DEFAULT_DATABASE),),
            schemas=(Schema(ObjectId(2), DEFAULT_DATABASE, DEFAULT_SCHEMA),),
            users=(
                User(ObjectId(3), SUPERUSER, superuser=True, create_db=True, create_user=True),
                User(ObjectId(4), "postgres", superuser=True, create_db=True, create_user=True),
                User(ObjectId(5), MAINTAINER, superuser=True, create_db=True, create_user=True),
            ),
        )

    # Looking things up

    def seen_from(self, database: str) -> Catalog:
        """The same catalog with another home; the same value whenever it is asked for, which others may know it by."""
        known = self._seen.get(database)
        if known is None:
            known = copy(self)
            object.__setattr__(known, "home", database)
            known = self._seen.setdefault(database, known)  # another thread may have been faster
        return known

    @property
    def home_schemas(self) -> tuple[Schema, ...]:
        return tuple(schema for schema in self.schemas if schema.database == self.home)

    def at_home(self, *kinds: ObjectKind) -> tuple[CatalogObject, ...]:
        """As `objects`, of the home database alone."""
        return tuple(item for item in self.objects(*kinds) if item.database == self.home)

    def get(self, object_id: int) -> CatalogObject:
        """The object with this id, which must exist."""
        try:
            return self.by_id[ObjectId(object_id)]
        except KeyError:
            raise InvariantError(f"catalog has no object with id {object_id}") from None

    def objects(self, *kinds: ObjectKind) -> tuple[CatalogObject, ...]:
        """All objects of the given kinds (none given: of every kind) in all databases, by id."""
        return tuple(self.by_id[id] for id in sorted(self.by_id) if not kinds or self.by_id[id].kind in kinds)

    def children(self, object_id: int) -> tuple[CatalogObject, ...]:
        """The internal relations of a job, by id."""
        return tuple(self.by_id[child] for child in self._children.get(ObjectId(object_id), ()))

    def dependants(self, object_id: int) -> tuple[CatalogObject, ...]:
        """What the user made on top of an object, at any remove, in the order in which to drop it."""
        doomed = (self.by_id[other] for other in self.plan_drop([object_id], cascade=True))
        return tuple(item for item in doomed if item.id != object_id and item.kind is not ObjectKind.INTERNAL)

    def try_find(
        self,
        parts: Sequence[str],
        *,
        search_path: Sequence[str] = (DEFAULT_SCHEMA,),
        kinds: Iterable[ObjectKind] | None = None,
        anywhere: bool = False,
        parameters: Sequence[SqlType] | None = None,
    ) -> CatalogObject | None:
        """As `find`, but None where nothing of the wanted kinds has the name."""
        wanted = frozenset(kinds) if kinds is not None else None
        found = self._lookup(parts, search_path, wanted, anywhere, parameters)
        return found if found is not None and (wanted is None or found.kind in wanted) else None

    def find(
        self,
        parts: Sequence[str],
        *,
        search_path: Sequence[str] = (DEFAULT_SCHEMA,),
        kinds: Iterable[ObjectKind] | None = None,
        anywhere: bool = False,
        action: str | None = None,
        parameters: Sequence[SqlType] | None = None,
    ) -> CatalogObject:
        """The object called `name`, `schema.name` or `database.schema.name`; names are folded already.

        Without a schema the first one of the search path that has the name wins. `kinds` limits what will do,
        `anywhere` is for those who may name what is in other databases; `action` is the statement's verb ("DROP",
        "ALTER"), for the hint when the kind is wrong. `parameters` are the types that tell functions of one name apart;
        without them there must be one.
        """
        wanted = frozenset(kinds) if kinds is not None else None
        found = self._lookup(parts, search_path, wanted, anywhere, parameters)
        if found is None:
            raise self._undefined(parts, search_path, wanted)
        if wanted is not None and found.kind not in wanted:
            asked = " or ".join(sorted(kind.value for kind in wanted))
            hint = f"Use `{action} {found.kind.sql}` for it." if action else None
            article = "an" if asked[0] in "aeiou" else "a"
            raise WrongObjectType(f"{found} is not {article} {asked}", detail=not_found(asked, found.name), hint=hint)
        return found

    def functions(self, name: str, *, search_path: Sequence[str] = (DEFAULT_SCHEMA,)) -> tuple[CatalogObject, ...]:
        """All functions of a bare name, without those that are hidden by others with the same types of parameters."""
        seen: dict[str, CatalogObject] = {}
        for schema in search_path:
            for each in self._functions.get((self.home, schema, name), ()):
                seen.setdefault(each.namespace, each)
        return tuple(seen.values())

    def _lookup(
        self,
        parts: Sequence[str],
        search_path: Sequence[str],
        wanted: frozenset[ObjectKind] | None,
        anywhere: bool,
        parameters: Sequence[SqlType] | None,
    ) -> CatalogObject | None:
        namespaces = {kind.namespace for kind in wanted} if wanted is not None else {"relation"}
        match tuple(parts):
            case (name,):
                places = [(self.home, schema) for schema in search_path]
            case (schema, name):
                places = [(self.home, resolved(schema, search_path))]
            case (database, schema, name):
                if database != self.home and not anywhere:
                    raise FeatureNotSupported(
                        f'cross-database references are not implemented: "{".".join(parts)}"',
                        detail="What is in other databases can be read by queries and views, and by nothing else.",
                        hint=f'This session works in database "{self.home}". SET database goes to another.',
                    )
                self.database(database)
                places = [(database, resolved(schema, search_path))]
            case _:
                raise UndefinedTable(
                    f'relation "{".".join(parts)}" does not exist',
                    detail="A name has at most three parts: database, schema and the object's own name.",
                )
        for place in places:
            for namespace in sorted(namespaces):
                if namespace == ObjectKind.FUNCTION.namespace:
                    found = _the_one(self._functions.get((*place, name), []), parameters)
                else:
                    found = self._by_name.get((*place, namespace, name))
                if found is not None:
                    return found
        return None

    def _undefined(
        self, parts: Sequence[str], search_path: Sequence[str], wanted: frozenset[ObjectKind] | None
    ) -> SeicheError:
        what = next(iter(wanted)).value if wanted is not None and len(wanted) == 1 else "relation"
        error: type[UndefinedObject] = UndefinedTable
        if wanted == frozenset({ObjectKind.FUNCTION}):
            error = UndefinedFunction
        elif wanted == frozenset({ObjectKind.INDEX}):
            error = UndefinedObject
        message = f'{what} "{".".join(parts)}" does not exist'
        places = {parts[-2]} if len(parts) > 1 else set(search_path)
        home = parts[0] if len(parts) == 3 else self.home
        if len(parts) > 1 and self.try_schema(parts[-2], database=home) is None:
            schemas = [schema.name for schema in self.schemas if schema.database == home]
            return error(message, detail=not_found("schema", parts[-2]), hint=nearest(parts[-2], schemas))
        near = [
            item
            for item in self.by_id.values()
            if item.database == home
            and (item.kind in wanted if wanted is not None else item.kind not in _NEVER_SUGGESTED)
        ]
        hint = nearest(parts[-1], [item.name for item in near if item.schema in places])
        if hint is None:
            elsewhere = sorted(str(item.qualified) for item in near if item.name == parts[-1])
            hint = f'Perhaps you meant "{elsewhere[0]}".' if elsewhere else None
        name = ".".join(parts)
        detail = f"In the catalog: table or source not found: {name}." if what == "relation" else not_found(what, name)
        return error(message, detail=detail, hint=hint)

    def database(self, name: str) -> Database:
        for database in self.databases:
            if database.name == name:
                return database
        raise UndefinedDatabase(
            f'database "{name}" does not exist',
            detail=f"In the catalog: database not found: {name}.",
            hint=nearest(name, [database.name for database in self.databases]),
        )

    def try_schema(self, name: str, *, database: str | None = None) -> Schema | None:
        """The schema of that name in a database, if it is there; without one in the home database."""
        place = self.home if database is None else database
        for schema in self.schemas:
            if schema.name == name and schema.database == place:
                return schema
        return None

    def schema(self, name: str, *, database: str | None = None) -> Schema:
        found = self.try_schema(name, database=database)
        if found is None:
            place = self.database(self.home if database is None else database).name
            names = [schema.name for schema in self.schemas if schema.database == place]
            raise UndefinedSchema(
                f'schema "{name}" does not exist', detail=not_found("schema", name), hint=nearest(name, names)
            )
        return found

    def user(self, name: str) -> User:
        for user in self.users:
            if user.name == name:
                return user
        raise UndefinedObject(f'user "{name}" does not exist', hint=nearest(name, [user.name for user in self.users]))

    # Changing, by making another catalog

    def with_objects(self, *items: CatalogObject) -> Catalog:
        """A catalog that also has these objects; one with a known id takes its place (and may take another's name)."""
        for item in items:
            self.schema(item.schema, database=item.database)
            self.user(item.owner)
            self._refuse_lasting_use_of_temporary(item)
        changed = replace(self, by_id={**self.by_id, **{item.id: item for item in items}})
        changed._refuse_cycles()
        new = [it for it in items if it.id not in self.by_id and it.kind is not ObjectKind.INTERNAL]
        return changed._with_defaults(new) if self.default_grants else changed

    def _refuse_lasting_use_of_temporary(self, item: CatalogObject) -> None:
        """What outlives a session can neither come from its temporary tables nor depend on them."""
        old = self.by_id.get(item.id)
        if old is not None and old.schema != item.schema and (is_temporary(old.schema) or is_temporary(item.schema)):
            raise FeatureNotSupported("cannot move objects into or out of temporary schemas")
        used = (self.by_id[id] for id in sorted(item.dependencies) if id in self.by_id)
        temporary = next((it for it in used if is_temporary(it.schema) and it.schema != item.schema), None)
        if temporary is not None:
            raise FeatureNotSupported(
                f"{item} must not use temporary {temporary}", detail="It would be gone at the end of the session."
            )

    def without(self, ids: Iterable[int]) -> Catalog:
        """A catalog without these objects. `plan_drop` says which have to go together."""
        gone = {self.get(id).id for id in ids}
        return self._forgetting(gone, by_id={id: item for id, item in self.by_id.items() if id not in gone})

    def without_temporary(self) -> Catalog:
        """A catalog without any session's temporary tables; this one where there are none."""
        inside = [item.id for item in self.objects() if is_temporary(item.schema)]
        left = self.without(self.plan_drop(inside, cascade=True)) if inside else self
        for schema in self.schemas:
            if is_temporary(schema.name):
                left = left.without_schema(schema.name, database=schema.database)
        return left

    def with_database(self, database: Database) -> Catalog:
        self.user(database.owner)
        others = tuple(other for other in self.databases if other.id != database.id)
        if any(other.name == database.name for other in others):
            raise DuplicateDatabase(f'database "{database.name}" already exists')
        return replace(self, databases=(*others, database))

    def without_database(self, name: str) -> Catalog:
        doomed = self.database(name)
        inside = [f'schema "{schema.name}"' for schema in self.schemas if schema.database == name]
        _refuse_while_used(f'database "{name}"', inside, "Drop its schemas first.")
        return self._forgetting({doomed.id}, databases=tuple(other for other in self.databases if other != doomed))

    def with_schema(self, schema: Schema) -> Catalog:
        self.database(schema.database)
        self.user(schema.owner)
        others = tuple(other for other in self.schemas if other.id != schema.id)
        if any((other.database, other.name) == (schema.database, schema.name) for other in others):
            raise DuplicateSchema(f'schema "{schema.name}" already exists')
        changed = replace(self, schemas=(*others, schema))
        return changed._with_defaults([schema]) if others == self.schemas else changed

    def without_schema(self, name: str, *, database: str | None = None) -> Catalog:
        """A catalog without this schema, which must be empty: drop what it holds first."""
        doomed = self.schema(name, database=database)
        inside = [str(item) for item in self.objects() if (item.database, item.schema) == (doomed.database, name)]
        _refuse_while_used(f'schema "{name}"', inside, "Use DROP SCHEMA ... CASCADE to drop the objects in it too.")
        return self._forgetting({doomed.id}, schemas=tuple(other for other in self.schemas if other != doomed))

    def with_user(self, user: User) -> Catalog:
        others = tuple(other for other in self.users if other.id != user.id)
        if any(other.name == user.name for other in others):
            raise DuplicateUser(f'user "{user.name}" already exists')
        return replace(self, users=(*others, user))

    def without_user(self, name: str) -> Catalog:
        doomed = self.user(name)
        owned = [f'database "{it.name}"' for it in self.databases if it.owner == name]
        owned += [f'schema "{it.name}"' for it in self.schemas if it.owner == name]
        owned += [str(it) for it in self.objects() if it.owner == name]
        _refuse_while_used(
            f'user "{name}"',
            owned,
            "Give them another owner with ALTER ... OWNER TO, or drop them.",
            before="Permission denied: ",
        )
        return self._forgetting({doomed.id}, users=tuple(other for other in self.users if other != doomed))

    def with_grants(self, *grants: Grant) -> Catalog:
        """A catalog with these grants; one of the same user, target and privilege takes its place."""
        keys = {grant.key for grant in grants}
        return replace(self, grants=frozenset(it for it in self.grants if it.key not in keys) | frozenset(grants))

    def without_grants(self, *grants: Grant) -> Catalog:
        keys = {grant.key for grant in grants}
        return replace(self, grants=frozenset(it for it in self.grants if it.key not in keys))

    def with_default_grants(self, *grants: DefaultGrant) -> Catalog:
        keys = {grant.key for grant in grants}
        others = frozenset(it for it in self.default_grants if it.key not in keys)
        return replace(self, default_grants=others | frozenset(grants))

    def without_default_grants(self, *grants: DefaultGrant) -> Catalog:
        return replace(self, default_grants=self.default_grants - frozenset(grants))

    def _with_defaults(self, items: Iterable[CatalogObject | Schema]) -> Catalog:
        """With what is granted by default on these, which are new."""
        users = {user.name: user.id for user in self.users}
        grants = []
        for item in items:
            kind = item.kind if isinstance(item, CatalogObject) else None
            place = self.schema(item.schema, database=item.database).id if isinstance(item, CatalogObject) else None
            wanted = [
                it
                for it in self.default_grants
                if it.owner == users[item.owner] and it.kind is kind and it.schema in (None, place)
            ]
            # One for any schema and one for this: what either allows is allowed.
            for it in sorted(wanted, key=lambda it: it.grantable):
                grants.append(Grant(it.user, item.id, it.privilege, it.grantable))
        return self.with_grants(*{grant.key: grant for grant in grants}.values())

    def with_comment(self, target: int, column: str | None, text: str | None) -> Catalog:
        """A catalog with this comment in place of any other on the same thing; None removes it."""
        key = (target, column or "")
        others = frozenset(it for it in self.comments if it.key != key)
        return replace(self, comments=others | {Comment(ObjectId(target), column, text)} if text else others)

    def comment(self, target: int, column: str | None = None) -> str | None:
        key = (target, column or "")
        return next((it.text for it in self.comments if it.key == key), None)

    def _forgetting(self, gone: set[ObjectId], **changed: Any) -> Catalog:
        """This catalog with the changed parts, and without grants and comments of what is gone."""
        return replace(
            self,
            grants=frozenset(it for it in self.grants if it.target not in gone and it.user not in gone),
            comments=frozenset(it for it in self.comments if it.target not in gone),
            default_grants=frozenset(
                it for it in self.default_grants if gone.isdisjoint((it.owner, it.schema or 0, it.user))
            ),
            **changed,
        )

    # Dropping

    def plan_drop(self, ids: Iterable[int], *, cascade: bool) -> tuple[ObjectId, ...]:
        """What has to go so that `ids` can go, in order: whatever depends on an object goes before it.

        Indexes go with what they index, internal relations with their job, sinks with the table that they fill, asked
        for or not. Anything else that depends on `ids` goes with `cascade`, and is named by DependentObjects without.
        """
        targets = [self.get(id).id for id in ids]
        doomed = set(targets)
        blocked: dict[ObjectId, ObjectId] = {}
        waiting = list(targets)
        while waiting:
            used = waiting.pop()
            waiting += [child.id for child in self.children(used) if child.id not in doomed]
            doomed.update(self._children.get(used, ()))
            for dependant in self._visibly_needed_by(used):
                if dependant.id in doomed:
                    continue
                if cascade or dependant.kind is ObjectKind.INDEX or dependant.properties.get(INTO) == used:
                    doomed.add(dependant.id)
                    waiting.append(dependant.id)
                else:
                    blocked[dependant.id] = used
        # Not all of it may be known to be doomed when it is first met as a dependant.
        blocked = {dependant: used for dependant, used in blocked.items() if dependant not in doomed}
        if blocked:
            names = ", ".join(str(self.by_id[id]) for id in targets)
            raise DependentObjects(
                f"{names} cannot be dropped because other objects depend on {'it' if len(targets) == 1 else 'them'}",
                detail=f"{_listed(self._why(blocked))}\nPermission denied while others depend on it."
                + _used([self.by_id[id].kind for id in targets], len(blocked)),
                hint="Use DROP ... CASCADE to drop the dependent objects too.",
            )
        order: TopologicalSorter[ObjectId] = TopologicalSorter()
        for id in sorted(doomed):
            item = self.by_id[id]
            first = {it for it in self._needed_by.get(id, ()) if it in doomed and self.by_id[it].parent != id}
            if item.parent is not None and item.parent in doomed:
                first.add(item.parent)
            order.add(id, *sorted(first))
        return tuple(order.static_order())

    def _visibly_needed_by(self, used: ObjectId) -> list[CatalogObject]:
        """What depends on an object directly; a job stands for its internal relations."""
        visible: dict[ObjectId, CatalogObject] = {}
        for dependant in self._needed_by.get(used, ()):
            item = self.by_id[dependant]
            shown = item if item.parent is None else self.by_id[item.parent]
            if shown.id != used:
                visible[shown.id] = shown
        return [visible[dependant] for dependant in sorted(visible)]

    def _why(self, blocked: Mapping[ObjectId, ObjectId]) -> list[str]:
        """Who depends on what, from the given pairs of dependant and used on outwards, nearest first."""
        sentences = [f"{self.by_id[dependant]} depends on {self.by_id[used]}" for dependant, used in blocked.items()]
        seen, waiting = set(blocked), list(blocked)
        while waiting:
            used = waiting.pop(0)
            for dependant in self._visibly_needed_by(used):
                if dependant.id not in seen:
                    sentences.append(f"{dependant} depends on {self.by_id[used]}")
                    seen.add(dependant.id)
                    waiting.append(dependant.id)
        return sentences

    def _refuse_cycles(self) -> None:
        order = TopologicalSorter({id: item.dependencies for id, item in self.by_id.items()})
        try:
            order.prepare()
        except CycleError as error:
            loop = [self.by_id[id] for id in error.args[1]]
            raise InvalidDefinition(
                f"{loop[0]} would refer to itself",
                detail="The path is " + " -> ".join(f'"{item.qualified}"' for item in loop) + ".",
                hint="Base it on other relations.",
            ) from error


_NEVER_SUGGESTED = frozenset({ObjectKind.INTERNAL, ObjectKind.FUNCTION, ObjectKind.SECRET})


def _name_key(item: CatalogObject) -> _NameKey:
    return (item.database, item.schema, item.namespace, item.name)


def _the_one(functions: Sequence[CatalogObject], parameters: Sequence[SqlType] | None) -> CatalogObject | None:
    """The function with parameters of these types; without them, the only one."""
    if parameters is not None:
        return next((each for each in functions if each.parameter_types == signature(parameters)), None)
    if len(functions) > 1:
        raise AmbiguousFunction(
            f'function name "{functions[0].name}" is not unique',
            hint="Say which one by the types of its parameters, as in f(integer).",
        )
    return functions[0] if functions else None


def not_found(kind: str, name: str) -> str:
    """In RisingWave's words, which its users search for."""
    return f'In the catalog: {kind} not found: "{name}".'


def _used(kinds: list[ObjectKind], count: int) -> str:
    """As `_not_found`, for functions, of which its users are told no names."""
    return f"\nIn the catalog: function used by {count} other objects." if ObjectKind.FUNCTION in kinds else ""


def _refuse_while_used(what: str, users: list[str], hint: str, before: str = "") -> None:
    if users:
        raise DependentObjects(
            f"{before}{what} cannot be dropped because other objects depend on it",
            detail=_listed([f"{user} depends on {what}" for user in users]),
            hint=hint,
        )


def _listed(sentences: list[str]) -> str:
    shown = [f"{sentence[0].upper()}{sentence[1:]}." for sentence in sentences[:DETAIL_LINES]]
    if len(sentences) > DETAIL_LINES:
        shown.append(f"And {len(sentences) - DETAIL_LINES} more.")
    return "\n".join(shown)
