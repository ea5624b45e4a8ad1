"""A session's questions about the system: which of its queries they are, and their answers."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping

from sqlglot import exp

from seiche.catalog.objects import User
from seiche.session.database import Database
from seiche.session.system.evaluate import Answer, known_to_clients
from seiche.session.system.functions import FUNCTIONS
from seiche.session.system.observe import observe
from seiche.session.system.parameters import filled, parameter_types
from seiche.session.system.rewrite import NotForUs, is_system_query
from seiche.session.system.state import Asking
from seiche.session.variables import Variables
from seiche.sql.bind import OutputColumn
from seiche.sql.calls import call_of
from seiche.sql.dialect import Seiche
from seiche.sql.functions import is_function
from seiche.types import SqlType


class Asker:
    """Asks for one session. `stop` may come from another thread."""

    def __init__(self, database: Database, pid: int, started_ms: int) -> None:
        self._database = database
        self._pid = pid
        self._started_ms = started_ms
        self._interrupt: Callable[[], None] | None = None
        self._lock = threading.Lock()

    def ask(
        self,
        tree: exp.Expr,
        user: User,
        variables: Variables,
        values: Mapping[int, str | None] | None = None,
    ) -> tuple[Answer, Mapping[str, str]] | None:
        """The answer, and the variables that it set; None for a query that is not about the system alone.

        `values` are those of the query's parameters by number, as text.
        """
        catalog = self._database.catalog.seen_from(variables.database)
        if not is_system_query(tree, catalog, variables.search_path):
            return None
        asking = Asking(
            observe(self._database, variables),
            user,
            variables.search_path,
            self._pid,
            variables.get,
            self._database.clock.now_ms(),
            self._started_ms,
            self._database.started_ms,
            self._signal,
        )
        try:
            answer = self._database.system.answer(filled(tree, values), asking, self._running)
        except NotForUs:
            return None
        return answer, asking.changes

    def describe(
        self, tree: exp.Expr, user: User, variables: Variables
    ) -> tuple[tuple[OutputColumn, ...], Mapping[int, SqlType]] | None:
        """The columns that the answer would have, and the types of the query's parameters; None as for `ask`."""
        types = parameter_types(tree)
        asked = self.ask(tree, user, variables, dict.fromkeys(types))
        if asked is None:
            return None
        return asked[0].columns, {number: known_to_clients(type_) for number, type_ in types.items()}

    def with_answers(self, tree: exp.Expr, user: User, variables: Variables) -> exp.Expr:
        """A query that Spark runs, with the calls about the system that it has among others answered before."""
        if not any(_is_question(node) for node in tree.walk()):
            return tree

        def answered(node: exp.Expr) -> exp.Expr:
            found = self.ask(exp.Select(expressions=[node.copy()]), user, variables) if _is_question(node) else None
            return node if found is None else _constant(found[0])

        changed: exp.Expr = tree.copy().transform(answered, copy=False)
        return changed

    def _signal(self, pid: int, ends: bool) -> None:
        session = self._database.sessions.get(pid)
        if session is not None:
            session.hang_up() if ends else session.cancel()

    def stop(self) -> None:
        """Stops the question that is being answered, if any."""
        with self._lock:
            if self._interrupt is not None:
                self._interrupt()

    def _running(self, interrupt: Callable[[], None] | None) -> None:
        with self._lock:
            self._interrupt = interrupt


_CHANGING = frozenset({"set_config", "pg_cancel_backend", "pg_terminate_backend"})


def _is_question(node: exp.Expr) -> bool:
    """Whether it is a call of a function that only system queries have, with nothing but constants."""
    called = call_of(node)
    if called is None or is_function(called[0]) or called[0] in _CHANGING:
        return False
    name, arguments = called
    return (name, len(arguments)) in FUNCTIONS and all(
        isinstance(each, exp.Literal | exp.Null | exp.Boolean) for each in arguments
    )


def _constant(answer: Answer) -> exp.Expr:
    (column,) = answer.columns
    value = answer.table.column(0)[0].as_py()
    if isinstance(value, list):
        return exp.Cast(this=exp.Array(expressions=[exp.convert(each) for each in value]), to=_written(column.type))
    return exp.Cast(this=exp.Null() if value is None else exp.convert(str(value)), to=_written(column.type))


def _written(type_: SqlType) -> exp.DataType:
    return exp.DataType.build(str(type_), dialect=Seiche)
