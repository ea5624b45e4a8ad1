"""Statements prepared with PREPARE, by name, for EXECUTE to run with values.

Drivers prepare with messages of the protocol instead; those statements live in the server.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sqlglot import exp

from seiche.errors import DuplicateStatement, SyntaxError_, UndefinedStatement
from seiche.session.describe import Description
from seiche.session.result import Result
from seiche.session.variables import Variables
from seiche.sql import statements as ast
from seiche.sql.bind import OutputColumn
from seiche.sql.parse import parse_query
from seiche.sql.text import format_value
from seiche.types import SqlType

PREPARED_MAX = 10_000

Ask = Callable[[ast.SqlQuery], Result]


@dataclass(frozen=True, slots=True)
class PreparedStatement:
    """`types` are those of its parameters; `columns` is None for a statement that gives no rows."""

    statement: ast.Statement
    text: str
    types: tuple[SqlType, ...]
    columns: tuple[OutputColumn, ...] | None

    def values(self, statement: ast.Execute, ask: Ask, variables: Variables) -> list[str | None]:
        """The arguments of EXECUTE as text. `ask` evaluates those that are more than a constant."""
        if len(statement.arguments) != len(self.types):
            raise SyntaxError_(
                f'wrong number of parameters for prepared statement "{statement.name}"',
                detail=f"Expected {len(self.types)} parameters but got {len(statement.arguments)}.",
            )
        pairs = zip(statement.arguments, self.types, strict=True)
        return [_value(argument, type_, ask, variables.get("timezone")) for argument, type_ in pairs]


class PreparedStatements:
    """Those of one session."""

    def __init__(self) -> None:
        self._named: dict[str, PreparedStatement] = {}

    def refuse_taken(self, name: str) -> None:
        """Raises DuplicateStatement unless there can be a new one of this name."""
        if name in self._named:
            raise DuplicateStatement(f'prepared statement "{name}" already exists')
        if len(self._named) >= PREPARED_MAX:
            raise DuplicateStatement("too many prepared statements", hint="Deallocate those that are not needed.")

    def add(self, prepared: ast.Prepare, description: Description) -> None:
        self.refuse_taken(prepared.name)
        self._named[prepared.name] = PreparedStatement(
            prepared.statement, prepared.text, description.parameters, description.columns
        )

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


def _value(argument: ast.SqlExpression, type_: SqlType, ask: Ask, timezone: str) -> str | None:
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
            ((value,),) = ask(parse_query(f"SELECT CAST(({argument.text}) AS {type_})")).rows or []
            return None if value is None else format_value(value, type_, timezone)
