"""Statements prepared with PREPARE, by name, for EXECUTE to run with values.

Drivers prepare with messages of the protocol instead; those statements live in the server.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sqlglot import exp

from seiche.errors import DuplicateStatement, SyntaxError_, UndefinedStatement
from seiche.session.describe import Description
from seiche.sql import statements as ast
from seiche.sql.parse import parse_query
from seiche.types import SqlType

PREPARED_MAX = 10_000


@dataclass(frozen=True, slots=True)
class PreparedStatement:
    statement: ast.Statement
    text: str
    description: Description


class PreparedStatements:
    """Those of one session."""

    def __init__(self) -> None:
        self._named: dict[str, PreparedStatement] = {}

    def refuse_taken(self, name: str) -> None:
        if name in self._named:
            raise DuplicateStatement(f'prepared statement "{name}" already exists')
        if len(self._named) >= PREPARED_MAX:
            raise DuplicateStatement("too many prepared statements", hint="Deallocate those that are not needed.")

    def add(self, name: str, prepared: PreparedStatement) -> None:
        self.refuse_taken(name)
        self._named[name] = prepared

    def find(self, name: str) -> PreparedStatement:
        if name not in self._named:
            raise UndefinedStatement(f'prepared statement "{name}" does not exist')
        return self._named[name]

    def drop(self, name: str | None) -> None:
        """Forgets one, or all of them."""
        if name is None:
            self._named.clear()
        else:
            self.find(name)
            del self._named[name]


def values_of(
    statement: ast.Execute, types: tuple[SqlType, ...], evaluate: Callable[[ast.SqlQuery], str | None]
) -> list[str | None]:
    """The arguments as text. `evaluate` gives the text of the one value of a query."""
    if len(statement.arguments) != len(types):
        raise SyntaxError_(
            f'wrong number of parameters for prepared statement "{statement.name}"',
            detail=f"Expected {len(types)} parameters but got {len(statement.arguments)}.",
        )
    return [_value(each, type_, evaluate) for each, type_ in zip(statement.arguments, types, strict=True)]


def _value(argument: ast.SqlExpression, type_: SqlType, evaluate: Callable[[ast.SqlQuery], str | None]) -> str | None:
    match argument.tree:
        case exp.Null():
            return None
        case exp.Boolean() as constant:
            return "t" if constant.this else "f"
        case exp.Literal(is_string=True) as constant:
            return str(constant.this)
        case exp.Literal() as constant if str(constant.this).isdecimal():
            return str(constant.this)
        case _:
            return evaluate(parse_query(f"SELECT CAST(({argument.text}) AS {type_})"))
