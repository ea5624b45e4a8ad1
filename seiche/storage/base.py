"""The base of a relation: an Apache Iceberg table that any engine can read.

Executors write the Parquet files; PyIceberg only commits which of them make up the table. The Iceberg catalog
lives in the metadata database. One snapshot is kept: what Seiche itself needs of older epochs it keeps through
its own files and pins, so Iceberg's metadata does not grow with the number of folds.
"""

from __future__ import annotations

from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import NamespaceAlreadyExistsError, NoSuchTableError
from pyiceberg.io.pyarrow import parquet_files_to_data_files
from pyiceberg.manifest import ManifestFile
from pyiceberg.schema import Schema
from pyiceberg.table import Table, TableProperties
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.name_mapping import NameMapping
from pyiceberg.table.snapshots import Operation
from pyiceberg.table.update.snapshot import _OverwriteFiles
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IcebergType,
    IntegerType,
    ListType,
    LongType,
    NestedField,
    StringType,
    StructType,
    TimestampType,
    TimestamptzType,
)

from seiche.model import RelationId, RelationSchema
from seiche.storage.changes import vnode_column
from seiche.storage.files import DataFolder, relation_folder
from seiche.types import Kind, SqlType

NAMESPACE = "seiche"


class IcebergBases:
    """Commits files as the content of a relation's Iceberg table."""

    def __init__(self, catalog_uri: str, folder: DataFolder) -> None:
        self._folder = folder
        warehouse = folder.uri if "://" in folder.uri else f"file://{folder.uri}"
        self._catalog = SqlCatalog("seiche", uri=catalog_uri, warehouse=warehouse, init_catalog_tables="true")
        try:
            self._catalog.create_namespace(NAMESPACE)
        except NamespaceAlreadyExistsError:
            pass

    def replace_files(self, relation: RelationId, schema: RelationSchema, paths: list[str]) -> int:
        """Makes `paths` the whole content of the table, in one Iceberg commit; returns the snapshot's id."""
        table = self._open(relation, schema)
        old = [task.file for task in table.scan().plan_files()] if table.current_snapshot() else []
        known = {file.file_path: file for file in old}
        locations = [self._folder.location(path) for path in paths]
        with table.transaction() as transaction:
            # Entries of files that stay are taken over; only new files are opened.
            new = parquet_files_to_data_files(
                table.io,
                _named_as_in_files(transaction.table_metadata, schema),
                iter(each for each in locations if each not in known),
            )
            files = [*(known[each] for each in locations if each in known), *new]
            with _ReplaceAll(
                operation=Operation.OVERWRITE if old else Operation.APPEND,
                transaction=transaction,
                io=table.io,
            ) as overwrite:
                for file in old:
                    if file.file_path not in locations:
                        overwrite.delete_data_file(file)
                for file in files:
                    overwrite.append_data_file(file)
        table.refresh()
        snapshot = table.current_snapshot()
        assert snapshot is not None
        stale = [each.snapshot_id for each in table.snapshots() if each.snapshot_id != snapshot.snapshot_id]
        if stale:
            table.maintenance.expire_snapshots().by_ids(stale).commit()
        return snapshot.snapshot_id

    def drop(self, relation: RelationId) -> None:
        """Forgets the table; its files go with the relation's folder."""
        try:
            self._catalog.drop_table((NAMESPACE, relation_folder(relation)))
        except NoSuchTableError:
            pass

    def referenced(self, relation: RelationId) -> set[str]:
        """The files that the table's current metadata needs, data files and Iceberg's own, relative to the root."""
        try:
            table = self._catalog.load_table((NAMESPACE, relation_folder(relation)))
        except NoSuchTableError:
            return set()
        needed = {table.metadata_location, *(entry.metadata_file for entry in table.metadata.metadata_log)}
        for snapshot in table.snapshots():
            needed.add(snapshot.manifest_list)
            for manifest in snapshot.manifests(table.io):
                needed.add(manifest.manifest_path)
                needed.update(e.data_file.file_path for e in manifest.fetch_manifest_entry(table.io))
        return {self._folder.relative(location) for location in needed}

    def stale_metadata(self, relation: RelationId) -> list[str]:
        """Iceberg's own files that its current metadata no longer needs."""
        known = self.referenced(relation)
        folder = f"{relation_folder(relation)}/metadata"
        return [path for path in self._folder.walk(folder) if path not in known]

    def relations(self) -> set[RelationId]:
        """The relations that have a table."""
        names = (identifier[-1] for identifier in self._catalog.list_tables(NAMESPACE))
        return {RelationId(int(name.removeprefix("r"))) for name in names}

    def table(self, relation: RelationId) -> Table | None:
        """The relation's table as an external engine finds it; None before the first fold."""
        try:
            return self._catalog.load_table((NAMESPACE, relation_folder(relation)))
        except NoSuchTableError:
            return None

    def metadata_location(self, relation: RelationId) -> str | None:
        """Where an external engine finds the table's current metadata; None before the first fold."""
        table = self.table(relation)
        return None if table is None else table.metadata_location

    def close(self) -> None:
        self._catalog.close()

    def _open(self, relation: RelationId, schema: RelationSchema) -> Table:
        identifier = (NAMESPACE, relation_folder(relation))
        try:
            table = self._catalog.load_table(identifier)
        except NoSuchTableError:
            pass
        else:
            evolve(table, schema)
            return table
        shape = iceberg_schema(schema)
        warehouse = self._folder.uri if "://" in self._folder.uri else f"file://{self._folder.uri}"
        table = self._catalog.create_table(
            identifier,
            shape,
            location=f"{warehouse}/{relation_folder(relation)}",
            properties={
                TableProperties.METADATA_DELETE_AFTER_COMMIT_ENABLED: "true",
                TableProperties.METADATA_PREVIOUS_VERSIONS_MAX: "1",
            },
        )
        # Files that Spark wrote carry no Iceberg field ids: columns are found by name.
        with table.transaction() as transaction:
            mapping = _mapping(table.schema(), schema)
            transaction.set_properties(**{TableProperties.DEFAULT_NAME_MAPPING: mapping.model_dump_json()})
        return table


def evolve(table: Table, schema: RelationSchema) -> None:
    """Gives the table the relation's columns, in one commit. A column is known by the name that files have for it."""
    mapping = table.name_mapping()
    assert mapping is not None
    columns = {column.file_name: column for column in (*schema.columns, vnode_column())}
    held = {field.names[0]: field.field_id for field in mapping.root if field.field_id is not None}
    current = {field.field_id: field.name for field in table.schema().fields}
    known = {name: current[number] for name, number in held.items() if number in current}
    wanted = iceberg_schema(schema)
    has_fields = set(wanted.column_names) <= set(table.schema().column_names)
    if known == {name: column.name for name, column in columns.items()} and has_fields:
        return
    with table.transaction() as transaction:
        with transaction.update_schema(allow_incompatible_changes=True) as update:
            for name, called in known.items():
                if name not in columns:
                    update.delete_column(called)
        with transaction.update_schema() as update:
            for name, called in known.items():
                if name in columns and columns[name].name != called:
                    update.rename_column(called, columns[name].name)
        with transaction.update_schema() as update:
            for name, column in columns.items():
                if name not in known:
                    update.add_column(column.name, _iceberg_type(column.type, iter(range(1, 100_000))))
        if not has_fields:
            with transaction.update_schema() as update:
                update.union_by_name(wanted)
        live = _mapping(transaction.table_metadata.schema(), schema).root
        gone = [each for each in mapping.root if each.names[0] not in columns]  # older files still have them
        made = NameMapping([*live, *gone]).model_dump_json()
        transaction.set_properties(**{TableProperties.DEFAULT_NAME_MAPPING: made})


def _mapping(shape: Schema, schema: RelationSchema) -> NameMapping:
    """Which field each column of a file is. Files that Spark wrote carry no Iceberg field ids: names tell it."""
    stored = {column.name: column.file_name for column in schema.columns}
    fields = shape.name_mapping.root
    return NameMapping(
        [each.model_copy(update={"names": [stored.get(each.names[0], each.names[0])]}) for each in fields]
    )


def _named_as_in_files(metadata: TableMetadata, schema: RelationSchema) -> TableMetadata:
    """The table with its fields called as files call them, which is how PyIceberg looks into a new file."""
    shape = metadata.schema()
    stored = {column.name: column.file_name for column in schema.columns}
    fields = [field.model_copy(update={"name": stored.get(field.name, field.name)}) for field in shape.fields]
    return metadata.model_copy(update={"schemas": [Schema(*fields, schema_id=shape.schema_id)]})


class _ReplaceAll(_OverwriteFiles):
    """An overwrite of the whole table. PyIceberg's own keeps a manifest of deleted entries for every commit ever
    made; here no entry of the snapshot before lives on, so none of its manifests has to."""

    def _existing_manifests(self) -> list[ManifestFile]:
        return []


def iceberg_schema(schema: RelationSchema) -> Schema:
    """The relation's stored columns and `_vnode` as an Iceberg schema."""
    ids = iter(range(1, 100_000))
    columns = [*schema.columns, vnode_column()]
    fields = [(next(ids), column) for column in columns]
    return Schema(*(NestedField(number, c.name, _iceberg_type(c.type, ids), required=False) for number, c in fields))


def _iceberg_type(type_: SqlType, ids: object) -> IcebergType:
    def fresh() -> int:
        return next(ids)  # type: ignore[call-overload]

    match type_.kind:
        case Kind.BOOLEAN:
            return BooleanType()
        case Kind.SMALLINT | Kind.INTEGER:
            return IntegerType()
        case Kind.BIGINT | Kind.TIME:
            return LongType()
        case Kind.NUMERIC:
            return DecimalType(type_.precision, type_.scale)
        case Kind.REAL:
            return FloatType()
        case Kind.DOUBLE:
            return DoubleType()
        case Kind.VARCHAR | Kind.JSONB | Kind.NULL:
            return StringType()
        case Kind.BYTEA:
            return BinaryType()
        case Kind.DATE:
            return DateType()
        case Kind.TIMESTAMP:
            return TimestampType()
        case Kind.TIMESTAMPTZ:
            return TimestamptzType()
        case Kind.INTERVAL:
            parts = [("months", IntegerType()), ("days", IntegerType()), ("micros", LongType())]
            return StructType(*(NestedField(fresh(), name, kind, required=False) for name, kind in parts))
        case Kind.ARRAY:
            assert type_.element is not None
            number = fresh()
            return ListType(number, _iceberg_type(type_.element, ids), element_required=False)
        case Kind.MAP:
            return _iceberg_type(type_.entries, ids)
        case Kind.STRUCT:
            numbered = [(fresh(), name, field) for name, field in type_.fields]
            return StructType(
                *(NestedField(number, name, _iceberg_type(f, ids), required=False) for number, name, f in numbered)
            )
