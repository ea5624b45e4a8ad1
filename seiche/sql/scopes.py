"""Scopes: what a column name means at one place of a query.

A scope is the FROM clause of one SELECT as far as it has been read, and the scopes around it. Qualified names go
by range variable; bare names go by the entries, in which JOIN ... USING has merged the columns it joined.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from sqlglot import exp

from seiche.errors import AmbiguousColumn, DuplicateAlias, UndefinedColumn, UndefinedTable, nearest
from seiche.sql.nodes import call, text, type_of, typed
from seiche.types import SqlType, struct_of

Subquery = tuple[exp.Query, tuple[tuple[str, SqlType], ...]]


@dataclass(frozen=True, slots=True)
class Entry:
    """A column in scope: its name and the bound expression that it stands for."""

    name: str
    node: exp.Expr
    hidden: bool = False


@dataclass(frozen=True, slots=True)
class RangeVariable:
    """Something in FROM. `ref` is its alias in the bound query, unique in all of it."""

    name: str
    ref: str
    entries: tuple[Entry, ...]
    schema: str | None = None  # of a table or view without an alias
    scalar: bool = False  # a function of one value, which its alias stands for
    key: tuple[exp.Expr, ...] = ()  # the columns of a table's primary key


@dataclass(slots=True)
class Scope:
    """The columns in sight, innermost first. Implements the expressions' `Surroundings`."""

    bind_subquery: Callable[[exp.Expr, Scope], Subquery]
    parent: Scope | None = None
    variables: list[RangeVariable] = field(default_factory=list)
    entries: list[Entry] = field(default_factory=list)
    windows: dict[str, exp.Window] = field(default_factory=dict)

    def add(self, variable: RangeVariable) -> None:
        if any(other.name == variable.name and not _told_apart(other, variable) for other in self.variables):
            raise DuplicateAlias(
                f'table name "{variable.name}" specified more than once', hint="Give one of them an alias."
            )
        self.variables.append(variable)
        self.entries += variable.entries

    @property
    def refs(self) -> frozenset[str]:
        return frozenset(variable.ref for variable in self.variables)

    def visible(self, table: str | None = None, schema: str | None = None) -> list[Entry]:
        """What a star stands for."""
        if table is None:
            return [entry for entry in self.entries if not entry.hidden]
        variable = self._variable(table, schema)
        if variable is None:
            raise self._missing(table)
        return [entry for entry in variable.entries if not entry.hidden]

    # --- what expressions ask ------------------------------------------------------------------------

    def column(self, node: exp.Column) -> exp.Expr:
        name, table, schema = node.name, node.table or None, node.db or None
        found = self.lookup(name, table, schema)
        return typed(found.copy(), type_of(found))

    def subquery(self, query: exp.Expr) -> Subquery:
        return self.bind_subquery(query, self)

    def window(self, name: str) -> exp.Window | None:
        return self.windows.get(name)

    def around(self, values: Sequence[tuple[str, exp.Expr]]) -> Scope:
        return Scope(self.bind_subquery, entries=[Entry(name, node) for name, node in values])

    def lookup(self, name: str, table: str | None = None, schema: str | None = None) -> exp.Expr:
        scope: Scope | None = self
        while scope is not None:
            entry = scope.local(name, table, schema)
            if entry is not None:
                return entry.node
            scope = scope.parent
        if table is None and (whole := self._variable(name, None)) is not None:
            return _whole_row(whole)
        raise self._unknown(name, table)

    def local(self, name: str, table: str | None = None, schema: str | None = None) -> Entry | None:
        """The entry in this scope alone; None lets the search go on outside."""
        if table is not None:
            variable = self._own_variable(table, schema)
            if variable is None:
                return None
            matches = _named(variable.entries, name)
            if not matches:
                raise UndefinedColumn(
                    f"column {table}.{name} does not exist",
                    hint=nearest(name, [e.name for e in variable.entries if not e.hidden]),
                )
        else:
            matches = _named(self.entries, name)
        if len(matches) > 1:
            raise AmbiguousColumn(
                f'column reference "{name}" is ambiguous', hint="Qualify it with the name of its table."
            )
        return matches[0] if matches else None

    def _own_variable(self, table: str, schema: str | None) -> RangeVariable | None:
        found = [each for each in self.variables if each.name == table and schema in (None, each.schema)]
        if len(found) > 1:
            raise AmbiguousColumn(f'table reference "{table}" is ambiguous', hint="Write the schema before it.")
        return found[0] if found else None

    def _variable(self, table: str, schema: str | None) -> RangeVariable | None:
        scope: Scope | None = self
        while scope is not None:
            found = scope._own_variable(table, schema)
            if found is not None:
                return found
            scope = scope.parent
        return None

    def _missing(self, table: str) -> UndefinedTable:
        known = [variable.name for scope in self._chain() for variable in scope.variables]
        return UndefinedTable(f'missing FROM-clause entry for table "{table}"', hint=nearest(table, known))

    def _unknown(self, name: str, table: str | None) -> UndefinedColumn | UndefinedTable:
        if table is not None:
            return self._missing(table)
        known: dict[str, str] = {}
        for scope in self._chain():
            for variable in scope.variables:
                for entry in variable.entries:
                    if not entry.hidden:
                        known.setdefault(entry.name, f"{variable.name}.{entry.name}")
        hint = nearest(name, known)
        if hint is not None:
            hint = f'Perhaps you meant to reference the column "{known[hint.split(chr(34))[1]]}".'
        return UndefinedColumn(f'column "{name}" does not exist', hint=hint)

    def _chain(self) -> Iterable[Scope]:
        scope: Scope | None = self
        while scope is not None:
            yield scope
            scope = scope.parent


def _told_apart(one: RangeVariable, other: RangeVariable) -> bool:
    """Tables of two schemas may share a name where none has an alias."""
    return one.schema is not None and other.schema is not None and one.schema != other.schema


def _whole_row(variable: RangeVariable) -> exp.Expr:
    """A range variable's name used as a value."""
    if variable.scalar:
        return variable.entries[0].node
    visible = [entry for entry in variable.entries if not entry.hidden]
    arguments = [part for entry in visible for part in (text(entry.name), entry.node.copy())]
    return call(struct_of(*((entry.name, type_of(entry.node)) for entry in visible)), "named_struct", *arguments)


def _named(entries: Sequence[Entry], name: str) -> list[Entry]:
    """Hidden columns answer to their name where no visible one does."""
    visible = [entry for entry in entries if entry.name == name and not entry.hidden]
    return visible or [entry for entry in entries if entry.name == name]
