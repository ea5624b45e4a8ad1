"""What clients say besides their statements: cursors, savepoints, prepared statements they no longer need, COPY."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from seiche.errors import FeatureNotSupported, InvalidParameter, SyntaxError_, nearest
from seiche.sql.grammar.cursor import Cursor
from seiche.sql.grammar.subscriptions import declare_subscription_cursor
from seiche.sql.statements import (
    CloseCursor,
    CopyForm,
    CopyFormat,
    CopyFrom,
    CopyTo,
    Deallocate,
    DeclareCursor,
    DeclareSubscriptionCursor,
    Discard,
    FetchCursor,
    ForcedColumns,
    MoveCursor,
    ObjectName,
    ReleaseSavepoint,
    Savepoint,
    SqlQuery,
    Unlisten,
)


def declare(cursor: Cursor) -> DeclareCursor | DeclareSubscriptionCursor:
    name = cursor.name()
    if cursor.accept("subscription"):
        return declare_subscription_cursor(cursor, name)
    if cursor.accept("binary"):
        raise cursor.unsupported("DECLARE BINARY")
    cursor.accept("insensitive") or cursor.accept("asensitive")
    if not cursor.accept("no", "scroll") and cursor.sees("scroll"):
        raise cursor.unsupported("DECLARE SCROLL", hint="Rows are fetched in one direction.")
    cursor.expect("cursor")
    hold = cursor.accept("with", "hold")
    if not hold:
        cursor.accept("without", "hold")
    cursor.expect("for")
    return DeclareCursor(name, cursor.query(cursor.rest()), hold)


def fetch(cursor: Cursor) -> FetchCursor:
    """FETCH [NEXT | FORWARD [n | ALL] | n | ALL] [FROM | IN] name [WITH (timeout = …)]"""
    name, count = _rows_of_cursor(cursor, "FETCH")
    return FetchCursor(name, count, cursor.options() if cursor.accept("with") else ())


def move(cursor: Cursor) -> MoveCursor:
    """MOVE [NEXT | FORWARD [n | ALL] | n | ALL] [FROM | IN] name"""
    return MoveCursor(*_rows_of_cursor(cursor, "MOVE"))


def _rows_of_cursor(cursor: Cursor, verb: str) -> tuple[str, int | None]:
    """The name of a cursor and how many of its rows, None for all."""
    count: int | None = 1
    if cursor.word() in ("prior", "first", "last", "absolute", "relative", "backward"):
        raise cursor.unsupported(f"{verb} {cursor.word().upper()}", hint="Rows are fetched in one direction.")
    forward = cursor.accept("next") or cursor.accept("forward")
    if (forward and cursor.word(-1) == "forward") or not forward:
        if cursor.accept("all"):
            count = None
        elif cursor.sees_symbol(TokenType.NUMBER) or cursor.sees_symbol(TokenType.DASH):
            position = cursor.position()
            count = cursor.integer()
            if count < 0:
                raise FeatureNotSupported(
                    f"{verb} of a negative number of rows is not supported",
                    hint="Rows are fetched in one direction.",
                    position=position,
                )
    if not cursor.accept("from"):
        cursor.accept("in")
    return cursor.name(), count


def close(cursor: Cursor) -> CloseCursor:
    return CloseCursor(None if cursor.accept("all") else cursor.name())


def savepoint(cursor: Cursor) -> Savepoint:
    return Savepoint(cursor.name())


def release(cursor: Cursor) -> ReleaseSavepoint:
    cursor.accept("savepoint")
    return ReleaseSavepoint(cursor.name())


def deallocate(cursor: Cursor) -> Deallocate:
    cursor.accept("prepare")
    return Deallocate(None if cursor.accept("all") else cursor.name())


def discard(cursor: Cursor) -> Discard:
    word = cursor.word()
    if word not in ("all", "plans", "sequences", "temp", "temporary"):
        raise cursor.error()
    cursor.index += 1
    return Discard(word == "all", word in ("temp", "temporary"))


def unlisten(cursor: Cursor) -> Unlisten:
    if not cursor.accept_symbol(TokenType.STAR):
        cursor.name()
    return Unlisten()


# --- COPY ----------------------------------------------------------------------------------------------


def copy(cursor: Cursor) -> CopyFrom | CopyTo:
    """COPY table [(columns)] FROM STDIN, COPY table [(columns)] | (query) TO STDOUT, with PostgreSQL's options."""
    if cursor.sees_symbol(TokenType.L_PAREN):
        query = _query(cursor)
        cursor.expect("to")
        _stream(cursor, "stdout")
        return CopyTo(query, None, (), _options(cursor, to=True))
    table = cursor.object_name()
    columns = cursor.column_names()
    if cursor.accept("to"):
        _stream(cursor, "stdout")
        return CopyTo(_selected(table, columns), table, columns, _options(cursor, to=True))
    cursor.expect("from")
    _stream(cursor, "stdin")
    format_ = _options(cursor, to=False)
    where = cursor.expression(lambda _index: False) if cursor.accept("where") else None
    return CopyFrom(table, columns, format_, where)


def _stream(cursor: Cursor, name: str) -> None:
    if cursor.accept(name):
        return
    if cursor.sees("program") or cursor.sees_symbol(TokenType.STRING):
        raise cursor.unsupported(
            "COPY of a file on the server", hint=f"Use {name.upper()}: psql's \\copy reads and writes your own files."
        )
    raise cursor.error()


def _query(cursor: Cursor) -> SqlQuery:
    cursor.expect_symbol(TokenType.L_PAREN)
    query = cursor.query(cursor.region(lambda _index: False))
    cursor.expect_symbol(TokenType.R_PAREN)
    return query


def _selected(table: ObjectName, columns: tuple[str, ...]) -> SqlQuery:
    """The query that reads a table, or some of its columns."""
    names: list[exp.Expr] = [exp.column(exp.to_identifier(column, quoted=True)) for column in columns]
    source = exp.Table(
        **{
            part: exp.to_identifier(name, quoted=True)
            for part, name in zip(("this", "db", "catalog"), reversed(table.parts), strict=False)
        }
    )
    return SqlQuery(
        exp.select(*(names or [exp.Star()])).from_(source), f"SELECT {', '.join(columns) or '*'} FROM {table}"
    )


def _options(cursor: Cursor, *, to: bool) -> CopyFormat:
    given, seen = CopyFormat(), set[str]()
    cursor.accept("with")
    if cursor.sees_symbol(TokenType.L_PAREN):
        settings: list[CopyFormat] = [given]
        cursor.in_parentheses(lambda: settings.append(_option(cursor, settings[-1], seen)))
        given = settings[-1]
    else:  # the spelling before PostgreSQL 9
        while cursor.peek() is not None and (to or cursor.word() != "where"):
            if cursor.word() not in ("binary", "csv", "header", "delimiter", "null", "quote", "escape", "force"):
                raise cursor.error()
            given = _option(cursor, given, seen)
    return _checked(given, to=to)


_OPTIONS = (
    "format", "header", "delimiter", "null", "quote", "escape", "encoding", "force_quote", "force_null",
    "force_not_null",
)  # fmt: skip


def _option(cursor: Cursor, given: CopyFormat, seen: set[str]) -> CopyFormat:
    position = cursor.position()
    word = cursor.word()
    cursor.index += 1
    if word == "force":  # FORCE NOT NULL, in the old spelling
        word = "_".join(["force", *(each for each in ("quote", "not", "null") if cursor.accept(each))])
    named = "format" if word in ("binary", "csv") else word
    if named in seen:
        raise SyntaxError_("conflicting or redundant options", position=position)
    seen.add(named)
    match word:
        case "format":
            spelled = cursor.value().lower()
            if spelled not in [form.value for form in CopyForm]:
                raise InvalidParameter(f'COPY format "{spelled}" not recognized', position=position)
            return replace(given, form=CopyForm(spelled))
        case "binary" | "csv":
            return replace(given, form=CopyForm(word))
        case "header":
            if cursor.accept("match"):
                return replace(given, header=True, match_header=True)
            wanted = True
            if cursor.word() in ("true", "on", "false", "off") or cursor.sees_symbol(TokenType.NUMBER):
                wanted = cursor.value().lower() in ("true", "on", "1")
            return replace(given, header=wanted)
        case "delimiter" | "null" | "quote" | "escape":
            cursor.accept("as")
            changed: dict[str, Any] = {word: cursor.string()}
            return replace(given, **changed)
        case "force_quote" | "force_null" | "force_not_null":
            forced: dict[str, Any] = {word: _forced(cursor)}
            return replace(given, **forced)
        case "encoding":
            if cursor.value().lower().replace("-", "") not in ("utf8", "unicode"):
                raise InvalidParameter("COPY knows only the encoding UTF8", position=position)
            return given
        case "freeze":
            if cursor.word() in ("true", "on", "false", "off"):
                cursor.index += 1
            return given
        case _:
            cursor.index -= 1
            raise cursor.error(hint=nearest(word, _OPTIONS))


def _forced(cursor: Cursor) -> ForcedColumns:
    """The columns of an option: * for all, a list in parentheses, or without those in the old spelling."""
    if cursor.accept_symbol(TokenType.STAR):
        return None
    if cursor.sees_symbol(TokenType.L_PAREN):
        return cursor.column_names()
    names = [cursor.name()]
    while cursor.accept_symbol(TokenType.COMMA):
        names.append(cursor.name())
    return tuple(names)


def _checked(given: CopyFormat, *, to: bool) -> CopyFormat:
    is_csv = given.form is CopyForm.CSV
    for name in ("delimiter", "quote", "escape"):
        value = getattr(given, name)
        if value is not None and (len(value.encode()) != 1 or value in "\r\n"):
            raise FeatureNotSupported(f"COPY {name} must be a single one-byte character")
    if given.form is CopyForm.BINARY:
        for name in ("delimiter", "null", "header"):
            if getattr(given, name) not in (None, False):
                raise SyntaxError_(f"cannot specify {name.upper()} in BINARY mode")
    for name in ("quote", "escape", "force_quote", "force_null", "force_not_null"):
        if not is_csv and getattr(given, name) not in (None, ()):
            raise FeatureNotSupported(f"COPY {name.replace('_', ' ')} available only in CSV mode")
    if given.null is not None and ("\r" in given.null or "\n" in given.null):
        raise InvalidParameter("COPY null representation cannot use newline or carriage return")
    if given.form is CopyForm.TEXT and given.delimiter and given.delimiter in "\\.abcdefghijklmnopqrstuvwxyz0123456789":
        raise InvalidParameter(f'COPY delimiter cannot be "{given.delimiter}"')
    quote = given.quote or '"'
    if is_csv and quote == (given.delimiter or ","):
        raise InvalidParameter("COPY delimiter and quote must be different")
    for name, elsewhere in (("force_quote", False), ("force_null", True), ("force_not_null", True)):
        if to is elsewhere and getattr(given, name) != ():
            other = "FROM" if to else "TO"
            raise FeatureNotSupported(f"COPY {name.replace('_', ' ')} only available using COPY {other}")
    if to and given.match_header:
        raise FeatureNotSupported('cannot use "match" with HEADER in COPY TO')
    return given
