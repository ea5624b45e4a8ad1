"""CREATE TABLE and CREATE SOURCE: columns, keys, watermarks, versions and conflict rules, checked against each other.

What contradicts itself (two keys, a watermark on no column) is refused here; what contradicts the catalog is not
known here.
"""

from __future__ import annotations

from functools import partial

from sqlglot.tokenizer_core import TokenType

from seiche.errors import (
    DuplicateColumn,
    FeatureNotSupported,
    InvalidDefinition,
    InvalidTable,
    SyntaxError_,
    UndefinedColumn,
    nearest,
)
from seiche.sql.collations import refuse_collation
from seiche.sql.grammar.cursor import Cursor
from seiche.sql.grammar.type_names import read_type
from seiche.sql.statements import (
    ColumnDef,
    ConflictRule,
    CreateSource,
    CreateTable,
    CreateTableAs,
    Encoding,
    Like,
    ObjectName,
    Options,
    SqlExpression,
    Watermark,
)
from seiche.sql.tokens import CLOSING, QUOTED
from seiche.types import Kind


def create_table(cursor: Cursor, *, temporary: bool = False) -> CreateTable | CreateTableAs:
    if_not_exists = cursor.if_not_exists()
    name = cursor.object_name()
    body: _TableBody | None = None
    renamed: tuple[str, ...] = ()
    if cursor.sees_symbol(TokenType.L_PAREN):
        if cursor.sees_symbol(TokenType.R_PAREN, 1):
            body = _TableBody(name)
            cursor.index += 2
        elif cursor.sees_symbol(TokenType.COMMA, 2) or cursor.sees_symbol(TokenType.R_PAREN, 2):
            renamed = cursor.column_names()
        else:
            body = _TableBody(name)
            cursor.in_parentheses(partial(_table_item, cursor, body), comma_may_end=True)
    append_only = False
    on_conflict: ConflictRule | None = None
    options: Options = ()
    versions: tuple[str, ...] = ()
    position = 0
    while True:
        if cursor.accept("append", "only"):
            append_only = True
        elif cursor.accept("on", "conflict"):
            on_conflict = _conflict_rule(cursor)
        elif temporary and cursor.accept("on", "commit"):
            if not cursor.accept("preserve", "rows"):
                raise cursor.unsupported("ON COMMIT of anything but PRESERVE ROWS", hint="Drop the table yourself.")
        elif cursor.sees("with", "version"):
            position = cursor.position()
            cursor.index += 2
            versions = _version_columns(cursor)
        elif cursor.accept("with"):
            options = cursor.options()
        else:
            break
    written = encoding(cursor)
    if cursor.word() in ("include", "from", "engine"):
        raise cursor.unsupported(f"CREATE TABLE with {cursor.word().upper()}")
    if body is None and not renamed and cursor.peek() is None:
        body = _TableBody(name)  # a table without columns
    if body is None:
        cursor.expect("as")
        if versions:
            raise cursor.unsupported("WITH VERSION COLUMN of a table made from a query")
        query = cursor.query(cursor.rest())
        return CreateTableAs(name, renamed, query, if_not_exists, append_only, on_conflict, options, temporary)
    columns, primary_key, watermarks = body.checked()
    if not body.likes:
        _check_versions(versions, columns, primary_key, on_conflict, position)
    elif versions:
        raise cursor.unsupported("WITH VERSION COLUMN of a table LIKE another")
    return CreateTable(
        name,
        columns,
        primary_key,
        watermarks,
        if_not_exists,
        append_only,
        on_conflict,
        options,
        versions,
        temporary,
        encoding=written,
        likes=tuple(body.likes),
    )


def create_source(cursor: Cursor) -> CreateSource:
    """CREATE SOURCE [IF NOT EXISTS] name (column, …) WITH (connector = …) [FORMAT … ENCODE …]."""
    if_not_exists = cursor.if_not_exists()
    name = cursor.object_name()
    body = _TableBody(name)
    if cursor.sees_symbol(TokenType.L_PAREN):
        cursor.in_parentheses(partial(_table_item, cursor, body), comma_may_end=True)
    if cursor.word() == "include":
        raise cursor.unsupported("CREATE SOURCE with INCLUDE")
    if body.likes:
        raise cursor.unsupported("CREATE SOURCE with LIKE")
    cursor.expect("with")
    options = cursor.options()
    written = encoding(cursor)
    columns, primary_key, watermarks = body.checked()
    if any(not column.nullable for column in columns):
        raise InvalidDefinition(
            f'columns of source "{name}" cannot be NOT NULL',
            detail="Invalid input syntax: NOT NULL constraint is not supported in source schema.",
            hint="Filter the rows in the view that reads them.",
        )
    if primary_key:
        raise FeatureNotSupported(f'source "{name}" cannot have a primary key', hint="Make it a table.")
    return CreateSource(
        CreateTable(name, columns, (), watermarks, if_not_exists, append_only=True, options=options, encoding=written)
    )


def encoding(cursor: Cursor) -> Encoding | None:
    """FORMAT … ENCODE …, or the older ROW FORMAT …, where one of them comes next."""
    if cursor.accept("row", "format"):
        return Encoding("PLAIN", cursor.name().upper())
    if not cursor.accept("format"):
        return None
    format_ = cursor.name().upper()
    cursor.expect("encode")
    encode = cursor.name().upper()
    if cursor.sees_symbol(TokenType.L_PAREN):
        raise cursor.unsupported("options of an encoding")
    return Encoding(format_, encode)


def _version_columns(cursor: Cursor) -> tuple[str, ...]:
    cursor.expect("column")
    if not cursor.sees_symbol(TokenType.L_PAREN):
        raise cursor.error()
    return cursor.column_names()


_UNORDERED = (Kind.BOOLEAN, Kind.JSONB, Kind.STRUCT, Kind.ARRAY, Kind.MAP, Kind.INTERVAL)


def _check_versions(
    versions: tuple[str, ...],
    columns: tuple[ColumnDef, ...],
    primary_key: tuple[str, ...],
    on_conflict: ConflictRule | None,
    position: int,
) -> None:
    types = {column.name: column.type for column in columns}
    for name in versions:
        if name not in types:
            raise UndefinedColumn(
                f'version column "{name}" does not exist',
                detail=f"Version column {name} not found among the columns of the table.",
                hint=nearest(name, types),
                position=position,
            )
        if types[name].kind in _UNORDERED:
            raise InvalidDefinition(
                f'column "{name}" of type {types[name]} cannot be a version column',
                detail=f"Version column {name} must be of a comparable data type.",
                position=position,
            )
    if versions and on_conflict is ConflictRule.IGNORE:
        raise InvalidDefinition(
            "a table that ignores rows with a known key has no use for versions",
            detail="The with version column syntax cannot be used with the ignore behavior of on conflict.",
            position=position,
        )
    if versions and not primary_key:
        raise InvalidDefinition("a table with a version column needs a primary key", position=position)


def _conflict_rule(cursor: Cursor) -> ConflictRule:
    if cursor.accept("overwrite"):
        return ConflictRule.OVERWRITE
    if cursor.accept("ignore") or cursor.accept("do", "nothing"):
        return ConflictRule.IGNORE
    if cursor.accept("do", "update"):
        if cursor.accept("full"):
            return ConflictRule.OVERWRITE
        cursor.expect("if", "not", "null")
        return ConflictRule.UPDATE_IF_NOT_NULL
    raise cursor.error(hint="Write ON CONFLICT OVERWRITE, IGNORE, DO UPDATE FULL or DO UPDATE IF NOT NULL.")


def _table_item(cursor: Cursor, body: _TableBody) -> None:
    position = cursor.position()
    if cursor.accept("constraint"):
        cursor.name()
    if cursor.accept("like"):
        body.add_like(cursor.object_name(), _including(cursor))
    elif cursor.accept("primary key"):
        body.add_key(_key_columns(cursor), position)
    elif cursor.sees("watermark", "for"):
        cursor.index += 2
        column = cursor.name()
        cursor.expect("as")
        body.watermarks.append((watermark_of(cursor, column), position))
    elif cursor.word() in ("unique", "check", "foreign key", "exclude"):
        raise cursor.unsupported(f"{cursor.word().upper()} constraint")
    elif cursor.sees_symbol(TokenType.STAR):
        raise cursor.unsupported("a column list taken from a connector")
    else:
        _column(cursor, body)


_LIKE_OPTIONS = frozenset(
    (
        "comments", "compression", "constraints", "defaults", "generated", "identity", "indexes", "statistics",
        "storage",
    )
)  # fmt: skip


def _including(cursor: Cursor) -> frozenset[str]:
    """INCLUDING and EXCLUDING after LIKE; a later one overrides those before it."""
    found: frozenset[str] = frozenset()
    while (word := cursor.word()) in ("including", "excluding"):
        cursor.index += 1
        named = cursor.word()
        if named != "all" and named not in _LIKE_OPTIONS:
            raise cursor.error(hint=nearest(named, sorted(_LIKE_OPTIONS)))
        cursor.index += 1
        meant = _LIKE_OPTIONS if named == "all" else frozenset({named})
        found = found | meant if word == "including" else found - meant
    return found


def watermark_of(cursor: Cursor, column: str) -> Watermark:
    """What follows WATERMARK FOR <column> AS."""
    at_ttl = cursor.at_word("with")
    expression = cursor.expression(lambda index: cursor.at_comma(index) or at_ttl(index))
    return Watermark(column, expression, cursor.accept("with", "ttl"))


def _key_columns(cursor: Cursor) -> tuple[str, ...]:
    if not cursor.sees_symbol(TokenType.L_PAREN):
        raise cursor.error()
    return cursor.column_names()


def column_definition(cursor: Cursor, table: ObjectName) -> tuple[ColumnDef, bool]:
    """A column that is added to a table, and whether it says that it is the primary key."""
    body = _TableBody(table)
    _column(cursor, body)
    (column,), key, _ = body.checked()
    return column, bool(key)


def _column(cursor: Cursor, body: _TableBody) -> None:
    position = cursor.position()
    name = cursor.user_name()  # RisingWave takes USER for a column's name too
    type_ = read_type(cursor)
    nullable: bool | None = None
    default: SqlExpression | None = None
    generated: SqlExpression | None = None
    while (clause := cursor.peek()) is not None and clause.token_type not in (
        TokenType.COMMA,
        TokenType.R_PAREN,
    ):
        here = cursor.position()
        if cursor.accept("constraint"):
            cursor.name()
        elif cursor.sees("not", "null") or cursor.sees("null"):
            wanted = cursor.accept("null")
            if not wanted:
                cursor.expect("not", "null")
            if nullable not in (None, wanted):
                raise SyntaxError_(
                    f'conflicting NULL/NOT NULL declarations for column "{name}" of table "{body.name}"',
                    position=here,
                )
            nullable = wanted
        elif cursor.accept("primary key"):
            body.add_key((name,), here)
        elif default is None and cursor.accept("default"):
            default = cursor.expression(partial(_ends_column_expression, cursor))
        elif generated is None and cursor.accept("generated", "always", "as"):
            generated = cursor.expression(partial(_ends_column_expression, cursor))
            cursor.accept("stored")
        elif generated is None and cursor.accept("as"):
            generated = cursor.expression(partial(_ends_column_expression, cursor))
        elif cursor.accept("collate"):
            refuse_collation(cursor.name(), type_, here)
        elif cursor.word() in ("unique", "check", "references"):
            raise cursor.unsupported(f"{cursor.word().upper()} on a column")
        else:
            raise cursor.error()
    if default is not None and generated is not None:
        raise SyntaxError_(
            f'both default and generation expression specified for column "{name}" of table "{body.name}"',
            position=position,
        )
    body.add_column(ColumnDef(name, type_, nullable is not False, default, generated), position)


def _ends_column_expression(cursor: Cursor, index: int) -> bool:
    """Whether the token ends the DEFAULT or AS expression under the cursor and starts another clause."""
    if cursor.at_comma(index):
        return True
    if index == cursor.index:
        return False
    ahead = index - cursor.index
    word = cursor.word(ahead)
    before = cursor.word(ahead - 1)
    if word == "not":
        return cursor.word(ahead + 1) == "null" and before != "is"
    if word == "null":
        previous = cursor.tokens[index - 1]
        operand = previous.token_type in QUOTED | CLOSING
        return operand or (before != "" and before not in ("not", "is", "and", "or", "from", "then", "else"))
    return word in (
        "primary key",
        "constraint",
        "unique",
        "check",
        "references",
        "generated",
        "stored",
        "default",
        "as",
    )


class _TableBody:
    """What the parentheses of CREATE TABLE declare, gathered item by item and checked at the end."""

    def __init__(self, name: ObjectName) -> None:
        self.name = name
        self.watermarks: list[tuple[Watermark, int]] = []
        self.likes: list[Like] = []
        self._columns: dict[str, ColumnDef] = {}
        self._key: tuple[str, ...] = ()
        self._key_position = 0

    def add_column(self, column: ColumnDef, position: int) -> None:
        if column.name in self._columns:
            raise DuplicateColumn(f'column "{column.name}" specified more than once', position=position)
        self._columns[column.name] = column

    def add_like(self, table: ObjectName, including: frozenset[str]) -> None:
        self.likes.append(Like(table, len(self._columns), including))

    def add_key(self, columns: tuple[str, ...], position: int) -> None:
        if self._key:
            raise InvalidTable(
                f'multiple primary keys for table "{self.name}" are not allowed',
                hint="Write PRIMARY KEY (first, second) once for a key of several columns.",
                position=position,
            )
        self._key, self._key_position = columns, position

    def checked(self) -> tuple[tuple[ColumnDef, ...], tuple[str, ...], tuple[Watermark, ...]]:
        """The columns, the key and the watermarks, once every name in them is known to be a column. Those of a table
        LIKE another are not known here."""
        mentioned = [(name, "key", self._key_position) for name in self._key]
        mentioned += [(watermark.column, "watermark", position) for watermark, position in self.watermarks]
        for name, where, position in mentioned:
            if name not in self._columns and not self.likes:
                raise UndefinedColumn(
                    f'column "{name}" named in {where} does not exist',
                    hint=nearest(name, self._columns),
                    position=position,
                )
        return tuple(self._columns.values()), self._key, tuple(watermark for watermark, _ in self.watermarks)
