"""CREATE SINK … INTO a table: whether the sink's rows fit the table, and how the two are tied."""

from __future__ import annotations

from dataclasses import replace

from seiche.catalog.catalog import Catalog
from seiche.catalog.objects import INTO, CatalogObject, ObjectKind
from seiche.errors import InvalidDefinition
from seiche.model import ROW_ID
from seiche.session.deliveries import INTO_COLUMNS, bound_sink, upstream_of
from seiche.session.names import refuse_unfinished
from seiche.session.sink_options import read_sink_options
from seiche.sql import statements as ast


def filling(
    sink: CatalogObject, statement: ast.CreateSink, catalog: Catalog, search_path: tuple[str, ...]
) -> CatalogObject:
    """The sink as one that fills its table. Raises where it cannot; a sink without a table is left as it is."""
    if statement.into is None:
        return sink
    target = catalog.find(
        statement.into.parts, search_path=search_path, kinds=(ObjectKind.TABLE,), action="CREATE SINK"
    )
    refuse_unfinished(target)
    if target.id in upstream_of(catalog, sink.dependencies):
        raise InvalidDefinition(
            f'sink "{sink.name}" would feed {target} with what comes from it',
            detail="Creating such a sink will result in circular dependency.",
        )
    assert sink.relation is not None and target.relation is not None
    options = read_sink_options(statement.options, into_table=True)
    without_key = target.relation.key == (ROW_ID,)
    if (without_key or target.relation.append_only) and not (options.drops_deletes or sink.relation.append_only):
        raise InvalidDefinition(
            f"rows of {target} cannot be deleted by a key, as this sink would have to",
            detail="Only append-only sinks can sink to a table without primary keys.",
            hint="Write type = 'append-only' and force_append_only = 'true' to hand on nothing but rows that appear.",
        )
    properties = {**sink.properties, INTO: target.id, INTO_COLUMNS: list(statement.into_columns)}
    tied = replace(sink, properties=properties, dependencies=sink.dependencies | {target.id})
    bound_sink(tied, target, 0)
    return tied
