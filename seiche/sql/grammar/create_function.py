"""CREATE FUNCTION and CREATE AGGREGATE: parameters, the type it returns, its language and its body."""

from __future__ import annotations

from sqlglot.tokenizer_core import TokenType

from seiche.errors import FeatureNotSupported, InvalidDefinition
from seiche.sql.grammar.cursor import Cursor
from seiche.sql.grammar.type_names import read_type
from seiche.sql.statements import CreateFunction, FunctionParameter
from seiche.types import SqlType, array_of, struct_of

_ATTRIBUTES = (
    ("immutable",), ("stable",), ("volatile",), ("strict",), ("called", "on", "null", "input"),
    ("returns", "null", "on", "null", "input"), ("parallel", "safe"), ("parallel", "unsafe"),
    ("parallel", "restricted"), ("leakproof",),
)  # fmt: skip


_LANGUAGES = ("sql", "python")


def create_function(cursor: Cursor, or_replace: bool, *, aggregate: bool = False) -> CreateFunction:
    if_not_exists = cursor.if_not_exists()
    name = cursor.object_name()
    parameters = parameter_list(cursor)
    returns: SqlType | None = None
    language: str | None = None
    body: str | None = None
    attributes: list[str] = []
    columns: tuple[tuple[str, SqlType], ...] = ()
    while cursor.peek() is not None:
        if (found := next((each for each in _ATTRIBUTES if cursor.sees(*each)), None)) is not None:
            cursor.index += len(found)
            attributes.append(" ".join(found))
        elif cursor.accept("returns"):
            if cursor.accept("table"):
                columns = _row_columns(cursor)
            elif cursor.accept("setof"):
                columns = (("", read_type(cursor)),)
            returns = _array_of_rows(columns) if columns else read_type(cursor)
        elif cursor.accept("language"):
            language = (cursor.string() if cursor.sees_symbol(TokenType.STRING) else cursor.name()).lower()
        elif cursor.accept("as"):
            body = cursor.string()
        elif cursor.accept("return"):
            body = "SELECT " + cursor.expression(lambda index: False).text
        else:
            raise cursor.error()
    if returns is None:
        raise InvalidDefinition("function result type must be specified", hint="Add RETURNS and a type.")
    if body is None:
        raise InvalidDefinition("no function body specified", hint="Add AS and the body in quotes, or in $$.")
    language = language or "sql"
    if language not in _LANGUAGES:
        raise FeatureNotSupported(
            f'language "{language}" is not supported', hint="Write the function in SQL or Python."
        )
    if aggregate and language != "python":
        raise FeatureNotSupported("an aggregate in SQL is not supported", hint="Write it in Python.")
    if columns and language != "python":
        raise FeatureNotSupported("a function in SQL that returns rows is not supported", hint="Write it in Python.")
    if columns and aggregate:
        raise InvalidDefinition("an aggregate returns one value, not rows")
    return CreateFunction(
        name,
        parameters,
        returns,
        body,
        or_replace,
        if_not_exists,
        strict="strict" in attributes or "returns null on null input" in attributes,
        language=language,
        volatile="volatile" in attributes,
        aggregate=aggregate,
        columns=columns,
    )


def _row_columns(cursor: Cursor) -> tuple[tuple[str, SqlType], ...]:
    cursor.expect_symbol(TokenType.L_PAREN)
    columns = cursor.comma_separated(lambda: (cursor.name(), read_type(cursor)))
    cursor.expect_symbol(TokenType.R_PAREN)
    return columns


def _array_of_rows(columns: tuple[tuple[str, SqlType], ...]) -> SqlType:
    return array_of(columns[0][1] if len(columns) == 1 else struct_of(*columns))


def parameter_list(cursor: Cursor) -> tuple[FunctionParameter, ...]:
    cursor.expect_symbol(TokenType.L_PAREN)
    if cursor.accept_symbol(TokenType.R_PAREN):
        return ()
    found = cursor.comma_separated(lambda: _parameter(cursor))
    cursor.expect_symbol(TokenType.R_PAREN)
    return found


def _parameter(cursor: Cursor) -> FunctionParameter:
    """A name and a type, or a type alone."""
    cursor.accept("in")
    alone = cursor.sees_symbol(TokenType.COMMA, 1) or cursor.sees_symbol(TokenType.R_PAREN, 1)
    alone = alone or cursor.sees_symbol(TokenType.L_PAREN, 1) or cursor.sees_symbol(TokenType.L_BRACKET, 1)
    if alone or cursor.sees("double", "precision") or cursor.sees("character", "varying"):
        return FunctionParameter(None, read_type(cursor))
    name = cursor.name()
    return FunctionParameter(name, read_type(cursor))
