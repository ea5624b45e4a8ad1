"""Functions that users wrote and that return rows.

Spark knows such a function as one that returns an array, so a call of it explodes what it returns, as `unnest` does.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from seiche.sql.binder import Binder
from seiche.sql.casts import settle
from seiche.sql.functions import is_function
from seiche.sql.invocations import inlined, written_function
from seiche.sql.tables import SET_RETURNING, TableFunction, numbered, single_row
from seiche.sql.user_functions import Functions


def returns_rows(functions: Functions | None, name: str, arguments: Sequence[exp.Expr]) -> bool:
    """Whether a user's function of that name, with that many parameters, returns rows."""
    if functions is None or is_function(name) or name in SET_RETURNING:
        return False
    found = [each for each in functions.functions(name) if len(each.parameters) == len(arguments)]
    return any(each.columns for each in found)


def user_rows(
    binder: Binder, name: str, arguments: Sequence[exp.Expr], *, ordinality: bool = False
) -> TableFunction | None:
    """The rows of a user's function; one that returns a value gives one row. None where there is none of that name."""
    found = written_function(binder, name, arguments) if name not in SET_RETURNING else None
    if found is None:
        return None
    function, given = found
    value = inlined(binder, function, given)
    if not function.columns:
        made = single_row(settle(value, binder.settings))
    elif len(function.columns) == 1:
        made = TableFunction(value, ((function.columns[0][0], ""),))
    else:
        made = TableFunction(value, tuple((column, column) for column, _ in function.columns))
    return numbered(made) if ordinality else made
