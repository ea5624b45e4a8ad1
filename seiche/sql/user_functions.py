"""Functions that users wrote.

A call of one in SQL is replaced by the body, with the arguments in place of the parameters, so a view that calls it is
maintained as if the body stood in it. The body is a SELECT of one value; parameters go by name or, as `$1`, by number.
A call of one in Python is a call of the function that Spark knows by `spark_name`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Protocol, runtime_checkable

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.normalize_identifiers import normalize_identifiers

from seiche.errors import InvalidDefinition
from seiche.sql.dialect import Seiche
from seiche.sql.places import unplaced
from seiche.types import SqlType

MAX_DEPTH = 32  # of functions that call functions


@dataclass(frozen=True, slots=True)
class UserFunction:
    """`parameters` have a name or None. A `strict` one gives NULL for any NULL argument. An `aggregate` takes rows.

    `columns` are those of the rows that a function returns, none where it returns a value. What such a function
    `returns` is an array: of structs, or of bare values where the rows have one column.
    """

    name: str
    parameters: tuple[tuple[str | None, SqlType], ...]
    returns: SqlType
    body: str
    strict: bool = False
    language: str = "sql"
    volatile: bool = False
    aggregate: bool = False
    columns: tuple[tuple[str, SqlType], ...] = ()

    def spark_name(self, *, raises: bool) -> str:
        """Another name for another body, so that a replaced function is never mistaken for the new one."""
        types = [str(type_) for _, type_ in self.parameters]
        told = "\0".join([self.name, self.body, str(self.strict), str(self.returns), *types])
        return f"seiche_{sha256(told.encode()).hexdigest()[:16]}_{'strict' if raises else 'tolerant'}"


@runtime_checkable
class Functions(Protocol):
    """Where names are looked up, if there are functions among them."""

    def functions(self, name: str) -> Sequence[UserFunction]:
        """The functions of a name, which differ in the types of their parameters."""

    def call(self, function: UserFunction) -> None:
        """One of them is called."""


def body_of(function: UserFunction) -> exp.Expr:
    """The body as an expression: what it selects where it reads no table, else a subquery."""
    try:
        trees = [tree for tree in sqlglot.parse(function.body, dialect=Seiche) if tree is not None]
    except SqlglotError as cause:
        raise InvalidDefinition(f'body of function "{function.name}" cannot be read', detail=str(cause)) from cause
    if len(trees) != 1 or not isinstance(trees[0], exp.Query):
        raise InvalidDefinition(
            f'body of function "{function.name}" must be one SELECT', hint="Write AS 'SELECT ...' or RETURN expression."
        )
    folded: exp.Expr = normalize_identifiers(unplaced(trees[0]), dialect=Seiche)
    tree: exp.Expr = folded.transform(lambda node: _named_parameter(node, function))
    if isinstance(tree, exp.Select) and _is_plain(tree) and len(tree.expressions) == 1:
        value: exp.Expr = tree.expressions[0]
        return value.unalias()
    return exp.Subquery(this=tree)


def _is_plain(select: exp.Select) -> bool:
    return not any(value for name, value in select.args.items() if name not in ("expressions", "kind", "hint"))


def parameter_names(function: UserFunction) -> tuple[str, ...]:
    return tuple(name or f"${number}" for number, (name, _) in enumerate(function.parameters, start=1))


def _named_parameter(node: exp.Expr, function: UserFunction) -> exp.Expr:
    """`$1` as the name of the first parameter."""
    if not isinstance(node, exp.Parameter) or not isinstance(node.this, exp.Literal):
        return node
    number = int(node.this.name)
    names = parameter_names(function)
    if not 1 <= number <= len(names):
        raise InvalidDefinition(f'function "{function.name}" has no parameter ${number}')
    return exp.column(names[number - 1], quoted=True)
