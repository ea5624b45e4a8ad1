"""EXPLAIN ANALYZE of a table, a view or a sink: what keeping it up to date took while the statement waited."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any

from seiche.catalog.objects import CatalogObject
from seiche.epoch.report import EpochReport
from seiche.errors import InvalidParameter
from seiche.model import JobId
from seiche.session.database import Database
from seiche.session.names import CATALOG_KINDS
from seiche.session.result import Result
from seiche.session.variables import Variables
from seiche.session.work import Work
from seiche.sql import statements as ast
from seiche.sql.bind import OutputColumn
from seiche.types import BIGINT, DOUBLE, VARCHAR

_LONGEST_SECONDS = 3600

ANALYZED = tuple(
    OutputColumn(name, name, type_)
    for name, type_ in (
        ("identity", VARCHAR),
        ("epochs", BIGINT),  # in which it had something to do
        ("input_rows", BIGINT),
        ("output_rows", BIGINT),
        ("output_rps", DOUBLE),
        ("busy_ratio", DOUBLE),
    )
)


def analyzed(statement: ast.ExplainJob, database: Database, variables: Variables, work: Work) -> Result:
    """Waits for as long as the statement says. Raises QueryCanceled."""
    if not 0 <= statement.seconds <= _LONGEST_SECONDS:
        raise InvalidParameter(
            f"duration_secs is out of range: {statement.seconds}", hint=f"Choose 0 to {_LONGEST_SECONDS}."
        )
    catalog = database.catalog.seen_from(variables.database)
    kind = CATALOG_KINDS[statement.kind]
    item = catalog.find(
        statement.name.parts, search_path=variables.search_path, kinds=(kind,), action="EXPLAIN ANALYZE"
    )
    seen: list[EpochReport] = []
    database.coordinator.add_listener(seen.append)
    try:
        never: Future[Any] = Future()
        work.wait_at_most(never, statement.seconds)
        work.stop_if_told()
    finally:
        database.coordinator.remove_listener(seen.append)
    return Result("EXPLAIN", ANALYZED, _rows=[_figures(item, seen, statement.seconds)])


def _figures(item: CatalogObject, seen: list[EpochReport], seconds: int) -> tuple[Any, ...]:
    done = [job for report in seen if report.error is None for job in report.jobs if job.job == JobId(item.id)]
    rows_out = sum(job.rows_out for job in done)
    per_second, busy = (rows_out / seconds, sum(job.seconds for job in done) / seconds) if seconds else (None, None)
    name = f"{item.kind.value} {item.schema}.{item.name}"
    return (name, len(done), sum(job.rows_in for job in done), rows_out, per_second, busy)
