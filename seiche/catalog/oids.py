"""Numbers under which PostgreSQL's clients know our objects: stable, and derived from the objects' own ids.

    oid = 16384 + id            databases, schemas, relations, functions
    oid = id - 2                users, so that root is 1, as in RisingWave
    2^28 ranges above 2^30      what belongs to a relation and has no id: key, constraint, default, rule

PostgreSQL's own numbers are all below 16384, so that the two never meet. Users have numbers of their own there, too.
"""

from __future__ import annotations

from seiche.catalog.catalog import Catalog

FIRST_USER_OID = 16384

ROOT_ID = 3  # of the first user, behind the first database and its schema

PG_CATALOG_OID = 11
INFORMATION_SCHEMA_OID = 13000
RW_CATALOG_OID = 13001
FIRST_RW_VIEW_OID = 15000

PG_CLASS_OID = 1259
PG_DATABASE_OID = 1262
PG_NAMESPACE_OID = 2615
PG_PROC_OID = 1255
PG_REWRITE_OID = 2618

HEAP, BTREE = 2, 403  # access methods
DEFAULT_TABLESPACE = 1663

_RANGE = 1 << 28
_KEY_INDEXES, _CONSTRAINTS, _DEFAULTS, _RULES = (_RANGE * number for number in (4, 5, 6, 7))
_DEFAULTS_PER_RELATION = 64


def oid_of(id: int) -> int:
    return FIRST_USER_OID + id


def user_oid(id: int) -> int:
    return id - ROOT_ID + 1


def id_of(oid: int) -> int | None:
    """The id behind an oid of an object; None for PostgreSQL's own and for what has no id."""
    return oid - FIRST_USER_OID if FIRST_USER_OID < oid < _KEY_INDEXES else None


def key_index_oid(id: int) -> int:
    """The index of a table's primary key."""
    return _KEY_INDEXES + id


def key_constraint_oid(id: int) -> int:
    return _CONSTRAINTS + id


def default_oid(id: int, position: int) -> int:
    return _DEFAULTS + (id * _DEFAULTS_PER_RELATION + position) % _RANGE


def rule_oid(id: int) -> int:
    """The rule that makes a view of a relation."""
    return _RULES + id


def keyed_table(oid: int) -> int | None:
    """The id of the table whose key's index or constraint has this oid."""
    for start in (_KEY_INDEXES, _CONSTRAINTS):
        if start <= oid < start + _RANGE:
            return oid - start
    return None


def schema_oids(catalog: Catalog) -> dict[str, int]:
    return {it.name: oid_of(it.id) for it in catalog.home_schemas}


def user_oids(catalog: Catalog) -> dict[str, int]:
    return {it.name: user_oid(it.id) for it in catalog.users}
