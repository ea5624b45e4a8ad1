"""What a statement will want and give, before it runs: the types of its parameters and of its columns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from seiche.session.analyzing import ANALYZED
from seiche.session.cursors import Cursors
from seiche.session.dml import Dml
from seiche.session.result import Result
from seiche.sql import statements as ast
from seiche.sql.bind import BoundQuery, OutputColumn
from seiche.sql.parameters import Parameters
from seiche.types import VARCHAR, SqlType


@dataclass(frozen=True, slots=True)
class Description:
    """`columns` is None for a statement that gives no rows."""

    parameters: tuple[SqlType, ...] = ()
    columns: tuple[OutputColumn, ...] | None = None


def describe(
    statement: ast.Statement,
    parameters: Parameters,
    *,
    bound: Callable[[ast.SqlQuery], BoundQuery],
    dml: Dml,
    cursors: Cursors,
    run: Callable[[ast.Statement], Result],
) -> Description:
    """`bound` and `dml` bind with the given parameters, whose types are known afterwards. `run` runs a statement that
    has no effect."""
    columns: tuple[OutputColumn, ...] | None = None
    match statement:
        case ast.Select(query):
            columns = bound(query).columns
        case ast.Insert() | ast.Update() | ast.Delete():
            columns = dml.describe(statement)
        case ast.DeclareCursor(query=query) | ast.CopyTo(query=query):
            bound(query)
        case ast.FetchCursor(name):
            columns = cursors.reader(name).columns
        case ast.ExplainJob():
            columns = ANALYZED
        case ast.CancelJobs():
            columns = (OutputColumn("Id", "Id", VARCHAR),)
        case (
            ast.ShowVariable()
            | ast.ShowAll()
            | ast.ShowParameters()
            | ast.ShowObjects()
            | ast.ShowColumns()
            | ast.ShowCreate()
            | ast.Describe()
            | ast.Explain()
        ):
            columns = run(statement).columns
        case _:
            pass
    return Description(parameters.types(), columns)


def merged_types(given: Sequence[SqlType | None], inferred: Mapping[int, SqlType]) -> tuple[SqlType, ...]:
    """The types of parameters: what the client says, else what their places tell."""
    count = max([len(given), *inferred])
    said = [*given, *([None] * (count - len(given)))]
    return tuple(each or inferred.get(number, VARCHAR) for number, each in enumerate(said, start=1))
