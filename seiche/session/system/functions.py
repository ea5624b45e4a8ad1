"""PostgreSQL's functions about the system, in Python.

Each is registered for one number of arguments with the types of its parameters and of its result, as DuckDB spells
them. What takes either a name or a number in PostgreSQL takes text here, where a number is its digits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from seiche.catalog.definitions import index_columns, index_definition, key_definition, query_of
from seiche.catalog.facts import moment
from seiche.catalog.objects import CatalogObject, ObjectKind
from seiche.catalog.oids import id_of, user_oid
from seiche.catalog.postgres import types
from seiche.catalog.temporary import is_temporary
from seiche.errors import InsufficientPrivilege, UndefinedFunction, UndefinedObject
from seiche.session.system.state import Asking
from seiche.sql.functions.system import VERSION
from seiche.sql.statements import quote_name

TEXT, NUMBER, INT, BOOL, TEXTS = "VARCHAR", "BIGINT", "INTEGER", "BOOLEAN", "VARCHAR[]"
MOMENT = "TIMESTAMP WITH TIME ZONE"


@dataclass(frozen=True, slots=True)
class Function:
    """`strict`: gives NULL when an argument is NULL, without being asked."""

    name: str
    takes: tuple[str, ...]
    gives: str
    answer: Callable[..., Any]
    strict: bool = True


FUNCTIONS: dict[tuple[str, int], Function] = {}


def function(
    *names: str, takes: Iterable[str] = (), gives: str, strict: bool = True
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    parameters = tuple(takes)

    def register(answer: Callable[..., Any]) -> Callable[..., Any]:
        for name in names:
            FUNCTIONS[name, len(parameters)] = Function(name, parameters, gives, answer, strict)
        return answer

    return register


def always(value: Any, gives: str, *names: str, takes: Iterable[str] = ()) -> None:
    """Functions about what does not exist here, and so have one answer."""
    function(*names, takes=takes, gives=gives, strict=False)(lambda asking, *arguments: value)


# --- the session and the server ----------------------------------------------------------------------


@function("version", gives=TEXT)
def _version(asking: Asking) -> str:
    return VERSION


@function("current_database", "current_catalog", gives=TEXT)
def _current_database(asking: Asking) -> str:
    return asking.facts.database


@function("current_schema", gives=TEXT)
def _current_schema(asking: Asking) -> str | None:
    return next(iter(asking.existing_path()), None)


@function("current_schemas", takes=[BOOL], gives=TEXTS)
def _current_schemas(asking: Asking, with_implicit: bool) -> list[str]:
    if not with_implicit:
        return list(asking.existing_path())
    path = asking.existing_path(temporary=True)
    first = [name for name in path[:1] if is_temporary(name)]
    return [*first, "pg_catalog", *path[len(first) :]]


@function("current_user", "session_user", "user", "current_role", gives=TEXT)
def _current_user(asking: Asking) -> str:
    return asking.user.name


@function("pg_backend_pid", gives=INT)
def _backend_pid(asking: Asking) -> int:
    return asking.pid


@function("current_setting", takes=[TEXT], gives=TEXT)
def _current_setting(asking: Asking, name: str) -> str:
    return asking.variable(name)


@function("current_setting", takes=[TEXT, BOOL], gives=TEXT)
def _current_setting_or_null(asking: Asking, name: str, missing_ok: bool) -> str | None:
    try:
        return asking.variable(name)
    except UndefinedObject:
        if missing_ok:
            return None
        raise


@function("set_config", takes=[TEXT, TEXT, BOOL], gives=TEXT)
def _set_config(asking: Asking, name: str, value: str, is_local: bool) -> str:
    asking.changes[name] = value
    return value


@function("pg_postmaster_start_time", gives=MOMENT)
def _server_start(asking: Asking) -> datetime:
    return moment(asking.server_started_ms)


@function("rw_cluster_id", gives=TEXT)
def _cluster_id(asking: Asking) -> str:
    return asking.facts.cluster_id


@function("pg_sleep", takes=["DOUBLE"], gives=TEXT)
def _slept(asking: Asking, seconds: float) -> str:
    """Nothing, as PostgreSQL's void is shown; the session has waited before."""
    return ""


@function("pg_cancel_backend", takes=[INT], gives=BOOL)
def _cancel(asking: Asking, pid: int) -> bool:
    return _signalled(asking, pid, ends=False)


@function("pg_terminate_backend", takes=[INT], gives=BOOL)
def _terminate(asking: Asking, pid: int) -> bool:
    return _signalled(asking, pid, ends=True)


def _signalled(asking: Asking, pid: int, *, ends: bool) -> bool:
    """Whether there was such a session. Those of others are a superuser's to stop."""
    found = next((it for it in asking.facts.sessions if it.pid == pid), None)
    if found is None:
        return False
    if found.user != asking.user.name and not asking.user.superuser:
        raise InsufficientPrivilege("must be a superuser to stop what another user runs")
    asking.signal(pid, ends)
    return True


@function("pg_encoding_to_char", takes=[INT], gives=TEXT)
def _encoding_name(asking: Asking, number: int) -> str:
    return "UTF8" if number == 6 else ""


@function("pg_char_to_encoding", takes=[TEXT], gives=INT)
def _encoding_number(asking: Asking, name: str) -> int:
    return 6 if name.upper().replace("-", "") == "UTF8" else -1


@function("getdatabaseencoding", "pg_client_encoding", gives=TEXT)
def _encoding(asking: Asking) -> str:
    return "UTF8"


always(False, BOOL, "pg_is_in_recovery", "pg_is_in_backup")
always(None, TEXT, "inet_client_addr", "inet_server_addr")
always(None, INT, "inet_client_port", "inet_server_port")
always(0, NUMBER, "pg_my_temp_schema", "txid_current")
always(False, BOOL, "pg_is_other_temp_schema", takes=[NUMBER])
always(0, NUMBER, "pg_stat_get_numscans", "pg_stat_get_live_tuples", "pg_stat_get_dead_tuples", takes=[NUMBER])
always(None, NUMBER, "pg_relation_filenode", takes=[TEXT])
always("", TEXT, "pg_tablespace_location", takes=[NUMBER])


# --- types and definitions ---------------------------------------------------------------------------


@function("format_type", takes=[NUMBER, INT], gives=TEXT, strict=False)
def _format_type(asking: Asking, oid: int | None, modifier: int | None) -> str | None:
    return types.format_type(oid, modifier)


@function("pg_get_userbyid", takes=[NUMBER], gives=TEXT)
def _user_name(asking: Asking, oid: int) -> str:
    found = asking.user_at(oid)
    return found.name if found is not None else f"unknown (OID={oid})"


@function("pg_get_expr", takes=[TEXT, NUMBER], gives=TEXT)
def _expression(asking: Asking, expression: str, relation: int) -> str:
    return expression


@function("pg_get_expr", takes=[TEXT, NUMBER, BOOL], gives=TEXT)
def _pretty_expression(asking: Asking, expression: str, relation: int, pretty: bool) -> str:
    return expression


def _view_text(asking: Asking, view: str, *_: Any) -> str | None:
    item = asking.object_at(asking.relation_of(view))
    if item is None or item.kind not in (ObjectKind.VIEW, ObjectKind.MATERIALIZED_VIEW):
        return None
    return f"{query_of(item)};"


function("pg_get_viewdef", takes=[TEXT], gives=TEXT)(_view_text)
function("pg_get_viewdef", takes=[TEXT, TEXT], gives=TEXT)(_view_text)


def _index_text(asking: Asking, oid: int, column: int = 0, pretty: bool = False) -> str | None:
    table, index = _indexed(asking, oid)
    if table is None:
        return None
    if column == 0:
        hidden = pretty and bool(asking.is_visible(oid))
        return index_definition(table, index, qualified=not hidden)
    columns = index_columns(table, index)
    return quote_name(columns[column - 1]) if 1 <= column <= len(columns) else ""


function("pg_get_indexdef", takes=[NUMBER], gives=TEXT)(_index_text)
function("pg_get_indexdef", takes=[NUMBER, INT, BOOL], gives=TEXT)(_index_text)


def _indexed(asking: Asking, oid: int) -> tuple[CatalogObject | None, CatalogObject | None]:
    """The table of an index, and the index unless it is the primary key's."""
    table = asking.keyed_table_at(oid)
    if table is not None:
        return table, None
    index = asking.object_at(oid)
    if index is None or index.kind is not ObjectKind.INDEX:
        return None, None
    return next((asking.catalog.get(it) for it in sorted(index.dependencies)), None), index


def _constraint_text(asking: Asking, oid: int, pretty: bool = False) -> str | None:
    table = asking.keyed_table_at(oid)
    return key_definition(table) if table is not None else None


function("pg_get_constraintdef", takes=[NUMBER], gives=TEXT)(_constraint_text)
function("pg_get_constraintdef", takes=[NUMBER, BOOL], gives=TEXT)(_constraint_text)


def _function_at(asking: Asking, oid: int) -> CatalogObject | None:
    item = asking.object_at(oid)
    return item if item is not None and item.kind is ObjectKind.FUNCTION else None


@function("pg_get_function_arguments", "pg_get_function_identity_arguments", takes=[NUMBER], gives=TEXT)
def _function_arguments(asking: Asking, oid: int) -> str | None:
    found = _function_at(asking, oid)
    return ", ".join(f"{it.name} {it.type}".strip() for it in found.columns[:-1]) if found is not None else None


@function("pg_get_function_result", takes=[NUMBER], gives=TEXT)
def _function_result(asking: Asking, oid: int) -> str | None:
    found = _function_at(asking, oid)
    return str(found.columns[-1].type) if found is not None and found.columns else None


@function("pg_get_functiondef", takes=[NUMBER], gives=TEXT)
def _function_text(asking: Asking, oid: int) -> str | None:
    found = _function_at(asking, oid)
    return found.definition if found is not None else None


for _arity in (1, 2):
    always(
        None,
        TEXT,
        "pg_get_ruledef",
        "pg_get_triggerdef",
        "pg_get_statisticsobjdef",
        "pg_get_statisticsobjdef_columns",
        "pg_get_partkeydef",
        "pg_get_partition_constraintdef",
        "pg_get_function_sqlbody",
        takes=[NUMBER, BOOL][:_arity],
    )
always(None, TEXT, "pg_get_serial_sequence", takes=[TEXT, TEXT])


# --- names -------------------------------------------------------------------------------------------


@function("pg_table_is_visible", takes=[NUMBER], gives=BOOL)
def _is_visible(asking: Asking, oid: int) -> bool | None:
    return asking.is_visible(oid)


@function("pg_function_is_visible", takes=[NUMBER], gives=BOOL)
def _function_is_visible(asking: Asking, oid: int) -> bool | None:
    found = _function_at(asking, oid)
    return found.schema in asking.search_path if found is not None else None


always(
    True,
    BOOL,
    "pg_type_is_visible",
    "pg_collation_is_visible",
    "pg_operator_is_visible",
    "pg_opclass_is_visible",
    "pg_opfamily_is_visible",
    "pg_conversion_is_visible",
    "pg_statistics_obj_is_visible",
    "pg_ts_config_is_visible",
    "pg_ts_dict_is_visible",
    "pg_ts_parser_is_visible",
    "pg_ts_template_is_visible",
    takes=[NUMBER],
)


@function("regclass_in", takes=[TEXT], gives=NUMBER)
def _regclass_in(asking: Asking, text: str) -> int:
    return asking.relation_of(text)


@function("regclass_out", takes=[NUMBER], gives=TEXT)
def _regclass_out(asking: Asking, oid: int) -> str:
    named = asking.relation_name(oid)
    if named is None:
        return str(oid) if oid else "-"
    schema, name = named
    return quote_name(name) if asking.is_visible(oid) else f"{quote_name(schema)}.{quote_name(name)}"


@function("regtype_in", takes=[TEXT], gives=NUMBER)
def _regtype_in(asking: Asking, text: str) -> int:
    found = int(text) if text.isdecimal() else types.find_type(text.lower())
    if found is None:
        raise UndefinedObject(f'type "{text}" does not exist')
    return found


@function("regtype_out", takes=[NUMBER], gives=TEXT)
def _regtype_out(asking: Asking, oid: int) -> str | None:
    shown = types.format_type(oid)
    return str(oid) if shown == "???" else shown


@function("regnamespace_in", takes=[TEXT], gives=NUMBER)
def _regnamespace_in(asking: Asking, text: str) -> int:
    return asking.schema_of(text)


@function("regnamespace_out", takes=[NUMBER], gives=TEXT)
def _regnamespace_out(asking: Asking, oid: int) -> str:
    return quote_name(asking.schema_at(oid) or str(oid))


@function("regrole_in", takes=[TEXT], gives=NUMBER)
def _regrole_in(asking: Asking, text: str) -> int:
    return int(text) if text.isdecimal() else user_oid(asking.user_named(text).id)


@function("regrole_out", takes=[NUMBER], gives=TEXT)
def _regrole_out(asking: Asking, oid: int) -> str:
    found = asking.user_at(oid)
    return quote_name(found.name) if found is not None else str(oid)


@function("to_regclass", takes=[TEXT], gives=NUMBER)
def _to_regclass(asking: Asking, text: str) -> int | None:
    return asking.relation_oid(text)


@function("to_regtype", takes=[TEXT], gives=NUMBER)
def _to_regtype(asking: Asking, text: str) -> int | None:
    return types.find_type(text.lower())


@function("to_regnamespace", takes=[TEXT], gives=NUMBER)
def _to_regnamespace(asking: Asking, text: str) -> int | None:
    return asking.schema_oid(text)


@function("quote_ident", takes=[TEXT], gives=TEXT)
def _quote_ident(asking: Asking, name: str) -> str:
    return quote_name(name)


@function("quote_literal", takes=[TEXT], gives=TEXT)
def _quote_literal(asking: Asking, value: str) -> str:
    quoted = "'" + value.replace("'", "''").replace("\\", "\\\\") + "'"
    return f"E{quoted}" if "\\" in value else quoted


@function("quote_nullable", takes=[TEXT], gives=TEXT, strict=False)
def _quote_nullable(asking: Asking, value: str | None) -> str:
    return "NULL" if value is None else str(_quote_literal(asking, value))


# --- comments ----------------------------------------------------------------------------------------


def _comment(asking: Asking, oid: int) -> str | None:
    id_ = id_of(oid)
    return asking.catalog.comment(id_) if id_ is not None else None


@function("obj_description", takes=[NUMBER], gives=TEXT)
def _description(asking: Asking, oid: int) -> str | None:
    return _comment(asking, oid)


@function("obj_description", takes=[NUMBER, TEXT], gives=TEXT)
def _description_in(asking: Asking, oid: int, catalog: str) -> str | None:
    item = asking.object_at(oid)
    if item is not None:
        home = "pg_proc" if item.kind is ObjectKind.FUNCTION else "pg_class"
    else:
        home = "pg_namespace"
    return _comment(asking, oid) if catalog == home else None


@function("shobj_description", takes=[NUMBER, TEXT], gives=TEXT)
def _shared_description(asking: Asking, oid: int, catalog: str) -> str | None:
    return _comment(asking, oid) if catalog == "pg_database" else None


@function("col_description", takes=[NUMBER, INT], gives=TEXT)
def _column_description(asking: Asking, oid: int, number: int) -> str | None:
    item = asking.object_at(oid)
    if item is None or not 0 < number <= len(item.columns):
        return None
    return asking.catalog.comment(item.id, item.columns[number - 1].name)


# --- sizes -------------------------------------------------------------------------------------------


def _size(asking: Asking, oid: int, with_state: bool) -> int | None:
    item = asking.object_at(oid)
    if item is None:
        return 0 if asking.relation_name(oid) is not None else None
    sizes = asking.facts.sizes
    inside = asking.catalog.children(item.id) if with_state else ()
    return sizes.get(item.id, 0) + sum(sizes.get(it.id, 0) for it in inside)


@function("pg_relation_size", "pg_table_size", takes=[TEXT], gives=NUMBER)
def _relation_size(asking: Asking, relation: str) -> int | None:
    return _size(asking, asking.relation_of(relation), with_state=False)


@function("pg_relation_size", takes=[TEXT, TEXT], gives=NUMBER)
def _fork_size(asking: Asking, relation: str, fork: str) -> int | None:
    return _size(asking, asking.relation_of(relation), with_state=False) if fork == "main" else 0


@function("pg_total_relation_size", takes=[TEXT], gives=NUMBER)
def _total_size(asking: Asking, relation: str) -> int | None:
    """With the internal relations that a view keeps for itself, and with the indexes."""
    size = _size(asking, asking.relation_of(relation), with_state=True)
    return size + _indexes_size(asking, relation) if size is not None else None


@function("pg_indexes_size", takes=[TEXT], gives=NUMBER)
def _indexes_size(asking: Asking, relation: str) -> int:
    item = asking.object_at(asking.relation_of(relation))
    indexes = asking.catalog.objects(ObjectKind.INDEX) if item is not None else ()
    return sum(asking.facts.sizes.get(it.id, 0) for it in indexes if item is not None and item.id in it.dependencies)


@function("pg_database_size", "pg_tablespace_size", takes=[TEXT], gives=NUMBER)
def _database_size(asking: Asking, name: str) -> int:
    return sum(asking.facts.sizes.values())


@function("pg_size_pretty", takes=[NUMBER], gives=TEXT)
def _pretty_size(asking: Asking, size: int) -> str:
    units = ("bytes", "kB", "MB", "GB", "TB", "PB")
    amount, unit = abs(size), 0
    while amount >= 10240 and unit < len(units) - 1:
        amount, unit = (amount + 512) // 1024, unit + 1
    return f"{'-' if size < 0 else ''}{amount} {units[unit]}"


always(True, BOOL, "pg_relation_is_publishable", takes=[TEXT])


def find_function(name: str, arity: int) -> Function | None:
    """The function of that name; UndefinedFunction where it exists for other numbers of arguments only."""
    found = FUNCTIONS.get((name, arity))
    if found is None and any(other == name for other, _ in FUNCTIONS):
        raise UndefinedFunction(f"function {name} does not take {arity} arguments")
    return found
