"""PostgreSQL's functions about privileges: `has_table_privilege` and its kin."""

from __future__ import annotations

from collections.abc import Callable

from seiche.catalog.access import Target, may, may_grant, read_access
from seiche.catalog.objects import ObjectKind, Privilege, User
from seiche.catalog.oids import user_oid
from seiche.errors import InvalidParameter, UndefinedFunction
from seiche.session.system.functions import BOOL, FUNCTIONS, TEXT, TEXTS, function
from seiche.session.system.state import Asking
from seiche.sql.aggregates import is_aggregate
from seiche.sql.functions.registry import is_function
from seiche.sql.parse import parse_name
from seiche.sql.tables import SET_RETURNING
from seiche.sql.windows import window_names


def _allowed(asking: Asking, user: User, words: str, target: Target | None) -> bool | None:
    """Whether any of the privileges in `words` is held. What has no entry in the catalog is open to all readers."""
    wanted = _listed(words)
    if target is None:
        return any(word in ("SELECT", "USAGE", "EXECUTE") for word in wanted)
    if user.superuser or target.owner == user.name:
        return True
    return any(_holds(asking, user, word, target) for word in wanted if word.removesuffix(_OPTION) in _OURS)


def _listed(words: str) -> list[str]:
    return [word.strip().upper() for word in words.split(",")]


def _holds(asking: Asking, user: User, word: str, target: Target) -> bool:
    held = may_grant if word.endswith(_OPTION) else may
    return held(asking.catalog, user, Privilege(word.removesuffix(_OPTION)), target)


_OPTION = " WITH GRANT OPTION"


_OURS = {it.value for it in Privilege}
# Functions that no registry has, as binding knows them by their grammar.
_WITH_GRAMMAR = (
    "array_transform", "clock_timestamp", "extract", "map_filter", "now", "proctime", "statement_timestamp",
    "transaction_timestamp",
)  # fmt: skip


def _on_relation(asking: Asking, user: User, relation: str, words: str) -> bool | None:
    oid = asking.relation_of(relation)
    if asking.relation_name(oid) is None:
        return None
    return _allowed(asking, user, words, asking.object_at(oid) or asking.keyed_table_at(oid))


def _on_schema(asking: Asking, user: User, schema: str, words: str) -> bool | None:
    asking.schema_of(schema)
    return _allowed(asking, user, words, asking.schema_named(schema))


def _on_database(asking: Asking, user: User, database: str, words: str) -> bool | None:
    found = asking.database_named(database)
    return _allowed(asking, user, words, found if found is not None else asking.catalog.database(database))


def _on_function(asking: Asking, user: User, name: str, words: str) -> bool | None:
    if name.isdecimal():
        return _allowed(asking, user, words, asking.object_at(int(name)))
    parts = parse_name(name.partition("(")[0]).parts
    found = asking.catalog.try_find(parts, search_path=asking.search_path, kinds=(ObjectKind.FUNCTION,))
    if found is None and not _is_own(parts):
        raise UndefinedFunction(f'function "{name}" does not exist')
    return _allowed(asking, user, words, found)


def _is_own(parts: tuple[str, ...]) -> bool:
    """Whether a function is SQL's own, which are open to all."""
    *schema, name = parts
    known = {*SET_RETURNING, *window_names(), *_WITH_GRAMMAR, *(system for system, _ in FUNCTIONS)}
    return schema in ([], ["pg_catalog"]) and (name in known or is_function(name) or is_aggregate(name))


def _on_anything(asking: Asking, user: User, name: str, words: str) -> bool | None:
    return _allowed(asking, user, words, None)


def _privilege_functions(
    name: str, check: Callable[[Asking, User, str, str], bool | None], known: str, columns: int = 0
) -> None:
    """`name([user,] object, [column,] privilege)`, for privileges among the `known`. A column is as open as its
    relation."""
    takes = [TEXT] * (2 + columns)

    def checked(words: str) -> str:
        for word in _listed(words):
            if word.removesuffix(_OPTION) not in known.split():
                raise InvalidParameter(f'unrecognized privilege type: "{word}"')
        return words

    def mine(asking: Asking, target: str, *rest: str) -> bool | None:
        return check(asking, asking.user, target, checked(rest[-1]))

    def of(asking: Asking, user: str, target: str, *rest: str) -> bool | None:
        return check(asking, asking.user_named(user), target, checked(rest[-1]))

    function(name, takes=takes, gives=BOOL)(mine)
    function(name, takes=[TEXT, *takes], gives=BOOL)(of)


_privilege_functions("has_table_privilege", _on_relation, "SELECT INSERT UPDATE DELETE TRUNCATE REFERENCES TRIGGER")
_privilege_functions("has_any_column_privilege", _on_relation, "SELECT INSERT UPDATE REFERENCES")
_privilege_functions("has_column_privilege", _on_relation, "SELECT INSERT UPDATE REFERENCES", columns=1)
_privilege_functions("has_schema_privilege", _on_schema, "CREATE USAGE")
_privilege_functions("has_database_privilege", _on_database, "CREATE CONNECT TEMPORARY TEMP")
_privilege_functions("has_function_privilege", _on_function, "EXECUTE")
_privilege_functions("has_sequence_privilege", _on_anything, "USAGE SELECT UPDATE")
_privilege_functions("has_tablespace_privilege", _on_anything, "CREATE")
for _name in ("type", "language", "server", "foreign_data_wrapper"):
    _privilege_functions(f"has_{_name}_privilege", _on_anything, "USAGE")


def _has_role(asking: Asking, user: User, role: str, words: str) -> bool:
    return user.superuser or asking.user_named(role).name == user.name


_privilege_functions("pg_has_role", _has_role, "MEMBER USAGE SET")

_ACCESS = "STRUCT(grantor BIGINT, grantee BIGINT, privilege_type VARCHAR, is_grantable BOOLEAN)[]"


@function("aclexplode", takes=[TEXTS], gives=_ACCESS)
def _aclexplode(asking: Asking, items: list[str]) -> list[dict[str, object]]:
    """A row for each privilege of an access list. Everybody has the number 0."""
    rows: list[dict[str, object]] = []
    for item in items:
        user, granted, grantor = read_access(item)
        by, to = (user_oid(asking.user_named(name).id) if name else 0 for name in (grantor, user))
        rows += (
            {"grantor": by, "grantee": to, "privilege_type": privilege.value, "is_grantable": grantable}
            for privilege, grantable in granted
        )
    return rows
