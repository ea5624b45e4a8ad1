"""ALTER SYSTEM SET: system parameters, and the values with which sessions begin.

Both are stored in the metadata database at the next barrier and hold from then on, and at every later start. A session
variable is stored under its name after `session.`; the sessions that are open keep theirs, but for the one that asks.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from seiche.catalog.checkpoint import Checkpoint
from seiche.config import parameter_name
from seiche.epoch.barrier import Barrier
from seiche.epoch.checkpoint import Effect
from seiche.epoch.graph import Graph
from seiche.errors import SeicheError, UndefinedObject
from seiche.session.database import Database
from seiche.session.variables import Variables, find
from seiche.session.work import Work
from seiche.sql import statements as ast

_PREFIX = "session."


def session_defaults(stored: Mapping[str, str]) -> Mapping[str, str]:
    """The values with which sessions begin, among all that ALTER SYSTEM stored."""
    return MappingProxyType(
        {name.removeprefix(_PREFIX): value for name, value in stored.items() if name.startswith(_PREFIX)}
    )


def system_parameters(stored: Mapping[str, str]) -> Mapping[str, str]:
    """The rest."""
    return MappingProxyType({name: value for name, value in stored.items() if not name.startswith(_PREFIX)})


def alter_system(database: Database, work: Work, variables: Variables, statement: ast.AlterSystemSet) -> Variables:
    """Changes a setting for good, and gives the variables that the session has after it."""
    try:
        name = parameter_name(statement.name, statement.value)
        config = database.config.with_parameter(name, statement.value)
    except UndefinedObject as unknown:
        return _alter_sessions(database, work, variables, statement, unknown)
    _store(database, work, name, statement.value)
    database.config = config
    database.apply_parameters()
    return variables


def _alter_sessions(
    database: Database, work: Work, variables: Variables, statement: ast.AlterSystemSet, unknown: SeicheError
) -> Variables:
    try:
        name = find(statement.name).name
    except UndefinedObject:
        raise unknown from None
    changed = variables.with_value(name, statement.value)
    left = {other: value for other, value in database.session_defaults.items() if other != name}
    if statement.value is not None:
        left[name] = changed.get(name)
    _store(database, work, _PREFIX + name, left.get(name))
    database.session_defaults = MappingProxyType(left)
    return changed.beginning_with(database.session_defaults)


def _store(database: Database, work: Work, name: str, value: str | None) -> None:
    class Change:
        def apply(self, graph: Graph, barrier: Barrier) -> Effect:
            return Effect(graph, Checkpoint(settings={name: value}))

    work.wait(database.coordinator.command(Change()))
