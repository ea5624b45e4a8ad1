"""CREATE, DROP, ALTER and COMMENT: statements that change what exists. CREATE TABLE is read in `create_table`."""

from __future__ import annotations

from sqlglot.tokenizer_core import TokenType

from seiche.errors import FeatureNotSupported, SyntaxError_, nearest
from seiche.sql.grammar.access import alter_default_privileges, alter_user, create_user, named
from seiche.sql.grammar.alter_table import alter_columns
from seiche.sql.grammar.create_function import create_function
from seiche.sql.grammar.create_sink import create_sink
from seiche.sql.grammar.create_table import create_source, create_table
from seiche.sql.grammar.cursor import Cursor
from seiche.sql.grammar.jobs import alter_relation
from seiche.sql.grammar.secrets import alter_secret, create_secret
from seiche.sql.grammar.subscriptions import create_subscription
from seiche.sql.statements import (
    AlterOwner,
    AlterSystemSet,
    CommentOn,
    CreateDatabase,
    CreateIndex,
    CreateMaterializedView,
    CreateSchema,
    CreateView,
    Drop,
    IndexColumn,
    ObjectKind,
    ObjectName,
    Rename,
    SqlExpression,
    Statement,
)

_RENAMED = (
    ObjectKind.TABLE,
    ObjectKind.VIEW,
    ObjectKind.MATERIALIZED_VIEW,
    ObjectKind.INDEX,
    ObjectKind.SOURCE,
    ObjectKind.SINK,
    ObjectKind.SUBSCRIPTION,
    ObjectKind.SCHEMA,
    ObjectKind.DATABASE,
)


def create(cursor: Cursor) -> Statement:
    or_replace = cursor.accept("or", "replace")
    temporary = cursor.accept_temporary()
    if cursor.accept("view"):
        return _create_view(cursor, or_replace, temporary)
    if temporary:
        if or_replace or not cursor.accept("table"):
            raise cursor.unsupported(f"CREATE TEMPORARY {cursor.word().upper()}")
        return create_table(cursor, temporary=True)
    if cursor.accept("function"):
        return create_function(cursor, or_replace)
    if cursor.accept("aggregate"):
        return create_function(cursor, or_replace, aggregate=True)
    if or_replace:
        raise cursor.error(hint="Only views and functions can be replaced.")
    if cursor.accept("materialized", "view"):
        return _create_materialized_view(cursor)
    match cursor.word():
        case "table":
            cursor.index += 1
            return create_table(cursor)
        case "schema":
            cursor.index += 1
            return _create_schema(cursor)
        case "database":
            cursor.index += 1
            return _create_database(cursor)
        case "user" | "role":
            cursor.index += 1
            return create_user(cursor)
        case "index":
            cursor.index += 1
            return _create_index(cursor)
        case "subscription":
            cursor.index += 1
            return create_subscription(cursor)
        case "secret":
            cursor.index += 1
            return create_secret(cursor)
        case "sink":
            cursor.index += 1
            return create_sink(cursor)
        case "source":
            cursor.index += 1
            return create_source(cursor)
        case "unique" if cursor.word(1) == "index":
            raise cursor.unsupported("UNIQUE INDEX", hint="Declare a PRIMARY KEY on the table.")
        case "unlogged" as word:
            raise cursor.unsupported(f"CREATE {word.upper()}")
        case (
            "connection" | "type" | "sequence" | "extension" | "trigger" | "rule" | "procedure" | "domain"
        ) as word:  # fmt: skip
            raise cursor.unsupported(f"CREATE {word.upper()}")
        case word:
            raise cursor.error(hint=nearest(word, ("table", "materialized", "view", "index", "schema", "user")))


def _create_view(cursor: Cursor, or_replace: bool, temporary: bool) -> CreateView:
    if_not_exists = cursor.if_not_exists()
    name = cursor.object_name()
    columns = cursor.column_names()
    cursor.expect("as")
    return CreateView(name, columns, cursor.query(cursor.rest()), or_replace, if_not_exists, temporary)


def _create_materialized_view(cursor: Cursor) -> CreateMaterializedView:
    if_not_exists = cursor.if_not_exists()
    name = cursor.object_name()
    columns = cursor.column_names()
    options = cursor.options() if cursor.accept("with") else ()
    cursor.expect("as")
    query, emit = cursor.emitting_query(cursor.rest())
    return CreateMaterializedView(name, columns, query, if_not_exists, emit, options)


def _create_schema(cursor: Cursor) -> CreateSchema:
    if_not_exists = cursor.if_not_exists()
    if cursor.accept("authorization"):
        owner = cursor.user_name()
        return CreateSchema(ObjectName((owner,)), if_not_exists, owner)
    name = cursor.object_name()
    return CreateSchema(name, if_not_exists, cursor.user_name() if cursor.accept("authorization") else None)


def _create_database(cursor: Cursor) -> CreateDatabase:
    if_not_exists = cursor.if_not_exists()
    name = cursor.name()
    owner = None
    cursor.accept("with")
    if cursor.accept("owner"):
        cursor.accept_symbol(TokenType.EQ)
        owner = cursor.user_name()
    return CreateDatabase(name, if_not_exists, owner)


def _create_index(cursor: Cursor) -> CreateIndex:
    if_not_exists = cursor.if_not_exists()
    name = None if cursor.sees("on") else cursor.object_name()
    cursor.expect("on")
    table = cursor.object_name()
    if cursor.accept("using"):
        raise cursor.unsupported(f"index method {cursor.name()}", hint="Leave USING out: there is one kind of index.")
    columns = cursor.in_parentheses(lambda: _index_column(cursor))
    include = _include(cursor) if cursor.accept("include") else ()
    distributed_by: tuple[SqlExpression, ...] = ()
    if cursor.accept("distributed", "by"):
        distributed_by = cursor.in_parentheses(lambda: cursor.expression(cursor.at_comma))
    options = cursor.options() if cursor.accept("with") else ()
    return CreateIndex(name, table, columns, include, distributed_by, if_not_exists, options)


def _include(cursor: Cursor) -> tuple[str, ...]:
    if not cursor.sees_symbol(TokenType.L_PAREN):
        raise cursor.error()
    return cursor.column_names()


def _index_column(cursor: Cursor) -> IndexColumn:
    ends = cursor.at_word("asc", "desc", "nulls")
    expression = cursor.expression(lambda index: cursor.at_comma(index) or ends(index))
    descending = cursor.accept("desc")
    if not descending:
        cursor.accept("asc")
    nulls_first: bool | None = None
    if cursor.accept("nulls", "first"):
        nulls_first = True
    elif cursor.accept("nulls"):
        cursor.expect("last")
        nulls_first = False
    return IndexColumn(expression, descending, nulls_first)


def drop(cursor: Cursor) -> Drop:
    aggregate = cursor.accept("aggregate")
    kind = ObjectKind.FUNCTION if aggregate else cursor.kind()
    if_exists = cursor.accept("if", "exists")
    names = cursor.comma_separated(lambda: named(cursor, kind))
    cascade = cursor.accept("cascade")
    if not cascade:
        cursor.accept("restrict")
    return Drop(kind, names, if_exists, cascade, aggregate)


def alter(cursor: Cursor) -> Statement:
    if cursor.accept("system"):
        cursor.expect("set")
        name = ".".join(cursor.object_name().parts)
        return AlterSystemSet(name, cursor.setting())
    if cursor.accept("default", "privileges"):
        return alter_default_privileges(cursor)
    position = cursor.position()
    kind = cursor.kind()
    if kind is ObjectKind.USER:
        return alter_user(cursor)
    name_of = named(cursor, kind)
    if cursor.accept("owner", "to"):
        return AlterOwner(kind, name_of, cursor.user_name())
    if kind in _RENAMED and cursor.accept("rename", "to"):
        return Rename(kind, name_of, cursor.name())
    if kind is ObjectKind.SECRET and cursor.word() in ("with", "as"):
        return alter_secret(cursor, name_of)
    altered = alter_relation(cursor, kind, name_of) or alter_columns(cursor, kind, name_of)
    if altered is not None:
        return altered
    what = " ".join(filter(None, (cursor.word(), cursor.word(1) if cursor.sees("set") else ""))).upper()
    if not what:
        raise cursor.error()
    raise FeatureNotSupported(f"ALTER {kind.value.upper()} ... {what} is not supported", position=position)


def comment(cursor: Cursor) -> CommentOn:
    cursor.expect("on")
    if cursor.accept("column"):
        position = cursor.position()
        parts = [cursor.name()]
        while cursor.accept_symbol(TokenType.DOT):
            parts.append(cursor.name())
        if not 2 <= len(parts) <= 4:
            raise SyntaxError_(
                "column name must be qualified", hint="Write COMMENT ON COLUMN table.column.", position=position
            )
        return CommentOn(ObjectKind.TABLE, ObjectName(tuple(parts[:-1])), parts[-1], _comment_text(cursor))
    kind = cursor.kind()
    return CommentOn(kind, cursor.object_name(), None, _comment_text(cursor))


def _comment_text(cursor: Cursor) -> str | None:
    cursor.expect("is")
    return None if cursor.accept("null") else cursor.string()
